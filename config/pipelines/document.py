"""What one source says about a pipeline: the value that every other form of a pipeline is derived from (feature P2)."""

from __future__ import annotations

from collections import abc
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from speckit_memory.config.pipelines.pipeline_file import PipelineFile, shape
from speckit_memory.config.pipelines.sources import DEFAULT, NOTHING, path_named_in, pipeline_text, presets
from speckit_memory.config.yaml.plain_values import from_plain
from speckit_memory.config.yaml.reader import Node
from speckit_memory.config.yaml.reader import read as read_yaml
from speckit_memory.errors import Problem, SpeckitError, Where, nearest

GIVEN = "(mapping)"
"""How positions name a pipeline that is given as a mapping; the path of keys follows."""
TEXT = "(text)"
"""How positions name a text that comes from nowhere."""


@dataclass(frozen=True, slots=True)
class Document:
    """What one source says, with the place of every value, and everything that is wrong with it by itself.

    `source` is how it was asked for, and `file` how positions name it. `text` is None for a mapping.
    """

    source: str
    file: str
    text: str | None
    node: Node | None
    said: PipelineFile
    problems: tuple[Problem, ...]

    @property
    def start(self) -> Where:
        """The place of the document as a whole."""
        return Where(self.file, 1, 1) if self.text is not None else Where(self.file, 1, 0, "")


Source = str | Path | abc.Mapping[str, Any] | Document
"""Where a pipeline comes from: a preset's name, a path, a mapping of the form of a file, or what was read before."""


def read(source: Source) -> Document:
    """What a source says. A text is a preset's name or else a path; a `Path` is always a path.

    Raises SpeckitError (E110, E121) only when there is nothing to read; what is wrong with it joins the document.
    """
    match source:
        case Document():
            return source
        case abc.Mapping():
            node, problems = from_plain(source, GIVEN)
            return _document(GIVEN, GIVEN, None, node, problems)
        case Path():
            return _named(name_of_path(source))
    return _named(source)


def name_of_path(path: Path) -> str:
    """A path as a text that names no preset."""
    return f"./{path}" if str(path) in presets() else str(path)


def read_text(text: str, file: str = TEXT) -> Document:
    """What a text says. `file` names it in positions; paths that it names start there."""
    node, problems = read_yaml(text, file)
    return _document(file, file, text, node, problems)


def with_extended(document: Document) -> tuple[tuple[Document, ...], list[Problem]]:
    """The document and those that it extends, the nearest first, and what is wrong with who extends whom.

    What cannot be extended gives way to the shipped default.
    """
    documents = [document]
    problems: list[Problem] = []
    while (last := documents[-1]).said.extends != NOTHING:
        try:
            below = named_in(last.file, last.said.extends)
        except SpeckitError as error:
            problems += [_no_parent(problem, last.said) for problem in error.problems]
            below = _named(DEFAULT)
        if below.file in [nearer.file for nearer in documents]:
            problems.append(Problem("E114", f"'{below.file}' extends itself", where=last.said.extends_where))
            below = _named(DEFAULT)
        documents.append(below)
    return tuple(documents), problems


def named_in(file: str, source: str) -> Document:
    """What the preset or file says that a document names: a path starts at the `file` of the document, if it has one.

    Raises SpeckitError (E110, E121) when there is nothing to read.
    """
    return _named(source, _base(file))


def place_in(file: str, source: str) -> str:
    """The same preset or file, named so that it can be read from anywhere."""
    return source if source in presets() else str(path_named_in(source, _base(file)).absolute())


def _base(file: str) -> str:
    return "" if file in (GIVEN, TEXT) else file


def _named(source: str, named_in: str = "") -> Document:
    text, file = pipeline_text(source, named_in)
    return replace(read_text(text, file), source=source)


def _document(source: str, file: str, text: str | None, node: Node | None, unread: list[Problem]) -> Document:
    said, misshapen = shape(node, file)
    # what could not be read stands for nothing that could have a wrong form
    places = {problem.where for problem in unread}
    problems = (*unread, *(problem for problem in misshapen if problem.where not in places))
    return Document(source, file, text, node, said, problems)


def _no_parent(problem: Problem, said: PipelineFile) -> Problem:
    """That the file extended is not there, with everything that could be meant."""
    if problem.code == "E121":
        meant = nearest(said.extends, [*presets(), NOTHING])
        problem = replace(problem, message=f"'{said.extends}' is neither a file nor a preset; {meant}")
    return replace(problem, where=said.extends_where)
