"""Whom the HTTP server takes a caller for: static tokens of a file, and tokens of an issuer."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import jwt
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from local_issuer import AUDIENCE, PRIVATE_KEYS, LocalIssuer, local_issuer, published
from starlette.authentication import AuthenticationError

from speckit_memory.errors import SpeckitError
from speckit_memory.server.transport.http_access import AccessOptions
from speckit_memory.server.transport.http_issuer import (
    LONGEST_DOCUMENT,
    LONGEST_TOKEN,
    IssuerKeys,
    JwtVerifier,
    discovery_addresses,
)
from speckit_memory.server.transport.http_tokens import StaticTokens, read_tokens

pytestmark = pytest.mark.requirement("T27.principals")

ANNA, BOB = "anna-has-this-token", "bob-has-another-token"


def token_file(folder: Path, text: str, mode: int = 0o600) -> Path:
    file = folder / "tokens"
    file.write_text(text)
    file.chmod(mode)
    return file


def subject(tokens: StaticTokens, token: str) -> str | None:
    found = anyio.run(tokens.verify_token, token)
    return found.subject if found else None


def test_each_line_of_a_token_file_names_a_principal_and_a_new_token_may_stand_next_to_the_old_one(
    tmp_path: Path,
) -> None:
    tokens = read_tokens(token_file(tmp_path, f"# people\nanna {ANNA}\n\nbob\t{BOB}\nanna {ANNA}-new\n"))
    assert [subject(tokens, token) for token in (ANNA, BOB, f"{ANNA}-new")] == ["anna", "bob", "anna"]
    assert [subject(tokens, token) for token in ("", "anna", f"anna {ANNA}", ANNA[:-1], "\udcff", "# people")] == [
        None
    ] * 6
    assert ANNA not in repr(vars(tokens)) + repr(anyio.run(tokens.verify_token, ANNA))


def test_a_token_alone_is_that_of_the_servers_own_principal(tmp_path: Path) -> None:
    assert subject(read_tokens(token_file(tmp_path, f"{ANNA}\n")), ANNA) == ""


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        (f"{ANNA}\n{BOB}\n", [1, 2]),
        (f"anna {ANNA}\nbob {BOB} friend\n", [2]),
        (f"anna {ANNA}\nb/b {BOB}\n", [2]),
        (f"{ANNA} short\n", [1]),
        (f"anna {ANNA}\nbob {ANNA}\n", [2]),
        (f"# none\nanna {ANNA}\nbob ü{BOB}\n", [3]),
    ],
)
def test_lines_that_cannot_be_used_are_named_and_no_word_of_them_is_shown(
    tmp_path: Path, text: str, lines: list[int]
) -> None:
    with pytest.raises(SpeckitError, match="E032") as caught:
        read_tokens(token_file(tmp_path, text))
    problems = caught.value.problems
    assert [problem.where and problem.where.line for problem in problems] == lines
    assert not any(word in str(caught.value) for word in (ANNA, BOB, "b/b"))


def test_an_empty_token_file_and_one_that_others_can_read_are_refused(tmp_path: Path) -> None:
    with pytest.raises(SpeckitError, match="E032"):
        read_tokens(token_file(tmp_path, "# nobody\n"))
    for mode in (0o604, 0o620, 0o644):
        with pytest.raises(SpeckitError, match=f"E037.*{mode:04o}"):
            read_tokens(token_file(tmp_path, f"anna {ANNA}\n", mode))
    assert subject(read_tokens(token_file(tmp_path, f"anna {ANNA}\n", 0o640)), ANNA) == "anna"


@pytest.fixture
def issuer() -> Iterator[LocalIssuer]:
    with local_issuer() as running:
        yield running


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def principals(issuer: LocalIssuer, *tokens: str, claim: str = "sub") -> list[str | None]:
    """The principal of each token, None for one that is refused."""

    async def verify() -> list[str | None]:
        verifier = JwtVerifier(IssuerKeys(issuer.url), AUDIENCE, claim)
        found = [await verifier.verify_token(token) for token in tokens]
        return [access.subject if access else None for access in found]

    return anyio.run(verify)


def test_tokens_of_the_issuer_are_accepted_by_each_algorithm_and_the_keys_are_read_once(issuer: LocalIssuer) -> None:
    tokens = [issuer.token(name, name) for name in PRIVATE_KEYS]
    assert principals(issuer, *tokens, issuer.token(aud=["https://else.example", AUDIENCE])) == [*PRIVATE_KEYS, "anna"]
    assert issuer.asked == ["/.well-known/oauth-authorization-server", "/.well-known/openid-configuration", "/keys"]


def test_another_claim_may_hold_the_principal(issuer: LocalIssuer) -> None:
    tokens = [issuer.token("x|1", email="anna@db.example"), issuer.token(), issuer.token(email="no principal")]
    assert principals(issuer, *tokens, claim="email") == ["anna@db.example", None, None]


def unsigned(header: dict[str, Any], token: str) -> str:
    """A token with another header and no signature."""
    head = base64.urlsafe_b64encode(json.dumps(header).encode()).rstrip(b"=").decode()
    return f"{head}.{token.split('.')[1]}."


@pytest.mark.parametrize(
    ("claims", "why"),
    [
        ({"aud": "https://memory.example"}, "of another resource"),
        ({"aud": None}, "of no resource"),
        ({"iss": "https://else.example"}, "of another issuer"),
        ({"iss": None}, "of no issuer"),
        ({"exp": 1_000_000_000}, "expired"),
        ({"exp": None}, "without an end"),
        ({"exp": "later"}, "with an end that is no time"),
        ({"nbf": 9_000_000_000}, "not valid yet"),
        ({"subject": None}, "of nobody"),
        ({"subject": ""}, "of the server's own principal"),
        ({"subject": "../anna"}, "of nobody who could have a store"),
        ({"kid": "ES256"}, "signed with another algorithm than its key"),
        ({"kid": None}, "without a key"),
        ({"kid": "unknown"}, "of an unknown key"),
        ({"key": rsa.generate_private_key(public_exponent=65537, key_size=2048)}, "of a wrong key"),
        ({"algorithm": "ES256", "key": ec.generate_private_key(ec.SECP256R1())}, "of a wrong key"),
    ],
)
def test_a_token_is_refused_that_is(issuer: LocalIssuer, claims: dict[str, Any], why: str) -> None:
    assert principals(issuer, issuer.token(**claims), issuer.token()) == [None, "anna"], why


def test_no_token_is_accepted_without_a_signature_or_with_a_shared_secret(issuer: LocalIssuer) -> None:
    good = issuer.token()
    # what everybody knows, as the secret of HMAC: the library refuses to sign with it, so it is done by hand
    public = (
        PRIVATE_KEYS["RS256"]
        .public_key()
        .public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    )
    signed = unsigned({"alg": "HS256", "kid": "RS256", "typ": "JWT"}, good)[:-1]
    mac = jwt.get_algorithm_by_name("HS256").sign(signed.encode(), public)
    forged = f"{signed}.{base64.urlsafe_b64encode(mac).rstrip(b'=').decode()}"
    issuer.keys.append({"kty": "oct", "kid": "secret", "k": base64.urlsafe_b64encode(b"s" * 32).decode()})
    shared = jwt.encode(jwt.decode(good, options={"verify_signature": False}), b"s" * 32, "HS256", {"kid": "secret"})
    none = [unsigned({"alg": name, "kid": "RS256"}, good) for name in ("none", "None", "", "RS256")]
    garbage = [
        "",
        ".",
        "..",
        "a.b.c",
        "é" * 40,
        "\udcff",
        good[:-4],
        good + "x" * LONGEST_TOKEN,
        good * 2,
        good.upper(),
    ]
    assert set(principals(issuer, forged, shared, *none, *garbage)) == {None}
    assert principals(issuer, good) == ["anna"]


def test_keys_are_read_again_for_an_unknown_key_once_a_minute_and_when_they_are_old(issuer: LocalIssuer) -> None:
    new = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    clock = Clock()

    async def course() -> None:
        verifier = JwtVerifier(IssuerKeys(issuer.url, clock), AUDIENCE, "sub")

        async def accepts(token: str, readings: int) -> bool:
            found = await verifier.verify_token(token)
            assert issuer.asked.count("/keys") == readings
            return found is not None

        assert await accepts(issuer.token(), 1)
        issuer.keys = [*issuer.keys, published("RS256", new, kid="new")]
        token = issuer.token(key=new, kid="new")
        clock.now = 59
        assert not await accepts(token, 1)
        clock.now = 60
        assert await accepts(token, 2)
        for number in range(20):
            assert not await accepts(issuer.token(kid=f"invented-{number}"), 2)
        issuer.keys = issuer.keys[-1:]  # the others are withdrawn
        clock.now = 660
        assert await accepts(issuer.token(), 2)
        clock.now = 661
        assert not await accepts(issuer.token(), 3)
        assert await accepts(token, 3)

    anyio.run(course)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"described": {"issuer": "https://else.example"}}, "names another issuer"),
        ({"described": {"jwks_uri": "http://else.example/keys"}}, "no address with https"),
        ({"described": {"jwks_uri": 7}}, "no address with https"),
        ({"described": {"padding": "x" * LONGEST_DOCUMENT}}, "sends more than"),
        ({"described": {"jwks_uri": "http://127.0.0.1:1/keys"}}, ""),
        ({"keys": "none"}, "no list of keys"),
        ({"url": "http://127.0.0.1:1"}, ""),
    ],
)
def test_an_issuer_that_cannot_be_asked_accepts_nobody_and_refuses_nobody(
    issuer: LocalIssuer, change: dict[str, Any], reason: str
) -> None:
    token, unfit = issuer.token(), issuer.token(algorithm="HS256", key="s" * 32)
    for name, value in change.items():
        setattr(issuer, name, value)
    for _ in range(2):  # the second call does not ask again, and fails alike
        with pytest.raises(AuthenticationError, match=f"E038.*{reason}"):
            principals(issuer, token)
    asked = len(issuer.asked)
    assert principals(issuer, unfit) == [None]  # which needs no key
    assert len(issuer.asked) == asked


def test_keys_that_were_read_are_used_while_the_issuer_does_not_answer(issuer: LocalIssuer) -> None:
    clock = Clock()

    async def course() -> None:
        verifier = JwtVerifier(IssuerKeys(issuer.url, clock), AUDIENCE, "sub")
        token, unknown = issuer.token(), issuer.token(kid="unknown")
        assert await verifier.verify_token(token)
        issuer.keys, clock.now = None, 100
        with pytest.raises(AuthenticationError):
            await verifier.verify_token(unknown)
        asked = len(issuer.asked)
        with pytest.raises(AuthenticationError):
            await verifier.verify_token(unknown)
        assert len(issuer.asked) == asked
        assert await verifier.verify_token(token)
        clock.now = 601
        with pytest.raises(AuthenticationError):
            await verifier.verify_token(token)

    anyio.run(course)


def test_keys_of_unknown_kinds_and_damaged_ones_are_passed_over(issuer: LocalIssuer) -> None:
    encryption = published("RS256", kid="enc", use="enc")
    issuer.keys = [7, {}, {"kty": "RSA", "kid": "n"}, {**published("ES256"), "x": 1}, encryption, *issuer.keys[:1]]
    assert principals(issuer, issuer.token(), issuer.token(kid="enc"), issuer.token(algorithm="ES256")) == [
        "anna",
        None,
        None,
    ]


def test_scopes_are_those_of_the_token_in_either_form(issuer: LocalIssuer) -> None:
    verifier = JwtVerifier(IssuerKeys(issuer.url), AUDIENCE, "sub")

    async def scopes() -> list[list[str] | None]:
        forms: list[dict[str, Any]] = [{}, {"scope": None, "scp": ["memory"]}, {"scope": None}]
        found = [await verifier.verify_token(issuer.token(**form)) for form in forms]
        return [access.scopes if access else None for access in found]

    assert anyio.run(scopes) == [["openid", "memory"], ["memory"], []]


def test_an_issuer_describes_itself_at_the_places_of_both_specifications() -> None:
    assert discovery_addresses("https://id.example/team/") == [
        "https://id.example/.well-known/oauth-authorization-server/team",
        "https://id.example/.well-known/openid-configuration/team",
        "https://id.example/team/.well-known/openid-configuration",
    ]


@pytest.mark.parametrize(
    ("options", "codes"),
    [
        (AccessOptions(issuer="https://id.example"), ["E031"]),
        (AccessOptions(audience=AUDIENCE), ["E031", "E031"]),
        (AccessOptions(issuer="http://id.example", audience=AUDIENCE), ["E030"]),
        (AccessOptions(issuer="https://id.example", audience="memory"), ["E030"]),
        (AccessOptions(), ["E031"]),
    ],
)
def test_addresses_that_cannot_be_trusted_or_are_missing_are_refused(options: AccessOptions, codes: list[str]) -> None:
    with pytest.raises(SpeckitError) as caught:
        options.check("0.0.0.0")
    assert [problem.code for problem in caught.value.problems] == codes


def test_an_issuer_is_enough_for_a_server_that_others_reach() -> None:
    AccessOptions(issuer="https://id.example/a", audience=AUDIENCE).check("0.0.0.0")
    AccessOptions(issuer="http://127.0.0.1:9/a", audience="http://localhost:1/mcp").check("0.0.0.0")
