"""A stream of bytes as lines; of one that is too long no more is kept than what tells who asks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_LINE = 16 << 20
"""Bytes; no request that the tools accept comes near."""
LONGEST_ID = 256
"""Characters of a request's id, which every answer repeats; and digits, of which Python reads no more than 4,300."""
_KEPT = 1024
_ID = rb'"id"\s*:\s*(?:(-?\d{1,18})|"([^"\\\x00-\x1f]{0,256})")\s*'
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb",")
_LAST = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
"""Whatever a message holds, what stands before its last brace belongs to the message itself."""


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line over the limit, and the id of the request when it stands at the beginning or the end."""

    request_id: int | str | None


class Lines:
    """Cuts lines off a stream of chunks."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._skipped = False
        self._told = False

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """The lines that a chunk completes, without those that are blank; one that is too long as soon as its id is
        known, at the latest at its end."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield from self._more(part)
            yield from self.end()
        yield from self._more(rest)

    def end(self) -> Iterator[bytes | TooLong]:
        """The line that was begun, now that it is at its end."""
        if not self._skipped and self._begun.strip():
            yield bytes(self._begun)
        elif self._skipped and not self._told:
            yield TooLong(_id(_LAST.search(self._begun)))
        self._begun, self._skipped, self._told = bytearray(), False, False

    def _more(self, part: bytes) -> Iterator[TooLong]:
        self._begun += part
        if not self._skipped and len(self._begun) > LONGEST_LINE:
            self._skipped = True
            if first := _FIRST.match(self._begun):
                self._told = True
                yield TooLong(_id(first))
        if self._skipped:
            del self._begun[:-_KEPT]


def _id(found: re.Match[bytes] | None) -> int | str | None:
    if found is None:
        return None
    number, text = found.groups()
    return int(number) if number is not None else text.decode("utf-8", "replace")
