"""Patterns of keys, tokens and passwords, and of lookalikes: examples, placeholders and names.

Patterns begin with a fixed marker or match possessively, so that the time is linear in the length of the text.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

LEAST_PART = 12
"""Minimum characters of the longest part between hyphens; in names, parts are words: shorter or without digits."""
LONGEST_KEY_BLOCK = 20_000
"""Characters; keys of 16,384 bits take 13,000."""


@dataclass(frozen=True)
class SecretKind:
    """A kind of secret. A text without any of the `marks` contains none."""

    name: str
    marks: tuple[str, ...]
    source: str
    """The pattern. The group `secret` is redacted, or the whole match if there is no such group."""
    flags: int = 0

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """Compiled at first use, since searches do not need it."""
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
"""The end of names of secrets: `DB_PASSWORD`, `clientSecret`, `github_token`, `x-api-key`. Each spelling is a separate
alternative, because a case-insensitive pattern takes four times as long."""
_CONNECTION_VALUE = r"(?P<quote>['\"]?)(?P<secret>[^\s;&\"'`<>(){}\[\]$*%]{3,200}+)(?=(?P=quote)(?:[\s;&\"'`)]|\Z))"
_LIBPQ = r"\b(?:host|hostaddr|user|dbname|port)=[^\s;]{0,200}[^\s;,] (?:[a-z_]{1,30}+=[^\s;]{0,200}[^\s;,] ){0,8}?"

FORMS = (
    SecretKind(
        "private key",
        ("-----BEGIN", "AGE-SECRET-KEY-1"),
        rf"-----BEGIN {_KEY}-----(?:(?:[^-]|-(?!----)){{0,{LONGEST_KEY_BLOCK}}}+-----END {_KEY}-----"
        r"|(?:[\s>]{0,8}[A-Za-z0-9+/=]{16,100}+(?![^\s]))+)"
        r"|AGE-SECRET-KEY-1[A-Z0-9]{50,80}+",
    ),
    SecretKind(
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
    SecretKind("api key", ("AC", "SK"), _START + r"(?:AC|SK)[0-9a-f]{32}" + _END),
    SecretKind(
        "webhook",
        ("hooks.slack.com/", "/api/webhooks/", ".webhook.office.com/"),
        r"(?:hooks\.slack\.com/(?:services|workflows|triggers)/|discord(?:app)?\.com/api/webhooks/"
        r"|\.webhook\.office\.com/webhookb2/)(?P<secret>[A-Za-z0-9@_-]{6,90}+(?:/[A-Za-z0-9_-]{1,90}+){1,8})",
    ),
    SecretKind(
        "bot token",
        (":",),
        r"[0-9]{8,10}+:(?=[A-Za-z_-]{0,34}[0-9])(?=[0-9A-Z_-]{0,34}[a-z])(?=[0-9a-z_-]{0,34}[A-Z])"
        r"[A-Za-z0-9_-]{35}(?![A-Za-z0-9_-])",
    ),
    SecretKind(
        "github token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _START + r"(?:gh[opsur]_[A-Za-z0-9]{36,255}+|github_pat_[A-Za-z0-9_]{50,255}+)" + _END,
    ),
    SecretKind(
        "aws key",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _START + r"(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}" + _END,
    ),
    SecretKind(
        "aws secret",
        ("aws", "AWS", "Aws"),
        r"aws[_.-]?(?:secret|session)[a-z_.-]{0,30}+[\"']?\s{0,3}+[:=]\s{0,3}+[\"']?(?P<secret>[A-Za-z0-9/+]{40}"
        r"(?![A-Za-z0-9/+]))",
        re.IGNORECASE,
    ),
    SecretKind(
        "jwt",
        ("eyJ",),
        _START + r"eyJ[A-Za-z0-9_-]{8,4000}+\.eyJ[A-Za-z0-9_-]{8,8000}+\.[A-Za-z0-9_-]{8,2000}+",
    ),
    SecretKind(
        "bearer token",
        ("earer", "EARER"),
        r"\bbearer[ \t]{1,3}+[\"']?(?P<secret>(?=[A-Za-z._~+/-]{0,80}[0-9])[A-Za-z0-9._~+/-]{16,4000}+=*+)",
        re.IGNORECASE,
    ),
    SecretKind(
        "basic authorization",
        ("asic ", "ASIC "),
        r"\bbasic[ \t]{1,3}+(?P<secret>[A-Za-z0-9+/]{4,2000}+={0,2}+)(?![A-Za-z0-9+/=])",
        re.IGNORECASE,
    ),
    SecretKind(
        "password in address",
        ("://",),
        r"(?<=://)[^\s:/@?#\"'<>\[\]{}$]{0,100}+:(?P<secret>[^\s/@\"'<>{}$*]{3,200}+)(?=@[A-Za-z0-9\[])",
    ),
    SecretKind(
        "password in netrc",
        ("machine", "login"),
        r"\b(?:machine\s{1,8}+(?:[^\s.]{0,90}+\.\S{1,200}+|\S{1,200}+(?=\s{1,8}(?:login|account)\s))|default(?=\s{1,8}login\s))"
        r"(?:\s{1,8}+(?:login|account)\s{1,8}+\S{1,200}+){0,2}\s{1,8}+password\s{1,8}+(?P<secret>[^\s<>\"'`]{3,300}+)",
    ),
    *(
        SecretKind(
            "password", ("wd=", "word=", "WD=", "WORD=", "Wd="), before + rf"{_PASSWORD}={_CONNECTION_VALUE}", re.I
        )
        for before in (r"(?:(?<=[;&?])|(?<=; ))", r"\b(?=[^\s;&]{4,200};[ ]?[A-Za-z][A-Za-z ]{1,30}=)", _LIBPQ)
    ),
    SecretKind(
        "password",
        (
            *("assw", "ASSW", "pwd", "PWD", "Pwd", "ecret", "ECRET", "oken", "OKEN", "key", "KEY", "Key", "phrase"),
            *("PHRASE", "redential", "REDENTIAL"),
        ),
        rf"(?P<name>{_KEY_NAME})[\"']?[ \t]{{0,3}}+(?::=|=>|[:=])[ \t]{{0,3}}+(?P<quote>[\"'`]?)"
        r"(?P<secret>(?=[^\s\"'`]{0,60}[0-9])(?=[^\s\"'`]{0,60}[A-Za-z])[^\s\"'`<>(){}\[\]$,;]{8,300}+)"
        r"(?=(?P=quote)(?:[\s,;}\]]|\Z))",
    ),
    SecretKind(
        "e-mail address",
        ("@",),
        r"(?<![A-Za-z0-9._%+-])[A-Za-z0-9_%+-]{1,64}+(?:\.[A-Za-z0-9_%+-]{1,64}+){0,8}+@(?:[A-Za-z0-9-]{1,63}+\.){1,8}[A-Za-z]{2,24}+"
        r"(?![A-Za-z0-9-])",
    ),
)

# Strings, not patterns: `re` compiles and caches them at first use, and searches do not need them.
PARTS = r"[-_/+]"
_BODY_OF_KEY = r"[A-Za-z0-9+/=]{16}"
EXAMPLE = r"(?i)example|placeholder|change_?me|your(?:[-_ ]|pass|secret|token|key|api)|dummy|x{6}|\*{4}|redacted|\.\.\."
_WORDS = frozenset(
    {
        *("password", "passwd", "pass", "pwd", "secret", "token", "key", "mysecretpassword", "mypassword", "changeit"),
        *("postgres", "root", "admin", "user", "username", "test", "guest", "string", "none", "null", "true", "false"),
        "undefined",
    }
)
"""Dummy passwords in examples and test configurations."""
_REFERENCE = (
    r"(?:\.{0,2}/|~/|\\|[A-Za-z]:\\|[a-z]{2,10}://|arn:|sha(?:1|224|256|384|512)[:=-])"
    r"|(?:self|this|process|os|env|environ|config|conf|cfg|settings|args|params|props|req|request|data|opts|options|ctx"
    r"|context|cls|app|user|account|secrets?|vars?|local|module|vault|creds|credentials)\."
    r"|[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\Z"
    r"|(?i:u?int|bytes|base(?:32|58|64)|utf-?(?:8|16)|[a-z]s(?:256|512)|ed25519|x25519|secp256|aes-?[0-9]|hmac)\w{0,12}\Z"
)
"""Paths, addresses, names of variables, types and algorithms: references to a secret, not the secret itself."""
_NAME = (
    r"[a-z]+(?:[-_.:/][a-z]+)*[-_.:/]v?[0-9]{1,2}\Z|[a-z]+(?:[-_.:/][a-z0-9]{1,12})*[-_.:/][a-z]+\Z"
    r"|_{1,2}[a-z]\w*\Z|[A-Za-z_][\w.]*(?:Keys?|Tokens?|Secrets?|Types?)\Z"
)
"""Names composed of words: of secrets in a cluster, of variables and of types."""
_EXAMPLE_ADDRESS = (
    r"(?i)(?:^|[.@])(?:example(?:\.[a-z]{2,6})?|test|invalid|localhost)$|^(?:git|noreply|no-reply)@|@users\.noreply\."
)


def matches(kind: SecretKind, text: str) -> Iterator[tuple[int, int]]:
    """Yield the offsets of secrets of a kind in a text that contains one of its marks."""
    group: str | int = "secret" if "secret" in kind.pattern.groupindex else 0
    for match in kind.pattern.finditer(text):
        if _is_secret(kind.name, match[group], match):
            yield match.span(group)


def _is_secret(kind: str, secret: str, match: re.Match[str]) -> bool:
    """Whether a match is a secret rather than an example or a name of the same form."""
    match kind:
        case "e-mail address":
            return not re.search(_EXAMPLE_ADDRESS, secret)
        case "private key" if secret.startswith("-----"):
            return bool(re.search(_BODY_OF_KEY, secret.split("-----")[2]))
        case "private key" | "jwt":
            return True
        case "bot token":  # context checked here: a pattern that begins with a digit is many times faster
            return match.string[max(0, match.start() - 1) : match.start()] not in tuple("0123456789.:_-")
        case "basic authorization":
            return _is_user_and_password(secret)
        # Names with hyphens also begin with sk-; their parts are words.
        case "api key" if secret.startswith("sk-"):
            longest = max(re.split(PARTS, secret), key=len)
            return len(longest) >= LEAST_PART and not longest.isalpha() and not re.search(EXAMPLE, secret)
        case "password" | "password in address":
            if secret.lower() in _WORDS or re.match(_REFERENCE, secret):
                return False
            name = match.groupdict().get("name") or "password"
            return not re.search(EXAMPLE, secret) and (
                (name[0] in "pP" and name[1] in "aAwW") or not re.match(_NAME, secret)
            )
    return not re.search(EXAMPLE, secret)


def _is_user_and_password(text: str) -> bool:
    try:
        return b":" in (decoded := b64decode(text, validate=True)) and decoded.decode().isprintable()
    except ValueError:
        return False
