"""Which stores have an index of their vectors: who decides, and all that can be wrong with it, at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.config.options.vector_indexing import VectorIndexing
from speckit_memory.config.workspace.settings import settings
from speckit_memory.config.workspace.vector_indexing_in_force import vector_indexing_in_force
from speckit_memory.config.workspace.workspace_file import read_workspace_config
from speckit_memory.errors import SpeckitError

ACCEPTED = 'a whole number of passages from 0 to 1000000000, "exact" or "off"'


def said(root: Path, text: str) -> Path:
    (root / ".speckit").mkdir(exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(text, encoding="utf-8")
    return root


def in_force(root: Path, **environ: str) -> VectorIndexing:
    return vector_indexing_in_force(settings(root=root, environ=environ))


def test_the_environment_goes_before_the_file_and_the_file_before_the_default(tmp_path: Path) -> None:
    assert in_force(tmp_path) == VectorIndexing(200_000, used=True)
    said(tmp_path, "vector_index:\n")
    assert in_force(tmp_path) == VectorIndexing(200_000)
    said(tmp_path, "vector_index: 5000\n")
    assert in_force(tmp_path) == VectorIndexing(5000)
    assert in_force(tmp_path, SPECKIT_VECTOR_INDEX=" 7 ") == VectorIndexing(7)
    assert in_force(tmp_path, SPECKIT_VECTOR_INDEX="Exact") == VectorIndexing(200_000, used=False)
    assert in_force(tmp_path, SPECKIT_VECTOR_INDEX="off") == VectorIndexing(None, used=False)
    assert in_force(tmp_path, SPECKIT_VECTOR_INDEX=" ") == VectorIndexing(5000)
    said(tmp_path, 'vector_index: "off"\n')
    assert in_force(tmp_path) == VectorIndexing(None, used=False)


def test_a_store_has_an_index_from_its_size_on() -> None:
    stores = (0, 1, 9, 10)
    assert [VectorIndexing(10).wanted(n) for n in stores] == [False, False, False, True]
    assert [VectorIndexing(0).answers(n) for n in stores] == [False, True, True, True]
    assert [VectorIndexing(1, used=False).wanted(n) for n in stores] == [False, True, True, True]
    assert not any(VectorIndexing(1, used=False).answers(n) for n in stores)
    assert not any(VectorIndexing(None).wanted(n) for n in stores)


@pytest.mark.parametrize("written", ["yes", "-1", "1e5", "1000000001", "12345678901", "²"])
def test_a_variable_that_means_nothing_is_refused_with_what_does(tmp_path: Path, written: str) -> None:
    with pytest.raises(SpeckitError) as raised:
        in_force(tmp_path, SPECKIT_VECTOR_INDEX=written)
    assert str(raised.value) == f"E030 SPECKIT_VECTOR_INDEX is '{written}'; accepted: {ACCEPTED}"
    assert raised.value.problems[0].actions == ("set SPECKIT_VECTOR_INDEX to a number such as 200000",)


@pytest.mark.parametrize(
    ("written", "found"),
    [
        ("true", "True"),
        ("-1", "-1"),
        ("1.5", "1.5"),
        ("1000000001", "1000000001"),
        ("some", "'some'"),
        ("[1]", "a list"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_its_place(tmp_path: Path, written: str, found: str) -> None:
    config, [problem] = read_workspace_config(said(tmp_path, f"vector_index: {written}\n"))
    assert problem.message == f"'vector_index' must be {ACCEPTED}; found {found}"
    assert problem.where is not None
    assert (problem.where.line, problem.where.column) == (1, 15)
    assert config.vector_index == VectorIndexing()
