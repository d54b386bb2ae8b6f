"""`eval judge`: collects labels by a person or a command where two pipelines disagree."""

from __future__ import annotations

import getpass
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import click
from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.console import completion
from speckit_memory.server.console.arguments.options import DatasetPath
from speckit_memory.server.console.output import wrap_text
from speckit_memory.server.console.progress import ProgressReporter
from speckit_memory.server.operations.command_line import present
from speckit_memory.server.operations.evaluation.judging_terminal import judge_at_terminal, prefer_at_terminal, so_far
from speckit_memory.server.operations.evaluation.sources import (
    PIPELINE,
    Count,
    NoKeep,
    measuring,
    usage,
)
from speckit_memory.server.operations.fields import Flag
from speckit_memory.server.operations.operation import Option, Parameters, View, operation

if TYPE_CHECKING:
    from speckit_memory.evaluation.judging.cases import JudgementList, JudgingQueue
    from speckit_memory.evaluation.judging.external import ExternalJudge
    from speckit_memory.evaluation.judging.session import JudgingCase, JudgingSession
    from speckit_memory.server.operations.command_line import CommandCall


class Judging(Parameters):
    experiment: Annotated[str | None, Option("Judge the queries of this experiment of a shadow.", metavar="ID")] = None
    dataset: Annotated[
        Path | None,
        Option(
            "Judge the queries of a dataset in the BEIR layout, or of 'bundled', the one that ships.",
            metavar="DIR",
            type=DatasetPath(),
        ),
    ] = None
    own: Annotated[Flag, Option("Judge queries made of your own memories.")] = False
    pipelines: Annotated[
        list[str],
        Option(
            "One of the two pipelines that answer the dataset's queries.",
            command="--pipeline",
            metavar=PIPELINE,
            complete=completion.pipelines,
        ),
    ] = []
    judge: Annotated[
        str | None,
        Option(
            "A program that judges: it reads one pair as JSON from its standard input and prints "
            '{"grade": 0} to {"grade": 3}. No shell is used.',
            command="--command",
            metavar="CMD",
        ),
    ] = None
    timeout: Annotated[float, Field(gt=0), Option("Seconds that the program may take for a pair.", metavar="S")] = 60
    preference: Annotated[
        Flag,
        Option("Choose the better of two whole answers per query instead of grading; their pipelines are not shown."),
    ] = False
    jobs: Annotated[
        int, Field(strict=True, ge=1, le=64), Option("Number of pairs that the program judges at once.", metavar="N")
    ] = 4
    judgement_list: Annotated[
        str, Option("The judgement list that labels come from and go to.", command="--list", metavar="NAME")
    ] = "default"
    by: Annotated[
        str | None,
        Option("The judge's name; else your user name, or the program with its arguments.", metavar="NAME"),
    ] = None
    limit: Annotated[Count | None, Option("Stop after this many pairs.", metavar="N")] = None
    qrels: Annotated[
        Path | None, Option("Earlier judgements as TREC lines, to be added to the list.", metavar="FILE")
    ] = None
    qrels_out: Annotated[Path | None, Option("Write all judgements as TREC lines.", metavar="FILE")] = None
    no_keep: NoKeep = False


@operation("tuning", "eval judge", one_door="people, or their programs, judge", shared=("db", "json"))
def judge(call: CommandCall, params: Judging) -> View:
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

    db, experiment, qrels, qrels_out = call.common.db, params.experiment, params.qrels, params.qrels_out
    if (experiment is not None) + (params.dataset is not None) + params.own != 1:
        raise usage("give --experiment, or --dataset or --own with --pipeline twice")
    if experiment is not None and params.pipelines:
        raise usage("--experiment takes no --pipeline: its two pipelines have answered; --dataset and --own take two")
    if params.preference and (params.judge or qrels or qrels_out):
        raise usage("--preference needs a person and has no grades; leave out --command, --qrels and --qrels-out")
    external = ExternalJudge(params.judge, params.timeout) if params.judge is not None else None
    imported = read_qrels(qrels) if qrels is not None else {}
    store = None if params.no_keep else call.config.db
    labels = JudgementList(params.judgement_list, store)
    imported_from = qrels.name if qrels is not None else ""
    docket: JudgingQueue
    if experiment is None:
        source = OwnSource(db) if params.dataset is None else DatasetSource(params.dataset)
        with measuring(source.name) as progress:
            docket = cases.of_source(
                source,
                params.pipelines,
                store,
                labels=labels,
                imported=imported,
                imported_from=imported_from,
                progress=progress,
            )
    else:
        docket = cases.of_experiment(experiment, db, labels=labels, imported=imported, imported_from=imported_from)
    if qrels_out is not None:
        check_qrels_file(qrels_out, [case.query for case in docket.cases])
    name = params.by or (external.name if external else getpass.getuser())
    if params.preference:
        return _by_preference(call, docket, labels, params.limit, name)
    sitting = JudgingSession(docket.cases, live=docket.live, variants=docket.variants)
    failures: list[str] = []
    stopped: KeyboardInterrupt | None = None
    try:
        if external is None:
            judge_at_terminal(sitting, docket, params.limit, name)
        else:
            failures = _by_command(sitting, docket, external, params.limit, params.jobs, name)
    except KeyboardInterrupt as interruption:
        stopped = interruption
        click.echo(err=True)
    finally:
        if qrels_out is not None:
            write_qrels(qrels_out, dict(sitting.judged()))
    view = _verdict(sitting, name, failures, kept=not params.no_keep)
    if stopped is not None:
        present(view, call.common)
        raise stopped
    return view


def _by_preference(call: CommandCall, docket: JudgingQueue, labels: JudgementList, limit: int | None, by: str) -> View:
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
    told = f"the second pipeline is preferred on {given.count(1.0):,} queries, the first on {given.count(-1.0):,}"
    word = "undecided" if session.verdict == "undecided" else f"the second pipeline is {session.verdict}"
    lines = [
        wrap_text(f"{told}, neither on {given.count(0.0):,}; {len(session) - session.said:,} differing ones are left"),
        wrap_text(f"{word}: preference {mean:+.3f} over all queries (95 % interval {low:+.3f} to {high:+.3f})"),
        *([wrap_text(f"kept as {kept}", dim=True)] if kept else []),
    ]
    view = View(
        data={
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
        },
        text="\n".join(lines),
    )
    if stopped is not None:
        present(view, call.common)
        raise stopped
    return view


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


def _verdict(sitting: JudgingSession, name: str, failures: list[str], *, kept: bool) -> View:
    closed, verdict = sitting.closed, sitting.verdict()
    judged = f"{plural(len(sitting.labels), 'pair')} judged by {name}, of {len(sitting):,} on which the two disagree"
    lines = [
        wrap_text(judged + ("; kept, so that the next session continues there" if kept and sitting.labels else ""))
    ]
    if failures:
        warning = f"warning: no judgement on {plural(len(failures), 'pair')}; the first: {failures[0]}"
        lines.append(wrap_text(warning, "  "))
    final = f"the verdict on nDCG@10 is final: {closed}"
    lines.append(wrap_text(final if closed else f"still open; {so_far(sitting, verdict)}"))
    return View(
        data={
            "judged": len(sitting.labels),
            "pairs": len(sitting),
            "by": name,
            "closed": closed is not None,
            "verdict": closed or verdict,
            "judged_queries": sitting.judged_queries,
            "failures": failures,
            "labels": [{"query": one.query, "key": one.key, "grade": one.grade} for one in sitting.labels],
        },
        text="\n".join(lines),
    )
