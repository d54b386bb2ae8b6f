"""Secrets are taken out of a text before anything of it is stored (feature I9).

A secret becomes `(redacted KIND)`, which means nothing to YAML and Markdown, on the line where it stood, so that lines
keep their numbers. What was found is told by kind and line, never by what it says. Taken out is what has the form of a
known key or stands beside a name that says so; what is random and nothing more is a suspicion, which is told
(`examine`) and stays. Patterns begin with a fixed mark, or take a run of characters as a whole: the time is linear
in the length of the text. Their sources, and what was measured: docs/decisions/0061-saving-well.md.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from hashlib import sha256
from math import log2
from typing import NamedTuple

from speckit_memory.errors import Problem
from speckit_memory.errors.names import shown

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
LEAST_PART = 12
"""Characters of the longest part between hyphens: names are made of words, which are shorter or have no digits."""
LEAST_OF_BLOCK = 60
"""Characters of a line of Base64 but the last of its block."""
LONGEST_KEY_BLOCK = 20_000
"""Characters; keys of 16,384 bits take 13,000."""
LONGEST_RUN = 4_000
"""Characters; what is longer is data, such as a picture, and no secret."""


class Secret(NamedTuple):
    """What kind of secret a text held, and in which line of it, from 1."""

    kind: str
    line: int


@dataclass(frozen=True)
class _Kind:
    name: str
    marks: tuple[str, ...]
    source: str
    """The group `secret` is what is taken out; the whole match without such a group."""
    flags: int = 0

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled for the first text that has a mark: a search has no use for any."""
        return re.compile(self.source, self.flags)


_END = r"(?![A-Za-z0-9])"
_START = r"(?<![A-Za-z0-9])"
_KEY = r"(?:[A-Z0-9]{1,20} ){0,3}PRIVATE KEY(?: BLOCK)?"
_PASSWORD = r"(?:passw(?:or)?d|pwd)"
_WORDS_OF_NAMES = ("password", "passwd", "pwd", "passphrase", "secret", "token", "credentials?")
_KEYS_OF = (
    *("api", "secret", "access", "auth", "account", "client", "encryption", "signing", "private", "master", "webhook"),
)
_KEY_NAME = "|".join(
    [
        *(spelled for word in _WORDS_OF_NAMES for spelled in (word, word.upper(), word.capitalize())),
        *(f"{of}[ _-]?key|{of.upper()}[ _-]?KEY|{of}[ _-]?Key|{of.capitalize()}[ _-]?Key" for of in _KEYS_OF),
    ]
)
"""Ends the names of what is secret: `DB_PASSWORD`, `clientSecret`, `github_token`, `x-api-key`. Each spelling is
an alternative of its own: a pattern that ignores case takes four times as long."""
_CONNECTION_VALUE = r"(?P<quote>['\"]?)(?P<secret>[^\s;&\"'`<>(){}\[\]$*%]{3,200}+)(?=(?P=quote)(?:[\s;&\"'`)]|\Z))"
_LIBPQ = r"\b(?:host|hostaddr|user|dbname|port)=[^\s;]{0,200}[^\s;,] (?:[a-z_]{1,30}+=[^\s;]{0,200}[^\s;,] ){0,8}?"
_KINDS = (
    _Kind(
        "private key",
        ("-----BEGIN", "AGE-SECRET-KEY-1"),
        rf"-----BEGIN {_KEY}-----(?:(?:[^-]|-(?!----)){{0,{LONGEST_KEY_BLOCK}}}+-----END {_KEY}-----"
        r"|(?:[\s>]{0,8}[A-Za-z0-9+/=]{16,100}+(?![^\s]))+)"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{50,80}+",
    ),
    _Kind(
        "api key",
        (
            *("sk-", "k_live_", "k_test_", "AIza", "xox", "xapp-", "glpat-", "gldt-", "glrt-"),
            *("npm_", "pypi-", "hf_", "SG.", "_v1_", "shp", "dckr_", "GOCSPX-", "ya29."),
            *("glsa_", "rubygems_", "ATATT3", "sq0"),
        ),
        _START + r"(?:sk-(?:proj-|ant-|or-|svcacct-|admin-)?(?=[A-Za-z_-]{0,60}[0-9])[A-Za-z0-9_-]{20,300}+"
        r"|[sr]k_(?:live|test)_[A-Za-z0-9]{16,200}+"
        r"|AIza[A-Za-z0-9_-]{35}"
        r"|xox[abeoprs]-(?=[A-Za-z-]{0,60}[0-9])[A-Za-z0-9-]{10,300}+"
        r"|xapp-[0-9]-[A-Za-z0-9-]{20,200}+"
        r"|gl(?:pat|dt|rt)-[A-Za-z0-9_-]{20,100}+"
        r"|npm_[A-Za-z0-9]{36}"
        r"|pypi-AgE[A-Za-z0-9_-]{50,300}+"
        r"|hf_[A-Za-z0-9]{30,100}+"
        r"|SG\.[A-Za-z0-9_-]{16,40}+\.[A-Za-z0-9_-]{30,80}+"
        r"|do[opr]_v1_[0-9a-f]{64}"
        r"|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}"
        r"|dckr_pat_[A-Za-z0-9_-]{20,60}+"
        r"|GOCSPX-[A-Za-z0-9_-]{20,60}+"
        r"|ya29\.[A-Za-z0-9_-]{30,400}+"
        r"|glsa_[A-Za-z0-9]{32}_[0-9a-f]{8}"
        r"|rubygems_[0-9a-f]{48}"
        r"|ATATT3[A-Za-z0-9_=-]{40,400}+"
        r"|sq0(?:atp|csp|idp)-[A-Za-z0-9_-]{22,60}+)" + _END,
    ),
    _Kind("api key", ("AC", "SK"), _START + r"(?:AC|SK)[0-9a-f]{32}" + _END),
    _Kind(
        "webhook",
        ("hooks.slack.com/", "/api/webhooks/", ".webhook.office.com/"),
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/"
        r"|\.webhook\.office\.com/webhookb2/)(?P<secret>[A-Za-z0-9@_-]{6,90}+(?:/[A-Za-z0-9_-]{1,90}+){1,8})",
    ),
    _Kind(
        "bot token",
        (":",),
        r"[0-9]{8,10}+:(?=[A-Za-z_-]{0,34}[0-9])(?=[0-9A-Z_-]{0,34}[a-z])(?=[0-9a-z_-]{0,34}[A-Z])"
        r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    ),
    _Kind(
        "github token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _START + r"(?:gh[opsur]_[A-Za-z0-9]{36,255}+|github_pat_[A-Za-z0-9_]{50,255}+)" + _END,
    ),
    _Kind(
        "aws key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + _END,
    ),
    _Kind(
        "aws secret",
        ("aws", "AWS", "Aws"),
        r"aws[_.-]?(?:secret|session)[a-z_.-]{0,30}+[\"']?\s{0,3}+[:=]\s{0,3}+[\"']?(?P<secret>[A-Za-z0-9/+]{40}"
        r"(?![A-Za-z0-9/+]))",
        re.IGNORECASE,
    ),
    _Kind(
        "jwt",
        ("eyJ",),
        _START + r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,2000}+",
    ),
    _Kind(
        "bearer token",
        ("earer", "EARER"),
        r"\bbearer[ \t]{1,3}+[\"']?(?P<secret>(?=[A-Za-z._~+/-]{0,80}[0-9])[A-Za-z0-9._~+/-]{16,4000}+=*+)",
        re.IGNORECASE,
    ),
    _Kind(
        "basic authorization",
        ("asic ", "ASIC "),
        r"\bbasic[ \t]{1,3}+(?P<secret>[A-Za-z0-9+/]{4,2000}+={0,2}+)(?![A-Za-z0-9+/=])",
        re.IGNORECASE,
    ),
    _Kind(
        "password in address",
        ("://",),
        r"(?<=://)[^\s:/@?#\"'<>\[\]{}$]{0,100}+:(?P<secret>[^\s/@\"'<>{}$*]{3,200}+)(?=@[A-Za-z0-9\[])",
    ),
    _Kind(
        "password in netrc",
        ("machine", "login"),
        r"\b(?:machine\s{1,8}+(?:[^\s.]{0,90}+\.\S{1,200}+|\S{1,200}+(?=\s{1,8}(?:login|account)\s))|default(?=\s{1,8}login\s))"
        r"(?:\s{1,8}+(?:login|account)\s{1,8}+\S{1,200}+){0,2}\s{1,8}+password\s{1,8}+(?P<secret>[^\s<>\"'`]{3,300}+)",
    ),
    *(
        _Kind("password", ("wd=", "word=", "WD=", "WORD=", "Wd="), before + rf"{_PASSWORD}={_CONNECTION_VALUE}", re.I)
        for before in (r"(?:(?<=[;&?])|(?<=; ))", r"\b(?=[^\s;&]{4,200};[ ]?[A-Za-z][A-Za-z ]{1,30}=)", _LIBPQ)
    ),
    _Kind(
        "password",
        (
            *("assw", "ASSW", "pwd", "PWD", "Pwd", "ecret", "ECRET", "oken", "OKEN", "key", "KEY", "Key", "phrase"),
            *("PHRASE", "redential", "REDENTIAL"),
        ),
        rf"(?P<name>{_KEY_NAME})[\"']?[ \t]{{0,3}}+(?::=|=>|[:=])[ \t]{{0,3}}+(?P<quote>[\"'`]?)"
        r"(?P<secret>(?=[^\s\"'`]{0,60}[0-9])(?=[^\s\"'`]{0,60}[A-Za-z])[^\s\"'`<>(){}\[\]$,;]{8,300}+)"
        r"(?=(?P=quote)(?:[\s,;}\]]|\Z))",
    ),
    _Kind(
        "e-mail address",
        ("@",),
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_%+-]{1,64}+(?:\.[A-Za-z0-9_%+-]{1,64}+){0,8}+@(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}+"
        r"(?![A-Za-z0-9-])",
    ),
)
_ADDRESS = _KINDS[-1].name
RANDOM = "random characters"
KINDS = (*dict.fromkeys(kind.name for kind in _KINDS), RANDOM)
"""Every kind that is taken out, in the order in which they are looked for."""

# The module `re` compiles these when they are first used, and keeps them: a search has no use for any.
_RUN = r"(?<![A-Za-z0-9+/_-])(?:[A-Za-z0-9+/]{40,}+|[A-Za-z0-9_-]{40,}+)={0,2}+(?![A-Za-z0-9+/_-])"
_NO_SECRET_BEFORE = r"(?i)(?:\b(?:sha(?:1|224|256|384|512)|md5|blake[23]b?|h1)[=:-]|://[^\s]*|;base64,)\Z"
"""A digest says of what kind it is, and an address names what lies behind it."""
_NAME_BEFORE = (
    r"(?i)(?P<name>[A-Za-z0-9_ .-]{0,40}(?:key|token|secret|passw(?:or)?d|passphrase|pwd|credentials?|auth)"
    r"[A-Za-z0-9_-]{0,12})"
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
_BODY_OF_KEY = r"[A-Za-z0-9+/=]{16}"
_PARTS = r"[-_/+]"
_HEX = r"[0-9a-fA-F-]+"
_EXAMPLE = r"(?i)example|placeholder|change_?me|your[-_ ]?|dummy|x{6}|\*{4}|redacted|\.\.\."
_WORDS = frozenset(
    {
        *("password", "passwd", "pass", "pwd", "secret", "token", "key", "mysecretpassword", "mypassword", "changeit"),
        *("postgres", "root", "admin", "user", "username", "test", "guest", "string", "none", "null", "true", "false"),
        "undefined",
    }
)
"""Stand where a password would, in examples and in the configuration of tests."""
_REFERENCE = (
    r"(?:\.{0,2}/|~/|\\|[A-Za-z]:\\|[a-z]{2,10}://|arn:|sha(?:1|224|256|384|512)[:=-])"
    r"|(?:self|this|process|os|env|environ|config|conf|cfg|settings|args|params|props|req|request|data|opts|options|ctx"
    r"|context|cls|app|user|account|secrets?|vars?|local|module|vault|creds|credentials)\."
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z"
    r"|(?i:u?int|bytes|base(?:32|58|64)|utf-?(?:8|16)|[a-z]s(?:256|512)|ed25519|x25519|secp256|aes-?[0-9]|hmac)\w{0,12}\Z"
)
"""Paths, addresses, names of variables, types and algorithms: where a secret comes from, and none itself."""
_NAME = (
    r"[a-z]+(?:[-_.:/][a-z]+)*[-_.:/]v?[0-9]{1,2}\Z|[a-z]+(?:[-_.:/][a-z0-9]{1,12})*[-_.:/][a-z]+\Z"
    r"|_{1,2}[a-z]\w*\Z|[A-Za-z_][\w.]*(?:Keys?|Tokens?|Secrets?|Types?)\Z"
)
"""Names made of words, as those of secrets in a cluster, of variables and of types."""
_EXAMPLE_ADDRESS = (
    r"(?i)(?:^|[.@])(?:example(?:\.[a-z]{2,6})?|test|invalid|localhost)$|^(?:git|noreply|no-reply)@|@users\.noreply\."
)


def redact(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...]]:
    """The text without its secrets, and what they were, by line. With `addresses`, those of e-mail go as well.

    Line ends stay, those inside of a key block included. Placeholders, addresses of example domains, and lines with a
    mark of `ALLOW` are left alone.
    """
    return examine(text, addresses=addresses)[:2]


def examine(text: str, *, addresses: bool = False) -> tuple[str, tuple[Secret, ...], tuple[Secret, ...]]:
    """As `redact`, with what stays although it looks random: beside no name that says what it is."""
    found: list[tuple[int, int, str]] = []
    for kind in _KINDS if addresses else _KINDS[:-1]:
        if any(mark in text for mark in kind.marks):
            found += ((start, end, kind.name) for start, end in _matches(kind, text))
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
        if _is_secret(kind.name, match[group], match):
            yield match.span(group)


def _is_secret(kind: str, secret: str, match: re.Match[str]) -> bool:
    """Whether a match is one, and no example or name of the same form."""
    match kind:
        case "e-mail address":
            return not re.search(_EXAMPLE_ADDRESS, secret)
        case "private key" if secret.startswith("-----"):
            return bool(re.search(_BODY_OF_KEY, secret.split("-----")[2]))
        case "private key" | "jwt":
            return True
        case "bot token":  # looked at last: a pattern that begins with a digit is many times faster
            return match.string[max(0, match.start() - 1) : match.start()] not in tuple("0123456789.:_-")
        case "basic authorization":
            return _is_user_and_password(secret)
        case "api key" if secret.startswith("sk-"):
            longest = max(re.split(_PARTS, secret), key=len)
            return len(longest) >= LEAST_PART and not longest.isalpha() and not re.search(_EXAMPLE, secret)
        case "password" | "password in address":
            if secret.lower() in _WORDS or re.match(_REFERENCE, secret):
                return False
            name = match.groupdict().get("name") or "password"
            return not re.search(_EXAMPLE, secret) and (
                (name[0] in "pP" and name[1] in "aAwW") or not re.match(_NAME, secret)
            )
    return not re.search(_EXAMPLE, secret)


def _is_user_and_password(text: str) -> bool:
    try:
        return b":" in (decoded := b64decode(text, validate=True)) and decoded.decode().isprintable()
    except ValueError:
        return False


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
        longest = max(re.split(_PARTS, run), key=len)
        if len(longest) < LEAST_PART or re.fullmatch(_HEX, longest) or longest.isalpha():
            continue
        if re.search(_EXAMPLE, run) or _entropy(run) < LEAST_ENTROPY:
            continue
        name = re.search(_NAME_BEFORE, before[-80:].rpartition("\n")[2])
        by_name = name is not None and not re.search(_NOT_SECRET, name["name"])
        if by_name or not _is_data(text, *match.span()):
            yield *match.span(), by_name


def _is_data(text: str, start: int, end: int) -> bool:
    """Whether a run is a line of a block, as of a certificate, a public key or a picture."""
    first = text.rfind("\n", 0, start) + 1
    if text[first:start].strip(_MARGIN) or text[end : _line_end(text, end)].strip(_MARGIN):
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
