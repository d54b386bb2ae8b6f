from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from rapidfuzz.distance import OSA

from speckit_memory.engine import Memory
from speckit_memory.memory.store.read_model.words.lexicon import Vocabulary
from speckit_memory.memory.store.segment_files import term_table
from speckit_memory.memory.store.segment_files.term_table import LONGEST, NearTerms

LETTERS = "abzAB019_-é日🦀\u0301\ud800"
words = st.text(LETTERS, max_size=7) | st.text(max_size=4)


def near_terms(terms: list[str]) -> NearTerms:
    encoded = [term.encode("utf-8", "surrogatepass") for term in terms]
    return NearTerms(np.frombuffer(b"".join(encoded), np.uint8), np.cumsum([len(each) for each in encoded], dtype=int))


@pytest.mark.requirement("C3")
@given(st.lists(words, max_size=12), words, st.integers(0, 3), st.integers(1, 5))
@example(["a" * (LONGEST + 3), "a" * (LONGEST - 1)], "a" * (LONGEST + 1), 2, 1)
def test_no_term_that_is_near_is_left_out(terms: list[str], wanted: str, edits: int, together: int) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(term_table, "TOGETHER", together)
        found = near_terms(terms).places(wanted, edits).tolist()
    assert {place for place, term in enumerate(terms) if OSA.distance(wanted, term) <= edits} <= set(found)


def test_terms_of_other_lengths_and_letters_are_left_out() -> None:
    terms = ["gateway", "gatway", "getaway", "gateways9", "gat", "xxxxxxx", "日本語", "gatéway", "gatewey", "getaways"]
    near = near_terms(terms)
    found = [terms[place] for place in near.places("gateway", 1)]
    assert found == ["gateway", "gatway", "getaway", "gatéway", "gatewey", "getaways"]
    assert [terms[place] for place in near.places("gateway", 0)] == ["gateway", "getaway"]  # of the same letters
    assert near.places("gatewoy1", 1).tolist() == []  # an insertion changes one letter, a replacement two


@pytest.mark.requirement("C2")
def test_a_search_for_a_word_that_nothing_holds_goes_through_no_list_of_all_terms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """That of a million memories is as large as all else that a process holds, and takes two seconds to make."""
    (tmp_path / "docs").mkdir()
    for number in range(120):
        (tmp_path / "docs" / f"{number}.md").write_text(
            f"# Note {number}\n\nOf zanzibarite and marmots, own{number}.\n"
        )
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        memory.index([tmp_path / "docs"])
        memory.lifecycle.write_segment()
    monkeypatch.delattr(Vocabulary, "_all")
    with Memory.open(tmp_path / "memory.db", root=tmp_path, environ={}) as memory:
        for word, instead in (("zzxqjwkvp", {}), ("zenzibaryte", {"zenzibaryte": ("zanzibarit",)})):
            assert dict(memory.search(word).plan.respelt) == instead
