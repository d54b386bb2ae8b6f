"""A score worked out from an explanation alone, as a reader with a pocket calculator would do it.

Nothing of the product is used here: only the document that `explain` gives, and Python's own arithmetic.
"""

from __future__ import annotations

from typing import Any


def reckoned(step: dict[str, Any]) -> float:
    """The score after a step, from what the step says of it."""
    before, parts = step["before"], step["parts"]
    match step["kind"]:
        case "sum":
            score = 0.0
            for part in parts.values():
                score = score + part
        case "add":
            [part] = parts.values()
            score = before + part
        case "multiply":
            [part] = parts.values()
            score = before * part
        case "formula":
            score = eval(step["formula"], {"__builtins__": {}}, {**parts, "before": before})
        case other:
            raise AssertionError(f"'{step['step']}' does not say how it made the score: {other}")
    return min(max(score, 0.0), 1.0) if step["scale"] == "unit" else score


def check_explanation(explanation: dict[str, Any], score: float) -> None:
    """Every step follows from the one before it, and the last one gives the score, to the last bit."""
    before = None
    for step in explanation["steps"]:
        assert step["before"] == before, step
        assert reckoned(step) == step["after"], step
        before = step["after"]
    assert before == score
