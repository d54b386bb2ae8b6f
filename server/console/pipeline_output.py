"""Writes pipeline files that commands create, with the command in a comment."""

from __future__ import annotations

import os
import re
import shlex
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from speckit_memory.config.files import written_file
from speckit_memory.config.files.paths import is_there
from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from speckit_memory.config.pipelines.document import ConfigDocument

_MADE = re.compile(r"^# Made on \d{4}-\d\d-\d\d by:$", re.MULTILINE)


def check_target(file: Path, source: str) -> None:
    """Raises SpeckitError (E014) if the pipeline may not be written to the file.

    Only files written by a command, or the pipeline's own source, may be overwritten.
    """
    itself = is_there(file) and is_there(Path(source)) and file.samefile(source)
    written_file.check_target(file, lambda beginning: itself or _MADE.search(beginning) is not None)


def write_pipeline(
    file: Path,
    source: ConfigDocument,
    overrides: Mapping[str, str],
    heading: Sequence[str],
    remarks: Mapping[str, Sequence[str]],
    *,
    extending: bool = False,
) -> None:
    """Writes a pipeline with overrides applied, named after the file.

    Args:
        file: The file to write.
        source: The pipeline.
        overrides: New values by "STEP.PARAM".
        heading: Comment lines at the top, before the command.
        remarks: Comment lines by the name of the value they precede.
        extending: Whether the file only extends the source with the overrides; ignored if it replaces the source.

    Raises:
        SpeckitError: E014 if the file cannot be written.
    """
    from speckit_memory.engine.pipelines.pipelines import extension, pipeline_text_with

    origin = [f"Made on {time.strftime('%Y-%m-%d')} by:", f"  speckit-memory {shlex.join(sys.argv[1:])}"]
    # compare by file, not by name: both may be reached by different paths
    itself = is_there(file) and is_there(Path(source.source)) and file.samefile(source.source)
    write = extension if extending and not itself else pipeline_text_with
    text = write(source, os.environ, overrides, file=file, heading=[*heading, *origin], remarks=remarks)
    try:
        with written_file.written(file) as stream:
            stream.write(text)
    except OSError as error:
        raise SpeckitError("E014", f"'{file}' cannot be written: {error.strerror}") from error
