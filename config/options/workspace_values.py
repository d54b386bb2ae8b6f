"""Helpers for the keys of `config.yaml`: problems for values of the wrong form and unknown keys."""

from __future__ import annotations

from speckit_memory.config.yaml.reader import Node, Scalar, Sequence, YamlMapping
from speckit_memory.errors import Problem, nearest

ACTIONS = ("correct the value at the position shown", "see docs/workspace.md")


def empty(node: Node) -> bool:
    """Whether the value is empty, which means the same as an absent key."""
    return isinstance(node, Scalar) and node.value is None


def form(node: Node, what: str, expected: str) -> Problem:
    """E114: a value does not have the expected form."""
    kinds = {Sequence: "a list", YamlMapping: "a mapping"}
    found = repr(node.value) if isinstance(node, Scalar) else kinds[type(node)]
    hint = "The value does not have the expected form."
    return Problem("E114", f"{what} must be {expected}; found {found}", hint, ACTIONS, node.where)


def report_unknown(node: YamlMapping, accepted: tuple[str, ...], owner: str, problems: list[Problem]) -> None:
    """Add E115 with the nearest accepted key for each unknown key.

    Args:
        node: The mapping to check.
        accepted: The accepted keys.
        owner: Name of the mapping in messages.
        problems: Receives the problems.
    """
    for entry in node.entries:
        if entry.key not in accepted:
            message = f"{owner} has no key '{entry.key}'; {nearest(entry.key, accepted)}"
            problems.append(Problem("E115", message, where=entry.where))
