"""The command line. Each command is a separate module, imported when it is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from importlib import import_module
from typing import Any

import click

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.server.console import completion, failures, standard_streams, terminal

COMMANDS: dict[str, str | dict[str, str]] = {
    "demo": "demo",
    "init": "init",
    "index": "index",
    "search": "search",
    "match": "match",
    "list": "list",
    "show": "show",
    "save": "save",
    "update": "update",
    "validate": "validate",
    "delete": "delete",
    "undelete": "undelete",
    "export": "export",
    "import": "import_memories",
    "serve": "serve",
    "doctor": "doctor",
    "maintain": "maintain",
    "stats": "stats",
    "unarchive": "unarchive",
    "lineage": "lineage",
    "help": "help",
    "links": {
        "add": "links_add",
        "remove": "links_remove",
        "history": "links_history",
        "undo": "links_undo",
        "review": "links_review",
    },
    "learned": {
        "list": "learned_list",
        "forget": "learned_forget",
        "judgements": "learned_judgements",
        "undo": "learned_undo",
    },
    "task": {"preflight": "task_preflight", "postflight": "task_postflight", "history": "task_history"},
    "graph": {"show": "graph_show", "link": "graph_link", "remove": "graph_remove"},
    "checkpoint": {
        "create": "checkpoint_create",
        "list": "checkpoint_list",
        "restore": "checkpoint_restore",
        "delete": "checkpoint_delete",
    },
    "model": {"list": "model_list", "pull": "model_pull", "use": "model_use"},
    "pipeline": {
        "check": "pipeline_check",
        "show": "pipeline_show",
        "plan": "pipeline_plan",
        "diff": "pipeline_diff",
        "schema": "pipeline_schema",
        "tune": "pipeline_tune",
        "calibrate": "pipeline_calibrate",
    },
    "shadow": {"report": "shadow_report"},
    "flags": {
        "list": "flags_list",
        "audit": "flags_audit",
        "promote": "flags_promote",
        "demote": "flags_demote",
    },
    "eval": {
        "run": "eval_run",
        "compare": "eval_compare",
        "gate": "eval_gate",
        "baseline": "eval_baseline",
        "sensitivity": "eval_sensitivity",
        "judge": "eval_judge",
        "replay": "eval_replay",
        "scorings": "eval_scorings",
        "history": "eval_history",
        "ablate": "eval_ablate",
        "tokens": "eval_tokens",
        "make-queries": "eval_make_queries",
    },
}
GROUPS = {
    "links": "Causal links between memories: add, remove, history, undo, review.",
    "learned": "Learned trigger phrases and judgements: list, forget, show, undo.",
    "task": "Record the knowledge before and after a task, and show what tasks taught.",
    "graph": "The causal graph: show its density, link memories that share names, remove those links.",
    "checkpoint": "Checkpoints of the store: create, list, restore, delete.",
    "model": "Embedding models: list, download, switch, go back.",
    "pipeline": "Check, show, plan, compare, tune and calibrate pipelines.",
    "shadow": "Results of shadow pipelines, which run alongside the served one.",
    "flags": "States of the feature flags: list, audit, promote, demote.",
    "eval": "Measure pipelines on a dataset, and create datasets.",
}


class LazyGroup(click.Group):
    """A group whose commands are modules of `server.commands`, imported on demand."""

    def __init__(self, table: Mapping[str, str | dict[str, str]], **settings: Any) -> None:
        super().__init__(**settings)
        self.table = table

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 -- click's signature
        """The names in the order of the table: commands for newcomers first."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002 -- click's signature
        """Imports the module of a command, or builds a group; None for an unknown name."""
        entry = self.table.get(cmd_name)
        if entry is None:
            return None
        if isinstance(entry, dict):
            return LazyGroup(entry, name=cmd_name, help=GROUPS[cmd_name])
        command: click.Command = import_module(f"speckit_memory.server.commands.{entry}").command
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, with the nearest name offered for an unknown one."""
        if args and not args[0].startswith("-") and args[0] not in self.table:
            raise click.UsageError(f"no command '{args[0]}'; {nearest(args[0], self.table)}", ctx)
        return super().resolve_command(ctx, args)


def _print_version(context: click.Context, _parameter: click.Parameter, wanted: bool) -> None:
    if wanted and not context.resilient_parsing:
        from importlib.metadata import version

        click.echo(f"speckit-memory {version('speckit-memory')}")
        context.exit()


ROOT = LazyGroup(
    COMMANDS,
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
