"""Known answers of the handover channel, worked out by hand."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from components.asking import query

from speckit_memory.channels.handover import Handover, HandoverParams
from speckit_memory.pipeline.model.columns import Hits, Query
from speckit_memory.pipeline.ports import Filter
from speckit_memory.pipeline.testing import DAY, FakeStore, Memory


def sections(*names: str, text: str = "text") -> str:
    return "\n".join(f"<!-- ANCHOR:{name} -->\n{text}\n<!-- /ANCHOR:{name} -->" for name in names)


def changed(day: float) -> dict[str, float]:
    return {"updated_at": day * DAY}


SECTIONS = ("state", "next-steps", "summary", "blockers")
STORE = FakeStore(
    Memory(1, "old", (sections("state", "next-steps", "blockers"),), numbers=changed(90)),
    Memory(2, "new", ("words", sections("state", "summary")), numbers=changed(100), folder="here"),
    Memory(3, "half", (sections("blockers"),), numbers=changed(100)),
    Memory(4, "none", (sections("context", "summary"),), numbers=changed(100)),
    Memory(5, "gone", (sections("state"),), tier="deprecated", numbers=changed(100)),
    attended={"s": {3: 0.5}},
    delivered={"s": {1}},
)


def asked(text: str = "", **changes: Any) -> Query:
    return replace(query(text), anchors=SECTIONS, **changes)


def found(asked: Query, **params: Any) -> dict[int, float]:
    hits = Handover(HandoverParams(**params)).search(asked, 10, STORE)
    assert isinstance(hits, Hits)
    return dict(zip(hits.ids.tolist(), hits.scores.tolist(), strict=True))


@pytest.mark.requirement("T1", "A7")
def test_the_latest_document_with_two_of_the_sections_comes_first() -> None:
    # 2: 0.3 for being the latest and 0.2 for two sections; 3: 0.3 + 0.2/2; 1, ten days behind: 0.3 · 1/2 + 0.2
    assert found(asked()) == pytest.approx({2: 0.5, 3: 0.4, 1: 0.35})
    assert list(found(asked())) == [2, 3, 1]
    # asking to go on is no word that names work, in whatever form
    assert found(asked("please continue: where were we?")) == found(asked())


@pytest.mark.requirement("T1")
def test_words_that_name_the_work_count_most() -> None:
    # the only word left is in 1 alone
    assert found(asked("resume old")) == pytest.approx({1: 0.75, 2: 0.5, 3: 0.4})


@pytest.mark.requirement("T1")
def test_what_belongs_to_the_session_counts_by_attention_or_as_sent() -> None:
    assert found(asked(session="s")) == pytest.approx({2: 0.5, 3: 0.45, 1: 0.45})


def test_the_weights_are_shares_of_their_sum() -> None:
    assert found(asked(), words=0.0, recency=1.0, kind=0.0, session=0.0) == pytest.approx({2: 1.0, 3: 1.0, 1: 0.5})
    assert found(asked(), words=0.0, recency=0.0, kind=0.0, session=0.0) == {1: 0.0, 2: 0.0, 3: 0.0}


@pytest.mark.requirement("A7")
def test_only_the_sections_that_are_named_and_the_scope_count() -> None:
    # one section is all that is asked for, so that having it is having enough
    assert found(replace(asked(), anchors=("context",))) == pytest.approx({4: 0.5})
    assert found(asked(wanted=Filter(folder="here"))) == pytest.approx({2: 0.5})
    # naming none, it asks for those of a handover
    assert found(query("")) == found(asked())


def test_the_passage_that_holds_the_first_section_is_shown() -> None:
    hits = Handover(HandoverParams()).search(asked(), 10, STORE)
    assert isinstance(hits, Hits)
    assert hits.passages is not None
    assert hits.passages.tolist()[0] == STORE.memories[2].chunk_ids[1]
