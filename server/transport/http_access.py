"""Who may call the HTTP server: its guard before each path, by the tokens of a file, those of an issuer, or both."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.auth.provider import AccessToken, TokenVerifier
from mcp.server.auth.routes import build_resource_metadata_url, create_protected_resource_routes
from mcp.server.auth.settings import AuthSettings
from pydantic import AnyHttpUrl
from starlette.authentication import AuthenticationError
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.requests import HTTPConnection
from starlette.responses import JSONResponse
from starlette.routing import Route

from speckit_memory.errors import Problem, SpeckitError
from speckit_memory.server.transport.http_guard import App, is_loopback, is_secure
from speckit_memory.server.transport.http_tokens import SCOPE, read_tokens

PATH = "/mcp"
"""The path of the only workspace; with several, each has a path below it."""
PathGuard = Callable[[App], App]
"""Lets only authorized requests reach an application."""


@dataclass(frozen=True, slots=True)
class AccessOptions:
    """Whose tokens the server accepts: those of `token_file`, and those that `issuer` made for `audience`.

    `audience` is the address of the server in tokens and metadata; `principal_claim` holds the principal.
    """

    token_file: Path | None = None
    issuer: str = ""
    audience: str = ""
    principal_claim: str = "sub"

    def check(self, host: str) -> None:
        """Raises E030 for an address that cannot be used, and E031 if one is missing, or if other machines can reach
        `host` and no token is needed."""
        problems = [
            Problem("E030", f"{option} is {address!r}; accepted: an address with https, or with http on this machine")
            for option, address in (("--issuer", self.issuer), ("--audience", self.audience))
            if address and not is_secure(address)
        ]
        if bool(self.issuer) != bool(self.audience):
            hint = "Tokens of an issuer are accepted if they name this server."
            action = "add --audience with the address that clients use, such as https://memory.example/mcp"
            problems.append(Problem("E031", "--issuer and --audience need each other", hint, (action,)))
        if not (self.token_file or self.issuer or is_loopback(host)):
            found = f"--host {host} can be reached by others and needs --token-file or --issuer"
            hint = "Every client that can connect can read and write the memory."
            actions = ("add --token-file FILE", "leave --host out to serve this machine only")
            problems.append(Problem("E031", found, hint, actions))
        if problems:
            raise SpeckitError.of(problems)


def guards_of(access: AccessOptions, paths: Iterable[str]) -> tuple[dict[str, PathGuard], list[Route]]:
    """The guard of each path, and the routes of the metadata that tell clients the issuer. Raises as `read_tokens`.

    A token of the issuer is for one path: its audience ends as the path does.
    """
    tokens: list[TokenVerifier] = [read_tokens(access.token_file)] if access.token_file else []
    if not access.issuer:
        return dict.fromkeys(paths, partial(guarded, verifiers=tokens)), []
    from speckit_memory.server.transport.http_issuer import (  # loads an HTTP client and cryptography
        IssuerKeys,
        JwtVerifier,
    )

    keys = IssuerKeys(access.issuer)
    guards: dict[str, PathGuard] = {}
    routes: list[Route] = []
    for path in paths:
        audience = access.audience.rstrip("/") + path.removeprefix(PATH)
        # the SDK's settings keep both addresses unchanged
        auth = AuthSettings.model_validate(
            {"issuer_url": access.issuer, "resource_server_url": audience, "validate_token_resource": False}
        )
        resource = auth.resource_server_url
        assert resource is not None
        verifier = JwtVerifier(keys, audience, access.principal_claim)
        guards[path] = partial(guarded, verifiers=[*tokens, verifier], resource=resource)
        routes += create_protected_resource_routes(resource, [auth.issuer_url], [SCOPE])
    return guards, routes


class AnyVerifier:
    """Accepts the tokens that one of several verifiers accepts, asked in their order."""

    def __init__(self, verifiers: Sequence[TokenVerifier]) -> None:
        self._verifiers = verifiers

    async def verify_token(self, token: str) -> AccessToken | None:
        """The caller's identity, None for a token that none accepts."""
        for verifier in self._verifiers:
            if found := await verifier.verify_token(token):
                return found
        return None


def guarded(app: App, verifiers: Sequence[TokenVerifier], resource: AnyHttpUrl | None = None) -> App:
    """Lets only requests with a valid token reach an application; without `verifiers` all do.

    Args:
        app: The application, which finds the user in the scope.
        verifiers: They check the tokens.
        resource: The address in tokens of an issuer: clients without a token are sent to its metadata.
    """
    if not verifiers:
        return app
    metadata = build_resource_metadata_url(resource) if resource else None
    checked = RequireAuthMiddleware(app, [SCOPE], metadata)
    return AuthenticationMiddleware(checked, BearerAuthBackend(AnyVerifier(verifiers)), _unavailable)


def _unavailable(_request: HTTPConnection, error: AuthenticationError) -> JSONResponse:
    """Tokens cannot be checked now: neither accepted nor called wrong."""
    told = {"error": "temporarily_unavailable", "error_description": str(error)}
    return JSONResponse(told, 503, {"Cache-Control": "no-store", "Retry-After": "5"})
