"""Describes the folder given in a request (features T5 and T7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speckit_memory.engine import Memory


def in_folder(folder: str) -> str:
    """The words " in FOLDER" for a summary; "" for all folders."""
    from speckit_memory.engine.answers.request import normalised_folder
    from speckit_memory.errors.echo import abridge
    from speckit_memory.server.console.markdown import one_line

    named = normalised_folder(folder)
    return f" in {one_line(abridge(named))}" if named else ""


def missing_folder(memory: Memory, folder: str) -> str:
    """Says that a folder and its subfolders have no memory, as a search does; "" if they have one, and for all
    folders."""
    from speckit_memory.engine.answers.empty_answers import EMPTY_STORE, no_memory_in
    from speckit_memory.engine.answers.request import normalised_folder

    named = normalised_folder(folder)
    if not named or memory.list(named, limit=0)[1]:
        return ""
    known = [ranked.folder for ranked in memory.inventory.folders(archived=True).folders]
    return no_memory_in(named, known) if known else EMPTY_STORE
