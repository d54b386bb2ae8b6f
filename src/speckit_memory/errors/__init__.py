"""The product's errors, shared by all rooms and interfaces: exceptions, problems and their codes."""

from speckit_memory.errors.kinds import ConfigurationError as ConfigurationError
from speckit_memory.errors.kinds import DocumentError as DocumentError
from speckit_memory.errors.kinds import InternalError as InternalError
from speckit_memory.errors.kinds import InvalidRequestError as InvalidRequestError
from speckit_memory.errors.kinds import ModelUnavailableError as ModelUnavailableError
from speckit_memory.errors.kinds import NotFoundError as NotFoundError
from speckit_memory.errors.kinds import SearchFailedError as SearchFailedError
from speckit_memory.errors.kinds import SpeckitError as SpeckitError
from speckit_memory.errors.kinds import StoreBusyError as StoreBusyError
from speckit_memory.errors.kinds import StoreClosedError as StoreClosedError
from speckit_memory.errors.kinds import StoreError as StoreError
from speckit_memory.errors.problems import Problem as Problem
from speckit_memory.errors.problems import Where as Where
from speckit_memory.errors.problems import closest as closest
from speckit_memory.errors.problems import nearest as nearest
from speckit_memory.errors.problems import out_of_range as out_of_range
from speckit_memory.errors.problems import refused as refused
from speckit_memory.errors.problems import wrong_type as wrong_type
