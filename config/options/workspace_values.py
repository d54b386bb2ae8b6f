"""What the keys of `config.yaml` share: how a value of the wrong form and an unknown key are told."""

from __future__ import annotations

from speckit_memory.config.yaml.reader import Mapping, Node, Scalar, Sequence
from speckit_memory.errors import Problem, nearest

ACTIONS = ("correct the value at the position shown", "see docs/workspace.md")


def empty(node: Node) -> bool:
    """Whether nothing is written there, which is as if the key were not."""
    return isinstance(node, Scalar) and node.value is None


def form(node: Node, what: str, expected: str) -> Problem:
    """E114: a value has another form than is expected."""
    kinds = {Sequence: "a list", Mapping: "a mapping"}
    found = repr(node.value) if isinstance(node, Scalar) else kinds[type(node)]
    hint = "The value has another form than expected here."
    return Problem("E114", f"{what} must be {expected}; found {found}", hint, ACTIONS, node.where)


def report_unknown(node: Mapping, accepted: tuple[str, ...], owner: str, problems: list[Problem]) -> None:
    """E115 for each key that means nothing, with the nearest one that does."""
    for entry in node.entries:
        if entry.key not in accepted:
            message = f"{owner} has no key '{entry.key}'; {nearest(entry.key, accepted)}"
            problems.append(Problem("E115", message, where=entry.where))
