"""Splits a byte stream into lines; of a line that is too long only the request id is kept."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

LONGEST_LINE = 16 << 20
"""Bytes; far more than any request that the tools accept."""
LONGEST_ID = 256
"""Characters, or digits, of a request id, which the answer repeats; Python converts at most 4,300 digits."""
_KEPT = 1024
_ID = rb'"id"\s*:\s*(?:(-?\d{1,18})|"([^"\\\x00-\x1f]{0,256})")\s*'
# Most clients write the id first or last, and the start of a line and its end are all that is kept.
_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb",")
_LAST = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")
"""An id directly before the last brace belongs to the message itself, not to a nested object."""


def is_id(found: object) -> bool:
    """Whether this can be the id of a request, which its answer repeats."""
    if isinstance(found, str):
        return len(found) <= LONGEST_ID
    return isinstance(found, int) and not isinstance(found, bool) and abs(found) < 10**LONGEST_ID


@dataclass(frozen=True, slots=True)
class TooLong:
    """A line over the limit, with the request id if that is at its beginning or end."""

    request_id: int | str | None


class Lines:
    """Splits a stream of chunks into lines."""

    def __init__(self) -> None:
        self._begun = bytearray()
        self._skipped = False
        self._told = False

    def feed(self, chunk: bytes) -> Iterator[bytes | TooLong]:
        """Yields the lines that a chunk completes, without blank ones; a line that is too long is reported when its id
        is known, at the latest at its end."""
        *ended, rest = chunk.split(b"\n")
        for part in ended:
            yield from self._more(part)
            yield from self.end()
        yield from self._more(rest)

    def end(self) -> Iterator[bytes | TooLong]:
        """Yields the unfinished line at the end of the stream."""
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
            # keep only the tail, in which the id may still come
            del self._begun[:-_KEPT]


def _id(found: re.Match[bytes] | None) -> int | str | None:
    if found is None:
        return None
    number, text = found.groups()
    return int(number) if number is not None else text.decode("utf-8", "replace")
