"""`demo`: see the product work on its own documents."""

from __future__ import annotations

import shlex
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

import click

from server.commands.search import show_row, steps_table
from server.demo_corpus import QUESTIONS, corpus
from server.options import Common, shared
from server.output import print_json
from server.progress import ProgressReporter

if TYPE_CHECKING:
    from engine import Memory
    from engine.results import SearchResult

SHOWN = 2


@click.command("demo")
@shared("pipeline", "set", "json")
def command(common: Common) -> int:
    """Index the project's own documents into a temporary store, ask them questions, and show why the answers surface.

    Needs no network and leaves nothing behind. Exits with 1 when an answer is not the expected document.
    """
    started = monotonic()
    folder = corpus()
    with (
        TemporaryDirectory(prefix="speckit-demo-", ignore_cleanup_errors=True) as temporary,
        _open(common, Path(temporary), folder) as memory,
    ):
        with ProgressReporter("indexing the project's documents") as bar:
            report = memory.index([folder], progress=lambda now: bar.update(now.done, now.total or 0))
        indexed = monotonic() - started
        if not common.as_json:
            click.echo(
                f"Indexed {len(report.created)} documents ({report.chunks} passages) in {indexed:.1f} s, "
                "into a temporary store."
            )
        answers = [_ask(memory, number, common.as_json) for number in range(len(QUESTIONS))]
        if not common.as_json:
            _explain(memory, answers[0][1])
    seconds = monotonic() - started
    right = sum(bool(document["right"]) for document, _ in answers)
    if common.as_json:
        document = {
            "documents": len(report.created),
            "passages": report.chunks,
            "index_s": round(indexed, 3),
            "questions": [document for document, _ in answers],
            "right": right,
            "seconds": round(seconds, 3),
        }
        print_json(document)
    else:
        _end(right, len(answers), seconds)
    return 0 if right == len(answers) else 1


def _open(common: Common, temporary: Path, folder: Path) -> Memory:
    from engine import Memory

    return Memory.open(temporary / "demo.db", common.pipeline, root=folder, overrides=common.overrides)


def _ask(memory: Memory, number: int, quiet: bool) -> tuple[dict[str, Any], SearchResult]:
    question = QUESTIONS[number]
    result = memory.search(question.text, limit=3, deadline_ms=None)
    first = result.results[0].key if result.results else ""
    right = first == question.expected
    if not quiet:
        click.secho(f"\n? {question.text}", bold=True)
        for rank, row in enumerate(result.results[:SHOWN], start=1):
            show_row(rank, row)
        verdict = "the expected document is first" if right else f"expected {question.expected} first"
        click.secho(
            f"    {'✓' if right else '✗'} {verdict} · {result.timings_ms['total']:.1f} ms",
            fg="green" if right else "red",
        )
    document = {
        "query": question.text,
        "expected": question.expected,
        "first": first,
        "right": right,
        "ms": result.timings_ms["total"],
    }
    return document, result


def _explain(memory: Memory, result: SearchResult) -> None:
    if not result.results:
        return
    row = result.results[0]
    click.echo(f"\nHow {row.key} got its score for “{result.query}”, step by step:")
    click.echo(steps_table(memory.explain(result, row.id)))


def _end(right: int, asked: int, seconds: float) -> None:
    click.secho(f"\n{right} of {asked} answers as expected, {seconds:.1f} s in all.", bold=True)
    click.echo("\nTry next:")
    for line, comment in (
        ("speckit-memory index docs", "remember the documents of your project"),
        ('speckit-memory search "your question" --explain', "ask, and see why"),
        ("speckit-memory pipeline show --effective", "every step and every number of the pipeline"),
        ("speckit-memory serve", "give your coding agent access, over MCP"),
        (f"speckit-memory index {shlex.quote(str(corpus()))} --db demo.db", "keep the demo's documents to play with"),
    ):
        click.echo(f"  {line}\n      {comment}")
