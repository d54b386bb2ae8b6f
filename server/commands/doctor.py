"""`doctor`: checks whether everything is in order."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

import click

from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.settings import ROOT_VARIABLE, settings
from speckit_memory.engine.diagnostics.health import DAMAGED, HealthCheck
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.environment import flags_of_extensions, remarks
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.reports.terminal import show_report

if TYPE_CHECKING:
    from collections.abc import Sequence

    from speckit_memory.engine import Memory
    from speckit_memory.evaluation.statistics.report import Report

_OF_A_STORE = ("store", "evaluation", "latency")
"""Checks that are meaningless without a store: they would name a temporary one."""
_SEVERITY = ("fail", "warn", "ok")
"""The order of the report: failures first."""


@click.command("doctor")
@click.option("--fix", is_flag=True, help="First rewrite the segment of the store, and remove leftover segment files.")
@click.option("--repair", is_flag=True, help="First rebuild derived data of the store, after a checkpoint.")
@shared_options("db", "pipeline", "set", "json", "verbose")
def command(common: Common, fix: bool, repair: bool) -> int:
    """Check SQLite, the store, the embedding model and the configuration.

    Also checks packages and the SQLite extension. Prints failures and warnings, failures first, and the result of
    --repair; otherwise one line. Exits with 1 on a failure. A store that does not exist yet is not a failure.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        fix: Whether the segment is rewritten first, and leftover segment files are removed.
        repair: Whether derived data is rebuilt first, after a checkpoint.

    Returns:
        1 if a check failed, else 0.
    """
    wrong = _workspace_files(common)
    if wrong and repair:
        wrong.append(_unrepaired("the files of the workspace are wrong"))
    checks = [*_environment(), *(wrong or _working(common, fix, repair))]
    checks.sort(key=lambda check: _SEVERITY.index(check.verdict))
    report = report_checks(checks)
    show_report(report, common)
    return int(report.outcome == "fail")


def report_checks(checks: Sequence[HealthCheck]) -> Report:
    """The checks, and whether all is well."""
    from speckit_memory.evaluation.statistics.report import Report, ReportFact

    healthy = all(check.ok for check in checks)
    warnings = sum(check.verdict == "warn" for check in checks)
    fine = f"nothing failed, {plural(warnings, 'warning')}" if warnings else "everything is in order"
    summary = fine if healthy else "something is wrong: see the lines marked fail"
    shown = ("name", "verdict", "detail", "hint")
    return Report(
        f"{summary} ({plural(len(checks), 'check')})",
        outcome="pass" if healthy else "fail",
        facts=[
            ReportFact(one.name, one.detail, one.hint, one.verdict, one.verdict == "ok" and one.name != "repair")
            for one in checks
        ],
        data={"ok": healthy, "checks": [{name: getattr(one, name) for name in shown} for one in checks]},
    )


def _environment() -> list[HealthCheck]:
    hint = "correct the name; `speckit-memory flags list` shows the flags"
    return [HealthCheck("environment", True, remark, hint) for remark in remarks(os.environ)]


def _working(common: Common, fix: bool, repair: bool) -> list[HealthCheck]:
    return [*_flag_rules(common), *_engine(common, fix, repair)]


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
