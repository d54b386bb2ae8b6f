"""\"Where were we?\", asked by an agent: handovers answer it, and not the words."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest
from mcp import Client

from tests.server.doors import DOCUMENTS, call, with_client
from tests.server.test_mcp_stdio import calls

DAY = 86_400
NOW = 1_700_000_000
HANDOVER = """# {title}

About {title}.

<!-- ANCHOR:state -->
The {subject} is half done.
<!-- /ANCHOR:state -->

<!-- ANCHOR:decisions -->
We keep the {subject}.
<!-- /ANCHOR:decisions -->

<!-- ANCHOR:next-steps -->
Finish the {subject}, then measure it.
<!-- /ANCHOR:next-steps -->
"""
FILES = {
    # newest first: its age in days, and its text
    "specs/7/log.md": (0, "# Resume, continue, where were we\n\nWhat is next? We resume and continue.\n"),
    "specs/7/decision.md": (1, "# Format\n\n<!-- ANCHOR:summary -->\nProtocol buffers.\n<!-- /ANCHOR:summary -->\n"),
    "specs/7/handover.md": (2, HANDOVER.format(title="Importer", subject="importer")),
    "specs/5/handover.md": (9, HANDOVER.format(title="Backups", subject="backup tool")),
    "specs/rules.md": (
        9, "---\nimportance_tier: constitutional\n---\n# Rules\n\nNever push on Fridays.\n",
    ),
}  # fmt: skip
LONG = "Filler about the exporter that nobody needs to read again. " * 60


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("resume")
    for name, (age, text) in FILES.items():
        file = root / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        os.utime(file, (NOW - age * DAY, NOW - age * DAY))
    assert call(root, ["index", "specs"]).status == 0
    return root


def resumed(root: Path, *questions: dict[str, Any], **more: str) -> list[dict[str, Any]]:
    return [answer["data"] for answer in calls(root, *(("memory_context", asked) for asked in questions), **more)]


def keys(data: dict[str, Any]) -> list[str]:
    return [row["key"] for row in data["results"]]


@pytest.mark.requirement("T1", "A7")
@pytest.mark.parametrize("text", ["where were we?", "resume", "continue please", "what's next", "xyzzy"])
def test_where_were_we_is_answered_by_the_latest_handover_whatever_the_words(project: Path, text: str) -> None:
    [data] = resumed(project, {"input": text, "mode": "resume"})
    # the log holds all these words and no section; rules are constitutional, and resuming work is no search;
    # a document with a summary alone was not written to hand work over
    assert keys(data) == ["specs/7/handover.md", "specs/5/handover.md"]
    first = data["results"][0]
    assert first["memory_text"] == (
        "[state]\nThe importer is half done.\n\n[next-steps]\nFinish the importer, then measure it."
    )
    assert first["notes"]["sections"] == ["state", "next-steps"]


@pytest.mark.requirement("T1")
def test_the_mode_is_chosen_for_who_asks_to_go_on(project: Path) -> None:
    asked = {"input": "Where were we with the importer?"}
    chosen, named = calls(project, ("memory_context", asked), ("memory_context", asked | {"mode": "resume"}))
    assert (chosen["data"]["mode"], keys(chosen["data"])[0]) == ("resume", "specs/7/handover.md")
    assert chosen["hints"] == named["hints"] == []
    [alone] = calls(project, ("memory_context", {"input": "Where were we?"}))
    assert alone["hints"] == ["mode=focused searches for the words instead"]


@pytest.mark.requirement("T1")
def test_words_that_name_the_work_choose_the_handover(project: Path) -> None:
    [data] = resumed(project, {"input": "continue with the backups", "mode": "resume"})
    assert keys(data)[0] == "specs/5/handover.md"


@pytest.mark.requirement("T1", "A7")
def test_a_folder_and_named_sections_narrow_what_is_resumed(project: Path) -> None:
    folder, sections = resumed(
        project,
        {"input": "where were we?", "mode": "resume", "specFolder": "specs/5"},
        {"input": "where were we?", "mode": "resume", "anchors": ["decisions"]},
    )
    assert keys(folder) == ["specs/5/handover.md"]
    assert keys(sections) == ["specs/7/handover.md", "specs/5/handover.md"]
    assert sections["results"][0]["memory_text"] == "[decisions]\nWe keep the importer."


@pytest.mark.requirement("T1")
def test_resuming_twice_in_a_session_gives_the_same_and_does_not_hide_it_from_a_search(project: Path) -> None:
    asked = {"input": "where were we?", "mode": "resume", "sessionId": "s"}
    first, second = resumed(project, asked, asked)
    assert keys(first) == keys(second) != []
    [found] = calls(project, ("memory_search", {"query": "importer", "sessionId": "s", "limit": 2}))
    assert "specs/7/handover.md" in keys(found["data"])


@pytest.mark.requirement("T1")
def test_what_a_session_was_sent_is_resumed_first_among_equals(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / f"{name}.md").write_text(HANDOVER.format(title=name, subject=name))
        os.utime(tmp_path / f"{name}.md", (NOW, NOW))
    assert call(tmp_path, ["index", "."]).status == 0
    asked = {"input": "where were we?", "mode": "resume"}
    search = ("memory_search", {"query": "two", "sessionId": "s", "limit": 1})
    before, found, of_session, of_other = calls(
        tmp_path, ("memory_context", asked), search, ("memory_context", asked | {"sessionId": "s"}),
        ("memory_context", asked | {"sessionId": "t"}),
    )  # fmt: skip
    assert keys(found["data"]) == ["two.md"]
    assert [keys(answer["data"]) for answer in (before, of_session, of_other)] == [
        ["one.md", "two.md"], ["two.md", "one.md"], ["one.md", "two.md"],
    ]  # fmt: skip


@pytest.mark.requirement("T1", "I5")
def test_a_long_handover_is_resumed_by_its_sections_too(tmp_path: Path) -> None:
    text = HANDOVER.format(title="Exporter", subject="exporter").replace("About", f"{LONG}\n\nAbout")
    (tmp_path / "long.md").write_text(text)
    assert call(tmp_path, ["index", "."]).status == 0
    [data] = resumed(tmp_path, {"input": "where were we?", "mode": "resume"})
    [row] = data["results"]
    assert row["notes"]["sections"] == ["state", "next-steps"]
    assert "The exporter is half done." in row["memory_text"]
    assert "Filler" not in row["memory_text"]


@pytest.mark.requirement("T1", "T24")
def test_the_latest_handover_is_whole_before_an_older_one_is_begun(tmp_path: Path) -> None:
    for age, name in enumerate(("new", "old")):
        text = HANDOVER.format(title=name, subject=name).replace(
            "is half done", "is half done. " + "Words of it. " * 100
        )
        (tmp_path / f"{name}.md").write_text(text)
        os.utime(tmp_path / f"{name}.md", (NOW - age * DAY, NOW - age * DAY))
    assert call(tmp_path, ["index", "."]).status == 0
    [answer] = calls(tmp_path, ("memory_context", {"input": "where were we?", "mode": "resume"}))
    assert keys(answer["data"])[0] == "new.md"
    assert answer["data"]["results"][0]["memory_text"].endswith("Finish the new, then measure it.")


@pytest.mark.requirement("T1")
def test_without_handovers_the_words_are_searched_and_the_answer_says_so(workspace: Path) -> None:
    [answer] = calls(workspace, ("memory_context", {"input": "continue with the backups", "mode": "resume"}))
    assert keys(answer["data"])[0] == "docs/storage/backup.md"
    assert answer["hints"][0].startswith("No handover yet. Changed last: docs/")


@pytest.mark.requirement("T1.none")
def test_without_handovers_and_words_a_sentence_says_so_and_what_was_changed_last(workspace: Path) -> None:
    ages = {"docs/tone.md": 0, "docs/storage/wal.md": 3 * 3600, "docs/cjk.md": DAY}
    for name, text in DOCUMENTS.items():
        (workspace / name).write_text(f"{text}\nChanged.\n")
        changed = time.time() - ages.get(name, 9 * DAY)
        os.utime(workspace / name, (changed, changed))
    sentence = (
        "No handover yet. Changed last: docs/tone.md (now), docs/storage/wal.md (3 hours ago), docs/cjk.md (1 day ago)"
    )
    _, answer, resume, empty = calls(
        workspace,
        ("memory_index_scan", {}),
        ("memory_context", {"input": "where were we?"}),
        ("memory_context", {"input": "continue", "mode": "resume"}),
        ("memory_context", {"input": "where were we?", "specFolder": "nowhere"}),
    )
    for each in (answer, resume):
        assert (each["summary"], each["data"]["results"], each["hints"]) == (sentence, [], [])
        assert each["meta"]["token_count"] <= 60
    assert empty["data"]["results"] == []
    assert empty["summary"].startswith("no memory is in a folder 'nowhere'")
    shown = call(workspace, ["search", "where were we?", "--mode", "resume"])
    assert " ".join(shown.out.split()).startswith(sentence)


@pytest.mark.requirement("T1.none")
def test_the_sentence_names_fewer_memories_where_their_keys_are_long(tmp_path: Path) -> None:
    for number in range(3):
        name = f"docs/a-folder-of-some-length/the-{number}-memory-whose-name-tells-all-about-it.md"
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(f"# Note {number}\n\nText {number}.\n")
    assert call(tmp_path, ["index", "."]).status == 0
    [answer] = calls(tmp_path, ("memory_context", {"input": "where were we?"}))
    assert answer["summary"].startswith("No handover yet.")
    assert answer["summary"].count(".md") < 3
    assert answer["meta"]["token_count"] <= 60


HEADED = "# {title}\n\n{first}\n\nThe parser fails on tabs.\n\n{second}\n\nMend the tabs.\n"
OTHERS = {
    "README.md": "# Parser\n\n## Summary\n\nIt parses.\n\n## Status\n\nBeta.\n\n## TODO\n\n- Tabs.\n",
    "specs/3/spec.md": "# Tabs\n\n## Summary\n\nTabs.\n\n## Current state\n\nNone.\n\n## Next steps\n\nReview.\n",
    "docs/adr/4.md": "# Use tabs\n\n## Status\n\nAccepted.\n\n## Summary\n\nWe do.\n\n## Open questions\n\nNone.\n",
    "docs/guide.md": "# Guide to tabs\n\n## Overview\n\nUse them.\n\n## Next steps\n\nRead on.\n",
}


@pytest.mark.requirement("T1.headings")
@pytest.mark.parametrize(
    ("name", "title", "first", "second", "sections"),
    [
        ("hand-over-2026-03-01.md", "Parser", "## Where we stopped", "### Next", ["state", "next-steps"]),
        ("session-notes.md", "Notes", "## Status", "## TODO", ["state", "next-steps"]),
        ("notes/parser_handoff.md", "Parser", "## 1. CURRENT STATE:", "## 2) Open Questions", ["state", "blockers"]),
        ("hand-over.md", "Parser", "**Current state:**", "__Next Steps__", ["state", "next-steps"]),
        ("notes/9.md", "Hand-over: the parser", "## Status: half done", "## Blockers & risks", ["state", "blockers"]),
        ("notes/9.md", "Parser", "## \U0001f6a7 In progress", "## Next steps for Friday", ["state", "next-steps"]),
        ("notes/9.md", "---\ntags: [hand-over]\n---\n# Parser", "## Done", "## Details", ["state"]),
        ("notes/9.md", "---\ncontextType: handover\n---\n# Parser", "## Details", "## To do", ["next-steps"]),
        ("handovers/2026-03-01.md", "Parser", "## Details", "## Waiting for", ["blockers"]),
        ("hand-over.md", "Parser", "Some words.", "Others.", ["state"]),
    ],
)
def test_a_handover_is_known_by_its_headings_or_by_what_it_is_called(
    tmp_path: Path, name: str, title: str, first: str, second: str, sections: list[str]
) -> None:
    text = HEADED.format(title=title, first=first, second=second).replace("# ---\n", "---\n", 1)
    for file, body in (OTHERS | {name: text}).items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(body)
    call(tmp_path, ["index", "."])  # contextType is no kind of context, and that is said
    [data] = resumed(tmp_path, {"input": "where were we?"})
    assert keys(data) == [name]
    assert data["results"][0]["notes"]["sections"] == sections


@pytest.mark.requirement("T1.none")
def test_documents_of_other_forms_are_no_handovers_for_a_summary_or_a_status(tmp_path: Path) -> None:
    for file, body in OTHERS.items():
        (tmp_path / file).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / file).write_text(body)
    assert call(tmp_path, ["index", "."]).status == 0
    [answer] = calls(tmp_path, ("memory_context", {"input": "what's next?"}))
    assert answer["summary"].startswith("No handover yet.")
    assert answer["data"]["results"] == []


@pytest.mark.requirement("T1.words")
@pytest.mark.parametrize(
    "text",
    ["continue with the rate limits", "where were we with the rate limits?", "resume work on rate limits",
     "pick up the rate limits again"],
)  # fmt: skip
def test_other_words_are_searched_beside_the_handover(tmp_path: Path, text: str) -> None:
    (tmp_path / "limits.md").write_text("# Rate limits\n\nRate limits are ten requests a second.\n")
    (tmp_path / "hand-over.md").write_text(HANDOVER.format(title="Tabs", subject="parser"))
    assert call(tmp_path, ["index", "."]).status == 0
    [silent] = calls(tmp_path, ("memory_context", {"input": text}))
    assert keys(silent["data"])[0] == "limits.md"
    assert silent["hints"][0] == "no handover is about this; the latest is hand-over.md (now)"
    (tmp_path / "old-hand-over.md").write_text(HANDOVER.format(title="Limits", subject="table of rate limits"))
    os.utime(tmp_path / "old-hand-over.md", (NOW, NOW))
    assert call(tmp_path, ["index", "."]).status == 0
    [telling] = calls(tmp_path, ("memory_context", {"input": text}))
    assert keys(telling["data"])[:2] == ["old-hand-over.md", "limits.md"]
    assert telling["data"]["results"][0]["notes"]["sections"] == ["state", "next-steps"]
    assert "Rate limits are ten" in telling["data"]["results"][1]["memory_text"]
    ran = call(tmp_path, ["search", text, "--mode", "resume", "--explain", "--why-not", "hand-over.md"])
    assert (ran.status, "old-hand-over.md" in ran.out, "limits.md" in ran.out) == (0, True, True)


@pytest.mark.requirement("T1", "P2")
def test_whichever_pipeline_serves_searches_the_handovers_are_found(project: Path) -> None:
    [data] = resumed(project, {"input": "where were we?", "mode": "resume"}, SPECKIT_PIPELINE="bm25")
    assert keys(data)[0] == "specs/7/handover.md"


@pytest.mark.requirement("T1", "P8")
def test_the_command_line_resumes_plans_and_explains_as_the_tools_do(project: Path) -> None:
    ran = call(project, ["search", "where were we?", "--mode", "resume", "--json", "--why-not", "specs/7/log.md"])
    assert ran.json["results"][0]["key"] == "specs/7/handover.md"
    assert ran.json["pipeline"]["name"] == "resume"
    assert ran.json["why_not"] == "'specs/7/log.md' was found by no channel: handover does not match it."
    planned = call(project, ["pipeline", "plan", "where were we?", "--mode", "resume", "--json"]).json
    assert [channel["id"] for channel in planned["plan"]["channels"]] == ["handover"]


@pytest.mark.requirement("T1", "M15")
def test_the_last_task_comes_back_with_what_is_open_in_it(tmp_path: Path) -> None:
    def task(name: str, folder: str, **more: Any) -> dict[str, Any]:
        scores = {"knowledgeScore": 30, "uncertaintyScore": 60, "contextScore": 40}
        return {"specFolder": folder, "taskId": name, **scores, **more}

    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "note.md").write_text("# A note\n\nAbout pools of connections.\n")
    assert call(tmp_path, ["index", "specs"]).status == 0
    [nothing] = resumed(tmp_path, {"input": "where were we?"})
    assert "task" not in nothing
    hostile = "who waits\n# Heading\n> and for whom?"
    calls(
        tmp_path,
        ("task_preflight", task("pool", "specs/001", sessionId="mine", knowledgeGaps=["how many fit", hostile])),
        ("task_postflight", task("pool", "specs/001", gapsClosed=["how many fit"], newGapsDiscovered=["what if none"])),
        ("task_preflight", task("login", "specs/002/a", knowledgeGaps=["how long codes hold"], sessionId="other")),
    )
    for asked, named, questions in (
        ({}, "login", ["how long codes hold"]),
        ({"sessionId": "new"}, "login", ["how long codes hold"]),
        ({"sessionId": "mine"}, "pool", [hostile, "what if none"]),
        ({"specFolder": "specs/001"}, "pool", [hostile, "what if none"]),
        ({"specFolder": "specs/002", "sessionId": "mine"}, "login", ["how long codes hold"]),
    ):
        [answer] = calls(tmp_path, ("memory_context", {"input": "where were we?", **asked}))
        found = answer["data"]["task"]
        assert (found["taskId"], found["openQuestions"]) == (named, questions), asked
    [focused, elsewhere] = resumed(
        tmp_path, {"input": "pools", "mode": "focused"}, {"input": "resume", "specFolder": "specs/00"}
    )
    assert "task" not in focused
    assert "task" not in elsewhere
    again = {"input": "resume", "sessionId": "mine"}

    async def last(client: Client) -> str:
        [block] = (await client.call_tool("memory_context", again)).content
        return str(block.text)  # type: ignore[union-attr]  # tools answer with text

    lines = with_client(tmp_path, last).splitlines()
    [first] = [
        number for number, line in enumerate(lines) if line.startswith("last task: pool of specs/001, completed ")
    ]
    assert lines[first + 1 : first + 4] == [
        "open questions (2):",
        "> who waits # Heading > and for whom?",
        "> what if none",
    ]
    shown = call(tmp_path, ["search", "where were we?", "--mode", "resume", "--folder", "specs/001"]).out.splitlines()
    [first] = [
        number for number, line in enumerate(shown) if line.startswith("  last task: pool of specs/001, completed")
    ]
    assert shown[first + 1 : first + 4] == [
        "  open questions (2):",
        "  > who waits # Heading > and for whom?",
        "  > what if none",
    ]
    document = call(tmp_path, ["search", "resume", "--mode", "resume", "--session", "mine", "--json"]).json
    assert document["task"] == calls(tmp_path, ("memory_context", again))[0]["data"]["task"]
    assert "task" not in call(tmp_path, ["search", "pools", "--mode", "focused", "--json"]).json
