"""Redacts secrets in a text before anything of it is stored (feature I9).

A secret is replaced in its line by `(redacted KIND)`, which has no meaning in YAML and Markdown, so that lines keep
their numbers. Secrets are reported by kind and line, never by content. Strings in the form of a known key,
and random strings after a name that marks them as secret, are redacted. Other random strings are only reported as
suspicions (`examine`). The forms are in `secret_forms`; their sources and measurements in
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
from speckit_memory.errors.names import displayable_name
from speckit_memory.memory.intake.secret_forms import EXAMPLE, FORMS, LEAST_PART, PARTS, matches

RULES = 2
"""Version of the rules: documents that were stored under other rules are read again."""
ALLOW = ("speckit:allow secret", "pragma: allowlist secret", "gitleaks:allow")
"""A line with one of these markers is not redacted; two are markers of other tools that are already in use."""
LEAST_RUN = 40
"""Characters from which a run without blanks may be a secret because of its randomness."""
LEAST_ENTROPY = 4.3
"""Bits per character of such a run. Forty random Base64 characters have 4.7 on average, and rarely less than this;
paths, names and words have less."""
FEWEST_DIGITS = 3
LEAST_OF_BLOCK = 60
"""Minimum characters of a line in a Base64 block, except its last."""
LONGEST_RUN = 4_000
"""Characters; a longer run is data, such as a picture, and not a secret."""


class Secret(NamedTuple):
    """The kind of a secret, and its line in the text, counted from 1."""

    kind: str
    line: int


_ADDRESS = FORMS[-1].name
RANDOM = "random characters"
KINDS = (*dict.fromkeys(kind.name for kind in FORMS), RANDOM)
"""Every kind that is redacted, in search order."""

# Strings, not patterns: `re` compiles and caches them at first use, and searches do not need them.
_RUN = r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{40,}+|[A-Za-z0-9_-]{40,}+)={0,2}+(?![A-Za-z0-9+/_-])"
_NO_SECRET_BEFORE = r"(?i)(?:\b(?:sha(?:1|224|256|384|512)|md5|blake[23]b?|h1)[=:-]|://[^\s]*|;base64,)\Z"
"""Prefixes of runs that are not secrets: digest labels, addresses and embedded data."""
_SAYS_SECRET = r"(?i:key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|auth)"
_NAME_BEFORE = (
    rf"(?i)(?P<name>[A-Za-z0-9_ .-]{{0,40}}{_SAYS_SECRET}[A-Za-z0-9_-]{{0,12}})"
    r"[\"'`]?\s{0,3}(?:=>|:=|[:=]{1,2}|is|was)?[ \t]{0,3}[\"'`(<]?\Z"
)
_NOT_SECRET = (
    r"(?i)public|pub[_ -]?key|cache|foreign|primary|sort|partition|hash|digest|checksum|fingerprint|integrity|cert|host"
    r"|modulus|cursor|page|next|continuation"
)
"""Words in the names of public keys and tokens."""
_PUBLIC = r"_{1,2}Z|_R[A-Z]|AAAA|sha[0-9]{1,3}-"
"""Prefixes of C++ and Rust symbols, SSH public keys, and digests."""
_MARGIN = " \t\r>\"'`#/*+,\\"
"""Characters around the lines of a block in code, comments and quotations."""
_HEX = r"[0-9a-fA-F-]+"


def redact(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...]]:
    """Return the redacted text, and its secrets by line. With `addresses`, e-mail addresses are redacted as well.

    Line ends are kept, also inside a key block. Placeholders, addresses of example domains, and lines with a marker of
    `ALLOW` are not redacted.
    """
    return examine(text, addresses=addresses)[:2]


def examine(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...], tuple[Secret, ...]]:
    """Return the result of `redact`, and the suspicions: random strings without a name that marks them as secret."""
    found: list[tuple[int, int, str]] = []
    for kind in FORMS if addresses else FORMS[:-1]:
        if any(mark in text for mark in kind.marks):
            found += ((start, end, kind.name) for start, end in matches(kind, text))
    # Random runs with a secret name are redacted; the rest is searched again in the redacted text, for its lines.
    runs = list(_random(text))
    found += ((start, end, RANDOM) for start, end, by_name in runs if by_name)
    kept, secrets = _replaced(text, found) if found else (text, ())
    if all(by_name for _, _, by_name in runs):
        return kept, secrets, ()
    stay = [(start, end, RANDOM) for start, end, by_name in _random(kept) if not by_name]
    return kept, secrets, _replaced(kept, stay)[1]


def identifier(text: str) -> str:
    """Return the name of a session or task for storage. A secret is redacted and a digest appended, so that equal names
    stay equal; a password gets no digest, since it could be guessed from it."""
    kept, found = redact(displayable_name(text))
    if not found:
        return kept
    guessable = any(secret.kind.startswith("password") for secret in found)
    return kept if guessable else f"{kept} {sha256(text.encode(errors='replace')).hexdigest()[:8]}"


def secret_kind_of_name(text: str) -> str:
    """Return the kind of the first secret in a file or document name, "" if there is none. Random strings do not count:
    names may contain digests."""
    for kind in FORMS[:-1]:
        if any(mark in text for mark in kind.marks) and next(matches(kind, text), None):
            return kind.name
    return ""


def in_name(key: str, kind: str) -> Problem:
    """Return the problem of a file or document whose name contains a secret: the name would become its key."""
    shown, _ = redact(key)
    message = f"{shown}: the name contains a secret ({kind}); it is not stored"
    return Problem("E014", message, "The name of a file is the key of its memory.", ("rename the file",))


def _random(text: str) -> Iterator[tuple[int, int, bool]]:
    """Yield the offsets of random runs, and whether a name before them marks them as secret. A random run has digits,
    upper and lower case and high entropy; digests, UUIDs, names, symbols and lines of longer data do not count."""
    if max(map(len, text.split()), default=0) < LEAST_RUN:  # much faster than the pattern
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
        # The name must be on the same line.
        near = before[-80:].rpartition("\n")[2]
        name = re.search(_SAYS_SECRET, near) and re.search(_NAME_BEFORE, near)  # the first is much faster
        by_name = name is not None and not re.search(_NOT_SECRET, name["name"])
        if by_name or not _is_data(text, *match.span()):
            yield *match.span(), by_name


def _is_data(text: str, start: int, end: int) -> bool:
    """Whether a run is a line of a block, such as a certificate, a public key or a picture."""
    first, last = start, end  # reads only the margins, since one line may hold the whole text
    while first and text[first - 1] in _MARGIN:
        first -= 1
    while last < len(text) and text[last] in _MARGIN:
        last += 1
    if text[first - 1 : first] not in ("", "\n") or text[last : last + 1] not in ("", "\n"):
        return False
    before = text[text.rfind("\n", 0, max(first - 1, 0)) + 1 : max(first - 1, 0)].strip(_MARGIN)
    return end - start >= LEAST_OF_BLOCK or (bool(re.fullmatch(_RUN, before)) and len(before) >= LEAST_OF_BLOCK)


def _entropy(text: str) -> float:
    """Return the Shannon entropy in bits per character: H = -Σ p·log2(p) over the text's own character frequencies."""
    length = len(text)
    return -sum(count / length * log2(count / length) for count in Counter(text).values())


def _replaced(text: str, found: list[tuple[int, int, str]]) -> tuple[str, tuple[Secret, ...]]:
    parts: list[str] = []
    secrets: list[Secret] = []
    done, line, counted, line_end, allowed = 0, 1, 0, -1, False
    # By start; at the same start, e-mail addresses come last and longer matches first.
    for start, end, kind in sorted(found, key=lambda each: (each[0], each[2] == _ADDRESS, -each[1])):
        if start < done:
            continue  # inside the previous match
        line, counted = line + text.count("\n", counted, start), start
        if start > line_end:  # check each line once, even if it holds many secrets
            line_end = _line_end(text, start)
            allowed = any(mark in text[text.rfind("\n", 0, start) + 1 : line_end] for mark in ALLOW)
        if allowed:
            continue
        # The line ends of a redacted block are kept after the placeholder.
        parts += text[done:start], f"(redacted {kind})", "\n" * text.count("\n", start, end)
        secrets.append(Secret(kind, line))
        done = end
    return "".join((*parts, text[done:])), tuple(secrets)


def _line_end(text: str, offset: int) -> int:
    end = text.find("\n", offset)
    return len(text) if end < 0 else end
