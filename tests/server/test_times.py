"""Questions about a time, through the doors."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call

JOURNAL = {
    "journal/2024-03-11.md": "# Monday\n\nWe moved the quokka cache to disk.\n",
    "journal/2024-03-12.md": "# Tuesday\n\nNothing of note.\n",
    "chat/turns.md": "Ann (1:56 pm on 8 May, 2023): The quokka cache is slow.\n",
    "adr/0001.md": "# Quokka cache in memory\n\nDate: 2022-01-10\n\nKept in memory.\n",
    "adr/0002.md": "# Quokka cache on disk\n\nDate: 2024-02-10\n\nKept on disk.\n",
    "adr/0003.md": "# Logging\n\nDate: 2024-02-20\n\nLines, also of the quokka cache.\n",
}


@pytest.fixture
def journal(tmp_path: Path) -> Path:
    for name, text in JOURNAL.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text)
    assert call(tmp_path, ["index", "."]).status == 0
    return tmp_path


def answered(folder: Path, question: str) -> dict[str, Any]:
    return dict(call(folder, ["search", question, "--json"]).json)


def keys(folder: Path, question: str) -> list[str]:
    return [row["key"] for row in answered(folder, question)["results"]]


@pytest.mark.requirement("C2.times")
@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what did we do on March 12th?", ["journal/2024-03-12.md"]),
        ("what happened between March 10 and March 12, 2024?", ["journal/2024-03-11.md", "journal/2024-03-12.md"]),
        ("what did we say in May 2023", ["chat/turns.md"]),
        ("what did Ann say about the quokka cache on May 8th?", ["chat/turns.md"]),
        ("quokka cache in March 2024", ["journal/2024-03-11.md"]),
        ("decisions before 2023", ["adr/0001.md"]),
    ],
)
def test_a_question_about_a_time_is_answered_with_what_is_of_that_time(
    journal: Path, question: str, first: list[str]
) -> None:
    assert sorted(keys(journal, question)[: len(first)]) == first


@pytest.mark.requirement("C2.latest")
def test_the_latest_decision_is_the_newest_of_those_about_the_topic(journal: Path) -> None:
    assert keys(journal, "latest decision about the quokka cache")[0] == "adr/0002.md"
    assert keys(journal, "oldest decision about the quokka cache")[0] == "adr/0001.md"


@pytest.mark.requirement("C2.times")
def test_words_that_ask_for_a_time_are_no_slips_and_slips_of_the_topic_are_read(journal: Path) -> None:
    assert answered(journal, "what did we decide in March 2024")["notes"]["warnings"] == []
    assert keys(journal, "latest decision about the quoka cache")[0] == "adr/0002.md"


@pytest.mark.requirement("C2.times")
def test_times_are_counted_back_from_the_newest_memory_where_the_project_has_rested(journal: Path) -> None:
    answer = answered(journal, "what did we do yesterday?")

    assert answer["results"][0]["key"] == "journal/2024-03-11.md"
    assert "counted back from 2024-03-12" in str(answer["notes"]["warnings"])
