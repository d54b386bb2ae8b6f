from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

import pytest
from frame.reckoning import check_explanation

from speckit_memory.engine import Memory
from tests.server.doors import Run, call


def first(run: Run, query: str, *more: str) -> str:
    return str(run("search", query, "--json", *more).ok().json["results"][0]["key"])


@pytest.mark.requirement("P8.timings")
def test_the_json_of_a_search_has_the_promised_shape(run: Run) -> None:
    document = run("search", "why are ranks fused", "--json").json
    assert set(document) >= {"query", "plan", "results", "notes", "pipeline", "timings_ms"}
    assert set(document["plan"]) >= {"intent", "intent_confidence", "complexity", "channels", "variants"}
    assert set(document["notes"]) >= {"evidence_gap", "warnings", "degraded"}
    assert set(document["pipeline"]) == {"name", "hash"}
    assert set(document["timings_ms"]) == {"opening", "total", "candidates", "fusion", "rerank", "annotate", "steps"}
    row = document["results"][0]
    assert set(row) >= {
        "id",
        "key",
        "title",
        "folder",
        "tier",
        "state",
        "score",
        "channels",
        "steps",
        "snippet",
        "reason",
    }
    assert (row["key"], row["title"], row["folder"], row["tier"]) == (
        "docs/fusion.md",
        "Why rank fusion",
        "docs",
        "important",
    )
    for row in document["results"]:
        assert row["steps"][-1]["score"] == row["score"]
        assert all(set(seen) == {"rank", "score"} for seen in row["channels"].values())
    order = [(-row["score"], row["id"]) for row in document["results"]]
    assert order == sorted(order)


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("全文検索", "docs/cjk.md"),
        ("日本語の索引", "docs/cjk.md"),
        ("computeMPAB", "docs/storage/wal.md"),
        ("busy_timeout", "docs/storage/wal.md"),
        ("REQ-006", "docs/storage/wal.md"),
        ("how does reciprocal rank fusion, with a rank for each fused list, bear on REQ-006", "docs/storage/wal.md"),
        ("reciprocal rank fusion", "docs/fusion.md"),
        ("to be or not to be", "docs/tone.md"),
        (("quokka cache " * 770)[:10_000], "docs/long.md"),
    ],
)
def test_queries_of_all_kinds_find_their_document(run: Run, query: str, expected: str) -> None:
    assert first(run, query) == expected


@pytest.mark.parametrize(("query", "code"), [("", "E043"), ("   ", "E043"), ("…!?", "E043"), ("x" * 10_001, "E042")])
def test_a_query_that_cannot_be_asked_is_refused(run: Run, query: str, code: str) -> None:
    run("search", query, "--json").refused(code)


@pytest.mark.parametrize("command", [["search"], ["pipeline", "plan"]])
def test_words_that_nobody_quoted_are_one_query_and_a_line_on_standard_error_says_so(
    run: Run, command: list[str]
) -> None:
    loose, quoted = run(*command, "why", "rank", "fusion", "--json"), run(*command, "why rank fusion", "--json")
    assert (loose.status, quoted.status, quoted.err) == (0, 0, "")
    assert loose.json.get("query") == quoted.json.get("query")
    assert [row["key"] for row in loose.json.get("results", ())] == [
        row["key"] for row in quoted.json.get("results", ())
    ]
    (line,) = loose.err.splitlines()
    assert line.startswith("searching for: why rank fusion (quote a query, ")


def test_a_query_that_begins_with_a_dash_stands_behind_two(run: Run) -> None:
    error = run("search", "-fusion", "--json").refused("E200")
    assert any("`speckit-memory search -- -word`" in action for action in error["actions"])
    assert run("search", "--json", "--", "--fusion").json["query"] == "--fusion"
    found = run("search", "--json", "--", "-ranks", "mode").json
    assert (found["query"], found["plan"]["excluded"]) == ("mode", ["ranks"])


def test_only_commands_with_a_query_speak_of_queries_with_a_dash(run: Run) -> None:
    assert not any("-- -word" in action for action in run("doctor", "--json", "-f").json["error"]["actions"])


def test_the_folder_limits_the_results_to_it_and_below(run: Run) -> None:
    document = run("search", "file mode fusion", "--json", "--folder", "docs/storage").json
    assert {row["folder"] for row in document["results"]} == {"docs/storage"}


def test_an_unknown_folder_is_named(run: Run) -> None:
    ran = run("search", "fusion", "--folder", "nope").ok()
    assert ran.out.startswith("warning: no memory is in a folder 'nope'; ")


def test_an_empty_store_says_that_it_is_empty_and_no_more(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    assert call(tmp_path, ["index", "docs"]).status == 0
    warning, figures = call(tmp_path, ["search", "anything"]).out.splitlines()
    assert warning == "warning: the store is empty: run `speckit-memory index PATH`"
    assert figures.startswith("0 results in ")


def test_a_reader_sees_rank_score_key_passage_and_reason(run: Run) -> None:
    ran = run("search", "why are ranks fused", "--limit", "1", "-v").ok()
    assert ran.out.startswith(" 1. ")
    for part in (
        "Why rank fusion",
        "docs/fusion.md",
        "important",
        "cannot be compared",
        "surfaced because",
        "1 result in",
    ):
        assert part in ran.out
    assert "\x1b[" not in ran.out


@pytest.mark.requirement("P8.steps")
def test_explain_shows_the_steps_that_made_the_score(run: Run) -> None:
    document = run("search", "why are ranks fused", "--json", "--explain").json
    assert len(document["explanations"]) == len(document["results"])
    for row, explanation in zip(document["results"], document["explanations"], strict=True):
        assert explanation["key"] == row["key"]
        assert explanation["steps"][-1]["after"] == row["score"]
        assert [step["step"] for step in explanation["steps"]] == [step["step"] for step in row["steps"]]
        check_explanation(explanation, row["score"])
    human = run("search", "why are ranks fused", "--explain").out
    assert document["notes"]["words_from"] == "file"
    assert "Words were looked up in the store itself" in human
    shown = [f"    {row['score']:.4f}, step by step:\n" for row in document["results"]]
    assert [human.count(line) for line in shown] == [shown.count(line) for line in shown]
    assert len(shown) > 2


@pytest.mark.requirement("P8")
def test_every_explanation_can_be_added_up_by_its_reader(run: Run) -> None:
    """As far as four decimals go: the first line of each names the parts of the fused score."""
    human = run("search", "why are ranks fused", "--explain", "--limit", "3").out
    sums = re.findall(r"^      z_score +(.*) = (\S+)$", human, re.MULTILINE)
    assert len(sums) == 3
    for parts, total in sums:
        signed = re.findall(r"(- |)\w+ (-?[\d.]+)", parts)
        assert sum(float(number) * (-1 if sign else 1) for sign, number in signed) == pytest.approx(
            float(total), abs=5e-4
        )


def test_why_not_names_the_reason_for_absence(run: Run) -> None:
    document = run(
        "search", "why are ranks fused", "--json", "--folder", "docs/storage", "--why-not", "docs/fusion.md"
    ).json
    assert "outside the scope" in document["why_not"]
    error = run("search", "fused", "--json", "--why-not", "./docs/fusoin.md").refused("E080")
    assert error["message"].endswith("did you mean 'docs/fusion.md'?")
    present = run("search", "why are ranks fused", "--json", "--why-not", "./docs/../docs/fusion.md").json
    assert present["why_not"].startswith("'docs/fusion.md' is result 1 of ")


def test_a_parameter_can_be_set_for_one_call(run: Run) -> None:
    before = run("search", "fusion", "--json", "--pipeline", "bm25").json["pipeline"]
    after = run("search", "fusion", "--json", "--pipeline", "bm25", "--set", "bm25.k1=1.7").json["pipeline"]
    assert before["name"] == after["name"] == "bm25"
    assert before["hash"] != after["hash"]


@pytest.mark.requirement("M3")
def test_the_state_of_a_row_is_the_one_that_the_pipeline_gives_it_and_said_once(run: Run) -> None:
    # indexed just now, a memory is remembered with certainty: above the threshold of 0.8, and not above 1
    for hot, state in (("0.8", "HOT"), ("1.0", "WARM")):
        row = run("search", "rank fusion", "--json", "--limit", "1", "--set", f"state_filter.hot={hot}").json[
            "results"
        ][0]
        assert (row["state"], row["notes"]) == (state, {})


def test_searching_without_a_store_says_how_to_make_one(tmp_path: Path) -> None:
    error = call(tmp_path, ["search", "x", "--json"]).refused("E010")
    assert "run `speckit-memory index PATH` first, in the project's folder" in error["actions"]
    assert str(tmp_path) in error["hint"]
    assert not (tmp_path / "memory.db").exists()


@pytest.mark.parametrize(("name", "content"), [("text.db", b"this is no database at all" * 50), ("empty.db", b"")])
def test_a_file_that_is_no_store_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    ran = call(tmp_path, ["search", "x", "--json", "--db", name]).ended(1)
    assert ran.json["error"]["code"] in ("E020", "E024")
    assert (tmp_path / name).read_bytes() == content


@pytest.fixture(scope="module")
def shapes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A workspace with code, a table, a file name that would command a terminal, and a replaced decision."""
    root = tmp_path_factory.mktemp("shapes")
    (root / "code.md").write_text(
        "# Quokka loop\n\n```python\nfor quokka in herd:\n    feed(quokka)\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n"
    )
    (root / "bell\x1b[31m.md").write_text("# Wombat\n\nA wombat\x07 digs.\n")
    (root / "old.md").write_text("# Lemming by rank\n\nThe lemming follows the rank.\n")
    (root / "new.md").write_text(
        "---\ncausalLinks:\n  supersedes: [old.md]\n---\n# Lemming by score\n\nThe lemming follows the score.\n"
    )
    assert call(root, ["index", "."]).status == 0
    return root


def test_code_and_tables_keep_their_lines(shapes: Path) -> None:
    out = call(shapes, ["search", "quokka herd", "--limit", "1", "-v"]).out
    assert "    │ for quokka in herd:\n    │     feed(quokka)\n" in out
    assert "    │ |---|---|\n    │ | 1 | 2 |\n" in out


def test_one_is_not_spoken_of_as_many(shapes: Path) -> None:
    out = call(shapes, ["pipeline", "plan", "quokka"]).out
    assert "in 1 memory\n" in out
    assert "1 memories" not in out


def test_control_characters_do_not_reach_the_terminal(shapes: Path) -> None:
    out = call(shapes, ["search", "wombat digs", "--limit", "1"]).out
    assert r"bell\x1b[31m.md" in out
    assert r"wombat\x07" in out
    assert "\x1b" not in out
    assert "\x07" not in out


@pytest.mark.requirement("T2.brief")
def test_unless_asked_for_more_five_results_of_three_lines_are_shown(tmp_path: Path) -> None:
    for number in range(12):
        text = f"# Cache {number}\n\nThe cache {number} keeps\n\n- entries\n- of every kind, {'and more ' * 40}\n"
        (tmp_path / f"cache-{number}.md").write_text(text)
    assert call(tmp_path, ["index", "."]).status == 0
    *rows, figures = call(tmp_path, ["search", "cache entries"]).out.splitlines()
    assert [row.split(".")[0].strip() for row in rows[::3]] == ["1", "2", "3", "4", "5"]
    assert all(re.fullmatch(r"    cache-\d+\.md:1 · id \d+", row) for row in rows[1::3])
    assert all(re.fullmatch(r"    │ The cache \d+ keeps - entries - of .* …", row) for row in rows[2::3])
    assert max(map(len, rows)) <= 120
    assert figures.startswith("5 results in ")
    assert len(call(tmp_path, ["search", "cache entries", "--json"]).json["results"]) == 10
    verbose = call(tmp_path, ["search", "cache entries", "-v"]).out
    assert verbose.count("surfaced because") == verbose.count("HOT") == verbose.count("    │ - entries") == 5


@pytest.mark.requirement("T2.brief", "A4")
def test_a_weak_match_is_said_first_and_in_plain_words(workspace: Path) -> None:
    shown = call(workspace, ["search", "sourdough bread rising time"])
    assert shown.out.startswith("Weak match: the answer may not be here.\n 1. ")
    assert "Evidence gap" not in shown.out
    verbose = call(workspace, ["search", "sourdough bread rising time", "-v"]).out
    assert verbose.startswith("Weak match: the answer may not be here.\n 1. ")
    assert "warning: Evidence gap: " in verbose
    assert "Weak match" not in call(workspace, ["search", "rank fusion"]).out


@pytest.mark.requirement("M7")
def test_a_reader_sees_what_has_replaced_a_memory(shapes: Path) -> None:
    search = ["search", "lemming follows rank"]
    assert "    superseded by Lemming by score (new.md, id " in call(shapes, [*search, "-v"]).out
    assert re.search(r"    old\.md:1 · id \d+ · superseded by new\.md\n", call(shapes, search).out)
    rows = call(shapes, ["search", "lemming follows rank", "--json"]).json["results"]
    by_key = {row["key"]: row for row in rows}
    said = {"title": "Lemming by score", "words": "The lemming follows the score."}
    successor = {"id": by_key["new.md"]["id"], "key": "new.md", **said}
    assert by_key["old.md"]["notes"]["superseded_by"] == [successor]


@pytest.mark.requirement("F6")
def test_a_memory_that_was_shown_counts_as_used(workspace: Path) -> None:
    def uses() -> Counter[str]:
        with Memory.open(workspace / "memory.db", environ={}) as memory:
            return Counter({record.key: record.access_count for record in memory.list()[0]})

    before = uses()  # other tests have searched in the workspace that this one is a copy of
    answers = [call(workspace, ["search", "backups", "--limit", "1", "--json"]).json["results"] for _ in range(2)]
    assert uses() - before == Counter(row["key"] for rows in answers for row in rows)


@pytest.mark.requirement("A2")
def test_what_is_stored_twice_is_shown_once_with_both_places(workspace: Path) -> None:
    copy = workspace / "docs" / "old" / "copy of backup.md"
    copy.parent.mkdir()
    copy.write_bytes((workspace / "docs" / "storage" / "backup.md").read_bytes())
    before = call(workspace, ["search", "backups", "--json"]).json["results"]
    assert call(workspace, ["index", "docs"]).status == 0

    rows = call(workspace, ["search", "backups", "--json"]).json["results"]
    assert [row["key"] for row in rows] == [row["key"] for row in before]
    (also,) = rows[0]["notes"]["also_at"]
    assert (rows[0]["key"], also["key"]) == ("docs/storage/backup.md", "docs/old/copy of backup.md")
    assert "    also at docs/old/copy of backup.md\n" in call(workspace, ["search", "backups", "-v"]).out
    brief = call(workspace, ["search", "backups"]).out
    assert re.search(r"backup\.md:1 · id \d+ · also at docs/old/copy of backup\.md\n", brief)
    reason = call(workspace, ["search", "backups", "--why-not", also["key"], "--json"]).json
    assert "the step 'duplicates' took it out" in reason["why_not"]


@pytest.mark.usefixtures("processes")
def test_a_query_of_bytes_that_are_not_utf_8_is_searched_without_them(shapes: Path) -> None:
    ran = call(shapes, [b"search", b"wombat \xff\xfe", b"--why-not", b"\xff.md", b"--json"])  # type: ignore[list-item]  # as a shell passes it
    assert (ran.status, ran.json["error"]["code"]) == (2, "E080")
    ran = call(shapes, [b"search", b"wombat \xff\xfe", b"--json"])  # type: ignore[list-item]
    assert ran.status == 0
    assert ran.json["results"][0]["title"] == "Wombat"


@pytest.mark.requirement("P9")
def test_one_line_says_what_the_deadline_left_no_time_for(run: Run) -> None:
    shown = run("search", "why are ranks fused", "--deadline-ms", "0.000001")
    whole = run("search", "why are ranks fused", "--deadline-ms", "0", env={"SPECKIT_DEADLINE_MS": "0.000001"}).out

    assert shown.status == 0
    [line] = [line for line in shown.out.splitlines() if line.startswith("degraded")]
    assert line == (
        "degraded: the deadline passed before spelling, acronyms, coverage, vector, graph, phrase, surface, "
        "regularise, maxsim and encoder could run; instead: the other steps; results that only these find are missing; "
        "loss of confidence: medium; --deadline-ms gives more time"
    )
    assert "docs/fusion.md" in shown.out
    assert "degraded" not in whole


def test_the_time_of_opening_the_store_is_told_by_itself(run: Run) -> None:
    shown = run("search", "why are ranks fused").out

    assert re.search(r"\d results? in [\d.]+ ms( \(budget \d+ ms\))? after [\d,]+ ms of opening the store · ", shown)


def test_a_deadline_that_is_no_time_is_refused(run: Run) -> None:
    run("search", "fusion", "--json", "--deadline-ms", "-1").refused("E032")
    run("search", "fusion", "--json", env={"SPECKIT_DEADLINE_MS": "soon"}).refused("E030")


@pytest.mark.parametrize("number", ["9" * 290, "1e300", "86_400_001", "0", "-1", ".inf"])
def test_a_budget_that_no_search_could_spend_is_refused(workspace: Path, number: str) -> None:
    (workspace / "p.yaml").write_text(f"extends: default\nbudgets_ms: {{simple: {number}}}\n")
    error = call(workspace, ["search", "quokka", "--pipeline", "p.yaml", "--json"]).refused("E114")
    assert len(error["message"]) < 400
