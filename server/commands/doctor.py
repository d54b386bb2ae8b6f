"""`doctor`: checks whether everything is in order."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Literal

import click

from speckit_memory.config.pipelines.sources import DEFAULT
from speckit_memory.config.workspace.settings import ROOT_VARIABLE, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.errors.echo import plural
from speckit_memory.server.console.arguments.options import Common, shared_options
from speckit_memory.server.console.environment import flags_of_extensions, remarks
from speckit_memory.server.console.missing_store import no_store
from speckit_memory.server.console.output import print_json, table_rows, wrap_text

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

Verdict = Literal["ok", "warn", "fail"]
_OF_A_STORE = ("store", "evaluation", "latency")
"""Checks that are meaningless without a store: they would name a temporary one."""
_SEVERITY: tuple[Verdict, ...] = ("fail", "warn", "ok")
"""The order of the report: failures first."""
COLOURS = {"ok": "green", "warn": "yellow", "fail": "red"}


@dataclass(frozen=True, slots=True)
class DoctorCheck:
    """One line of the report; the hint says what to do unless the check passed."""

    name: str
    verdict: Verdict
    detail: str
    hint: str = ""


@click.command("doctor")
@click.option("--fix", is_flag=True, help="First rewrite the segment of the store, and remove leftover segment files.")
@click.option("--repair", is_flag=True, help="First rebuild derived data of the store, after a checkpoint.")
@click.option("--verbose", "-v", is_flag=True, help="Show passed checks too.")
@shared_options("db", "pipeline", "set", "json")
def command(common: Common, fix: bool, repair: bool, verbose: bool) -> int:
    """Check SQLite, the store, the embedding model and the configuration.

    Also checks packages and the SQLite extension. Prints failures and warnings, failures first, and the result of
    --repair; otherwise one line. Exits with 1 on a failure. A store that does not exist yet is not a failure.\f

    Args:
        common: Options of many commands: store, pipeline, overrides and form of the output.
        fix: Whether the segment is rewritten first, and leftover segment files are removed.
        repair: Whether derived data is rebuilt first, after a checkpoint.
        verbose: Whether passed checks are shown too.

    Returns:
        1 if a check failed, else 0.
    """
    wrong = _workspace_files(common)
    if wrong and repair:
        wrong.append(_unrepaired("the files of the workspace are wrong"))
    checks = [*_environment(), *(wrong or _working(common, fix, repair))]
    checks.sort(key=lambda check: _SEVERITY.index(check.verdict))
    healthy = all(check.verdict != "fail" for check in checks)
    if common.as_json:
        print_json({"ok": healthy, "checks": [asdict(check) for check in checks]})
        return 0 if healthy else 1
    told = [check for check in checks if verbose or check.verdict != "ok" or check.name == "repair"]
    rows = [(click.style(check.verdict, fg=COLOURS[check.verdict]), check.name, check.detail) for check in told]
    for row, check in zip(table_rows(rows), told, strict=True):
        click.echo(row)
        if check.hint:
            click.echo(wrap_text(check.hint, "        ", "      → "))
    more = "" if verbose else f" ({plural(len(checks), 'check')}; -v shows them)"
    warnings = sum(check.verdict == "warn" for check in checks)
    fine = f"nothing failed, {plural(warnings, 'warning')}" if warnings else "everything is in order"
    summary = fine if healthy else "something is wrong: see the lines marked fail"
    click.echo(wrap_text(summary + more))
    return 0 if healthy else 1


def _environment() -> list[DoctorCheck]:
    hint = "correct the name; `speckit-memory flags list` shows the flags"
    return [DoctorCheck("environment", "warn", remark, hint) for remark in remarks(os.environ)]


def _working(common: Common, fix: bool, repair: bool) -> list[DoctorCheck]:
    return [*_flag_rules(common), *_engine(common, fix, repair)]


def _flag_rules(common: Common) -> list[DoctorCheck]:
    """Checks the rules of flags, except those about evidence; a broken rule is a warning."""
    from speckit_memory.server.flags.flag_audit import audit, today

    environ = settings(common.db).environ_of_root
    found = audit(environ, today(), extensions=flags_of_extensions(environ)).problems
    broken = SpeckitError.of(found).problems if found else ()
    hint = "`speckit-memory flags audit` looks at the evidence too; nothing changes for it while a process runs"
    return [DoctorCheck("flag rules", "warn", str(one), hint) for one in broken if one.code == "E124"]


def _workspace_files(common: Common) -> list[DoctorCheck]:
    """Checks `config.yaml` and `flags.yaml` of the workspace: until they are corrected, nothing can be opened."""
    from speckit_memory.config.flags.flags import flags_for
    from speckit_memory.config.workspace.workspace_file import read_workspace_config

    config = settings(common.db)
    _, flags = flags_for({ROOT_VARIABLE: str(config.root)}, (), lambda: flags_of_extensions(config.environ))
    found = {"configuration": read_workspace_config(config.root)[1], "flags": flags}
    return [check for name, problems in found.items() if problems for check in _wrong(name, SpeckitError.of(problems))]


def _engine(common: Common, fix: bool = False, repair: bool = False) -> list[DoctorCheck]:
    """Runs the engine's own checks on the store, or on a temporary one if there is no store yet."""
    try:
        with common.open(create=False) as memory:
            repaired = [_repair(memory)] if repair else []
            if fix:
                with suppress(SpeckitError):  # the failure is recorded, and reported by the check
                    memory.lifecycle.write_segment()
            return [*repaired, *_health(memory)]
    except SpeckitError as error:
        if CODES[error.code].category == "configuration":
            return [*_wrong("pipeline", error), *_with_the_shipped_pipeline(common, fix, repair)]
        told = [_unrepaired("the store cannot be opened")] if repair else []
        if error.code == "E024":
            from speckit_memory.engine.diagnostics.health import DAMAGED

            own = (error.problems[0].hint + " If it was one: ") * (error.problems[0].hint != CODES["E024"].hint)
            return [*told, *(DoctorCheck("store", "fail", str(problem), own + DAMAGED) for problem in error.problems)]
        # E010: there is no store yet, which is only a warning
        if error.code != "E010":
            return [*told, *_wrong("store", error)]
        without = no_store(settings(common.db), (), named=common.db).problems[0]
        hint = f"{without.hint} Run `speckit-memory index PATH` to make one."
        missing = [DoctorCheck("store", "warn", without.message, hint)]
        if repair:
            missing.insert(0, DoctorCheck("repair", "ok", "there is no store, and nothing to repair"))
    with TemporaryDirectory(prefix="speckit-doctor-") as folder:
        try:
            with Common(Path(folder) / "memory.db", common.pipeline, common.overrides).open() as memory:
                return [*missing, *(check for check in _health(memory) if check.name not in _OF_A_STORE)]
        except SpeckitError as error:
            return [*missing, *_wrong("engine", error)]


def _repair(memory: Memory) -> DoctorCheck:
    """The result of the repair; the check of the store reports remaining faults."""
    try:
        done = memory.lifecycle.repair()
    except SpeckitError as error:
        return DoctorCheck("repair", "fail", str(error), "nothing was changed")
    if not done.before:
        return DoctorCheck("repair", "ok", "nothing in the store needs a repair")
    mended = "; ".join(done.mended) or "nothing that is wrong can be rebuilt"
    hint = "index the documents that are still wrong again, by name and with --force" if done.left else ""
    return DoctorCheck(
        "repair", "fail" if done.left else "ok", f"{mended}; the store before the repair is kept as {done.before}", hint
    )


def _unrepaired(why: str) -> DoctorCheck:
    return DoctorCheck("repair", "fail", f"nothing was repaired: {why}", "correct that first, then repair again")


def _with_the_shipped_pipeline(common: Common, fix: bool, repair: bool) -> list[DoctorCheck]:
    """Runs the checks and repairs that are possible although the configured pipeline cannot be built."""
    if common.pipeline == DEFAULT and not common.overrides:
        return [_unrepaired("the pipeline cannot be built")] if repair else []
    return [check for check in _engine(Common(common.db, DEFAULT), fix, repair) if check.name != "pipeline"]


def _wrong(name: str, error: SpeckitError) -> list[DoctorCheck]:
    return [DoctorCheck(name, "fail", str(problem), problem.hint) for problem in error.problems]


def _health(memory: Memory) -> list[DoctorCheck]:
    return [
        DoctorCheck(check.name, ("warn" if check.hint else "ok") if check.ok else "fail", check.detail, check.hint)
        for check in memory.status().checks
    ]
