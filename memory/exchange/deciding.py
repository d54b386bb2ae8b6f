"""What an import does with each memory that is offered (feature M14).

A text has been changed here, there, or at both places, which the digest of what was exported tells. Only what was
changed there alone is taken in by itself; of what was learned, the later knowledge counts as a whole.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speckit_memory.config.options.saving import SavingRules
from speckit_memory.memory.exchange import texts
from speckit_memory.memory.exchange.manifest import digest
from speckit_memory.memory.exchange.offers import Offer
from speckit_memory.memory.exchange.texts import Text
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.portable import records
from speckit_memory.memory.store.portable.records import Record
from speckit_memory.memory.store.writing.moving import TO_BE_READ

Outcome = Literal["created", "updated", "unchanged", "kept", "refused"]


@dataclass(frozen=True, slots=True)
class Ours:
    """What the store has of a memory now. `is_file` says whether it came from a file."""

    id: int
    content_hash: str
    is_file: bool
    record: Record


@dataclass(frozen=True, slots=True)
class Decided:
    """What becomes of an offer, and why. With `text`, its text is taken; `write` says whether the file is made, and
    `over` whether it is written over another one. With `record`, what was learned of it elsewhere is taken."""

    offer: Offer
    outcome: Outcome
    why: str = ""
    ours: Ours | None = None
    text: bool = False
    write: bool = False
    over: bool = False
    record: bool = False

    @property
    def as_exported(self) -> bool:
        """Whether a new memory comes with the text of the export: what its document said holds then."""
        return self.ours is None and self.offer.text == self.offer.base

    @property
    def knowledge(self) -> Record | None:
        """What is to be known of the memory beside its text."""
        if self.record:
            return self.offer.record
        return self.ours.record if self.ours else None

    @property
    def mtime_ns(self) -> int | None:
        """The time of modification that its file had, where it is the same and known."""
        told = self.offer.record.memory.get("mtime_ns") if self.as_exported and self.offer.record else None
        return told if isinstance(told, int) and told != TO_BE_READ else None


def decided(
    connection: Connection, root: Path, rules: SavingRules, offers: Sequence[Offer], *, replace: bool
) -> list[Decided]:
    """What would become of each offer; to `replace`, it is taken whatever there is here."""
    return [
        _decided(connection, root, rules, offer, ours, replace)
        for offer, ours in zip(offers, known(connection, offers), strict=True)
    ]


def known(connection: Connection, offers: Sequence[Offer]) -> list[Ours | None]:
    """What the store has of each offered memory."""
    there = {
        key: (number, content, mtime is not None)
        for number, key, content, mtime in rows(connection, "SELECT id, key, content_hash, mtime_ns FROM memories")
    }
    ids = [there[offer.key][0] for offer in offers if offer.key in there]
    found = records.read(connection, only=ids).memories if ids else {}
    return [Ours(*there[each.key], found[each.key]) if each.key in there else None for each in offers]


def _decided(
    connection: Connection, root: Path, rules: SavingRules, offer: Offer, ours: Ours | None, replace: bool
) -> Decided:
    if offer.problem:
        return Decided(offer, "refused", offer.problem, ours)
    is_file = offer.is_file or (ours is not None and ours.is_file)
    here = texts.of_file(root, offer.key, rules) if is_file else None
    if is_file and here is None and os.path.lexists(root / offer.key):
        return Decided(offer, "refused", "something else has its name in the workspace", ours)
    if not is_file and ours is not None:
        here = texts.of_store(connection, offer.key)
    record, why_not = _takes_record(offer, ours, replace)
    taken = _takes_text(offer, ours, here, replace)
    if isinstance(taken, str):
        if ours is None or offer.text != offer.base:
            return Decided(offer, "refused", taken, ours)
        return Decided(offer, "updated" if record else "kept", taken, ours, record=record)
    write = is_file and (here is None or digest(here.data) != offer.text)
    if ours is None:
        return Decided(offer, "created", "", None, True, write, write and here is not None, record)
    if taken or record:
        why = " and ".join(["its text"] * taken + ["what was learned of it"] * record)
        write = taken and write
        return Decided(offer, "updated", why, ours, taken, write, write and here is not None, record)
    return Decided(offer, "kept" if why_not else "unchanged", why_not, ours)


def _takes_text(offer: Offer, ours: Ours | None, here: Text | None, replace: bool) -> bool | str:
    """Whether the text of an offer is taken, or why it cannot be."""
    if here is None:
        return True
    there = digest(here.data)
    if there == offer.text:  # a file that was not indexed since it was changed is brought up to date with it
        return ours is None or (here.found and here.own_hash != ours.content_hash)
    if replace or (offer.base and there == offer.base):
        return True
    if not offer.base:
        return "a file of this name says something else here (--replace takes the one that is imported)"
    if offer.text == offer.base:
        return "its text is another one here, which stays (--replace takes that of the export)"
    return "its text was edited here and in the export (--replace takes that of the export)"


def _takes_record(offer: Offer, ours: Ours | None, replace: bool) -> tuple[bool, str]:
    """Whether what was learned is taken, and why not where there is something that differs."""
    theirs = offer.record
    if theirs is None or (ours is not None and ours.record.lived() == theirs.lived()):
        return False, ""
    if ours is None or replace or theirs.clock() > ours.record.clock():
        return True, ""
    return False, "what was learned of it here is later"
