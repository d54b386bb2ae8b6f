"""Causal links between memories: add, remove, history, undo, review (features T19, T21 and M7)."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.operations.fields import ID_OR_KEY, RARE, HistoryLimit, MemoryName, Name, Number, Relation
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine.graph.linking import NamedEdge

BUDGET = 1200
MOST_STALE = 20
"""Maximum number of stale memories shown; the data has all."""


class NewLink(Parameters):
    source: Annotated[
        MemoryName,
        Option("Memory that the link begins at.", tool="sourceId", argument=True, metavar=ID_OR_KEY),
    ]
    relation: Annotated[Relation, Option("Relation of the link.", argument=True)]
    target: Annotated[
        MemoryName, Option("Memory that the link ends at.", tool="targetId", argument=True, metavar=ID_OR_KEY)
    ]
    strength: Annotated[
        Annotated[float, Field(strict=True, ge=0, le=1)] | None,
        Option("Confidence in the link, 0 to 1: 1 for a new one."),
    ] = None
    evidence: Annotated[str, Field(max_length=2000), Option("The reason for the link.")] = ""


@operation(
    "daily",
    "links add",
    Tool("memory_causal_link", "Link memories", "Link two memories, or change their link.", budget=BUDGET),
)
def add(call: Call, params: NewLink) -> View:
    """Link two memories, as in `new.md supersedes old.md`, or change the link.

    The front matter of the source declares the link under `causalLinks`, or the store alone if that file cannot be
    edited. A memory has at most 20 links.
    """
    from speckit_memory.server.console.arguments.memory_names import known_key

    memory = call.memory()
    edge = memory.graph.link(
        known_key(memory, params.source),
        params.relation,
        known_key(memory, params.target),
        strength=params.strength,
        evidence=params.evidence,
    )
    if edge.only_stored:
        place = f"kept in this store only, so that a clone lacks it: {edge.only_stored}"
    else:
        place = f"declared in causalLinks of {edge.source}: commit the file, and a clone has it"
    return View(_edge_text(edge), {"link": edge.as_json()}, hints=(place,))


class LinkRemoval(Parameters):
    link: Annotated[Number, Option("Number of the link, which `lineage` shows.", tool="edgeId", argument=True)]


@operation(
    "daily",
    "links remove",
    Tool(
        "memory_causal_unlink",
        "Remove link",
        "Remove a causal link by the id that memory_drift_why shows.",
        budget=BUDGET,
    ),
    destroys=True,
    repeatable=False,
)
def remove(call: Call, params: LinkRemoval) -> View:
    """Remove the link with the number LINK, which `lineage` shows.

    It is also removed from the front matter that declares it; a link in the text of a document must be removed there.
    `links undo` restores it.
    """
    removed, declared = call.memory().graph.unlink(params.link)
    return View(
        f"removed {_edge_text(removed)}",
        {"removed": removed.as_json(), "declared": declared.as_json() if declared else None},
        hints=(f"a document still declares it: {_edge_text(declared)}",) if declared else (),
    )


def _edge_text(edge: NamedEdge) -> str:
    said = f", {edge.said:g} initially" if edge.said is not None else ""
    evidence = f": {edge.evidence}" if edge.evidence else ""
    maker = f"{edge.created_by} of {edge.principal}" if edge.principal else edge.created_by
    return (
        f"link {edge.id}: {edge.source} {edge.relation.replace('_', ' ')} {edge.target} "
        f"(strength {edge.strength:g}{said}, by {maker}){evidence}"
    )


Maker = Annotated[Name, Option("Only changes by this maker, such as consolidation.", command="--by", metavar="MAKER")]


class LinkHistory(Parameters):
    key: Annotated[MemoryName | None, Option("Only changes of this memory.", argument=True, metavar=ID_OR_KEY)] = None
    by: Maker = ""
    limit: Annotated[HistoryLimit, Option("Maximum number, the latest first.")] = 100


@operation("daily", "links history", one_door=RARE, reads=True)
def history(call: Call, params: LinkHistory) -> View:
    """Show changes of links: strengths, additions and removals.

    With a name, only those of one memory. Changes are by hand or by background work. `links undo` reverts them by
    number.
    """
    from speckit_memory.server.console.arguments.memory_names import known_key

    memory = call.memory()
    key = None if params.key is None else known_key(memory, params.key)
    changes = memory.graph.history(key, by=params.by, limit=params.limit)
    return View(
        plural(len(changes), "change"),
        {"changes": [change.as_json() for change in changes]},
        rows="changes",
        cells=_change_cells,
        heads=HEADS,
    )


HEADS = ("no.", "at", "by", "change")


def _change_cells(change: Row) -> tuple[str, ...]:
    at = time.strftime("%Y-%m-%d %H:%M", time.localtime(change["changed_at"]))
    if change["old"] is None:
        what = f"made with strength {change['new']:g}"
    elif change["new"] is None:
        what = f"removed, strength was {change['old']:g}"
    else:
        what = f"{change['old']:g} -> {change['new']:g}"
    undone = f" (undone by #{change['undone_by']})" if change["undone_by"] else ""
    why = f": {change['why']}" if change["why"] else ""
    link = f"{change['source']} {change['relation'].replace('_', ' ')} {change['target']}"
    return f"#{change['id']}", at, change["changed_by"], f"{link}: {what}{undone}{why}"


class LinkUndo(Parameters):
    changes: Annotated[list[Number], Option("Numbers of changes.", argument=True, metavar="CHANGE")] = []
    by: Annotated[
        Name, Option("All changes by this maker, such as consolidation.", command="--by", metavar="MAKER")
    ] = ""


@operation("daily", "links undo", one_door=RARE, destroys=True)
def undo(call: Call, params: LinkUndo) -> View:
    """Undo changes of links by number, or all changes by a maker.

    The numbers are those of `links history`; all of them are undone or none. A change on which a later one rests is not
    undone alone; with --by it is reported and left. Exits with 1 when a change is left.
    """
    if bool(params.changes) is bool(params.by):
        raise SpeckitError("E031", "give either changes by their numbers or --by MAKER")
    found = call.memory().graph.undo(params.changes, by=params.by)
    return View(
        f"{plural(len(found.undone), 'change')} undone",
        {
            "undone": [change.as_json() for change in found.undone],
            "refused": [{**change.as_json(), "reason": reason} for change, reason in found.refused],
        },
        rows="undone",
        cells=_change_cells,
        heads=HEADS,
        hints=tuple(f"#{change.id} is left: {reason}" for change, reason in found.refused),
        status=1 if found.refused else 0,
    )


class LinkReview(Parameters):
    dismiss: Annotated[Number | None, Option("Mark the pair as not contradictory.", metavar="NUMBER")] = None


@operation("daily", "links review", one_door=RARE)
def review(call: Call, params: LinkReview) -> View:
    """Show pairs that seem to contradict each other, and memories unused for 90 days.

    The weekly background work finds the pairs and changes nothing. A pair is settled by a link (`links add NEWER
    supersedes OLDER`), by an edit, or with --dismiss.
    """
    graph = call.memory().graph
    if params.dismiss is not None:
        graph.dismiss(params.dismiss)
    found = graph.review()
    stale = [
        f"stale since {time.strftime('%Y-%m-%d', time.localtime(one.since))}: {one.key}"
        for one in found.stale[:MOST_STALE]
    ]
    if (more := len(found.stale) - MOST_STALE) > 0:
        stale.append(f"and {plural(more, 'stale memory')} more")
    pairs = plural(len(found.contradictions), "contradiction")
    return View(
        f"{pairs} to review, {plural(len(found.stale), 'stale memory')}",
        found.as_json(),
        rows="contradictions",
        cells=lambda pair: (
            f"{pair['id']}. {pair['newer']} may contradict {pair['older']}",
            f"similarity {pair['similarity']:.2f}",
            f"{pair['pattern']} {pair['confidence']:.2f}: {pair['sentence']}",
        ),
        hints=tuple(stale),
    )
