"""What the environment holds that nothing reads, most likely a misspelt flag."""

from __future__ import annotations

from collections.abc import Mapping

from server.failures import DEBUG
from server.logs import CONTENT


def remarks(environ: Mapping[str, str]) -> list[str]:
    """One sentence per variable that begins as ours do and has no effect; nothing fails for it."""
    from config.flags import unknown_variables  # reads YAML, which `--help` does without

    return unknown_variables(environ, (DEBUG, CONTENT))
