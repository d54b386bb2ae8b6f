"""One server that lives long: so many calls of all tools it publishes, with what attackers write in every text.

The parameters come from the server itself, so that a new tool or parameter takes part by itself. First every hostile
text in every place that takes text (a sample of them where fewer calls are wanted), then calls drawn with a seed. No
call may take long, open a file outside of the workspace, tell of what lies there, or be answered with a defect; and the
process may not grow.
"""

from __future__ import annotations

import json
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any

from raw_server import RawServer, raw_server

from speckit_memory.engine import Memory
from speckit_memory.engine.documents.path_patterns import COMMAND
from speckit_memory.errors.codes import CODES
from tests.attacks.fuzz.shared import NOTES, folder, with_notes

SECRET = "xyzzy-plugh-9731"
"""What stands in a file outside of the workspace."""
DEFECTS = frozenset({"E199", "E020", "E021", "E024"})
MOST_SECONDS = 5.0
"""For a call, on a machine that has little else to do: whoever measures holds the slowest to it."""
MOST_GROWTH_MB = 50.0
WARM = 2_000
"""Calls after which a process has everything in memory that it needs."""
SHARE_OF_PLACES = 0.6
"""Of the calls, at most, that put a text in a place; the others are drawn, and of the tools without such places too."""
OPENED = (
    "open", "os.listdir", "os.scandir", "os.mkdir", "os.remove", "os.rename", "os.rmdir", "os.truncate", "os.chmod",
    "os.link", "os.symlink", "os.utime", "subprocess.Popen", "os.exec", "os.posix_spawn", "os.system",
    "socket.connect", "shutil.rmtree", "sqlite3.connect",
)  # fmt: skip
WATCH = """
import os, sys
kinds, told = {opened!r}, os.open({log!r}, os.O_WRONLY | os.O_APPEND)
places = tuple({places!r})
begun = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.system", "socket.connect")

def heard(event, values):
    if event not in kinds or not values:
        return
    if event == "subprocess.Popen" and tuple(values[1])[1:] == {patterns!r}:
        return  # no word of a client is among its arguments
    texts = [os.fsdecode(value) for value in values[:2] if isinstance(value, (str, bytes))]
    at = [os.path.abspath(text) for text in texts if text]
    if event in begun or any(path.startswith(places) and not path.startswith({root!r}) for path in at):
        os.write(told, repr((event, texts)).encode("utf-8", "backslashreplace") + b"\\n")

sys.addaudithook(heard)
os.write(told, b"watching\\n")
"""
"""What the interpreter of the server does first: from then on it tells of what lies in places that are none of its
business, and of processes and connections."""
PATHS = (
    "../outside.md", "../../outside.md", "docs/../../outside.md", "/etc/passwd", "~/.ssh/id_rsa", "file:///etc/passwd",
    "..\\..\\outside.md", "%2e%2e/outside.md", "docs/\0/a.md", "docs//..//..//outside.md", "/proc/self/environ",
    "....//outside.md", ".", "..", "/", ".speckit/../../outside.md", "memory.db", ".git/config",
)  # fmt: skip
SQL = (
    "'; DROP TABLE memories; --", '" OR ""="', "1 OR 1=1", "x' UNION SELECT sql FROM sqlite_schema --", "docs/%", "_%",
    "\\'; DELETE FROM edges WHERE ''='", "1; ATTACH DATABASE '/tmp/x' AS y", "id; VACUUM", "?1", ":name",
)  # fmt: skip
FTS = (
    '"unbalanced', "NEAR(a b, 5)", "title: fusion", "a AND OR NOT", "fus*", "^fusion", "{title body}: x", "(((",
    '"" ""', "- - -", "a NOT b", "content:*", "fusion + + rank", '"a" NEAR/3 "b"', "-fusion -rank", "AND",
)  # fmt: skip
OTHERS = (
    "",
    " ",
    "\0",
    "\ud800",
    "📎",
    "全文検索",
    "x" * 9_000,
    "rank fusion",
    "why",
    "{}",
    "[]",
    "null",
    "1",
    "${HOME}",
)
HOSTILE = (*PATHS, *SQL, *FTS, *OTHERS)
USUAL = (*NOTES, "rank fusion", "write-ahead log", "docs", "docs/storage", "t", "s")


@dataclass
class Figures:
    """What came of the calls."""

    calls: int = 0
    places: int = 0
    """Parameters that take text, alone or in a list."""
    slowest: float = 0.0
    slowest_call: str = ""
    began_mb: float = 0.0
    ended_mb: float = 0.0
    answered: int = 0
    codes: Counter[str] = field(default_factory=Counter)
    tools: Counter[str] = field(default_factory=Counter)
    broken: list[str] = field(default_factory=list)

    def told(self) -> str:
        """The figures in lines."""
        codes = ", ".join(f"{code} {count}" for code, count in sorted(self.codes.items()))
        return (
            f"{self.calls:,} calls of {len(self.tools)} tools, hostile texts in each of {self.places} places for text\n"
            f"{self.answered:,} answered, {sum(self.codes.values()):,} refused ({codes})\n"
            f"slowest {self.slowest:.2f} s ({self.slowest_call})\n"
            f"memory {self.began_mb:.0f} MB after {min(WARM, self.calls):,} calls, {self.ended_mb:.0f} MB at the end"
        )


def _choices(schema: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    return list(schema.get("anyOf", [schema]))


def takes_text(schema: Mapping[str, Any]) -> str:
    """How a parameter takes text of anybody's choice: "alone", in a "list", or "" for not at all."""
    for one in _choices(schema):
        if one.get("type") == "string" and "enum" not in one:
            return "alone"
        if one.get("type") == "array" and takes_text(one.get("items", {})):
            return "list"
    return ""


def plausible(schema: Mapping[str, Any], drawn: random.Random) -> Any:
    """A value that the schema takes."""
    one = drawn.choice(_choices(schema))
    if "enum" in one:
        return drawn.choice(one["enum"])
    match one.get("type"):
        case "integer":
            return drawn.choice([1, 2, 5, one.get("minimum", 0), one.get("maximum", 30)])
        case "number":
            return drawn.choice([0, 0.5, 1])
        case "boolean":
            return drawn.random() < 0.5
        case "array":
            return [plausible(one.get("items", {}), drawn) for _ in range(drawn.randint(0, 3))]
        case _:
            return drawn.choice(USUAL)


def _required(schema: Mapping[str, Any], drawn: random.Random) -> dict[str, Any]:
    return {name: plausible(schema["properties"][name], drawn) for name in schema.get("required", ())}


def every_place(
    tools: Mapping[str, Any], drawn: random.Random, texts: Sequence[str] = HOSTILE
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every one of the texts in every parameter that takes text."""
    for tool, schema in tools.items():
        for name, accepted in schema["properties"].items():
            if how := takes_text(accepted):
                for text in texts:
                    yield tool, {**_required(schema, drawn), name: text if how == "alone" else [text, text]}


def at_will(
    tools: Mapping[str, Any], drawn: random.Random, texts: Sequence[str] = HOSTILE
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Calls without end: some parameters of some tool, one in four of them one of the texts or of another type."""
    while True:
        tool = drawn.choice(list(tools))
        schema = tools[tool]
        names = list(schema["properties"])
        arguments = _required(schema, drawn)
        for name in drawn.sample(names, drawn.randint(0, min(4, len(names)))):
            arguments[name] = plausible(schema["properties"][name], drawn)
        for name in list(arguments):
            if drawn.random() < 0.25:
                arguments[name] = drawn.choice([*texts, 0, -1, 2**63, 0.5, True, [], {}, ["\0"]])
        if drawn.random() < 0.02:
            arguments[drawn.choice(texts) or "x"] = 1
        yield tool, arguments


def resident_mb(process: int) -> float:
    """The memory that a process has now."""
    status = Path(f"/proc/{process}/status").read_text(encoding="utf-8")
    return int(status.partition("VmRSS:")[2].split()[0]) / 1024


def tried(calls: int, seed: int, progress: bool = False) -> Figures:
    """So many calls of one server over stdio."""
    figures, drawn = Figures(), random.Random(seed)
    outer, watch = folder(), folder()
    root = outer / "workspace"
    shutil.copytree(with_notes(), root)
    (outer / "outside.md").write_text(f"# Outside\n\nNobody shall read {SECRET}.\n", encoding="utf-8")
    log = watched(watch, outer, root)
    with raw_server(root, env={"PYTHONPATH": str(watch)}) as server:
        server.start()
        server.send({"jsonrpc": "2.0", "id": "tools", "method": "tools/list"})
        listed = server.answer("tools")["result"]["tools"]
        tools = {tool["name"]: tool["inputSchema"] for tool in listed}
        figures.places = sum(
            bool(takes_text(one)) for schema in tools.values() for one in schema["properties"].values()
        )
        work = list(every_place(tools, drawn))
        work = drawn.sample(work, min(len(work), int(SHARE_OF_PLACES * calls)))
        work += islice(at_will(tools, drawn), calls - len(work))
        drawn.shuffle(work)
        for number, (tool, arguments) in enumerate(work, start=1):
            _one(figures, server, number, tool, arguments)
            if number == min(WARM, calls):
                figures.began_mb = resident_mb(server.process.pid)
            if progress and number % 1_000 == 0:
                print(f"{number:,} calls, {resident_mb(server.process.pid):.0f} MB", flush=True)
        figures.ended_mb = resident_mb(server.process.pid)
        if server.close() != 0:
            figures.broken.append("the server did not end well")
    if figures.ended_mb - figures.began_mb > MOST_GROWTH_MB:
        figures.broken.append(f"memory grew by {figures.ended_mb - figures.began_mb:.0f} MB")
    beside = sorted(file.name for file in outer.iterdir())
    if beside != ["outside.md", "workspace"]:
        figures.broken.append(f"outside the workspace there are {beside}")
    watching, *met = log.read_text(encoding="utf-8").splitlines() or [""]
    if watching != "watching":
        figures.broken.append("nobody watched what the server opens")
    figures.broken += [f"outside the workspace: {line}" for line in met]
    with Memory.open(root / "memory.db", root=root, create=False) as memory:
        figures.broken += memory.lifecycle.check()
    for place in (outer, watch):
        shutil.rmtree(place, ignore_errors=True)
    return figures


def watched(watch: Path, outer: Path, root: Path) -> Path:
    """Has an interpreter with this folder on its path tell of what it opens outside; the file that it tells it in."""
    log = watch / "log"
    log.touch()
    places = [f"{outer}/", "/etc/passwd", f"{Path.home()}/.ssh", "/proc/self/environ", "/tmp/x"]
    (watch / "sitecustomize.py").write_text(
        WATCH.format(opened=OPENED, log=str(log), places=places, root=str(root), patterns=COMMAND[1:]), encoding="utf-8"
    )
    return log


def _one(figures: Figures, server: RawServer, number: int, tool: str, arguments: dict[str, Any]) -> None:
    begun = time.perf_counter()
    answer = server_answer(server, number, tool, arguments)
    spent = time.perf_counter() - begun
    figures.calls += 1
    figures.tools[tool] += 1
    said = f"{tool} {json.dumps(arguments)[:300]}"
    if spent > figures.slowest:
        figures.slowest, figures.slowest_call = spent, said[:120]
    if SECRET in json.dumps(answer):
        figures.broken.append(f"told what lies outside: {said}")
    if "result" not in answer:
        figures.codes["protocol"] += 1
        return
    content = answer["result"]["structuredContent"]
    if "error" not in content:
        figures.answered += 1
        if set(content) != {"summary", "data", "hints", "meta"}:
            figures.broken.append(f"no envelope: {said}")
        return
    code = content["error"]["code"]
    figures.codes[code] += 1
    if code in DEFECTS or code not in CODES:
        figures.broken.append(f"{code} {content['error']['message'][:200]}: {said}")


def server_answer(server: RawServer, number: int, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """What a server says to a call, an error of the protocol included."""
    server.send(
        {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool, "arguments": arguments}}
    )
    return server.answer(number)
