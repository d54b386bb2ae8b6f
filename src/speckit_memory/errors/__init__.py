"""The product's errors, shared by all rooms and interfaces: exceptions, problems and their codes."""

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
from speckit_memory.errors.problems import Problem, Where, closest, nearest, out_of_range, refused, wrong_type

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
    "out_of_range",
    "refused",
    "wrong_type",
]
