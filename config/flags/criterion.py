"""The criterion for the advance of a flag, in machine-readable form (feature P11).

`evaluation.experiments.criteria` checks a comparison against it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, get_args

from speckit_memory.config.yaml.reader import Node, Scalar, Sequence, YamlMapping, plain, read
from speckit_memory.errors import Problem, Where, nearest

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
KEYS = ("metric", "direction", "margin", "queries")


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a criterion.

    `better`: the interval of the difference is above `margin`. `not_worse`: it is above -`margin`. `at_least` and
    `at_most`: the figure does not cross `margin`. For times, smaller is better. At least `queries` are needed.
    """

    metric: str
    direction: Direction
    margin: float = 0.0
    queries: int = DEFAULT_QUERIES

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
        return {name: getattr(self, name) for name in KEYS}


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
    if not isinstance(node, YamlMapping):
        example = "{metric: nDCG@10, direction: not_worse, margin: 0.005, queries: 200}"
        message = f"a criterion must be a mapping such as {example}; found {plain(node)!r}"
        problems.append(Problem("E114", message, where=node.where))
        return
    before = len(problems)
    for entry in node.entries:
        if entry.key not in KEYS:
            message = f"a criterion has no key '{entry.key}'; {nearest(entry.key, KEYS)}"
            problems.append(Problem("E115", message, where=entry.where))
    value = {entry.key: plain(entry.value) for entry in node.entries}
    metric = _word(node, "metric", METRICS, problems)
    # For an unknown metric all directions are accepted: one mistake gives one problem.
    direction = _word(node, "direction", METRICS.get(metric, DIRECTIONS), problems)
    margin, queries = value.get("margin", 0.0), value.get("queries", DEFAULT_QUERIES)
    if isinstance(margin, bool) or not isinstance(margin, int | float) or margin < 0:
        message = f"the margin must be a number from 0; found {margin!r}"
        problems.append(Problem("E114", message, where=_place(node, "margin")))
    elif direction in ("at_least", "at_most") and "margin" not in value:
        message = f"'{direction}' needs the key 'margin', the limit of the figure"
        problems.append(Problem("E114", message, where=node.where))
    if isinstance(queries, bool) or not isinstance(queries, int) or not 1 <= queries <= MOST_QUERIES:
        message = f"'queries' must be a whole number from 1 to {MOST_QUERIES:,}; found {queries!r}"
        problems.append(Problem("E114", message, where=_place(node, "queries")))
    if len(problems) == before:
        judged = next(one for one in DIRECTIONS if one == direction)
        yield Condition(metric, judged, float(str(margin)), int(str(queries)))


def _word(
    node: YamlMapping,
    key: str,
    accepted: dict[str, tuple[Direction, ...]] | tuple[Direction, ...],
    problems: list[Problem],
) -> str:
    entry = node.get(key)
    found = plain(entry.value) if entry else None
    if entry is None:
        problems.append(
            Problem("E114", f"a criterion needs the key '{key}'; {nearest('', accepted)}", where=node.where)
        )
    elif not isinstance(found, str) or found not in accepted:
        message = f"the {key} of a criterion is {found!r}; {nearest(str(found), accepted)}"
        problems.append(Problem("E114", message, where=entry.value.where))
    else:
        return found
    return ""


def _place(node: YamlMapping, key: str) -> Where:
    entry = node.get(key)
    return entry.value.where if entry else node.where
