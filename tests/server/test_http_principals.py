"""Each request over HTTP runs as the principal of its token: in servers that are kept apart, and in a real one."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import anyio
import httpx2
import pytest
from files import write_file
from local_issuer import AUDIENCE, LocalIssuer, local_issuer
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp_types import ResourceTemplateReference
from postgres_server import server
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from speckit_memory.errors import SpeckitError
from speckit_memory.server.transport.http_principals import PrincipalServer, PrincipalServers
from speckit_memory.server.transport.http_tokens import access
from tests.server.doors import environment, server_command

pytestmark = pytest.mark.requirement("T27.principals")


class StandIn:
    """A workspace whose store is open from its first request on."""

    def __init__(self) -> None:
        self.is_open = False
        self.in_call = False

    def close_if_idle(self, _seconds: float) -> bool:
        self.is_open = self.is_open and self.in_call
        return not self.is_open


class Servers:
    """The servers of principals, what each was sent, and which run."""

    def __init__(self, most: int) -> None:
        self.running: list[str] = []
        self.workspaces: dict[str, StandIn] = {}
        self.sent: list[tuple[str, str]] = []
        self.streams = anyio.Event()
        self.served = PrincipalServers(self._build, most)

    def _build(self, principal: str) -> PrincipalServer:
        if principal == "nowhere":
            raise SpeckitError("E020", "the store link cannot be written")
        workspace = self.workspaces[principal] = StandIn()

        @asynccontextmanager
        async def lifespan(_app: Starlette) -> AsyncIterator[None]:
            self.running.append(principal)
            try:
                yield
            finally:
                self.running.remove(principal)

        async def answer(request: Request) -> PlainTextResponse:
            workspace.is_open = True
            if request.url.path == "/stream":
                await self.streams.wait()
            return PlainTextResponse(principal)

        app = Starlette(routes=[Route("/call", answer), Route("/stream", answer)], lifespan=lifespan)
        return PrincipalServer(cast(Any, workspace), app)

    def requests(self, principal: str) -> int:
        """Requests of a principal in progress."""
        found = self.served._servers.get(principal)
        return found.requests if found else 0

    async def ask(self, principal: str | None, path: str = "/call") -> str:
        """The answer to a request of a principal; None for one without a token."""
        scope: dict[str, Any] = {"type": "http", "method": "GET", "path": path, "query_string": b"", "headers": []}
        if principal is not None:
            scope["user"] = AuthenticatedUser(access(principal, "client"))
        sent: list[Any] = []

        async def send(message: Any) -> None:
            sent.append(message)

        async def receive() -> Any:
            return {"type": "http.disconnect"}

        await self.served(scope, receive, send)
        return str(b"".join(message.get("body", b"") for message in sent).decode())


def test_each_principal_has_a_server_and_requests_without_a_token_are_those_of_the_servers_own() -> None:
    async def course() -> None:
        servers = Servers(2)
        async with servers.served.running():
            answers: dict[str, str] = {}

            async def ask(principal: str) -> None:
                answers[principal] = await servers.ask(principal)

            async with anyio.create_task_group() as group:
                for principal in ("anna", "anna", "bob"):
                    group.start_soon(ask, principal)
            assert answers == {"anna": "anna", "bob": "bob"}
            assert sorted(servers.running) == ["", "anna", "bob"]
            assert [await servers.ask(None), await servers.ask("")] == ["", ""]
            assert "E020" in await servers.ask("nowhere")
            assert await servers.ask("anna") == "anna"
        assert servers.running == []

    anyio.run(course)


def test_the_least_recently_used_store_is_closed_and_its_server_ends_unless_a_request_is_in_progress() -> None:
    async def course() -> None:
        servers = Servers(2)

        async def until(check: Callable[[], bool]) -> None:
            with anyio.fail_after(60):
                while not check():
                    await anyio.sleep(0.001)

        async with servers.served.running(), anyio.create_task_group() as group:
            await servers.ask("")
            for principal in ("anna", "bob", "anna", "carl"):
                await servers.ask(principal)
            await until(lambda: sorted(servers.running) == ["", "anna", "carl"])
            assert not servers.workspaces["bob"].is_open
            assert servers.workspaces[""].is_open
            group.start_soon(servers.ask, "anna", "/stream")
            await until(lambda: servers.requests("anna") == 1)
            servers.workspaces["anna"].in_call = True
            for principal in ("carl", "dora"):
                await servers.ask(principal)
            assert servers.workspaces["anna"].is_open
            servers.workspaces["anna"].in_call = False
            await servers.ask("carl")
            await until(lambda: not servers.workspaces["anna"].is_open)
            assert "anna" in servers.running  # its stream goes on
            servers.streams.set()
            await until(lambda: not servers.requests("anna"))
            await servers.ask("dora")
            await until(lambda: sorted(servers.running) == ["", "carl", "dora"])
            assert await servers.ask("anna") == "anna"

    anyio.run(course)


TOKENS = {"anna": "anna-has-this-token", "bob": "bob-has-another-token"}
INITIALIZE = {
    "jsonrpc": "2.0", "id": 1, "method": "initialize",
    "params": {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}  # fmt: skip
PING = {"jsonrpc": "2.0", "id": 2, "method": "ping"}
METADATA = "/.well-known/oauth-protected-resource/mcp"


@contextmanager
def serving(root: Path, issuer: LocalIssuer, store: str, *arguments: str) -> Iterator[str]:
    """The URL of a server that accepts static tokens and those of an issuer."""
    file = root / "tokens"
    file.write_text("".join(f"{name} {token}\n" for name, token in TOKENS.items()))
    file.chmod(0o600)
    access = ["--token-file", str(file), "--issuer", issuer.url, "--audience", AUDIENCE]
    environ = environment(root, SPECKIT_DB=store)
    with subprocess.Popen(
        server_command(environ, "--transport", "http", "--port", "0", *access, *arguments),
        stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=root, env=environ,
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            yield str(json.loads(process.stderr.readline())["url"])
        finally:
            os.kill(process.pid, signal.SIGTERM)
            log = process.communicate()[1].decode()
        assert process.returncode == 143
        assert not any(word in log for word in (*TOKENS.values(), "Traceback", "eyJ"))


def with_client(url: str, token: str, work: Callable[[Client], Awaitable[Any]]) -> Any:
    async def session() -> Any:
        async with (
            httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}, timeout=120) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await work(client)

    return anyio.run(session)


def post(url: str, message: dict[str, Any], token: str = "", session: str = "") -> httpx2.Response:
    headers = {"Accept": "application/json, text/event-stream"}
    headers |= {"Authorization": f"Bearer {token}"} if token else {}
    return httpx2.post(
        url, json=message, headers=headers | ({"Mcp-Session-Id": session} if session else {}), timeout=60
    )


async def sees(client: Client, word: str) -> set[bool]:
    """Whether a word is in each of what a client can list, find or complete; asked twice, for what is kept of
    answers."""
    told: list[Any] = []
    for _ in range(2):
        told += [(await client.call_tool("memory_search", {"query": "quokka"})).structured_content]
        told += [(await client.call_tool("memory_list", {})).structured_content]
        told += [(await client.list_resources(cursor="0")).model_dump_json()]
        reference = ResourceTemplateReference(uri="memory://{+key}")
        told += [(await client.complete(reference, {"name": "key", "value": ""})).model_dump_json()]
    return {word in json.dumps(each) for each in told}


async def lists(client: Client) -> list[dict[str, Any]]:
    listed = await client.call_tool("memory_list", {})
    assert listed.structured_content is not None
    rows: list[dict[str, Any]] = listed.structured_content["data"]["memories"]
    return rows


async def saves_and_finds(client: Client, name: str) -> list[str]:
    saved = await client.call_tool(
        "memory_save", {"content": f"# Note of {name}\n\nThe word is {name}.\n", "title": name}
    )
    assert not saved.is_error, saved.structured_content
    found = await client.call_tool("memory_search", {"query": f"the word is {name}"})
    assert found.structured_content is not None
    await client.read_resource("speckit://pipeline")
    return [row["key"] for row in found.structured_content["data"]["results"]]


@pytest.mark.usefixtures("processes")
@pytest.mark.parametrize(("engine", "workers"), [("file", 1), ("postgres", 2)])
def test_principals_of_both_kinds_of_tokens_share_a_server_and_no_session(
    engine: str, workers: int, tmp_path: Path
) -> None:
    (tmp_path / ".git").mkdir()
    store = f"{server()}&workspace=principals" if engine == "postgres" else str(tmp_path / "memory.db")
    with local_issuer() as issuer, serving(tmp_path, issuer, store, "--workers", str(workers)) as url:
        tokens = {**TOKENS, "carl": issuer.token("carl")}
        for name, token in tokens.items():
            assert with_client(url, token, partial(saves_and_finds, name=name))
        rows = with_client(url, tokens["bob"], lists)
        assert {row["key"]: row["created_by"] for row in rows} == {f"memories/{name}.md": name for name in tokens}
        if engine == "postgres":
            write_file(tmp_path / "private" / "anna" / "quokka.md", "# Quokka\n\nIt is a quokka.\n")

            async def saves(client: Client) -> set[bool]:
                saved = await client.call_tool("memory_save", {"filePath": "private/anna/quokka.md"})
                assert not saved.is_error, saved.structured_content
                return await sees(client, "private/anna")

            seen = {"anna": with_client(url, tokens["anna"], saves)}
            seen |= {
                name: with_client(url, tokens[name], partial(sees, word="private/anna"))
                for name in ("bob", "carl", "anna")
            }
            assert seen == {"anna": {True}, "bob": {False}, "carl": {False}}
        begun = {name: post(url, INITIALIZE, token).headers["mcp-session-id"] for name, token in tokens.items()}
        for owner, session in begun.items():
            for name, token in tokens.items():
                assert post(url, PING, token, session).status_code == (200 if owner == name else 404)
            assert post(url, PING, "", session).status_code == 401
        refused = post(url, PING)
        described = f"{AUDIENCE.removesuffix('/mcp')}{METADATA}"
        assert refused.status_code == 401
        assert f'resource_metadata="{described}"' in refused.headers["www-authenticate"]
        metadata = httpx2.get(url.removesuffix("/mcp") + METADATA).json()
        assert metadata["resource"] == AUDIENCE
        assert metadata["authorization_servers"] == [issuer.url]
        assert metadata["scopes_supported"] == ["memory"]
        unscoped = post(url, PING, issuer.token("carl", scope="openid"))
        assert (unscoped.status_code, unscoped.json()["error"]) == (403, "insufficient_scope")
        assert post(url, PING, issuer.token(exp=1_000_000_000)).status_code == 401
        elsewhere = url.removesuffix("/mcp") + "/elsewhere"
        assert (post(elsewhere, PING).status_code, post(elsewhere, PING, TOKENS["bob"]).status_code) == (401, 404)


@pytest.mark.usefixtures("processes")
def test_an_issuer_that_does_not_answer_is_told_and_lets_nobody_in(tmp_path: Path) -> None:
    with local_issuer() as issuer:
        token = issuer.token()
    with serving(tmp_path, issuer, str(tmp_path / "memory.db"), "--workers", "1") as url:
        answer = post(url, PING, token)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "5")
        assert "E038" in answer.json()["error_description"]
        assert post(url, INITIALIZE, TOKENS["anna"]).status_code == 200
