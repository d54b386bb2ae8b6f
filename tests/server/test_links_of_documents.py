"""Links that people and agents make are declared in documents, and so survive whatever becomes of the store."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest

from speckit_memory import Memory
from tests.server.doors import call
from tests.server.test_life import stored
from tests.server.test_mcp_stdio import calls

WAL, TONE, FUSION = "docs/storage/wal.md", "docs/tone.md", "docs/fusion.md"
SECRET = "ghp_" + "a1B2c3D4e5" * 4
EDGES = (
    "SELECT s.key, e.relation, t.key, e.strength, e.evidence, e.created_by FROM causal_edges e "
    "JOIN memories s ON s.id = e.source_id JOIN memories t ON t.id = e.target_id ORDER BY 1, 2, 3"
)


def links(root: Path) -> list[tuple[Any, ...]]:
    return stored(root, EDGES)


@pytest.mark.requirement("M7.declared", "T19", "T4.links")
@pytest.mark.usefixtures("processes")
def test_a_clone_has_the_links_and_marks_of_the_store_it_was_committed_beside(workspace: Path, tmp_path: Path) -> None:
    made = calls(
        workspace,
        ("memory_causal_link", {"sourceId": TONE, "targetId": WAL, "relation": "supersedes", "evidence": "said: so"}),
        ("memory_causal_link", {"sourceId": WAL, "targetId": FUSION, "relation": "caused", "strength": 0.3}),
        ("memory_save", {"content": "Copies are made by night.", "title": "Night", "relates_to": [WAL],
                         "supersedes": ["docs/storage/backup.md"]}),
    )  # fmt: skip
    assert [answer["data"].get("error") for answer in made] == [None] * 3
    assert call(workspace, ["links", "add", FUSION, "derived_from", "docs/cjk.md"]).status == 0

    clone = tmp_path / "clone"
    git = ["git", "-c", "user.name=n", "-c", "user.email=e@x"]
    for arguments in (["init", "-q"], ["add", "docs", "memories"], ["commit", "-q", "-m", "all"]):
        subprocess.run([*git, *arguments], cwd=workspace, check=True, timeout=60)
    subprocess.run([*git, "clone", "-q", workspace, clone], check=True, timeout=60)
    assert call(clone, ["index", "docs", "memories"]).status == 0

    assert links(clone) == links(workspace)
    assert len(links(clone)) == 5
    for root in (workspace, clone):
        found = call(root, ["search", "write-ahead log", "--json"]).json["results"]
        [old] = [row for row in found if row["key"] == WAL]
        assert [other["key"] for other in old["notes"]["superseded_by"]] == [TONE]


@pytest.mark.requirement("M7.declared", "M7.undo")
@pytest.mark.parametrize(
    "text",
    [
        b"# New\n\nText.\n",
        b"\xef\xbb\xbf---\r\n# first\r\ntitle: New # last\r\n---\r\n# New\r\n",
        b"---\ncausalLinks:\n  # a\n  supports: [docs/cjk.md] # b\n\n  caused_by:\n  - docs/fusion.md # c\n---\nN\n",
        b"---\ncausal_links: {supports: [docs/cjk.md]}\nowner: me\n---\nNew\n",
    ],
    ids=["none", "bom and line ends", "lines", "one line"],
)
def test_nothing_else_of_a_document_changes_by_a_link_and_nothing_at_all_by_taking_it_back(
    workspace: Path, text: bytes
) -> None:
    file = workspace / "docs" / "new.md"
    file.write_bytes(text)
    assert call(workspace, ["index", "docs"]).status == 0
    before = links(workspace)

    number = call(workspace, ["links", "add", "docs/new.md", "supersedes", WAL, "--evidence", "x: y", "--json"]).json[
        "link"
    ]["id"]
    linked = file.read_bytes()
    assert b'{target: docs/storage/wal.md, evidence: "x: y"}' in linked
    for line in text.splitlines(keepends=True):
        assert line in linked or b"supports" in line
    assert ("docs/new.md", "supersedes", WAL, 1.0, "x: y", "document") in links(workspace)
    assert call(workspace, ["index", "docs", "--json"]).json["updated"] == []

    assert call(workspace, ["links", "remove", str(number)]).status == 0
    assert (file.read_bytes(), links(workspace)) == (text, before)
    history = call(workspace, ["links", "history", "--json"]).json["changes"]
    assert [(change["changed_by"], change["new"]) for change in history] == [("manual", None), ("manual", 1.0)]
    assert call(workspace, ["links", "undo", str(history[0]["id"])]).status == 0
    assert file.read_bytes() == linked
    assert call(workspace, ["links", "undo", "--by", "manual"]).status == 0
    assert (file.read_bytes(), links(workspace)) == (text, before)


@pytest.mark.requirement("M7.declared")
def test_where_the_document_cannot_be_edited_the_store_keeps_the_link_and_the_answer_says_so(workspace: Path) -> None:
    (workspace / ".speckit").mkdir(exist_ok=True)
    (workspace / ".speckit" / "config.yaml").write_text("sources: {formats: [html]}\n")
    page = workspace / "docs" / "page.html"
    page.write_text("<html><body><h1>Page</h1><p>Emus run.</p></body></html>")
    broken = workspace / "docs" / "broken.md"
    broken.write_text("---\n{title: a}\n---\n# Broken\n\nFerrets dig.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    for file in (page, broken):
        held, key = file.read_bytes(), f"docs/{file.name}"
        made = call(workspace, ["links", "add", key, "supersedes", WAL])
        assert (made.status, f"kept in this store only, so that a clone lacks it: {key}" in made.out) == (0, True)
        [answer] = calls(workspace, ("memory_causal_link", {"sourceId": key, "targetId": TONE, "relation": "caused"}))
        assert key in answer["data"]["link"]["only_stored"]
        assert file.read_bytes() == held
        assert [link[1:] for link in links(workspace)] == [
            ("caused", TONE, 1.0, "", "manual"), ("supersedes", WAL, 1.0, "", "manual"),
        ]  # fmt: skip
        assert call(workspace, ["links", "undo", "--by", "manual"]).status == 0
        assert links(workspace) == []


@pytest.mark.requirement("M7.repeated", "T19")
def test_a_link_that_is_made_again_keeps_the_evidence_and_strength_that_it_has(workspace: Path) -> None:
    link = {"sourceId": TONE, "targetId": WAL, "relation": "supersedes"}
    calls(
        workspace,
        ("memory_causal_link", {**link, "strength": 0.4, "evidence": "said so"}),
        ("memory_causal_link", link),
    )
    assert links(workspace) == [(TONE, "supersedes", WAL, 0.4, "said so", "document")]
    calls(workspace, ("memory_causal_link", {**link, "strength": 0.7}))
    assert links(workspace) == [(TONE, "supersedes", WAL, 0.7, "said so", "document")]
    assert len(call(workspace, ["links", "history", "--json"]).json["changes"]) == 2


@pytest.mark.requirement("M7.declared")
def test_a_link_that_is_refused_leaves_the_document_as_it_was(workspace: Path) -> None:
    for number in range(20):
        (workspace / f"docs/{number:02}.md").write_text(f"# Note {number}\n\nAbout {number}.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    with Memory.open(workspace / "memory.db", root=workspace) as memory:
        memory.graph.add_edges([(TONE, "supports", f"docs/{number:02}.md", 1.0) for number in range(20)])
    held = (workspace / TONE).read_bytes()
    for target, strength, code in (
        (WAL, "1", "E032"),
        (TONE, "1", "E030"),
        (WAL, "1.5", "E032"),
        ("no.md", "1", "E080"),
    ):
        refused = call(workspace, ["links", "add", TONE, "caused", target, "--strength", strength, "--json"])
        assert (refused.status, refused.json["error"]["code"]) == (2, code), target
        assert (workspace / TONE).read_bytes() == held


@pytest.mark.requirement("M7.declared")
def test_links_that_other_words_and_documents_declare_are_changed_and_taken_out_there(workspace: Path) -> None:
    (workspace / "docs/new.md").write_text("---\ncausalLinks: {caused_by: tone.md, related_to: tone.md}\n---\nNew.\n")
    assert call(workspace, ["index", "docs"]).status == 0
    ran = call(workspace, ["links", "add", "docs/new.md", "supports", TONE, "--strength", "0.9", "--json"])
    changed = ran.json["link"]
    assert (changed["strength"], changed["created_by"]) == (0.9, "document")
    caused = call(workspace, ["lineage", TONE, "--relation", "caused", "--json"]).json["links"][0]["edge"]
    for number in (caused, changed["id"]):
        assert call(workspace, ["links", "remove", str(number)]).status == 0
    assert (links(workspace), (workspace / "docs/new.md").read_text()) == ([], "New.\n")
    assert call(workspace, ["links", "undo", "--by", "manual"]).status == 0
    assert call(workspace, ["index", "docs", "--force"]).status == 0
    assert len(links(workspace)) == 2


@pytest.mark.requirement("M7.declared", "I9.secrets")
def test_a_secret_in_evidence_reaches_neither_file_nor_store(workspace: Path) -> None:
    calls(
        workspace,
        ("memory_causal_link", {"sourceId": TONE, "targetId": WAL, "relation": "caused", "evidence": f"see {SECRET}"}),
    )
    assert SECRET not in (workspace / TONE).read_text() + str(links(workspace))
    assert "see " in (workspace / TONE).read_text()


@pytest.mark.requirement("T4.links", "M6.asked", "M7.told_by_key")
def test_a_save_asks_whether_it_replaces_a_near_memory_and_is_told_by_saving_again(workspace: Path) -> None:
    old = {"content": "Sessions are stored in Redis for one hour.", "title": "Session storage"}
    new = {
        "content": "Sessions are stored in Postgres instead of Redis.",
        "title": "Session storage",
        "folder": "notes",
    }
    _, first = calls(workspace, ("memory_save", old), ("memory_save", new))
    asked = "Does it replace memories/session-storage.md? Then save again with supersedes"
    assert [asked in hint for hint in first["hints"]] == [True]
    assert "it seems to contradict memories/session-storage.md" in first["hints"][0]

    again, read, found = calls(
        workspace,
        ("memory_save", {**new, "supersedes": ["memories/session-storage.md"]}),
        ("memory_search", {"key": "memories/session-storage.md"}),
        ("memory_search", {"query": "where are sessions stored"}),
    )
    assert again["data"]["key"] == "notes/session-storage.md"
    assert not any("Does it replace" in hint for hint in again["hints"])
    assert [file.name for file in (workspace / "notes").iterdir()] == ["session-storage.md"]
    assert "supersedes: [memories/session-storage.md]" in (workspace / "notes/session-storage.md").read_text()
    assert read["hints"][0].startswith("superseded by notes/session-storage.md (Session storage, id ")
    assert [other["key"] for other in read["data"]["superseded_by"]] == ["notes/session-storage.md"]
    keys = [row["key"] for row in found["data"]["results"]]
    [old_row] = [row for row in found["data"]["results"] if row["key"] == "memories/session-storage.md"]
    [other] = old_row["notes"]["superseded_by"]
    ahead = keys.index("notes/session-storage.md") < keys.index("memories/session-storage.md")
    assert ("words" in other) is not ahead


@pytest.mark.requirement("M6.asked")
def test_a_contradiction_is_told_where_the_texts_are_less_alike_and_nothing_is_marked(workspace: Path) -> None:
    call(
        workspace,
        ["save", "--title", "Queue of jobs", "--content", "Jobs are kept in Redis lists and popped by workers."],
    )
    saved = call(
        workspace,
        [
            "save",
            "--title",
            "Queue",
            "--content",
            "Jobs are no longer kept in Redis lists. Postgres has a table of them.",
        ],
    )
    assert "it seems to contradict memories/queue-of-jobs.md" in " ".join(saved.out.split())
    said = " ".join(saved.out.split())
    assert "Does it replace memories/queue-of-jobs.md? Then save again with supersedes" in said
    assert "--supersedes memories/queue-of-jobs.md" in said
    assert links(workspace) == []


@pytest.mark.requirement("T4.links")
def test_what_a_save_supersedes_must_be_there_and_all_that_is_not_is_told(workspace: Path) -> None:
    arguments = ["--supersedes", "tone.md", "--relates-to", "docs/nothing.md"]
    refused = call(workspace, ["save", "--content", "Emus run.", *arguments])
    assert (refused.status, (workspace / "memories").exists()) == (2, False)
    assert f"did you mean '{TONE}'?" in refused.err
    assert "docs/nothing.md" in refused.err
    itself = call(workspace, ["save", TONE, "--supersedes", TONE])
    assert (itself.status, "E030" in itself.err, links(workspace)) == (2, True, [])


@pytest.mark.requirement("T4.links")
def test_documents_that_are_there_or_edited_take_links_by_ids_and_keys(workspace: Path) -> None:
    assert call(workspace, ["save", TONE, "--supersedes", "1", "--relates-to", WAL]).status == 0
    edited = ["save", FUSION, "--append", "--content", "And so on.", "--supersedes", WAL]
    assert call(workspace, edited).status == 0
    replaced = call(workspace, ["show", "1", "--json"]).json["key"]
    assert [link[:5] for link in links(workspace)] == [
        (FUSION, "supersedes", WAL, 1.0, f"supersedes: {WAL}"),
        (TONE, "supersedes", replaced, 1.0, f"supersedes: {replaced}"),
        (TONE, "supports", WAL, 0.5, f"related_to: {WAL}"),
    ]
    shown = call(workspace, ["show", WAL])
    assert f"superseded by {FUSION} (Why rank fusion, id " in " ".join(shown.err.split())
    foreseen = call(workspace, ["save", "--dry-run", "--content", "Emus run.", "--supersedes", WAL])
    assert (foreseen.status, len(links(workspace))) == (0, 3)


@pytest.mark.requirement("M8.words", "T18")
def test_who_asks_why_is_told_what_the_decisions_say(workspace: Path) -> None:
    (workspace / "docs/new.md").write_text(
        f"---\ncausalLinks: {{supersedes: {WAL}}}\n---\n## Context\n\nIt was slow.\n\n## Decision\n\nNo log. Ever.\n"
    )
    assert call(workspace, ["index", "docs"]).status == 0
    told, bare = calls(
        workspace,
        ("memory_drift_why", {"memoryId": WAL}),
        ("memory_drift_why", {"memoryId": WAL, "includeMemoryDetails": False}),
    )
    assert [link["memory_text"] for link in told["data"]["links"]] == ["No log. Ever."]
    assert [memory["words"] for memory in told["data"]["memories"]] == [
        "The store runs SQLite in WAL mode. The function computeMPAB and the setting busy_timeout are described in "
        "REQ-006.", "No log. Ever.",
    ]  # fmt: skip
    assert "memory_text" not in bare["data"]["links"][0]


@pytest.mark.requirement("T16.repeated")
def test_a_task_that_is_begun_again_keeps_gaps_and_session_unless_others_are_given(workspace: Path) -> None:
    task = {
        "specFolder": "specs/001", "taskId": "T1", "knowledgeScore": 10, "uncertaintyScore": 50, "contextScore": 20,
    }  # fmt: skip
    _, again, other = calls(
        workspace,
        ("task_preflight", {**task, "knowledgeGaps": ["what is it"], "sessionId": "s1"}),
        ("task_preflight", {**task, "knowledgeScore": 30}),
        ("task_preflight", {**task, "knowledgeGaps": ["why"]}),
    )
    assert (again["data"]["before"]["knowledge"], again["data"]["knowledgeGaps"]) == (30, ["what is it"])
    assert (again["data"]["sessionId"], other["data"]["sessionId"], other["data"]["knowledgeGaps"]) == (
        "s1",
        "s1",
        ["why"],
    )


@pytest.mark.requirement("M7.place")
def test_a_successor_speaks_at_the_place_of_what_it_replaces_unless_it_stands_above(workspace: Path) -> None:
    call(workspace, ["save", "--title", "Trunk", "--content", "All goes through one main loop.", "--supersedes", WAL])

    def notes(query: str) -> tuple[list[str], list[dict[str, Any]]]:
        found = call(workspace, ["search", query, "--json"]).json["results"]
        [old] = [row for row in found if row["key"] == WAL]
        return [row["key"] for row in found], old["notes"]["superseded_by"]

    keys, [successor] = notes("write-ahead log")
    assert keys[0] == WAL
    assert successor["words"] == "All goes through one main loop."
    [answer] = calls(workspace, ("memory_search", {"query": "write-ahead log"}))
    assert answer["data"]["results"][0]["notes"]["superseded_by"][0]["words"] == successor["words"]
    assert successor["words"] in call(workspace, ["search", "write-ahead log"]).out
    keys, [successor] = notes("one main loop through which all goes, no log")
    assert keys.index("memories/trunk.md") < keys.index(WAL)
    assert "words" not in successor
