"""`demo`: shows the product at work on its own documents."""

from __future__ import annotations

import shlex
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import chain, count
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from speckit_memory.config.files.paths import working_folder
from speckit_memory.config.files.written_file import check_target
from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.evaluation import bundled
from speckit_memory.server.console.arguments.options import Common, NamedPath, shared_options
from speckit_memory.server.console.completion import PROGRAM
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.operations.evaluation.shadow_report import PAGE_MARK, write_page
from speckit_memory.server.operations.terminal.searching import show_row
from speckit_memory.server.views.recombination import render_recombination

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.answers.results import SearchResult
    from speckit_memory.memory.intake.source import Source
    from speckit_memory.server.console.arguments.options import Common
    from speckit_memory.server.console.progress import ProgressReporter
    from speckit_memory.server.shadows.report import ShadowReport


VARIANT = "vector"
"""The shadow pipeline; it answers the usual first question: would vectors alone be enough?"""
QUERIES = 60
"""Size of the sample of queries, always the same one. It suffices to decide a difference of this size."""
WAIT_SECONDS = 300.0
CONFIGURATION = "evaluation: {keep_texts: 7}\n"
"""The configuration of the demo's workspace: query texts are kept, so that the report can show them."""


@dataclass(frozen=True, slots=True)
class LiveShadow:
    """The outcome of the experiment, and the number of queries."""

    report: ShadowReport
    asked: int

    def as_json(self) -> dict[str, Any]:
        """The entry `shadow` of `demo --json`."""
        sentence = self.report.sentence()
        return {"variant": VARIANT, "queries": self.asked, "sentence": sentence, **self.report.as_report().data}


def live_shadow(common: Common, store: Path, root: Path, bar: ProgressReporter) -> LiveShadow:
    """Runs the queries on a store of the demo's documents, and judges both answers by the curated labels.

    Args:
        common: The options that all commands share.
        store: File of the demo's store.
        root: Folder of the demo's workspace; its configuration is written here.
        bar: Receives the progress.
    """
    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.datasets.dataset import read
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file
    from speckit_memory.memory.store.evaluation.records import QueryJudgement
    from speckit_memory.server.shadows import report

    began = time.time()
    dataset = read(bundled.FOLDER)
    judged_queries = dataset.judged()
    # every n-th judged query: the same sample in every run
    asked = judged_queries[:: max(1, len(judged_queries) // QUERIES)][:QUERIES]
    control = str(common.pipeline or settings(root=root).pipeline)
    pipeline = {"extends": control, "pipeline": Path(control).stem, "shadows": [VARIANT]}
    judged: list[QueryJudgement] = []
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(CONFIGURATION, encoding="utf-8")
    with Memory.open(store, pipeline, root=root, overrides=common.overrides) as memory:
        records, _ = memory.list(limit=len(dataset.keys))
        ids = {record.key: record.id for record in records}
        for number, query in enumerate(asked, start=1):
            result = memory.search(query.text, folder=query.folder, deadline_ms=None)
            memory.feedback.delivered(result)
            grades = _grades(dataset.judgements[query.id], ids)
            judged += [
                QueryJudgement(result.query_id, memory_id, grade, "judged", "demo", time.time())
                for memory_id, grade in grades.items()
            ]
            bar.update(number, 2 * len(asked), "running curated queries")
        # shadows run in the background: wait for them, or the report would be incomplete
        memory.shadows.finish(
            WAIT_SECONDS,
            lambda done, total: bar.update(total + done, 2 * total, "running the shadow pipeline"),
        )
    with closing(EvaluationDatabase.open(evaluation_file(store))) as database:
        database.judge(judged)
    shown = report.read(store, since=began, experiment="", now=time.time(), nothing=str)
    return LiveShadow(shown, len(asked))


def _grades(judgements: Mapping[str, float], ids: Mapping[str, int]) -> dict[int, int]:
    """The grade of every document by memory id; 0 without a label, as in the metrics."""
    return {memory: int(judgements.get(key, 0)) for key, memory in ids.items()}


@dataclass(frozen=True, slots=True)
class DemoQuestion:
    """A question and the key of the document that answers it."""

    text: str
    expected: str


QUESTIONS: tuple[DemoQuestion, ...] = (
    DemoQuestion("why is memory mapping switched off?", "docs/decisions/0003-no-mmap.md"),
    DemoQuestion("why is the pipeline not a general graph of steps?", "docs/decisions/0001-four-fixed-stages.md"),
    DemoQuestion("are scores fused, or ranks?", "docs/decisions/0004-fuse-by-score.md"),
    DemoQuestion("what happens to blocks in causalLinks", "docs/decisions/0006-link-vocabulary.md"),
    DemoQuestion("do chunks have ids of their own?", "docs/decisions/0002-one-id-sequence.md"),
    DemoQuestion("which frozen columns flow between the stages?", "docs/datamodel.md"),
)


def corpus() -> list[Source]:
    """The documents. Raises E010 if the installation lacks them."""
    from speckit_memory.evaluation.datasets.documents import MARKDOWN, documents
    from speckit_memory.evaluation.datasets.lines import Problems
    from speckit_memory.evaluation.measuring.measure import source_of

    problems = Problems()
    found = [
        source_of(document)
        for _, document in documents(bundled.FOLDER, problems)
        if document.key.startswith(f"{MARKDOWN}/")
    ]
    problems.raise_any()
    if found:
        return found
    missing = f"the documents of the demo are missing: '{bundled.FOLDER / 'docs'}'"
    raise SpeckitError("E010", missing, actions=("install again",))


SHOWN = 2


@click.command("demo")
@click.option("--keep", type=NamedPath(), metavar="FILE", help="Keep the store in this new file.")
@click.option("--html", "page", type=NamedPath(), metavar="FILE", help="Write the shadow report as a page.")
@shared_options("pipeline", "set", "json")
def command(common: Common, keep: Path | None, page: Path | None) -> int:
    """Index the project's own documents, ask questions, and explain the answers.

    The store is temporary. A second pipeline then answers curated queries in the background, as a shadow, and a report
    says which of the two is better. The demo needs no network and leaves nothing behind except the files of --keep and
    --html. Exits with 1 when an answer is not the expected document.
    """
    started = monotonic()
    documents = corpus()
    if page is not None:
        check_target(page, lambda beginning: PAGE_MARK in beginning, "the page")
    if keep is not None and keep.exists():
        actions = ("name another file", f"search it with --db {shlex.quote(str(keep))}")
        raise SpeckitError("E014", f"'{keep}' exists already", hint="The demo writes to a new store.", actions=actions)
    with ExitStack() as open_things:
        prefix = "speckit-demo-"
        root = Path(open_things.enter_context(TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True)))
        store = keep or root / "demo.db"
        memory = open_things.enter_context(_open(common, store, root))
        with ProgressReporter("indexing the project's documents") as bar:
            report = memory.index_documents(documents, progress=lambda now: bar.update(now.done, len(documents)))
        indexed = monotonic() - started
        if not common.as_json:
            counts = f"{len(report.created)} documents ({report.chunks} passages)"
            click.echo(wrap_text(f"Indexed {counts} in {indexed:.1f} s, into {keep or 'a temporary store'}."))
        answers = [_ask(memory, number, common.as_json) for number in range(len(QUESTIONS))]
        if not common.as_json:
            _explain(memory, answers[0][1])
        with ProgressReporter("one live shadow") as bar:
            shadow = live_shadow(common, store, root, bar)
        if page is not None:
            write_page(page, shadow.report)
    seconds = monotonic() - started
    right = sum(bool(document["right"]) for document, _ in answers)
    if common.as_json:
        document = {
            "documents": len(report.created),
            "passages": report.chunks,
            "index_s": round(indexed, 3),
            "questions": [document for document, _ in answers],
            "right": right,
            "shadow": shadow.as_json(),
            "seconds": round(seconds, 3),
        }
        print_json(document)
    else:
        _show_shadow(shadow, page)
        _end(right, len(answers), seconds)
        _advise(keep)
    return 0 if right == len(answers) else 1


def _open(common: Common, store: Path, root: Path) -> Memory:
    from speckit_memory.engine import Memory

    return Memory.open(store, common.pipeline, root=root, overrides=common.overrides)


def _ask(memory: Memory, number: int, quiet: bool) -> tuple[dict[str, Any], SearchResult]:
    question = QUESTIONS[number]
    result = memory.search(question.text, limit=3, deadline_ms=None)
    first = result.results[0].key if result.results else ""
    right = first == question.expected
    if not quiet:
        click.echo("\n" + wrap_text(question.text, "  ", "? ", bold=True))
        for rank, row in enumerate(result.results[:SHOWN], start=1):
            show_row(rank, row)
        verdict = "the expected document is first" if right else f"expected {question.expected} first"
        line = f"{'✓' if right else '✗'} {verdict} · {result.timings_ms.total:.1f} ms"
        click.echo(wrap_text(line, "    ", fg="green" if right else "red"))
    document = {
        "query": question.text,
        "expected": question.expected,
        "first": first,
        "right": right,
        "ms": result.timings_ms.total,
    }
    return document, result


def _explain(memory: Memory, result: SearchResult) -> None:
    if not result.results:
        return
    row = result.results[0]
    click.echo("\n" + wrap_text(f"How {row.key} got its score for “{result.query}”, step by step:"))
    click.echo(render_recombination(memory.explain.row(result, row.id), "  "))


def _show_shadow(shadow: LiveShadow, page: Path | None) -> None:
    """Shows the verdict on the shadow, and how to get one on one's own queries."""
    beside = f"in the background, `{VARIANT}` answered {shadow.asked} curated queries too"
    click.echo("\n" + wrap_text(f"One live shadow: {beside}."))
    click.echo(wrap_text(shadow.report.sentence(), "  ", bold=True))
    where = (
        f"`{_program_name()} demo --html FILE` writes the full report as a page"
        if page is None
        else f"as a page: {page}"
    )
    click.echo(wrap_text(f"{where}.", "  "))
    own = f"On your own queries: write `shadows: [{VARIANT}]` into .speckit/pipeline.yaml, work as usual, then ask"
    click.echo(wrap_text(f"{own} `{_program_name()} shadow report`.", "  "))


def _end(right: int, asked: int, seconds: float) -> None:
    click.echo("\n" + wrap_text(f"{right} of {asked} answers as expected, {seconds:.1f} s in all.", bold=True))


def _advise(kept: Path | None) -> None:
    """Suggests next steps; every line can be run as printed in the reader's folder."""
    program = _program_name()
    # the suggested file must not exist yet
    names = chain(["demo.db"], map("demo-{}.db".format, count(2)))
    free = next(name for name in names if not Path(name).exists())
    play = (f"demo --keep {free}", "keep the demo's documents to play with")
    if kept is not None:
        play = (f'search "{QUESTIONS[0].text}" --db {shlex.quote(str(kept))}', "play with the demo's documents")
    click.echo("\nTry next:")
    for line, comment in (
        (f"index {shlex.quote(_own_documents())}", "remember the documents of your project"),
        ('search "your question" --explain', "ask, and see why"),
        ("pipeline show --effective", "every step and every number of the pipeline"),
        ("serve", "give your coding agent access, over MCP"),
        play,
    ):
        click.echo(f"  {program} {line}")  # never wrapped, so that it can be copied
        click.echo(wrap_text(comment, "      "))


def _own_documents() -> str:
    """A folder that `index` accepts from the reader's folder."""
    root, here = settings().root, working_folder()
    if not here.resolve().is_relative_to(root):
        return str(root)
    return "docs" if (here / "docs").is_dir() else "."


def _program_name() -> str:
    """The program's name if the shell finds this installation by it, else the path it was called by."""
    found, path = shutil.which(PROGRAM), Path(sys.argv[0])
    if not path.is_file() or (found and Path(found).samefile(path)):
        return PROGRAM
    return shlex.quote(str(path))
