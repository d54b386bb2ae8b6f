"""Finds the text of a pipeline: a path, the name of a preset, or the shipped default."""

from __future__ import annotations

from importlib import resources
from os.path import lexists, normpath
from pathlib import Path

from speckit_memory.config.files.paths import named_path
from speckit_memory.config.files.regular_file import read_text
from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.errors.echo import abridge

DEFAULT = "default"
NOTHING = "none"
"""The value of `extends` for a pipeline that inherits nothing."""
SHIPPED = "(shipped) config/"
"""Prefix of package files in positions: a user may well have their own `config/pipeline.yaml`."""


def presets() -> list[str]:
    """The names of the shipped pipelines; `default` is `config/pipeline.yaml`."""
    folder = resources.files("speckit_memory.config").joinpath("presets")
    names = (item.name.removesuffix(".yaml") for item in folder.iterdir() if item.name.endswith(".yaml"))
    return [DEFAULT, *sorted(names)]


def path_named_in(source: str, named_in: str) -> Path:
    """The path of a source, relative to the file `named_in` that names it, or to the working directory."""
    return Path(normpath(Path(named_in).parent / named_path(source, "the pipeline")))


def pipeline_text(source: str, named_in: str = "") -> tuple[str, str]:
    """The text of a pipeline file and its name in positions.

    `source` is the name of a preset, or else a path: relative to the file `named_in` that names it, or to the working
    directory. Raises E121 with the nearest preset if it is neither, E110 if the file cannot be read.
    """
    if source in presets():
        relative = "pipeline.yaml" if source == DEFAULT else f"presets/{source}.yaml"
        return resources.files("speckit_memory.config").joinpath(relative).read_text(
            encoding="utf-8"
        ), f"{SHIPPED}{relative}"
    path = path_named_in(source, named_in)
    if not lexists(path):
        hint = f"Paths in a file are relative to it: there is no {path}." if named_in else ""
        raise SpeckitError(
            "E121", f"'{abridge(source)}' is neither a file nor a preset; {nearest(source, presets())}", hint=hint
        )
    try:
        return read_text(path), str(path)
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is not UTF-8 text"
        raise SpeckitError("E110", f"'{source}' cannot be read: {reason}") from error
