"""Connections that begin and do not go on, and headers that only look like ours; after each a good client is served."""

from __future__ import annotations

import json
import resource
import signal
import socket
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from raw_server import PATIENCE
from tally import Tally

from speckit_memory.server.transport import http_protocol
from tests.server.doors import COMMAND, environment

pytestmark = pytest.mark.usefixtures("processes")

TOKEN = "a-token-long-enough-for-a-test"
BODY = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping"}).encode()
QUICK = """
import sys
from speckit_memory.server.transport import http_protocol
http_protocol.REQUEST_SECONDS = http_protocol.WRITE_SECONDS = 0.5
from speckit_memory.server.entry import main
sys.argv[0] = "speckit-memory"
main()
"""


@contextmanager
def serving(root: Path, *arguments: str) -> Iterator[int]:
    """The port of a server that gives connections half a second instead of ten."""
    with begun([COMMAND.parent / "python", "-c", QUICK], root, *arguments) as (port, _):
        yield port


@contextmanager
def begun(command: list[str | Path], root: Path, *arguments: str) -> Iterator[tuple[int, Path]]:
    """The port of a server, and where the kernel tells of its process."""
    served = ["serve", "--transport", "http", "--port", "0", "--no-warm-up"]
    with subprocess.Popen(
        [*command, *served, *arguments], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
        env=environment(root), cwd=COMMAND.parents[2],
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            url = json.loads(process.stderr.readline())["url"]
            yield int(url.rsplit(":", 1)[1].split("/")[0]), Path("/proc", str(process.pid))
        finally:
            process.send_signal(signal.SIGTERM)
            _, err = process.communicate(timeout=PATIENCE)
        assert process.returncode == 128 + signal.SIGTERM
        assert b"Traceback" not in err
        assert TOKEN.encode() not in err


@pytest.fixture(scope="module")
def port(indexed: Path) -> Iterator[int]:
    with serving(indexed) as running:
        yield running


@pytest.fixture(scope="module")
def guarded(indexed: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """A server that asks for a token."""
    file = tmp_path_factory.mktemp("token") / "token"
    file.write_text(TOKEN)
    file.chmod(0o600)
    with serving(indexed, "--token-file", str(file)) as running:
        yield running


def connect(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=PATIENCE)


def post(*headers: str, host: str | None = "localhost", body: bytes = BODY, path: str = "/mcp") -> bytes:
    lines = [
        f"POST {path} HTTP/1.1",
        *([] if host is None else [f"Host: {host}"]),
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        *headers,
    ]
    if not any(header.lower().startswith(("content-length", "transfer-encoding")) for header in headers):
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


def status(port: int, request: bytes) -> int:
    """The status of the answer; 0 when the connection just ends."""
    with connect(port) as connection:
        try:
            connection.sendall(request)
            first = connection.makefile("rb").readline()
        except ConnectionError:
            return 0
    return int(first.split()[1]) if first else 0


def well(port: int, *headers: str) -> bool:
    """Whether a good client still gets to the protocol: a ping before the handshake lacks a session, no more."""
    return status(port, post(*headers, f"Host: 127.0.0.1:{port}", host=None)) in (200, 400)


OURS = ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:65535", "[::1]", "[::1]:8765"]
FOREIGN = [
    "localhost:80.evil.example", "localhost:80@evil.example", "localhost@evil.example", "localhost.evil.example",
    "evil.example", "evil.example:80", "localhost.", "localhost.:80", "localhost:", "localhost:99999", "localhost:-1",
    "localhost:0x50", "localhost:80:80", "localhost%2e", "localhost%00.evil.example", "localhost/", "localhost\\@evil",
    "127.0.0.1.evil.example", "127.0.0.1:80.evil.example", "2130706433", "0x7f000001", "127.1", "0177.0.0.1", "[::1",
    "::1", "[::1].evil.example", "[::1%25lo]", "[::ffff:127.0.0.1]", "xn--lcalhost-54a", "l\xf6calhost",
    "user:pw@localhost", "localhost, evil.example", "localhost evil", "*", "null", "a" * 10_000, "0.0.0.0",
]  # fmt: skip


@pytest.mark.parametrize("name", OURS)
def test_our_own_names_are_served_as_host_and_origin(port: int, tally: Tally, name: str) -> None:
    assert status(port, post(host=name)) in (200, 400)
    for scheme in ("http", "https", "HTTP"):
        assert status(port, post(f"Origin: {scheme}://{name}")) in (200, 400)
    tally.tried(4)


@pytest.mark.parametrize("name", FOREIGN, ids=lambda name: ascii(name)[1:40])
def test_names_that_only_look_like_ours_are_refused(port: int, tally: Tally, name: str) -> None:
    assert status(port, post(host=name)) in (421, 400)
    for origin in (f"http://{name}", f"https://{name}", name):
        assert status(port, post(f"Origin: {origin}")) in (403, 400)
    assert well(port)
    tally.tried(4)


@pytest.mark.parametrize("method", [b"POST", b"GET", b"DELETE", b"OPTIONS", b"HEAD"])
def test_foreign_names_are_refused_wherever_they_ask_and_with_a_token_too(
    port: int, guarded: int, tally: Tally, method: bytes
) -> None:
    for path in ("/", "/mcp", "/mcp/", "/health", "/.well-known/oauth-protected-resource", "/no/such"):
        for at, more in ((port, ()), (guarded, ()), (guarded, (f"Authorization: Bearer {TOKEN}",))):
            foreign_host = post(*more, host="evil.example", path=path).replace(b"POST", method, 1)
            foreign_origin = post(*more, "Origin: http://evil.example", path=path).replace(b"POST", method, 1)
            assert (status(at, foreign_host), status(at, foreign_origin)) == (421, 403), (path, more)
            tally.tried(2)
    assert status(guarded, post().replace(b"POST", method, 1)) in (401, 405)


@pytest.mark.parametrize(
    "origin",
    ["null", "file://", "http://", "http:/localhost", "http:localhost", "//localhost", "ftp://localhost", "http://localhost/",
     "http://localhost/evil", "http://localhost?x", "http://localhost#x", "https://evil.example/http://localhost", " http://x",
     "chrome-extension://localhost", "http://localhost http://evil.example", "http://http://localhost", "javascript://localhost"],
)  # fmt: skip
def test_origins_that_are_no_web_address_of_ours_are_refused(port: int, tally: Tally, origin: str) -> None:
    assert status(port, post(f"Origin: {origin}")) == 403
    preflight = post(f"Origin: {origin}", "Access-Control-Request-Method: POST").replace(b"POST", b"OPTIONS", 1)
    assert status(port, preflight) == 403
    tally.tried(2)


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        (post("Host: evil.example"), {400, 421}),
        (post("Origin: http://localhost", "Origin: http://evil.example"), {403}),
        (post("Origin: http://localhost", "Origin: http://localhost"), {403}),
        (post(host=None), {400, 421}),
        (post(host=""), {400, 421}),
        (post(f"Content-Length: {len(BODY)}", "Transfer-Encoding: chunked", body=b"0\r\n\r\n"), {400}),
        (post("Content-Length: 5", "Content-Length: 6"), {400}),
        (post("Content-Length: -1"), {400}),
        (post("Content-Length: 1e3"), {400}),
        (post("Content-Length: 99999999999999999999"), {400, 413}),
        (post("Transfer-Encoding: gzip, chunked", body=b"0\r\n\r\n"), {400, 501}),
        (post("Transfer-Encoding: chunked", body=b"zz\r\n"), {0, 400}),
        (post("Content-Length: 5000000", body=b""), {413}),
        (post("X-Huge: " + "h" * 100_000), {400, 431}),
        (post(*(f"X-{number}: {number}" for number in range(10_000))), {400, 431}),
        (post("X-Fold: a\r\n b"), {200, 400}),
        (post("X-Nul: \x00"), {400}),
        (post(path="/" + "p" * 100_000), {400, 404, 414}),
        (post(path="/mcp/../mcp"), {404}),
        (post(path="/%2e%2e/etc/passwd"), {404}),
        (post(path="http://evil.example/mcp"), {400, 404}),
        (post().replace(b"POST", b"BREW", 1), {405}),
        (post().replace(b"POST", b"TRACE", 1), {405}),
        (post().replace(b"POST", b"CONNECT", 1), {400, 405}),
        (post().replace(b"HTTP/1.1", b"HTTP/9.9", 1), {400}),
        (post("Mcp-Session-Id: " + "0" * 32), {404}),
        (post("Mcp-Session-Id: ../../x"), {400, 404}),
        (post("Mcp-Session-Id: "), {200, 400, 404}),
        (post("Upgrade: websocket", "Connection: Upgrade"), {200, 400}),
        (post(body=b"\xff" * 100), {400}),
        (post(body=b"[" * 100_000), {400}),
        (post(body=b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":"\\ud800"}}'), {400}),
        (b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 200 + b"\r\n\r\n", {0, 400}),
        (b"\r\n" * 50_000, {0, 400}),
        (b"GET / HTTP/0.9\r\n\r\n", {400, 421}),
    ],
    ids=range(35),
)
def test_requests_that_are_none_are_refused(port: int, tally: Tally, request_: bytes, expected: set[int]) -> None:
    assert status(port, request_) in expected
    assert well(port)
    tally.tried()


HALF = {
    "nothing": b"",
    "half a first line": b"POST /m",
    "half the headers": b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nX: ",
    "no body": post(body=b"").replace(b"Content-Length: 0", b"Content-Length: 100"),
    "half a body": post("Content-Length: 100", body=b"{"),
    "half a chunk": post("Transfer-Encoding: chunked", body=b"10\r\n{"),
}


@pytest.mark.parametrize("half", HALF)
def test_what_does_not_go_on_is_ended_by_the_server(port: int, tally: Tally, half: str) -> None:
    with connect(port) as connection:
        connection.sendall(HALF[half])
        answer = connection.makefile("rb").read()  # returns when the server has ended the connection
        assert answer.startswith(b"HTTP/1.1 408 ") or not answer
    assert well(port)
    tally.survived()


def test_drops_that_keep_coming_do_not_buy_time(port: int, tally: Tally) -> None:
    with connect(port) as connection:
        connection.sendall(b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n")
        connection.settimeout(0.05)
        ended = False
        for number in range(2000):
            try:
                connection.sendall(b"X-%d: a\r\n" % number)
                ended = b" 408 " in connection.recv(100)
            except TimeoutError:
                continue
            except ConnectionError:
                ended = True
            if ended:
                break
        assert ended
    tally.survived()


def test_a_thousand_silent_connections_keep_no_good_client_out(indexed: Path, tally: Tally) -> None:
    room = resource.getrlimit(resource.RLIMIT_NOFILE)
    with ExitStack() as opened, begun([COMMAND], indexed) as (port, process):
        resource.setrlimit(resource.RLIMIT_NOFILE, (max(room[0], 2048), room[1]))
        opened.callback(resource.setrlimit, resource.RLIMIT_NOFILE, room)
        silent = [opened.enter_context(connect(port)) for _ in range(1000)]
        for connection in silent[::2]:
            try:
                connection.sendall(b"POST /mcp HTTP/1.1\r\n")
            except ConnectionError:
                continue
        for _ in range(5):
            assert well(port)
        # those that wait to be ended, of one turn of the loop, and those that are open
        assert len(list((process / "fd").iterdir())) < 2 * http_protocol.MOST_CONNECTIONS + 50
        tally.survived(1000)


def test_what_is_sent_at_once_is_not_all_held_at_once(indexed: Path, tally: Tally) -> None:
    begins = post(f"Content-Length: {4 << 20}", body=b"a" * (3 << 20))
    with begun([COMMAND], indexed) as (port, process), ExitStack() as opened:
        assert well(port)
        before = resident_mb(process)
        for _ in range(120):
            connection = opened.enter_context(connect(port))
            connection.settimeout(0.2)
            with suppress(TimeoutError):
                connection.sendall(begins)
        assert well(port)
        assert resident_mb(process) - before < 180  # of 360 that were sent
        tally.survived(120)


def resident_mb(process: Path) -> float:
    """The memory that a process has now."""
    return int((process / "status").read_text().partition("VmRSS:")[2].split()[0]) / 1024


def test_a_token_is_compared_whole_and_never_told(guarded: int, tally: Tally) -> None:
    wrong = ["", "Bearer", "Bearer ", f"Bearer {TOKEN}x", f"Bearer {TOKEN[:-1]}", f"Basic {TOKEN}", TOKEN,
             f"Bearer {TOKEN} x", f"Bearer {TOKEN.upper()}", "Bearer \xff\xfe", "Bearer " + "a" * 20_000]  # fmt: skip
    for value in wrong:
        assert status(guarded, post(f"Authorization: {value}")) in (400, 401), value
        tally.tried()
    assert status(guarded, post(f"Authorization: Bearer {TOKEN}", "Authorization: Bearer x")) == 400
    assert status(guarded, post(f"Authorization: Bearer {TOKEN}", host="evil.example")) == 421
    assert well(guarded, f"Authorization: Bearer {TOKEN}")


def test_an_answer_that_nobody_reads_is_given_up(port: int, tally: Tally) -> None:
    listing = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "tools/list"}).encode()
    with connect(port) as connection:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        connection.setblocking(False)
        wanted = post(body=listing) * 200
        try:
            while wanted:
                wanted = wanted[connection.send(wanted) :]
        except (BlockingIOError, ConnectionError):
            pass
        for _ in range(20):
            assert well(port)
        tally.survived()
