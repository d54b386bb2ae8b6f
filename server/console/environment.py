"""Finds environment variables of ours that have no effect, most likely misspelt flags."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speckit_memory.config.flags.flag_files import FlagFile


def remarks(environ: Mapping[str, str]) -> list[str]:
    """One remark per variable that has our prefix but no effect."""
    from speckit_memory.config.flags.flags import unknown_variables  # reads YAML, which `--help` does without

    return unknown_variables(environ, offered=lambda: flags_of_extensions(environ))


def flags_of_extensions(environ: Mapping[str, str]) -> Sequence[FlagFile]:
    """The flags declared by installed extensions; loads the extensions that the environment names."""
    from speckit_memory.engine.components import registry

    return registry(environ).flag_files()
