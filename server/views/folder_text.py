"""The folder that somebody asked about, in words (features T5 and T7)."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speckit_memory.engine import Memory


def in_folder(folder: str) -> str:
    """ " in FOLDER", for the middle of a summary; empty where all folders were asked for."""
    from speckit_memory.engine.answers.request import normalised_folder
    from speckit_memory.errors.echo import abridged
    from speckit_memory.server.console.markdown import one_line

    named = normalised_folder(folder)
    return f" in {one_line(abridged(named))}" if named else ""


def missing_folder(memory: Memory, folder: str) -> str:
    """That no memory lies in a folder or below it, as a search says it; empty where one does, or all were asked for."""
    from speckit_memory.engine.answers.empty_answers import EMPTY_STORE, no_memory_in
    from speckit_memory.engine.answers.request import normalised_folder

    named = normalised_folder(folder)
    if not named or memory.list(named, limit=0)[1]:
        return ""
    known = [ranked.folder for ranked in memory.folders(archived=True).folders]
    return no_memory_in(named, known) if known else EMPTY_STORE
