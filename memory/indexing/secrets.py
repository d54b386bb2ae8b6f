"""Secrets are taken out of a text before anything of it is stored (feature I9).

A secret becomes `(redacted KIND)`, which means nothing to YAML and Markdown, on the line where it stood, so that lines
keep their numbers. What was found is told by kind and line, never by what it says. Patterns begin with a fixed mark, or
take a run of characters as a whole: the time is linear in the length of the text. Their sources, and what was measured:
docs/decisions/0061-saving-well.md.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from math import log2
from typing import NamedTuple

from speckit_memory.errors import Problem

RULES = 1
"""Number of this set of rules: a store whose memories were taken in by others has them read again."""
ALLOW = ("speckit:allow secret", "pragma: allowlist secret", "gitleaks:allow")
"""A line that says one of these is left as it is; two are marks of other tools, which people have set already."""
LEAST_RUN = 40
"""Characters; from here on a run without blanks may be a secret for its randomness alone."""
LEAST_ENTROPY = 4.3
"""Bits per character of such a run. Forty random Base64 characters have 4.7 on the average, and hardly ever less than
this; paths, names and words have less."""
FEWEST_DIGITS = 3
LEAST_PART = 12
"""Characters of the longest part between hyphens: names are made of words, which are shorter or have no digits."""
LONGEST_KEY_BLOCK = 20_000
"""Characters; keys of 16,384 bits take 13,000."""
LONGEST_RUN = 4_000
"""Characters; what is longer is data, such as a picture, and no secret."""


class Secret(NamedTuple):
    """What kind of secret a text held, and in which line of it, from 1."""

    kind: str
    line: int


class _Kind(NamedTuple):
    name: str
    marks: tuple[str, ...]
    pattern: re.Pattern[str]
    """The group `secret` is what is taken out; the whole match without such a group."""


def _kind(name: str, marks: tuple[str, ...], pattern: str, flags: int = 0) -> _Kind:
    return _Kind(name, marks, re.compile(pattern, flags))


_END = r"(?![A-Za-z0-9])"
_START = r"(?<![A-Za-z0-9])"
_KEY = r"(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?"
_KINDS = (
    _kind(
        "private key",
        ("-----BEGIN",),
        rf"-----BEGIN {_KEY}-----(?:(?:[^-]|-(?!----)){{0,{LONGEST_KEY_BLOCK}}}+-----END {_KEY}-----"
        r"|(?:[\s>]{0,8}[A-Za-z0-9+/=]{16,100}+(?![^\s]))+)",
    ),
    _kind(
        "api key",
        ("sk-", "sk_live_", "sk_test_", "rk_live_", "AIza", "xox", "glpat-", "npm_", "pypi-", "hf_", "SG."),
        _START + r"(?:sk-(?:proj-|ant-|or-|svcacct-|admin-)?(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,300}+"
        r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,200}+"
        r"|AIza[A-Za-z0-9_-]{35}"
        r"|xox[abeoprs]-(?=[A-Za-z-]{0,60}[0-9])[A-Za-z0-9-]{10,300}+"
        r"|glpat-[A-Za-z0-9_-]{20,100}+"
        r"|npm_[A-Za-z0-9]{36}"
        r"|pypi-AgE[A-Za-z0-9_-]{50,300}+"
        r"|hf_[A-Za-z0-9]{30,100}+"
        r"|SG\.[A-Za-z0-9_-]{16,40}+\.[A-Za-z0-9_-]{30,80}+)" + _END,
    ),
    _kind(
        "github token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _START + r"(?:gh[opsur]_[A-Za-z0-9]{36,255}+|github_pat_[A-Za-z0-9_]{50,255}+)" + _END,
    ),
    _kind(
        "aws key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + _END,
    ),
    _kind(
        "aws secret",
        ("aws", "AWS", "Aws"),
        r"aws[_.-]?(?:secret|session)[a-z_.-]{0,30}+[\"']?\s{0,3}+[:=]\s{0,3}+[\"']?(?P<secret>[A-Za-z0-9/+]{40}"
        r"(?![A-Za-z0-9/+]))",
        re.IGNORECASE,
    ),
    _kind(
        "jwt",
        ("eyJ",),
        _START + r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,2000}+",
    ),
    _kind(
        "bearer token",
        ("earer", "EARER"),
        r"\bbearer[ \t]{1,3}+[\"']?(?P<secret>(?=[A-Za-z._~+/-]{0,80}[0-9])[A-Za-z0-9._~+/-]{16,4000}+=*+)",
        re.IGNORECASE,
    ),
    _kind(
        "password in address",
        ("://",),
        r"(?<=://)[^\s:/@?#\"'<>\[\]{}$]{0,100}+:(?P<secret>[^\s/@\"'<>{}$*]{3,200}+)(?=@[A-Za-z0-9\[])",
    ),
    _kind(
        "password",
        ("assw", "ASSW", "ecret", "ECRET", "oken", "OKEN", "pi_key", "PI_KEY", "piKey", "pi-key"),
        r"(?:passw(?:or)?d|secret|token|api[_-]?key)[\"']?[ \t]{0,3}+[:=][ \t]{0,3}+(?P<quote>[\"'`]?)"
        r"(?P<secret>(?=[^\s\"'`]{0,60}[0-9])(?=[^\s\"'`]{0,60}[A-Za-z])[^\s\"'`<>(){}\[\]$,;]{8,300}+)"
        r"(?=(?P=quote)(?:[\s,;}\]]|\Z))",
        re.IGNORECASE,
    ),
    _kind(
        "e-mail address",
        ("@",),
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_%+-]{1,64}+(?:\.[A-Za-z0-9_%+-]{1,64}+){0,8}+@(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}+"
        r"(?![A-Za-z0-9-])",
    ),
)
_ADDRESS = _KINDS[-1].name
KINDS = (*(kind.name for kind in _KINDS), "random characters")
"""Every kind that is taken out, in the order in which they are looked for."""

_RUN = re.compile(r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{40,}+|[A-Za-z0-9_-]{40,}+)={0,2}+(?![A-Za-z0-9+/_-])")
_NO_SECRET_BEFORE = re.compile(r"(?:sha(?:1|224|256|384|512)|md5|blake2b?)[=:-]\Z|://[^\s]*\Z", re.IGNORECASE)
"""A digest says of what kind it is, and an address names what lies behind it."""
_PARTS = re.compile(r"[-_/+]")
_HEX = re.compile(r"[0-9a-fA-F-]+")
_EXAMPLE = re.compile(r"example|placeholder|changeme|your[-_ ]|dummy|x{6}|\*{4}|redacted|\.\.\.", re.IGNORECASE)
_EXAMPLE_ADDRESS = re.compile(
    r"(?:^|[.@])(?:example(?:\.[a-z]{2,6})?|test|invalid|localhost)$|^(?:git|noreply|no-reply)@|@users\.noreply\.",
    re.IGNORECASE,
)


def redact(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...]]:
    """The text without its secrets, and what they were, by line. With `addresses`, those of e-mail go as well.

    Line ends stay, those inside of a key block included. Placeholders, addresses of example domains, and lines with a
    mark of `ALLOW` are left alone.
    """
    found: list[tuple[int, int, str]] = []
    for kind in _KINDS if addresses else _KINDS[:-1]:
        if any(mark in text for mark in kind.marks):
            found += ((start, end, kind.name) for start, end in _matches(kind, text))
    if max(map(len, text.split()), default=0) >= LEAST_RUN:  # many times faster than the pattern
        found += ((start, end, KINDS[-1]) for start, end in _random(text))
    return _replaced(text, found) if found else (text, ())


def named(text: str) -> str:
    """The kind of the first secret in a name of a file or document, "" without one. Randomness alone is none: names
    are made from digests."""
    for kind in _KINDS[:-1]:
        if any(mark in text for mark in kind.marks) and next(_matches(kind, text), None):
            return kind.name
    return ""


def in_name(key: str, kind: str) -> Problem:
    """The problem of a file or document whose name holds a secret: the name is what a memory is known by."""
    shown, _ = redact(key)
    message = f"{shown}: the name holds a secret ({kind}); nothing of it is stored"
    return Problem("E014", message, "A memory is known by the name of its file.", ("rename the file",))


def _matches(kind: _Kind, text: str) -> Iterator[tuple[int, int]]:
    group: str | int = "secret" if "secret" in kind.pattern.groupindex else 0
    for match in kind.pattern.finditer(text):
        secret = match[group]
        if kind.name == "e-mail address":
            if _EXAMPLE_ADDRESS.search(secret):
                continue
        elif kind.name not in ("private key", "jwt") and _EXAMPLE.search(secret):
            continue
        yield match.span(group)


def _random(text: str) -> Iterator[tuple[int, int]]:
    """Runs that look random: of three kinds of characters, and of much entropy; no digests, UUIDs and names."""
    for match in _RUN.finditer(text):
        run = match[0]
        if len(run) > LONGEST_RUN or _HEX.fullmatch(run):
            continue
        digits = sum(map(run.count, "0123456789"))
        if digits < FEWEST_DIGITS or run == run.lower() or run == run.upper():
            continue
        if run.count("/") > len(run) // 16 or _NO_SECRET_BEFORE.search(
            text[max(0, match.start() - 200) : match.start()]
        ):
            continue
        longest = max(_PARTS.split(run), key=len)
        if run.startswith("_Z") or len(longest) < LEAST_PART or _HEX.fullmatch(longest) or longest.isalpha():
            continue
        if _EXAMPLE.search(run) or _entropy(run) < LEAST_ENTROPY:
            continue
        yield match.span()


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
