"""A file that calls a parameter by its former name is refused, and told the present one where the name stands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.config.pipelines.renamed_parameters import RENAMED
from speckit_memory.config.yaml.reader import YamlMapping, read
from speckit_memory.engine.components import registry
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline.configuration.binding import validate_parameters
from speckit_memory.pipeline.roles.contracts import SLOT_ROLES

ENTRIES = [(component, old, new) for component, names in RENAMED.items() for old, new in names.items()]
IDS = [f"{component}.{old}" for component, old, _ in ENTRIES]


def _default(component: str, path: str) -> Any:
    entry = registry().find(component)
    assert entry is not None
    value: Any = validate_parameters(entry.params, _mapping("{}")).model_dump(mode="json", by_alias=True)
    for key in path.split("."):
        value = value[key]
    return value


def _mapping(text: str) -> YamlMapping:
    node, problems = read(text, "")
    assert isinstance(node, YamlMapping)
    assert not problems
    return node


def _nested(path: str, value: str) -> str:
    first, _, rest = path.partition(".")
    return f"{first}: {{{_nested(rest, value)}}}" if rest else f"{first}: {value}"


def _file(folder: Path, component: str, parameter: str) -> Path:
    entry = registry().find(component)
    assert entry is not None
    slot = next(slot for slot, roles in SLOT_ROLES.items() if entry.role in roles)
    steps = f"  {slot}:\n" if slot in ("understand", "channels", "recover") else ""
    top = "candidates" if steps else slot
    file = folder / "pipeline.yaml"
    file.write_text(f"{top}:\n{steps}    - use: {component}\n      {parameter}\n", encoding="utf-8")
    return file


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(("component", "old", "new"), ENTRIES, ids=IDS)
def test_a_former_name_is_refused_with_the_present_one_where_it_stands(
    tmp_path: Path, component: str, old: str, new: str
) -> None:
    file = _file(tmp_path, component, _nested(old, "1"))

    [problem] = [found for found in pipelines.check(str(file), {}) if "is now called" in found.message]

    text = file.read_text(encoding="utf-8").splitlines()
    line = next(number for number, content in enumerate(text, 1) if content.startswith("      "))
    column = text[line - 1].index("1" if "." in old else old) + 1  # inside of a mapping problems stand at the value
    assert problem.message == f"{component}: '{old}' is now called '{new}'"
    assert problem.code == "E118"
    assert problem.where is not None
    assert (problem.where.file, problem.where.line, problem.where.column) == (str(file), line, column)


@pytest.mark.requirement("P7")
@pytest.mark.parametrize(("component", "old", "new"), ENTRIES, ids=IDS)
def test_the_present_name_is_accepted(component: str, old: str, new: str) -> None:
    entry = registry().find(component)
    assert entry is not None
    text = "{" + _nested(new, "null" if (value := _default(component, new)) is None else str(value)) + "}"

    made = validate_parameters(entry.params, _mapping(text))

    assert old != new
    assert made == validate_parameters(entry.params, _mapping("{}"))


@pytest.mark.requirement("P7")
def test_a_call_that_sets_a_former_name_is_told_the_present_one() -> None:
    [problem] = pipelines.check("default", {}, {"bm25.most_terms": "8"})

    assert problem.message == "bm25: 'most_terms' is now called 'max_terms'"
    assert problem.where is not None
    assert problem.where.file == "--set bm25.most_terms"
