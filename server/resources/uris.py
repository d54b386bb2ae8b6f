"""The URIs of what can be read."""

from __future__ import annotations

from urllib.parse import quote, unquote

MEMORY = "memory://"
TEMPLATE = "memory://{+key}"
"""RFC 6570: the slashes of a key stay what they are."""
PIPELINE = "speckit://pipeline"
SHADOW_REPORT = "speckit://shadow-report"
_PLAIN = "/!$&'()*+,;=:@~"
"""Signs that need no escape in a path, beside letters, digits, '-', '.' and '_'."""


def memory_uri(key: str) -> str:
    """The URI of a memory."""
    return MEMORY + quote(key, safe=_PLAIN, errors="replace")


def names_in(uri: str) -> list[str]:
    """The keys that a URI may mean, the likeliest first: a client that fills in the template leaves '#', '?' and what
    looks like an escape in a key as they stand."""
    rest = uri[len(MEMORY) :]
    return list(dict.fromkeys(name for name in (unquote(rest), rest) if name))
