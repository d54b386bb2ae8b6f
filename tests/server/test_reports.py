"""Every kind of result as a report, in all the forms that a report has."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import judged_sets
import pytest
from rendered import plain
from side_by_side import observed, record

from speckit_memory import Memory
from speckit_memory.engine.diagnostics.health_report import HealthCheck
from speckit_memory.evaluation.comparing.acceptance import good_enough
from speckit_memory.evaluation.comparing.baseline import baseline
from speckit_memory.evaluation.comparing.compare import compare_pipelines
from speckit_memory.evaluation.comparing.gate import gate
from speckit_memory.evaluation.comparing.sensitivity import sensitivity
from speckit_memory.evaluation.comparing.storage import History
from speckit_memory.evaluation.experiments.scorings import PipelineMoves, ScoringReport, StepMoves
from speckit_memory.evaluation.ground_truth.ground import DatasetSource
from speckit_memory.evaluation.made_queries.run import make_queries
from speckit_memory.evaluation.running.run import run
from speckit_memory.evaluation.statistics.comparison import Comparison
from speckit_memory.evaluation.statistics.report import Plot, Report, ReportFact, Table
from speckit_memory.evaluation.tokens.run import measure_tokens
from speckit_memory.evaluation.tuning.ablation import ablate
from speckit_memory.evaluation.tuning.calibration_report import CalibrationReport, Detection, Rate
from speckit_memory.evaluation.tuning.spaces import SpaceComparison
from speckit_memory.evaluation.tuning.tuning import tune
from speckit_memory.memory.store.evaluation.records import EvaluationFigure, StoredFigure
from speckit_memory.server.console import terminal
from speckit_memory.server.operations.evaluation.eval_tokens import ToolAnswers
from speckit_memory.server.operations.upkeep import report_checks
from speckit_memory.server.replies.answer_form import AnswerForm
from speckit_memory.server.reports.html import page
from speckit_memory.server.reports.markdown import markdown
from speckit_memory.server.reports.terminal import MOST_LINES, report_lines
from speckit_memory.server.shadows import report as shadows
from tests.server.test_shadow_page import Page

ENVIRON: dict[str, str] = {}
NOW = 1_790_000_000.0
BETTER = Comparison("now", "compared", "nDCG@10", 0.3, (0.1, 0.5), 0.004, 0.012, "better", None, 0.021)
FOUND = Detection("set", Rate(0.04, (0.01, 0.09), 40), Rate(None, None, 0), Rate(0.71, (0.5, 0.88), 40))
CALIBRATED = CalibrationReport(
    "p",
    "f00d",
    "gap",
    None,
    0.05,
    0.31,
    (0.3, 0.32),
    20,
    FOUND,
    FOUND,
    (FOUND, FOUND),
    (FOUND, FOUND),
    ("few queries",),
)
MOVED = StepMoves("boost", 4, 0.25, 0.0312, 0.5, 1.25)
SPACES = SpaceComparison(
    "a", "b", 40, {"nDCG@10": (0.41, 0.71)}, (BETTER,), 7, 2, 0.83, 30, {"MRR@5": (0.123, 0.456)}, (BETTER,)
)
MEASURED = StoredFigure("e" * 12, "eval gate", NOW, "set", "rsf", EvaluationFigure("c" * 12, "nDCG@10", 0.4567, 12))
CHECKS = [
    HealthCheck("store", True, "is consistent"),
    HealthCheck("model", True, "is slow", "use another"),
    HealthCheck("search", False, "finds nothing", "index again"),
]


class Made:
    """What the results are made of."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.pipeline = folder / "words.yaml"
        self.pipeline.write_text(judged_sets.PIPELINE)
        self.data = judged_sets.titles(folder / "mixed", by_title=6, by_text=6, by_mention=6)
        self.source = DatasetSource(self.data)
        self.store = folder / "memory.db"

    def shadows(self, *variants: str) -> Report:
        with Memory.open(self.store, root=self.folder, environ={}) as memory:
            memory.index(self.data)
        for place, failure in enumerate(variants):
            seen = [
                observed(100 * place + n, (1, 2, 3), (3, 1, 2 + n % 2), failure=failure, flag=f"F{place}")
                for n in range(30)
            ]
            record(self.store, seen, judged={1: 3, 2: 0, 3: 1})
        return shadows.read(self.store, since=None, experiment="", now=NOW, nothing=str).as_report()


KINDS: dict[str, Callable[[Made], Report]] = {
    "run": lambda made: run(made.source, ["bm25", "fts5"], environ=ENVIRON, now=NOW).as_report(),
    "comparison": lambda made: compare_pipelines(
        made.source, ["bm25", "vector"], environ=ENVIRON, now=NOW
    ).as_report(),
    "gate": lambda made: gate(made.source, "vector", "bm25", store=made.store, keep=False, environ=ENVIRON).as_report(),
    "acceptance": lambda made: good_enough(made.source, "bm25", environ=ENVIRON, now=NOW).as_report(),
    "baseline": lambda made: baseline(made.source, "vector", environ=ENVIRON, now=NOW).as_report(),
    "sensitivity": lambda made: sensitivity(made.source, "rrf", environ=ENVIRON).as_report(),
    "ablation": lambda made: ablate([made.source], str(made.pipeline), environ=ENVIRON).as_report(),
    "tuning": lambda made: tune(
        str(made.pipeline), [made.data], parameters=["bm25.single"], folds=2, trials=4, environ=ENVIRON, now=NOW
    ).as_report(),
    "calibration": lambda made: CALIBRATED.as_report(),
    "history": lambda made: History("nDCG@10", [MEASURED] * 60, ["nDCG@10"]).as_report(),
    "scorings": lambda made: ScoringReport((PipelineMoves("c" * 12, "mine", 4, (MOVED,) * 60),)).as_report(),
    "tokens": lambda made: measure_tokens(
        made.source, ["bm25"], ToolAnswers((AnswerForm(),)), budgets=(500, 1000), environ=ENVIRON
    ).as_report(),
    "made queries": lambda made: make_queries(made.data, made.folder / "out", ["words"], queries=4).as_report(),
    "vectors": lambda made: SPACES.as_report(),
    "shadow": lambda made: made.shadows(""),
    "shadow without a text to report": lambda made: made.shadows(),
    "doctor": lambda made: report_checks(CHECKS * 20),
}  # fmt: skip


@pytest.fixture(scope="module", params=KINDS)
def found(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Report:
    return KINDS[request.param](Made(tmp_path_factory.mktemp("reports")))


def values(document: Any) -> Iterator[str]:
    """Every value of a document."""
    if isinstance(document, dict):
        for one in document.values():
            yield from values(one)
    elif isinstance(document, list):
        for one in document:
            yield from values(one)
    elif document is not None and not isinstance(document, bool):
        yield str(document)


def words(text: str) -> str:
    return " ".join(text.split())


@pytest.mark.parametrize("columns", [None, 80])
def test_a_terminal_shows_a_report_in_forty_lines(
    found: Report, columns: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "columns", lambda stream=None: columns)
    lines = plain(report_lines(found, full=False))
    assert len(lines) <= MOST_LINES
    assert words(lines[0]) in words(found.title)
    assert words(found.verdict.partition("\n")[0]) in words(" ".join(lines))


def test_the_whole_report_lacks_no_figure_of_the_json(found: Report) -> None:
    shown = words(" ".join(plain(report_lines(found, full=True))))
    assert json.loads(json.dumps(found.data)) == found.data
    assert [value for value in values(found.data) if words(value) not in shown] == []


def test_markdown_has_its_tables_whole(found: Report) -> None:
    text = markdown(found, full=True)
    assert text.startswith(f"### {words(found.title)}\n")
    lines = [re.sub(r"\\\|", "", line) for line in text.splitlines()]
    for head, rule in pairwise(lines):
        if re.fullmatch(r"(\| -+:? )+\|", rule):
            assert head.count("|") == rule.count("|")
    assert [value for value in values(found.data) if words(value).replace("|", "\\|") not in words(text)] == []


def test_a_page_has_title_verdict_and_every_table(found: Report) -> None:
    root = Page(page(found, mark="mark", made="made")).root
    shown = words(root.words).replace(" ", "")
    assert words(root.find("h1")[0].words) == words(found.title)
    assert words(found.verdict).replace(" ", "").replace("`", "") in shown.replace("`", "")
    for table in found.tables:
        assert all(words(cell).replace(" ", "") in shown for row in table.rows for cell in row)


def test_a_report_in_the_form_of_each_renderer() -> None:
    report = Report(
        "a | b",
        verdict="it is better.\nReasons follow.",
        outcome="better",
        about="    - k: 60\n    + k: 20",
        facts=[ReportFact("Quality", "+0.1", "of 5 queries")],
        tables=[Table([("step", "ms"), ("<fuse>", "1.5")], "Steps"), Table([("rank", "x"), ("1", "y")], "More", True)],
        figures=lambda: [Plot("Drawn", "A line.", [("n", "y"), ("1", "2")], lambda: "<svg></svg>")],
        notes=["warning: few queries", "Serve it:\n    run `this`"],
        data={"figure": 7.25, "steps": [{"step": "fuse", "inner": [{"n": 1}, {"n": 2}]}]},
    )
    assert plain(report_lines(report, full=False)) == [
        "a | b",
        "    - k: 60",
        "    + k: 20",
        "",
        "▲ it is better.",
        "Reasons follow.",
        "",
        "Quality  +0.1  of 5 queries",
        "",
        "Steps",
        "step     ms",
        "<fuse>  1.5",
        "",
        "warning: few queries",
        "Serve it:",
        "    run `this`",
        "-v shows more",
    ]
    full = plain(report_lines(report, full=True))
    for line in ("More", "Drawn: A line.", "all figures", "figure   7.25", "steps: inner", "fuse   1", "fuse   2"):
        assert line in full
    assert markdown(report) == (
        "### a | b\n\nit is better.\n\nReasons follow.\n\n    - k: 60\n\n    + k: 20\n\n"
        "- Quality: +0.1 · of 5 queries\n\n**Steps**\n\n| step | ms |\n| --- | --: |\n| <fuse> | 1.5 |\n\n"
        "- warning: few queries\n- Serve it:\n\n        run `this`\n"
    )
    text = page(report, mark="mark", made="made")
    assert '<pre tabindex="0"><code>- k: 60\n+ k: 20</code></pre>' in text
    assert "&lt;fuse&gt;" in text
    assert "<svg></svg>" in text
    assert Page(text).root.find("p", **{"class": "lead"})[0].words == "▲ better it is better."
