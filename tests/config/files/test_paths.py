from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from speckit_memory.config.files.paths import named_path, named_paths
from speckit_memory.errors import InvalidRequestError


@pytest.mark.parametrize("as_one", [str, Path], ids=["a text", "a path"])
def test_one_path_is_no_sequence_of_letters(tmp_path: Path, as_one: type) -> None:
    assert named_paths(as_one(tmp_path / "docs")) == [tmp_path.resolve() / "docs"]


def test_several_paths_come_from_whatever_can_be_gone_through(tmp_path: Path) -> None:
    several = [tmp_path.resolve() / name for name in ("a", "b")]

    assert named_paths(several) == named_paths(tuple(several)) == named_paths(iter(map(str, several))) == several


@pytest.mark.parametrize(
    ("named", "found"),
    [(3, "int"), (None, "NoneType"), (b"docs", "bytes"), (["docs", 3], "int"), ([b"docs"], "bytes")],
)
def test_what_is_no_path_is_refused_by_its_type(named: Any, found: str) -> None:
    with pytest.raises(InvalidRequestError, match=f"^E030 the path is of the type {found}$") as caught:
        named_paths(named)

    assert "A path is a str or a pathlib.Path." in caught.value.problems[0].hint
    if not isinstance(named, list):
        with pytest.raises(InvalidRequestError, match=f"the file is of the type {found}"):
            named_path(named, "the file")


def test_all_that_is_no_path_is_told_at_once() -> None:
    with pytest.raises(InvalidRequestError) as caught:
        named_paths(["", 3, "a\0b"])  # type: ignore[list-item]

    assert [problem.code for problem in caught.value.problems] == ["E014", "E014", "E030"]
