from __future__ import annotations

import pytest

from tests.evaluation.made_queries.made import collection, made

DEFINED = "A Pod Disruption Budget (PDB) is kept."


def test_an_acronym_and_its_long_form_ask_for_the_documents_that_hold_one_of_them() -> None:
    of = collection(DEFINED, "The PDB was full.", "Each pod disruption budget counts.", "A budget.")

    assert made("acronyms", of) == {"PDB": (0, 1, 2), "pod disruption budget": (0, 1, 2)}


def test_what_is_found_by_either_alone_is_not_asked_for() -> None:
    assert made("acronyms", collection(DEFINED, "The PDB was full.")) == {"pod disruption budget": (0, 1)}


@pytest.mark.parametrize(
    "other",
    ["The Paris Data Board (PDB) met.", "Type pdb to debug."],
    ids=["another meaning", "written small"],
)
def test_an_acronym_that_may_mean_something_else_is_left_out(other: str) -> None:
    assert made("acronyms", collection(DEFINED, "The PDB was full.", other)) == {}
