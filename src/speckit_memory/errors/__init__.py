"""What goes wrong, told as one kind of failure by every room and every door; below all of them."""

from speckit_memory.errors.kinds import (
    ConfigurationError,
    DocumentError,
    InternalError,
    InvalidRequestError,
    ModelUnavailableError,
    NotFoundError,
    SearchFailedError,
    SpeckitError,
    StoreBusyError,
    StoreClosedError,
    StoreError,
)
from speckit_memory.errors.problems import Problem, Where, closest, nearest

__all__ = [
    "ConfigurationError",
    "DocumentError",
    "InternalError",
    "InvalidRequestError",
    "ModelUnavailableError",
    "NotFoundError",
    "Problem",
    "SearchFailedError",
    "SpeckitError",
    "StoreBusyError",
    "StoreClosedError",
    "StoreError",
    "Where",
    "closest",
    "nearest",
]
