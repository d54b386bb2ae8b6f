"""Several workspaces in one server: each client has one, with its store and its pipeline, and none sees another's."""

from __future__ import annotations

import gc
import hashlib
import json
import os
import shutil
import signal
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anyio
import httpx2
import pytest
from answered import refused
from files import write_file
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.session import ClientRequestContext, ListRootsFnT
from mcp.client.streamable_http import streamable_http_client
from mcp_types import (
    ListRootsResult,
    ResourceTemplateReference,
    Root,
    RootsListChangedNotification,
)
from pydantic import BaseModel, FileUrl
from raw_server import INITIALIZE, call_of, raw_server

from speckit_memory.config.workspace.settings import CONFIG_FILE, PIPELINE_FILE
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.mcp_server.app import workspace_of
from speckit_memory.server.workspace.client_roots import ChosenWorkspace, folders
from speckit_memory.server.workspace.idle_workspaces import close_idle
from speckit_memory.server.workspace.served_roots import served_roots
from tests.attacks.test_tools import USUAL
from tests.server.doors import COMMAND, call, environment, server_command

TEMPLATE = ResourceTemplateReference(uri="memory://{+key}")
TOKEN = "a-token-long-enough-for-a-test"
SECRETS = {"alpha": "xylophone-alpha-31", "beta": "zeppelin-beta-47"}
NO_STORE = {"SPECKIT_ROOT": "", "SPECKIT_DB": ""}
"""As where nothing is set: each workspace has its own store."""


@pytest.fixture(scope="module")
def roots(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Two projects side by side, of the same layout, with one secret each."""
    made = {}
    for name, secret in SECRETS.items():
        root = tmp_path_factory.mktemp(name)
        write_file(root / "docs" / "secret.md", f"# The secret\n\nThe secret is {secret}.\n")
        (root / "docs" / f"of-{name}.md").write_text(
            f"---\ntrigger_phrases: [phrase of {name}]\n---\n# Of {name}\n\nWhat {secret} means.\n", encoding="utf-8"
        )
        call(root, ["index", "docs"], env={"SPECKIT_ROOT": str(root), "SPECKIT_DB": ""}).ok()
        made[name] = root
    return made


def options(roots: dict[str, Path]) -> list[str]:
    return [part for name, root in roots.items() for part in ("--workspace", f"{name}={root}")]


@contextmanager
def serving(
    roots: dict[str, Path], *arguments: str, log: list[dict[str, Any]] | None = None, **more: str
) -> Iterator[dict[str, str]]:
    """The addresses of a server over HTTP, by the names of the workspaces; its `log` after the end."""
    elsewhere = environment(next(iter(roots.values())), **NO_STORE, **more)
    command = server_command(elsewhere, "--transport", "http", "--port", "0", *options(roots), *arguments)
    with subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=elsewhere
    ) as process:
        assert process.stderr is not None
        told: list[dict[str, Any]] = []
        while sum(line["event"] == "listening" for line in told) < len(roots):
            told.append(json.loads(process.stderr.readline()))
        try:
            yield {one["url"].rpartition("/")[2]: one["url"] for one in told if one["event"] == "listening"}
        finally:
            os.kill(process.pid, signal.SIGTERM)
            rest = process.communicate()[1]
            if log is not None:
                log += [*told, *map(json.loads, rest.splitlines())]
        assert process.returncode == 143


def asked(url: str, work: Callable[[Client], Awaitable[Any]], token: str = "") -> Any:
    async def session() -> Any:
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        async with (
            httpx2.AsyncClient(headers=headers, timeout=120) as http,
            Client(streamable_http_client(url, http_client=http)) as client,
        ):
            return await work(client)

    return anyio.run(session)


def state(root: Path) -> dict[str, str]:
    """The files of a workspace that people own, and what its store says."""
    files = {
        path.relative_to(root).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and ".speckit" not in path.parts
    }
    with Memory.open(root / ".speckit" / "memory.db", root=root, create=False, shadows=False) as memory:
        records, _ = memory.list(limit=100)
    return files | {record.key: f"{record.title} {record.tier}" for record in records}


def project(root: Path, text: str, config: str = "") -> Path:
    """A workspace of one document with the key that all have, indexed."""
    write_file(root / "docs" / "secret.md", f"# The secret\n\n{text}\n")
    assert call(root, ["index", "docs"], env={"SPECKIT_ROOT": str(root), "SPECKIT_DB": ""}).status == 0
    if config:
        (root / CONFIG_FILE).write_text(config, encoding="utf-8")
    return root


def hostile(other: Path, mine: Path, name: str) -> list[Any]:
    """What somebody says who wants another workspace: its words, keys, paths, addresses and store."""
    up = os.path.relpath(other, mine)
    paths = [str(other), f"{up}/docs/secret.md", f"docs/../{up}/docs", f"{other}/docs/of-{name}.md"]
    words = [SECRETS[name], f"phrase of {name}", f"docs/of-{name}.md"]
    return [*paths, *words, f"{other}/.speckit/memory.db"]


def named(answer: object, question: object) -> str:
    """An answer without what it repeats of the question."""
    return json.dumps(answer, ensure_ascii=False).replace(json.dumps(question, ensure_ascii=False)[1:-1], "")


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("processes")
def test_no_tool_with_any_argument_reaches_another_workspace(roots: dict[str, Path], tmp_path: Path) -> None:
    before = state(roots["beta"])
    mine = project(tmp_path / "alpha", "Nothing of interest.")  # which is changed by it
    values = hostile(roots["beta"], mine, "beta")

    async def attack(client: Client) -> int:
        calls = 0
        for tool in (await client.list_tools()).tools:
            properties = tool.input_schema.get("properties", {})
            kinds = {name: json.dumps(kind) for name, kind in properties.items()}
            texts = [name for name, kind in kinds.items() if "string" in kind and "enum" not in kind]
            for name in texts or [""]:
                for value in values if name else [None]:
                    for given in ([value], value) if properties.get(name, {}).get("type") == "array" else (value,):
                        arguments = {**USUAL[tool.name], **({name: given} if name else {})}
                        for gate in ("confirm", "dryRun"):
                            if gate in properties:
                                arguments[gate] = gate == "confirm"
                        result = await client.call_tool(tool.name, arguments)
                        said = json.dumps([block.model_dump(mode="json") for block in result.content])
                        said += json.dumps(result.structured_content)
                        for question in values:
                            said = said.replace(json.dumps(question)[1:-1], "")
                        assert SECRETS["beta"] not in said, (tool.name, arguments)
                        assert "Of beta" not in said, (tool.name, arguments)
                        calls += 1
        for uri in (
            "memory://docs/of-beta.md",
            f"memory://{roots['beta']}/docs/secret.md",
            "memory://../beta/secret.md",
        ):
            with pytest.raises(MCPError):
                await client.read_resource(uri)
        pages = await client.list_resources()
        assert "beta" not in pages.model_dump_json()
        return calls

    with serving({"alpha": mine, "beta": roots["beta"]}) as urls:
        own = asked(urls["beta"], lambda client: client.call_tool("memory_search", {"query": SECRETS["beta"]}))
        assert SECRETS["beta"] in str(own.structured_content)
        assert asked(urls["alpha"], attack) > 200
        again = asked(urls["beta"], lambda client: client.call_tool("memory_search", {"query": SECRETS["beta"]}))
        assert [row["key"] for row in again.structured_content["data"]["results"]] == [
            row["key"] for row in own.structured_content["data"]["results"]
        ]
    assert state(roots["beta"]) == before


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("processes")
def test_each_path_has_its_store_its_pipeline_and_its_sessions(roots: dict[str, Path], tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(TOKEN)
    token.chmod(0o600)
    file = write_file(roots["beta"] / PIPELINE_FILE, "pipeline: betas\nextends: bm25\n")
    try:
        with serving(roots, "--token-file", str(token)) as urls:

            async def looks(client: Client) -> tuple[str, str, list[str]]:
                health = (await client.call_tool("memory_health")).structured_content
                found = (await client.call_tool("memory_search", {"query": "secret"})).structured_content
                assert health is not None and found is not None
                [detail] = [check["detail"] for check in health["data"]["checks"] if check["name"] == "pipeline"]
                keys = sorted(row["key"] for row in found["data"]["results"])
                return detail.partition(" ")[0], str(keys), found["hints"]

            assert asked(urls["alpha"], looks, TOKEN)[0] == "'default'"
            assert asked(urls["beta"], looks, TOKEN)[0] == "'betas'"
            file.write_text("fusoin: []\n", encoding="utf-8")
            assert "fusoin" in str(asked(urls["beta"], looks, TOKEN)[2])
            assert asked(urls["alpha"], looks, TOKEN)[2] == []

            base = urls["alpha"].rpartition("/")[0]
            right = {"Authorization": f"Bearer {TOKEN}", "Accept": "application/json, text/event-stream"}
            wrong = {**right, "Authorization": "Bearer nothing-of-the-kind"}
            ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
            for path in (base, f"{base}/gamma", f"{base}/alpha/../gamma", f"{base}/ALPHA"):
                told = httpx2.post(path, json=ping, headers=right)
                assert (told.status_code, "paths served: /mcp/alpha, /mcp/beta" in told.text) == (404, True), path
            # who has no token does not learn what there is
            hidden = [httpx2.post(path, json=ping, headers=wrong) for path in (urls["alpha"], f"{base}/gamma")]
            assert [(one.status_code, one.text) for one in hidden] == [(401, hidden[0].text)] * 2
            assert "alpha" not in hidden[1].text

            begun = httpx2.post(urls["alpha"], json=INITIALIZE, headers=right)
            session = {**right, "Mcp-Session-Id": begun.headers["mcp-session-id"]}
            assert httpx2.post(urls["beta"], json=ping, headers=session).status_code == 404
            assert httpx2.post(urls["alpha"], json=ping, headers=session).status_code == 200
    finally:
        file.unlink()


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("processes")
def test_what_is_kept_of_one_workspace_is_never_given_to_another(roots: dict[str, Path], tmp_path: Path) -> None:
    """The same keys, ids, sessions and questions in both; beside them one that goes away and one that is broken."""
    mortal = project(tmp_path / "mortal", "Gone soon.")
    broken = project(tmp_path / "broken", "Out of reach.", "fusoin: []\n")
    question = {"query": "what is the secret"}
    log: list[dict[str, Any]] = []

    async def everything(client: Client) -> str:
        twice = [(await client.call_tool("memory_search", question)).structured_content for _ in range(2)]
        assert [answer["meta"]["cache_hit"] for answer in twice if answer] == [False, True]
        said: list[BaseModel] = []
        in_session = await client.call_tool("memory_search", {**question, "sessionId": "the same"})
        assert "secret is" in str(in_session.content)  # nothing of it was sent before
        said.append(in_session)
        said.append(await client.read_resource("memory://docs/secret.md"))
        said.append(await client.read_resource("memory://1"))
        said.append(await client.list_resources(cursor=(await client.list_resources()).next_cursor))
        said.append(await client.get_prompt("why", {"memory": "docs/secret.md"}))
        said.append(await client.complete(TEMPLATE, {"name": "key", "value": "docs/of"}))
        said.append(await client.call_tool("memory_stats"))
        return " ".join([json.dumps(twice), *(answer.model_dump_json() for answer in said)])

    async def stats(client: Client) -> Any:
        return (await client.call_tool("memory_stats")).structured_content

    async def found(client: Client) -> Any:
        return (await client.call_tool("memory_search", question)).structured_content

    all_four = {**roots, "mortal": mortal, "broken": broken}
    with serving(all_four, log=log, SPECKIT_LOG_CONTENT="1") as urls:
        for mine, other in (("beta", "alpha"), ("alpha", "beta")):
            said = asked(urls[mine], everything)
            assert SECRETS[mine] in said
            assert f"of-{mine}" in said
            for foreign in (SECRETS[other], f"of-{other}", f"Of {other}", str(roots[other]), "mortal", "broken"):
                assert foreign not in said
        assert asked(urls["mortal"], found)["data"]["results"]
        shutil.rmtree(mortal)
        assert asked(urls["mortal"], found)["error"]["code"] == "E010"
        assert "fusoin" in asked(urls["broken"], found)["error"]["message"]
        (broken / CONFIG_FILE).unlink()
        assert asked(urls["broken"], found)["data"]["results"]
        for name in roots:
            assert asked(urls[name], stats)["data"]["answer_cache"]["hits"] == 1
    [told] = [line for line in log if line["event"] == "workspace cannot be used"]
    assert (told["workspace"], "fusoin" in str(told["problems"])) == ("broken", True)
    lines = {name: [line for line in log if line.get("workspace") == name] for name in all_four}
    for name, other in (("alpha", "beta"), ("beta", "alpha")):
        assert len([line for line in lines[name] if line["event"] == "search" and line["query"]]) == 3
        assert other not in str(lines[name])
    assert all("workspace" in line for line in log if "query_id" in line)


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("processes")
def test_changes_are_watched_and_told_in_each_workspace_by_itself(roots: dict[str, Path]) -> None:
    told: dict[str, list[object]] = {name: [] for name in roots}
    log: list[dict[str, Any]] = []

    async def listen(name: str, url: str, task_status: anyio.abc.TaskStatus[None]) -> None:
        async with (
            Client(streamable_http_client(url)) as client,
            client.listen(resource_subscriptions=["memory://docs/secret.md"]) as events,
        ):
            task_status.started()
            async for event in events:
                told[name].append(event)

    async def session(urls: dict[str, str]) -> None:
        async with anyio.create_task_group() as group:
            for name, url in urls.items():
                await group.start(listen, name, url)
            for name, other in (("beta", "alpha"), ("alpha", "")):
                file = roots[name] / "docs" / "secret.md"
                file.write_text(file.read_text(encoding="utf-8") + "\nAnd more.\n", encoding="utf-8")
                with anyio.fail_after(60):
                    while not told[name]:
                        await anyio.sleep(0.05)
                assert not told.get(other)
            group.cancel_scope.cancel()

    with serving(roots, "--watch", log=log) as urls:
        anyio.run(session, urls)
    for name in roots:
        events = [line["event"] for line in log if line.get("workspace") == name]
        assert (events.count("watching"), events.count("indexed")) == (1, 1)
    assert not [line for line in log if line["event"] == "indexed" and "workspace" not in line]


@pytest.mark.requirement("T27.workspaces")
def test_a_server_none_of_whose_workspaces_can_be_used_does_not_begin(tmp_path: Path) -> None:
    for name in ("one", "two"):
        project(tmp_path / name, "Anything.", f"fusoin_{name}: []\n")
    ran = call(tmp_path, ["serve", "--workspace", "one", "--workspace", "two"], env=NO_STORE).ended(2)
    assert "fusoin_one" in ran.err
    assert "fusoin_two" in ran.err


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("exhaustive")
def test_sixteen_workspaces_close_what_nobody_uses_and_open_it_again(tmp_path: Path) -> None:
    def open_files() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    workspaces = [
        workspace_of(Common(), project(tmp_path / f"p{number}", f"The secret is {number}.")) for number in range(16)
    ]
    before = open_files(), threading.active_count()
    try:
        for _ in range(2):
            for number, workspace in enumerate(workspaces):
                [first, *_] = workspace.memory().search("secret").results
                assert f"secret is {number}" in first.snippet
            assert open_files() > before[0] + 16

            async def until_closed() -> None:
                with workspaces[0].in_use():
                    async with anyio.create_task_group() as group:
                        group.start_soon(close_idle, lambda: workspaces, 0.0, 0.01)
                        with anyio.fail_after(60):
                            while any(workspace.is_open for workspace in workspaces[1:]):
                                await anyio.sleep(0.01)
                        group.cancel_scope.cancel()
                assert workspaces[0].is_open  # somebody waits for an answer
                assert not workspaces[0].close_if_idle(3600)
                assert workspaces[0].close_if_idle(0)
                gc.collect()

            anyio.run(until_closed)
            assert open_files() <= before[0]
            assert threading.active_count() <= before[1] + 1  # anyio's worker
    finally:
        for workspace in workspaces:
            workspace.finish(0)


def announcing(*uris: str) -> ListRootsFnT:
    async def told(context: ClientRequestContext) -> ListRootsResult:
        assert context is not None
        return ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in uris])

    return told


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
@pytest.mark.usefixtures("processes")
def test_over_stdio_the_folders_of_the_client_choose_once_for_the_connection(
    roots: dict[str, Path], tmp_path: Path, mode: Any
) -> None:
    announced = [f"file://{tmp_path}"]

    async def said(context: ClientRequestContext) -> ListRootsResult:
        assert context is not None
        return ListRootsResult(roots=[Root(uri=FileUrl(uri)) for uri in announced])

    async def session() -> None:
        server = StdioServerParameters(
            command=str(COMMAND),
            args=["serve", "--watch", *options(roots)],
            cwd=tmp_path,
            env=environment(tmp_path, **NO_STORE),
        )

        async with Client(server, mode=mode, list_roots_callback=said) as client:

            async def error() -> str:
                answer = (await client.call_tool("memory_list")).structured_content
                assert answer is not None
                return f"{answer['error']['code']} {answer['error']['message']}"

            assert len((await client.list_tools()).tools) == len(USUAL)  # asks for nothing
            assert await error() == f"E015 the client's folders are not served here: {tmp_path}"
            announced[:] = [f"file://{root}" for root in roots.values()]
            assert (await error()).startswith("E015 the client works in several workspaces: alpha, beta (")
            announced[:] = [f"file://{roots['beta']}/docs"]
            found = await client.call_tool("memory_search", {"query": "secret"})
            assert SECRETS["beta"] in str(found.structured_content)
            assert SECRETS["alpha"] not in str(found.structured_content)
            announced[:] = [f"file://{roots['alpha']}"]
            if mode == "legacy":
                await client.session.send_notification(RootsListChangedNotification())
                assert await error() == "E015 this connection serves 'beta', but the client now works in 'alpha'"
                announced[:] = [f"file://{roots['beta']}"]
                await client.session.send_notification(RootsListChangedNotification())
            found = await client.call_tool("memory_search", {"query": "secret"})
            assert SECRETS["beta"] in str(found.structured_content)

        async with Client(server, mode=mode) as client:
            told = await client.call_tool("memory_stats")
            assert "it has no roots" in str(told.structured_content)

    anyio.run(session)


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("processes")
def test_whatever_a_client_answers_is_survived_and_folders_on_no_disk_are_passed_over(
    roots: dict[str, Path], tmp_path: Path
) -> None:
    answers: list[dict[str, Any]] = [
        {"error": {"code": -32601, "message": "no such method"}},
        {"result": {"roots": "all"}},
        {"result": {"roots": [{"uri": 7}]}},
        {"result": {"roots": []}},
        {"result": {"roots": [{"uri": "vscode-vfs://github/x"}, {"uri": f"file://{roots['alpha']}", "name": "a"}]}},
    ]
    params: Any = INITIALIZE["params"]
    hello = {**INITIALIZE, "params": {**params, "capabilities": {"roots": {"listChanged": True}}}}
    with raw_server(tmp_path, *options(roots), env=NO_STORE) as server:
        server.send(hello, {"jsonrpc": "2.0", "method": "notifications/initialized"})
        server.answer(0)
        for number, answer in enumerate(answers):
            server.send(call_of(f"call {number}", "memory_search", {"query": "secret"}))
            while (asked := server.next(unasked=True)).get("method") != "roots/list":
                assert "id" not in asked
            server.send({"jsonrpc": "2.0", "id": asked["id"], **answer})
            told = server.answer(f"call {number}")["result"]["structuredContent"]
            assert ("error" in told) is (number + 1 < len(answers)), told
        assert SECRETS["alpha"] in str(told)
        assert server.call("last", "memory_stats")["structuredContent"]["data"]  # nobody is asked again
        assert server.close() == 0


@pytest.mark.requirement("T27.workspaces")
@pytest.mark.usefixtures("processes")
def test_one_workspace_is_served_whatever_the_client_says_and_wherever_the_server_was_started(
    roots: dict[str, Path], tmp_path: Path
) -> None:
    async def session() -> Any:
        server = StdioServerParameters(
            command=str(COMMAND), args=["serve", "--workspace", str(roots["beta"])],
            env=environment(roots["alpha"], **NO_STORE), cwd=tmp_path,
        )  # fmt: skip
        async with Client(server, list_roots_callback=announcing(f"file://{roots['alpha']}")) as client:
            return (await client.call_tool("memory_search", {"query": "secret"})).structured_content

    assert SECRETS["beta"] in str(anyio.run(session))


def test_folders_that_cannot_be_served_together_are_refused_all_at_once(tmp_path: Path) -> None:
    for folder in ("one", "two/inner", "with blank"):
        (tmp_path / folder).mkdir(parents=True)
    given = ["one", "a=two", "a=one", "b=two/inner", "with blank", "nowhere", "c=one"]

    ran = call(
        tmp_path, ["serve", *(part for one in given for part in ("--workspace", one)), "--db", "shared.db"]
    ).ended(2)
    for told in (
        "two workspaces are called 'a'", "'with blank' cannot name a workspace", "nowhere is not a folder",
        "the workspace 'b' is inside 'a'", "'one' is inside 'c'", "cannot share the store that --db names",
    ):  # fmt: skip
        assert told in " ".join(ran.err.split()), told
    with pytest.raises(SpeckitError, match="SPECKIT_DB"):
        served_roots([str(tmp_path / "one"), str(tmp_path / "two")], {"SPECKIT_DB": "x.db"}, own_store=False)
    assert served_roots([str(tmp_path / "one")], {"SPECKIT_DB": "x.db"}, own_store=True) == {"one": tmp_path / "one"}


def test_roots_are_read_as_clients_write_them(tmp_path: Path) -> None:
    (tmp_path / "with blank").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "with blank")
    uris = [
        f"file://{tmp_path}/with%20blank", f"file://localhost{tmp_path}/link/", "https://example.org/x",
        "file://elsewhere/x", "file:///%00", "", f"file://{tmp_path}/with%20blank/../with%20blank",
    ]  # fmt: skip
    assert list(folders(uris)) == [tmp_path / "with blank"] * 3


def test_a_folder_that_only_begins_like_a_workspace_is_none(tmp_path: Path) -> None:
    for name in ("work", "workshop"):
        (tmp_path / name).mkdir()
    chosen = ChosenWorkspace(Common(), {"work": tmp_path / "work", "other": tmp_path / "other"})
    chosen.choose([tmp_path / "workshop", tmp_path])
    with pytest.raises(SpeckitError, match="folders are not served"):
        chosen.memory()
    chosen.choose([tmp_path / "work" / "docs"])
    with refused("E010"):  # there is no store in it yet
        chosen.memory()
