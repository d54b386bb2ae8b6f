"""Secrets are taken out of a text before anything of it is stored (feature I9).

A secret becomes `(redacted KIND)`, which means nothing to YAML and Markdown, on the line where it stood, so that lines
keep their numbers. What was found is told by kind and line, never by what it says. Taken out is what has the form of a
known key or stands beside a name that says so; what is random and nothing more is a suspicion, which is told
(`examine`) and stays. The forms are in `secret_forms`; their sources, and what was measured, in
docs/decisions/0061-saving-well.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from hashlib import sha256
from math import log2
from typing import NamedTuple

from speckit_memory.errors import Problem
from speckit_memory.errors.names import shown
from speckit_memory.memory.intake.secret_forms import EXAMPLE, FORMS, LEAST_PART, PARTS, matches

RULES = 2
"""Number of this set of rules: a store whose memories were taken in by others has them read again."""
ALLOW = ("speckit:allow secret", "pragma: allowlist secret", "gitleaks:allow")
"""A line that says one of these is left as it is; two are marks of other tools, which people have set already."""
LEAST_RUN = 40
"""Characters; from here on a run without blanks may be a secret for its randomness alone."""
LEAST_ENTROPY = 4.3
"""Bits per character of such a run. Forty random Base64 characters have 4.7 on the average, and hardly ever less than
this; paths, names and words have less."""
FEWEST_DIGITS = 3
LEAST_OF_BLOCK = 60
"""Characters of a line of Base64 but the last of its block."""
LONGEST_RUN = 4_000
"""Characters; what is longer is data, such as a picture, and no secret."""


class Secret(NamedTuple):
    """What kind of secret a text held, and in which line of it, from 1."""

    kind: str
    line: int


_ADDRESS = FORMS[-1].name
RANDOM = "random characters"
KINDS = (*dict.fromkeys(kind.name for kind in FORMS), RANDOM)
"""Every kind that is taken out, in the order in which they are looked for."""

# The module `re` compiles these when they are first used, and keeps them: a search has no use for any.
_RUN = r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{40,}+|[A-Za-z0-9_-]{40,}+)={0,2}+(?![A-Za-z0-9+/_-])"
_NO_SECRET_BEFORE = r"(?i)(?:\b(?:sha(?:1|224|256|384|512)|md5|blake[23]b?|h1)[=:-]|://[^\s]*|;base64,)\Z"
"""A digest says of what kind it is, and an address names what lies behind it."""
_SAYS_SECRET = r"(?i:key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|auth)"
_NAME_BEFORE = (
    rf"(?i)(?P<name>[A-Za-z0-9_ .-]{{0,40}}{_SAYS_SECRET}[A-Za-z0-9_-]{{0,12}})"
    r"[\"'`]?\s{0,3}(?:=>|:=|[:=]{1,2}|is|was)?[ \t]{0,3}[\"'`(<]?\Z"
)
_NOT_SECRET = (
    r"(?i)public|pub[_ -]?key|cache|foreign|primary|sort|partition|hash|digest|checksum|fingerprint|integrity|cert|host"
    r"|modulus|cursor|page|next|continuation"
)
"""In the names of keys and tokens that anybody may see."""
_PUBLIC = r"_{1,2}Z|_R[A-Z]|AAAA|sha[0-9]{1,3}-"
"""Begins symbols of C++ and Rust, public keys of SSH, and digests."""
_MARGIN = " \t\r>\"'`#/*+,\\"
"""Stands before and after the lines of a block in code, comments and quotations."""
_HEX = r"[0-9a-fA-F-]+"


def redact(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...]]:
    """The text without its secrets, and what they were, by line. With `addresses`, those of e-mail go as well.

    Line ends stay, those inside of a key block included. Placeholders, addresses of example domains, and lines with a
    mark of `ALLOW` are left alone.
    """
    return examine(text, addresses=addresses)[:2]


def examine(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...], tuple[Secret, ...]]:
    """As `redact`, with what stays although it looks random: beside no name that says what it is."""
    found: list[tuple[int, int, str]] = []
    for kind in FORMS if addresses else FORMS[:-1]:
        if any(mark in text for mark in kind.marks):
            found += ((start, end, kind.name) for start, end in matches(kind, text))
    runs = list(_random(text))
    found += ((start, end, RANDOM) for start, end, by_name in runs if by_name)
    kept, secrets = _replaced(text, found) if found else (text, ())
    if all(by_name for _, _, by_name in runs):
        return kept, secrets, ()
    stay = [(start, end, RANDOM) for start, end, by_name in _random(kept) if not by_name]
    return kept, secrets, _replaced(kept, stay)[1]


def identifier(text: str) -> str:
    """A name that somebody gave to a session or a task, as it is stored: one with a secret has another in its place,
    the same each time, which does not tell it. That of a password, which could be guessed, is the same for all."""
    kept, found = redact(shown(text))
    if not found:
        return kept
    guessable = any(secret.kind.startswith("password") for secret in found)
    return kept if guessable else f"{kept} {sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def named(text: str) -> str:
    """The kind of the first secret in a name of a file or document, "" without one. Randomness alone is none: names
    are made from digests."""
    for kind in FORMS[:-1]:
        if any(mark in text for mark in kind.marks) and next(matches(kind, text), None):
            return kind.name
    return ""


def in_name(key: str, kind: str) -> Problem:
    """The problem of a file or document whose name holds a secret: the name is what a memory is known by."""
    shown, _ = redact(key)
    message = f"{shown}: the name holds a secret ({kind}); nothing of it is stored"
    return Problem("E014", message, "A memory is known by the name of its file.", ("rename the file",))


def _random(text: str) -> Iterator[tuple[int, int, bool]]:
    """Runs that look random, and whether a name before them says that they are secret. Runs of three kinds of
    characters and of much entropy; no digests, UUIDs, names, symbols and lines of longer data."""
    if max(map(len, text.split()), default=0) < LEAST_RUN:  # many times faster than the pattern
        return
    for match in re.finditer(_RUN, text):
        run = match[0]
        if len(run) > LONGEST_RUN or re.fullmatch(_HEX, run) or re.match(_PUBLIC, run):
            continue
        digits = sum(map(run.count, "0123456789"))
        if digits < FEWEST_DIGITS or run == run.lower() or run == run.upper():
            continue
        before = text[max(0, match.start() - 200) : match.start()]
        if run.count("/") > len(run) // 16 or re.search(_NO_SECRET_BEFORE, before):
            continue
        longest = max(re.split(PARTS, run), key=len)
        if len(longest) < LEAST_PART or re.fullmatch(_HEX, longest) or longest.isalpha():
            continue
        if re.search(EXAMPLE, run) or _entropy(run) < LEAST_ENTROPY:
            continue
        near = before[-80:].rpartition("\n")[2]
        name = re.search(_SAYS_SECRET, near) and re.search(_NAME_BEFORE, near)  # the first is many times faster
        by_name = name is not None and not re.search(_NOT_SECRET, name["name"])
        if by_name or not _is_data(text, *match.span()):
            yield *match.span(), by_name


def _is_data(text: str, start: int, end: int) -> bool:
    """Whether a run is a line of a block, as of a certificate, a public key or a picture."""
    first, last = start, end  # one line may hold all of a text: no more of it is looked at than the margins
    while first and text[first - 1] in _MARGIN:
        first -= 1
    while last < len(text) and text[last] in _MARGIN:
        last += 1
    if text[first - 1 : first] not in ("", "\n") or text[last : last + 1] not in ("", "\n"):
        return False
    before = text[text.rfind("\n", 0, max(first - 1, 0)) + 1 : max(first - 1, 0)].strip(_MARGIN)
    return end - start >= LEAST_OF_BLOCK or (bool(re.fullmatch(_RUN, before)) and len(before) >= LEAST_OF_BLOCK)


def _entropy(text: str) -> float:
    """Bits per character, by how often each occurs in the text itself."""
    length = len(text)
    return -sum(count / length * log2(count / length) for count in Counter(text).values())


def _replaced(text: str, found: list[tuple[int, int, str]]) -> tuple[str, tuple[Secret, ...]]:
    parts: list[str] = []
    secrets: list[Secret] = []
    done, line, counted, line_end, allowed = 0, 1, 0, -1, False
    for start, end, kind in sorted(found, key=lambda each: (each[0], each[2] == _ADDRESS, -each[1])):
        if start < done:
            continue  # within the one before
        line, counted = line + text.count("\n", counted, start), start
        if start > line_end:  # a line is looked at once, however many secrets it holds
            line_end = _line_end(text, start)
            allowed = any(mark in text[text.rfind("\n", 0, start) + 1 : line_end] for mark in ALLOW)
        if allowed:
            continue
        parts += text[done:start], f"(redacted {kind})", "\n" * text.count("\n", start, end)
        secrets.append(Secret(kind, line))
        done = end
    return "".join((*parts, text[done:])), tuple(secrets)


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end
