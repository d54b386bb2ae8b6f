"""Every failure that a user may meet, as an exception: one class for each kind of failure that a program tells apart.

`SpeckitError(code, …)` and `SpeckitError.of(problems)` make an error of the class that the table of codes names
(`errors.codes.Code.kind`), so that whoever raises one need not think of classes and whoever catches one need not know
codes.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Self, cast

from speckit_memory.errors.codes import CODES, Kind
from speckit_memory.errors.problems import Problem, Where


class SpeckitError(Exception):
    """A failure with a code, an explanation and a next step; carries one problem or many."""

    problems: tuple[Problem, ...]

    def __new__(cls, code: Any = "", *_args: object, **_more: object) -> Self:
        """An error of the class that the code stands for; a class with a name of its own stays what it is."""
        return cast(Self, Exception.__new__(_class_of([code]) if cls is SpeckitError else cls))

    def __init__(
        self,
        code: str,
        message: str,
        *,
        hint: str = "",
        actions: Sequence[str] = (),
        where: Where | None = None,
        retryable: bool | None = None,
    ) -> None:
        self.problems = (Problem(code, message, hint, tuple(actions), where, retryable),)
        super().__init__(str(self.problems[0]))

    @staticmethod
    def of(problems: Iterable[Problem]) -> SpeckitError:
        """One error that carries every problem, ordered by position and then by code.

        Its class is the one that all of them share, so that what catches it is true of each.
        """
        ordered = sorted(problems, key=lambda p: (p.where is None, p.where or Where("", 0, 0), p.code))
        if not ordered:
            raise ValueError("an error needs at least one problem")
        kind = _class_of([problem.code for problem in ordered])
        return _filled(kind, tuple(ordered), ("\n".join(str(problem) for problem in ordered),))

    def __reduce__(self) -> tuple[Any, ...]:
        """How it is copied, and sent to another process: as it is, whatever its constructor takes."""
        return _filled, (type(self), self.problems, self.args), self.__dict__

    @property
    def code(self) -> str:
        """The code of the first problem."""
        return self.problems[0].code

    @property
    def exit_status(self) -> int:
        """2 when the caller's input, usage or configuration is at fault, else 1."""
        return 2 if all(CODES[problem.code].callers_fault for problem in self.problems) else 1

    def as_json(self) -> dict[str, Any]:
        """`{"error": …}`, and `"errors": […]` as well when there are several."""
        documents = [problem.as_json() for problem in self.problems]
        return {"error": documents[0]} if len(documents) == 1 else {"error": documents[0], "errors": documents}


class NotFoundError(SpeckitError):
    """What was named is not there: a store, a file, or a memory with this id or key."""


class InvalidRequestError(SpeckitError):
    """What was asked cannot be done as it was asked: a value, a query or a path that is not accepted."""


class DocumentError(SpeckitError):
    """A document cannot be read, breaks a rule of the format, or is one too many."""


class ConfigurationError(SpeckitError):
    """A pipeline, `flags.yaml`, `config.yaml` or a dataset is not as it must be."""


class ModelUnavailableError(SpeckitError):
    """The embedding model cannot be used, or is not the one that made the vectors of the store."""


class StoreError(SpeckitError):
    """The store could not be opened, read or written."""


class StoreBusyError(StoreError):
    """Somebody else kept the store locked for too long: trying again helps."""


class StoreClosedError(StoreError):
    """The memory was used after it had been closed."""


class SearchFailedError(SpeckitError):
    """The pipeline could not answer."""


class InternalError(SpeckitError):
    """A component broke its contract, or the product did."""


CLASSES: dict[Kind, type[SpeckitError]] = {
    "not found": NotFoundError,
    "request": InvalidRequestError,
    "document": DocumentError,
    "configuration": ConfigurationError,
    "model": ModelUnavailableError,
    "store": StoreError,
    "store busy": StoreBusyError,
    "store closed": StoreClosedError,
    "search": SearchFailedError,
    "internal": InternalError,
    "other": SpeckitError,
}


def _class_of(codes: Sequence[str]) -> type[SpeckitError]:
    """The narrowest class that the errors with these codes share."""
    first, *others = [CLASSES[CODES[code].kind] for code in codes]
    return next(kind for kind in first.__mro__ if all(issubclass(other, kind) for other in others))


def _filled(kind: type[SpeckitError], problems: tuple[Problem, ...], args: tuple[Any, ...]) -> SpeckitError:
    error: SpeckitError = Exception.__new__(kind)
    error.problems, error.args = problems, args
    return error
