from __future__ import annotations

import click
import pytest

from speckit_memory.server.console.tables import fit_rows, widths
from speckit_memory.server.console.terminal import cells

ROWS = [
    ["flag", "state", "days", "evidence"],
    ["RRF", "permanent", "3", "the catalogue has it on, and so does the default"],
    ["MMR", "off", "12", ""],
]


def shown(room: int, *, headed: bool = True) -> list[str]:
    return [line.rstrip() for row in fit_rows(ROWS, (2,), room, headed) for line in row.split("\n")]


def test_a_text_is_wrapped_in_its_column_while_it_stays_readable() -> None:
    assert shown(48) == [
        "flag  state      days  evidence",
        "RRF   permanent     3  the catalogue has it on,",
        "                       and so does the default",
        "MMR   off          12",
    ]


def test_what_does_not_fit_follows_below_its_row() -> None:
    assert shown(30) == [
        "flag  state      days",
        "RRF   permanent     3",
        "    evidence the catalogue has",
        "    it on, and so does the",
        "    default",
        "MMR   off          12",
    ]
    assert shown(12, headed=False)[:3] == ["flag", "    state ·", "    days ·"]


@pytest.mark.parametrize("room", [20, 30, 40, 48, 60])
def test_every_line_fits(room: int) -> None:
    assert max(map(cells, shown(room))) <= room


def test_styles_and_wide_signs_are_measured_as_what_is_seen() -> None:
    assert widths([[click.style("abc", fg="red"), "全文"]]) == [3, 4]
    (row,) = fit_rows([[click.style("ok", fg="green"), "the store is consistent"]], (), 22 + 4 - 1, False)
    assert click.unstyle(row).split("\n")[0].rstrip() == "ok  the store is"
