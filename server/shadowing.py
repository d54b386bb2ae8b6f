"""Start-up check: are our packages ours? Their names are generic, so another folder or distribution can hide them.

This module imports nothing of ours: the package it would need may be the very one that is shadowed.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path

PACKAGES = ("channels", "config", "engine", "evaluation", "memory", "pipeline", "server", "signals", "stages")
CODE = "E122"
HINT = "A folder or another distribution hides one of the product's packages."
ACTIONS = ("start the command from another folder", "unset PYTHONPATH", "remove the other distribution")


def shadowed(packages: Sequence[str] = PACKAGES, home: Path | None = None) -> list[str]:
    """One message for every package that Python would not load from `home`, the folder of this installation.

    Only finds the packages; none of them is imported.
    """
    home = home or Path(__file__).resolve().parent.parent
    messages = []
    for package in packages:
        spec = find_spec(package)
        found = Path(spec.origin).resolve() if spec is not None and spec.origin is not None else None
        expected = home / package / "__init__.py"
        if found != expected:
            instead = f"'{found}' hides" if found is not None else "nothing was found for"
            messages.append(f"{instead} the package '{package}' of '{expected.parent}'")
    return messages


def report(messages: Sequence[str], as_json: bool) -> str:
    """The messages as every other failure of the product looks: the error object, or lines for a reader."""
    if as_json:
        errors = [{"code": CODE, "message": message, "hint": HINT, "actions": list(ACTIONS)} for message in messages]
        return json.dumps({"error": errors[0]} if len(errors) == 1 else {"error": errors[0], "errors": errors})
    lines = [f"error {CODE}: {message}" for message in messages]
    return "\n".join([*lines, f"  hint: {HINT}", *(f"  try:  {action}" for action in ACTIONS)])
