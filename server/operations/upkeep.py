"""Keep the store in order: check everything, run the background work (features T7, M5 and M11)."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.settings import ROOT_VARIABLE, settings
from speckit_memory.engine.diagnostics.health_report import DAMAGED, HealthCheck
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.errors.echo import plural
from speckit_memory.server.calls.unused_parameters import UnusedParameters
from speckit_memory.server.console.arguments.options import Common
from speckit_memory.server.console.environment import flags_of_extensions, remarks
from speckit_memory.server.console.markdown import about
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.operations.fields import DryRun, Flag, Name
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.upkeep.maintenance import JobOutcome
    from speckit_memory.evaluation.statistics.report import Report
    from speckit_memory.server.workspace.workspace import Workspace


BUDGET = 800
ROOM_BESIDE_WRONG = 80
"""Tokens for the sentence that says how many checks were left out."""
MOST_KEYS = 10
"""Keys shown per document; the rest are counted."""
_OF_A_STORE = ("store", "evaluation", "latency")
"""Checks that are meaningless without a store: they would name a temporary one."""
_SEVERITY = ("fail", "warn", "ok")
"""The order of the checks: failures first."""


class HealthQuery(Parameters):
    fix: Annotated[
        Flag,
        Option("First rewrite the segment of the store, and remove leftover segment files.", tool=None),
    ] = False
    repair: Annotated[Flag, Option("First rebuild derived data of the store, after a checkpoint.", tool=None)] = False
    report: Annotated[
        Literal["full", "divergent_aliases"],
        Option(
            "List documents that are in several folders instead.",
            tool="reportMode",
            command="--aliases",
            flag="divergent_aliases",
        ),
    ] = "full"
    limit: Annotated[
        int,
        Field(strict=True, ge=1, le=200),
        Option("With --aliases: maximum number of documents.", brief="Of aliases"),
    ] = 20
    folder: Annotated[Name, Option("With --aliases: only documents of this folder and below.", tool="specFolder")] = ""


def _unused(values: Mapping[str, Any]) -> UnusedParameters | None:
    """`limit` has no effect on the full report, which has no list."""
    return UnusedParameters(("limit",), "the full report lists no aliases") if values["reportMode"] == "full" else None


@operation(
    "set-up",
    "doctor",
    Tool(
        "memory_health",
        "Check health",
        "Check store, engine, model and configuration; or list documents in several folders.",
        budget=BUDGET,
        here=True,
        unused=_unused,
    ),
    reads=True,
    shared=("db", "pipeline", "set", "json", "verbose"),
)
def doctor(call: Call, params: HealthQuery) -> View:
    """Check SQLite, the store, the embedding model and the configuration.

    Also checks packages and the SQLite extension. Prints failures and warnings, failures first, and the result of
    --repair; otherwise one line. Exits with 1 on a failure. A store that does not exist yet is not a failure.
    """
    if params.report == "divergent_aliases":
        return _aliases(call.memory(), params.folder, params.limit)
    if params.folder:
        needed = call.way("--folder goes with --aliases", "a 'specFolder' needs reportMode: divergent_aliases")
        raise SpeckitError("E031", needed)
    if call.workspace:
        return _of_server(call.workspace)
    assert call.common is not None  # it is no tool
    common, fix, repair = call.common, params.fix, params.repair
    wrong = _workspace_files(common)
    if wrong and repair:
        wrong.append(_unrepaired("the files of the workspace are wrong"))
    checks = [*_environment(), *(wrong or [*_flag_rules(common), *_engine(common, fix, repair)])]
    checks.sort(key=lambda check: _SEVERITY.index(check.verdict))
    report = report_checks(checks)
    return View(report.title, dict(report.data), reports=(report,), status=int(report.outcome == "fail"))


def report_checks(checks: Sequence[HealthCheck]) -> Report:
    """The checks, and whether all is well."""
    from speckit_memory.evaluation.statistics.report import Report, ReportFact

    healthy = all(check.ok for check in checks)
    warnings = sum(check.verdict == "warn" for check in checks)
    fine = f"nothing failed, {plural(warnings, 'warning')}" if warnings else "everything is in order"
    summary = fine if healthy else "something is wrong: see the lines marked fail"
    return Report(
        f"{summary} ({plural(len(checks), 'check')})",
        outcome="pass" if healthy else "fail",
        facts=[
            ReportFact(one.name, one.detail, one.hint, one.verdict, one.verdict == "ok" and one.name != "repair")
            for one in checks
        ],
        data=_document(checks),
    )


def _document(checks: Sequence[HealthCheck]) -> dict[str, Any]:
    shown = ("name", "ok", "verdict", "detail", "hint")
    rows = [{name: getattr(one, name) for name in shown} for one in checks]
    return {"ok": all(check.ok for check in checks), "checks": rows}


def _of_server(workspace: Workspace) -> View:
    """The checks of a server's store; the budget is large enough for all failures and warnings."""
    from speckit_memory.server.console.fitting_actions import advice_for_client
    from speckit_memory.server.logging.log_stream import lost_lines

    def advice(text: str) -> str:
        # a profile that has this tool has them all
        return advice_for_client(text, lambda _: True)

    try:
        found = workspace.memory().status().checks
        checks = [HealthCheck(one.name, one.ok, advice(one.detail), advice(one.hint)) for one in found]
        wrong = [check.name for check in checks if not check.ok]
        remarks = [check.name for check in checks if check.verdict == "warn"]
        fine = f"in order, with remarks on {', '.join(remarks)}" if remarks else "everything is in order"
        summary = f"problems with {', '.join(wrong)}" if wrong else fine
        if lost := lost_lines():
            detail = f"{plural(lost, 'line')} of the log were lost: the client does not read standard error"
            checks.append(HealthCheck("log", True, detail))
    except SpeckitError as error:
        summary = "the memory cannot be opened"
        checks = [
            HealthCheck(CODES[problem.code].category, False, str(problem), advice(problem.hint))
            for problem in error.problems
        ]
    # failures first, then hints: a short answer drops the end
    checks.sort(key=lambda check: _SEVERITY.index(check.verdict))
    data = _document(checks)
    told = [about(*_check_cells(row)) for row in data["checks"] if row["verdict"] != "ok"]
    needed = sum(workspace.count_tokens([summary, *told])) + 2 * len(told) + ROOM_BESIDE_WRONG
    return View(summary, data, rows="checks", cells=_check_cells, reply={"budget": max(BUDGET, needed)})


def _check_cells(row: Row) -> tuple[str, ...]:
    verdict = "WRONG" if row["verdict"] == "fail" else row["verdict"]
    return f"{verdict} {row['name']}: {row['detail']}", row["hint"]


def _aliases(memory: Memory, folder: str, limit: int) -> View:
    from speckit_memory.server.views.folder_text import in_folder, missing_folder

    report = memory.inventory.aliases(folder, limit)
    rows = [
        {
            "kind": group.kind,
            "keys": list(group.keys[:MOST_KEYS]),
            **({"further": len(group.keys) - MOST_KEYS} if len(group.keys) > MOST_KEYS else {}),
        }
        for group in report.groups
    ]
    # with rows, the folder may contain only links, which are not memories: no hint on a missing folder
    one_of_each = "keep one of each: delete or exclude the others, or say what differs"
    hint = one_of_each if rows else missing_folder(memory, folder)
    where = in_folder(folder)
    return View(
        f"{plural(report.total, 'document')}{where}{',' if where else ''} in several folders",
        {"total": report.total, "aliases": rows},
        rows="aliases",
        cells=_alias_cells,
        hints=(hint,) if hint else (),
    )


def _alias_cells(row: Row) -> tuple[str, ...]:
    how = "the same content" if row["kind"] == "content" else "links to one file"
    more = f"{row['further']} more" if "further" in row else ""
    return f"{how}: {', '.join(row['keys'])}", more


def _environment() -> list[HealthCheck]:
    hint = "correct the name; `speckit-memory flags list` shows the flags"
    return [HealthCheck("environment", True, remark, hint) for remark in remarks(os.environ)]


def _flag_rules(common: Common) -> list[HealthCheck]:
    """Checks the rules of flags, except those about evidence; a broken rule is a warning."""
    from speckit_memory.server.flags.flag_audit import audit, today

    environ = settings(common.db).environ_of_root
    found = audit(environ, today(), extensions=flags_of_extensions(environ)).problems
    broken = SpeckitError.of(found).problems if found else ()
    hint = "`speckit-memory flags audit` looks at the evidence too; nothing changes for it while a process runs"
    return [HealthCheck("flag rules", True, str(one), hint) for one in broken if one.code == "E124"]


def _workspace_files(common: Common) -> list[HealthCheck]:
    """Checks `config.yaml` and `flags.yaml` of the workspace: until they are corrected, nothing can be opened."""
    from speckit_memory.config.flags.flags import flags_for
    from speckit_memory.config.workspace.workspace_file import read_workspace_config

    config = settings(common.db)
    _, flags = flags_for({ROOT_VARIABLE: str(config.root)}, (), lambda: flags_of_extensions(config.environ))
    found = {"configuration": read_workspace_config(config.root)[1], "flags": flags}
    return [check for name, problems in found.items() if problems for check in _wrong(name, SpeckitError.of(problems))]


def _engine(common: Common, fix: bool = False, repair: bool = False) -> list[HealthCheck]:
    """Runs the engine's own checks on the store, or on a temporary one if there is no store yet."""
    try:
        with common.open(create=False) as memory:
            repaired = [_repair(memory)] if repair else []
            if fix:
                with suppress(SpeckitError):  # the failure is recorded, and reported by the check
                    memory.lifecycle.write_segment()
            return [*repaired, *memory.status().checks]
    except SpeckitError as error:
        if CODES[error.code].category == "configuration":
            return [*_wrong("pipeline", error), *_with_the_shipped_pipeline(common, fix, repair)]
        told = [_unrepaired("the store cannot be opened")] if repair else []
        if error.code == "E024":
            own = (error.problems[0].hint + " If it was one: ") * (error.problems[0].hint != CODES["E024"].hint)
            return [*told, *(HealthCheck("store", False, str(problem), own + DAMAGED) for problem in error.problems)]
        # E010: there is no store yet, which is only a warning
        if error.code != "E010":
            return [*told, *_wrong("store", error)]
        without = no_store(settings(common.db), (), named=common.db).problems[0]
        hint = f"{without.hint} Run `speckit-memory index PATH` to make one."
        missing = [HealthCheck("store", True, without.message, hint)]
        if repair:
            missing.insert(0, HealthCheck("repair", True, "there is no store, and nothing to repair"))
    with TemporaryDirectory(prefix="speckit-doctor-") as folder:
        try:
            with Common(Path(folder) / "memory.db", common.pipeline, common.overrides).open() as memory:
                return [*missing, *(check for check in memory.status().checks if check.name not in _OF_A_STORE)]
        except SpeckitError as error:
            return [*missing, *_wrong("engine", error)]


def _repair(memory: Memory) -> HealthCheck:
    """The result of the repair; the check of the store reports remaining faults."""
    try:
        done = memory.lifecycle.repair()
    except SpeckitError as error:
        return HealthCheck("repair", False, str(error), "nothing was changed")
    if not done.before:
        return HealthCheck("repair", True, "nothing in the store needs a repair")
    mended = "; ".join(done.mended) or "nothing that is wrong can be rebuilt"
    hint = "index the documents that are still wrong again, by name and with --force" if done.left else ""
    return HealthCheck("repair", not done.left, f"{mended}; the store before the repair is kept as {done.before}", hint)


def _unrepaired(why: str) -> HealthCheck:
    return HealthCheck("repair", False, f"nothing was repaired: {why}", "correct that first, then repair again")


def _with_the_shipped_pipeline(common: Common, fix: bool, repair: bool) -> list[HealthCheck]:
    """Runs the checks and repairs that are possible although the configured pipeline cannot be built."""
    if common.pipeline == DEFAULT and not common.overrides:
        return [_unrepaired("the pipeline cannot be built")] if repair else []
    return [check for check in _engine(Common(common.db, DEFAULT), fix, repair) if check.name != "pipeline"]


def _wrong(name: str, error: SpeckitError) -> list[HealthCheck]:
    return [HealthCheck(name, False, str(problem), problem.hint) for problem in error.problems]


class UpkeepRun(Parameters):
    dry_run: DryRun = False


@operation("administration", "maintain", one_door="a running server does this by itself")
def maintain(call: Call, params: UpkeepRun) -> View:
    """Run the background work that is due, once: for cron, where no server runs.

    Forgets sessions that are over, deletes memories whose files were missing for too long, archives expired memories
    and those that are old, rarely used and doubted, embeds memories that wait for vectors, finds contradictions,
    adjusts the strength of links to their use, links memories that share a name if .speckit/config.yaml says `entities:
    link`, and ranks memories by the causal graph. Only one process does this at a time; if another one is running,
    nothing is done. Exits with 1 when a job fails.
    """
    found = call.memory().lifecycle.maintain(dry_run=params.dry_run)
    return View(
        "another process is running the background work" if found.elsewhere else plural(len(found.jobs), "job"),
        {
            "dry_run": params.dry_run,
            "elsewhere": found.elsewhere,
            "failed": found.failed,
            "jobs": [asdict(done) for done in found.jobs],
        },
        facts={done.job: _outcome(done, params.dry_run) for done in found.jobs},
        status=1 if found.failed else 0,
    )


def _outcome(done: JobOutcome, dry_run: bool) -> str:
    if done.failure:
        return f"failed: {done.failure}"
    if done.state == "not due":
        return "not due"
    if done.state == "waiting":
        return f"would be run: {done.count} {done.what}" if dry_run else "due"
    return f"{done.count} {done.what}" + (", and more to do" if done.state == "unfinished" else "")
