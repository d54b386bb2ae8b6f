from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from threading import Thread
from typing import Any

import anyio
import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from speckit_memory.server.transport.http import listen
from tests.server.doors import call, environment, server_command

pytestmark = pytest.mark.usefixtures("processes")

TOKEN = "a-token-long-enough-for-a-test"
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
HEADERS = {"Accept": "application/json, text/event-stream"}


@contextmanager
def serving(root: Path, *arguments: str) -> Iterator[str]:
    """The URL of a server over HTTP that runs until the end of the block, and then ends by SIGTERM."""
    environ = environment(root)
    with subprocess.Popen(
        server_command(environ, "--transport", "http", "--port", "0", *arguments),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=environ,
        cwd=root,
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        started = json.loads(process.stderr.readline())
        assert started["event"] == "listening"
        try:
            yield str(started["url"])
        finally:
            os.kill(process.pid, signal.SIGTERM)
            out, err = process.communicate()
        assert (process.returncode, out) == (143, b"")
        *lines, last = [json.loads(line) for line in err.splitlines()]
        assert last["event"] == "stopped"
        assert all("query_id" in line for line in lines if line["event"] in ("search", "tool"))


def search(url: str, headers: dict[str, str] | None = None) -> Any:
    async def session() -> Any:
        async with (
            httpx2.AsyncClient(headers=headers, timeout=60) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return (await client.call_tool("memory_search", {"query": "computeMPAB", "limit": 1})).structured_content

    return anyio.run(session)


def test_a_client_over_http_gets_the_same_answers(indexed: Path) -> None:
    with serving(indexed) as url:
        assert url.startswith("http://127.0.0.1:")
        assert search(url)["data"]["results"][0]["key"] == "docs/storage/wal.md"


def test_the_end_of_an_answer_does_not_wait_until_its_beginning_is_acknowledged() -> None:
    with listen("127.0.0.1", 0) as listener, socket.create_connection(listener.getsockname()):
        accepted, _ = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_requests_of_web_pages_are_refused(indexed: Path) -> None:
    with serving(indexed) as url:
        evil_host = httpx2.post(url, json=PING, headers={**HEADERS, "Host": "evil.example"})
        evil_origin = httpx2.post(url, json=PING, headers={**HEADERS, "Origin": "http://evil.example"})
        assert (evil_host.status_code, evil_origin.status_code) == (421, 403)


def test_a_token_is_asked_for_and_accepted(indexed: Path, tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN + "\n")
    file.chmod(0o600)
    with serving(indexed, "--token-file", str(file), "--host", "0.0.0.0", "--allow-host", "memory.example") as shown:
        url = shown.replace("0.0.0.0", "127.0.0.1")
        assert httpx2.post(url, json=PING, headers=HEADERS).status_code == 401
        wrong = {**HEADERS, "Authorization": f"Bearer {TOKEN}x"}
        assert httpx2.post(url, json=PING, headers=wrong).status_code == 401
        right = {"Authorization": f"Bearer {TOKEN}"}
        assert search(url, right)["data"]["count"] == 1
        evil = httpx2.post(url, json=PING, headers={**HEADERS, **right, "Host": "evil.example"})
        assert evil.status_code == 421
        allowed = httpx2.post(url, json=PING, headers={**HEADERS, **right, "Host": "memory.example"})
        assert allowed.status_code not in (401, 403, 421)


def assert_told_to_be_there(url: str) -> None:
    """`/health` says no more than that, to everybody who may ask this server at all."""
    health = url.partition("/mcp")[0] + "/health"
    asked = httpx2.get(health)
    assert (asked.status_code, asked.text) == (200, '{"status":"ok"}')
    assert asked.headers["content-type"] == "application/json"
    assert asked.headers.keys() <= {"date", "content-type", "content-length", "cache-control"}
    head = httpx2.head(health)
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", "15")
    assert httpx2.get(health, headers={"Authorization": "Bearer wrong"}).status_code == 200
    posted = httpx2.post(health, json=PING)
    assert (posted.status_code, set(posted.headers["allow"].split(", "))) == (405, {"GET", "HEAD"})
    for method in ("GET", "HEAD", "POST"):
        assert httpx2.request(method, health, headers={"Host": "evil.example"}).status_code == 421
        assert httpx2.request(method, health, headers={"Origin": "http://evil.example"}).status_code == 403
    assert httpx2.get(health + "/").status_code in (401, 404)


@pytest.mark.requirement("T27.there")
@pytest.mark.parametrize("token", [False, True])
@pytest.mark.parametrize("named", [False, True])
def test_a_server_says_that_it_is_there_and_nothing_else(
    indexed: Path, tmp_path: Path, token: bool, named: bool
) -> None:
    (tmp_path / "token").write_text(TOKEN)
    (tmp_path / "token").chmod(0o600)
    arguments = ["--token-file", str(tmp_path / "token")] if token else []
    with serving(indexed, *arguments, *(["--workspace", f"one={indexed}"] if named else [])) as url:
        assert_told_to_be_there(url)


@pytest.mark.requirement("T27.there")
def test_a_server_says_that_it_is_there_where_there_is_no_store(tmp_path: Path) -> None:
    with serving(tmp_path) as url:
        assert_told_to_be_there(url)
    assert list(tmp_path.iterdir()) == []


def test_a_server_that_has_begun_to_end_takes_no_connection_and_says_nothing_else(tmp_path: Path) -> None:
    told: list[int] = []

    def ask(health: str) -> None:
        with suppress(httpx2.TransportError):
            while True:
                told.append(httpx2.get(health).status_code)

    with serving(tmp_path) as url:
        asking = Thread(target=ask, args=(url.partition("/mcp")[0] + "/health",))
        asking.start()
        while not told and asking.is_alive():
            time.sleep(0.01)
    asking.join(60)
    assert not asking.is_alive()
    assert set(told) == {200}


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--host", "0.0.0.0"], "E031", "--host 0.0.0.0 can be reached by others and needs --token-file or --issuer"),
        (["--token-file", "nowhere"], "E010", "does not exist"),
        (["--token-file", "short"], "E032", "short:1:1: "),
        (["--host", "203.0.113.7", "--token-file", "good"], "E034", "cannot listen on 203.0.113.7"),
    ],
)
def test_an_unsafe_or_impossible_address_is_refused(
    tmp_path: Path, arguments: list[str], code: str, message: str
) -> None:
    (tmp_path / "short").write_text("abc")
    (tmp_path / "good").write_text(TOKEN)
    for file in ("short", "good"):
        (tmp_path / file).chmod(0o600)
    ran = call(tmp_path, ["serve", "--transport", "http", "--port", "0", *arguments])
    assert (ran.status, ran.out) == (2, "")
    assert code in ran.err.splitlines()[0]
    assert message in ran.err
