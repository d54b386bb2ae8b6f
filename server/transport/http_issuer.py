"""Access tokens of an OAuth 2.1 issuer: JSON Web Tokens, verified with the keys that the issuer publishes."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import urlsplit

import anyio
import httpx2
import jwt
from mcp.server.auth.provider import AccessToken
from starlette.authentication import AuthenticationError

from speckit_memory.config.workspace.settings import PRINCIPAL_NAME
from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.server.logging import logs
from speckit_memory.server.transport.http_guard import is_secure
from speckit_memory.server.transport.http_tokens import access

ALGORITHMS = ("RS256", "ES256", "EdDSA")
"""Algorithms whose keys are public. With a shared secret, everyone who can verify a token could also make one."""
LEEWAY_SECONDS = 30
"""How far the clocks of the issuer and this machine may differ."""
KEYS_SECONDS = 600.0
"""How long keys are used before they are read again: a withdrawn key is refused from then on."""
REFRESH_SECONDS = 60.0
"""Least time between two readings of the keys, even for invented key ids."""
RETRY_SECONDS = 5.0
"""The same after a failed reading."""
PATIENCE_SECONDS = 5.0
"""How long one reading of the keys may take."""
LONGEST_TOKEN = 16 << 10
LONGEST_DOCUMENT = 1 << 20


class JwtVerifier:
    """Accepts tokens that the issuer made for this resource, and names their principals."""

    def __init__(self, keys: IssuerKeys, audience: str, claim: str) -> None:
        """`audience` is the address of the resource; `claim` holds the principal."""
        self._keys = keys
        self._audience = audience
        self._claim = claim

    async def verify_token(self, token: str) -> AccessToken | None:
        """The caller's identity, None for a token that is not valid. The reason is logged, never the token.

        Raises AuthenticationError if the keys of the issuer cannot be had.
        """
        try:
            claims = await self._claims(token)
            principal = claims[self._claim]
            if not isinstance(principal, str) or not PRINCIPAL_NAME.fullmatch(principal):
                raise jwt.InvalidTokenError(f"the claim {self._claim} cannot be a principal")
        except SpeckitError as error:
            raise AuthenticationError(str(error)) from None
        except Exception as error:  # a token that makes the library raise anything is refused
            logs.event("token refused", "warning", reason=type(error).__name__)
            return None
        scopes = claims.get("scope", claims.get("scp", ()))
        scopes = scopes.split() if isinstance(scopes, str) else [str(scope) for scope in scopes]
        return access(principal, str(claims.get("client_id") or claims.get("azp") or ""), scopes)

    async def _claims(self, token: str) -> Mapping[str, Any]:
        if len(token) > LONGEST_TOKEN:
            raise jwt.InvalidTokenError("too long")
        header = jwt.get_unverified_header(token)
        # before the issuer is asked for keys
        if header.get("alg") not in ALGORITHMS:
            raise jwt.InvalidAlgorithmError
        if (key := await self._keys.find(header.get("kid"))) is None:
            raise jwt.InvalidKeyError
        return jwt.decode(
            token,
            key,
            algorithms=[key.algorithm_name],
            audience=self._audience,
            issuer=self._keys.issuer,
            leeway=LEEWAY_SECONDS,
            options={"require": ["exp", "aud", "iss", self._claim], "enforce_minimum_key_length": True},
        )


class IssuerKeys:
    """The public keys of an issuer by their ids, read when they are needed and kept for a time."""

    def __init__(self, issuer: str, clock: Callable[[], float] = time.monotonic) -> None:
        """`clock` is in seconds."""
        self.issuer = issuer
        self._clock = clock
        self._keys: Mapping[str, jwt.PyJWK] = {}
        self._read_at = self._asked_at = -math.inf
        self._failure: Problem | None = None
        self._asking = anyio.Lock()

    async def find(self, key_id: str | None) -> jwt.PyJWK | None:
        """The key of an id, None if the issuer has no such key. Raises E038 if it does not answer."""
        if key := self._present(key_id):
            return key
        async with self._asking:
            await self._read_again()
            key = self._present(key_id)
            if key is None and self._failure is not None:
                raise SpeckitError.of([self._failure])
            return key

    def _present(self, key_id: str | None) -> jwt.PyJWK | None:
        return self._keys.get(key_id or "") if self._clock() - self._read_at <= KEYS_SECONDS else None

    async def _read_again(self) -> None:
        """Reads the keys unless that was tried a moment ago."""
        if self._clock() - self._asked_at < (RETRY_SECONDS if self._failure else REFRESH_SECONDS):
            return
        try:
            with anyio.fail_after(PATIENCE_SECONDS):
                self._keys = await read_keys(self.issuer)
        except (TimeoutError, httpx2.HTTPError, httpx2.InvalidURL, ValueError) as error:
            reason = str(error) or type(error).__name__
            self._failure = Problem("E038", f"the keys of the issuer {self.issuer} cannot be read: {reason}")
            logs.event("issuer unavailable", "warning", problems=[str(self._failure)])
        else:
            self._failure, self._read_at = None, self._clock()
        self._asked_at = self._clock()


async def read_keys(issuer: str) -> dict[str, jwt.PyJWK]:
    """The usable keys of an issuer, by the address in its discovery document.

    Raises ValueError for a document that cannot be used, httpx2.HTTPError if there is no answer.
    """
    async with httpx2.AsyncClient(timeout=PATIENCE_SECONDS) as http:
        document: dict[str, Any] | None = None
        for address in discovery_addresses(issuer):
            if (document := await _document(http, address)) is not None:
                break
        if document is None:
            raise ValueError("it has no discovery document")
        # RFC 8414: otherwise the document may describe another issuer
        if document.get("issuer") != issuer:
            raise ValueError("its discovery document names another issuer; accepted is the same text as in --issuer")
        keys_at = document.get("jwks_uri")
        if not isinstance(keys_at, str) or not is_secure(keys_at):
            raise ValueError("its jwks_uri is no address with https")
        published = (await _document(http, keys_at) or {}).get("keys")
    if not isinstance(published, list):
        raise ValueError("its jwks_uri has no list of keys")
    return {key.key_id: key for each in published if (key := _usable(each)) is not None and key.key_id}


def discovery_addresses(issuer: str) -> list[str]:
    """Where an issuer may describe itself: RFC 8414, and OpenID Connect with the path after and before the name."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}/.well-known", parts.path.rstrip("/")
    oauth, openid = "oauth-authorization-server", "openid-configuration"
    every = (f"{base}/{oauth}{path}", f"{base}/{openid}{path}", f"{issuer.rstrip('/')}/.well-known/{openid}")
    return list(dict.fromkeys(every))


async def _document(http: httpx2.AsyncClient, address: str) -> dict[str, Any] | None:
    """A JSON object, None if there is nothing at the address. Redirects are not followed."""
    async with http.stream("GET", address, headers={"Accept": "application/json"}) as answer:
        if 400 <= answer.status_code < 500:
            return None
        if answer.status_code != 200:
            raise ValueError(f"{address} answers with status {answer.status_code}")
        content = b""
        async for piece in answer.aiter_bytes():
            content += piece
            if len(content) > LONGEST_DOCUMENT:
                raise ValueError(f"{address} sends more than {LONGEST_DOCUMENT:,} bytes")
    document = json.loads(content)
    if not isinstance(document, dict):
        raise ValueError(f"{address} does not send a JSON object")
    return document


def _usable(published: Any) -> jwt.PyJWK | None:
    """A key for verifying signatures by an accepted algorithm; None for any other, which issuers publish, too."""
    try:
        if published.get("use", "sig") != "sig":
            return None
        key = jwt.PyJWK(published)
    except Exception:  # a key of an unknown kind, or damaged: the others may be good
        return None
    return key if key.algorithm_name in ALGORITHMS and isinstance(key.key_id, str) else None
