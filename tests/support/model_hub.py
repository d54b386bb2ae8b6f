"""A repository of models on this machine, shaped like the one that fastembed's models lie in, with one tiny model."""

from __future__ import annotations

import hashlib
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urlsplit

from tiny_encoder import UNKNOWN, write_encoder

MODEL = "BAAI/bge-small-en-v1.5"
REPOSITORY = "Qdrant/bge-small-en-v1.5-onnx-Q"
REVISION = "52398278842ec682c6f32300af41344b1c0b0bb2"
LARGE = ".onnx"
"""Files of this ending are told by their SHA-256, the others by the digest of git."""
TABLE = {
    UNKNOWN: [0.1, 0.1, 0.1, 0.1],
    "[PAD]": [0.0, 0.0, 0.0, 0.1],
    "rank": [1.0, 0.0, 0.0, 0.0],
    "ranks": [1.0, 0.1, 0.0, 0.0],
    "write": [0.0, 1.0, 0.0, 0.0],
    "backup": [0.0, 0.0, 1.0, 0.0],
    "copy": [0.0, 0.0, 1.0, 0.1],
}


class Hub:
    """What lies there, by name, and what was asked for."""

    def __init__(self, files: dict[str, bytes]) -> None:
        self.url = ""
        self.files = files
        self.served = dict(files)
        """What is sent for a name: a test puts something else here."""
        self.asked: list[str] = []

    def facts(self) -> bytes:
        """What the repository tells of its files."""
        siblings = []
        for name, content in self.files.items():
            git = hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()
            one = {"rfilename": name, "size": len(content), "blobId": git}
            if name.endswith(LARGE):
                one["lfs"] = {"sha256": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
            siblings.append(one)
        return json.dumps({"id": REPOSITORY, "sha": REVISION, "siblings": siblings}).encode()


@contextmanager
def running(folder: Path) -> Iterator[Hub]:
    """A repository on a free port, for as long as the context lasts."""
    made = write_encoder(
        folder / "hub-model", TABLE,
        place="model_optimized.onnx",
        config={"pad_token_id": 1},
        tokenizer_config={"model_max_length": 64, "pad_token": "[PAD]"},
        special_tokens_map={"pad_token": "[PAD]", "unk_token": UNKNOWN},
    )  # fmt: skip
    hub = Hub({path.name: path.read_bytes() for path in sorted(made.iterdir()) if path.is_file()})
    shutil.rmtree(made)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = unquote(urlsplit(self.path).path)
            hub.asked.append(path)
            name = path.rpartition(f"/resolve/{REVISION}/")[2]
            if path == f"/api/models/{REPOSITORY}":
                self._send(200, hub.facts())
            elif path.startswith(f"/{REPOSITORY}/resolve/") and name in hub.served:
                self._send(200, hub.served[name])
            else:
                self._send(404, b"{}")

        def _send(self, status: int, content: bytes) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    hub.url = f"http://127.0.0.1:{server.server_address[1]}"
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
