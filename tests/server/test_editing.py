"""Memories that agents and people write, change and read: over an MCP client on stdio, and by the console script."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from pathlib import Path
from typing import Any

import anyio
import embedding_service
import pytest
from mcp import Client

from tests.server.doors import COMMAND, call, environment, with_client
from tests.server.test_life import stored
from tests.server.test_mcp_stdio import calls

NOTE = "docs/note.md"
TEXT = (
    "---\n# who wrote this: Ada\ntitle: 'Old name'   # for now\ntrigger_phrases:\n    - one phrase\n"
    "    - two phrases\n\nteam: platform\nimportance_tier: normal\n---\n# Old name\n\nQuokkas are kept.  \n\n"
    "<!-- ANCHOR:state -->\nIt is warm.\n<!-- /ANCHOR:state -->\n\n## Next steps\n\nDo much.\n"
)


def put(root: Path, text: str = TEXT) -> Path:
    file = root / NOTE
    file.write_bytes(text.encode())
    assert call(root, ["index", "docs", "--json"]).status == 0
    return file


def indexed_again(root: Path) -> dict[str, Any]:
    ran = call(root, ["index", "docs", "memories", "--json"])
    return {name: ran.json[name] for name in ("created", "updated", "vanished")}


@pytest.mark.requirement("T8.file")
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_an_update_edits_the_front_matter_of_the_file_and_nothing_else(workspace: Path, newline: str) -> None:
    file = put(workspace, "\ufeff" + TEXT.replace("\n", newline))
    file.chmod(0o640)
    (updated, listed, found) = calls(
        workspace,
        (
            "memory_update",
            {"id": NOTE, "title": "New: name", "triggerPhrases": ["big cache", "a, b"], "importanceWeight": 0.95},
        ),
        ("memory_list", {"sortBy": "importance_weight", "limit": 1}),
        ("memory_match_triggers", {"prompt": "is the BIG  cache full?"}),
    )
    assert updated["data"]["changed"] == {
        "title": "New: name",
        "triggerPhrases": ["big cache", "a, b"],
        "importanceWeight": 0.95,
    }
    assert updated["data"]["was"]["triggerPhrases"] == ["one phrase", "two phrases"]
    assert listed["data"]["memories"][0]["title"] == "New: name"
    assert [row["key"] for row in found["data"]["results"]] == [NOTE]
    expected = TEXT.replace("title: 'Old name'   # for now\n", 'title: "New: name"   # for now\n')
    expected = expected.replace("    - one phrase\n    - two phrases\n", '    - big cache\n    - "a, b"\n')
    expected = expected.replace("normal\n---", "normal\nimportance_weight: 0.95\n---")
    assert file.read_bytes().decode() == "\ufeff" + expected.replace("\n", newline)
    assert file.stat().st_mode & 0o777 == 0o640
    assert not any(indexed_again(workspace).values())
    assert [path.name for path in file.parent.iterdir() if "speckit" in path.name or path.suffix == ".lock"] == []


@pytest.mark.requirement("T8")
def test_an_importance_that_orders_no_search_is_said_to_be_that(workspace: Path) -> None:
    put(workspace)
    (workspace / "weighed.yaml").write_text("pipeline: weighed\nextends: rrf\nfusion:\n  add: [importance]\n")
    asked = ("memory_update", {"id": NOTE, "importanceWeight": 0.9})
    moved = ("memory_update", {"id": NOTE, "importanceTier": "critical"})
    pinned = ("memory_update", {"id": NOTE, "importanceTier": "constitutional"})
    told = [bool(answer["hints"]) for answer in calls(workspace, asked, asked, moved, pinned)]
    assert told == [True, False, True, False]
    ran = call(workspace, ["update", NOTE, "--weight", "0.8"])
    assert "the ranking does not depend on importance: no step of the pipeline 'default' uses it" in ran.out
    weighed = call(
        workspace, ["update", NOTE, "--weight", "0.7"], {"SPECKIT_PIPELINE": str(workspace / "weighed.yaml")}
    )
    assert "importance:" not in weighed.ok().out


@pytest.mark.requirement("T8")
def test_what_orders_no_search_is_said_where_it_is_set(workspace: Path) -> None:
    put(workspace)
    uses = "importance", "validation", "encoding_intent"
    (workspace / "weighed.yaml").write_text(
        f"pipeline: weighed\nextends: default\nfusion: [{', '.join(f'{{use: {use}}}' for use in uses)}]\n"
    )
    asked: list[tuple[str, dict[str, Any]]] = [
        ("memory_save", {"content": "# Crates\n\nCrates are stacked by size.", "tier": "critical"}),
        ("memory_validate", {"id": NOTE, "wasUseful": True}),
        ("memory_search", {"query": "quokkas", "intent": "fix_bug"}),
    ]
    told = [" ".join(answer["hints"]) for answer in calls(workspace, *asked)]
    words = ("importance", "judgements of usefulness", "intent")
    for hints, what, use in zip(told, words, uses, strict=True):
        expected = (
            f"the ranking does not depend on {what}: no step of the pipeline 'default' uses it; `use: {use}` does"
        )
        assert expected in hints
    normal = ("memory_save", {"content": "# Shelves\n\nShelves are numbered.", "tier": "normal"})
    (plain, found) = calls(workspace, normal, ("memory_search", {"query": "quokkas"}))
    assert "not ordered" not in " ".join([*plain["hints"], *found["hints"]])
    for arguments in (
        ["save", "--content", "# Lids\n\nLids fit.", "--tier", "important"],
        ["validate", NOTE, "--useful"],
    ):
        assert "the ranking does not depend on" in " ".join(call(workspace, arguments).out.split())
        weighed = call(workspace, arguments, {"SPECKIT_PIPELINE": str(workspace / "weighed.yaml")})
        assert "not ordered" not in weighed.out


@pytest.mark.requirement("T8.refused")
def test_a_file_that_may_not_be_written_is_left_alone(workspace: Path) -> None:
    file = put(workspace)

    def refused(code: str, said: str) -> None:
        before = file.read_bytes()
        error = call(workspace, ["update", NOTE, "--tier", "critical", "--json"]).refused(
            code, 2 if code == "E100" else 1
        )
        assert said in error["message"]
        assert file.read_bytes() == before

    file.chmod(0o444)
    refused("E101", "read-only")
    file.chmod(0o644)
    for text in ("{title: Old}", "tier: [unclosed"):
        file.write_text(f"---\n{text}\n---\n# Old name\n\nQuokkas are kept, in {len(text)} places.\n")
        refused("E100", "changed since")
        assert call(workspace, ["index", "docs"]).status in (0, 1)
        refused("E101", "front matter")
    outside = workspace.parent / f"{workspace.name}-outside.md"
    outside.write_text("# Outside\n")
    file.unlink()
    file.symlink_to(outside)
    ran = call(workspace, ["update", NOTE, "--tier", "critical", "--json"])
    assert ran.json["error"]["code"] == "E014"
    assert outside.read_text() == "# Outside\n"


@pytest.mark.requirement("T8")
def test_wrong_values_of_an_update_are_told_all_at_once_and_change_nothing(workspace: Path) -> None:
    file = put(workspace)
    ran = call(
        workspace,
        ["update", NOTE, "--tier", "golden", "--weight", "3", "--trigger", "x" * 101, "--title", " ", "--json"],
    ).ended(2)
    assert [problem["code"] for problem in ran.json["errors"]] == ["E030", "E032", "E032"]
    unknown, nothing, wrong = calls(
        workspace,
        ("memory_update", {"id": "docs/nte.md", "title": "x"}),
        ("memory_update", {"id": NOTE}),
        ("memory_update", {"id": NOTE, "importanceWeight": 2}),
    )
    assert unknown["error"]["code"] == "E080"
    assert NOTE in unknown["error"]["message"]
    assert nothing["error"]["code"] == "E031"
    assert wrong["error"]["code"] == "E032"
    assert file.read_bytes() == TEXT.encode()


@pytest.mark.requirement("T4.content")
def test_content_becomes_a_file_that_people_can_read_and_is_never_written_over_another(workspace: Path) -> None:
    wish = {
        "content": "We chose SQLite because its log survives a crash.",
        "title": "Use: SQLite/WAL!",
        "tier": "important",
        "triggerPhrases": ["which database"],
    }
    preview, first, second, found = calls(
        workspace,
        ("memory_save", {**wish, "dryRun": True}),
        ("memory_save", wish),
        ("memory_save", {**wish, "content": "Another text about other things, wallabies among them."}),
        ("memory_search", {"query": "log survives a crash", "limit": 1}),
    )
    assert [each["data"]["key"] for each in (preview, first)] == ["memories/use-sqlite-wal.md"] * 2
    assert preview["data"]["outcome"] == "dry_run"
    assert second["data"]["key"] == "memories/use-sqlite-wal-2.md"
    assert found["data"]["results"][0]["key"] == "memories/use-sqlite-wal.md"
    assert found["data"]["results"][0]["tier"] == "important"
    text = (workspace / "memories/use-sqlite-wal.md").read_text()
    assert text.startswith(
        '---\ntitle: "Use: SQLite/WAL!"\ntrigger_phrases: [which database]\nimportance_tier: important\n'
    )
    assert text.endswith("---\n# Use: SQLite/WAL!\n\nWe chose SQLite because its log survives a crash.\n")
    assert not any(indexed_again(workspace).values())


@pytest.mark.requirement("T4.content")
def test_content_that_cannot_be_written_leaves_no_file(workspace: Path) -> None:
    wishes: list[tuple[dict[str, Any], str]] = [
        ({"folder": "../out"}, "E014"),
        ({"folder": "/etc"}, "E014"),
        ({"folder": ".git/hooks"}, "E014"),
        ({"folder": "a\0b"}, "E014"),
        ({"filePath": "docs/fusion.md"}, "E101"),
        ({"filePath": "docs/run.sh"}, "E014"),
        ({"content": "   \n"}, "E030"),
        ({"content": "<!-- ANCHOR:open -->\nNo end."}, "E091"),
        ({"title": "x" * 501}, "E032"),
        ({"edit": "append"}, "E031"),
        ({"section": "x"}, "E031"),
    ]
    before = sorted(workspace.rglob("*.md"))
    answers = calls(workspace, *(("memory_save", {"content": "A text to keep.", **wish}) for wish, _ in wishes))
    assert [answer["error"]["code"] for answer in answers] == [code for _, code in wishes]
    assert sorted(workspace.rglob("*.md")) == before


@pytest.mark.requirement("T4.edited", "A7")
def test_sections_are_read_replaced_and_added_to_in_the_file(workspace: Path) -> None:
    file = put(workspace)
    replaced, appended, ended, absent, read, part = calls(
        workspace,
        ("memory_save", {"filePath": NOTE, "content": "It is cold.", "edit": "replace", "section": "state"}),
        ("memory_save", {"filePath": NOTE, "content": "Do more.", "edit": "append", "section": "next STEPS"}),
        ("memory_save", {"filePath": NOTE, "content": "The end.", "edit": "append"}),
        ("memory_save", {"filePath": NOTE, "content": "x", "edit": "append", "section": "absent"}),
        ("memory_search", {"key": NOTE}),
        ("memory_search", {"key": NOTE, "anchors": ["Next steps"]}),
    )
    assert [each["data"]["outcome"] for each in (replaced, appended, ended)] == ["updated"] * 3
    assert absent["error"]["code"] == "E104"
    body = TEXT.replace("It is warm.", "It is cold.").replace("Do much.\n", "Do much.\n\nDo more.\n\nThe end.\n")
    assert file.read_text() == body
    [row] = read["data"]["results"]
    assert row["memory_text"] == body.partition("---\n# Old")[2].join(["# Old", ""]).rstrip("\n")
    assert row["lines"] == [11, 25]
    assert read["data"]["sections"] == ["state", "Old name", "Next steps"]
    assert part["data"]["results"][0]["memory_text"] == "Do much.\n\nDo more.\n\nThe end."
    shown = call(workspace, ["show", NOTE, "--section", "state", "--json"])
    assert (shown.json["text"], shown.json["lines"]) == ("It is cold.", [16, 16])


@pytest.mark.requirement("M2", "T28.chosen")
def test_whoever_reads_a_memory_by_its_key_has_opened_it_and_it_is_kept_better(workspace: Path) -> None:
    put(workspace)
    assert call(workspace, ["show", NOTE, "--section", "state"]).status == 0
    calls(
        workspace,
        ("memory_search", {"query": "tone", "limit": 10}),
        ("memory_search", {"key": "docs/fusion.md"}),
        ("memory_search", {"key": "docs/tone.md", "fromLine": 1_000}),
    )
    reviewed = stored(workspace, "SELECT key, review_count FROM memories WHERE review_count > 0 ORDER BY key")
    assert reviewed == [("docs/fusion.md", 1), (NOTE, 1)]


@pytest.mark.requirement("T4", "T8")
@pytest.mark.parametrize(
    "command", [["update", NOTE, "--title", "New"], ["save", "--title", "Voles", "--content", "Dig."]]
)
def test_whoever_writes_into_a_folder_removes_what_killed_processes_left_there(
    workspace: Path, command: list[str]
) -> None:
    put(workspace)
    folder = workspace / ("docs" if command[0] == "update" else "memories")
    folder.mkdir(exist_ok=True)
    names = {".speckit-0123456789abcdef.tmp": 2 * 3600, ".speckit-fedcba9876543210.tmp": 60, ".speckit-mine.tmp": 7200}
    for name, age in names.items():
        (folder / name).write_text("half of a")
        os.utime(folder / name, (time.time() - age, time.time() - age))
    assert call(workspace, command).status == 0
    assert {file.name for file in folder.glob(".speckit-*")} == set(list(names)[1:])


@pytest.mark.requirement("M2", "T28.chosen")
@pytest.mark.usefixtures("processes")
def test_what_a_short_session_reads_counts_though_the_server_is_still_warming_up(workspace: Path) -> None:
    """A service that lets the first question wait, as a slow one does, keeps the warming up from ending."""
    over = threading.Event()

    def waits(service: embedding_service.Service, body: dict[str, Any]) -> embedding_service.Answer | None:
        del service, body
        over.wait(60)
        return None

    async def read(client: Client) -> None:
        for _ in range(1000):
            if len(service.requests) > asked:
                break
            await anyio.sleep(0.02)
        assert not (await client.call_tool("memory_search", {"key": NOTE})).is_error

    (workspace / NOTE).write_text(TEXT)
    with embedding_service.running() as service:
        assert call(workspace, ["index", "docs"], env=service.environ).status == 0
        asked, service.always = len(service.requests), waits
        with_client(workspace, read, **service.environ)
        assert stored(workspace, "SELECT key FROM memories WHERE review_count > 0") == [(NOTE,)]
        over.set()


@pytest.mark.requirement("A7", "T24")
def test_a_long_memory_is_read_to_its_end_in_pieces_within_the_budget(workspace: Path) -> None:
    lines = [f"Line {number} of many > tells about quokkas.\n" for number in range(1, 900)]
    put(workspace, "# Long\n\n" + "\n".join(lines))

    async def read(client: Client) -> list[str]:
        got: list[str] = []
        line = 1
        for _ in range(20):
            answer = (await client.call_tool("memory_search", {"key": NOTE, "fromLine": line})).structured_content
            assert isinstance(answer, dict)
            [row] = answer["data"]["results"]
            assert answer["meta"]["token_count"] <= answer["meta"]["token_budget"] == 4000
            assert row["lines"][0] == line
            got.append(row["memory_text"])
            if not any("fromLine=" in hint for hint in answer["hints"]):
                break
            line = row["lines"][1] + 1
        return got

    got = with_client(workspace, read)
    assert len(got) > 2
    assert "\n".join(got) == ("# Long\n\n" + "\n".join(lines)).rstrip("\n")


@pytest.mark.requirement("T3.whole", "T3.attention")
def test_triggers_match_whole_phrases_and_what_the_session_attends_to_comes_first(workspace: Path) -> None:
    for name in ("a", "b"):
        text = f"---\ntrigger_phrases: [quokka cache, café]\n---\n# {name}\n\nText of {name}.\n> # not a heading\n"
        (workspace / "docs" / f"{name}.md").write_text(text)
    assert call(workspace, ["index", "docs"]).status == 0
    prompt = {"prompt": "Why is the Quokka cache at the cafe\u0301?", "session_id": "s"}
    plain, part, noted, first, later, without = calls(
        workspace,
        ("memory_match_triggers", {"prompt": prompt["prompt"]}),
        ("memory_match_triggers", {"prompt": "the quokka caches of cafés"}),
        ("memory_match_triggers", {"prompt": "quokka cache", "session_id": "s", "limit": 1, "turnNumber": 1}),
        ("memory_match_triggers", {**prompt, "turnNumber": 2}),
        ("memory_match_triggers", {**prompt, "turnNumber": 40}),
        ("memory_match_triggers", {**prompt, "include_cognitive": False}),
    )
    rows = plain["data"]["results"]
    assert [(row["key"], row["phrases"]) for row in rows] == [
        (f"docs/{name}.md", ["quokka cache", "café"]) for name in ("a", "b")
    ]
    assert "attention" not in rows[0]
    assert part["data"]["total"] == 0
    assert (noted["data"]["attended"], noted["data"]["results"][0]["attention"]) == (0, 0.0)
    assert first["data"]["attended"] == 1
    assert [row["attention"] for row in first["data"]["results"]] == [0.98, 0.0]
    assert first["data"]["results"][0]["score"] > first["data"]["results"][1]["score"]
    assert later["data"]["results"][0]["attention"] < 0.5
    assert "attention" not in without["data"]["results"][0]


@pytest.mark.requirement("T8.file")
@pytest.mark.usefixtures("processes")
def test_an_update_that_is_killed_leaves_the_old_file_or_the_new_one(workspace: Path) -> None:
    file = put(workspace)
    for number in range(6):
        before = file.read_text()
        renaming: list[str | Path] = [COMMAND, "update", NOTE, "--title", f"Name {number}"]
        with subprocess.Popen(renaming, env=environment(workspace), cwd=workspace) as ran:
            try:
                ran.wait(0.4 * (number + 1))
            except subprocess.TimeoutExpired:
                ran.kill()
        after = file.read_text()
        assert after == before or f"title: Name {number}   # for now\n" in after
        assert after.rpartition("\n---\n")[2] == TEXT.rpartition("\n---\n")[2]
    assert call(workspace, ["index", "docs"]).status == 0
    assert call(workspace, ["update", NOTE, "--title", "Last", "--json"]).json["changed"]["title"] == "Last"


@pytest.mark.requirement("T8.file")
def test_what_is_no_markdown_gets_no_front_matter(workspace: Path) -> None:
    page, manual = workspace / "docs" / "page.html", workspace / "docs" / "manual.rst"
    page.write_text("<h1>Page</h1><p>Pelicans fly.</p>\n")
    manual.write_text("Manual\n======\n\nZebras run.\n")
    assert call(workspace, ["index", "docs/page.html", "docs/manual.rst"]).status == 0
    before = page.read_text(), manual.read_text()
    for arguments in (
        ["update", "docs/page.html", "--title", "New"],
        ["update", "docs/manual.rst", "--tier", "important"],
        ["save", "docs/page.html", "--content", "More.", "--append"],
    ):
        call(workspace, [*arguments, "--json"]).refused("E101", 1)
    assert (page.read_text(), manual.read_text()) == before
    assert call(workspace, ["save", "docs/manual.rst", "--content", "Gnus too.", "--append"]).status == 0
    assert manual.read_text() == f"{before[1]}\nGnus too.\n"


@pytest.mark.requirement("T4")
def test_the_name_of_a_new_file_never_holds_the_secret_of_its_title(workspace: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" * 2
    call(workspace, ["save", "--content", "It opens the door.", "--title", f"Deploy {token}", "--json"]).ok()
    [name] = [file.name for file in (workspace / "memories").iterdir()]
    assert name == "deploy-redacted-github-token.md"


@pytest.mark.requirement("T4")
def test_a_file_that_is_there_is_not_made_and_what_can_be_done_is_told(workspace: Path) -> None:
    file = put(workspace)
    refused = call(workspace, ["save", NOTE, "--content", "Another text."])
    assert (refused.status, file.read_bytes()) == (1, TEXT.encode())
    assert "append to it" in refused.err


@pytest.mark.requirement("T4.content", "I11")
@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("We decided to keep SQLite because every other store needs a server that somebody must run everywhere.\n",
         "We decided to keep SQLite"),
        ("- **Note**: the `flush` fails. Nobody knows why.\n", "Note: the flush fails"),
        ("検索の設計を決めた。索引を測った。\n", "検索の設計を決めた"),
    ],
)  # fmt: skip
def test_a_text_without_a_title_is_called_after_what_it_says_first(workspace: Path, text: str, title: str) -> None:
    [saved] = calls(workspace, ("memory_save", {"content": text}))
    assert call(workspace, ["show", saved["data"]["key"], "--json"]).json["title"] == title


@pytest.mark.requirement("T4.edited")
@pytest.mark.parametrize(
    "hidden",
    [
        "<!--\n## Next steps\n\nNot these.\n-->",
        "<pre>\n# a comment\n\n## Next steps\n</pre>",
        "    ## Next steps",
        "- ```\n  ## Next steps\n  ```",
        "<details>\n## Next steps\n</details>",
        "    <!-- ANCHOR:Next steps -->\n    <!-- /ANCHOR:Next steps -->",
    ],
)
def test_a_section_is_edited_where_a_reader_of_the_page_sees_it(workspace: Path, hidden: str) -> None:
    text = f"# Note\n\nQuokkas.\n\n{hidden}\n\nMore.\n\n## Next steps\n\nDo much.\n\n## Last\n\nEnd.  \n\n\n"
    file = put(workspace, text)
    [saved] = calls(
        workspace,
        ("memory_save", {"filePath": NOTE, "content": "Do more.", "edit": "replace", "section": "Next steps"}),
    )
    assert saved["data"]["outcome"] == "updated"
    assert file.read_text() == text.replace("Do much.", "Do more.")


@pytest.mark.requirement("T4.edited")
def test_an_edit_whose_place_is_not_certain_is_refused_and_changes_nothing(workspace: Path) -> None:
    text = "# Log\n\n## 2.0\n\n### Added\n\na\n\n## 1.0\n\n### Added\n\nb\n\n## Open\n\n```\nopen\n"
    file = put(workspace, text)
    wishes = [
        {"edit": "replace", "section": "Added", "content": "c"},
        {"edit": "replace", "section": "2.0", "content": "<!-- not closed"},
        {"edit": "append", "section": "Open", "content": "c"},
        {"edit": "append", "content": "c"},
    ]
    answers = calls(workspace, *(("memory_save", {"filePath": NOTE, **wish}) for wish in wishes))
    assert [answer["error"]["code"] for answer in answers] == ["E101"] * 4
    assert file.read_text() == text


FRONT = [
    ("\ufeff---\ntitle: Herons\nimportance_tier: important\ntriggers: [wading birds]\n---\nThey wade.\n", "---\n"),
    ("\n  \n---\ntitle: Herons\nimportance_tier: important\ntriggers: [wading birds]\n---\nThey wade.\n", "---\n"),
    (
        '+++\ntitle = "Herons"\ntier = "important"\ntriggers = ["wading birds"]\n[more]\na = 1\n+++\nThey wade.\n',
        "+++\n",
    ),
    ("---\nimportance_tier: important\nbad: a: b\ntitle: Herons\ntriggers: [wading birds]\n---\nThey wade.\n", "---\n"),
    ("---\ntitle: Herons\nimportance_tier: important\ntriggers: [wading birds]\n---   \n\nThey wade.\n---", "---\n"),
]
"""Documents that say the same of themselves, and the line that their front matter begins and ends with."""


@pytest.mark.requirement("I1.front_matter", "T4.content", "T8.file")
@pytest.mark.parametrize(("text", "fence"), FRONT)
def test_front_matter_is_read_at_every_door_and_never_gets_a_second_block(
    workspace: Path, text: str, fence: str
) -> None:
    put(workspace, text)
    [saved, _, updated, listed] = calls(
        workspace,
        ("memory_save", {"content": text.replace("wade", "stand"), "title": "Herons stand", "force": True}),
        ("memory_list", {"limit": 1}),
        ("memory_update", {"id": NOTE, "title": "Herons wade", "importanceWeight": 0.9}),
        ("memory_list", {"sortBy": "importance_weight", "limit": 20}),
    )
    piped = call(
        workspace, ["save", "--content", "-", "--force", "--json"], stdin=text.replace("wade", "sleep").encode()
    ).ok()
    assert updated["data"]["was"] == {"title": "Herons", "importanceWeight": 0.7} | updated["data"]["was"]
    for key, title in ((NOTE, "Herons wade"), (saved["data"]["key"], "Herons stand"), (piped.json["key"], "Herons")):
        shown = call(workspace, ["show", key, "--json"]).json
        assert (shown["title"], shown["tier"]) == (title, "important")
        written = (workspace / key).read_text(encoding="utf-8-sig").lstrip()
        assert written.startswith(fence)
        assert len([line for line in written.splitlines() if line.rstrip() == fence.strip()]) == text.count(
            fence.strip()
        )
    matched = calls(workspace, ("memory_match_triggers", {"prompt": "which wading birds?"}))[0]["data"]["results"]
    assert len(matched) == 3
    assert listed["data"]["memories"][0]["title"] == "Herons wade"


@pytest.mark.requirement("I1.front_matter")
def test_a_broken_line_of_front_matter_is_told_and_the_others_count(workspace: Path) -> None:
    file = workspace / NOTE
    file.write_text("---\ntitle: Re: herons\ntier: critical\nlost: a: b\n  - c\ntriggers: [wade]\n---\nThey wade.\n")
    saved = call(workspace, ["save", NOTE, "--json"]).ok()
    assert [(each["code"], each["where"]["line"]) for each in saved.json["problems"]] == [("E099", 2), ("E099", 4)]
    shown = call(workspace, ["show", NOTE, "--json"]).json
    assert (shown["title"], shown["tier"]) == ("Re: herons", "critical")
    assert call(workspace, ["update", NOTE, "--tier", "normal"]).status == 0
    assert file.read_text().splitlines()[1:6] == [
        "title: Re: herons", "tier: normal", "lost: a: b", "  - c", "triggers: [wade]",
    ]  # fmt: skip
    assert call(workspace, ["update", NOTE, "--title", "Re: herons"]).status == 0
    assert file.read_text().splitlines()[1] == 'title: "Re: herons"'


@pytest.mark.requirement("I1.front_matter")
@pytest.mark.parametrize(
    "text", ["3.10", "007", "0x1F", "1e3", "yes", "2024-01-01", "1_000", "true", ".inf", "12:30", "1e999"]
)
def test_texts_of_front_matter_stay_as_they_are_written(workspace: Path, text: str) -> None:
    (workspace / NOTE).write_text(f"---\ntitle: {text}\ntriggers: [{text}, null]\n---\nThey wade.\n")
    saved = call(workspace, ["save", NOTE, "--json"])
    assert (saved.status, saved.json["problems"]) == (0, [])
    assert call(workspace, ["show", NOTE, "--json"]).json["title"] == text
    [matched] = calls(workspace, ("memory_match_triggers", {"prompt": f"what is {text} or null here"}))
    assert [row["phrases"] for row in matched["data"]["results"]] == [[text, "null"]]


@pytest.mark.requirement("T4.content")
@pytest.mark.parametrize(
    "text", ["---\ntitle: Herons\n\nThey wade.\n", "+++\ntitle = \n+++\nThey wade.\n", "---\ntier: a: b\n---\nx\n"]
)
def test_front_matter_that_cannot_be_read_gets_no_second_block(workspace: Path, text: str) -> None:
    [saved] = calls(workspace, ("memory_save", {"content": text, "title": "Herons"}))
    assert saved["error"]["code"] == "E101"
    assert not (workspace / "memories").exists()


@pytest.mark.requirement("T4.content", "I1.encodings")
@pytest.mark.parametrize(
    ("terminal", "encoding"),
    [("cp1252", "cp1252"), ("latin-1", "latin-1"), ("cp1252", "utf-8"), ("utf-8", "utf-16"), ("cp1252", "utf-8-sig"),
     ("iso8859-15", "iso8859-15"), ("koi8-r", "utf-16")],
)  # fmt: skip
def test_what_is_piped_is_read_in_the_encoding_that_it_has(workspace: Path, terminal: str, encoding: str) -> None:
    given = "The café in Zürich is closed.\n".encode(encoding)
    saved = call(workspace, ["save", "--content", "-", "--json"], {"PYTHONIOENCODING": terminal}, stdin=given).ok()
    assert (workspace / saved.json["key"]).read_text().endswith("The café in Zürich is closed.\n")


@pytest.mark.requirement("T4.content", "I1.encodings")
@pytest.mark.parametrize("terminal", ["utf-8", "ascii", "cp950", "cp1252", "latin-1"])
@pytest.mark.parametrize("encoding", ["cp950", "utf-16-le", "utf-16-be", "utf-32", "cp1252", "latin-1"])
def test_what_is_piped_is_never_stored_as_something_else(workspace: Path, terminal: str, encoding: str) -> None:
    texts = {"cp1252": "The ‘café’ is closed.\n", "latin-1": "café\n"}
    text = texts.get(encoding, "檢索的設計：關閉\n")
    saved = call(
        workspace, ["save", "--content", "-", "--json"], {"PYTHONIOENCODING": terminal}, stdin=text.encode(encoding)
    )
    if saved.status:
        assert saved.json["error"]["code"] == "E012"
        assert not (workspace / "memories").exists()
    else:
        assert terminal == encoding or {terminal, encoding} == {"cp1252", "latin-1"}
        assert (workspace / saved.json["key"]).read_text().endswith(text)


@pytest.mark.requirement("T4.content", "T8")
@pytest.mark.parametrize(
    "arguments",
    [["save", "--content", "caf\udce9"], ["save", "--content", "x", "--title", "\udce9"],
     ["save", "--content", "x", "--trigger", "\udce9"],
     ["update", "docs/tone.md", "--title", "caf\udce9"]],
)  # fmt: skip
def test_an_argument_that_is_no_text_is_refused(workspace: Path, arguments: list[str]) -> None:
    refused = call(workspace, [*arguments, "--json"])
    assert refused.json["error"]["code"] == "E012"
    assert arguments[-2] in refused.json["error"]["message"]


@pytest.mark.requirement("T4.content")
@pytest.mark.usefixtures("processes")
def test_a_locale_that_cannot_spell_a_title_keeps_nobody_from_writing_it(workspace: Path) -> None:
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    async def save(client: Client) -> Any:
        saved = await client.call_tool("memory_save", {"content": "They wade.", "title": "Café 検索"})
        return saved.structured_content

    assert with_client(workspace, save, **plain)["data"]["key"] == "memories/café-検索.md"
    shown = call(workspace, ["save", "--content", "They stand.", "--title", "Écluse", "--json"], plain)
    assert shown.json["key"] == "memories/écluse.md"
    again = call(workspace, ["index", "docs", "memories", "--json"], plain).json
    assert (again["created"], again["deleted"]) == ([], [])
