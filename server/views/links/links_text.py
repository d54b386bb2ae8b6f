"""Renders links and their history as text."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speckit_memory.engine.graph.linking import NamedChange, NamedEdge


def edge_text(edge: NamedEdge) -> str:
    """A link as a line."""
    said = f", {edge.said:g} initially" if edge.said is not None else ""
    evidence = f": {edge.evidence}" if edge.evidence else ""
    return (
        f"link {edge.id}: {edge.source} {edge.relation.replace('_', ' ')} {edge.target} "
        f"(strength {edge.strength:g}{said}, by {edge.created_by}){evidence}"
    )


def place_text(edge: NamedEdge) -> str:
    """Says where a new link is stored."""
    if edge.only_stored:
        return f"kept in this store only, so that a clone lacks it: {edge.only_stored}"
    return f"declared in causalLinks of {edge.source}: commit the file, and a clone has it"


def change_cells(change: NamedChange) -> tuple[str, str, str, str]:
    """The cells of a change: id, time, author and description."""
    when = time.strftime("%Y-%m-%d %H:%M", time.localtime(change.changed_at))
    return f"#{change.id}", when, change.changed_by, change_text(change)


def change_text(change: NamedChange) -> str:
    """Describes a change and its reason."""
    if change.old is None:
        what = f"made with strength {change.new:g}"
    elif change.new is None:
        what = f"removed, strength was {change.old:g}"
    else:
        what = f"{change.old:g} -> {change.new:g}"
    undone = f" (undone by #{change.undone_by})" if change.undone_by else ""
    why = f": {change.why}" if change.why else ""
    return f"{change.source} {change.relation.replace('_', ' ')} {change.target}: {what}{undone}{why}"
