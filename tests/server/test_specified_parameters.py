"""What the tools' parameters of the specification do beyond what `test_tool_parameters` tries of each."""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from files import write_file

from speckit_memory.engine import Memory
from speckit_memory.engine.documents import path_patterns
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.memory.lifecycle.folder_worth import FolderWeights, folder_worth
from speckit_memory.server.views import memory_list
from tests.server.doors import call
from tests.server.test_answer_cache import asking, served
from tests.server.test_mcp_stdio import calls

WAL = "docs/storage/wal.md"


@pytest.fixture
def memory(tmp_path: Path) -> Any:
    texts = {
        "a/one.md": "# One\n\nFirst of a.\n", "a/two.md": "# Two\n\nSecond of a.\n",
        "b/rule.md": "---\nimportance_tier: critical\n---\n# Rule\n\nThe rule of b.\n",
        "scratch/draft.md": "# Draft\n\nA draft.\n", "x/test-y/try.md": "# Try\n\nA try.\n",
        "constitutional/friday.md": "# Friday\n\nNever on Fridays.\n",
        "specs/1/spec.md": "# Spec\n\nWhat it does.\n", "specs/1/memory/plan.md": "# Plan\n\nWhat comes.\n",
    }  # fmt: skip
    for key, text in texts.items():
        write_file(tmp_path / key, text)
    old = tmp_path / "b/rule.md"
    os.utime(old, (1_600_000_000,) * 2)
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}, strict=True) as opened:
        opened.index(tmp_path)
        yield opened


def names(found: Any) -> list[str]:
    return [one.folder for one in found.folders]


@pytest.mark.requirement("T6", "F16")
def test_folders_are_ranked_by_the_parts_of_the_folder_score(memory: Memory) -> None:
    now = 1_900_000_000.0
    counted = memory.inventory.folders(now=now)
    assert names(counted)[0] == "a"
    assert [one.worth for one in counted.folders] == [None] * 5
    assert (counted.excluded, counted.archives, counted.put_away) == (0, 2, 0)

    assert names(memory.inventory.folders("importance", now=now))[0] == "b"
    assert names(memory.inventory.folders("recency", now=now))[-1] == "b"
    composite = memory.inventory.folders("composite", archived=True, now=now)
    scores = [one.worth.score for one in composite.folders if one.worth]
    assert scores == sorted(scores, reverse=True)
    facts = memory.session.view().attributes
    for one in composite.folders:
        assert one.worth == folder_worth(one.folder, facts.in_folder(one.folder), facts, now, FolderWeights())
    assert {one.folder: one.worth.archive for one in composite.folders if one.worth}["scratch"] == 0.2
    with pytest.raises(SpeckitError, match="E030 there is no ranking 'size'"):
        memory.inventory.folders("size")  # type: ignore[arg-type]


@pytest.mark.requirement("T6")
@pytest.mark.usefixtures("patterns_here")
def test_folders_that_match_a_pattern_are_left_out_and_counted(memory: Memory) -> None:
    found = memory.inventory.folders(exclude=["^specs/", "scr[a]tch"], archived=True)
    assert (names(found), found.excluded) == (["a", "b", "constitutional", "x/test-y"], 3)
    both = memory.inventory.folders(exclude=["scratch"])
    assert (both.excluded, both.archives) == (1, 1)


@pytest.mark.requirement("T6")
def test_what_was_put_away_is_counted_apart(memory: Memory) -> None:
    with memory.session.database.write() as txn:
        from speckit_memory.memory.store.tables.memories import archivals

        archivals.archive(txn, [memory.get("a/one.md").id], "unused", 1_700_000_000.0)
    found = memory.inventory.folders()
    assert ({one.folder: one.memories for one in found.folders}["a"], found.put_away) == (1, 1)
    assert {one.folder: one.memories for one in memory.inventory.folders(archived=True).folders}["a"] == 2


@pytest.mark.requirement("T6")
@pytest.mark.usefixtures("patterns_here")
def test_a_wrong_pattern_is_named_with_its_place(memory: Memory) -> None:
    with pytest.raises(SpeckitError) as raised:
        memory.inventory.folders(exclude=["fine", "(a", "[z-a]"])
    assert [problem.code for problem in raised.value.problems] == ["E030", "E030"]
    first, second = map(str, raised.value.problems)
    assert re.search(r"pattern 2 of 3, '\(a': missing \).* at position 0", first)
    assert "pattern 3 of 3, '[z-a]': bad character range" in second
    with pytest.raises(SpeckitError) as many:
        memory.inventory.folders(exclude=["a" * 201, *["b"] * 20])
    assert [problem.code for problem in many.value.problems] == ["E032", "E032"]
    assert memory.inventory.folders(exclude=["a" * 200, *["b$"] * 19]).excluded == 1


@pytest.mark.requirement("T6")
@pytest.mark.parametrize(
    "hostile", ["(a+)+$", "(a|a)*$", "(.*)*(.*)*(.*)*$x", "(a?){60}a{60}$", "(?:a*a*)*b", r"(a*)*\1b", "(?=(a+)+b)"]
)
@pytest.mark.usefixtures("processes")
def test_a_pattern_that_would_never_end_is_ended_and_named(hostile: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_patterns, "SECONDS", 2.0)
    path = "a" * 60 + "/" + "a" * 60 + "!"
    with pytest.raises(SpeckitError, match=r"E030 pattern 2 of 2, .* takes more than 2 seconds"):
        path_patterns.matching(["never", hostile], [path])


@pytest.mark.requirement("T6")
@pytest.mark.parametrize(
    "pattern", ["(" * 200, "a{99999999999999}", "(?P<n>a)" * 25, "\ud800", "(" * 100 + ")" * 100, ""]
)
@pytest.mark.usefixtures("processes")
def test_no_pattern_ends_more_than_its_own_call(pattern: str) -> None:
    with suppress(SpeckitError):
        assert path_patterns.matching([pattern], ["a/b", "c"]) <= {"a/b", "c"}
    assert path_patterns.matching(["c"], ["a/b", "c"]) == {"c"}


@pytest.mark.requirement("T6")
@pytest.mark.usefixtures("processes")
def test_a_process_that_ends_early_or_cannot_be_started_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_patterns, "COMMAND", ("/bin/true",))
    with pytest.raises(SpeckitError, match="E096"):
        path_patterns.matching(["a"], ["a"])
    monkeypatch.setattr(path_patterns, "COMMAND", ("/no/such/python",))
    with pytest.raises(SpeckitError, match="E096"):
        path_patterns.matching(["a"], ["a"])


@pytest.mark.requirement("T6")
def test_an_agent_is_told_of_folders_beyond_the_first(indexed: Path) -> None:
    first, every = calls(indexed, ("memory_stats", {"limit": 1}), ("memory_stats", {}))
    further = len(every["data"]["folders"]) - 1
    assert further > 0
    hint = f"{plural(further, 'folder')} more than the first 1: raise limit to see them"
    assert (first["hints"], every["hints"]) == ([hint], [])


@pytest.mark.requirement("T6")
@pytest.mark.usefixtures("patterns_here")
def test_an_agent_is_told_of_dates_scores_and_what_is_not_ranked(workspace: Path) -> None:
    plain, told, wrong = calls(
        workspace,
        ("memory_stats", {}),
        ("memory_stats", {"folderRanking": "recency", "includeScores": True, "excludePatterns": ["storage"]}),
        ("memory_stats", {"excludePatterns": ["(a"]}),
    )
    assert re.match(r"\d{4}-\d\d-\d\dT", plain["data"]["oldest"])
    assert plain["data"]["oldest"] <= plain["data"]["newest"]
    [folder] = told["data"]["folders"]
    assert folder["parts"].keys() == {"recency", "importance", "activity", "validation", "archive"}
    assert 0 < folder["score"] <= 1
    assert told["data"]["left_out"] == {"excluded": 1, "archives": 0, "put_away": 0}
    assert (wrong["error"]["code"], "pattern 1 of 1, '(a'" in wrong["error"]["message"]) == ("E030", True)
    shown = call(workspace, ["stats", "--rank", "recency", "--scores", "--exclude", "storage"]).out
    assert re.search("not ranked +1 folder by pattern", shown)
    assert re.search(r"folder +memories +changed +score +recency", shown)


@pytest.mark.requirement("T5")
def test_passages_are_listed_below_their_memory_and_no_page_loses_any(workspace: Path) -> None:
    (workspace / "docs/many.md").write_text(
        "# Many\n" + "".join(f"\n## Part {n}\n\n{'word ' * 150}\n" for n in range(90))
    )
    (workspace / "docs/few.md").write_text("# Few\n" + "".join(f"\n## Bit {n}\n\n{'text ' * 150}\n" for n in range(30)))
    assert call(workspace, ["index", "docs"]).status == 0
    [page] = calls(workspace, ("memory_list", {"includeChunks": True, "sortBy": "updated_at"}))
    rows = page["data"]["memories"]
    assert (rows[0]["kind"], rows[0]["chunks"]) == ("memory", 90 if rows[0]["key"] == "docs/many.md" else 30)
    assert {row["memory"] for row in rows if row["kind"] == "passage"} <= {
        r["id"] for r in rows if r["kind"] == "memory"
    }
    assert rows[1]["lines"][0] < rows[2]["lines"][0]
    told = [row["key"] for row in rows if row["kind"] == "memory"]
    passages = len(rows) - len(told)
    assert (page["data"]["count"], page["data"]["passage_count"]) == (len(told), passages)
    assert page["summary"].startswith("8 memories stored; ")
    assert page["summary"].endswith(" memories and passages shown")
    [hint] = [hint for hint in page["hints"] if "continue" in hint]
    # the last memory of a page that was cut short comes again, unless it is the only one: then the rest is told of
    assert hint.endswith(f"offset={max(1, len(told) - 1)}")
    last = max(place for place, row in enumerate(rows) if row["kind"] == "memory")
    rest = "they come again" if len(told) > 1 else "memory_search with its key reads all of it"
    shown, of = len(rows) - 1 - last, rows[last]["chunks"]
    assert hint.startswith(f"{shown} of {of} passages of {told[-1]} are shown, {rest}; ")
    listed = call(workspace, ["list", "--chunks", "--folder", "docs/storage"]).out
    assert re.search(r"docs/storage/wal.md · Write-ahead log · id \d+ · \d{4}-\d\d-\d\d\n  - .*, lines 1 to 3", listed)
    assert "2 memories stored in docs/storage" in listed


@pytest.mark.requirement("T5")
def test_pages_with_passages_hold_each_whole_or_say_how_to_read_it(
    workspace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, parts in (("a", 4), ("b", 5), ("c", 12), ("d", 3)):
        text = f"# {name}\n" + "".join(f"\n## Part {n}\n\n{'word ' * 150}\n" for n in range(parts))
        write_file(workspace / "pages" / f"{name}.md", text)
    assert call(workspace, ["index", "pages"]).status == 0
    monkeypatch.setattr(memory_list, "MOST_PASSAGES", 10)
    with asking(served(workspace)) as [ask]:
        seen: dict[str, int] = {}
        cut, offset = [], 0
        while True:
            page = ask("memory_list", includeChunks=True, specFolder="pages", offset=offset)
            rows = page["data"]["memories"]
            keys = {row["id"]: row["key"] for row in rows if row["kind"] == "memory"}
            for row in rows:
                if row["kind"] == "memory":
                    assert row["key"] not in seen
                    seen[row["key"]] = 0
                else:
                    seen[keys[row["memory"]]] += 1
            cut += [hint for hint in page["hints"] if "are shown" in hint]
            [go_on] = [hint for hint in page["hints"] if "continue" in hint] or [""]
            if not go_on:
                break
            offset = int(go_on.rpartition("=")[2])
    with Memory.open(workspace / "memory.db", root=workspace, create=False) as memory:
        wanted = {key: len(memory.inventory.passages(key)) for key in seen}
    assert sorted(seen) == [f"pages/{name}.md" for name in "abcd"]
    assert seen == {key: min(10, most) for key, most in wanted.items()}
    assert wanted["pages/c.md"] > 10
    [told] = cut
    assert told.startswith(f"10 of {wanted['pages/c.md']} passages of pages/c.md are shown, memory_search with its key")


@pytest.mark.requirement("T10")
def test_a_memory_is_judged_by_its_key_and_near_ones_are_named(workspace: Path) -> None:
    by_key, by_digits, near = calls(
        workspace,
        ("memory_validate", {"id": WAL, "wasUseful": True}),
        ("memory_validate", {"id": "1", "wasUseful": True}),
        ("memory_validate", {"id": "wal.md", "wasUseful": True}),
    )
    assert (by_key["data"]["key"], by_digits["data"]["id"]) == (WAL, 1)
    assert (near["error"]["code"], WAL in near["error"]["message"]) == ("E080", True)


@pytest.mark.requirement("T7")
def test_documents_in_several_folders_are_reported_and_counted(workspace: Path) -> None:
    twin = "# Twin\n\nThe same words in two places.\n"
    for key in ("docs/twin.md", "docs/storage/twin.md", "docs/twin-too.md"):
        (workspace / key).write_text(twin)
    for key in ("docs/near.md", "docs/near-too.md"):  # one folder: nothing that diverges
        (workspace / key).write_text("# Near\n\nBoth in one folder.\n")
    (workspace / "docs/storage/link.md").symlink_to(workspace / "docs/tone.md")
    assert call(workspace, ["index", "docs"]).status == 0
    every, first, inside, none, refused, too_many = calls(
        workspace,
        ("memory_health", {"reportMode": "divergent_aliases"}),
        ("memory_health", {"reportMode": "divergent_aliases", "limit": 1}),
        ("memory_health", {"reportMode": "divergent_aliases", "specFolder": "docs/storage"}),
        ("memory_health", {"reportMode": "divergent_aliases", "specFolder": "docs/nowhere"}),
        ("memory_health", {"specFolder": "docs"}),
        ("memory_health", {"reportMode": "divergent_aliases", "limit": 201}),
    )
    content, link = every["data"]["aliases"]
    assert content == {"kind": "content", "keys": ["docs/storage/twin.md", "docs/twin-too.md", "docs/twin.md"]}
    assert (link["kind"], sorted(link["keys"])) == ("link", ["docs/storage/link.md", "docs/tone.md"])
    assert (first["data"]["total"], first["data"]["aliases"]) == (2, [content])
    assert inside["data"]["total"] == 2
    assert (none["data"]["total"], none["data"]["aliases"]) == (0, [])
    assert [hint.partition(";")[0] for hint in none["hints"]] == ["no memory is in a folder 'docs/nowhere'"]
    assert refused["error"]["code"] == "E031"
    assert too_many["error"]["code"] == "E032"


@pytest.mark.requirement("T22")
def test_kinds_of_documents_that_are_not_wanted_are_neither_read_nor_deleted(memory: Memory) -> None:
    root = memory.session.settings.root
    (root / "specs/1/spec.md").unlink()
    (root / "specs/1/plan.md").write_text("# Plan\n\nNew plan.\n")
    (root / "constitutional/friday.md").write_text("# Friday\n\nEver on Fridays.\n")
    (root / "specs/1/memory/plan.md").write_text("# Plan\n\nChanged.\n")
    left = memory.index(root, include_constitutional=False, include_spec_docs=False, force=True)
    assert (left.created, left.vanished, left.failures) == ([], [], [])
    assert "specs/1/memory/plan.md" in left.updated
    assert memory.get("specs/1/spec.md").title == "Spec"
    assert left.ignored == {
        "specs/1/plan.md": "skipped: plan documents are excluded",
        "constitutional/friday.md": "skipped: constitutional documents are excluded",
    }
    rules = memory.index(root, include_spec_docs=False)
    assert (rules.updated, rules.vanished) == (["constitutional/friday.md"], [])
    both = memory.index(root)
    assert (both.created, both.vanished) == (["specs/1/plan.md"], ["specs/1/spec.md"])


@pytest.mark.requirement("T22", "I8")
def test_a_memory_follows_its_file_into_a_kind_that_is_left_alone_and_out_of_it(memory: Memory) -> None:
    root = memory.session.settings.root
    moves = {
        "a/one.md": "specs/2/spec.md",  # into it
        "specs/1/spec.md": "b/what.md",  # out of it
        "constitutional/friday.md": "x/constitutional/friday.md",  # within it
    }
    learned = {}
    for old, new in moves.items():
        memory.learning.validate(old, useful=True)
        learned[new] = (memory.get(old).id, memory.get(old).confidence)
        (root / new).parent.mkdir(parents=True, exist_ok=True)
        (root / old).rename(root / new)

    foreseen = memory.index(root, include_constitutional=False, include_spec_docs=False, dry_run=True)
    left = memory.index(root, include_constitutional=False, include_spec_docs=False)

    for report in (foreseen, left):
        assert {move.old: move.new for move in report.renamed} == moves
        assert (report.created, report.updated, report.vanished, report.failures) == ([], [], [], [])
        assert sorted(report.ignored) == ["specs/2/spec.md", "x/constitutional/friday.md"]
    assert {key: (memory.get(key).id, memory.get(key).confidence) for key in moves.values()} == learned
    every = memory.index(root)
    assert (every.created, every.vanished, every.renamed) == ([], [], [])
    assert sorted(every.updated) == ["specs/2/spec.md", "x/constitutional/friday.md"]
    assert {key: (memory.get(key).id, memory.get(key).confidence) for key in moves.values()} == learned
    assert not {*moves} & {*memory.inventory.keys()}


@pytest.mark.requirement("T4")
def test_checks_that_are_skipped_leave_limits_and_secrets_as_they_are(workspace: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    (workspace / "docs/copy.md").write_text((workspace / WAL).read_text())
    (workspace / "docs/open.md").write_text(f"# Open\n\n<!-- ANCHOR:x -->\nToken {secret} of the open section.\n")
    (workspace / "docs/wrong.md").write_text("---\ncausalLinks: 7\n---\n# Wrong\n\nLinks that are none.\n")
    (workspace / "docs/huge.md").write_text("a " * 6_000_000)
    copy, refused, unsafe, forced, wrong, huge, again = calls(
        workspace,
        ("memory_save", {"filePath": "docs/copy.md", "skipPreflight": True}),
        ("memory_save", {"filePath": "docs/open.md"}),
        ("memory_save", {"filePath": "docs/open.md", "skipPreflight": True}),
        ("memory_save", {"filePath": "docs/open.md", "force": True}),
        ("memory_save", {"filePath": "docs/wrong.md", "skipPreflight": True}),
        ("memory_save", {"filePath": "docs/huge.md", "skipPreflight": True}),
        ("memory_save", {"filePath": "docs/copy.md", "skipPreflight": True, "dryRun": True}),
    )
    assert (copy["data"]["outcome"], copy["data"]["duplicates"], copy["data"]["tokens"]) == ("created", [], 0)
    assert refused["error"]["code"] == "E091"
    assert (unsafe["data"]["outcome"], [p["code"] for p in unsafe["data"]["problems"]]) == ("created", ["E097"])
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        assert secret not in memory.documents.read("docs/open.md").text
    assert (forced["data"]["outcome"], "E091" in [p["code"] for p in forced["data"]["problems"]]) == ("unchanged", True)
    assert forced["data"]["tokens"] > 0
    assert wrong["error"]["code"] == "E090"
    assert huge["error"]["code"] == "E013"
    assert (again["data"]["outcome"], again["data"]["problems"]) == ("dry_run", [])
    assert call(workspace, ["save", "docs/open.md", "--skip-preflight"]).status == 0


@pytest.mark.requirement("T18", "M8.mermaid")
def test_a_lineage_is_drawn_as_far_as_there_is_room(workspace: Path) -> None:
    for n in range(18):
        text = f"# What number {n} tells of the write-ahead log, of backups and of much else\n\nText of {n}.\n"
        (workspace / f"docs/a-long-name-of-a-document-about-the-log-{n:02d}.md").write_text(text)
    assert call(workspace, ["index", "docs"]).status == 0
    links = [(WAL, "supports", f"docs/a-long-name-of-a-document-about-the-log-{n:02d}.md", 0.5) for n in range(18)]
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.graph.add_edges(links[:2])
        whole = memory.graph.lineage(WAL).mermaid()
    [small] = calls(workspace, ("memory_drift_why", {"memoryId": WAL, "format": "mermaid"}))
    assert (small["data"]["mermaid"], small["data"]["count"]) == (whole, 2)
    assert "links" not in small["data"]
    with Memory.open(workspace / "memory.db", root=workspace, environ={}) as memory:
        memory.graph.add_edges(links[2:])
    [large] = calls(workspace, ("memory_drift_why", {"memoryId": WAL, "format": "mermaid"}))
    drawn = large["data"]["mermaid"].splitlines()
    arrows = [line for line in drawn if "-->" in line]
    assert 0 < len(arrows) == large["data"]["count"] < 18
    assert drawn[-1].startswith("    class m")
    assert f"{18 - len(arrows)} of 18 links, the farthest ones, are not drawn" in large["hints"][-2]
    assert large["meta"]["token_count"] <= 1200
