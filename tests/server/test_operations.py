"""Every parameter of every operation is the same at both doors: accepted, refused when it is wrong, and documented."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib import import_module
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from speckit_memory.config.workspace.settings import settings, workspace_root
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError
from speckit_memory.server.calls.tool import SpeckitTool
from speckit_memory.server.operations import command_line
from speckit_memory.server.operations.catalogue import COMMANDS, TOOL_MODULES
from speckit_memory.server.operations.mcp_tools import function_of, operations_of_tools
from speckit_memory.server.operations.operation import OPERATIONS, Operation, Parameters, View, operation
from speckit_memory.server.workspace.workspace import Workspace

PAGES = workspace_root(Path(__file__).parent) / "docs"
operations_of_tools()
for module, _, _ in COMMANDS.values():
    import_module(f"speckit_memory.server.{module.partition(':')[0]}")
FIELDS = [(one, name) for one in OPERATIONS for name in one.params.model_fields]


def named(case: object) -> str:
    """The words that identify an operation, or the name of a field."""
    if not isinstance(case, Operation):
        return str(case)
    return case.command or (case.tool.name if case.tool else "")


class Received(Exception):  # noqa: N818 -- no error: it carries the parameters out of a call
    """The parameters with which an operation was called."""


@pytest.fixture
def receiving(monkeypatch: pytest.MonkeyPatch) -> None:
    """No operation runs: its parameters are raised instead."""

    def receive(_call: Any, params: Parameters) -> View:
        raise Received(params)

    monkeypatch.setattr(Operation, "function", property(lambda _: receive))


def schema_of(one: Operation, name: str) -> dict[str, Any]:
    """The schema of a field, without null for "not given"."""
    form: dict[str, Any] = one.params.model_json_schema()["properties"][name]
    options = [option for option in form.get("anyOf", [form]) if option != {"type": "null"}]
    return options[0] if len(options) == 1 else {"type": "string"}


def example(form: dict[str, Any]) -> Any:
    """A value that a schema accepts."""
    if "enum" in form:
        return form["enum"][-1]
    match form.get("type"):
        case "integer":
            return form.get("minimum", 1) + 1
        case "number":
            return 0.5
        case "boolean":
            return True
        case "array":
            items = form["items"]
            return [example(items if "type" in items else {"type": "string"})]
        case "object":
            return {"why": "a test"}
    return "x"


def typed(one: Operation, name: str, value: Any) -> list[str]:
    """The words of a command line that give a field this value."""
    option = {field: option for field, _, option in one.options()}[name]
    values = value if isinstance(value, list) else [value]
    texts = [json.dumps(each) if isinstance(each, dict) else str(each) for each in values]
    if option.argument:
        return texts
    spelling = (option.command or f"--{name.replace('_', '-')}").partition("/")[0]
    if value is True or option.flag:
        return [spelling]
    return [word for text in texts for word in (spelling, text)]


def from_command(one: Operation, values: dict[str, Any]) -> Any:
    """The parameters that a command line gives the operation. Raises SpeckitError or click's usage errors."""
    options = {field: option for field, _, option in one.options()}
    names = sorted(values, key=lambda name: not options[name].argument)
    words = [word for name in names if options[name].command is not None for word in typed(one, name, values[name])]
    command = command_line.derive_command(one)
    with pytest.raises(Received) as received, command.make_context("command", [*words]) as context:
        command.invoke(context)
    return received.value.args[0]


def from_tool(one: Operation, values: dict[str, Any]) -> Any:
    """The parameters that a call of the tool gives the operation."""
    assert one.tool
    named = {field: name for name, (field, _, _) in one.of_tool().items()}
    tool = SpeckitTool.defined(function_of(one, one.tool), read_only=True)
    given, _ = tool._values({named[name]: value for name, value in values.items() if name in named})
    with pytest.raises(Received) as received:
        tool.fn(Workspace(lambda _: pytest.fail("no store is needed"), settings()), **given)
    return received.value.args[0]


def required(one: Operation, door: str) -> dict[str, Any]:
    """Values of the parameters without which nothing can be called at a door."""
    return {
        name: example(schema_of(one, name))
        for name, field, option in one.options()
        if field.is_required() or (option.required and door == "tool")
    }


def doors(one: Operation, name: str) -> Iterator[str]:
    option = {field: option for field, _, option in one.options()}[name]
    if one.command and option.command is not None:
        yield "command"
    if one.tool and option.tool is not None:
        yield "tool"


@pytest.mark.usefixtures("receiving")
@pytest.mark.parametrize(("one", "name"), FIELDS, ids=named)
def test_a_parameter_reaches_the_operation_from_each_of_its_doors(one: Operation, name: str) -> None:
    form = schema_of(one, name)
    value = example(form)
    found = {door: {**required(one, door), name: value} for door in doors(one, name)}
    received = {
        door: getattr(from_command(one, values) if door == "command" else from_tool(one, values), name)
        for door, values in found.items()
    }

    assert set(received) == set(doors(one, name)) != set()
    for given in received.values():
        assert json.loads(json.dumps(given, default=str)) == value


def wrong(one: Operation, name: str) -> Any:
    """A value that a field refuses; None for a flag, and a text of any length."""
    form = schema_of(one, name)
    items = form.get("items", form)
    found: Any = None
    if "enum" in items:
        found = "no such word"
    elif bounds := [items[bound] for bound in ("minimum", "exclusiveMinimum") if bound in items]:
        found = bounds[0] - 1
    elif "maxLength" in items:
        found = "x" * (items["maxLength"] + 1)
    return [found] if found is not None and form.get("type") == "array" else found


@pytest.mark.usefixtures("receiving")
@pytest.mark.parametrize(("one", "name"), [case for case in FIELDS if wrong(*case) is not None], ids=named)
def test_a_wrong_value_is_refused_alike_at_each_door(one: Operation, name: str) -> None:
    takes_none = {field for field, _, option in one.options() if option.flag}
    for door in doors(one, name):
        if door == "command" and name in takes_none:
            continue
        call = from_command if door == "command" else from_tool
        with pytest.raises(SpeckitError) as refused:
            call(one, {**required(one, door), name: wrong(one, name)})
        assert {problem.code for problem in refused.value.problems} <= {"E030", "E032", "E042"}, door


@pytest.mark.parametrize(("one", "name"), FIELDS, ids=named)
def test_a_parameter_is_documented(one: Operation, name: str) -> None:
    option = {field: option for field, _, option in one.options()}[name]
    assert re.fullmatch(r"[A-Z0-9].*[.]", option.help), option.help
    if one.command and option.command is not None and not option.argument:
        page = (PAGES / "cli.md").read_text(encoding="utf-8")
        section = page.partition(f"`speckit-memory {one.command}`\n")[2].partition("\n#")[0]
        assert " ".join(option.help.removesuffix(".").split()) in " ".join(section.split())
    if one.tool and option.tool is not None:
        page = (PAGES / "tools.md").read_text(encoding="utf-8")
        assert option.help in page.partition(f"## `{one.tool.name}`\n")[2].partition("\n## ")[0]


def test_every_operation_is_in_the_catalogue_and_says_why_it_has_one_door() -> None:
    declared = {one.command for one in OPERATIONS if one.command}
    assert declared == {name for name, (module, _, _) in COMMANDS.items() if module.startswith("operations.")}
    assert {
        one.function.__module__.removeprefix("speckit_memory.server.operations.") for one in OPERATIONS if one.tool
    } == set(TOOL_MODULES)
    page = (PAGES / "tools.md").read_text(encoding="utf-8") + (PAGES / "cli.md").read_text(encoding="utf-8")
    assert [one.one_door for one in OPERATIONS if one.one_door not in page] == []


def test_an_operation_without_a_door_must_say_why() -> None:
    def run(call: Any, params: Parameters) -> View:
        raise NotImplementedError

    with pytest.raises(TypeError, match="one_door is the reason"):
        operation("daily", "something")(run)


def test_one_file_is_an_operation_at_both_doors(indexed: Path, tmp_path: Path) -> None:
    page = (PAGES.parent / "CONTRIBUTING.md").read_text(encoding="utf-8")
    [text] = re.findall(r"```python\n(.*?)```", page.partition("## Add an operation")[2], re.DOTALL)
    file = tmp_path / "titles.py"
    file.write_text(text, encoding="utf-8")
    found = len(OPERATIONS)
    spec = spec_from_file_location("titles", file)
    assert spec
    assert spec.loader
    spec.loader.exec_module(module_from_spec(spec))
    [one] = OPERATIONS[found:]
    del OPERATIONS[found:]

    assert one.tool
    told = function_of(one, one.tool)(Workspace(lambda _: Memory.open(indexed / "memory.db"), settings()), limit=3)
    arguments = ["--db", str(indexed / "memory.db"), "--limit", "3", "--json"]
    result = CliRunner().invoke(command_line.derive_command(one), arguments)

    assert (result.exit_code, json.loads(result.stdout)) == (0, told.data)
    assert told.data == {"titles": []}


def test_no_stored_text_controls_the_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    hostile = "a\x1b[31m\nb"
    rows = [{"key": hostile}]
    for heads in ((), ("memory",)):
        command_line.show(
            View(
                hostile, {"rows": rows}, {hostile: hostile}, "rows", lambda row: (row["key"],), heads, hints=(hostile,)
            )
        )

    shown = capsys.readouterr().out
    assert "\x1b" not in shown
    assert shown.count("a\\x1b[31m b") == 9
