"""Failures of the frame itself."""

from __future__ import annotations

from config.errors import SpeckitError


class StageInvariantError(SpeckitError):
    """An annotator tried to change scores, order or membership of a sealed ranking (feature P3)."""

    def __init__(self, step: str, violation: str) -> None:
        super().__init__("E130", f"the annotate step '{step}' {violation}")
        self.step = step
        self.violation = violation


class ContractError(SpeckitError):
    """A component returned something that its role does not entitle it to."""

    def __init__(self, step: str, violation: str) -> None:
        super().__init__("E131", f"the step '{step}' {violation}")
        self.step = step
        self.violation = violation
