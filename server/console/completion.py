"""Shell completion: click's own, plus pipelines and parameters."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem


PROGRAM = "speckit-memory"


VARIABLE = "_SPECKIT_MEMORY_COMPLETE"
"""Set to `bash_complete` by the shell function, to `bash_source` by the user; likewise for zsh and fish."""
SHELLS = ("bash", "zsh", "fish")


def complete(root: click.Command, instruction: str) -> int:
    """Answers one completion instruction; returns the exit status. Raises SpeckitError (E200) for an unknown one."""
    from click.shell_completion import get_completion_class, shell_complete

    shell, _, wanted = instruction.partition("_")
    if get_completion_class(shell) is None or wanted not in ("source", "complete"):
        accepted = ", ".join(f"{shell}_source" for shell in SHELLS)
        raise SpeckitError("E200", f"{VARIABLE} is '{instruction}', accepted: {accepted}")
    return shell_complete(root, {}, PROGRAM, VARIABLE, instruction)


def pipelines(context: click.Context, parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Files and the shipped pipelines. Files come first: bash drops the items before them."""
    from speckit_memory.config.pipelines.sources import presets

    return [*files(context, parameter, begun), *_beginning(begun, dict.fromkeys(presets(), "shipped pipeline"))]


def files(_context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """Files and folders."""
    from click.shell_completion import CompletionItem

    # the shell itself completes file names for items of this type
    return [CompletionItem(begun, type="file")]


def settings(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """STEP.PARAM=VALUE for every plain value of the pipeline on the command line, with its present value."""
    from speckit_memory.engine.pipelines.pipelines import plain_values

    try:
        values = plain_values(_in_force(context.params.get("pipeline")), os.environ)
    except SpeckitError:
        return []
    return _beginning(begun, {f"{name}={value}": "" for name, value in values.items()})


def tunables(context: click.Context, _parameter: click.Parameter, begun: str) -> list[CompletionItem]:
    """STEP.PARAM for every tunable parameter of the pipeline on the command line."""
    from speckit_memory.engine.components import registry
    from speckit_memory.evaluation.running.tunable import tunable
    from speckit_memory.pipeline.configuration.builder import examine

    # click stops parsing a line that ends in an option without its value and leaves the arguments here
    named = context.params.get("source") or next(iter(context.args), None)
    try:
        checked = examine(_in_force(named), registry(), os.environ)
        found = tunable(() if checked.problems else checked.bound)
    except SpeckitError:
        return []
    return _beginning(begun, {one.name: f"{one.low:g} to {one.high:g}, now {one.start:g}" for one in found})


def _in_force(pipeline: str | None) -> str:
    from speckit_memory.config.workspace.settings import settings as decided

    return decided(pipeline=pipeline).pipeline


def _beginning(begun: str, known: dict[str, str]) -> list[CompletionItem]:
    from click.shell_completion import CompletionItem

    return [CompletionItem(name, help=text or None) for name, text in known.items() if name.startswith(begun)]
