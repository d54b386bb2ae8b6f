"""Adapts advice in errors to its reader: no MCP tools on the command line; over MCP no commands and no tools outside
the profile.

The table of errors has steps for both (feature T26).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace

from speckit_memory.errors import Problem, SpeckitError

TOOL = re.compile(r"\b(?:memory|checkpoint|task)_[a-z]+(?:_[a-z]+)*\b")
"""Matches a tool name in a step."""
COMMAND = re.compile(r"`speckit-memory ([^`]*)`")
_CONSOLE = re.compile(r"\bspeckit-memory [a-z]|(?<![\w-])--[a-z]")
"""Matches text that only makes sense on a command line."""
_BY_USER = re.compile(r"\buser\b")
_DONE_BY = {
    "doctor": "memory_health",
    "index": "memory_index_scan",
    "index PATH": "memory_index_scan",
    "list": "memory_list",
    "stats": "memory_stats",
    "search": "memory_search",
    "lineage": "memory_drift_why",
    "checkpoint list": "checkpoint_list",
}
"""The tools equivalent to commands."""

Offers = Callable[[str], bool]


def for_client(error: SpeckitError, offers: Offers) -> SpeckitError:
    """Adapts an error for MCP: drops steps that need a command line or a tool that is not offered.

    A command is replaced by the equivalent tool. If no other step remains, the step asks the user to run the command.
    """
    return _with_each(error, lambda problem: _for_client(problem, offers))


def advice_for_client(text: str, offers: Offers) -> str:
    """Replaces commands in a sentence by equivalent tools; other commands are attributed to the user."""
    return _by_tool(text, offers, "" if _BY_USER.search(text) else "the user's command ")


def for_console(error: SpeckitError) -> SpeckitError:
    """Adapts an error for the command line: drops steps that need a tool, if another step remains."""
    return _with_each(error, lambda problem: _with(problem, lambda action: not TOOL.search(action)))


def _for_client(problem: Problem, offers: Offers) -> Problem:
    actions = tuple(dict.fromkeys(_by_tool(action, offers) for action in problem.actions))
    told = replace(problem, hint=advice_for_client(problem.hint, offers), actions=actions)
    told = _with(told, lambda action: all(map(offers, TOOL.findall(action))))
    told = _with(told, lambda action: not _CONSOLE.search(action) or bool(_BY_USER.search(action)))
    return replace(told, actions=tuple(_asked_of_user(action) for action in told.actions))


def _by_tool(text: str, offers: Offers, before: str = "") -> str:
    """Replaces commands by equivalent tools, and puts `before` in front of other commands."""

    def told(command: re.Match[str]) -> str:
        tool = _DONE_BY.get(command[1], "")
        return f"`{tool}`" if tool and offers(tool) else before + command[0]

    return COMMAND.sub(told, text)


def _asked_of_user(action: str) -> str:
    if not _CONSOLE.search(action) or _BY_USER.search(action):
        return action
    if action.startswith("speckit-memory "):
        return f"ask the user to run `{action}`"
    return f"the user's command {action}" if action.startswith("`") else f"ask the user to {action}"


def _with_each(error: SpeckitError, fitting: Callable[[Problem], Problem]) -> SpeckitError:
    problems = [fitting(problem) for problem in error.problems]
    return error if problems == list(error.problems) else SpeckitError.of(problems)


def _with(problem: Problem, possible: Callable[[str], bool]) -> Problem:
    left = tuple(filter(possible, problem.actions))
    return replace(problem, actions=left) if left else problem
