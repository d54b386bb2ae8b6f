"""An OAuth 2.1 issuer on the loopback address, with keys made for the test."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

AUDIENCE = "https://memory.example/mcp"
PRIVATE_KEYS: dict[str, Any] = {
    "RS256": rsa.generate_private_key(public_exponent=65537, key_size=2048),
    "ES256": ec.generate_private_key(ec.SECP256R1()),
    "EdDSA": ed25519.Ed25519PrivateKey.generate(),
}


def published(algorithm: str, key: Any = None, **more: str) -> dict[str, Any]:
    """The public key of an algorithm as issuers publish it; its id is the algorithm unless `more` has another."""
    public = (key or PRIVATE_KEYS[algorithm]).public_key()
    described = jwt.get_algorithm_by_name(algorithm).to_jwk(public, as_dict=True)
    return {**described, "kid": algorithm, "alg": algorithm, "use": "sig", **more}


class LocalIssuer:
    """What the issuer sends, which a test may change, and how often it was asked."""

    def __init__(self) -> None:
        self.url = ""
        self.keys: Any = [published(algorithm) for algorithm in PRIVATE_KEYS]
        self.described: dict[str, Any] = {}
        """Entries of the discovery document in place of the true ones."""
        self.asked: list[str] = []

    def answer(self, path: str) -> bytes | None:
        """The document at a path, None if there is none."""
        self.asked.append(path)
        if path == "/.well-known/openid-configuration":
            return json.dumps({"issuer": self.url, "jwks_uri": f"{self.url}/keys", **self.described}).encode()
        return json.dumps({"keys": self.keys}).encode() if path == "/keys" else None

    def token(self, subject: str | None = "anna", algorithm: str = "RS256", key: Any = None, **claims: Any) -> str:
        """A token for a subject; `claims` are added, and None takes one away. `kid` is the id of the key."""
        key_id = claims.pop("kid", algorithm)
        usual = {"iss": self.url, "aud": AUDIENCE, "sub": subject, "exp": time.time() + 600, "scope": "openid memory"}
        given = {name: value for name, value in {**usual, **claims}.items() if value is not None}
        return jwt.encode(given, key or PRIVATE_KEYS[algorithm], algorithm, headers=key_id and {"kid": key_id})


@contextmanager
def local_issuer() -> Iterator[LocalIssuer]:
    """An issuer that answers until the end of the block."""
    issuer = LocalIssuer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            document = issuer.answer(self.path)
            self.send_response(404 if document is None else 200)
            self.send_header("Content-Length", str(len(document or b"")))
            self.end_headers()
            self.wfile.write(document or b"")

        def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 -- the name of the library
            """Prints nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        issuer.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield issuer
        finally:
            server.shutdown()
            thread.join()
