"""What a session is given beside the phrases that its prompt triggers: HOT memories whole, and what resembles them."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call
from tests.server.test_mcp_stdio import calls

LONG = (
    "The lantern of the harbour is lit at dusk. " + "It is lit by the keeper, who climbs the tower each evening. " * 8
)
DOCUMENTS = {
    "lantern.md": ("harbour lantern", LONG, 0),
    "faded.md": ("harbour lantern", LONG.replace("dusk", "dawn"), 30),
    "similar.md": ("", LONG.replace("keeper", "warden"), 0),
    "other.md": ("", "Bread is baked from flour, water and salt.", 0),
}


@pytest.fixture
def harbour(tmp_path: Path) -> Path:
    for name, (phrase, text, days) in DOCUMENTS.items():
        front = f"---\ntrigger_phrases: [{phrase}]\n---\n" if phrase else ""
        (tmp_path / name).write_text(f"{front}# {name.removesuffix('.md').title()}\n\n{text}\n", encoding="utf-8")
        at = time.time() - days * 86_400
        os.utime(tmp_path / name, (at, at))
    assert call(tmp_path, ["index", "."]).status == 0
    return tmp_path


def ask(root: Path, **arguments: object) -> dict[str, Any]:
    [answer] = calls(root, ("memory_match_triggers", {"prompt": "light the harbour lantern", **arguments}))
    return dict(answer["data"])


@pytest.mark.requirement("T3.tiered")
def test_a_session_is_given_what_is_hot_whole_and_the_rest_by_its_beginning(harbour: Path) -> None:
    rows = {row["key"]: row for row in ask(harbour, session_id="s")["results"]}
    assert (rows["lantern.md"]["state"], rows["faded.md"]["state"]) == ("HOT", "WARM")
    assert rows["lantern.md"]["memory_text"].count("each evening") == 8
    assert len(rows["faded.md"]["memory_text"]) <= 201
    for without in ({}, {"session_id": "s", "include_cognitive": False}):
        rows = {row["key"]: row for row in ask(harbour, **without)["results"]}
        assert max(len(row["memory_text"]) for row in rows.values()) <= 201


@pytest.mark.requirement("T3.related")
def test_what_resembles_the_matches_is_named_for_a_session(harbour: Path) -> None:
    found = ask(harbour, session_id="s")
    assert [row["key"] for row in found["related"]] == ["similar.md"]
    # two matches and the memory itself resemble one another: .25 · .5 · similarity / √2
    assert 0.05 < found["related"][0]["activation"] <= 0.125 / 2**0.5
    assert "related" not in ask(harbour)
    told = call(harbour, ["match", "light the harbour lantern", "--session", "s"]).out
    assert "related  similar.md (id 4)\n" in told
    assert [one["key"] for one in call(
        harbour, ["match", "light the harbour lantern", "--session", "s", "--json"]
    ).json["related"]] == ["similar.md"]  # fmt: skip


@pytest.mark.requirement("C16.matched")
def test_a_correction_changes_the_order_for_the_sake_of_what_its_words_trigger(tmp_path: Path) -> None:
    words = ("lighting", "lantern", "harbour")
    for number in range(12):
        title, text = (" ".join(words[: 1 + number % 3]) for _ in range(2))
        front = f"importance_weight: {0.3 + 0.05 * (number % 4):.2f}\n"
        front += "trigger_phrases: [harbour lantern]\n" if number == 3 else ""
        body = f"# Note {title} {number}\n\nA note of the {text * (1 + number // 3)} and {number} more things.\n"
        (tmp_path / f"note-{number}.md").write_text(f"---\n{front}---\n{body}", encoding="utf-8")
    assert call(tmp_path, ["index", "."]).status == 0

    def order(flag: str) -> list[str]:
        question = ["search", "actually, lighting the harbour lantern", "--json", "--pipeline", "catalogue"]
        return [row["key"] for row in call(tmp_path, question, {"SPECKIT_SIGNAL_VOCAB": flag}).json["results"]]

    assert order("true") != order("false")
