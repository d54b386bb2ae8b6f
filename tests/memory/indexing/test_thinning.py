"""Passages that say little (feature I5, R7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.memory.indexing.documents import density, score, thin_passages
from speckit_memory.memory.store.records import Chunk
from tests.server.doors import call

PROSE = (
    "Scores of channels are fused after they were brought to one scale, because ranks tell less than scores do. " * 3
)
LINKS = "".join(
    f"- [A{number}](https://example.org/{number}/a-rather-long-path-of-some-page.html)\n" for number in range(9)
)
SIGNS = "| -- | ++ |\n|----|----|\n" + "| -- | == | ** | :: |\n" * 20
CODE = "def fused(ranks):\n    return sorted(ranks, key=lambda row: row.score)[:limit]\n"


@pytest.mark.requirement("I5.thinning")
def test_what_a_passage_scores() -> None:
    assert density("") == density("-- **") == 0.0
    assert density("alpha beta") == 1.0
    assert density("[alpha](https://example.org/beta)") == pytest.approx(5 / 33)
    assert density("alpha <!-- beta --> gamma") == pytest.approx(10 / 21)
    assert density("[a]: https://example.org\nalpha beta") == pytest.approx(9 / 32)
    assert score(Chunk("alpha --", anchor="use")) == pytest.approx(0.6 + 0.4 * 5 / 7)
    assert score(Chunk("alpha --")) == pytest.approx(0.4 * 5 / 7)


@pytest.mark.requirement("I5.thinning")
def test_what_says_little_is_left_out_unless_it_is_first_or_marked() -> None:
    every = [Chunk(text, anchor=anchor) for text in (PROSE, LINKS, SIGNS, CODE) for anchor in ("", "use")]

    kept = [(chunk.text, chunk.anchor) for chunk in thin_passages(every)]

    assert kept == [(PROSE, ""), (PROSE, "use"), (LINKS, "use"), (SIGNS, "use"), (CODE, ""), (CODE, "use")]
    assert [chunk.text for chunk in thin_passages([Chunk(SIGNS), Chunk(LINKS)])] == [SIGNS]


@pytest.mark.requirement("I5.thinning")
def test_thin_passages_are_left_out_where_the_workspace_says_so_and_only_there(workspace: Path) -> None:
    links = LINKS.replace("- [A3]", "- [Numbat3]") * 4
    text = "# Fusion\n\n" + f"{PROSE}\n\n" * 9 + f"## Further reading\n\n{links}\n## Code\n\n" + f"{PROSE}\n\n" * 9
    (workspace / "docs" / "long.md").write_text(text)

    def found(saving: str) -> tuple[int, bool, str]:
        (workspace / ".speckit").mkdir(exist_ok=True)
        (workspace / ".speckit" / "config.yaml").write_text(saving)
        assert call(workspace, ["index", "docs"]).status == 0
        rows = call(workspace, ["search", "numbat3", "--json"]).json["results"]
        shown = call(workspace, ["show", "docs/long.md", "--json"])
        return (
            call(workspace, ["stats", "--json"]).json["passages"],
            "docs/long.md" in [row["key"] for row in rows if "bm25" in row["channels"]],
            "yes" if "Numbat3" in shown.out else "no",
        )

    plain, thin, again = (found(saving) for saving in ("", "saving: {passages: thinned}\n", ""))

    assert plain == again
    assert plain[1:] == (True, "yes")
    assert thin[0] < plain[0]
    assert thin[1:] == (False, "yes")
