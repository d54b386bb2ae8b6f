"""`eval judge`: labels where two pipelines disagree, by a person or by a command."""

from __future__ import annotations

import getpass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.config.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server import completion
from speckit_memory.server.judging_terminal import judge_at_terminal, so_far
from speckit_memory.server.options import Common, DatasetPath, NamedPath, no_keep_option, shared
from speckit_memory.server.output import counted, print_json, wrapped
from speckit_memory.server.progress import ProgressReporter

if TYPE_CHECKING:
    from speckit_memory.evaluation.judging.cases import Docket
    from speckit_memory.evaluation.judging.external import ExternalJudge
    from speckit_memory.evaluation.judging.sitting import Sitting


@click.command("judge")
@click.option("--experiment", metavar="ID", help="Judge the queries of this experiment of a shadow.")
@click.option(
    "--dataset", type=DatasetPath(), metavar="DIR",
    help="Judge the queries of a dataset in the BEIR layout, or of 'bundled', the one that ships.",
)  # fmt: skip
@click.option("--own", is_flag=True, help="Judge queries that are made of your own memories.")
@click.option(
    "--pipeline", "pipelines", multiple=True, metavar="FILE|PRESET", shell_complete=completion.pipelines,
    help="One of the two pipelines that answer the dataset's queries; give it twice.",
)  # fmt: skip
@click.option(
    "--command", "judge", metavar="CMD",
    help="A program that judges: one pair as JSON on its standard input, {\"grade\": 0} to 3 on its output. No shell.",
)  # fmt: skip
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True, metavar="S",
    help="So many seconds the program may take for a pair.",
)  # fmt: skip
@click.option("--by", metavar="NAME", help="Who judges; else your user name, or the program with what it is given.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after so many pairs.")
@click.option("--qrels", type=NamedPath(), metavar="FILE", help="What is judged already, as TREC lines.")
@click.option("--qrels-out", type=NamedPath(), metavar="FILE", help="Write all judgements as TREC lines.")
@no_keep_option
@shared("db", "json")
def command(
    common: Common,
    experiment: str | None,
    dataset: Path | None,
    own: bool,
    pipelines: tuple[str, ...],
    judge: str | None,
    timeout: float,
    by: str | None,
    limit: int | None,
    qrels: Path | None,
    qrels_out: Path | None,
    no_keep: bool,
) -> None:
    """Label the documents that two pipelines disagree on, those that could change the verdict most first.

    It ends when no further label can change the verdict. Which pipeline brought a document is not shown.
    """
    from speckit_memory.evaluation.grounds.ground import DatasetSource
    from speckit_memory.evaluation.grounds.own import OwnSource
    from speckit_memory.evaluation.judging import cases
    from speckit_memory.evaluation.judging.external import ExternalJudge
    from speckit_memory.evaluation.judging.sitting import Sitting
    from speckit_memory.evaluation.trec import check_qrels_file, write_qrels
    from speckit_memory.evaluation.trec_reading import read_qrels

    if (experiment is not None) + (dataset is not None) + own != 1:
        message = "give --experiment, or --dataset or --own with --pipeline twice"
        raise click.UsageError(message, click.get_current_context())
    if experiment is not None and pipelines:
        message = "--experiment takes no --pipeline: its two have answered; --dataset and --own take two"
        raise click.UsageError(message, click.get_current_context())
    external = ExternalJudge(judge, timeout) if judge is not None else None
    imported = read_qrels(qrels) if qrels is not None else {}
    docket: Docket
    if experiment is None:
        store = None if no_keep else settings(common.db).db
        source = OwnSource(common.db) if dataset is None else DatasetSource(dataset)
        with ProgressReporter(source.name) as bar:
            docket = cases.of_source(
                source, pipelines, store, imported=imported,
                progress=lambda now: bar.update(now.done, now.total, now.phase),
            )  # fmt: skip
    else:
        docket = cases.of_experiment(experiment, common.db, imported=imported)
    if qrels_out is not None:
        check_qrels_file(qrels_out, [case.query for case in docket.cases])
    sitting = Sitting(docket.cases, live=docket.live, variants=docket.variants)
    name = by or (external.name if external else getpass.getuser())
    failures: list[str] = []
    stopped: KeyboardInterrupt | None = None
    try:
        if external is None:
            judge_at_terminal(sitting, docket, limit)
        else:
            _by_command(sitting, docket, external, limit, failures)
    except KeyboardInterrupt as interruption:
        stopped = interruption
        click.echo(err=True)
    finally:
        if not no_keep:
            docket.keep(sitting.labels, name)
        if qrels_out is not None:
            write_qrels(qrels_out, dict(sitting.judged()))
    _report(common, sitting, name, failures, kept=not no_keep)
    if stopped is not None:
        raise stopped


def _by_command(
    sitting: Sitting, docket: Docket, external: ExternalJudge, limit: int | None, failures: list[str]
) -> None:
    """Asks the program for pair after pair. Raises SpeckitError (E126) when it fails several times in a row."""
    from speckit_memory.evaluation.judging.external import MOST_FAILURES, JudgeFailedError, Pair

    row = done = 0
    while (dispute := sitting.present) is not None and (limit is None or done < limit):
        title, text = docket.documents.get(dispute.key, ("", ""))
        try:
            sitting.say(external.grade(Pair(dispute.case.text, dispute.key, title, text)))
            row = 0
        except JudgeFailedError as failure:
            failures.append(str(failure))
            sitting.say(None)
            row += 1
            if row == MOST_FAILURES:
                message = f"the judge failed {row} times in a row, at last: {failure}"
                raise SpeckitError("E126", message) from failure
        done += 1


def _report(common: Common, sitting: Sitting, name: str, failures: list[str], *, kept: bool) -> None:
    closed, verdict = sitting.closed, sitting.verdict()
    if common.as_json:
        print_json(
            {
                "judged": len(sitting.labels), "pairs": len(sitting), "by": name, "closed": closed is not None,
                "verdict": closed or verdict, "judged_queries": sitting.judged_queries, "failures": failures,
                "labels": [{"query": one.query, "key": one.key, "grade": one.grade} for one in sitting.labels],
            }
        )  # fmt: skip
        return
    judged = f"{counted(len(sitting.labels), 'pair')} judged by {name}, of {len(sitting):,} on which the two disagree"
    click.echo(wrapped(judged + ("; kept, so that the next sitting goes on there" if kept and sitting.labels else "")))
    if failures:
        click.echo(
            wrapped(f"warning: no judgement on {counted(len(failures), 'pair')}; the first: {failures[0]}", "  ")
        )
    if closed:
        click.echo(wrapped(f"the verdict on nDCG@10 is closed: {closed}"))
    else:
        click.echo(wrapped(f"still open; {so_far(sitting, verdict)}"))
