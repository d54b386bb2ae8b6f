"""Formats values in YAML's flow style."""

from __future__ import annotations

import json
from typing import Any

_RESERVED = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n"})


def flow_style(value: Any) -> str:
    """A value in YAML's flow style, of which JSON is a subset; plain words are unquoted if that is safe."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{flow_style(key)}: {flow_style(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(flow_style(item) for item in value) + "]"
    if (
        isinstance(value, str)
        and value.replace("_", "").isalnum()
        and value[0].isalpha()
        and value.lower() not in _RESERVED
    ):
        return value
    return json.dumps(value, ensure_ascii=False)
