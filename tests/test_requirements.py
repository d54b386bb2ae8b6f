"""Every requirement and every fact of it has a test, and every test cites what is written: in both directions."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest

MANIFEST = tomllib.loads(Path(__file__).with_name("requirements.toml").read_text(encoding="utf-8"))
FACTS = {f"{name}.{fact}" for name, entry in MANIFEST.items() for fact in entry.get("facts", ())}


@pytest.fixture
def whole_suite(request: pytest.FixtureRequest) -> None:
    chosen = request.config.option
    if chosen.keyword or chosen.markexpr not in ("", "proof", "not proof") or not _whole(request.config):
        pytest.skip("only part of the suite was collected")


def _whole(config: pytest.Config) -> bool:
    root = Path(__file__).parent
    return all((config.invocation_params.dir / arg).resolve() in (root, root.parent) for arg in config.args)


def _owner(cited: str) -> str:
    return cited.partition(".")[0]


@pytest.mark.usefixtures("whole_suite")
def test_every_requirement_that_is_built_has_a_test(cited: dict[str, list[str]]) -> None:
    owners = set(map(_owner, cited))

    assert [name for name, entry in MANIFEST.items() if not entry.get("pending") and name not in owners] == []


@pytest.mark.usefixtures("whole_suite")
def test_every_fact_has_a_test(cited: dict[str, list[str]]) -> None:
    assert sorted(FACTS - set(cited)) == []


def test_every_cited_requirement_and_fact_is_in_the_manifest(cited: dict[str, list[str]]) -> None:
    unknown = {name: tests for name, tests in cited.items() if name not in MANIFEST and name not in FACTS}

    assert unknown == {}


def test_nothing_is_claimed_for_a_pending_requirement(cited: dict[str, list[str]]) -> None:
    premature = {name: tests for name, tests in cited.items() if MANIFEST.get(_owner(name), {}).get("pending")}

    assert premature == {}


def test_every_entry_is_a_statement_and_has_facts_unless_it_is_pending() -> None:
    for name, entry in MANIFEST.items():
        assert set(entry) <= {"statement", "pending", "facts"}, name
        assert entry["statement"].endswith("."), name
        assert bool(entry.get("facts")) is not entry.get("pending", False), name
        assert len(set(entry.get("facts", {}).values())) == len(entry.get("facts", {})), name
