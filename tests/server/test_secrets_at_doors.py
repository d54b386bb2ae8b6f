"""A secret in any text that a tool or command takes comes onto no disk, and into no file that is written of it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from tests.server.doors import call, connected, indexed_workspace, with_client

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
WHERE = TOKEN.removeprefix("ghp_").lower().encode()
FIXED: dict[str, dict[str, Any]] = {
    "memory_save": {"content": f"# Ferry\n\nThe ferry leaves at dawn.\n\nDEPLOY={TOKEN}\n", "tier": None},
    "memory_update": {"id": 1},
    "memory_causal_link": {"sourceId": "docs/fusion.md", "targetId": "docs/tone.md", "relation": "supports"},
    "task_preflight": {"specFolder": "docs"},
    "task_postflight": {"specFolder": "docs"},
    "memory_validate": {"id": 1},
    "memory_index_scan": {},
}
"""What a tool must be told for its other texts to be stored."""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A workspace that keeps the texts of questions, too."""
    (tmp_path / ".speckit").mkdir()
    (tmp_path / ".speckit" / "config.yaml").write_text("evaluation: {texts: true}\n", encoding="utf-8")
    return indexed_workspace(tmp_path)


def leaks(root: Path) -> list[str]:
    """The files below the workspace that hold the token, in whatever case, or are named after it."""
    return [
        str(file.relative_to(root))
        for file in root.rglob("*")
        if WHERE in file.name.lower().encode() or (file.is_file() and WHERE in file.read_bytes().lower())
    ]


def filled(schema: dict[str, Any], name: str) -> Any:
    """A value of this schema, with the token in every text that may be any text."""
    if "enum" in schema:
        return schema["enum"][0]
    if "anyOf" in schema:
        return filled(schema["anyOf"][0], name)
    kind = schema.get("type", "object")
    match kind[0] if isinstance(kind, list) else kind:
        case "string":
            return f"{name} {TOKEN}"
        case "array":
            return [filled(schema.get("items", {"type": "string"}), name)]
        case "object":
            return {f"note {TOKEN}": [f"deploy with {TOKEN}"]}
        case "boolean":
            return True
        case "number":
            return 0.5
    return max(1, int(schema.get("minimum", 1)))


def calls(tools: list[Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Each tool with a secret in all its texts, in all but those it must be told, and in each of them alone."""
    for tool in tools:
        properties: dict[str, Any] = tool.input_schema["properties"]
        fixed = {name: value for name, value in FIXED.get(tool.name, {}).items() if name in properties}
        required = {name: filled(properties[name], name) for name in tool.input_schema.get("required", ())}
        texts = [name for name, schema in properties.items() if TOKEN in json.dumps(filled(schema, name))]
        yield tool.name, {name: filled(schema, name) for name, schema in properties.items()}
        yield tool.name, {name: filled(properties[name], name) for name in texts} | required | fixed
        for name in texts:
            yield tool.name, required | fixed | {name: filled(properties[name], name)}


@pytest.mark.requirement("I9.doors")
@pytest.mark.usefixtures("processes")
def test_no_text_of_any_tool_brings_a_secret_onto_the_disk(root: Path) -> None:
    async def everything() -> int:
        async with connected(root) as client:
            tools = (await client.list_tools()).tools
            done = 0
            for name, arguments in calls(tools):
                answer = await client.call_tool(name, {key: value for key, value in arguments.items() if value})
                done += not answer.is_error
                assert leaks(root) == [], (name, sorted(arguments))
            return done

    assert anyio.run(everything) > 40
    assert leaks(root) == []


@pytest.mark.requirement("I9.doors")
def test_what_is_told_beside_documents_is_stored_without_the_secret(root: Path) -> None:
    async def told(client: Any) -> list[Any]:
        async def asked(tool: str, **arguments: Any) -> Any:
            answer = await client.call_tool(tool, arguments)
            assert not answer.is_error, answer
            return answer.structured_content["data"]

        ends = {"sourceId": "docs/fusion.md", "targetId": "docs/tone.md", "relation": "supports"}
        link = await asked("memory_causal_link", **ends, evidence=f"see {TOKEN}")
        made = await asked("checkpoint_create", name="before", metadata={"by": f"CI {TOKEN}"})
        scores = {"knowledgeScore": 10, "uncertaintyScore": 50, "contextScore": 20}
        place = {"specFolder": "docs", "taskId": f"task {TOKEN}"}
        await asked("task_preflight", **place, **scores, knowledgeGaps=[f"what is {TOKEN}?"], sessionId=f"s {TOKEN}")
        after = dict.fromkeys(scores, 90)
        done = await asked("task_postflight", **place, **after)  # the same name finds the same task
        return [link, made, done]

    link, made, done = with_client(root, told)
    kept = json.dumps([link, made, done])

    assert "see (redacted github token)" in kept
    assert "CI (redacted github token)" in kept
    assert TOKEN not in kept
    assert leaks(root) == []


@pytest.mark.requirement("I9.doors")
def test_a_saved_text_reaches_its_file_without_the_secret_and_the_answer_says_so(root: Path) -> None:
    async def saved(client: Any) -> tuple[Any, Any]:
        text = f"# Ferry\n\nIt leaves at dawn.\n\nDEPLOY={TOKEN}\n"
        new = await client.call_tool("memory_save", {"content": text, "triggerPhrases": [f"ferry {TOKEN}"]})
        more = {"filePath": "docs/tone.md", "content": f"Deploy with {TOKEN}.", "edit": "append"}
        return new.structured_content["data"], (await client.call_tool("memory_save", more)).structured_content["data"]

    new, edited = with_client(root, saved)

    file = root / new["key"]
    assert "DEPLOY=(redacted github token)" in file.read_text(encoding="utf-8")
    assert new["redacted"] == {"github token": 1}
    assert "in line 5 of the given text is left out of the file" in new["problems"][0]["message"]
    assert "Deploy with (redacted github token)." in (root / "docs/tone.md").read_text(encoding="utf-8")
    assert edited["redacted"] == {"github token": 1}
    assert leaks(root) == []


@pytest.mark.requirement("I9.doors")
def test_a_workspace_that_keeps_secrets_has_texts_as_they_were_given(root: Path) -> None:
    (root / ".speckit" / "config.yaml").write_text("saving: {secrets: keep}\n", encoding="utf-8")

    async def saved(client: Any) -> Any:
        answer = await client.call_tool("memory_save", {"content": f"# Ferry\n\nDEPLOY={TOKEN}\n"})
        return answer.structured_content["data"]

    new = with_client(root, saved)

    assert TOKEN in (root / new["key"]).read_text(encoding="utf-8")
    assert new["redacted"] == {}


@pytest.mark.requirement("I9.doors")
@pytest.mark.parametrize(
    ("arguments", "accepted"),
    [
        (["search", f"what is {TOKEN}"], True),
        (["checkpoint", "create", f"before-{TOKEN}"], False),
        (["task", "preflight", "docs", f"t-{TOKEN}", "--knowledge", "1", "--uncertainty", "2", "--context", "3",
          "--gap", f"what is {TOKEN}", "--session", f"s-{TOKEN}"], True),
        (["links", "add", "docs/fusion.md", "supports", "docs/tone.md", "--evidence", f"see {TOKEN}"], True),
        (["update", "docs/tone.md", "--title", f"Tone {TOKEN}", "--trigger", f"tone {TOKEN}"], True),
    ],
)  # fmt: skip
def test_commands_bring_none_onto_the_disk_either(root: Path, arguments: list[str], accepted: bool) -> None:
    ran = call(root, arguments)

    assert (ran.status == 0) is accepted, ran.err
    assert leaks(root) == []
