"""Next steps that can be taken where an error is read: no tool at the command line, and none that a profile leaves out.

The table of errors names a step for each door; who reads it stands at one of them (feature T26).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from speckit_memory.errors import Problem, SpeckitError

TOOL = re.compile(r"\b(?:memory|checkpoint|task)_[a-z]+(?:_[a-z]+)*\b")
"""A tool of the server as steps name it."""


def for_client(error: SpeckitError, offers: Callable[[str], bool]) -> SpeckitError:
    """The error without steps that need a tool which is not offered, wherever another step is left."""
    return _with(error, lambda action: all(map(offers, TOOL.findall(action))))


def for_console(error: SpeckitError) -> SpeckitError:
    """The error without steps that need a tool of the server, wherever another step is left."""
    return _with(error, lambda action: not TOOL.search(action))


def _with(error: SpeckitError, possible: Callable[[str], bool]) -> SpeckitError:
    problems = [_fitting(problem, possible) for problem in error.problems]
    return error if problems == list(error.problems) else SpeckitError.of(problems)


def _fitting(problem: Problem, possible: Callable[[str], bool]) -> Problem:
    left = tuple(filter(possible, problem.actions))
    return replace(problem, actions=left) if left else problem
