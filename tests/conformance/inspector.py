"""The Inspector's command line: each kind of request, with an answer that is known, in both eras of the protocol."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.conformance.fetching import node_environment
from tests.conformance.outcome import Outcome
from tests.conformance.workspace import command

CLIENT = "inspector"
ERAS = ("legacy", "modern")
PATIENCE = 120
TOOLS = 23


@dataclass(frozen=True, slots=True)
class Asked:
    """A request, what its answer must be, and the status with which the Inspector must end."""

    arguments: tuple[str, ...]
    holds: Callable[[Any], bool]
    status: int = 0


def _text(answer: Any) -> str:
    return str(answer["content"][0]["text"])


REQUESTS = {
    "tools/list --strict": Asked(("--method", "tools/list", "--strict"), lambda a: len(a["tools"]) == TOOLS),
    "tools/call memory_search": Asked(
        ("--method", "tools/call", "--tool-name", "memory_search", "--tool-arg", "query=quokka store"),
        lambda a: a["structuredContent"]["data"]["results"][0]["key"] == "notes/wal.md",
    ),
    "tools/call memory_save": Asked(
        ("--method", "tools/call", "--tool-name", "memory_save", "--tool-arg", "title=Kept by the Inspector",
         "--tool-arg", "content=# Kept\n\nThe heron relay was wired by the Inspector.\n", "--tool-arg", "force=true"),
        lambda a: not a.get("isError") and bool(a["structuredContent"]["data"]["key"]),
    ),
    "tools/call with an unknown argument": Asked(
        ("--method", "tools/call", "--tool-name", "memory_search", "--tool-arg", "quary=x"),
        lambda a: a["isError"] and a["structuredContent"]["error"]["code"] == "E033",
        status=5,
    ),
    "resources/list": Asked(
        ("--method", "resources/list"), lambda a: {"speckit://pipeline"} <= {one["uri"] for one in a["resources"]}
    ),
    "resources/templates/list": Asked(
        ("--method", "resources/templates/list"),
        lambda a: [one["uriTemplate"] for one in a["resourceTemplates"]] == ["memory://{+key}"],
    ),
    "resources/read": Asked(
        ("--method", "resources/read", "--uri", "memory://notes/wal.md"),
        lambda a: "The quokka store runs in WAL mode." in a["contents"][0]["text"],
    ),
    "prompts/list": Asked(
        ("--method", "prompts/list"), lambda a: {one["name"] for one in a["prompts"]} == {"handover", "remember", "why"}
    ),
    "prompts/get": Asked(
        ("--method", "prompts/get", "--prompt-name", "why", "--prompt-args", "memory=notes/wal.md"),
        lambda a: "quokka" in a["messages"][0]["content"]["text"],
    ),
}  # fmt: skip


def run(modules: Path, url: str, root: Path, home: Path) -> Iterator[Outcome]:
    """What became of each request at the server of an address, and at servers over stdio."""
    overs = {
        "http": [url, "--transport", "http"],
        "stdio": ["--cwd", str(root), "-e", f"SPECKIT_ROOT={root}", *command()],
    }
    for transport, server in overs.items():
        for era in ERAS:
            for name, asked in REQUESTS.items():
                problems = _problems(modules, home, [*server, "--protocol-era", era], asked)
                yield Outcome(f"{CLIENT} {era}", transport, name, 1, problems)


def _problems(modules: Path, home: Path, server: list[str], asked: Asked) -> tuple[str, ...]:
    done = subprocess.run(
        ["mcp-inspector", "--cli", *server, *asked.arguments], env=node_environment(modules, home),
        capture_output=True, text=True, check=False, timeout=PATIENCE,
    )  # fmt: skip
    said = f"{done.stdout[:500]} {done.stderr[-500:]}".strip()
    if done.returncode != asked.status:
        return (f"ended with {done.returncode}: {said}",)
    try:
        held = asked.holds(json.loads(done.stdout))
    except (ValueError, LookupError, TypeError) as error:
        return (f"{type(error).__name__}: {said}",)
    return () if held else (f"another answer: {said}",)
