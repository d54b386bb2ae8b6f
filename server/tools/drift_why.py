"""`memory_drift_why`: why something was decided (feature T18)."""

from collections.abc import Callable
from typing import Annotated, Any

from pydantic import Field

from speckit_memory.server.envelope import Reply, nothing
from speckit_memory.server.markdown import about, one_line
from speckit_memory.server.relations import Direction, Relation
from speckit_memory.server.tools.parameters import Flag, MemoryName
from speckit_memory.server.workspace import Workspace

BUDGET = 1200


def build(workspace: Workspace) -> Callable[..., Reply]:
    """The tool over a workspace."""

    def memory_drift_why(
        memoryId: MemoryName,  # noqa: N803 -- parameter names of the specification
        maxDepth: Annotated[int, Field(strict=True, ge=1, le=10)] = 3,  # noqa: N803
        direction: Direction = "both",
        relations: Annotated[list[Relation], Field(max_length=6)] = [],  # noqa: B006 -- never changed
        includeMemoryDetails: Flag = True,  # noqa: N803
    ) -> Reply:
        """Why a memory was decided: the causal links around it, and what contradicts."""
        from speckit_memory.engine.lineage import READINGS, link_json
        from speckit_memory.server.memory_names import memory_name
        from speckit_memory.server.output import counted

        found = workspace.memory().lineage(
            memory_name(memoryId), direction=direction, depth=maxDepth, relations=relations
        )
        links = [{"reading": READINGS[step.relation, step.direction], **link_json(step)} for step in found.steps]
        named = [{"id": number, "key": key, "title": title} for number, (key, title) in found.memories.items()]
        more = ("there are more links: ask for fewer hops, one direction or some relations",) if found.cut else ()
        return Reply(
            f"{found.key}: {counted(len(links), 'causal link')} within {counted(maxDepth, 'hop')}",
            {
                "id": found.id,
                "key": found.key,
                "reached": max((step.hop for step in found.steps), default=0),
                "groups": {reading: len(steps) for reading, steps in found.groups.items()},
                "links": links,
                **({"memories": named} if includeMemoryDetails else {}),
            },
            rows="links",
            again=nothing,
            hints=(*found.hints, *more),
            row_text=_link_text,
        )

    return memory_drift_why


def _link_text(_number: int, link: dict[str, Any]) -> str:
    line = f"{link['source']} {link['relation']} {link['target']}"
    return "- " + about(
        f"{link['reading']}: {line}", f"strength {link['strength']:g}", f"hop {link['hop']}", f"link {link['edge']}",
        f"by {one_line(link['created_by'])}", one_line(link["evidence"]),
    )  # fmt: skip
