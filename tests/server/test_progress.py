from __future__ import annotations

import io
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from speckit_memory.server.console.progress import ProgressReporter
from tests.server.terminals import ERASE, on_terminal

WIDTHS = (20, 25, 40, 61, 62, 80, 200)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("FORCE_COLOR", "CLICOLOR", "CLICOLOR_FORCE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def drawn(columns: int, monkeypatch: pytest.MonkeyPatch, label: str, *updates: tuple[int, int]) -> list[str]:
    """The lines that a bar of one update each second writes."""
    monkeypatch.setenv("COLUMNS", str(columns))
    seconds = iter(range(1000))
    stream = Terminal()
    with ProgressReporter(label, stream, lambda: float(next(seconds))) as bar:
        for done, total in updates:
            bar.update(done, total)
    return stream.getvalue().split(ERASE)[1:-1]


def test_without_a_terminal_a_line_with_rate_and_time_left_is_written_every_five_seconds() -> None:
    times = iter([0.0, 1.0, 5.0, 6.0, 11.0])
    stream = io.StringIO()
    with ProgressReporter("indexing", stream, lambda: next(times)) as bar:
        for done in (10, 20, 30, 40):
            bar.update(done, 1000)
    assert stream.getvalue() == ("indexing: 20 of 1,000, 2.5/s, 6:32 left\nindexing: 40 of 1,000, 3.0/s, 5:20 left\n")


@pytest.mark.parametrize(("term", "bar"), [("xterm", True), ("dumb", False), ("unknown", False)])
def test_a_terminal_that_cannot_go_back_on_a_line_gets_lines(
    monkeypatch: pytest.MonkeyPatch, term: str, bar: bool
) -> None:
    monkeypatch.setenv("TERM", term)
    stream = Terminal()
    with ProgressReporter("indexing", stream, lambda: 0.0) as reporter:
        reporter.update(1, 2)
    assert ("\x1b" in stream.getvalue()) is bar


def test_on_a_terminal_a_bar_is_drawn_and_removed() -> None:
    stream = Terminal()
    with ProgressReporter("indexing", stream, lambda: 0.0) as bar:
        bar.update(1, 2, "search")
        bar.update(2, 2, "search")
    assert f"indexing: search [{'█' * 15}{'·' * 15}] 1 of 2" in stream.getvalue()
    assert f"[{'█' * 30}] 2 of 2" in stream.getvalue()
    assert stream.getvalue().endswith("\r\x1b[K")


@pytest.mark.parametrize(
    ("columns", "expected"),
    [
        (80, "indexing [███████·······················] 500 of 2,000 50/s 0:30 left"),
        (62, "indexing [█████·················] 500 of 2,000 50/s 0:30 left"),
        (45, "indexing [██········] 500 of 2,000 0:30 left"),
        (40, "indexing [███··········] 25 % 0:30 left"),
        (20, "indexing 25 % 0:30"),
    ],
)
def test_the_narrower_the_terminal_the_less_is_said(
    monkeypatch: pytest.MonkeyPatch, columns: int, expected: str
) -> None:
    line = drawn(columns, monkeypatch, "indexing", (0, 2000), *((50 * n, 2000) for n in range(1, 11)))[-1]
    assert line == expected


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.parametrize("label", ["indexing", "日本語のデータセット: default without regularise", "x" * 300])
@pytest.mark.parametrize("total", [0, 7, 1_234_567])
def test_no_line_fills_the_terminal(monkeypatch: pytest.MonkeyPatch, columns: int, label: str, total: int) -> None:
    lines = drawn(columns, monkeypatch, label, *((total * n // 7 or n, total) for n in range(1, 8)))
    assert len(lines) == 7
    assert max(map(cell_len, lines)) < columns
    assert all(line.strip() for line in lines)


@pytest.mark.parametrize(("step", "said"), [(1, "1.0/s"), (25, "25/s"), (2500, "2,500/s")])
def test_the_rate_is_that_of_the_last_updates(monkeypatch: pytest.MonkeyPatch, step: int, said: str) -> None:
    lines = drawn(120, monkeypatch, "indexing", *((step * n, step * 1000) for n in range(1, 5)))
    assert f" {said} " in lines[-1]
    assert f" {said} " not in lines[0]


def test_every_phase_has_a_rate_of_its_own() -> None:
    seconds = iter(range(100))
    stream = Terminal()
    with ProgressReporter("eval", stream, lambda: float(next(seconds))) as bar:
        for done in range(0, 500, 100):
            bar.update(done, 1000, "index")
        for done in range(5):
            bar.update(done, 10, "search")
    last = stream.getvalue().split(ERASE)[-2]
    assert last.startswith("eval: search ")
    assert "1.0/s" in last


def test_nothing_is_written_for_work_that_is_soon_done() -> None:
    stream = io.StringIO()
    with ProgressReporter("indexing", stream, lambda: 0.0) as bar:
        bar.update(5, 5)
    assert stream.getvalue() == ""


@pytest.fixture
def written(tmp_path: Path) -> Callable[[], Path]:
    def write() -> Path:
        for number in range(40):
            (tmp_path / f"note-{number}.md").write_text(f"# Note {number}\n\nThe text of note {number}.\n")
        return tmp_path

    return write


@pytest.mark.parametrize("columns", WIDTHS)
@pytest.mark.usefixtures("processes")
def test_index_leaves_nothing_of_its_bar_on_the_terminal(written: Callable[[], Path], columns: int) -> None:
    shown = on_terminal(written(), ["index", "."], columns)
    assert shown.status == 0, shown.text
    assert any("100 %" in line or "40 of 40" in line for line in shown.drawn)
    assert shown.widest <= columns
    assert not any("█" in line or "%" in line for line in shown.lines)


@pytest.mark.parametrize(
    ("env", "bar", "colour"),
    [
        ({}, True, True),
        ({"NO_COLOR": "1"}, True, False),
        ({"CLICOLOR": "0"}, True, False),
        ({"TERM": "dumb"}, False, False),
        ({"TERM": "dumb", "FORCE_COLOR": "1"}, False, False),
    ],
)
@pytest.mark.usefixtures("processes")
def test_the_bar_keeps_to_what_the_environment_says(
    written: Callable[[], Path], env: dict[str, str], bar: bool, colour: bool
) -> None:
    shown = on_terminal(written(), ["index", "."], 80, env)
    assert ("\x1b[K" in shown.text) is bar
    assert (re.search(r"\x1b\[[0-9;]*m", shown.text) is not None) is colour


@pytest.mark.usefixtures("processes")
def test_json_stays_alone_on_standard_output_while_the_bar_is_drawn(written: Callable[[], Path]) -> None:
    shown = on_terminal(written(), ["index", ".", "--json"], 80, piped=True)
    assert shown.piped.startswith("{")
    assert "\x1b" not in shown.piped
    assert "\x1b[K" in shown.text
    assert "created" not in shown.text
