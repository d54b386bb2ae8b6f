from __future__ import annotations

from pathlib import PurePosixPath

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.parsing.keys import folder_of, with_folders, without_suffix


@pytest.mark.requirement("I4")
@given(st.lists(st.sampled_from(["a", "b.md", ".", "..", "/", "//", ".x", "é.", ".md.txt"])).map("".join))
def test_parts_of_keys_are_those_of_paths(key: str) -> None:
    path = PurePosixPath(key)

    assert folder_of(key) == ("" if str(path.parent) == "." else str(path.parent))
    if path.name:
        assert without_suffix(key) == str(path.with_suffix(""))
    else:
        with pytest.raises(ValueError, match="name"):
            without_suffix(key)


@pytest.mark.requirement("I8")
def test_a_key_lies_in_its_folders_and_in_the_root() -> None:
    assert list(with_folders("a/b/c.md")) == ["a/b/c.md", "a/b", "a", ""]
    assert list(with_folders("c.md")) == ["c.md", ""]
    assert list(with_folders("")) == [""]
