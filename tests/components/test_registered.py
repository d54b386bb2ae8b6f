"""The golden list of components: what a pipeline file may name, and with which parameters and defaults."""

from __future__ import annotations

import json
from difflib import unified_diff
from pathlib import Path
from typing import Any

import pytest
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from speckit_memory.engine.components import COMPONENTS
from speckit_memory.pipeline.roles.contracts import SLOT_ROLES
from speckit_memory.pipeline.roles.registry import RegisteredComponent, Registry

GOLDEN = Path(__file__).with_name("registered.json")
HOW_TO = "If the change is meant, write the list anew: python tests/components/test_registered.py"


def _default(field: FieldInfo) -> Any:
    default = field.get_default(call_default_factory=True)
    return "required" if default is PydanticUndefined else to_jsonable_python(default, by_alias=True)


def _described(entry: RegisteredComponent) -> dict[str, Any]:
    return {
        "name": entry.name,
        "role": str(entry.role),
        "slot": next(slot for slot, roles in SLOT_ROLES.items() if entry.role in roles),
        "features": list(entry.about.features),
        "parameters": {field.alias or name: _default(field) for name, field in entry.params.model_fields.items()},
    }


def registered() -> str:
    """The components of the product alone, without those of installed extensions."""
    registry = Registry()
    for role, component in COMPONENTS:
        registry.admit(role, component)
    return json.dumps([_described(entry) for entry in registry], indent=1) + "\n"


@pytest.mark.requirement("P2")
def test_the_components_are_those_of_the_golden_list() -> None:
    golden, now = GOLDEN.read_text(encoding="utf-8").splitlines(), registered().splitlines()

    difference = "\n".join(unified_diff(golden, now, GOLDEN.name, "registered now", lineterm="", n=4))

    assert not difference, f"{difference}\n{HOW_TO}"


if __name__ == "__main__":
    GOLDEN.write_text(registered(), encoding="utf-8")
