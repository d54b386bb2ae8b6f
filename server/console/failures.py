"""Shows failures on the command line: as text on standard error, or as one JSON document."""

from __future__ import annotations

import errno
import os
import re
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.config.workspace.settings import DEBUG_VARIABLE
from speckit_memory.errors import Problem, SpeckitError, closest
from speckit_memory.errors.codes import CODES
from speckit_memory.errors.echo import abridge
from speckit_memory.server.console import standard_streams, terminal
from speckit_memory.server.console.fitting_actions import for_console
from speckit_memory.server.console.output import MAX_WIDTH, print_json, printable, wrap_text
from speckit_memory.server.console.terminal import cells

LEAST_ROOM = 60
"""Minimum width of the terminal in columns; a shorter part of the line would not help."""
GAP = " | "


def pointed_line(problem: Problem, room: int | None) -> list[str]:
    """Returns the line and the mark, cut to `room` columns; [] unless the problem has a place in a readable settings
    file.

    Lines of documents are never shown, since the problem may be a secret in them.
    """
    where = problem.where
    narrow = room is not None and room < LEAST_ROOM
    if narrow or where is None or where.path is not None or CODES[problem.code].category != "configuration":
        return []
    try:
        line = read_text(Path(where.file)).split("\n")[where.line - 1].expandtabs(1)
    except (OSError, ValueError, IndexError):
        return []
    if not line.strip():
        return []
    number = f"{where.line:>5}"
    size = min(room or MAX_WIDTH, MAX_WIDTH) - len(number) - len(GAP) - 2
    column = min(where.column - 1, len(line))
    # a window of `size` characters around the column, within the line
    start = max(min(column - size // 2, len(line) - size), 0)
    ahead, shown = printable(line[start:column]), printable(line[start : start + size])
    cut = "…" if start else "", "…" if start + size < len(line) else ""
    mark = " " * (cells(ahead) + len(cut[0])) + "^"
    return [number + GAP + cut[0] + shown + cut[1], " " * len(number) + GAP + mark]


DEBUG = DEBUG_VARIABLE
CLOSED_PIPE = 141
INTERRUPTED = 130
SHOWN_PROBLEMS = 100
"""Problems shown; the rest are only counted."""
SOURCES = ("--dataset", "--experiment", "--own", "--from-use")
"""Options that select the data of a command; which of them are accepted differs by command."""
_QUOTED = re.compile(r"'(.*?)' is not one of")
LONGEST_TRACEBACK = 50_000
"""Characters of a traceback that are kept, from its end."""


def show(error: SpeckitError, as_json: bool) -> int:
    """Prints every problem of an error; returns the exit status."""
    error = for_console(error)
    if as_json:
        print_json(error.as_json())
    else:
        show_problems(error.problems, sys.stderr)
    return error.exit_status


def show_problems(
    problems: Sequence[Problem], stream: TextIO, label: str = "error", rest: str = "more problems"
) -> None:
    """Prints up to `SHOWN_PROBLEMS` problems and counts the rest.

    Hints and steps that problems share are printed once, below the last of them.

    Args:
        problems: The problems.
        stream: Where they are printed.
        label: Their severity, for problems without a place.
        rest: What is said after the number of those that are left out.
    """
    shown = problems[:SHOWN_PROBLEMS]
    # maps each hint, and each list of steps, to the last problem that has it
    hints = {(problem.code, problem.hint): place for place, problem in enumerate(shown)}
    steps = {(problem.code, problem.actions): place for place, problem in enumerate(shown)}
    for place, problem in enumerate(shown):
        hinted = hints[problem.code, problem.hint] == place
        advised = steps[problem.code, problem.actions] == place
        click.echo(lines(problem, label, stream, hinted=hinted, advised=advised), file=stream)
    if further := problems[SHOWN_PROBLEMS:]:
        click.echo(wrap_text(f"… and {len(further):,} {rest}", stream=stream), file=stream)


def lines(
    problem: Problem, label: str = "error", stream: TextIO | None = None, *, hinted: bool = True, advised: bool = True
) -> str:
    """Renders a problem: message and place, the line of the file, the hint, the next steps.

    Args:
        problem: The problem.
        label: Its severity, for a problem without a place.
        stream: The terminal whose width is used; standard error by default.
        hinted: Whether to include the hint.
        advised: Whether to include the next steps. They are never wrapped, so that they can be copied.
    """

    stream = stream or sys.stderr
    code = click.style(problem.code, fg="red", bold=True)
    start = f"{printable(str(problem.where))}: {code} " if problem.where else f"{label} {code}: "
    head = wrap_text(problem.message, "  ", start, stream)
    hint = [wrap_text(problem.hint, "        ", "  hint: ", stream)] if hinted else []
    actions = [f"  try:  {printable(action)}" for action in problem.actions] if advised else []
    return "\n".join([head, *pointed_line(problem, terminal.columns(stream)), *hint, *actions])


def unwritable(error: OSError) -> int:
    """Reports that standard output cannot be written; returns the exit status. A closed pipe is not reported."""
    standard_streams.output_error()
    if isinstance(error, BrokenPipeError):
        return CLOSED_PIPE
    return show(SpeckitError("E201", f"standard output cannot be written: {error.strerror or error}"), as_json=False)


def report_interrupt() -> int:
    """Reports that the user interrupted the command; returns the exit status."""
    click.echo("interrupted", err=True)
    return INTERRUPTED


def by_interrupt(error: BaseException) -> bool:
    """Whether an error was raised while cleaning up after an interrupt."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def internal(error: BaseException) -> SpeckitError:
    """The E199 for a defect of ours. The traceback goes to standard error, only if SPECKIT_DEBUG is set.

    Only the type of the error is used: its text may be content, may be long, and rendering it may fail.
    """
    what = f"an unexpected {abridge(type(error).__name__)}"
    if not os.environ.get(DEBUG):
        return SpeckitError("E199", what, actions=(f"set {DEBUG}=1 and run it again",))
    try:
        click.echo(abridge("".join(traceback.format_exception(error)), LONGEST_TRACEBACK), err=True)
    except Exception:  # the error cannot be rendered, or standard error is closed
        return SpeckitError("E199", what, hint="Its traceback cannot be shown.")
    return SpeckitError("E199", what, hint="The traceback is above.")


def of_system(error: OSError) -> SpeckitError:
    """E014 for a name that the system rejects as a path, else an internal error."""
    if error.errno not in (errno.ENAMETOOLONG, errno.ELOOP):
        return internal(error)
    return SpeckitError("E014", f"'{abridge(str(error.filename))}' cannot be a path: {error.strerror}")


def usage(error: click.UsageError) -> SpeckitError:
    """Converts a usage error to E200 with a pointer to the command's help."""
    command = error.ctx.command_path if error.ctx is not None else "speckit-memory"
    actions = [f"see `{command} --help`"]
    if isinstance(error, click.NoSuchOption) and error.ctx and any(p.name == "query" for p in error.ctx.command.params):
        actions.append(f"put -- before a query with a word that begins with a dash: `{command} -- -word`")
    message = error.format_message()
    if isinstance(error, click.NoSuchOption) and error.ctx:
        taken = [name for param in error.ctx.command.params for name in param.opts]
        sources = [name for name in taken if name in SOURCES]
        message = f"No such option '{error.option_name}'"
        # names are compared without their dashes, which would make short ones alike
        bare = {name.lstrip("-"): name for name in sorted(taken)}
        if error.option_name in SOURCES and sources:  # a merely similar name would mislead
            message += f"; {error.ctx.info_name} takes {' or '.join(sources)}."
        elif meant := closest(error.option_name.lstrip("-"), bare):
            message += f"; {_spelt(bare[meant], command)}"
    if isinstance(error, click.BadParameter) and error.param and isinstance(error.param.type, click.Choice):
        value = _QUOTED.search(error.message)
        if value and (meant := closest(value[1].lower(), error.param.type.choices)):
            message += f" Did you mean '{meant}'?"
    return SpeckitError("E200", message, actions=actions)


def _spelt(name: str, command: str) -> str:
    """Offers an option by its name, or an argument with its position, since it has no option name."""
    return f"did you mean '{name}'?" if name.startswith("-") else f"{name.upper()} has none: `{command} {name.upper()}`"
