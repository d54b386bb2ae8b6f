"""By which analyser and which rules the documents of a store were made; with others, all of them are made anew."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.config.options.saving import SavingRules
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
"""The store's fact that says which analyser cut its words."""
INTAKE = "intake_rules"
"""The store's fact that says by which rules its documents were taken in: what is left out, and what is mended."""


def note_analyser(database: Database, analyser: Analyser, known: Mapping[str, KnownFile], report: IndexReport) -> None:
    """Notes in the store which analyser cut its words, once no memory has words of another."""
    current = get_meta(database.reader(), ANALYSER)
    if current == analyser.version:
        return
    left = _left(known, report)
    if left and current is not None:
        one = len(left) == 1
        who = f"1 memory, {min(left)}, holds" if one else f"{len(left)} memories, such as {min(left)}, hold"
        message = f"{who} words of an older analysis"
        report.problems.append(Problem("E093", message))
        return
    _note(database, ANALYSER, analyser.version)


def note_intake(database: Database, rules: SavingRules, known: Mapping[str, KnownFile], report: IndexReport) -> None:
    """Notes in the store by which rules its documents were taken in, once none is left that was by others."""
    current, wanted = get_meta(database.reader(), INTAKE), intake_version(rules)
    if current != wanted and not _left(known, report):
        _note(database, INTAKE, wanted)


def intake_version(rules: SavingRules) -> str:
    """What documents are taken in by, as a store notes it."""
    thinned = ", passages thinned" if rules.passages == "thinned" else ""
    left_out = f"generated {generated.RULES}, secrets {secrets.RULES} {rules.secrets}"
    return f"{left_out}, quality {rules.quality != 'report'}, metadata {metadata.VERSION}{thinned}"


def _note(database: Database, fact: str, version: str) -> None:
    """Notes a version. Absent memories were made with another one: their files are read when they are back."""
    with database.write() as txn:
        set_meta(txn, fact, version)
        absences.read_again(txn, TO_BE_READ)


def _left(known: Mapping[str, KnownFile], report: IndexReport) -> set[str]:
    """The keys of memories that a run has not brought up to date, but for those without a file."""
    done = {*report.created, *report.updated, *report.unchanged, *report.absent}
    return {
        key for key, stored in known.items() if key not in done and not stored.absent and stored.restored != NO_FILE
    }
