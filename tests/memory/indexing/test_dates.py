"""The moments that texts and names of files begin with."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from speckit_memory.memory.parsing import dates


def at(*moment: int) -> float:
    year, month, day, *clock = moment
    return datetime(year, month, day, *clock, tzinfo=UTC).timestamp()  # type: ignore[arg-type, misc]


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2024-03-12 Standup", (2024, 3, 12)),
        ("# 2024-03-12: Standup", (2024, 3, 12)),
        ("## 12 March 2024\nText", (2024, 3, 12)),
        ("# March 12th, 2024", (2024, 3, 12)),
        ("- [2024-03-12 10:30] deployed", (2024, 3, 12, 10, 30)),
        ("2024-03-12T10:30:05Z started", (2024, 3, 12, 10, 30, 5)),
        ("1896-12-21 00:42:47 At home: I saw", (1896, 12, 21, 0, 42, 47)),
        ("Ann (1:56 pm on 8 May, 2023): Hey", (2023, 5, 8, 13, 56)),
        ("Bo (12:05:04 AM on Monday 08 May, 2023): Hey", (2023, 5, 8, 0, 5, 4)),
        ("User (March-15-2024): I", (2024, 3, 15)),
    ],
)
def test_an_entry_of_a_journal_or_of_a_conversation_begins_with_its_moment(text: str, moment: tuple[int, ...]) -> None:
    assert dates.opening_time(text) == at(*moment)


@pytest.mark.parametrize(
    "text",
    [
        "", "We met on 2024-03-12.", "# Roadmap for March 2024", "2024-13-45 x", "31 June 2024",
        "Release (see 2024-03-12)", "1.2.3 released", "2024", "May 8th was warm", "0000-01-01 nothing",
    ],
)  # fmt: skip
def test_a_date_elsewhere_says_nothing_of_the_text(text: str) -> None:
    assert dates.opening_time(text) is None


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("key", "moment"),
    [
        ("journal/2024-03-12.md", (2024, 3, 12)),
        ("notes/standup_20240312.md", (2024, 3, 12)),
        ("2024.03.12-retro.md", (2024, 3, 12)),
        ("2024-03-12/notes.md", None),
        ("docs/adr-20240399.md", None),
        ("docs/0003-use-2024.md", None),
    ],
)
def test_a_file_may_be_named_after_its_day(key: str, moment: tuple[int, ...] | None) -> None:
    assert dates.named_time(key) == (at(*moment) if moment else None)
