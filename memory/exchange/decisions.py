"""Decides what an import does with each offered memory (feature M14).

The digest of the exported text tells whether a text was changed here, there, or in both places. A text changed only
there is imported automatically; learned data is taken as a whole, from the side where it is newer.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.memory.exchange import texts
from speckit_memory.memory.exchange.manifest import digest
from speckit_memory.memory.exchange.offers import Offer
from speckit_memory.memory.exchange.texts import ExportedText
from speckit_memory.memory.store.file.connection import Connection
from speckit_memory.memory.store.file.guarding.queries import rows
from speckit_memory.memory.store.transfer import records
from speckit_memory.memory.store.transfer.records import MemoryRows
from speckit_memory.memory.store.writing.moving import TO_BE_READ

Outcome = Literal["created", "updated", "unchanged", "kept", "refused"]


@dataclass(frozen=True, slots=True)
class Ours:
    """The present state of a memory in the store. `is_file` tells whether it came from a file."""

    id: int
    content_hash: str
    is_file: bool
    record: MemoryRows


@dataclass(frozen=True, slots=True)
class ImportDecision:
    """The decision on an offer and its reason. `text`: its text is imported; `write`: the file is written, `over`: over
    an existing one. `record`: its learned data is imported."""

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
        """Whether a new memory comes with the exported text, so that the metadata of its document is still valid."""
        return self.ours is None and self.offer.text == self.offer.base

    @property
    def knowledge(self) -> MemoryRows | None:
        """The learned data that the memory will have."""
        if self.record:
            return self.offer.record
        return self.ours.record if self.ours else None

    @property
    def mtime_ns(self) -> int | None:
        """The recorded modification time of its file, if the file is unchanged."""
        told = self.offer.record.memory.get("mtime_ns") if self.as_exported and self.offer.record else None
        return told if isinstance(told, int) and told != TO_BE_READ else None


def decide_offers(
    connection: Connection, root: Path, rules: SavingRules, offers: Sequence[Offer], *, replace: bool
) -> list[ImportDecision]:
    """The decision on each offer.

    Args:
        connection: An open transaction.
        root: Folder of the workspace.
        rules: Rules for secrets in texts.
        offers: The offered memories.
        replace: Import every offer, even where the store has something newer.
    """
    return [
        _decided(connection, root, rules, offer, ours, replace)
        for offer, ours in zip(offers, known(connection, offers), strict=True)
    ]


def known(connection: Connection, offers: Sequence[Offer]) -> list[Ours | None]:
    """The present state of each offered memory in the store; None for a new one."""
    there = {
        key: (number, content, mtime is not None)
        for number, key, content, mtime in rows(connection, "SELECT id, key, content_hash, mtime_ns FROM memories")
    }
    ids = [there[offer.key][0] for offer in offers if offer.key in there]
    found = records.read(connection, only=ids).memories if ids else {}
    return [Ours(*there[each.key], found[each.key]) if each.key in there else None for each in offers]


def _decided(
    connection: Connection, root: Path, rules: SavingRules, offer: Offer, ours: Ours | None, replace: bool
) -> ImportDecision:
    if offer.problem:
        return ImportDecision(offer, "refused", offer.problem, ours)
    is_file = offer.is_file or (ours is not None and ours.is_file)
    here = texts.of_file(root, offer.key, rules) if is_file else None
    if is_file and here is None and os.path.lexists(root / offer.key):
        return ImportDecision(offer, "refused", "something that is not a document has this name in the workspace", ours)
    if not is_file and ours is not None:
        here = texts.of_store(connection, offer.key)
    # Text and learned data are decided independently.
    record, why_not = _takes_record(offer, ours, replace)
    taken = _takes_text(offer, ours, here, replace)
    # The texts conflict: learned data may still be imported.
    if isinstance(taken, str):
        if ours is None or offer.text != offer.base:
            return ImportDecision(offer, "refused", taken, ours)
        return ImportDecision(offer, "updated" if record else "kept", taken, ours, record=record)
    write = is_file and (here is None or digest(here.data) != offer.text)
    if ours is None:
        return ImportDecision(offer, "created", "", None, True, write, write and here is not None, record)
    if taken or record:
        why = " and ".join(["its text"] * taken + ["its learned data"] * record)
        write = taken and write
        return ImportDecision(offer, "updated", why, ours, taken, write, write and here is not None, record)
    return ImportDecision(offer, "kept" if why_not else "unchanged", why_not, ours)


def _takes_text(offer: Offer, ours: Ours | None, here: ExportedText | None, replace: bool) -> bool | str:
    """Whether the text of an offer is imported, or why it cannot be."""
    if here is None:
        return True
    there = digest(here.data)
    if there == offer.text:  # a file changed but not yet indexed is brought up to date as well
        return ours is None or (here.found and here.own_hash != ours.content_hash)
    if replace or (offer.base and there == offer.base):
        return True
    if not offer.base:
        return "a different file of this name exists here (--replace takes the imported one)"
    if offer.text == offer.base:
        return "its text is different here and is kept (--replace takes that of the export)"
    return "its text was edited here and in the export (--replace takes that of the export)"


def _takes_record(offer: Offer, ours: Ours | None, replace: bool) -> tuple[bool, str]:
    """Whether learned data is imported, and the reason if it differs and is not."""
    theirs = offer.record
    # The learned data are equal.
    if theirs is None or (ours is not None and ours.record.lived() == theirs.lived()):
        return False, ""
    if ours is None or replace or theirs.clock() > ours.record.clock():
        return True, ""
    return False, "its learned data is newer here"
