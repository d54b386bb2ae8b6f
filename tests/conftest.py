"""Collects which tests prove which requirement, for tests/test_requirements.py."""

from __future__ import annotations

import pytest

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
