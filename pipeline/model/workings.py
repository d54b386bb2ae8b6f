"""The derivation of a step's scores: formulas, and the numbers for their names in each row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from speckit_memory.pipeline.model.formulas import BEFORE, Formula, parse_formula
from speckit_memory.pipeline.ports import Column


@dataclass(frozen=True, slots=True)
class Workings:
    """The arithmetic behind a column of scores.

    `parts` float64[n, names] holds a number for each row and name, NaN where the row has no such number. A row's score
    is the value of the first of the `formulas` whose names all have a number in the row; `before` in it is the row's
    score before the step. On the unit scale, scores that rounding moves beyond 0 or 1 become 0 or 1.
    """

    formulas: tuple[str, ...]
    names: tuple[str, ...]
    parts: Column

    @classmethod
    def of(cls, rows: int, formulas: Sequence[str], parts: Mapping[str, Column | float]) -> Workings:
        """The workings of `rows` rows; a number that is the same for all rows may be given as a scalar."""
        # parts: (rows, names) float64 in C order; a scalar is broadcast over its column.
        columns = np.full((rows, len(parts)), np.nan)
        for place, part in enumerate(parts.values()):
            columns[:, place] = part
        return cls(tuple(formulas), tuple(parts), columns)

    def scores(self, before: Column) -> Column:
        """The score of every row, float64[n]; NaN if no formula applies. Raises ValueError for an invalid formula."""
        scores = np.full(len(before), np.nan)
        left = np.ones(len(before), np.bool_)
        formulas = list(map(parse_formula, self.formulas))
        for formula in formulas:
            self._require_parts(formula)
        for formula in formulas:
            complete = self._complete(formula)
            # Without indices, the columns are views; the other formulas need copies of their rows.
            if formula is formulas[0] and complete.all():  # the usual case: the first formula applies to every row
                columns = {name: self.parts[:, self.names.index(name)] for name in formula.names}
                scores[:] = formula.value(columns | {BEFORE: before})
                return scores
            rows = np.flatnonzero(left & complete)
            columns = {name: self.parts[rows, self.names.index(name)] for name in formula.names}
            scores[rows] = formula.value(columns | {BEFORE: before[rows]})
            # The first formula that applies wins, so its rows are closed for later ones.
            left[rows] = False
        return scores

    def _require_parts(self, formula: Formula) -> None:
        if unknown := set(formula.names) - set(self.names):
            raise ValueError(f"no part is called '{min(unknown)}'; there are {', '.join(self.names) or 'none'}")

    def _complete(self, formula: Formula) -> NDArray[np.bool_]:
        """Which rows have all the numbers of a formula, bool[n]."""
        columns = [self.names.index(name) for name in formula.names]
        return np.asarray(~np.isnan(self.parts[:, columns]).any(axis=1))

    def take(self, rows: NDArray[np.intp]) -> Workings:
        """The workings of these rows, in this order."""
        return Workings(self.formulas, self.names, self.parts[rows])

    def of_row(self, row: int) -> tuple[str, dict[str, float]]:
        """The formula that applies to a row, and its numbers."""
        numbers = dict(zip(self.names, self.parts[row].tolist(), strict=True))
        for text in self.formulas:
            own = {name: numbers[name] for name in parse_formula(text).names}
            if not any(np.isnan(list(own.values()))):
                return text, own
        raise ValueError(f"no formula holds for row {row}")  # the checks reject such workings
