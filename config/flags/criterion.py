"""The criterion for the advance of a flag, in machine-readable form (feature P11).

`evaluation.experiments.criteria` checks a comparison against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Annotated, ClassVar, Literal, get_args

from annotated_types import Interval

from speckit_memory.config.yaml.accepted import Accepted
from speckit_memory.config.yaml.binding import bind_whole
from speckit_memory.config.yaml.reader import Node, Scalar, Sequence, find, locate, read
from speckit_memory.errors import Problem, nearest

Direction = Literal["better", "not_worse", "at_least", "at_most"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
"""The first two apply to the difference from the control, the last two to the variant's own figure."""

QUALITY = ("nDCG@10", "MRR@5", "Recall@20", "Hit@1")
AGREEMENT = ("overlap@10", "kendall_tau_b", "rbo", "ordering_differences")
"""Agreement between two orders: figures of the pair of pipelines, without better and worse."""
SMALLER_IS_BETTER = ("p95_ms",)
METRICS: dict[str, tuple[Direction, ...]] = {
    **dict.fromkeys(QUALITY, DIRECTIONS),
    **dict.fromkeys(AGREEMENT, ("at_least", "at_most")),
    **dict.fromkeys(SMALLER_IS_BETTER, DIRECTIONS),
    "interleaving": ("better", "not_worse"),
}
"""The metrics, and the accepted directions of each. `interleaving` is the preference, from -1 to 1."""

MOST_CONDITIONS = 8
MOST_QUERIES = 1_000_000
DEFAULT_QUERIES = 200
"""Default minimum number of queries for a condition."""


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a criterion.

    `better`: the interval of the difference is above `margin`. `not_worse`: it is above -`margin`. `at_least` and
    `at_most`: the figure does not cross `margin`. For times, smaller is better. At least `queries` are needed.
    """

    __pydantic_config__: ClassVar = {"extra": "forbid"}
    EXAMPLE: ClassVar = "{metric: nDCG@10, direction: not_worse, margin: 0.005, queries: 200}"

    metric: Annotated[str, Accepted(names=tuple(METRICS))]
    direction: Direction
    margin: Annotated[float, Interval(ge=0), Accepted("a number from 0")] = 0.0
    queries: Annotated[int, Interval(ge=1, le=MOST_QUERIES), Accepted(f"a whole number from 1 to {MOST_QUERIES:,}")] = (
        DEFAULT_QUERIES
    )

    def __str__(self) -> str:
        over = f"over {self.queries:,} queries"
        match self.direction:
            case "better":
                return f"{self.metric} better{f' by {self.margin:g}' if self.margin else ''} {over}"
            case "not_worse":
                return f"{self.metric} not worse{f' by {self.margin:g}' if self.margin else ''} {over}"
        return f"{self.metric} {self.direction.replace('_', ' ')} {self.margin:g} {over}"

    def as_json(self) -> dict[str, str | float | int]:
        """The condition in the form of a file."""
        return asdict(self)


def criterion_of(node: Node) -> tuple[tuple[Condition, ...], list[Problem]]:
    """The conditions of a criterion, all of which must hold, and all problems.

    The node is a mapping, a list of mappings, or a YAML text of either.
    """
    problems: list[Problem] = []
    if isinstance(node, Scalar) and isinstance(node.value, str):  # extensions declare it in code, as a text
        inside, problems = read(node.value, node.where.file, node.where.line)
        node = inside or node
    items = node.items if isinstance(node, Sequence) else (node,)
    if not 0 < len(items) <= MOST_CONDITIONS:
        message = f"a criterion has 1 to {MOST_CONDITIONS} conditions; found {len(items):,}"
        return (), [Problem("E114", message, where=node.where)]
    conditions = tuple(found for item in items for found in _condition(item, problems))
    return conditions, problems


def _condition(node: Node, problems: list[Problem]) -> Iterator[Condition]:
    condition, wrong = bind_whole(Condition, node, "a criterion")
    problems += wrong
    if condition is None:
        return
    accepted = METRICS[condition.metric]
    if condition.direction not in accepted:
        message = f"the direction of a criterion is '{condition.direction}'; {nearest(condition.direction, accepted)}"
        problems.append(Problem("E114", message, where=locate(node, ("direction",))))
    elif condition.direction in ("at_least", "at_most") and find(node, ("margin",)) is node:
        message = f"'{condition.direction}' needs the key 'margin', the limit of the figure"
        problems.append(Problem("E114", message, where=node.where))
    else:
        yield condition
