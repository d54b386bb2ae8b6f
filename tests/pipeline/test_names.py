"""What `speckit_memory.pipeline` offers to extensions, and that asking for the package asks for nothing else."""

from __future__ import annotations

import subprocess
import sys
from importlib import import_module

import pytest

from speckit_memory import pipeline

FRAME = (
    "speckit_memory.pipeline.roles.contracts",
    "speckit_memory.pipeline.model.columns",
    "speckit_memory.pipeline.roles.registry",
)


@pytest.mark.parametrize("name", pipeline.__all__)
def test_every_name_for_extensions_is_there_and_is_the_one_of_its_module(name: str) -> None:
    offered = getattr(pipeline, name)

    assert name in dir(pipeline)
    if name not in ("Column", "Ids"):  # names of array types, which are no classes
        assert getattr(import_module(offered.__module__), name) is offered


def test_other_names_are_refused_as_any_module_refuses_them() -> None:
    with pytest.raises(AttributeError, match=r"module 'speckit_memory\.pipeline' has no attribute 'Rankings'"):
        _ = pipeline.Rankings


@pytest.mark.parametrize("module", ["speckit_memory.pipeline", "speckit_memory.pipeline.ports"])
@pytest.mark.usefixtures("processes")
def test_importing_the_package_or_its_ports_imports_no_frame(module: str) -> None:
    code = f"import sys, {module}; print([name for name in {FRAME!r} if name in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert done.stdout == "[]\n"
