"""Formulas over named numbers, as a step writes them to say how it made a score: "before + gain * better".

A formula is text, so that it can be shown, sent to another process and read by anybody who wants to check a score. It
has names, numbers, parentheses and + - * /, with the meaning and the precedence that Python gives them; nothing else
is read, and nothing of it can run.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from speckit_memory.pipeline.ports import Column

BEFORE = "before"
"""Stands in every formula for the score that a row had before the step."""
MOST_CHARACTERS = 120
_TOKENS = re.compile(r"(?:\s|[-+*/()]|[^\W\d]\w*+|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?+(?![\w.]))*+")
"""All that a formula is written of. Of some other texts Python's parser warns before it refuses them."""
_OPERATORS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}


@dataclass(frozen=True, slots=True)
class Formula:
    """A formula that has been read. `names` are its parts in the order of their first appearance, without `BEFORE`."""

    names: tuple[str, ...]
    _tree: ast.expr

    def value(self, numbers: Mapping[str, Column]) -> Column:
        """The formula's value in each row; infinite or NaN where it divides by zero."""
        with np.errstate(all="ignore"):
            return np.asarray(_value(self._tree, numbers), np.float64)


@lru_cache(maxsize=256)
def parsed(text: str) -> Formula:
    """Reads a formula. Raises ValueError, which says what is accepted."""
    refused = ValueError(
        f"the formula '{text[:MOST_CHARACTERS]}'; accepted: names, numbers, parentheses and + - * /, "
        f"{MOST_CHARACTERS} characters at most"
    )
    if len(text) > MOST_CHARACTERS or not _TOKENS.fullmatch(text):
        raise refused
    try:
        tree = ast.parse(text, mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise refused from None
    names: dict[str, None] = {}
    for node in _operands(tree):
        match node:
            case ast.Name(id=name):
                names[name] = None
            case ast.Constant(value=int() | float() as number) if type(number) is not bool and math.isfinite(number):
                pass
            case _:
                raise refused
    return Formula(tuple(name for name in names if name != BEFORE), tree)


def _operands(tree: ast.expr) -> list[ast.expr]:
    """What the operators of a formula stand between, from left to right."""
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        return [*_operands(tree.left), *_operands(tree.right)]
    return [tree]


def _value(tree: ast.expr, numbers: Mapping[str, Column]) -> Column | float:
    match tree:
        case ast.BinOp(left=left, op=operator, right=right):
            combined: Column = _OPERATORS[type(operator)](_value(left, numbers), _value(right, numbers))
            return combined
        case ast.Name(id=name):
            return numbers[name]
        case ast.Constant(value=int() | float() as number):
            return float(number)
    raise TypeError(type(tree).__name__)  # `parsed` lets nothing else through
