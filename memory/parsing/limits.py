"""Limits of one document: the excess is cut, and the report says what was cut and where (feature I9).

Ordinary documents stay far below them (docs/decisions/0022-limits-of-a-document.md). They ensure that no file, however
malformed, takes more than time linear in its length, or memory that other documents need.
"""

from __future__ import annotations

from collections.abc import Callable

from speckit_memory.errors import Problem, Where

LONGEST_HEADING = 800
"""Characters of a heading in the path of its passages."""
LONGEST_PATH = 1600
"""Characters of all headings in the path of a passage."""
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
"""Characters of reStructuredText whose structure is parsed."""
MOST_MARKUP = 200_000
"""HTML tags and character references, including malformed ones."""
MOST_PASSAGES = 10_000
MOST_WORDS = 1_200_000
MOST_DISTINCT_WORDS = 100_000
SHORT = 100_000
"""Characters up to which a text cannot exceed the limits of passages and words."""
MOST_PROBLEMS = 50
"""Problems of one code reported per document."""

_REST = "the text before this line can be found, the rest cannot"
_MEANING = {
    "heading": (
        f"a heading is longer than {LONGEST_HEADING:,} characters, or a path of headings than {LONGEST_PATH:,}",
        "it is shortened above its passages; all its words are found in the text",
    ),
    "front matter": (
        f"the front matter is longer than {LONGEST_FRONT_MATTER:,} characters",
        "it counts as text and declares nothing",
    ),
    "target": (f"the name of a linked memory is longer than {LONGEST_TARGET:,} characters", "there is no such link"),
    "trigger": (f"there are more than {MOST_TRIGGERS:,} trigger phrases", "only those before this place are used"),
    "link": (f"there are more than {MOST_LINKS:,} links to other memories", "only those before this place are used"),
    "link block": (
        f"there are more than {MOST_LINK_BLOCKS:,} causalLinks blocks, or they are longer than "
        f"{LONGEST_FRONT_MATTER:,} characters or declare more than {MOST_LINKS:,} links together",
        "only those before this place are used",
    ),
    "tag": (f"there are more than {MOST_TAGS:,} ANCHOR tags", "those from here on are ignored"),
    "outline": (
        f"the document is longer than {LONGEST_OUTLINED:,} characters",
        "from this line on, titles, labels and code are read as plain text",
    ),
    "markup": (f"there are more than {MOST_MARKUP:,} tags and character references", _REST),
    "block": (f"there are more than {MOST_BLOCKS:,} paragraphs", "from here on, passages are split by length"),
    "passage": (f"there are more than {MOST_PASSAGES:,} passages", _REST),
    "word": (f"there are more than {MOST_WORDS:,} words", _REST),
    "distinct word": (f"there are more than {MOST_DISTINCT_WORDS:,} different words", _REST),
}


class Limits:
    """Records the limits that one document exceeds. `first_line` is the number of its text's first line in the file."""

    def __init__(self, file: str = "", first_line: int = 1, placed: Callable[[int], int] = lambda line: line) -> None:
        """`placed` maps a line of the converted text to the line of the file."""
        self._file = file
        self._placed = placed
        self._first_line = first_line
        self._met: dict[str, tuple[int, int]] = {}

    def note(self, limit: str, text: str, offset: int) -> None:
        """Record that a limit was exceeded at an offset of the text; the first place is reported."""
        line = 0 if limit in self._met else self._placed(text.count("\n", 0, offset) + self._first_line)
        self.note_at(limit, line)

    def note_at(self, limit: str, line: int) -> None:
        """Record that a limit was exceeded in a line of the file."""
        first, times = self._met.get(limit, (line, 0))
        self._met[limit] = first, times + 1

    def problems(self) -> list[Problem]:
        """Return one problem per exceeded limit, with the first place and the consequence."""
        return [
            limit_exceeded(limit, Where(self._file, line, 1), f" ({times:,} times, first here)" if times > 1 else "")
            for limit, (line, times) in self._met.items()
        ]


def limit_exceeded(limit: str, where: Where, further: str = "") -> Problem:
    """Return the problem of a document that exceeds a limit, with the consequence."""
    what, kept = _MEANING[limit]
    return Problem("E094", f"{what}{further}: {kept}", where=where)


def cut_at_word(text: str, longest: int) -> str:
    """Return the text, cut at a word border with an ellipsis if it is longer than `longest` characters."""
    if len(text) <= longest:
        return text
    kept = text[:longest]
    border = kept.rfind(" ")
    return (kept[: border if border > longest // 2 else longest - 1]).rstrip() + "…"


def few(problems: list[Problem]) -> list[Problem]:
    """Return the first `MOST_PROBLEMS` of each code per file, one per limit, and a problem that counts the rest."""
    shown: list[Problem] = []
    counts: dict[tuple[str, str], int] = {}
    met: set[tuple[str, str]] = set()
    for problem in problems:
        file = problem.where.file if problem.where else ""
        # Limits carry their own count in the message, so one of each per file suffices.
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
