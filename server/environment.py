"""What the environment holds that nothing reads, most likely a misspelt flag."""

from __future__ import annotations

from collections.abc import Mapping

from speckit_memory.server.failures import DEBUG
from speckit_memory.server.logs import CONTENT


def remarks(environ: Mapping[str, str]) -> list[str]:
    """One sentence per variable that begins as ours do and has no effect; nothing fails for it."""
    from speckit_memory.config.flags import unknown_variables  # reads YAML, which `--help` does without

    return unknown_variables(environ, (DEBUG, CONTENT))
