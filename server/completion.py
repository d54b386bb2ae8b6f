"""Completion in the shell: click's own, and the values that only we know."""

from __future__ import annotations

import os
from collections.abc import Iterator

import click
from click.shell_completion import CompletionItem, get_completion_class, shell_complete

from config.errors import SpeckitError
from server.invocation import PROGRAM

VARIABLE = "_SPECKIT_MEMORY_COMPLETE"
"""Set by the shell's function to `bash_complete`, by people to `bash_source`; zsh and fish likewise."""
SHELLS = ("bash", "zsh", "fish")


def complete(root: click.Command, instruction: str) -> int:
    """Answers one instruction of a shell; returns the exit status. Raises SpeckitError (E200) for an unknown one."""
    shell, _, wanted = instruction.partition("_")
    if get_completion_class(shell) is None or wanted not in ("source", "complete"):
        accepted = ", ".join(f"{shell}_source" for shell in SHELLS)
        raise SpeckitError("E200", f"{VARIABLE} is '{instruction}', accepted: {accepted}")
    return shell_complete(root, {}, PROGRAM, VARIABLE, instruction)


def pipelines(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """The shipped pipelines, and files. Files come first: bash forgets what stands before them."""
    from config.sources import presets

    return [CompletionItem(begun, type="file"), *_beginning(begun, dict.fromkeys(presets(), "shipped pipeline"))]


def files(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Files and folders."""
    return [CompletionItem(begun, type="file")]


def settings(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """STEP.PARAM=VALUE for every plain value of the pipeline that the line names, with the value it has."""
    from engine.pipelines import plain_values

    try:
        values = plain_values(_named(context), os.environ)
    except SpeckitError:
        return []
    return list(_beginning(begun, {f"{name}={value}": "" for name, value in values.items()}))


def tunables(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """STEP.PARAM for every parameter that may be tuned."""
    from engine.assembly import registry
    from evaluation.tunable import tunable
    from pipeline.builder import examine

    try:
        checked = examine(_named(context), registry(), os.environ)
        found = tunable(() if checked.problems else checked.bound)
    except SpeckitError:
        return []
    return list(_beginning(begun, {one.name: f"{one.low:g} to {one.high:g}, now {one.start:g}" for one in found}))


def _named(context: click.Context) -> str:
    from config.settings import settings as in_force

    return in_force(pipeline=context.params.get("pipeline") or context.params.get("source")).pipeline


def _beginning(begun: str, known: dict[str, str]) -> Iterator[CompletionItem]:
    return (CompletionItem(name, help=text or None) for name, text in known.items() if name.startswith(begun))
