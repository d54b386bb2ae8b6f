from __future__ import annotations

import re
import sys
import time
from pathlib import Path

import pytest
from side_by_side import CONTROL, EXPERIMENT, START, VARIANT, observed, record, recorded

from speckit_memory import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation.statistics.distinct_queries import lot
from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
from speckit_memory.memory.store.evaluation.records import DroppedQueries, Mode, PlacementChange, experiment_id
from speckit_memory.server.shadows.wording import since
from tests.server.doors import call
from tests.server.terminals import on_terminal

ORDER, OTHER = (1, 2, 3, 4), (3, 2, 1, 99)
"""Two answers to one query, by the ids of their memories."""
JUDGED = {1: 3, 2: 1, 3: 0, 4: 0, 99: 0}


@pytest.fixture
def store(workspace: Path) -> Path:
    return workspace / "memory.db"


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.requirement("P5.sentence", "P5.overlap", "P5.ordering", "P5.latency")
def test_the_verdict_comes_first_and_the_json_holds_the_contract(workspace: Path, store: Path) -> None:
    seen = [observed(n, ORDER, OTHER if n % 2 else ORDER, flag="SPECKIT_RSF_FUSION") for n in range(50)]
    record(store, seen, dropped=[DroppedQueries(CONTROL.hash, VARIANT.hash, "shadow", "queue", 3)])

    document = call(workspace, ["shadow", "report", "--json"]).json
    ran = call(workspace, ["shadow", "report"])

    assert document["since"] == "2025-06-15T15:06:40+00:00"
    (found,) = document["comparisons"]
    assert found["id"] == EXPERIMENT
    assert found["control"] == {"name": "default", "hash": CONTROL.hash}
    assert found["variant"] == {"name": "rsf", "hash": VARIANT.hash, "flag": "SPECKIT_RSF_FUSION"}
    assert (found["mode"], found["queries"], found["dropped"], found["failed"]) == ("shadow", 50, 3, 0)
    assert found["ordering_differences"] == 25
    assert found["overlap@10"] == 0.875
    assert found["overhead_ms"]["p50"] == pytest.approx(3.245, abs=0.01)
    assert found["served_overhead_ms"] == {"p50": 0.1, "p95": 0.1, "n": 50}
    by_step = {step["step"]: (step["control_ms"], step["variant_ms"], step["shared"]) for step in found["steps"]}
    assert by_step["vector"][2] == 50
    assert (by_step["rsf"][0], by_step["default"][1]) == (None, None)
    (kind, *_) = found["segments"]
    assert (kind["by"], kind["value"], kind["overlap@10"]) == ("intent", "understand", 0.875)
    assert found["verdict"] == "undecided"
    assert found["queries_needed"] > 0
    assert ran.status == 0
    assert ran.out.splitlines()[0] == "rsf compared with default"
    assert f"? {found['headline']}. {found['sentence']}" in words(ran.out)
    assert len(ran.out.splitlines()) <= 40
    assert "eval judge" not in ran.out  # there are no words to read
    assert "write `evaluation: {keep_texts: 7}` in .speckit/config.yaml" in ran.out
    assert "eval compare --own --flag SPECKIT_RSF_FUSION" in ran.out
    unmet = "Its criterion is not met yet (nDCG@10 better over 200 queries: it has no figure for nDCG@10)."
    assert unmet in words(ran.out)
    assert "flags promote" not in ran.out  # it would be refused
    assert "flags demote SPECKIT_RSF_FUSION" in ran.out
    assert "3 queries dropped (queue 3)" in ran.out


@pytest.mark.requirement("P5.parting")
def test_both_answers_stand_side_by_side_with_what_is_gone(workspace: Path, store: Path) -> None:
    with Memory.open(store) as memory:
        first, second, third, fourth, *_ = memory.list()[0]
    before = [known.id for known in (first, second, third, fourth)]
    after = [third.id, second.id, first.id, 9999]
    record(store, [observed(1, before, after, question="why rank fusion?"), observed(2, before, before)])
    ran = call(workspace, ["shadow", "report"])
    assert "“why rank fusion?”" in ran.out
    rows = [words(line) for line in ran.out.splitlines()]
    assert any(row.startswith("“why rank fusion?”") and row.endswith("fusion.rsf") for row in rows)
    assert f"1 {first.key} {third.key} (was 3)" in rows
    assert f"2 {second.key} {second.key}" in rows
    assert f"4 {fourth.key} memory 9999, gone since (new)" in rows


def test_without_its_words_a_query_is_its_id(workspace: Path, store: Path) -> None:
    record(store, [observed(5, ORDER, OTHER)])
    assert "query 0000000000000005 (its text is not kept)" in call(workspace, ["shadow", "report"]).out


@pytest.mark.requirement("P5.latency")
def test_a_dark_run_reports_cost_and_no_agreement(workspace: Path, store: Path) -> None:
    record(store, [observed(n, ORDER, OTHER, mode="dark_run", flag="SPECKIT_RSF_FUSION") for n in range(20)])
    (found,) = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]
    ran = call(workspace, ["shadow", "report"])
    assert found["mode"] == "dark_run"
    assert (found["overlap@10"], found["kendall_tau_b"], found["ordering_differences"]) == (None, None, None)
    assert found["spent_ms"] == {"p50": 11.0, "p95": 11.0, "n": 20}
    assert "Promote it to shadow" in ran.out


@pytest.mark.requirement("P5.latency")
def test_a_report_judges_by_the_budget_of_the_pipeline_that_was_in_force(workspace: Path) -> None:
    file = workspace / ".speckit" / "pipeline.yaml"
    file.parent.mkdir(exist_ok=True)
    for budget in (0.001, 60_000):
        file.write_text(f"budgets_ms: {{shadow: {budget}}}\nshadows: [bm25]\n", encoding="utf-8")
        assert call(workspace, ["search", "rank fusion"]).status == 0
        found = call(workspace, ["shadow", "report", "--json"]).ok().json["comparisons"]

    kept, broken = sorted(found, key=lambda one: -one["latency"]["budget_ms"])
    ran = call(workspace, ["shadow", "report", "--experiment", broken["id"]])

    assert [(one["latency"]["budget_ms"], one["latency"]["over_budget"]) for one in (kept, broken)] == [
        (60_000, 0),
        (0.001, 1),
    ]
    assert "over its budget of" in ran.out


@pytest.mark.requirement("P5.lost")
def test_failures_and_retreats_are_told(workspace: Path, store: Path) -> None:
    seen = [observed(n, ORDER, OTHER, failure="RuntimeError in rsf" if n < 4 else "") for n in range(12)]
    with recorded(store, seen) as database:
        database.record(
            (), retreats=[PlacementChange(CONTROL.hash, VARIANT.hash, "off", "p95 of 812 ms is over 500 ms", START)]
        )
    (found,) = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]
    ran = call(workspace, ["shadow", "report"])
    assert (found["failed"], found["compared"]) == (4, 8)
    assert found["retreats"] == [
        {"placement": "off", "reason": "p95 of 812 ms is over 500 ms", "at": "2025-06-15T15:06:40+00:00"}
    ]
    assert "4 failed (RuntimeError in rsf 4)" in words(ran.out)
    assert "moved to off, p95 of 812 ms is over 500 ms" in ran.out


@pytest.mark.requirement("P5.deltas")
def test_judgements_decide(workspace: Path, store: Path) -> None:
    record(store, [observed(n, ORDER, OTHER) for n in range(60)], judged=JUDGED)
    (found,) = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]
    ran = call(workspace, ["shadow", "report"])
    assert found["verdict"] == "worse"
    assert "▼ rsf is worse than default. rsf is worse than default on nDCG@10" in words(ran.out)
    assert "Stop it" in ran.out
    assert "Serve it" not in ran.out


def test_a_pipeline_beside_itself_is_the_noise_floor_of_the_others(workspace: Path, store: Path) -> None:
    again = [observed(n, ORDER, ORDER, variant=CONTROL) for n in range(60)]
    others = [observed(100 + n, ORDER, OTHER) for n in range(12)]
    record(store, [*again, *others])
    document = call(workspace, ["shadow", "report", "--json"]).json
    ran = call(workspace, ["shadow", "report"])
    verdicts = {one["variant"]["name"]: one["verdict"] for one in document["comparisons"]}
    assert verdicts == {"default": "undecided", "rsf": "undecided"}, "sixty queries alike leave much possible"
    assert all(one["noise_floor"]["queries"] == 60 for one in document["comparisons"])
    assert ran.out.splitlines()[0].startswith("2 variants compared with the served pipeline: 2 undecided (")


@pytest.mark.parametrize("mode", ["dark_run", "interleaved"])
def test_a_pipeline_beside_itself_whose_answers_are_not_kept_is_no_noise_floor(
    workspace: Path, store: Path, mode: Mode
) -> None:
    again = [observed(n, ORDER, OTHER, variant=CONTROL, mode=mode) for n in range(30)]
    record(store, [*again, *(observed(100 + n, ORDER, OTHER) for n in range(12))])
    document = call(workspace, ["shadow", "report", "--json", "--experiment", EXPERIMENT]).json
    assert document["comparisons"][0]["noise_floor"] is None


@pytest.mark.requirement("E3B.judge", "P5.deltas")
@pytest.mark.usefixtures("processes")
def test_what_a_judge_is_asked_for_settles_the_report(workspace: Path, store: Path) -> None:
    """The answers differ in their last row; of the others those that tell where the first fits."""
    with Memory.open(store) as memory:
        first, second, third, fourth, *_ = memory.list()[0]
        title = memory.get(fourth.id).title
    before, after = [first.id, second.id, third.id], [first.id, second.id, fourth.id]
    record(store, [observed(n, before, after, question=f"question {n}") for n in range(30)])
    (workspace / "judge.py").write_text(
        "import json, sys\n"
        f"print(json.dumps({{'grade': 3 * (json.load(sys.stdin)['document']['title'] == {title!r})}}))\n"
    )
    ended = call(
        workspace, ["eval", "judge", "--experiment", EXPERIMENT, "--command", f"{sys.executable} judge.py", "--json"]
    ).json
    (found,) = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]
    assert (ended["closed"], ended["verdict"]) == (True, "better")
    assert ended["judged"] < ended["pairs"] == 120
    assert found["verdict"] == "better"
    quality = found["quality"][0]
    assert (quality["metric"], quality["alike"]) == ("nDCG@10", 0)
    assert 10 <= quality["queries"] <= ended["judged"] // 2


@pytest.mark.usefixtures("processes")
def test_a_judge_of_too_few_queries_is_told_how_many_it_takes(workspace: Path, store: Path) -> None:
    with Memory.open(store) as memory:
        first, second, third, fourth, *_ = (known.id for known in memory.list()[0])
    before, after = [first, second, third], [first, second, fourth]
    record(store, [observed(n, before, after, question=f"question {n}") for n in range(30)])
    (workspace / "judge3.py").write_text("print('{\"grade\": 3}')")
    arguments = ["eval", "judge", "--experiment", EXPERIMENT, "--command", f"{sys.executable} judge3.py"]
    ran = call(workspace, [*arguments, "--limit", "1"])
    more = call(workspace, [*arguments, "--limit", "30", "--json"]).json
    assert "still open; too few judged queries yet: 0 of 10" in ran.out
    assert "nothing relevant" not in ran.out
    assert more["judged_queries"] > 0


def test_words_that_were_not_kept_are_no_dead_end(workspace: Path, store: Path) -> None:
    record(store, [observed(n, ORDER, OTHER, flag="SPECKIT_RSF_FUSION") for n in range(12)])
    ran = call(workspace, ["eval", "judge", "--experiment", EXPERIMENT, "--command", "true", "--json"])
    assert ran.json["error"]["code"] == "E125"
    assert "`eval compare --own --flag SPECKIT_RSF_FUSION`" in ran.json["error"]["actions"][1]
    assert "judge made queries" not in ran.out


@pytest.mark.usefixtures("processes")
def test_what_was_judged_is_told_before_it_is_enough(workspace: Path, store: Path) -> None:
    asked = [observed(n, ORDER, OTHER, question=f"question {n}") for n in range(12)]
    asked.sort(key=lambda one: lot(one.query.id))  # as `eval judge` asks
    record(store, asked[:3], judged=JUDGED)
    record(store, asked[3:])
    (found,) = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]
    told = words(call(workspace, ["shadow", "report"]).out)
    call(workspace, ["shadow", "report", "--html", "page.html"]).ok()
    few = "Undecided on quality of rsf against default: 3 queries judged, 10 needed before there is a figure"
    assert (found["quality"], found["judged_queries"]) == ([], 3)
    assert re.match(rf".*\? Not decided yet: 12 of about [\d,]+ queries, 3 judgements\. {few};", told)
    assert f"(`eval judge --experiment {EXPERIMENT}` asks for them)" in told
    assert "3 queries judged, 10 needed for a figure of quality" in told
    assert f"speckit-memory eval judge --experiment {EXPERIMENT}" in told
    assert "10 needed before there is a figure" in (workspace / "page.html").read_text()


def test_serving_a_variant_is_advised_once_it_was_shown_to_be_no_worse(workspace: Path, store: Path) -> None:
    better = {1: 0, 2: 0, 3: 3, 4: 0, 99: 0}
    record(store, [observed(n, ORDER, OTHER) for n in range(60)])
    assert "Serve it" not in call(workspace, ["shadow", "report"]).out
    record(store, [observed(n, ORDER, OTHER) for n in range(60)], judged=better)
    assert "Serve it" in call(workspace, ["shadow", "report"]).out


def test_variants_that_saw_nothing_have_the_names_and_ways_back_of_what_runs(workspace: Path, store: Path) -> None:
    """Dark runs that are switched off lose each query."""
    file = workspace / ".speckit" / "pipeline.yaml"
    file.parent.mkdir(exist_ok=True)
    file.write_text("extends: default\ndark_runs: [{use: bm25, sample: 1.0}]\n")
    with Memory.open(store, root=workspace, environ={}) as memory:
        [control, dark] = memory.pipelines.current.hash, memory.shadows.list()[0].hash
    recorded(store, [], dropped=[DroppedQueries(control, dark, "dark_run", "off", 1)]).close()
    told = words(call(workspace, ["shadow", "report"]).out)
    assert re.search(r"\bbm25 has seen none of 1 query \(off: 1\)", told)
    assert "remove the entry 'bm25' of `dark_runs:`" in told
    assert "the entry ''" not in told
    assert "Serve it" not in told
    ids = [one["id"] for one in call(workspace, ["shadow", "report", "--json"]).json["comparisons"]]
    alone = [words(call(workspace, ["shadow", "report", "--experiment", one]).out) for one in ids]
    (start, end), *_ = re.findall(r"(\d\d:\d\d) UTC to \S+ (\d\d:\d\d) UTC · 1 query dropped", " ".join(alone))
    assert start != end


def test_mixed_answers_are_not_judged(workspace: Path, store: Path) -> None:
    record(store, [observed(n, ORDER, OTHER, mode="interleaved", question="why?") for n in range(12)])
    mixed = experiment_id(CONTROL.hash, VARIANT.hash, "interleaved")
    ran = call(workspace, ["eval", "judge", "--experiment", mixed, "--command", "true", "--json"])
    (found,) = call(workspace, ["shadow", "report", "--json"]).json["comparisons"]
    assert (ran.status, ran.json["error"]["code"]) == (2, "E030")
    assert "were mixed" in ran.json["error"]["message"]
    assert (found["overlap@10"], found["quality"], found["agreement"], found["differing"]) == (None, [], None, [])
    assert "answers of rsf were served mixed" in found["sentence"]


def test_one_experiment_is_asked_for_by_its_id(workspace: Path, store: Path) -> None:
    record(store, [observed(1, ORDER, ORDER, variant=CONTROL), observed(2, ORDER, OTHER)])
    one = call(workspace, ["shadow", "report", "--json", "--experiment", EXPERIMENT]).json
    other = call(workspace, ["shadow", "report", "--json", "--experiment", "beef"])
    assert [found["id"] for found in one["comparisons"]] == [EXPERIMENT]
    assert other.status == 2
    assert EXPERIMENT in other.json["error"]["hint"]


def test_since_leaves_out_what_is_older(workspace: Path, store: Path) -> None:
    record(store, [observed(n, ORDER, OTHER) for n in range(60)])
    half = call(workspace, ["shadow", "report", "--json", "--since", "2025-06-15T15:36:40+00:00"]).json
    none = call(workspace, ["shadow", "report", "--since", "1h"])
    assert half["comparisons"][0]["queries"] == 30
    assert half["since"] == "2025-06-15T15:36:40+00:00"
    assert re.match(r"Nothing to report: no query has been answered by two pipelines since 20\d\d-", none.out)
    assert "90s" in call(workspace, ["shadow", "report", "--help"]).out
    assert "The last query that two pipelines answered was at 2025-06-15T16:05:40+00:00" in none.out


def test_a_moment_is_a_date_a_time_or_how_long_ago() -> None:
    now = time.time()
    assert since("24h", now) == now - 86_400
    assert since("2w", now) == now - 14 * 86_400
    assert since("2026-01-31T09:00+00:00", now) == 1769850000.0
    assert since("2026-01-31", now) == pytest.approx(1769817600.0, abs=14 * 3600)
    for text in ("yesterday", "7", "-3d", "", "2026-13-01", "9999-01-01"):
        with pytest.raises(SpeckitError, match=re.escape(f"--since is '{text}'")):
            since(text, now)


def test_nothing_is_explained_with_the_lines_that_start_a_shadow(workspace: Path) -> None:
    ran = call(workspace, ["shadow", "report"])
    document = call(workspace, ["shadow", "report", "--json"]).json
    assert ran.status == 0
    assert "No shadow pipeline of the shipped default is running" in ran.out
    assert "\n    shadows: [rsf]\n" in ran.out
    assert document["since"] is None
    assert document["comparisons"] == []
    assert "shadows: [rsf]" in document["nothing"]
    commands = re.findall(r"^    speckit-memory (flags promote SPECKIT_\w+)$", ran.out, re.MULTILINE)
    assert [call(workspace, command.split()).status for command in commands] == [0, 0]
    assert "These shadow" in call(workspace, ["shadow", "report"]).out
    assert call(workspace, ["flags", "audit"]).status == 0
    folder = workspace / ".speckit"
    folder.mkdir(exist_ok=True)
    (folder / "pipeline.yaml").write_text("shadows: [rsf]\n")
    waiting = call(workspace, ["shadow", "report"])
    assert "    rsf: shadow listed at" in waiting.out
    assert "none of their searches has been recorded yet" in words(waiting.out)


def test_a_workspace_without_a_store_says_how_to_make_one(tmp_path: Path) -> None:
    call(tmp_path, ["shadow", "report", "--json"]).refused("E010")


@pytest.mark.parametrize("columns", [40, 80, 200])
@pytest.mark.usefixtures("processes")
def test_it_fits_the_terminal(workspace: Path, store: Path, columns: int) -> None:
    record(store, [observed(n, ORDER, OTHER, question="why rank fusion?") for n in range(20)], judged=JUDGED)
    shown = on_terminal(workspace, ["shadow", "report"], columns)
    copied = [line for line in shown.lines if "eval judge" in line or "pipeline.yaml" in line]
    assert shown.status == 0, shown.text
    assert max(len(line) for line in shown.lines if line not in copied) <= columns


def test_dark_runs_stand_apart_from_verdicts_and_kept_words_need_no_setting(workspace: Path, store: Path) -> None:
    dark = [observed(n, ORDER, OTHER, mode="dark_run") for n in range(5)]
    record(store, [*dark, *(observed(n + 10, ORDER, OTHER, question="why?") for n in range(5))])

    ran = call(workspace, ["shadow", "report"])

    assert "1 undecided (rsf), 1 in a dark run (rsf)." in words(ran.out.splitlines()[0])
    assert "texts: true" not in ran.out


@pytest.mark.usefixtures("processes")
def test_a_page_that_was_pasted_as_a_question_stands_in_one_line(workspace: Path, store: Path) -> None:
    asked = "why rank fusion?\n\n" + "and much more of it " * 100
    record(store, [observed(n, ORDER, OTHER, question=asked) for n in range(5)])

    ran = call(workspace, ["shadow", "report"])
    call(workspace, ["shadow", "report", "--html", "page.html"])

    assert "“why rank fusion? and much more of it and much more" in ran.out
    assert max(len(line) for line in ran.out.splitlines() if "rank fusion" in line) < 120
    assert "and much more of it " * 10 not in (workspace / "page.html").read_text()


def test_a_variant_that_only_lost_queries_is_called_by_its_hash(workspace: Path) -> None:
    lost = DroppedQueries(CONTROL.hash, VARIANT.hash, "shadow", "off", 3)
    with EvaluationDatabase.open(evaluation_file(workspace / "memory.db")) as database:
        database.record([], [lost])
    told = words(call(workspace, ["shadow", "report"]).out)
    assert "abababa has seen none of 3 queries (off: 3), so there is nothing to compare with c0c0c0c." in told
    assert "the entry ''" not in told


@pytest.mark.requirement("P5.parting")
@pytest.mark.usefixtures("processes")
def test_the_queries_that_differ_most_stand_in_the_order_of_the_figure_beside_them(
    workspace: Path, store: Path, tmp_path: Path
) -> None:
    """Later ones are no nearer to the top, and those of one figure stand by their ids."""
    others = {1: (9, 2, 3, 4), 2: (1, 2, 4, 3), 3: (5, 6, 7, 8), 4: (9, 2, 3, 4), 5: (1, 2, 3, 9), 6: (5, 6, 7, 8)}
    record(store, [observed(number, ORDER, other) for number, other in others.items()])

    found = call(workspace, ["shadow", "report", "--json"]).json["comparisons"][0]
    printed = call(workspace, ["shadow", "report"]).out
    written = call(workspace, ["shadow", "report", "--html", "report.html"]).out
    page = (workspace / "report.html").read_text()

    assert found["differing_by"] == "rbo"
    shown = [(round(one["rbo"], 3), one["query"]) for one in found["differing"]]
    assert shown == sorted(shown)
    assert [number for _, number in shown[:4]] == [f"{number:016x}" for number in (3, 6, 1, 4)]
    told = re.findall(r"query ([0-9a-f]{16}) .*kept\) +([01]\.\d{3}) +\d of the first 4", printed)
    assert [(float(rbo), query) for query, rbo in told] == shown[: len(told)]
    assert len(told) >= 3
    assert "The queries that differ most" not in written
    assert "The queries that differ most, by rank-biased overlap, lowest first:" in printed
    drawn = re.findall(r"query ([0-9a-f]{16}) [^<]*</th><td>([01]\.\d{3})<", page)
    assert [(float(rbo), query) for query, rbo in drawn] == shown
