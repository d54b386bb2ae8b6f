"""Formulas over named numbers, by which a step states how it computed a score: "before + gain * better".

A formula is text, so that it can be shown, sent to another process and checked by a reader. It has names, numbers,
parentheses and + - * /, with the meaning and precedence of Python; nothing else is accepted, and nothing in it can run
code.
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
"""The name of the score before the step, in every formula."""
MOST_CHARACTERS = 120
_TOKENS = re.compile(r"(?:\s|[-+*/()]|[^\W\d]\w*+|(?:\d++(?:\.\d*+)?|\.\d++)(?:[eE][-+]?\d++)?+(?![\w.]))*+")
"""All tokens of a formula. For some other texts Python's parser emits a warning before it rejects them."""
_OPERATORS = {ast.Add: np.add, ast.Sub: np.subtract, ast.Mult: np.multiply, ast.Div: np.divide}


@dataclass(frozen=True, slots=True)
class Formula:
    """A parsed formula. `names` are its parts in the order of their first appearance, without `BEFORE`."""

    names: tuple[str, ...]
    _tree: ast.expr

    def value(self, numbers: Mapping[str, Column]) -> Column:
        """The formula's value in each row; infinite or NaN for a division by zero."""
        with np.errstate(all="ignore"):
            return np.asarray(_value(self._tree, numbers), np.float64)


@lru_cache(maxsize=256)
def parse_formula(text: str) -> Formula:
    """Parses a formula. Raises ValueError, which says what is accepted."""
    refused = ValueError(
        f"the formula '{text[:MOST_CHARACTERS]}'; accepted: names, numbers, parentheses and + - * /, "
        f"{MOST_CHARACTERS} characters at most"
    )
    # Possessive quantifiers (*+, ++) rule out exponential backtracking on hostile texts.
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
            # bool is matched by int(), hence the test of the exact type; 1e999 parses as infinity and is refused.
            case ast.Constant(value=int() | float() as number) if type(number) is not bool and math.isfinite(number):
                pass
            case _:
                raise refused
    return Formula(tuple(name for name in names if name != BEFORE), tree)


def _operands(tree: ast.expr) -> list[ast.expr]:
    """The operands of a formula, from left to right."""
    if isinstance(tree, ast.BinOp) and type(tree.op) in _OPERATORS:
        # Recursion is bounded by MOST_CHARACTERS.
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
    raise TypeError(type(tree).__name__)  # `parse_formula` rejects everything else
