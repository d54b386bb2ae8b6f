"""`memory_drift_why`: explain a decision by its causal links (feature T18)."""

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import Field

from speckit_memory.server.calls.parameters import Flag, MemoryName
from speckit_memory.server.console.markdown import about, one_line, quote_text
from speckit_memory.server.replies.envelope import TEXT_FIELD, Count, Reply, nothing
from speckit_memory.server.views.links.relations import Direction, Relation
from speckit_memory.server.workspace.workspace import Workspace

if TYPE_CHECKING:
    from speckit_memory.engine.graph.lineage import Lineage

BUDGET = 1200
DIAGRAM = 900
"""Maximum tokens of a diagram."""
MORE = "there are more links: ask for fewer hops, one direction or some relations"


def build(workspace: Workspace) -> Callable[..., Reply]:
    """Builds the tool for a workspace."""

    def memory_drift_why(
        memoryId: MemoryName,  # noqa: N803 -- parameter names of the specification
        maxDepth: Annotated[int, Field(strict=True, ge=1, le=10)] = 3,  # noqa: N803
        direction: Direction = "both",
        relations: Annotated[list[Relation], Field(max_length=6)] = [],  # noqa: B006 -- never changed
        includeMemoryDetails: Flag = True,  # noqa: N803
        format: Literal["text", "mermaid"] = "text",  # noqa: A002
    ) -> Reply:
        """Why a memory was decided: its causal links, and contradictions.\f

        Args:
            memoryId: Id or key of the memory.
            maxDepth: Maximum number of hops, 1 to 10.
            direction: Whether links are followed from their source, from their target, or from either.
            relations: Relations to follow; none for all.
            includeMemoryDetails: Whether titles and dates of the memories are sent.
            format: Whether the answer is text or a Mermaid flowchart.
        """
        from speckit_memory.engine.graph.lineage import READINGS, link_json
        from speckit_memory.server.console.arguments.memory_names import known_key

        memory = workspace.memory()
        found = memory.graph.lineage(
            known_key(memory, memoryId), direction=direction, depth=maxDepth, relations=relations
        )
        if format == "mermaid":
            return _diagram(found, includeMemoryDetails, workspace.count_tokens)
        links = [{"reading": READINGS[step.relation, step.direction], **link_json(step)} for step in found.steps]
        if includeMemoryDetails:
            _put_words(links, found)
        return Reply(
            _summary(found),
            {**_facts(found, includeMemoryDetails), "links": links},
            rows="links",
            again=nothing,
            hints=(*found.hints, *((MORE,) if found.cut else ())),
            row_text=_link_text,
            facts=quote_text(found.words.get(found.id, "")) if includeMemoryDetails else "",
        )

    return memory_drift_why


def _summary(found: "Lineage") -> str:
    from speckit_memory.errors.echo import plural

    return f"{found.key}: {plural(len(found.steps), 'causal link')} within {plural(found.depth, 'hop')}"


def _facts(found: "Lineage", details: bool) -> dict[str, Any]:
    return {
        "id": found.id,
        "key": found.key,
        "reached": max((step.hop for step in found.steps), default=0),
        "groups": {reading: len(steps) for reading, steps in found.groups.items()},
        **({"memories": found.named()} if details else {}),
    }


def _diagram(found: "Lineage", details: bool, count: Count) -> Reply:
    """The flowchart of as many of the nearest links as fit `DIAGRAM` tokens."""
    drawn = found
    while (tokens := count([drawn.mermaid()])[0]) > DIAGRAM and drawn.steps:
        # links have similar lengths; at least one is dropped per round, so that this ends
        most = min(len(drawn.steps) * DIAGRAM // tokens, len(drawn.steps) - 1)
        drawn = replace(drawn, steps=drawn.steps[:most])
    left = len(found.steps) - len(drawn.steps)
    hints = [*found.hints]
    if left:
        hints.append(f"{left} of {len(found.steps)} links, the farthest ones, are not drawn for lack of space")
    if left or found.cut:
        hints.append(MORE)
    diagram = drawn.mermaid()
    return Reply(
        _summary(found),
        {**_facts(drawn, details), "count": len(drawn.steps), "mermaid": diagram},
        again=nothing,
        hints=tuple(hints),
        facts=f"```mermaid\n{diagram}```",
    )


def _link_text(_number: int, link: dict[str, Any]) -> str:
    line = f"{link['source']} {link['relation']} {link['target']}"
    told = "- " + about(
        f"{link['reading']}: {line}",
        f"strength {link['strength']:g}",
        f"hop {link['hop']}",
        f"link {link['edge']}",
        f"by {one_line(link['created_by'])}",
        one_line(link["evidence"]),
    )
    return f"{told}\n{quote_text(link[TEXT_FIELD])}" if link.get(TEXT_FIELD) else told


def _put_words(links: list[dict[str, Any]], found: "Lineage") -> None:
    """Adds to each link the text of the memory it leads to, once per memory."""
    # ids whose text has been shown; the starting memory's own text is in the facts
    said = {found.id}
    for link, step in zip(links, found.steps, strict=True):
        other = step.target_id if step.direction == "outgoing" else step.source_id
        if other not in said and found.words.get(other):
            link[TEXT_FIELD] = found.words[other]
        said.add(other)
