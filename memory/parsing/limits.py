"""How much one document may ask for: what is over a limit is cut, and the report says what and where (feature I9).

Ordinary documents stay far below (docs/decisions/0022-limits-of-a-document.md). The limits are there so that no file,
whatever is in it, takes more time than its length accounts for, or memory that the others need.
"""

from __future__ import annotations

from collections.abc import Callable

from speckit_memory.errors import Problem, Where

LONGEST_HEADING = 800
"""Characters of a heading as it stands above each of its passages."""
LONGEST_PATH = 1600
"""Characters of all headings that stand above a passage."""
LONGEST_FRONT_MATTER = 100_000
"""Characters."""
LONGEST_TARGET = 1000
"""Characters of the name of a linked memory."""
MOST_TRIGGERS = 500
MOST_LINKS = 1000
MOST_LINK_BLOCKS = 1000
MOST_TAGS = 5000
"""ANCHOR tags."""
MOST_BLOCKS = 250_000
"""Paragraphs, headings, tables and fences."""
LONGEST_OUTLINED = 500_000
"""Characters of reStructuredText whose structure is looked for."""
MOST_MARKUP = 200_000
"""Tags and references to characters of HTML, or what looks like the beginning of one."""
MOST_PASSAGES = 10_000
MOST_WORDS = 1_200_000
MOST_DISTINCT_WORDS = 100_000
SHORT = 100_000
"""Characters of a text that cannot have more passages or words than these."""
MOST_PROBLEMS = 50
"""Problems of one code that a document is reported with."""

_REST = "the text before this line is found, the rest is not"
_MEANING = {
    "heading": (
        f"a heading is longer than {LONGEST_HEADING:,} characters, or those above one another than {LONGEST_PATH:,}",
        "its beginning stands above its passages; all its words are found in the text",
    ),
    "front matter": (
        f"the front matter is longer than {LONGEST_FRONT_MATTER:,} characters",
        "it counts as text and declares nothing",
    ),
    "target": (f"the name of a linked memory is longer than {LONGEST_TARGET:,} characters", "there is no such link"),
    "trigger": (f"there are more than {MOST_TRIGGERS:,} trigger phrases", "those before this place count"),
    "link": (f"there are more than {MOST_LINKS:,} links to other memories", "those before this place count"),
    "link block": (
        f"there are more than {MOST_LINK_BLOCKS:,} causalLinks blocks, or they are longer than "
        f"{LONGEST_FRONT_MATTER:,} characters or declare more than {MOST_LINKS:,} links together",
        "those before this place count",
    ),
    "tag": (f"there are more than {MOST_TAGS:,} ANCHOR tags", "from here on they name no sections"),
    "outline": (
        f"the document is longer than {LONGEST_OUTLINED:,} characters",
        "from this line on titles, labels and code are text as any other",
    ),
    "markup": (f"there are more than {MOST_MARKUP:,} tags and references to characters", _REST),
    "block": (f"there are more than {MOST_BLOCKS:,} paragraphs", "from here on passages are cut by their length"),
    "passage": (f"there are more than {MOST_PASSAGES:,} passages", _REST),
    "word": (f"there are more than {MOST_WORDS:,} words", _REST),
    "distinct word": (f"there are more than {MOST_DISTINCT_WORDS:,} different words", _REST),
}


class Limits:
    """The limits that one document has met. `first_line` is the number of its text's first line in the file."""

    def __init__(self, file: str = "", first_line: int = 1, placed: Callable[[int], int] = lambda line: line) -> None:
        """`placed` gives the line of the file for one of a text that was made of it."""
        self._file = file
        self._placed = placed
        self._first_line = first_line
        self._met: dict[str, tuple[int, int]] = {}

    def note(self, limit: str, text: str, offset: int) -> None:
        """Notes that a limit was met at an offset of the text; the first place counts."""
        line = 0 if limit in self._met else self._placed(text.count("\n", 0, offset) + self._first_line)
        self.note_at(limit, line)

    def note_at(self, limit: str, line: int) -> None:
        """The same in a line of the file."""
        first, times = self._met.get(limit, (line, 0))
        self._met[limit] = first, times + 1

    def problems(self) -> list[Problem]:
        """One problem for each limit that was met, with the first place and what was kept."""
        return [
            over(limit, Where(self._file, line, 1), f" ({times:,} times, first here)" if times > 1 else "")
            for limit, (line, times) in self._met.items()
        ]


def over(limit: str, where: Where, further: str = "") -> Problem:
    """The problem of a document that is over a limit, and what was kept of it."""
    what, kept = _MEANING[limit]
    return Problem("E094", f"{what}{further}: {kept}", where=where)


def cut_at_word(text: str, longest: int) -> str:
    """The text, cut at a word border with an ellipsis when it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    kept = text[:longest]
    border = kept.rfind(" ")
    return (kept[: border if border > longest // 2 else longest - 1]).rstrip() + "…"


def few(problems: list[Problem]) -> list[Problem]:
    """The first problems of each code in each file, one of each limit, and one more that counts those left out."""
    shown: list[Problem] = []
    counts: dict[tuple[str, str], int] = {}
    met: set[tuple[str, str]] = set()
    for problem in problems:
        file = problem.where.file if problem.where else ""
        if problem.code == "E094":
            if (problem.message, file) not in met:
                shown.append(problem)
            met.add((problem.message, file))
            continue
        place = problem.code, file
        counts[place] = counts.get(place, 0) + 1
        if counts[place] <= MOST_PROBLEMS:
            shown.append(problem)
    last = {(problem.code, problem.where.file if problem.where else ""): problem for problem in shown}
    for place, count in counts.items():
        if count > MOST_PROBLEMS:
            message = f"{count - MOST_PROBLEMS:,} further problems of this kind in the same document"
            shown.append(Problem(place[0], message, where=last[place].where))
    return shown
