"""Lines that no honest client would send, and clients that do not read."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from raw_server import INITIALIZE, PATIENCE, RawServer, call_of, full_pipe, raw_server
from tally import Tally

from tests.server.doors import COMMAND, environment

pytestmark = pytest.mark.usefixtures("processes")

MEGABYTE = 1 << 20
PING = {"jsonrpc": "2.0", "id": "well", "method": "ping"}


@pytest.fixture(scope="module", params=[(), ("--shared",)], ids=["alone", "shared"])
def served(request: pytest.FixtureRequest) -> tuple[str, ...]:
    """Options of `serve`: whether the client has the process of the server for itself."""
    options: tuple[str, ...] = request.param
    return options


@pytest.fixture(scope="module")
def server(unasked: Path, tmp_path_factory: pytest.TempPathFactory, served: tuple[str, ...]) -> Iterator[RawServer]:
    """One server for all tests of this module that leave it as it was."""
    root = Path(shutil.copytree(unasked, tmp_path_factory.mktemp("attacked") / "workspace"))
    with raw_server(root, "--no-warm-up", *served, spawned=bool(served)) as running:
        running.start()
        yield running
        assert running.close() == 0


def request(request_id: str, method: str = '"ping"') -> bytes:
    return f'{{"jsonrpc":"2.0","id":{request_id},"method":{method}}}\n'.encode()


NO_MESSAGES = {
    "no JSON": b"hello\n",
    "half an object": b'{"jsonrpc":"2.0","id":1,\n',
    "not UTF-8": b"\xff\xfe\xfa\n",
    "NUL bytes": b"\0" * 1000 + b"\n",
    "a NUL before a message": b"\0" + request("1"),
    "a number": b"1\n",
    "null": b"null\n",
    "a text": b'"ping"\n',
    "a batch": b"[" + request("1").strip() + b"," + request("2").strip() + b"]\n",
    "an empty batch": b"[]\n",
    "an empty object": b"{}\n",
    "nesting": b"[" * 100_000 + b"\n",
    "closed nesting": b'{"jsonrpc":"2.0","id":1,"method":"ping","params":{"a":'
    + b"[" * 100_000
    + b"]" * 100_000
    + b"}}\n",
    "objects in objects": b'{"a":' * 100_000 + b"1" + b"}" * 100_000 + b"\n",
    "an id that is null": request("null"),
    "an id that is a fraction": request("1.5"),
    "an id that is true": request("true"),
    "an id that is an object": request("{}"),
    "an id that is a list": request("[1]"),
    "an id of 5,000 digits": request("9" * 5000),
    "an id of 300 digits": request("9" * 300),
    "an id of a megabyte": request('"' + "a" * MEGABYTE + '"'),
    "an infinite id": request("1e999"),
    "params that are a list": b'{"jsonrpc":"2.0","method":"ping","params":[1]}\n',
    "another version": b'{"jsonrpc":"1.0","method":"ping"}\n',
}


@pytest.mark.parametrize("kind", NO_MESSAGES)
def test_what_is_no_message_is_refused_and_the_next_one_is_answered(server: RawServer, tally: Tally, kind: str) -> None:
    line = NO_MESSAGES[kind]
    server.send(line, PING)
    refused = server.next()
    assert refused["error"]["code"] in (-32700, -32600)
    assert len(json.dumps(refused)) < 1000
    assert server.next() == {"jsonrpc": "2.0", "id": "well", "result": {}}
    tally.tried()


UNSERVED: dict[object, bytes] = {
    41: b'{"jsonrpc":"2.0","id":41,"method":5}\n',
    42: b'{"jsonrpc":"2.0","id":42}\n',
    "a": b'{"jsonrpc":"1.0","id":"a","method":"ping"}\n',
    43: b'{"jsonrpc":"2.0","id":43,"method":"ping","params":{"a":' + b"[" * 300 + b"]" * 300 + b"}}\n",
    44: request("44", '"no/such/method"'),
    45: request("45", '"' + "m" * MEGABYTE + '"'),
    46: b'{"jsonrpc":"2.0","id":46,"method":"prompts/get","params":{"name":"' + b"p" * MEGABYTE + b'"}}\n',
    47: b'{"jsonrpc":"2.0","id":47,"method":"resources/read","params":{"uri":"a:' + b"r" * MEGABYTE + b'"}}\n',
    48: b'{"jsonrpc":"2.0","id":48,"method":"completion/complete","params":{}}\n',
    49: b'{"jsonrpc":"2.0","id":49,"method":"logging/setLevel","params":{"level":"' + b"l" * MEGABYTE + b'"}}\n',
    50: b'{"jsonrpc":"2.0","id":50,"method":"tools/call","params":{"name":7}}\n',
}


@pytest.mark.parametrize("request_id", UNSERVED)
def test_a_request_that_cannot_be_served_is_refused_by_its_id(
    server: RawServer, tally: Tally, request_id: object
) -> None:
    server.send(UNSERVED[request_id], PING)
    # answers may overtake one another
    answers = {message["id"]: message for message in (server.next(), server.next())}
    assert "error" in answers[request_id]
    assert len(json.dumps(answers[request_id])) < 5000
    assert answers["well"]["result"] == {}
    tally.tried()


@pytest.mark.parametrize(
    "line",
    [
        request("61"),
        b'\xef\xbb\xbf{"jsonrpc":"2.0","id":61,"method":"ping"}\r\n',
        b'  {"id":1,"jsonrpc":"2.0","id":61,"method":"no","method":"ping"}  \n',
        b'{"jsonrpc":"2.0","id":61,"method":"ping","params":{"_meta":{"note":"half a pair: \\ud83d"}}}\n',
        b'{"jsonrpc":"2.0","id":61,"method":"ping","params":{"_meta":{"note":"\xff\xfe"}}}\n',
        b'{"jsonrpc":"2.0","id":61,"method":"ping","params":{"_meta":{"note":NaN}}}\n',
        b"\n\n \n\r\n" + request("61"),
        b'{"jsonrpc":"2.0","id":61,"method":"ping","more":{"a":[1e999,-1e999]}}\n',
    ],
)
def test_an_odd_line_that_is_a_message_is_answered(server: RawServer, tally: Tally, line: bytes) -> None:
    server.send(line)
    assert server.next() == {"jsonrpc": "2.0", "id": 61, "result": {}}
    tally.tried()


def test_a_query_with_half_a_character_pair_is_searched_for(server: RawServer, tally: Tally) -> None:
    line = json.dumps(call_of(71, "memory_search", {"query": "computeMPAB \ud83d", "limit": 1})).encode()
    assert b"\\ud83d" in line
    server.send(line + b"\n")
    [row] = server.answer(71)["result"]["structuredContent"]["data"]["results"]
    assert row["key"] == "docs/storage/wal.md"
    tally.tried()


@pytest.mark.parametrize(
    ("begin", "end", "request_id"),
    [
        (b'{"jsonrpc":"2.0","id":81,"method":"ping","params":{"a":"', b"", 81),
        (b'{"id":"of text","method":"ping","params":{"a":"', b'"}}\n', "of text"),
        (b'{"method":"ping","params":{"a":"', b'"},"jsonrpc":"2.0","id":82}\n', 82),
        (b'{"method":"ping","params":{"id":83,"a":"', b'"}}\n', None),
        (b"", b"\n", None),
    ],
)
def test_a_line_of_a_hundred_megabytes_is_refused_and_not_kept(
    indexed: Path, tally: Tally, served: tuple[str, ...], begin: bytes, end: bytes, request_id: object
) -> None:
    with raw_server(indexed, "--no-warm-up", *served, spawned=True) as running:
        running.start()
        running.send(begin)
        for _ in range(100):
            running.send(b"a" * MEGABYTE)
        running.send(end)
        refused = running.next()
        assert (refused["id"], refused["error"]["code"]) == (request_id, -32600)
        assert memory_kb(running.process.pid) < 400_000
        if end:
            running.send(PING)
            assert running.next()["id"] == "well"
        assert running.close() == 0
    tally.tried(100)


def memory_kb(process: int) -> int:
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmHWM")]
    return int(line.split()[1])


def test_ten_thousand_requests_are_answered_after_all_were_sent(
    indexed: Path, tally: Tally, served: tuple[str, ...]
) -> None:
    with raw_server(indexed, "--no-warm-up", *served, listen=False, spawned=True) as running:
        running.send(*(PING | {"id": number, "method": "tools/list"} for number in range(1, 10_001)))
        running.listen()
        answered = [running.next() for _ in range(10_000)]
        assert sorted(message["id"] for message in answered) == list(range(1, 10_001))
        assert memory_kb(running.process.pid) < 400_000
        running.start()
        assert running.close() == 0
    tally.tried(10_000)


def ended_by(running: RawServer, way: str) -> int:
    if way == "EOF":
        return running.close()
    running.process.send_signal(signal.SIGTERM)
    return running.process.wait(PATIENCE)


@pytest.mark.parametrize("way", ["EOF", "SIGTERM"])
def test_a_client_that_never_reads_its_answers_can_end_the_server(
    indexed: Path, tally: Tally, served: tuple[str, ...], way: str
) -> None:
    with raw_server(indexed, "--no-warm-up", *served, listen=False, spawned=True) as running:
        running.send(INITIALIZE, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        assert running.process.stdout is not None
        assert running.process.stdout.readline()  # it serves; nothing is read from here on
        running.send(*(call_of(number, "memory_search", {"query": "fusion"}) for number in range(1, 301)))
        assert ended_by(running, way) == (0 if way == "EOF" else 128 + signal.SIGTERM)
    tally.tried(300)


@pytest.mark.parametrize("way", ["EOF", "SIGTERM"])
def test_a_client_that_never_reads_the_log_is_served_and_can_end_the_server(
    indexed: Path, tally: Tally, served: tuple[str, ...], way: str
) -> None:
    reading, writing = full_pipe()
    with raw_server(indexed, *served, stderr=writing, spawned=True) as running:
        running.start()
        for number in range(1, 1001):
            running.call(number, "no_such_tool") if number % 2 else running.call(number, "memory_list", {"limit": 0})
        tally.tried(1000)
        assert ended_by(running, way) == (0 if way == "EOF" else 128 + signal.SIGTERM)
    os.close(reading)
    os.close(writing)
    tally.survived()


def test_lines_that_were_lost_are_told_as_soon_as_somebody_reads(
    indexed: Path, tally: Tally, served: tuple[str, ...]
) -> None:
    with raw_server(
        indexed, "--no-warm-up", *served, stderr=subprocess.PIPE, env={"SPECKIT_LOG_CONTENT": "1"}, spawned=True
    ) as running:
        running.start()
        for number in range(1, 201):
            running.call(number, "memory_list", {"limit": 0, "specFolder": "x" * 20_000})
        [check] = [
            check
            for check in running.call(1001, "memory_health")["structuredContent"]["data"]["checks"]
            if check["name"] == "log"
        ]
        assert check["ok"]
        assert "lines of the log were lost" in check["detail"]
        lines = iter(running.process.stderr or ())
        for line in lines:
            running.send(call_of(2000, "memory_list", {"limit": 0}))
            if json.loads(line)["event"] == "log lines lost":
                assert json.loads(line)["lines"] > 0
                break
        else:
            pytest.fail("nobody told that lines were lost")
    tally.tried(200)


@pytest.mark.parametrize("stderr", ["closed", "/dev/full", "a pipe without a reader"])
def test_a_log_that_cannot_be_written_costs_no_answer(
    indexed: Path, tally: Tally, served: tuple[str, ...], stderr: str
) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    full = os.open("/dev/full", os.O_WRONLY)
    target = {"closed": subprocess.DEVNULL, "/dev/full": full, "a pipe without a reader": writing}[stderr]
    closing = (lambda: os.close(2)) if stderr == "closed" else None
    with raw_server(indexed, *served, stderr=target, preexec_fn=closing, spawned=True) as running:
        running.start()
        for number in range(1, 6):
            assert running.call(number, "memory_search", {"query": "fusion"})["structuredContent"]["data"]["count"]
        assert running.close() == 0
    os.close(writing)
    os.close(full)
    tally.tried(5)


@pytest.mark.parametrize(("stdout", "status"), [("a pipe without a reader", 141), ("/dev/full", 1), ("closed", 0)])
def test_a_server_that_nobody_can_hear_ends(
    indexed: Path, tally: Tally, served: tuple[str, ...], stdout: str, status: int
) -> None:
    shell = {"a pipe without a reader": "", "/dev/full": ">/dev/full", "closed": ">&-"}[stdout]
    reading, writing = os.pipe()
    os.close(reading)
    with subprocess.Popen(
        ["sh", "-c", f'exec "$0" serve {" ".join(served)} {shell}', COMMAND],
        stdin=subprocess.PIPE, stdout=writing, stderr=subprocess.PIPE, env=environment(indexed), cwd=indexed,
    ) as process:  # fmt: skip
        os.close(writing)
        _, err = process.communicate(json.dumps(INITIALIZE).encode() + b"\n", timeout=PATIENCE)
        assert process.returncode == status
        assert b"Traceback" not in err
    tally.survived()
