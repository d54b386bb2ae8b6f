"""A row has one state, by the thresholds of the pipeline that answers, whether or not its step came to say it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.memory.store.writing.writer import set_attribute
from speckit_memory.stages.annotate.state_filter import StateFilter

NOW = 1_800_000_000.0
DAY = 86_400.0
THRESHOLDS = {"state_filter.hot": "0.41", "state_filter.warm": "0.4", "state_filter.idle_days": "1000"}


def states(root: Path, pipeline: str = "default", overrides: dict[str, str] | None = None) -> dict[str, str]:
    with Memory.open(root / "m.db", pipeline, root=root, environ={}, overrides=overrides) as memory:
        if not memory.inventory.stats().memories:
            memory.index([root])
            ids = {key: memory.get(key).id for key in ("fresh.md", "aged.md", "old.md")}
            with memory.session.database.write() as txn:
                for event in ("last_accessed", "last_review"):
                    ages = {"fresh.md": 1.0, "aged.md": 20.0, "old.md": 200.0}
                    set_attribute(txn, event, {ids[key]: NOW - age * DAY for key, age in ages.items()})
                set_attribute(txn, "stability", dict.fromkeys(ids.values(), 1.0))
                txn.connection.execute("UPDATE memories SET created_at = ?", (NOW - 300 * DAY,))
        return {row.key: row.state for row in memory.search("lighthouse", now=NOW).results}


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for name in ("fresh", "aged", "old"):
        (tmp_path / f"{name}.md").write_text(f"# {name}\n\nThe lighthouse is {name}.\n", encoding="utf-8")
    return tmp_path


@pytest.mark.requirement("M3")
def test_a_step_that_fails_leaves_its_thresholds_in_force(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    by_default, configured = states(root), states(root, overrides=THRESHOLDS)
    assert by_default == {"fresh.md": "HOT", "aged.md": "WARM", "old.md": "ARCHIVED"}
    assert configured == {"fresh.md": "HOT", "aged.md": "HOT", "old.md": "COLD"}

    def fails(*_: Any) -> Any:
        raise OSError("disk")

    monkeypatch.setattr(StateFilter, "annotate", fails)
    assert states(root, overrides=THRESHOLDS) == configured


def test_without_a_step_for_states_the_catalogue_s_thresholds_hold(root: Path) -> None:
    states(root)
    assert states(root, "bm25") == {"fresh.md": "HOT", "aged.md": "WARM", "old.md": "ARCHIVED"}


def test_a_step_that_cannot_tell_states_at_all_leaves_them_unknown(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: Any) -> Any:
        raise OSError("disk")

    monkeypatch.setattr(StateFilter, "annotate", fails)
    monkeypatch.setattr(StateFilter, "states", fails)
    assert set(states(root).values()) == {"UNKNOWN"}
