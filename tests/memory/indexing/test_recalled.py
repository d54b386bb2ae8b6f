from __future__ import annotations

from typing import Any

import pytest

from speckit_memory.memory.intake.self_quotes import ALLOW, SelfQuote, leave_out
from speckit_memory.server.replies.answer_form import Why
from speckit_memory.server.views.rows.row_text import SearchRow

ROW = {"id": 17, "key": "docs/rrf.md", "title": "Rank fusion", "tier": "normal", "state": "HOT", "lines": [3, 9],
       "heading": "",
       "memory_text": "We fuse by rank.\n\n- one", "reason": "surfaced because it was found by bm25 (rank 1)",
       "notes": {"superseded_by": [{"id": 18, "key": "new.md", "title": "New"}]}}  # fmt: skip
TERMINAL = (
    " 1. 0.9120  Rank fusion\n    docs/rrf.md:3 · id 17 · normal · HOT\n    superseded by New (new.md, id 18)\n"
    "    │ We fuse by rank.\n    │\n    │ - one\n"
)


@pytest.mark.requirement("I9.recalled")
@pytest.mark.parametrize("prefix", ["", "> ", "    "])
@pytest.mark.parametrize("row", [ROW, ROW | {"title": ROW["key"], "lines": [3, 3], "notes": {}}])
@pytest.mark.parametrize("why", ["full", "none"])
def test_a_row_of_an_answer_is_left_out_wherever_it_was_pasted(prefix: str, row: dict[str, Any], why: Why) -> None:
    pasted = SearchRow(1, row, why).text(row["memory_text"]).strip("\n").split("\n")
    text = "\n".join(["# Mine", "before", *(prefix + line for line in pasted), "after", ""])

    kept, found = leave_out(text)

    assert found == (SelfQuote("docs/rrf.md", 3, 2 + len(pasted)),)
    assert kept.split("\n") == ["# Mine", "before", *[""] * len(pasted), "after", ""]


@pytest.mark.requirement("I9.recalled")
def test_a_row_at_the_end_of_a_file_is_left_out() -> None:
    assert leave_out("# Mine\n## 1. docs/rrf.md:3 · id 17\n> We fuse by rank.")[0] == "# Mine\n\n"


@pytest.mark.requirement("I9.recalled")
def test_rows_of_the_terminal_and_fields_of_json_are_left_out() -> None:
    kept, found = leave_out(f"before\n{TERMINAL}after\n" + '{"id": 1, "memory_text": "a \\"b\\" c", "score": 1}\n')

    assert kept == "before\n" + "\n" * 6 + 'after\n{"id": 1, "memory_text": "", "score": 1}\n'
    assert [(block.first_line, block.last_line) for block in found] == [(2, 7), (9, 9)]


@pytest.mark.requirement("I9.recalled")
@pytest.mark.parametrize(
    "text",
    [
        "## 1. Introduction\nwith id 17\n> a quotation\n",
        "## 1. docs/rrf.md\nRank fusion · id 17\nno quotation\n",
        "## 1. docs/rrf.md · id 17\nno quotation\n",
        "## 1. id 17\n> a quotation\n",
        "1. docs/rrf.md · id 17\n> a quotation\n",
        "## 1. docs/rrf.md\nRank fusion · id seventeen\n> a quotation\n",
        " 1. 0.9120  Rank fusion\n    docs/rrf.md:3 · id 17 · normal\nplain\n",
        f"<!-- {ALLOW} -->\n{TERMINAL}",
        'The field "memory_text" holds stored text · id 4',
        "",
    ],
)
def test_what_only_looks_like_an_answer_stays(text: str) -> None:
    assert leave_out(text) == (text, ())
