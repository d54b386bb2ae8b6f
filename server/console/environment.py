"""What the environment holds that nothing reads, most likely a misspelt flag."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from speckit_memory.config.flags.flag_files import FlagFile


def remarks(environ: Mapping[str, str]) -> list[str]:
    """One sentence per variable that begins as ours do and has no effect; nothing fails for it."""
    from speckit_memory.config.flags.flags import unknown_variables  # reads YAML, which `--help` does without

    return unknown_variables(environ, offered=lambda: flags_of_extensions(environ))


def flags_of_extensions(environ: Mapping[str, str]) -> Sequence[FlagFile]:
    """The flags that installed extensions declare, which are loaded for it where this environment says."""
    from speckit_memory.engine.components import registry

    return registry(environ).flag_files()
