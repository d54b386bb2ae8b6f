"""Collects which tests prove which requirement, for tests/test_requirements.py, and makes generated examples repeat."""

from __future__ import annotations

import os

import pytest
from hypothesis import settings

# The same examples in every run: a change is judged by what it changed. `HYPOTHESIS_PROFILE=search` looks for new ones.
settings.register_profile("repeat", derandomize=True, deadline=None)
settings.register_profile("search", deadline=None, max_examples=1000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "repeat"))

CITED = pytest.StashKey[dict[str, list[str]]]()


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    cited: dict[str, list[str]] = {}
    for item in items:
        for marker in item.iter_markers("requirement"):
            for requirement in marker.args:
                cited.setdefault(requirement, []).append(item.nodeid)
    config.stash[CITED] = cited


@pytest.fixture
def cited(request: pytest.FixtureRequest) -> dict[str, list[str]]:
    """Requirement id to the ids of the collected tests that prove it."""
    return request.config.stash[CITED]
