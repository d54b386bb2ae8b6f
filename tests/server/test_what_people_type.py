"""What people type, through the installed command: single words, pairs, phrases, misspelt words, names, pasted text."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call

SUBJECTS = ("gateway", "scheduler", "importer", "cache", "index", "session", "worker", "parser", "queue", "renderer")
VERBS = ("retries", "rejects", "stores", "forwards", "merges", "splits", "reads", "writes", "drops", "replays")
OBJECTS = ("requests", "records", "tokens", "pages", "events", "messages", "files", "rows", "blocks", "frames")
ENDS = ("before the timeout", "after a restart", "in small batches", "without a lock", "for every client")

RARE = {
    "zanzibarite": (7,),
    "quillwort": (3, 41),
    "bergamot": (5, 22, 58),
    "marzipan": (1, 13, 30, 47, 66),
}
"""Words and the notes that hold them, in the middle of long texts about other things."""
SENTENCES = {
    12: "The tin soldier paints a copper kettle.",  # copper here, kettle below: the pair stands here alone
    18: "A copper roof and a copper door, copper everywhere, all of copper.",
    25: "The kettle boils, the kettle sings, a kettle beside another kettle.",
    33: "Nobody is allowed to pass the bridge of sighs at night.",
    34: "The bridge sighs, and passing at night is allowed to all.",
    52: "Written by Ottoline Frobisher for the harbour board.",
}


def note(number: int) -> str:
    pick = random.Random(number)
    lines = [
        f"The {pick.choice(SUBJECTS)} {pick.choice(VERBS)} {pick.choice(OBJECTS)} {pick.choice(ENDS)}."
        for _ in range(30)
    ]
    lines[14:14] = [f"Here {word} is mentioned once." for word, notes in RARE.items() if number in notes]
    lines[20:20] = [SENTENCES[number]] if number in SENTENCES else []
    return f"# Note {number} on the {pick.choice(SUBJECTS)}\n\n" + " ".join(lines) + "\n"


@pytest.fixture(scope="module")
def search(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., Any]:
    root: Path = tmp_path_factory.mktemp("typed")
    (root / "notes").mkdir()
    for number in range(80):
        (root / "notes" / f"{number}.md").write_text(note(number), encoding="utf-8")
    assert call(root, ["index", "notes"]).status == 0

    def keys(*arguments: str, whole: bool = False) -> Any:
        ran = call(root, ["search", "--json", *arguments]).ok()
        return ran.json if whole else [row["key"] for row in ran.json["results"]]

    return keys


def named(*numbers: int) -> set[str]:
    return {f"notes/{number}.md" for number in numbers}


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("word", RARE)
@pytest.mark.parametrize("write", [str, str.upper, "What about {}?".format])
def test_every_memory_that_holds_a_rare_word_comes_before_all_others(
    search: Callable[..., list[str]], word: str, write: Callable[[str], str]
) -> None:
    assert set(search(write(word))[: len(RARE[word])]) == named(*RARE[word])


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("pipeline", ["default", "quality", "rrf", "catalogue"])
def test_no_way_of_fusing_loses_the_only_memory_that_holds_a_word(
    search: Callable[..., list[str]], pipeline: str
) -> None:
    assert "notes/7.md" in search("zanzibarite", "--pipeline", pipeline)[:3]


def test_who_types_two_words_gets_the_memory_with_both_first(search: Callable[..., list[str]]) -> None:
    assert search("copper kettle")[0] == search("kettle copper")[0] == "notes/12.md"


@pytest.mark.requirement("C2")
def test_the_very_words_of_a_text_find_it(search: Callable[..., list[str]]) -> None:
    assert search("allowed to pass the bridge")[0] == "notes/33.md"
    assert search("the bridge sighs and passing")[0] == "notes/34.md"


@pytest.mark.requirement("C3")
@pytest.mark.parametrize("typed", ["zanzibarit", "zanzibartie", "zanzzibarite", "zanzibxrite", "Zanzibarie"])
def test_a_misspelt_word_finds_what_was_meant_and_the_answer_says_so(
    search: Callable[..., list[str]], typed: str
) -> None:
    assert search(typed)[0] == search(f"what do we know about {typed}?")[0] == "notes/7.md"


def test_a_misspelt_word_is_named_with_what_was_searched_instead(search: Callable[..., Any]) -> None:
    answer = search("zanzibartie", whole=True)

    assert answer["plan"]["respelt"] == {"zanzibartie": ["zanzibarit"]}
    assert answer["notes"]["warnings"] == [
        "no memory holds 'zanzibartie'; searched the nearest known words instead: 'zanzibarite'"
    ]


def test_words_of_a_path_are_found(search: Callable[..., list[str]]) -> None:
    assert search("77")[0] == search("notes/77.md")[0] == "notes/77.md"


def test_a_name_finds_where_it_stands(search: Callable[..., list[str]]) -> None:
    assert search("Ottoline Frobisher")[0] == search("frobisher")[0] == "notes/52.md"


def test_a_pasted_paragraph_finds_its_text(search: Callable[..., list[str]]) -> None:
    pasted = " ".join(note(44).split("\n\n")[1].split()[40:120])
    assert search(pasted)[0] == "notes/44.md"
