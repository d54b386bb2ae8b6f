"""Writes what is made from declarations: the catalogue of commands, and the reference pages of components, errors,
commands and tools. `--check` only compares."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from typing import Any

import click

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import Memory
from speckit_memory.engine import components as assembly
from speckit_memory.errors.codes import CODES
from speckit_memory.pipeline.roles.contracts import SLOT_ROLES
from speckit_memory.pipeline.roles.registry import RegisteredComponent
from speckit_memory.server.commands.cli import HAND_WRITTEN, HEADINGS
from speckit_memory.server.commands.cli import ROOT as COMMAND_LINE
from speckit_memory.server.mcp_server.app import tools as app_tools
from speckit_memory.server.operations.catalogue import COMMANDS
from speckit_memory.server.operations.mcp_tools import operations_of_tools
from speckit_memory.server.operations.operation import OPERATIONS, Operation
from speckit_memory.server.replies.worker_calls import ThreadLimits
from speckit_memory.server.workspace.workspace import Workspace

ROOT = Path(__file__).parent.parent
DECLARATIONS = ROOT / "server" / "operations"
SLOT_TITLES = {
    "understand": "candidates: understand",
    "channels": "candidates: channels",
    "recover": "candidates: recover",
    "fusion": "fusion",
    "rerank": "rerank",
    "annotate": "annotate",
}


def front_matter(title: str, triggers: str) -> str:
    return f"---\ntitle: {title}\ntrigger_phrases: [{triggers}]\ncontext_type: implementation\n---\n# {title}\n"


def components() -> Iterator[str]:
    yield front_matter("Components", "list of components, component parameters, all steps")
    yield "Every step that a pipeline file may use, by its place in the file. Made from the code by `scripts/docs.py`."
    for slot, roles in SLOT_ROLES.items():
        yield f"\n## {SLOT_TITLES[slot]}"
        for entry in assembly.registry():
            if entry.role in roles:
                yield from component(entry)


def component(entry: RegisteredComponent) -> Iterator[str]:
    yield f"\n### `{entry.name}`\n\n*{entry.role}*\n"
    yield without_ids(cleandoc(entry.component.__doc__ or ""))
    schema = entry.params.model_json_schema(by_alias=True)
    if schema["properties"]:
        yield "\n| parameter | default | accepted | meaning |\n|---|---|---|---|"
        yield from parameters(schema, schema)


def without_ids(text: str) -> str:
    """A docstring without the ids of capabilities, which say something to developers alone (docs/design.md)."""
    ids = r"[A-Z]\d+(?:(?:,|\s+and)\s+[A-Z]\d+)*"
    return re.sub(rf"\s+\([Ff]eatures?\s+{ids}\)|\s+Features?\s+{ids}\.", "", text)


def parameters(
    of: dict[str, Any], schema: dict[str, Any], prefix: str = "", given: dict[str, Any] | None = None
) -> Iterator[str]:
    """A row per parameter; those of a group follow as `group.parameter`, with the defaults that the group is given."""
    for key, spec in of["properties"].items():
        known = {**spec, **({"default": given[key]} if given and key in given else {})}
        default = f"`{shown(known['default'])}`" if "default" in known else "required"
        yield f"| `{prefix}{key}` | {default} | {accepted(spec)} | {spec.get('description', '')} |"
        if "$ref" in spec:
            yield from parameters(schema["$defs"][accepted(spec)], schema, f"{prefix}{key}.", known.get("default"))


def shown(value: Any) -> str:
    if value is None:
        return "none"
    return str(value).replace("|", "\\|") or '""'


def accepted(spec: dict[str, Any]) -> str:
    if "anyOf" in spec:
        return " or ".join(accepted(option) for option in spec["anyOf"])
    if isinstance(spec.get("type"), list):
        return " or ".join(spec["type"])
    if "enum" in spec:
        return ", ".join(f"`{value}`" for value in spec["enum"])
    if "$ref" in spec:
        return str(spec["$ref"]).rsplit("/", 1)[1]
    if spec.get("type") == "array":
        return f"list of {accepted(spec.get('items', {}))}"
    low = spec.get("minimum", spec.get("exclusiveMinimum"))
    high = spec.get("maximum", spec.get("exclusiveMaximum"))
    bounds = {"minimum": "≥", "exclusiveMinimum": ">", "maximum": "≤", "exclusiveMaximum": "<"}
    limits = [f"{sign} {spec[key]}" for key, sign in bounds.items() if key in spec]
    kind = {"null": "none", "object": "mapping"}.get(spec.get("type", ""), spec.get("const") or spec.get("type", "any"))
    return f"{kind} {', '.join(limits)}".strip() if (low, high) != (None, None) else str(kind)


def errors() -> Iterator[str]:
    yield front_matter("Error codes", "error codes, exit status, what does E mean")
    yield "Exit status 2 means that the caller's input, usage or configuration is at fault; 1 that the work failed.\n"
    yield "Where *again* says yes, the same call may succeed later though nobody changed anything. An error may"
    yield "know better than its code: the object that `--json` and the tools give has `severity` and `retryable`.\n"
    yield "| code | name | category | severity | again | exit | hint | what to do |\n|---|---|---|---|---|---|---|---|"
    for code, entry in sorted(CODES.items()):
        status = 2 if entry.callers_fault else 1
        again = "yes" if entry.retryable else "no"
        actions = "; ".join(entry.actions).replace("|", "\\|")
        facts = (code, entry.name, entry.category, entry.severity, again, status, entry.hint, actions)
        yield f"| {' | '.join(map(str, facts))} |"


def declared() -> dict[str, list[Operation]]:
    """The operations of each module of `server.operations`."""
    for file in sorted(DECLARATIONS.rglob("*.py")):
        import_module(".".join(("speckit_memory", *file.relative_to(ROOT).with_suffix("").parts)))
    found: dict[str, list[Operation]] = {}
    for operation in sorted(OPERATIONS, key=lambda each: each.function.__module__):
        module = operation.function.__module__.removeprefix("speckit_memory.server.operations.")
        found.setdefault(module, []).append(operation)
    return found


def catalogue() -> Iterator[str]:
    """The commands in the order of the help: by group, first the usual and hand-written ones, the others by name."""
    operations = declared()
    entries: dict[str, list[str]] = {}
    for name, (group, module) in HAND_WRITTEN.items():
        own = import_module(f"speckit_memory.server.commands.{module}").command
        entries[name] = [f"commands.{module}", group, sentence(own.help)]
    for module, found in operations.items():
        for one in found:
            if one.command:
                entries[one.command] = [f"operations.{module}", one.group, sentence(one.help)]
    groups, given = list(HEADINGS), ["search", "index", *HAND_WRITTEN]

    def place(name: str) -> tuple[int, int, str]:
        return groups.index(entries[name][1]), given.index(name) if name in given else len(given), name

    ordered = {name: entries[name] for name in sorted(entries, key=place)}
    COMMANDS.clear()
    COMMANDS.update(ordered)  # the page of commands follows
    lines = ",\n".join(f"{json.dumps(name)}: {json.dumps(entry)}" for name, entry in ordered.items())
    of_tools = [module for module, found in operations.items() if any(one.tool for one in found)]
    of_tools.sort(key="search".__ne__)  # agents read the list from its beginning: first the tools that find
    yield f'{{"tools": {json.dumps(of_tools)}, "commands": {{\n{lines}\n}}}}'


def sentence(help_text: str | None) -> str:
    """The first sentence of a help."""
    first = " ".join((help_text or "").partition("\n\n")[0].split())
    return re.split(r"(?<=[.])\s", first)[0]


def commands() -> Iterator[str]:
    yield front_matter("Command line", "commands, options, command line help")
    yield from command(COMMAND_LINE, context(COMMAND_LINE, "speckit-memory"), 2)


def command(item: click.Command, here: click.Context, level: int) -> Iterator[str]:
    yield f"\n{'#' * level} `{here.command_path}`\n\n```text\n{item.get_help(here).strip()}\n```"
    name = here.command_path.partition(" ")[2]
    yield from (f"\nNo tool: {one.one_door}." for one in OPERATIONS if name and one.command == name and one.one_door)
    if isinstance(item, click.Group):
        for name in item.list_commands(here):
            child = item.get_command(here, name)
            if child is not None:
                yield from command(child, context(child, name, here), min(level + 1, 4))


def tools() -> Iterator[str]:
    yield front_matter("MCP tools", "tools, parameters of tools, memory_search, tool reference")
    yield "The tools of `speckit-memory serve`, with the parameters that their definitions name. Made from the"
    yield "declarations by `scripts/docs.py`. Some descriptions are shorter in the definitions that a model reads."
    workspace = Workspace(lambda _: Memory.open(), settings())
    for tool, (operation, _) in zip(app_tools(workspace, ThreadLimits()), operations_of_tools(), strict=True):
        yield f"\n## `{tool.name}`\n\n{tool.description}"
        yield f"\nCommand: `{operation.command}`." if operation.command else f"\nNo command: {operation.one_door}."
        helps = {name: option.help for name, (_, _, option) in operation.of_tool().items()}
        if properties := tool.parameters["properties"]:
            yield "\n| parameter | accepted | meaning |\n|---|---|---|"
            for name, form in properties.items():
                yield f"| `{name}` | {accepted(form)} | {helps[name]} |"


def context(item: click.Command, name: str, parent: click.Context | None = None) -> click.Context:
    """A context of fixed width, so that the page does not depend on the terminal."""
    names = COMMAND_LINE.context_settings["help_option_names"]
    return click.Context(
        item, info_name=name, parent=parent, terminal_width=100, max_content_width=100, help_option_names=names
    )


PAGES = {
    "server/operations/catalogue.json": catalogue,  # first, since the page of commands is read from it
    "docs/components.md": components,
    "docs/errors.md": errors,
    "docs/cli.md": commands,
    "docs/tools.md": tools,
}


def main() -> int:
    stale = []
    for name, page in PAGES.items():
        text = "\n".join(page()).rstrip() + "\n"
        file = ROOT / name
        if "--check" in sys.argv[1:]:
            if not file.exists() or file.read_text(encoding="utf-8") != text:
                stale.append(name)
        else:
            file.write_text(text, encoding="utf-8")
    for name in stale:
        print(f"{name} is out of date: run `python scripts/docs.py`", file=sys.stderr)
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main())
