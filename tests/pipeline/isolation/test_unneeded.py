"""Who isolates nothing pays nothing."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.usefixtures("processes")
def test_the_engine_imports_nothing_of_isolation_unless_it_is_asked_to_isolate() -> None:
    code = (
        "import sys; from speckit_memory.engine import components, Memory; components.registry({}).names(); "
        "print([name for name in sys.modules if name.startswith('speckit_memory.pipeline.isolation')])"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"
