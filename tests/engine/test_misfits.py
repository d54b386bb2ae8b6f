"""What Python's callers get wrong and no door lets through: values of another type than a parameter has."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from speckit_memory import Memory, SpeckitError


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    root = tmp_path_factory.mktemp("misfits")
    (root / "a.md").write_text("# Fusion\n\nRanks are fused by score.\n", encoding="utf-8")
    with Memory.open(root / "memory.db", root=root, environ={}) as opened:
        opened.index(root)
        yield opened


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"text": 42}, "text is 42 (int); accepted: a text"),
        ({"text": None}, "text is None (NoneType); accepted: a text"),
        ({"folder": 3}, "folder is 3 (int); accepted: a text"),
        ({"limit": "5"}, "limit is '5' (str); accepted: a whole number"),
        ({"limit": 5.0}, "limit is 5.0 (float); accepted: a whole number"),
        ({"limit": True}, "limit is True (bool); accepted: a whole number"),
        ({"token_usage": "all"}, "token_usage is 'all' (str); accepted: a number"),
        ({"anchors": "context"}, "anchors is 'context' (str); accepted: a list of texts"),
        ({"concepts": "rank"}, "concepts is 'rank' (str); accepted: a list of texts"),
        ({"concepts": ["rank", 3]}, "concepts is ['rank', 3] (list); accepted: a list of texts"),
    ],
)
def test_a_value_of_another_type_is_refused_and_named(memory: Memory, given: dict[str, Any], said: str) -> None:
    with pytest.raises(SpeckitError) as caught:
        memory.search(**({"text": "fusion"} | given))

    assert (caught.value.code, caught.value.problems[0].message) == ("E030", said)


def test_all_that_is_wrong_is_said_at_once(memory: Memory) -> None:
    with pytest.raises(SpeckitError) as caught:
        memory.search(1, limit="5", mode=None)  # type: ignore[arg-type]

    assert [problem.message.split(" is ")[0] for problem in caught.value.problems] == ["text", "mode", "limit"]
