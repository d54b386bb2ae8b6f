"""Records the analyser and the rules with which a store was built; if they change, all documents are rebuilt."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.errors import Problem
from speckit_memory.memory.intake import secrets
from speckit_memory.memory.intake.index_report import IndexReport
from speckit_memory.memory.parsing import generated
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.parsing.declarations import metadata
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.reading.reader import KnownFile
from speckit_memory.memory.store.tables.memories import absences
from speckit_memory.memory.store.tables.memories.restorations import NO_FILE
from speckit_memory.memory.store.tables.meta import get_meta, set_meta
from speckit_memory.memory.store.writing.moving import TO_BE_READ

ANALYSER = "analyser_version"
"""Metadata key for the analyser version that tokenised the store's documents."""
INTAKE = "intake_rules"
"""Metadata key for the intake rules (omissions and repairs) of the store's documents."""


def note_analyser(database: Database, analyser: Analyser, known: Mapping[str, KnownFile], report: IndexReport) -> None:
    """Record the analyser version in the store once no memory has tokens of another version.

    Args:
        database: The store.
        analyser: The analyser of this run.
        known: The files in the store before the run, by key.
        report: The report of the run; gets a problem (E093) if memories with old tokens remain.
    """
    current = get_meta(database.reader(), ANALYSER)
    if current == analyser.version:
        return
    left = _not_updated(known, report)
    # The version is only raised once no memory has tokens of the old one, so an interrupted run is repeated.
    if left and current is not None:
        one = len(left) == 1
        who = f"1 memory, {min(left)}, holds" if one else f"{len(left)} memories, such as {min(left)}, hold"
        message = f"{who} words of an older analysis"
        report.problems.append(Problem("E093", message))
        return
    _note(database, ANALYSER, analyser.version)


def note_intake(database: Database, rules: SavingRules, known: Mapping[str, KnownFile], report: IndexReport) -> None:
    """Record the intake rules in the store once no document was stored under other rules.

    Args:
        database: The store.
        rules: The saving rules of this run.
        known: The files in the store before the run, by key.
        report: The report of the run.
    """
    current, wanted = get_meta(database.reader(), INTAKE), intake_version(rules)
    if current != wanted and not _not_updated(known, report):
        _note(database, INTAKE, wanted)


def intake_version(rules: SavingRules) -> str:
    """Return the version string of the intake rules, as recorded in a store."""
    thinned = ", passages thinned" if rules.passages == "thinned" else ""
    left_out = f"generated {generated.RULES}, secrets {secrets.RULES} {rules.secrets}"
    return f"{left_out}, quality {rules.quality != 'report'}, metadata {metadata.VERSION}{thinned}"


def _note(database: Database, fact: str, version: str) -> None:
    """Record a version. Absent memories have another one, so their files are read when they return."""
    with database.write() as txn:
        set_meta(txn, fact, version)
        absences.read_again(txn, TO_BE_READ)


def _not_updated(known: Mapping[str, KnownFile], report: IndexReport) -> set[str]:
    """Return the keys of memories that a run has not updated, except those without a file."""
    done = {*report.created, *report.updated, *report.unchanged, *report.absent}
    return {
        key for key, stored in known.items() if key not in done and not stored.absent and stored.restored != NO_FILE
    }
