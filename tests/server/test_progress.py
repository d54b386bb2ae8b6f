from __future__ import annotations

import io

from server.progress import ProgressReporter


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_without_a_terminal_a_line_is_written_every_five_seconds() -> None:
    times = iter([0.0, 1.0, 5.0, 6.0, 10.0])
    stream = io.StringIO()
    with ProgressReporter("indexing", stream, lambda: next(times)) as bar:
        for done in (10, 20, 30, 40):
            bar.update(done, 1000)
    assert stream.getvalue() == "indexing: 20 of 1,000\nindexing: 40 of 1,000\n"


def test_on_a_terminal_a_bar_is_drawn_and_removed() -> None:
    stream = Terminal()
    with ProgressReporter("indexing", stream, lambda: 0.0) as bar:
        bar.update(1, 2, "search")
        bar.update(2, 2, "search")
    drawn = stream.getvalue()
    assert f"indexing: search [{'█' * 15}{'·' * 15}] 1 of 2" in drawn
    assert f"[{'█' * 30}] 2 of 2" in drawn
    assert drawn.endswith("\r\x1b[K")


def test_nothing_is_written_for_work_that_is_soon_done() -> None:
    stream = io.StringIO()
    with ProgressReporter("indexing", stream, lambda: 0.0) as bar:
        bar.update(5, 5)
    assert stream.getvalue() == ""
