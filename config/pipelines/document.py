"""One source of a pipeline as read, from which every other form of a pipeline is derived (feature P2)."""

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
"""The name in positions of a pipeline given as a mapping; the path of keys follows."""
TEXT = "(text)"
"""The name in positions of a text without a file."""


@dataclass(frozen=True, slots=True)
class ConfigDocument:
    """The contents of one source, with the place of every value, and the problems of this source alone.

    `source` is the name by which it was requested, `file` its name in positions. `text` is None for a mapping.
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


Source = str | Path | abc.Mapping[str, Any] | ConfigDocument
"""A pipeline: the name of a preset, a path, a mapping in the form of a file, or a document read before."""


def read(source: Source) -> ConfigDocument:
    """Read a source. A text is the name of a preset, or else a path; a `Path` is always a path.

    Raises SpeckitError (E110, E121) only if there is nothing to read; other problems are part of the document.
    """
    match source:
        case ConfigDocument():
            return source
        case abc.Mapping():
            node, problems = from_plain(source, GIVEN)
            return _document(GIVEN, GIVEN, None, node, problems)
        case Path():
            return _load_named(name_of_path(source))
    return _load_named(source)


def name_of_path(path: Path) -> str:
    """A path in a form that is never the name of a preset."""
    return f"./{path}" if str(path) in presets() else str(path)


def read_text(text: str, file: str = TEXT) -> ConfigDocument:
    """Read a text. `file` is its name in positions and the start of relative paths in it."""
    node, problems = read_yaml(text, file)
    return _document(file, file, text, node, problems)


def with_extended(document: ConfigDocument) -> tuple[tuple[ConfigDocument, ...], list[Problem]]:
    """The document and those that it extends, nearest first, and problems with `extends`.

    The shipped default replaces a parent that cannot be used.
    """
    documents = [document]
    problems: list[Problem] = []
    # Ends: the shipped default extends nothing, and a cycle is replaced by the default.
    while (last := documents[-1]).said.extends != NOTHING:
        try:
            below = named_in(last.file, last.said.extends)
        except SpeckitError as error:
            problems += [_no_parent(problem, last.said) for problem in error.problems]
            below = _load_named(DEFAULT)
        if below.file in [nearer.file for nearer in documents]:
            problems.append(Problem("E114", f"'{below.file}' extends itself", where=last.said.extends_where))
            below = _load_named(DEFAULT)
        documents.append(below)
    return tuple(documents), problems


def named_in(file: str, source: str) -> ConfigDocument:
    """Read a preset or file named in a document; paths are relative to the document's `file`, if it has one.

    Raises SpeckitError (E110, E121) if there is nothing to read.
    """
    return _load_named(source, _base(file))


def place_in(file: str, source: str) -> str:
    """The same preset or file, named independently of the document."""
    return source if source in presets() else str(path_named_in(source, _base(file)).absolute())


def _base(file: str) -> str:
    return "" if file in (GIVEN, TEXT) else file


def _load_named(source: str, named_in: str = "") -> ConfigDocument:
    text, file = pipeline_text(source, named_in)
    return replace(read_text(text, file), source=source)


def _document(source: str, file: str, text: str | None, node: Node | None, unread: list[Problem]) -> ConfigDocument:
    said, misshapen = shape(node, file)
    # a part that could not be read is empty here: its shape is not reported as well
    places = {problem.where for problem in unread}
    problems = (*unread, *(problem for problem in misshapen if problem.where not in places))
    return ConfigDocument(source, file, text, node, said, problems)


def _no_parent(problem: Problem, said: PipelineFile) -> Problem:
    """The problem of a missing parent, with suggestions."""
    if problem.code == "E121":
        meant = nearest(said.extends, [*presets(), NOTHING])
        problem = replace(problem, message=f"'{said.extends}' is neither a file nor a preset; {meant}")
    return replace(problem, where=said.extends_where)
