"""The causal graph: lineage of a memory, density, links by name (features T18 and T20, M8 to M10)."""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import plural
from speckit_memory.server.console.markdown import TEXT_FIELD
from speckit_memory.server.operations.fields import ID_OR_KEY, RARE, Direction, Flag, MemoryName, Relation, Required
from speckit_memory.server.operations.operation import Call, Option, Parameters, Row, Tool, View, operation

if TYPE_CHECKING:
    from speckit_memory.engine.graph.lineage import Lineage

BUDGET = 1200
DIAGRAM = 900
"""Maximum tokens of a diagram."""
MORE = "there are more links: ask for fewer hops, one direction or some relations"


class LineageQuery(Parameters):
    key: Annotated[MemoryName, Option("Id or key of the memory.", tool="memoryId", argument=True, metavar=ID_OR_KEY)]
    depth: Annotated[
        int, Field(strict=True, ge=1, le=10), Option("Maximum number of hops, 1 to 10.", tool="maxDepth")
    ] = 3
    direction: Annotated[Direction, Option("Follow links from their source, from their target, or from either.")] = (
        "both"
    )
    relations: Annotated[
        list[Relation], Field(max_length=6), Option("Follow only this relation.", command="--relation")
    ] = []
    details: Annotated[Flag, Option("Titles and dates of the memories.", tool="includeMemoryDetails", command=None)] = (
        True
    )
    format: Annotated[
        Literal["text", "mermaid"],
        Option("Print a Mermaid flowchart and nothing else.", command="--mermaid", flag="mermaid"),
    ] = "text"


@operation(
    "daily",
    "lineage",
    Tool(
        "memory_drift_why",
        "Explain decision",
        "Why a memory was decided: its causal links, and contradictions.",
        budget=BUDGET,
        cached=True,
    ),
    reads=True,
)
def lineage(call: Call, params: LineageQuery) -> View:
    """Show why a memory was decided and what followed, by its causal links.

    The nearest and strongest links come first; contradictions and outdated memories are pointed out.
    """
    from speckit_memory.engine.graph.lineage import READINGS, link_json
    from speckit_memory.server.console.arguments.memory_names import known_key
    from speckit_memory.server.console.markdown import quote_text

    memory, is_diagram = call.memory(), params.format == "mermaid"
    if is_diagram and call.common and call.common.as_json:
        raise SpeckitError("E030", "--mermaid and --json print different documents; choose one of them")
    found = memory.graph.lineage(
        known_key(memory, params.key), direction=params.direction, depth=params.depth, relations=params.relations
    )
    if is_diagram:
        return _diagram(call, found, params.details)
    links = [{"reading": READINGS[step.relation, step.direction], **link_json(step)} for step in found.steps]
    if params.details:
        _put_words(links, found)
    by_hand = call.way("Documents declare links under causalLinks; `speckit-memory links add` makes one by hand.", "")
    return View(
        _summary(found),
        {**_facts(found, params.details), "links": links},
        rows="links",
        cells=_cells,
        hints=(
            *found.hints,
            *((MORE,) if found.cut else ()),
            *((by_hand,) if by_hand and not links else ()),
        ),
        reply={"facts": quote_text(found.words.get(found.id, "")) if params.details else ""},
    )


def _summary(found: Lineage) -> str:
    return f"{found.key}: {plural(len(found.steps), 'causal link')} within {plural(found.depth, 'hop')}"


def _facts(found: Lineage, details: bool) -> dict[str, Any]:
    return {
        "id": found.id,
        "key": found.key,
        "title": found.title,
        "direction": found.direction,
        "depth": found.depth,
        "cut": found.cut,
        "hints": list(found.hints),
        "reached": max((step.hop for step in found.steps), default=0),
        "groups": {reading: len(steps) for reading, steps in found.groups.items()},
        **({"memories": found.named()} if details else {}),
    }


def _diagram(call: Call, found: Lineage, details: bool) -> View:
    """The flowchart; for a client, of as many of the nearest links as fit `DIAGRAM` tokens."""
    drawn = found
    if workspace := call.workspace:
        while (tokens := workspace.count_tokens([drawn.mermaid()])[0]) > DIAGRAM and drawn.steps:
            # links have similar lengths; at least one is dropped per round, so that this ends
            most = min(len(drawn.steps) * DIAGRAM // tokens, len(drawn.steps) - 1)
            drawn = replace(drawn, steps=drawn.steps[:most])
    hints = [*found.hints]
    if left := len(found.steps) - len(drawn.steps):
        hints.append(f"{left} of {len(found.steps)} links, the farthest ones, are not drawn for lack of space")
    if left or found.cut:
        hints.append(MORE)
    diagram = drawn.mermaid()
    return View(
        _summary(found),
        {**_facts(drawn, details), "count": len(drawn.steps), "mermaid": diagram},
        hints=tuple(hints),
        text=diagram,
        reply={"facts": f"```mermaid\n{diagram}```"},
    )


def _cells(link: Row) -> tuple[str, ...]:
    return (
        f"{link['reading']}: {link['source']} {link['relation']} {link['target']}",
        f"strength {link['strength']:g}",
        f"hop {link['hop']}",
        f"link {link['edge']}",
        f"by {link['created_by']}" + (f" of {link['principal']}" if "principal" in link else ""),
        link["evidence"],
    )


def _put_words(links: list[dict[str, Any]], found: Lineage) -> None:
    """Adds to each link the text of the memory it leads to, once per memory."""
    # ids whose text has been shown; the starting memory's own text is in the facts
    said = {found.id}
    for link, step in zip(links, found.steps, strict=True):
        other = step.target_id if step.direction == "outgoing" else step.source_id
        if other not in said and found.words.get(other):
            link[TEXT_FIELD] = found.words[other]
        said.add(other)


@operation(
    "administration",
    "graph show",
    Tool(
        "memory_causal_stats",
        "Count links",
        "Count causal links by relation and maker, and memories with one.",
        budget=BUDGET,
        cached=True,
    ),
    reads=True,
)
def show(call: Call, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """Show how dense the causal graph is and who made its edges.

    Below 0.5 edges per memory the graph is sparse, from 1 on it is dense. In a dense graph memories are ranked by the
    links that lead from them and communities are found, in the background.
    """
    from speckit_memory.engine.graph.linking import WANTED_COVERAGE
    from speckit_memory.memory.store.reading.density import as_fields, describe_density

    graph = call.memory().graph
    stats, found = graph.stats(), graph.report()
    enough = stats.coverage >= WANTED_COVERAGE
    hint = f"fewer than {WANTED_COVERAGE:.0%} of the memories have a link: declare causalLinks in documents"
    waiting = call.way("`speckit-memory maintain`", "the background work")
    return View(
        f"{stats.links} causal links, {stats.coverage:.0%} of {stats.memories} memories have one",
        {
            "links": stats.links,
            "memories": stats.memories,
            "covered": stats.covered,
            "coverage": round(stats.coverage, 4),
            "wanted_coverage": WANTED_COVERAGE,
            "mean_strength": round(stats.strength, 4),
            "by_relation": stats.by_relation,
            "by_maker": stats.by_maker,
            "density": as_fields(found.density),
            "made_by": found.makers,
            "ranked": found.ranked,
            "communities": found.communities,
            "waiting": found.waiting,
            "searched": found.searched,
            "names": found.names,
        },
        facts={
            **stats.by_relation,
            "mean strength": round(stats.strength, 4),
            "density": describe_density(found.density),
            "by maker": found.makers,
            "ranked": f"{plural(found.ranked, 'memory')} in {plural(found.communities, 'community')}",
            "names": f"{plural(found.names, 'name')} in {plural(found.searched, 'memory')}" if found.searched else "",
            "waiting": f"{plural(found.waiting, 'memory')} for {waiting}" if found.waiting else "",
        },
        hints=() if enough or not stats.memories else (hint,),
    )


@operation("administration", "graph link", one_door=RARE)
def link_names(call: Call, params: Parameters) -> View:  # noqa: ARG001 -- there are none
    """Link memories that share a name, while the graph has few edges.

    Linking needs less than one edge per memory. Names are found by rules: consecutive capitalised words, headings,
    quoted text, languages of code blocks, and the word after "using". A name in more than ten memories links nothing.
    With `entities: link` in .speckit/config.yaml the background work does this; `graph remove --by entities` removes
    the links again.
    """
    found = call.memory().graph.link_names()
    links = f"{plural(found.added, 'link')} added, {found.removed} removed"
    dense = "" if found.room else "; the graph is dense enough without links by name"
    return View(f"{plural(found.searched, 'memory')} searched for names, {links}{dense}", asdict(found))


class EdgeRemoval(Parameters):
    made_by: Annotated[
        Required,
        Option("The process that made the edges, as `graph show` lists it.", command="--by"),
    ]
    dry_run: Annotated[Flag, Option("Count the edges and delete none.")] = False


@operation("administration", "graph remove", one_door=RARE, destroys=True)
def remove(call: Call, params: EdgeRemoval) -> View:
    """Delete every causal edge that an automatic process made.

    Edges declared by documents or made by people are not deleted. Edges by shared names come back with the next
    background work if .speckit/config.yaml says `entities: link`. The rest of the graph is ranked again afterwards.
    `links undo --by "graph remove"` reverts the deletion.
    """
    removed = call.memory().graph.remove_edges(params.made_by, dry_run=params.dry_run)
    outcome = "would be deleted" if params.dry_run else "deleted"
    return View(
        f"{plural(removed, 'edge')} of '{params.made_by}' {outcome}",
        {"dry_run": params.dry_run, "made_by": params.made_by, "edges": removed},
    )
