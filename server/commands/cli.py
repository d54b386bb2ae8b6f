"""The command line. A command's module is imported when it is called."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import TYPE_CHECKING, Any

import click

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.server.console import completion, failures, standard_streams, terminal
from speckit_memory.server.operations.catalogue import COMMANDS

if TYPE_CHECKING:
    from speckit_memory.server.operations.operation import Group

HAND_WRITTEN: dict[str, tuple[Group, str]] = {
    "help": ("daily", "help"),
    "init": ("set-up", "init"),
    "serve": ("set-up", "serve"),
    "demo": ("set-up", "demo"),
}
"""The group and the module in `server.commands` of the commands that are no operations."""
GROUPS = {
    "links": "Causal links between memories: add, remove, history, undo, review.",
    "learned": "Learned trigger phrases and judgements: list, forget, show, undo.",
    "task": "Record the knowledge before and after a task, and show what tasks taught.",
    "graph": "The causal graph: show its density, link memories that share names, remove those links.",
    "checkpoint": "Checkpoints of the store: create, list, restore, delete.",
    "store": "Whole stores: copy to another place, verify that two answer alike.",
    "model": "Embedding models: list, download, switch, go back.",
    "pipeline": "Check, show, plan, compare, tune and calibrate pipelines.",
    "shadow": "Results of shadow pipelines, which run alongside the served one.",
    "flags": "States of the feature flags: list, audit, promote, demote.",
    "eval": "Measure pipelines on a dataset, and create datasets.",
}


HEADINGS: dict[str, str] = {
    "daily": "Daily work",
    "set-up": "Set-up",
    "tuning": "Tuning",
    "administration": "Administration",
}
"""The headings of the groups in the help of the whole command line, in their order."""


class LazyGroup(click.Group):
    """The commands that begin with the same words. Their modules are imported when one of them is called."""

    def __init__(self, words: str, **settings: Any) -> None:
        """`words` begin every command of the group; "" for all commands."""
        super().__init__(**settings)
        self._words = words

    @property
    def _table(self) -> dict[str, list[str]]:
        """The entries of the catalogue by the next word."""
        begin = f"{self._words} ".lstrip()
        inside = {command: entry for command, entry in COMMANDS.items() if command.startswith(begin)}
        return {command.removeprefix(begin).split()[0]: entry for command, entry in inside.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """The names in the order of the catalogue."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        """Imports the module of a command, or builds a group; None for an unknown name."""
        entry = self._table.get(cmd_name)
        if entry is None:
            return None
        if not self._words and cmd_name in GROUPS:
            return LazyGroup(cmd_name, name=cmd_name, help=GROUPS[cmd_name])
        module = entry[0]
        if module.startswith("commands."):
            command: click.Command = import_module(f"speckit_memory.server.{module}").command
            return command
        from speckit_memory.server.operations.command_line import load_command

        return load_command(f"{self._words} {cmd_name}".lstrip(), module)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 -- click's signature
        """Writes the commands with one sentence each; those of the whole command line under their headings."""
        sections: dict[str, list[tuple[str, str]]] = {}
        for name, (_, group, sentence) in self._table.items():
            told = sentence if self._words else GROUPS.get(name, sentence)
            sections.setdefault("Commands" if self._words else HEADINGS[group], []).append((name, told))
        widest = max(len(name) for rows in sections.values() for name, _ in rows)
        for heading, rows in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(widest), told) for name, told in rows])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, with the nearest name offered for an unknown one."""
        if args and not args[0].startswith("-") and args[0] not in self._table:
            raise click.UsageError(f"no command '{args[0]}'; {nearest(args[0], self._table)}", ctx)
        return super().resolve_command(ctx, args)


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"speckit-memory {version('speckit-memory')}")
        context.exit()


ROOT = LazyGroup(
    "",
    name="speckit-memory",
    help="Local-first project memory for coding agents: index documents, search them, see why, measure it.",
    params=[
        click.Option(
            ["--version", "-V"],
            is_flag=True,
            expose_value=False,
            is_eager=True,
            callback=_print_version,
            help="Show the version and exit.",
        )
    ],
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)


def run(arguments: Sequence[str]) -> int:
    """Runs one command. Returns 0 done, 1 the work failed, 2 bad usage, configuration or input, 130 interrupted."""
    with click.Context(ROOT, color=terminal.colour()):  # failures are shown outside the command's own context
        options = arguments[: arguments.index("--")] if "--" in arguments else arguments
        as_json = "--json" in options
        one_document = as_json and not {"-h", "--help"}.intersection(options)
        with standard_streams.kept_for_documents() if one_document else nullcontext():
            return _run(arguments, as_json)


def _run(arguments: Sequence[str], as_json: bool) -> int:
    try:
        try:
            if instruction := os.environ.get(completion.VARIABLE):
                return completion.complete(ROOT, instruction)
            # not `main`, which handles interrupts and closed pipes differently
            with ROOT.make_context("speckit-memory", list(arguments), color=terminal.colour()) as context:
                status = ROOT.invoke(context)
        except click.exceptions.Exit as finished:
            status = finished.exit_code
        except SpeckitError as error:
            status = failures.report_interrupt() if failures.by_interrupt(error) else failures.show(error, as_json)
        except click.exceptions.NoArgsIsHelpError as asked:
            click.echo(asked.format_message(), err=True)
            status = asked.exit_code
        except click.UsageError as error:
            status = failures.show(failures.usage(error), as_json)
        except click.ClickException as error:
            status = failures.show(SpeckitError("E200", error.format_message()), as_json)
        except (click.Abort, KeyboardInterrupt):
            status = failures.report_interrupt()
        except OSError as error:
            if unwritable := standard_streams.output_error():
                raise unwritable from None
            status = failures.show(failures.of_system(error), as_json)
        except BaseException as error:  # the one boundary: neither tracebacks nor exits reach the user
            status = failures.show(failures.internal(error), as_json)
    except OSError as error:
        return failures.unwritable(error)
    if unwritten := standard_streams.output_error():
        return failures.unwritable(unwritten)
    return int(status or 0)
