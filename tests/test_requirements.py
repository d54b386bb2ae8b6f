"""Every requirement has a test and every test a requirement, in both directions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

MANIFEST = tomllib.loads(Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8"))


@pytest.fixture
def whole_suite(request: pytest.FixtureRequest) -> None:
    if request.config.option.keyword or request.config.option.markexpr or not _whole(request.config):
        pytest.skip("only part of the suite was collected")


def _whole(config: pytest.Config) -> bool:
    root = Path(__file__).parent
    return all((config.invocation_params.dir / arg).resolve() in (root, root.parent) for arg in config.args)


@pytest.mark.usefixtures("whole_suite")
def test_every_requirement_that_is_built_has_a_test(cited: dict[str, list[str]]) -> None:
    untested = [name for name, entry in MANIFEST.items() if not entry.get("pending") and name not in cited]

    assert untested == []


def test_every_cited_requirement_is_in_the_manifest(cited: dict[str, list[str]]) -> None:
    unknown = {name: tests for name, tests in cited.items() if name not in MANIFEST}

    assert unknown == {}


def test_nothing_is_claimed_for_a_pending_requirement(cited: dict[str, list[str]]) -> None:
    premature = {name: cited[name] for name, entry in MANIFEST.items() if entry.get("pending") and name in cited}

    assert premature == {}


def test_every_entry_is_a_statement() -> None:
    assert all(
        set(entry) <= {"statement", "pending"} and entry["statement"].endswith(".") for entry in MANIFEST.values()
    )
