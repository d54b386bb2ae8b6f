"""Queries made to be slow or large: what they cost is bounded by counts, and what is left out is said.

Time itself is held in bench/test_hostile_queries.py.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from types import SimpleNamespace

import numpy as np
import pytest
from answered import refused
from hostile_queries import LENGTH, SHAPES
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.engine.answers.query_syntax import MOST_CHARACTERS, read
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.indexing import Analyser, Source
from speckit_memory.memory.store.read_model.words.lexicon import SnapshotLexicon
from speckit_memory.pipeline.running.lookup import MOST_TERMS, searchable
from speckit_memory.pipeline.testing import FakeStore
from speckit_memory.stages.candidates import spelling

WORDS = [f"{first}{second}{third}" for first in "bcdfgklm" for second in "aeiou" for third in
         ("mer", "sel", "dor", "tin", "pol", "gun", "rak", "lif", "zet", "hob", "vex", "jum", "wyn", "cad", "fro",
          "gli", "sto", "bre", "qua", "nox", "pil", "dru", "ske", "mot", "hal", "ire", "uld", "eph", "obs", "ank",
          "tra", "cle", "pho", "swi", "gne", "mbo", "lth", "rsk", "vna", "xed", "zyl", "kno", "dwa", "fju", "hwe",
          "jri", "lvo", "nsa", "oct", "psy")]  # fmt: skip
MEMORIES = 300
MOST_BYTES = 60_000_000
"""What a search may take at a time beside the store: less than two pages of 10,000 characters would as tables of words
by memories."""


@pytest.fixture(scope="module", params=["default", "catalogue"])
def memory(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    folder = tmp_path_factory.mktemp("queries")
    random = np.random.default_rng(3)
    with Memory.open(folder / "memory.db", request.param, root=folder, environ={}) as memory:
        memory.index_documents(
            Source(
                key=f"notes/{number % 9}/{number:03}.md",
                text=" ".join(random.choice(WORDS, 120)),
                title=" ".join(random.choice(WORDS, 4)),
                triggers=(" ".join(random.choice(WORDS, 2)),),
            )
            for number in range(MEMORIES)
        )
        memory.graph.add_edges(
            (f"notes/{n % 9}/{n:03}.md", "supports", f"notes/{(n + 1) % 9}/{n + 1:03}.md", 0.5) for n in range(99)
        )
        memory.search("warm up", deadline_ms=None)
        yield memory


@pytest.mark.parametrize("shape", SHAPES)
def test_the_longest_queries_are_answered_alike_twice_and_within_bounds(
    memory: Memory, shape: str, tally: Tally, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = SHAPES[shape](WORDS)
    assert len(query) <= LENGTH
    looked_up = 0
    holders = SnapshotLexicon.index

    def counted(self: SnapshotLexicon, *part: str) -> object:
        nonlocal looked_up
        looked_up += 1
        return holders(self, *part)  # type: ignore[arg-type]

    monkeypatch.setattr(SnapshotLexicon, "index", counted)
    try:
        first = memory.search(query, deadline_ms=None)
    except SpeckitError as error:
        refused = error.code
    else:
        refused = ""
    tally.tried()
    if refused:
        assert refused in ("E042", "E043")
        return
    assert looked_up < 40 * MOST_TERMS
    second = memory.search(query, deadline_ms=None)
    assert [(row.id, row.score) for row in first.results] == [(row.id, row.score) for row in second.results]
    assert len({row.id for row in first.results}) == len(first.results) <= 10
    assert len(set(first.outcome.query.terms)) <= MOST_TERMS
    said = [warning for warning in first.notes.warnings if "were looked up" in warning]
    assert bool(said) == (len(set(memory.models.analyser.tokens(first.outcome.query.text))) > MOST_TERMS)
    assert not first.notes.degraded


def test_a_long_text_has_no_marks_and_a_run_of_stops_is_cut_from_an_excluded_word(tally: Tally) -> None:
    assert read("fox -" + "a" * MOST_CHARACTERS).excluded == ()
    assert read("fox -a" + "." * 900).excluded == ("a",)
    assert read("fox -a" + "." * 900 + "x").excluded == ("a" + "." * 900 + "x",)
    tally.tried(3)


@pytest.mark.parametrize("text", ["a b c", "the of", "b " * 3000, " ".join(map(str, range(MOST_TERMS)))])
def test_a_page_is_searched_by_all_of_its_words(text: str, tally: Tally) -> None:
    store = FakeStore()
    store.lexicon.analyse = Analyser().tokens  # type: ignore[method-assign]

    assert searchable(text, store.lexicon) == Analyser().tokens(text)
    tally.tried()


@pytest.mark.parametrize(
    ("more", "code"),
    [
        ({"concepts": ("x" * (LENGTH + 1), "fox")}, "E042"),
        ({"concepts": ("ﷺ" * LENGTH, "fox")}, "E042"),
        ({"anchors": ("x" * 201,)}, "E032"),
        ({"session": "x" * 201}, "E032"),
        ({"folder": "x" * 201}, "E032"),
    ],
)
def test_what_stands_beside_the_text_is_no_longer_than_it_needs_to_be(
    memory: Memory, more: dict[str, object], code: str, tally: Tally
) -> None:
    with refused(code) as caught:
        memory.search("fox", **more)  # type: ignore[arg-type]
    assert len(str(caught.value)) < 500
    tally.tried()


def test_forms_of_misspelt_words_are_tried_for_so_many_letters(memory: Memory, tally: Tally) -> None:
    analysed = 0
    word = "abcdefghijklmnopqrstuvwxyz"[:25]

    class Counting:
        def __init__(self, lexicon: SnapshotLexicon) -> None:
            self.index, self.bags = lexicon.index, lexicon.bags
            self.words, self.near, self.prefetch = lexicon.words, lexicon.near, lexicon.prefetch

        def analyse(self, text: str) -> tuple[str, ...]:
            nonlocal analysed
            analysed += 1
            return memory.models.analyser.tokens(text)

        def word_tokens(self, words: Sequence[str]) -> list[str | None]:
            nonlocal analysed
            analysed += len(words)
            return memory.models.analyser.word_tokens(words)

    step = spelling.Spelling(spelling.SpellingParams.model_validate({}))
    lexicon = Counting(memory.session.view().lexicon)  # type: ignore[arg-type]
    words = [word + end for end in ("q", "zz", "wqy", "vyxw")]
    query = memory.search(" ".join(words), deadline_ms=None).outcome.query
    store = memory.session.view()
    counting = SimpleNamespace(lexicon=lexicon, passages=store.passages, attributes=store.attributes)
    unknown = list(step._unknown(query, lexicon, None))
    assert [found for found, _ in unknown] == words
    for found, term in spelling._within(spelling.MOST_LETTERS, unknown):
        step._neighbours(found, term, counting, lambda _: False)
    assert analysed < 70 * spelling.MOST_LETTERS
    tally.tried(len(words))
