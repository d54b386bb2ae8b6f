from __future__ import annotations

import pytest

from speckit_memory.engine.recording.recorder import are_similar


@pytest.mark.requirement("P5.implicit")
@pytest.mark.parametrize(
    ("first", "second", "similar"),
    [
        ("how is the token rotated", "token rotation policy", True),  # 2 of 2
        ("quokka", "what does a quokka eat at night", True),  # 1 of 1
        ("copy the sqlite file while open", "is sqlite safe to copy", True),  # 2 of 3
        ("computeMPAB", "what does the compute mpab function do", True),
        ("wie kopiert man das Backup", "Backup kopieren", True),
        ("数据库备份", "怎么备份数据库", True),
        ("copy the sqlite file", "does sqlite support wal", False),  # 1 of 3
        ("why do they do this", "why is it not there", False),  # nothing but function words
        ("why rank fusion", "what is the backup", False),
        ("", "", False),
    ],
)
def test_questions_are_similar_that_share_half_of_the_content_words_of_the_shorter_one(
    first: str, second: str, similar: bool
) -> None:
    assert are_similar(first, second) is are_similar(second, first) is similar
