"""Writes the pipeline files that commands make, with the command in a comment."""

from __future__ import annotations

import os
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from config.errors import SpeckitError


def check_target(file: Path) -> None:
    """Raises SpeckitError (E014) when a file could not be written there: better now than after an hour of work."""
    if file.is_dir():
        raise SpeckitError("E014", f"'{file}' is a folder; the name of a file is needed")
    if not file.absolute().parent.is_dir():
        raise SpeckitError("E014", f"the folder '{file.parent}' does not exist")


def write_pipeline(
    file: Path,
    source: str,
    overrides: Mapping[str, str],
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
) -> None:
    """Writes a pipeline with overrides applied, named like the file. Raises SpeckitError."""
    from engine.pipelines import written

    origin = [f"Made on {time.strftime('%Y-%m-%d')} by:", f"  speckit-memory {shlex.join(sys.argv[1:])}"]
    text = written(source, os.environ, overrides, name=file.stem, heading=[*heading, *origin], remarks=remarks)
    try:
        file.write_text(text, encoding="utf-8")
    except OSError as error:
        raise SpeckitError("E014", f"'{file}' cannot be written: {error.strerror}") from error
