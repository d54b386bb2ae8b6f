"""A service on this machine that speaks as OpenAI's embedding interface does, well or badly, as a test says."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from hashlib import sha256
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

DIMENSIONS = 8

Answer = tuple[int, dict[str, str], bytes]
Behaviour = Callable[["Service", dict[str, Any]], Answer | None]
"""What is answered to a request; None drops the connection."""


def vector(text: str, dimensions: int = DIMENSIONS) -> list[float]:
    """The vector that the service gives to a text: equal for equal texts, near for texts that share words."""
    row = [0.001] * dimensions
    for word in text.lower().split():
        row[sha256(word.encode()).digest()[0] % dimensions] += 1.0
    return row


def well(service: Service, body: dict[str, Any], dimensions: int = DIMENSIONS) -> Answer:
    """The answer as it should be, its vectors in reverse order, as the interface allows."""
    del service
    size = body.get("dimensions") or body.get("output_dimension") or dimensions
    data = [{"index": at, "embedding": vector(text, size)} for at, text in enumerate(body["input"])]
    return 200, {}, json.dumps({"object": "list", "data": data[::-1], "model": body["model"]}).encode()


class Service:
    """What was asked, and what is answered: the behaviours in turn, then `well`."""

    def __init__(self) -> None:
        self.url = ""
        self.requests: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.behaviours: list[Behaviour] = []
        self.always: Behaviour = well
        self._guard = threading.Lock()

    @property
    def environ(self) -> dict[str, str]:
        """What has the product ask this service."""
        named = {"": "openai:tiny", "_URL": self.url, "_KEY": "a-key"}
        return {f"SPECKIT_EMBEDDER{name}": value for name, value in named.items()}

    @property
    def texts(self) -> list[str]:
        """Every text that was sent, in order."""
        return [text for request in self.requests for text in request["input"]]

    def answer(self, headers: dict[str, str], body: dict[str, Any]) -> Answer | None:
        """The next answer."""
        with self._guard:
            self.requests.append(body)
            self.headers.append(headers)
            behave = self.behaviours.pop(0) if self.behaviours else self.always
        return behave(self, body)


@contextmanager
def running() -> Iterator[Service]:
    """A service on a free port, for as long as the context lasts."""
    service = Service()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = service.answer({key.lower(): value for key, value in self.headers.items()}, body)
            if found is None:
                self.close_connection = True
                return
            status, headers, content = found
            try:
                self.send_response(status)
                for name, value in {"Content-Length": str(len(content)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                if "x-drip" in headers:  # a byte at a time, so that no single read times out
                    for byte in content:
                        self.wfile.write(bytes([byte]))
                        self.wfile.flush()
                        time.sleep(0.02)
                else:
                    self.wfile.write(content)
            except OSError:
                pass  # the client has given up, as it should

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    service.url = f"http://127.0.0.1:{server.server_address[1]}/v1"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield service
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
