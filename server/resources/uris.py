"""The URIs of resources."""

from __future__ import annotations

from urllib.parse import quote, unquote

MEMORY = "memory://"
TEMPLATE = "memory://{+key}"
"""RFC 6570 reserved expansion: the slashes of a key are not escaped."""
PIPELINE = "speckit://pipeline"
SHADOW_REPORT = "speckit://shadow-report"
_PLAIN = "/!$&'()*+,;=:@~"
"""Characters that need no escape in a path, in addition to letters, digits, '-', '.' and '_'."""


def memory_uri(key: str) -> str:
    """The URI of a memory."""
    return MEMORY + quote(key, safe=_PLAIN, errors="replace")


def names_in(uri: str) -> list[str]:
    """The keys that a URI may mean, the most likely first: clients that expand the template leave '#', '?' and text
    that looks like an escape unchanged."""
    rest = uri[len(MEMORY) :]
    return list(dict.fromkeys(name for name in (unquote(rest), rest) if name))
