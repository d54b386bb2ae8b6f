"""Reads a document's metadata file: `kep.yaml`, `metadata.yaml` or `meta.yaml` next to a README or an index.

Its keys and values are used like those of front matter: as words of the first passage, dates and links. It belongs to
the only document in its folder that is named README or index.
"""

from __future__ import annotations

import os
from errno import EFBIG
from pathlib import Path, PurePosixPath

from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES
from speckit_memory.config.yaml.reader import YamlMapping
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.memory.parsing.declarations.front_matter import fields_of
from speckit_memory.memory.parsing.declarations.front_matter_block import FrontMatterBlock, read_block
from speckit_memory.memory.parsing.declarations.metadata import MetadataField
from speckit_memory.memory.parsing.encoding import decode
from speckit_memory.memory.parsing.limits import LONGEST_FRONT_MATTER
from speckit_memory.memory.scanning import inside

NAMES = tuple(f"{name}.{suffix}" for name in ("kep", "metadata", "meta") for suffix in ("yaml", "yml"))
"""Names of metadata files; the first one present is used."""
DESCRIBED = ("readme", "index")
"""Names of the described documents, without suffix."""


def metadata_file(document: Path) -> Path | None:
    """Return the metadata file of a document; None if there is none, or if several documents of the folder qualify.
    Links are not followed."""
    if not _is_described(document.name):
        return None
    try:
        with os.scandir(document.parent) as listed:
            names = {entry.name: entry.is_file(follow_symlinks=False) for entry in listed}
    except OSError:
        return None
    if sum(map(_is_described, names)) != 1:
        return None
    return next((document.parent / name for name in NAMES if names.get(name)), None)


def changed_ns(document: Path) -> int:
    """Return the ctime of a document's metadata file in nanoseconds, 0 if it has none."""
    found = metadata_file(document)
    try:
        return found.stat(follow_symlinks=False).st_ctime_ns if found else 0
    except OSError:
        return 0


def read_metadata(document: Path, key: str) -> tuple[str, str]:
    """Return the key and the text of the metadata file of a document with this key; empty strings if it has none.

    Raises SpeckitError (E099) if it cannot be read.
    """
    found = metadata_file(document)
    if found is None:
        return "", ""
    name = (PurePosixPath(key).parent / found.name).as_posix()
    try:
        content = inside.read(document.parents[len(PurePosixPath(key).parts) - 1], name, LONGEST_FRONT_MATTER)
        return name, decode(content.data, name)
    except FileNotFoundError:  # deleted since it was found
        return "", ""
    except OSError as error:
        large = f"it is larger than {LONGEST_FRONT_MATTER:,} bytes"
        why = large if error.errno == EFBIG else inside.reason(error)
    except SpeckitError as error:
        why = error.problems[0].message
    raise SpeckitError("E099", f"{name} is not used for {PurePosixPath(key).name}: {why}")


def parse_metadata(text: str, name: str) -> tuple[tuple[MetadataField, ...], list[Problem]]:
    """Return the fields of a metadata file, and problems for the parts that are not understood."""
    found = read_block(text, FrontMatterBlock("yaml", 0, len(text), len(text), 1), name)
    problems = [Problem("E099", problem.message, where=problem.where) for problem in found.problems]
    if isinstance(found.node, YamlMapping):
        return fields_of(found.node.entries), problems
    if text.strip() and not problems:
        problems = [Problem("E099", f"{name} must map keys to values", where=Where(name, 1, 1))]
    return (), problems


def _is_described(name: str) -> bool:
    path = PurePosixPath(name.lower())
    return path.stem in DESCRIBED and path.suffix in DOCUMENT_SUFFIXES
