"""Names that no text holds, that command a terminal, or that mean something else to a program, through every door."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from tally import Tally

from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.errors.names import displayable_name, original_name, sendable
from speckit_memory.server.replies.envelope import Reply, failure, fit_to_budget
from tests.server.doors import call, with_client

TEXT = "# A note\n\nquokka\n"
HARMLESS = [
    b"\x1b[31mred.md", b"\x1b]0;title\x07.md", b"line\nend.md", b"\r.md", b"tab\t.md", b"\x01\x7f.md", b"-rf.md",
    b"-.md", b"%00.md", b"%s{0}.md", b"trailing. .md", b" .md", b"'\"`$(x).md", b"back\\slash.md", b"a*?[b].md",
    b"#hash.md", b"!not.md", b"~.md", b"A.md", b"a.md", b"x" * 252 + b".md",
    "\u202egnp.md".encode(), "\u2028.md".encode(),
    "\u200f\u061c.md".encode(), "\ufeff.md".encode(), "😀.md".encode(), b"\\xff.md", b"CON.md",
    unicodedata.normalize("NFC", "é.md").encode(), unicodedata.normalize("NFD", "é.md").encode(),
]  # fmt: skip
"""They are UTF-8, whatever they mean to somebody: each is a document of its own."""
NO_TEXT = [b"\xff.md", b"\xc3\x28.md", b"a\xed\xa0\x80.md", b"\xf8\xa1.md", b"ok\x80\x1b[2J.md", b"\xfe" * 250 + b".md"]
"""No text holds them: each is reported, and nothing else suffers."""


def _folder(at: Path) -> None:
    at.mkdir()
    (at / "inside.md").write_text(TEXT, encoding="utf-8")


PLACES: dict[str, Callable[[Path], object]] = {
    "file": lambda at: at.write_text(TEXT, encoding="utf-8"),
    "leads nowhere": lambda at: at.symlink_to("nowhere"),
    "leads to itself": lambda at: at.symlink_to(at.name),
    "leads out": lambda at: at.symlink_to("/etc/hostname"),
    "pipe": os.mkfifo,
    "folder": _folder,
}
"""What may have such a name."""
CONSOLES = [
    {},
    {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
    {"PYTHONIOENCODING": "ascii"},
    {"PYTHONIOENCODING": "latin-1:strict", "LANG": "POSIX"},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "workspace"
    (folder / ".git").mkdir(parents=True)
    (folder / "good.md").write_text("# Good\n\nplankton\n", encoding="utf-8")
    return folder


def put(root: Path, names: list[bytes], place: str = "file") -> None:
    for name in names:
        PLACES[place](root / os.fsdecode(name))


def put_everywhere(root: Path) -> None:
    """Each of the names that no text holds as each of the things that may have it, in a folder of its own."""
    for number, place in enumerate(PLACES):
        (root / str(number)).mkdir()
        put(root / str(number), NO_TEXT, place)


def tools(root: Path, *calls: tuple[str, dict[str, Any]]) -> list[tuple[str, dict[str, Any]]]:
    """The text and the structured content of each answer of one server, which must live to the end."""

    async def work(client: Client) -> list[tuple[str, dict[str, Any]]]:
        answers = []
        for name, arguments in calls:
            answer = await client.call_tool(name, arguments)
            assert answer.structured_content is not None
            answers.append((answer.content[0].text, answer.structured_content))  # type: ignore[union-attr]
        return answers

    return with_client(root, work, SPECKIT_LOG_CONTENT="1")


def test_a_server_outlives_names_that_no_text_holds(root: Path, tally: Tally) -> None:
    put_everywhere(root)
    scan: tuple[str, dict[str, Any]] = ("memory_index_scan", {})
    save = ("memory_save", {"filePath": "good.md"})

    answers = tools(root, scan, save, ("memory_search", {"query": "plankton"}), ("memory_stats", {}), scan)

    [(_, first), _, (_, found), *_] = answers
    assert first["data"]["created"] == 1, "only the good one is a memory"
    rows, hints = first["data"]["problems"], " ".join(first["hints"])
    assert len(rows) == len(NO_TEXT) * len(PLACES) or f"of {len(NO_TEXT) * len(PLACES)} rows" in hints
    assert any("\\xff" in row["message"] for row in rows)
    assert found["data"]["results"][0]["key"] == "good.md"
    tally.tried(len(NO_TEXT) * len(PLACES))


@pytest.mark.parametrize("console", CONSOLES, ids=lambda console: " ".join(console.values()) or "usual")
def test_every_console_shows_names_that_no_text_holds(console: dict[str, str], root: Path, tally: Tally) -> None:
    put_everywhere(root)

    for ran in (call(root, ["index", "."], console), call(root, ["index", ".", "--json"], console)):
        assert ran.status == 2, ran.err
        assert "\\xff" in ran.out + ran.err
        assert "E199" not in ran.out + ran.err
        assert "\x1b[2J" not in ran.out + ran.err, "a name commands the terminal"
        tally.tried(len(NO_TEXT) * len(PLACES))
    document = json.loads(ran.out)
    assert len(document["errors"]) + len(document["problems"]) == len(NO_TEXT) * len(PLACES)
    json.dumps(document, ensure_ascii=False).encode()


def test_strange_names_are_documents_like_others(root: Path, tally: Tally) -> None:
    put(root, HARMLESS)
    keys = {name.decode() for name in HARMLESS}

    indexed = call(root, ["index", ".", "--json"])
    found = call(root, ["search", "quokka", "--limit", "100", "--json"])
    seen = call(root, ["search", "quokka", "--limit", "100", "--explain"])
    again = call(root, ["index", "."])
    forgotten = call(root, ["index", "--forget", "."])

    assert (indexed.status, set(indexed.json["created"])) == (0, keys | {"good.md"})
    assert keys <= {row["key"] for row in found.json["results"]} | {
        copy["key"] for row in found.json["results"] for copy in row["notes"].get("also_at", ())
    }
    for ran in (seen, again, forgotten):
        assert ran.status == 0, ran.err
        assert not {"\x1b", "\x07", "\x01", "\x7f", "\r", "\u202e"} & set(ran.out + ran.err)
    tally.tried(len(HARMLESS))


def test_a_server_answers_with_strange_names_and_takes_them_back(root: Path, tally: Tally) -> None:
    put(root, HARMLESS)
    saves = [("memory_save", {"filePath": "./" + name.decode(), "force": True}) for name in HARMLESS]

    answers = tools(root, *saves, ("memory_list", {"limit": 100}), ("memory_index_scan", {}))

    for name, (text, document) in zip(HARMLESS, answers, strict=False):
        assert document.get("data", {}).get("key") == name.decode(), (name, text)
        assert "\x1b" not in text
        tally.tried()
    assert answers[-2][1]["data"]["total"] == len(HARMLESS)
    assert answers[-1][1]["data"]["created"] == 1


def test_an_ignore_file_of_any_bytes_rules_names_of_the_same_bytes(root: Path, tally: Tally) -> None:
    put(root, [b"caf\xe9.md", b"d\xff.md", b"seen\xff.md"])
    (root / ".gitignore").write_bytes(b"caf\xe9.md\n[z-a]\xfe\nd\xff*\n\x80\x00\n")

    ran = call(root, ["index", ".", "--json"])

    assert sorted(entry["key"] for entry in ran.json["ignored"]) == ["caf\\xe9.md", "d\\xff.md"]
    assert ran.json["error"]["message"] == "seen\\xff.md: the name is not UTF-8"
    tally.tried(4)


def test_a_workspace_whose_own_name_no_text_holds_is_indexed_into_a_store_elsewhere(
    tmp_path: Path, tally: Tally
) -> None:
    root = Path(os.fsdecode(os.fsencode(tmp_path) + b"/w\xff"))
    (root / ".git").mkdir(parents=True)
    (root / "a.md").write_text(TEXT, encoding="utf-8")
    other = tmp_path / "other"
    (other / ".git").mkdir(parents=True)
    (other / "b.md").write_text(TEXT, encoding="utf-8")
    kept = {"SPECKIT_DB": str(tmp_path / "memory.db")}

    refused = call(root, ["index", ".", "--json"], {"SPECKIT_DB": ""})
    first, second = call(root, ["index", ".", "--json"], kept), call(other, ["index", ".", "--json"], kept)

    assert (refused.status, refused.json["error"]["code"]) == (2, "E014")
    assert "--db" in refused.json["error"]["actions"][0]
    assert (first.json["created"], second.json["created"]) == (["a.md"], ["b.md"])
    assert call(root, ["search", "quokka", "--json"], kept).status == 0
    assert second.json["absent"] == [], "the other workspace still has its file"
    tally.tried(2)


TEXTS = ["plain", "é", "\udcff", "a\udc80b", "\ud800", "\udfff\ud800", "\\xff", "\x1b\udcfe"]


@pytest.mark.parametrize("text", TEXTS)
def test_nothing_that_leaves_the_product_holds_half_a_character(text: str, tally: Tally) -> None:
    problem = Problem("E014", text, text, (text,), Where(text, 1, 1))
    degraded = {"part": text, "reason": text, "instead": text, "confidence_impact": text}
    data = {"rows": [{"key": text}], text: (text, 1, None)}
    reply = Reply(text, data, (text,), (degraded,), rows="rows", facts=text)

    made = [fit_to_budget(reply, "tool", 100, lambda texts: [len(one.encode()) for one in texts]).sent(1.0)]
    made.append(failure(SpeckitError.of([problem]), text, 1.0))

    for result in made:
        result.model_dump_json(by_alias=True)
    str(problem).encode()
    json.dumps(problem.as_json(), ensure_ascii=False).encode()
    json.dumps(sendable({text: [text, (text,)]}), ensure_ascii=False).encode()
    tally.tried()


@pytest.mark.parametrize("name", [*NO_TEXT, *HARMLESS])
def test_a_name_that_is_shown_can_be_told_from_what_it_was(name: bytes, tally: Tally) -> None:
    text = os.fsdecode(name)

    assert (displayable_name(text) == text) == (name in HARMLESS)
    displayable_name(text).encode()
    if b"\\" not in name:
        assert os.fsencode(original_name(displayable_name(text))) == name
    tally.tried()
