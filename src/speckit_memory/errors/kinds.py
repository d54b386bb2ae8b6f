"""Every failure that a user may meet, as an exception: one class for each kind that a program may want to handle.

`SpeckitError(code, …)` and `SpeckitError.of(problems)` make an error of the class that the table of codes names
(`errors.codes.Code.kind`): code that raises an error need not choose a class, and code that catches one need not know
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
        """An error of the class for this code; a subclass is kept as given."""
        # Python still calls `__init__`, since the result is an instance of a subclass.
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
        """One error with all problems, ordered by position, then by code.

        Its class is the one common to all of them, so that an `except` clause is right for each.
        """
        ordered = sorted(problems, key=lambda p: (p.where is None, p.where or Where("", 0, 0), p.code))
        if not ordered:
            raise ValueError("an error needs at least one problem")
        kind = _class_of([problem.code for problem in ordered])
        return _filled(kind, tuple(ordered), ("\n".join(str(problem) for problem in ordered),))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copying and pickling restore the fields directly, regardless of the constructor."""
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
        """`{"error": …}`, with `"errors": […]` in addition when there are several."""
        documents = [problem.as_json() for problem in self.problems]
        return {"error": documents[0]} if len(documents) == 1 else {"error": documents[0], "errors": documents}


class NotFoundError(SpeckitError):
    """A store, a file, or a memory with this id or key does not exist."""


class InvalidRequestError(SpeckitError):
    """The request cannot be carried out: a value, a query or a path is not accepted."""


class DocumentError(SpeckitError):
    """A document cannot be read, breaks a rule of the format, or duplicates another."""


class ConfigurationError(SpeckitError):
    """A pipeline, `flags.yaml`, `config.yaml` or a dataset is invalid."""


class ModelUnavailableError(SpeckitError):
    """The embedding model cannot be used, or is not the one that made the vectors of the store."""


class StoreError(SpeckitError):
    """The store could not be opened, read or written."""


class StoreBusyError(StoreError):
    """Another process kept the store locked for too long: try again."""


class StoreClosedError(StoreError):
    """The memory was used after it had been closed."""


class SearchFailedError(SpeckitError):
    """The pipeline could not answer."""


class InternalError(SpeckitError):
    """A component or the product broke its contract."""


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
    """The narrowest class common to errors with these codes."""
    first, *others = [CLASSES[CODES[code].kind] for code in codes]
    # `__mro__` runs from the most specific class to the most general one.
    return next(kind for kind in first.__mro__ if all(issubclass(other, kind) for other in others))


def _filled(kind: type[SpeckitError], problems: tuple[Problem, ...], args: tuple[Any, ...]) -> SpeckitError:
    error: SpeckitError = Exception.__new__(kind)
    error.problems, error.args = problems, args
    return error
