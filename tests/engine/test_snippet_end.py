"""Where a snippet ends."""

from __future__ import annotations

from speckit_memory.engine.answer import snippet
from speckit_memory.pipeline.ports import Passage


def test_a_snippet_that_reaches_the_end_of_the_text_keeps_the_last_word() -> None:
    # the window of 60 characters begins inside the long word, where no blank moves its beginning, and so its end
    passage = Passage(1, 1, "some " + "x" * 80 + " and a zebra", "", "", 1, 1)

    assert snippet(passage, ["zebra"], 60).endswith("x and a zebra")
