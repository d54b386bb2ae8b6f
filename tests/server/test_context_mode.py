from __future__ import annotations

import pytest

from speckit_memory.server.calls.context_mode import choose

LONG = "please look at everything that touches the importer and its callers before we begin"


def never() -> str:
    raise AssertionError("the intent was asked for without need")


@pytest.mark.requirement("T1.modes")
@pytest.mark.parametrize(
    ("text", "mode"),
    [
        ("continue with the importer where we left off yesterday, please", "resume"),
        ("where was I", "resume"),
        ("Where were we?", "resume"),
        ("OK, let's continue with the backups", "resume"),
        ("please pick up the importer again", "resume"),
        ("what's next", "resume"),
        ("where did we stop?", "resume"),
        ("catch me up", "resume"),
        ("let's get back to the rate limits", "resume"),
        ("what should I do next?", "resume"),
        ("what was I working on", "resume"),
        ("how does the loop continue after an error?", "focused"),
        ("the parser of uploaded resume files", "focused"),
        ("rank fusion", "focused"),
        ("Why did we decide that the importer should not follow symbolic links?", "focused"),
    ],
)
def test_the_words_decide_before_the_intent_is_asked(text: str, mode: str) -> None:
    assert choose(text, never)[0] == mode


@pytest.mark.requirement("T1.modes")
@pytest.mark.parametrize(
    ("intent", "mode"), [("add_feature", "deep"), ("security_audit", "deep"), ("fix_bug", "focused")]
)
def test_the_intent_decides_what_is_left(intent: str, mode: str) -> None:
    assert choose(LONG, lambda: intent) == (mode, f"the intent is {intent}")
