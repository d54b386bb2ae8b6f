"""What is typed as it stands in a text comes first, at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.memory.store.file.test_every_schema import make_older
from tests.server.doors import call

FILLER = "\nConsumers and their intentions are what this is about: intended, consuming, consumed.\n"
NOTES = {
    "forms.md": f"# Intended consumers\n{FILLER * 3}",
    "more.md": f"# Consumer intentions\n{FILLER * 2}",
    "typed.md": "# Minutes\n\nLunch was served. What the consumer may intend was left open. The weather was fine, and "
    "in the future there might be more of it. " + "Nobody had brought an umbrella, as usual. " * 12 + "\n",
    "future.md": "# The future\n\nFuture plans for the future: what might be.\n",
    "paper.md": "# Paper\n\n"
    + " ".join(f"pulp{one}{two}" for one in "aeiouy" for two in "bcdfghklmnprst")
    + " as ADR 3 asks.\n",
    "adr/0003-sessions.md": "# Sessions\n\nWe keep them.\n",
}


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("typed")
    for name, text in NOTES.items():
        (root / name).parent.mkdir(exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    assert call(root, ["index", "."]).status == 0
    return root


def first(root: Path, *arguments: str) -> Any:
    ran = call(root, ["search", "--json", *arguments])
    assert ran.status == 0, ran.out
    return ran.json["results"][0]["key"]


@pytest.mark.requirement("C2.typed")
@pytest.mark.parametrize("query", ["intend consumer", "in the future there might"])
def test_a_text_that_holds_what_is_typed_comes_first(root: Path, query: str) -> None:
    # of a phrase in many passages this channel reads none: here in more than one
    many = ("--set", "phrase.max_read=1")

    assert first(root, query, *many) == "typed.md"
    assert first(root, query, *many, "--set", "typed.channels=[]") != "typed.md"


@pytest.mark.requirement("C2.typed", "M1.migrations")
def test_a_store_that_kept_no_words_as_written_finds_them_after_it_is_opened(root: Path) -> None:
    make_older(root / "memory.db", "0022")

    assert first(root, "intend consumer") == "typed.md"
    assert call(root, ["doctor"]).status == 0


@pytest.mark.requirement("C2", "C3")
def test_a_pasted_paragraph_comes_before_what_it_refers_to(root: Path) -> None:
    pasted = NOTES["paper.md"].partition("\n\n")[2]

    assert first(root, pasted) == "paper.md"
    assert first(root, pasted, "--set", "identifier.max_words=1000") == "adr/0003-sessions.md"
