from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.parsing.acronyms import long_form
from speckit_memory.pipeline.model.columns import Plan
from speckit_memory.pipeline.testing import FakeStore, Memory, ask
from speckit_memory.stages.candidates.acronyms import Acronyms, AcronymsParams

STORE = FakeStore(
    Memory(1, "", ("a pod disruption budget (PDB) is kept",)),
    Memory(2, "", ("role-based access control (RBAC), and a point of presence (POP)",)),
    Memory(3, "", ("the JSON of it (PDF)",)),
    Memory(4, "", (f"a KEY is {'QUJD' * 50_000} and the known exchanged yield (KEY)",)),
)


def variants(text: str, **params: Any) -> tuple[str, ...]:
    query = ask(text)
    plan = Acronyms(AcronymsParams.model_validate(params)).understand(query, query.plan, STORE)
    assert isinstance(plan, Plan)
    return plan.variants


@pytest.mark.parametrize(
    ("text", "other"),
    [
        ("PDB", "pod disruption budget"),
        ("pdb", "pod disruption budget"),
        ("PDB limits", "pod disruption budget limits"),
        ("pod disruption budget", "PDB"),
        ("the Pod Disruption Budget", "the PDB"),
        ("RBAC", "role based access control"),
        ("KEY", "known exchanged yield"),  # the blob before it is gone through once
        ("point of presence", "POP"),
    ],
)
def test_a_short_query_is_searched_in_other_words_as_well(text: str, other: str) -> None:
    assert variants(text) == (text, other)


@pytest.mark.parametrize(
    "text",
    [
        "pdb limits",  # in small letters a word like others
        "PDF", "XYZ",  # defined by other words, by none
        "disruption budget", "pod budget",  # no long form
        "what does PDB mean here",  # more than four words
    ],
)  # fmt: skip
def test_what_no_text_defines_and_longer_queries_are_left_alone(text: str) -> None:
    assert variants(text) == (text,)


def test_definitions_are_looked_for_in_so_many_passages() -> None:
    assert variants("what does PDB mean here", max_words=5)[1] == "what does pod disruption budget mean here"
    assert variants("POP", max_read=1)[1] == "point of presence"


@given(st.lists(st.text("abcdefgh", min_size=1, max_size=4), min_size=2, max_size=6), st.sampled_from(["", "xxx yyy "]))
def test_a_long_form_begins_with_the_letters_of_its_acronym(words: list[str], before: str) -> None:
    form = long_form(before + " ".join(words), "".join(word[0] for word in words))

    assert form == " ".join(words)
