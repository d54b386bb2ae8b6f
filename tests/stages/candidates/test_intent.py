from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.stages.candidates import intent


@given(
    st.lists(st.sampled_from([*intent.SIGNS["find_decision"].words, "is", "are", "move", "into", "out", "of", "leaks",
        "secret", "token", "why", "how", "do", "work", "working", "make", "simpler", "find", "spec", "requirement",
        "instead", "of", "than", "because", "over", "\n", "\r", "was", "decided", "what", "fails", "x"]), max_size=14),
)  # fmt: skip
def test_intents_are_those_of_the_whole_expressions(words: list[str]) -> None:
    text = " ".join(words)
    for found in intent.SIGNS.values():
        for phrase_ in found.phrases:
            match = re.search(phrase_.expression, text)
            assert phrase_.find(text) == (match.group() if match else None)
