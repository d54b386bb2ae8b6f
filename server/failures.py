"""How a failure is shown at the command line: for a reader on standard error, or as one JSON document."""

from __future__ import annotations

import os
import traceback

import click

from config.errors import Problem, SpeckitError
from server.output import print_json, printable

DEBUG = "SPECKIT_DEBUG"
CLOSED_PIPE = 141
INTERRUPTED = 130


def show(error: SpeckitError, as_json: bool) -> int:
    """Prints every problem of an error; returns the exit status."""
    if as_json:
        print_json(error.as_json())
    else:
        for problem in error.problems:
            click.echo(lines(problem), err=True)
    return error.exit_status


def lines(problem: Problem, label: str = "error") -> str:
    """A problem in as many lines as it needs: what and where, the hint, the next steps. `label` says how bad it is."""
    code = click.style(problem.code, fg="red", bold=True)
    message = printable(problem.message)
    head = f"{printable(str(problem.where))}: {code} {message}" if problem.where else f"{label} {code}: {message}"
    hint, actions = printable(problem.hint), map(printable, problem.actions)
    return "\n".join([head, f"  hint: {hint}", *(f"  try:  {action}" for action in actions)])


def interrupted() -> int:
    """Says that the user ended the command; returns the exit status."""
    click.echo("interrupted", err=True)
    return INTERRUPTED


def by_interrupt(error: BaseException) -> bool:
    """True for an error that only came up while an interrupt was clearing away what it had left unfinished."""
    cause: BaseException | None = error
    while cause is not None and not isinstance(cause, KeyboardInterrupt):
        cause = cause.__cause__ or cause.__context__
    return cause is not None


def internal(error: Exception) -> SpeckitError:
    """The E199 for a defect of ours. The traceback goes to standard error, and only when SPECKIT_DEBUG is set."""
    if os.environ.get(DEBUG):
        click.echo("".join(traceback.format_exception(error)), err=True)
        return SpeckitError("E199", f"an unexpected {type(error).__name__}", hint="The traceback is above.")
    return SpeckitError("E199", f"an unexpected {type(error).__name__}", actions=(f"set {DEBUG}=1 and run it again",))


def usage(error: click.UsageError) -> SpeckitError:
    """Wrong usage as an error with code E200 that points to the help of the command in question."""
    command = error.ctx.command_path if error.ctx is not None else "speckit-memory"
    actions = [f"see `{command} --help`"]
    if isinstance(error, click.NoSuchOption):
        actions.append("put -- before a query or a name that begins with a dash")
    return SpeckitError("E200", error.format_message(), actions=tuple(actions))
