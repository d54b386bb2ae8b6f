"""`eval replay`, `scorings` and `history`: what recorded queries and kept evaluations show."""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from speckit_memory.config.workspace.settings import settings
from speckit_memory.errors.echo import plural
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.server.console import completion
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.operations.evaluation.sources import BY_USER, PIPELINE, NoKeep, Since, usage
from speckit_memory.server.operations.operation import Option, Parameters, View, operation
from speckit_memory.server.shadows.wording import since as moment_of

if TYPE_CHECKING:
    from speckit_memory.server.operations.command_line import CommandCall


class ReplayedQueries(Parameters):
    asked: Annotated[
        str, Option("The pipeline to ask.", command="--pipeline", metavar=PIPELINE, complete=completion.pipelines)
    ] = ""
    flag: Annotated[
        str, Option("Instead of --pipeline: compare the control with this flag open and closed.", metavar="NAME")
    ] = ""
    against: Annotated[
        str, Option("The control; else the pipeline in use.", metavar=PIPELINE, complete=completion.pipelines)
    ] = ""
    since: Since = None
    no_keep: NoKeep = False


@operation("tuning", "eval replay", one_door=BY_USER, shared=("db", "set", "json", "verbose"))
def replay_queries(call: CommandCall, params: ReplayedQueries) -> View:
    """Ask recorded queries again through another pipeline and compare the answers.

    The report shows agreement, cost, and a verdict where there are judgements or uses. It needs the texts of queries,
    which are kept for seven days unless .speckit/config.yaml configures otherwise. --db may name a copy of the store:
    the queries are those recorded next to it, else those of the workspace's own store. Nothing is written to the store;
    the result is kept with the queries under an id, which `flags promote --evidence` accepts for the flag of --flag.
    """
    if bool(params.asked) == bool(params.flag):
        raise usage("give either --pipeline or --flag")
    from speckit_memory.evaluation.comparing.replay import replay
    from speckit_memory.memory.store.evaluation.database import evaluation_file

    config = call.config
    if not store_is_there(config.db):
        raise no_store(config, ("run `speckit-memory index PATH` first, in the project's folder",))
    moment = _moment(params.since)
    # a copy of a store usually has no log: use the workspace's
    beside, own = evaluation_file(config.db), evaluation_file(settings().db)
    log: Path = beside if beside.exists() else own
    with call.progress("replay") as progress:
        result = replay(
            log,
            config.db,
            params.asked,
            params.against,
            since=moment,
            flag=params.flag,
            overrides=call.common.overrides,
            keep=not params.no_keep,
            progress=lambda done, total: progress(done, total, "search"),
        )
    from speckit_memory.server.shadows.report import of_one

    notes = [
        *([f"{plural(result.without_text, 'query')} without texts left out"] if result.without_text else []),
        *(
            [f"{plural(result.served_by_others, 'query')} originally answered by a pipeline other than the control"]
            if result.served_by_others
            else []
        ),
        result.keeping,
    ]
    report = of_one(config.db, result.judged, made=time.time()).as_report()
    return View(reports=[replace(report, notes=[*report.notes, *notes], data=result.as_json())])


def _moment(since: str | None) -> float | None:
    return None if since is None else moment_of(since, time.time())


class ScoringQuery(Parameters):
    since: Since = None


@operation("tuning", "eval scorings", one_door=BY_USER, reads=True, shared=("db", "json", "verbose"))
def show_scorings(call: CommandCall, params: ScoringQuery) -> View:
    """Show how often each step changed scores and ranks of results, and by how much.

    The figures come from the sample of answers that is kept in detail: a twentieth of the queries, unless
    .speckit/config.yaml sets another share, such as `evaluation: {observe: 1}`.
    """
    from speckit_memory.evaluation.experiments.scorings import ScoringReport, step_effects
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there

    moment = _moment(params.since)

    def read(database: EvaluationDatabase) -> ScoringReport:
        return step_effects(database.scorings(moment), database.pipelines())

    report = read_if_there(call.config.db, read) or step_effects((), {})
    return View(reports=[report.as_report()])


class HistoryQuery(Parameters):
    metric: Annotated[str, Option("The metric to show.")] = "nDCG@10"
    since: Since = None


@operation("tuning", "eval history", one_door=BY_USER, reads=True, shared=("db", "json", "verbose"))
def show_history(call: CommandCall, params: HistoryQuery) -> View:
    """Show a metric of every kept comparison, gate and replay over time.

    `eval gate --against` and `flags promote --evidence` accept the ids.
    """
    from speckit_memory.evaluation.comparing.storage import History
    from speckit_memory.memory.store.evaluation.database import EvaluationDatabase, read_if_there

    moment = _moment(params.since)

    def read(database: EvaluationDatabase) -> History:
        return History(params.metric, database.measured(params.metric, moment), database.metrics())

    history = read_if_there(call.config.db, read) or History(params.metric, (), ())
    return View(reports=[history.as_report()])
