from __future__ import annotations

import pytest

from tests.evaluation.made_queries.made import collection, made

YAML = "---\nauthors: [Ada Quill, Bo van Lind <bo@x.org>]\nstatus: {status}\ncreated: {day}\n---\nText.\n"
LIST = "* Status: {status}\n* Deciders: Cy Moss and Ada Quill\n* Date: {day}\n\nText by Dee Holt.\n"


@pytest.mark.requirement("E3.kinds")
def test_authors_are_asked_for_by_name() -> None:
    of = collection(YAML.format(status="x", day=""), LIST.format(status="y", day=""), "By Ada Quill.")

    assert made("authors", of) == {
        "proposals by Ada Quill": (0, 1), "proposals by Bo van Lind": (0,), "proposals by Cy Moss": (1,),
    }  # fmt: skip


@pytest.mark.requirement("E3.kinds")
def test_days_and_months_are_asked_for_in_three_forms() -> None:
    of = collection(
        YAML.format(status="x", day="2024-03-05"), LIST.format(status="y", day="7 Mar 2024"), "In March 2024."
    )

    assert made("dates", of) == {
        "created 2024-03-05": (0,), "created on March 5, 2024": (0,), "created 2024-03-07": (1,),
        "created on March 7, 2024": (1,), "created in March 2024": (0, 1),
    }  # fmt: skip


@pytest.mark.requirement("E3.kinds")
def test_a_status_is_asked_for_with_a_topic_whose_documents_differ_in_it() -> None:
    bodies = (YAML.format(status="Accepted", day=""), LIST.format(status="rejected (2024)", day=""), "None.")
    of = collection(*bodies, titles=("Cache one", "The cache", "Cache of none"))

    assert made("status", of) in ({"status accepted cache": (0,)}, {"status rejected cache": (1,)})


@pytest.mark.requirement("E3.kinds")
def test_the_latest_about_a_topic_is_the_one_that_says_it_is_the_newest() -> None:
    bodies = (YAML.format(status="x", day="2024-03-05"), LIST.format(status="y", day="7 Mar 2024"), "In June 2024.")
    of = collection(*bodies, titles=("Cache one", "The cache", "Cache of none"))
    same_day = collection(*(YAML.format(status="x", day="2024-03-05"),) * 2, titles=("Cache one", "The cache"))

    assert made("latest", of) == {"latest proposal about cache": (1,)}
    assert made("latest", same_day) == {}


@pytest.mark.parametrize("kind", ["authors", "dates", "latest", "status"])
def test_what_is_said_of_more_documents_than_ten_is_no_query(kind: str) -> None:
    bodies = [YAML.format(status=status, day="2024-03-05") for status in ("draft", "final") * 11]

    assert made(kind, collection(*bodies, titles=("Cache",) * 22)) == {}
