"""Which sentences stand for a text: of the text itself, in its order, bounded, the same every time, in any language."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.indexing import Analyser
from speckit_memory.memory.parsing.summarising import LONGEST, MOST_SENTENCES, ROOM, SHORTEST, sentences, summary

TOKENS = Analyser().tokens
TEXT = """# Why the cache is written behind

It was a rainy day. Coffee was served at nine.

- [x] The **write-behind cache** loses entries when the [process](p.md) is killed.
- A journal beside the cache keeps entries that the cache has not written.

```python
cache = "a cache of the cache that is code and no sentence."
```

| cache | table |
|---|---|
| the cache in a table | is no sentence either |

So the cache writes the journal first, and entries of the cache survive a kill of the process.
Lunch was late. Somebody asked for more chairs in the small room.

## The next cache

Nothing is decided about it:
"""


@pytest.mark.requirement("I11.summaries")
def test_sentences_that_share_most_with_the_others_stand_for_the_text() -> None:
    found = summary("Why the cache is written behind", TEXT, TOKENS)
    assert found == (
        "The write-behind cache loses entries when the process is killed.",
        "A journal beside the cache keeps entries that the cache has not written.",
        "So the cache writes the journal first, and entries of the cache survive a kill of the process.",
    )
    assert summary("Why the cache is written behind", TEXT, TOKENS) == found
    every = list(sentences(TEXT))
    assert not any("no sentence" in sentence or "#" in sentence for sentence in every)


@pytest.mark.requirement("I11.summaries")
def test_a_text_of_hardly_more_than_a_summary_has_none() -> None:
    assert summary("T", "One sentence stands here. Another one stands there. And a third one.", TOKENS) == ()
    assert summary("", "", TOKENS) == ()


@pytest.mark.requirement("I11.summaries")
def test_what_is_said_twice_is_told_once() -> None:
    body = "\n\n".join(f"The cache writes the journal before the entry number {n}." for n in range(6))
    assert len(summary("Cache", f"{body}\n\nThe lunch was late on that day again.", TOKENS)) <= 2


@pytest.mark.requirement("I11.summaries")
def test_languages_without_blanks_have_sentences() -> None:
    body = "検索の設計を決めた。今日は雨が降っていた。検索は索引の設計で決まる。昼食は遅かった。索引の検索を測った。"
    found = summary("検索の設計", body, TOKENS)
    assert 1 <= len(found) <= MOST_SENTENCES
    assert "今日は雨が降っていた。" not in found


@given(
    st.text(max_size=200),
    st.lists(
        st.sampled_from(["a b. ", "Cache it! ", "\n\n", "# H\n", "- x\n", "```\n", "検索。", "| a |\n", "[", "<!-- "]),
        max_size=200,
    ),
)
def test_any_text_has_a_bounded_summary_of_its_own_sentences(text: str, pieces: list[str]) -> None:
    body = text + "".join(pieces)
    found = summary(text[:20], body, TOKENS)
    assert len(found) <= MOST_SENTENCES
    assert sum(map(len, found)) <= ROOM
    assert all(SHORTEST <= len(sentence) <= LONGEST for sentence in found)
    assert set(found) <= set(sentences(body))
