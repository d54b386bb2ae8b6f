"""Failures of the frame itself."""

from __future__ import annotations

from speckit_memory.errors import InternalError


class InvalidComponentOutput(Exception):  # noqa: N818 - a finding about a value; the checks turn it into an error that names the step
    """An invalid value that a component returned: the value, its place, and the accepted values."""

    def __init__(self, violation: str) -> None:
        super().__init__(violation)
        self.violation = violation


class StageInvariantError(InternalError):
    """An annotator tried to change scores, order or membership of a sealed ranking (feature P3)."""

    def __init__(self, step: str, violation: str) -> None:
        super().__init__("E130", f"the annotate step '{step}' {violation}")
        self.step = step
        self.violation = violation


class ContractError(InternalError):
    """A component returned something that its role does not entitle it to."""

    def __init__(self, step: str, violation: str) -> None:
        super().__init__("E131", f"the step '{step}' {violation}")
        self.step = step
        self.violation = violation


class IsolatedFailureError(InternalError):
    """An isolated component or its process failed. The text has no code, like that of a component in this process."""

    def __init__(self, message: str) -> None:
        super().__init__("E132", message)
        self.args = (self.problems[0].message,)


class NotStartedError(IsolatedFailureError):
    """The process could not be started, which says nothing about the component."""
