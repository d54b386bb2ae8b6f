"""`eval judge`: collects labels by a person or a command where two pipelines disagree."""

from __future__ import annotations

import getpass
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.commands.evaluation.judging_terminal import judge_at_terminal, prefer_at_terminal, so_far
from speckit_memory.server.console.arguments.options import (
    Common,
    DatasetPath,
    NamedPath,
    no_keep_option,
    shared_options,
)
from speckit_memory.server.console.arguments.sources import pipelines_option
from speckit_memory.server.console.output import print_json, wrap_text
from speckit_memory.server.console.progress import ProgressReporter

if TYPE_CHECKING:
    from speckit_memory.evaluation.judging.cases import JudgementList, JudgingQueue
    from speckit_memory.evaluation.judging.external import ExternalJudge
    from speckit_memory.evaluation.judging.session import JudgingCase, JudgingSession


@click.command("judge")
@click.option("--experiment", metavar="ID", help="Judge the queries of this experiment of a shadow.")
@click.option(
    "--dataset",
    type=DatasetPath(),
    metavar="DIR",
    help="Judge the queries of a dataset in the BEIR layout, or of 'bundled', the one that ships.",
)
@click.option("--own", is_flag=True, help="Judge queries made of your own memories.")
@pipelines_option("One of the two pipelines that answer the dataset's queries; give it twice.")
@click.option(
    "--command",
    "judge",
    metavar="CMD",
    help="A program that judges: it reads one pair as JSON from its standard input and prints "
    '{"grade": 0} to {"grade": 3}. No shell is used.',
)
@click.option(
    "--timeout",
    type=click.FloatRange(min=0, min_open=True),
    default=60,
    show_default=True,
    metavar="S",
    help="Seconds that the program may take for a pair.",
)
@click.option(
    "--preference",
    is_flag=True,
    help="Choose the better of two whole answers per query instead of grading; their pipelines are not shown.",
)
@click.option(
    "--jobs",
    type=click.IntRange(1, 64),
    default=4,
    show_default=True,
    metavar="N",
    help="Number of pairs that the program judges at once.",
)
@click.option(
    "--list",
    "judgement_list",
    default="default",
    show_default=True,
    metavar="NAME",
    help="The judgement list that labels come from and go to.",
)
@click.option("--by", metavar="NAME", help="The judge's name; else your user name, or the program with its arguments.")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="Stop after this many pairs.")
@click.option(
    "--qrels", type=NamedPath(), metavar="FILE", help="Earlier judgements as TREC lines, to be added to the list."
)
@click.option("--qrels-out", type=NamedPath(), metavar="FILE", help="Write all judgements as TREC lines.")
@no_keep_option
@shared_options("db", "json")
def command(
    common: Common,
    experiment: str | None,
    dataset: Path | None,
    own: bool,
    pipelines: tuple[str, ...],
    judge: str | None,
    timeout: float,
    preference: bool,
    jobs: int,
    judgement_list: str,
    by: str | None,
    limit: int | None,
    qrels: Path | None,
    qrels_out: Path | None,
    no_keep: bool,
) -> None:
    """Label the documents that two pipelines disagree on, the most decisive first.

    It ends when no further label can change the verdict. The pipeline that found a document is not shown. Each label is
    kept at once, by question and text, and is reused wherever the same pair occurs. With --preference a person chooses
    between two whole answers until these choices show which pipeline is better.
    """
    from speckit_memory.evaluation.datasets.trec import check_qrels_file, read_qrels, write_qrels
    from speckit_memory.evaluation.ground_truth.ground import DatasetSource
    from speckit_memory.evaluation.ground_truth.own import OwnSource
    from speckit_memory.evaluation.judging import cases
    from speckit_memory.evaluation.judging.cases import JudgementList
    from speckit_memory.evaluation.judging.external import ExternalJudge
    from speckit_memory.evaluation.judging.session import JudgingSession

    if (experiment is not None) + (dataset is not None) + own != 1:
        message = "give --experiment, or --dataset or --own with --pipeline twice"
        raise click.UsageError(message, click.get_current_context())
    if experiment is not None and pipelines:
        message = "--experiment takes no --pipeline: its two pipelines have answered; --dataset and --own take two"
        raise click.UsageError(message, click.get_current_context())
    if preference and (judge or qrels or qrels_out):
        message = "--preference needs a person and has no grades; leave out --command, --qrels and --qrels-out"
        raise click.UsageError(message, click.get_current_context())
    external = ExternalJudge(judge, timeout) if judge is not None else None
    imported = read_qrels(qrels) if qrels is not None else {}
    store = None if no_keep else settings(common.db).db
    labels = JudgementList(judgement_list, store)
    imported_from = qrels.name if qrels is not None else ""
    docket: JudgingQueue
    if experiment is None:
        source = OwnSource(common.db) if dataset is None else DatasetSource(dataset)
        with ProgressReporter(source.name) as bar:
            docket = cases.of_source(
                source,
                pipelines,
                store,
                labels=labels,
                imported=imported,
                imported_from=imported_from,
                progress=lambda now: bar.update(now.done, now.total, now.phase),
            )
    else:
        docket = cases.of_experiment(
            experiment, common.db, labels=labels, imported=imported, imported_from=imported_from
        )
    if qrels_out is not None:
        check_qrels_file(qrels_out, [case.query for case in docket.cases])
    name = by or (external.name if external else getpass.getuser())
    if preference:
        _by_preference(common, docket, labels, limit, name)
        return
    sitting = JudgingSession(docket.cases, live=docket.live, variants=docket.variants)
    failures: list[str] = []
    stopped: KeyboardInterrupt | None = None
    try:
        if external is None:
            judge_at_terminal(sitting, docket, limit, name)
        else:
            failures = _by_command(sitting, docket, external, limit, jobs, name)
    except KeyboardInterrupt as interruption:
        stopped = interruption
        click.echo(err=True)
    finally:
        if qrels_out is not None:
            write_qrels(qrels_out, dict(sitting.judged()))
    _report(common, sitting, name, failures, kept=not no_keep)
    if stopped is not None:
        raise stopped


def _by_preference(common: Common, docket: JudgingQueue, labels: JudgementList, limit: int | None, by: str) -> None:
    """Asks which answer is better, stores each choice at once, and reports the verdict."""
    from speckit_memory.evaluation.judging.cases import lists_of
    from speckit_memory.evaluation.judging.preferences import SHOWN, AnswerPair, PreferenceSession
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, evaluation_file

    def named(case: JudgingCase, *, swapped: bool = False) -> str:
        shown = (
            [docket.documents.get(key, (key, "")) for key in keys[:SHOWN]] for keys in (case.control, case.variant)
        )
        control, variant = shown
        return lists_of(case.text, *((variant, control) if swapped else (control, variant)))

    def keep(pair: AnswerPair, preference: float) -> None:
        labels.put({named(pair.case): preference}, by)

    grades, known = labels.grades(), dict[str, float]()
    for case in docket.cases if grades else ():
        if (grade := grades.get(named(case))) is not None:
            known[case.query] = grade
        elif (grade := grades.get(named(case, swapped=True))) is not None:
            known[case.query] = -grade  # the same two answers in the opposite order
    session = PreferenceSession(docket.cases, known)
    stopped: KeyboardInterrupt | None = None
    try:
        prefer_at_terminal(session, docket, limit, keep, lambda pair: labels.remove(named(pair.case), by))
    except KeyboardInterrupt as interruption:
        stopped = interruption
        click.echo(err=True)
    kept = ""
    if session.preferences and labels.store is not None:
        evaluation = session.evaluation(docket.pipelines, docket.origin, time.time())
        with EvaluationDatabase.open(evaluation_file(labels.store)) as database:
            database.keep(evaluation)
        kept = evaluation.id
    given, (low, high) = list(session.preferences.values()), session.interval
    mean = float(session.values.mean()) if len(session.values) else 0.0
    if common.as_json:
        print_json(
            {
                "judged": len(given),
                "pairs": len(session),
                "by": by,
                "verdict": session.verdict,
                "preference": mean,
                "interval": [low, high],
                "variant": given.count(1.0),
                "control": given.count(-1.0),
                "neither": given.count(0.0),
                "id": kept or None,
            }
        )
    else:
        told = f"the second pipeline is preferred on {given.count(1.0):,} queries, the first on {given.count(-1.0):,}"
        click.echo(
            wrap_text(
                f"{told}, neither on {given.count(0.0):,}; {len(session) - session.said:,} differing ones are left"
            )
        )
        word = "undecided" if session.verdict == "undecided" else f"the second pipeline is {session.verdict}"
        click.echo(
            wrap_text(f"{word}: preference {mean:+.3f} over all queries (95 % interval {low:+.3f} to {high:+.3f})")
        )
    if kept and not common.as_json:
        click.echo(wrap_text(f"kept as {kept}", dim=True))
    if stopped is not None:
        raise stopped


def _by_command(
    sitting: JudgingSession, docket: JudgingQueue, external: ExternalJudge, limit: int | None, jobs: int, by: str
) -> list[str]:
    """Asks the program about `jobs` pairs at once and stores each label at once; returns the reasons for missing
    labels.

    Raises SpeckitError (E126) when the program fails several times in a row.
    """
    from concurrent.futures import ThreadPoolExecutor

    from speckit_memory.evaluation.judging.external import MOST_FAILURES, JudgeFailedError, QueryDocumentPair
    from speckit_memory.evaluation.judging.session import Dispute, Label

    def grade(dispute: Dispute) -> int | JudgeFailedError | None:
        try:
            title, text = docket.documents.get(dispute.key, ("", ""))
            given = external.grade(QueryDocumentPair(dispute.case.text, dispute.key, title, text))
        except JudgeFailedError as failure:
            return failure
        if given is not None:
            docket.keep(Label(dispute.case.query, dispute.key, given), by)
        return given

    failures: list[str] = []
    # `row` counts consecutive failures
    row, most = 0, len(sitting) if limit is None else min(limit, len(sitting))
    with ThreadPoolExecutor(jobs) as pool, ProgressReporter("judging") as bar:
        while asked := sitting.upcoming(min(jobs, most - sitting.said)):
            for given in list(pool.map(grade, asked)):
                failed = isinstance(given, JudgeFailedError)
                row = row + 1 if failed else 0
                failures += [str(given)] if failed else []
                sitting.say(None if isinstance(given, JudgeFailedError) else given)
                if row == MOST_FAILURES:
                    raise SpeckitError("E126", f"the judge failed {row} times in a row, at last: {given}")
                if sitting.closed is not None:
                    break  # labels given at the same time are stored, but not needed any more
            bar.update(sitting.said, most)
    return failures


def _report(common: Common, sitting: JudgingSession, name: str, failures: list[str], *, kept: bool) -> None:
    closed, verdict = sitting.closed, sitting.verdict()
    if common.as_json:
        print_json(
            {
                "judged": len(sitting.labels),
                "pairs": len(sitting),
                "by": name,
                "closed": closed is not None,
                "verdict": closed or verdict,
                "judged_queries": sitting.judged_queries,
                "failures": failures,
                "labels": [{"query": one.query, "key": one.key, "grade": one.grade} for one in sitting.labels],
            }
        )
        return
    judged = f"{plural(len(sitting.labels), 'pair')} judged by {name}, of {len(sitting):,} on which the two disagree"
    click.echo(
        wrap_text(judged + ("; kept, so that the next session continues there" if kept and sitting.labels else ""))
    )
    if failures:
        click.echo(
            wrap_text(f"warning: no judgement on {plural(len(failures), 'pair')}; the first: {failures[0]}", "  ")
        )
    if closed:
        click.echo(wrap_text(f"the verdict on nDCG@10 is final: {closed}"))
    else:
        click.echo(wrap_text(f"still open; {so_far(sitting, verdict)}"))
