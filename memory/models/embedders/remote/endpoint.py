"""Who is asked for vectors, and within which limits (feature I6).

A key is sent to the host that it was issued for and to no other, and never without encryption to another machine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from ipaddress import ip_address
from urllib.parse import urlsplit

from speckit_memory.config.workspace.settings import (
    EMBEDDER_BATCH_VARIABLE,
    EMBEDDER_BUDGET_VARIABLE,
    EMBEDDER_DIMENSIONS_VARIABLE,
    EMBEDDER_KEY_VARIABLE,
    EMBEDDER_RATE_VARIABLE,
    EMBEDDER_TIMEOUT_VARIABLE,
    EMBEDDER_URL_VARIABLE,
)
from speckit_memory.errors import Problem, SpeckitError

SECONDS = 60.0
"""So long a request for passages may take, retries not counted, unless the environment says otherwise."""
LONGEST_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of service. `key_variable` holds the key for the host of `url` alone, "" where none is needed.

    A request holds at most so many `texts` and `tokens`, as this product counts them; both lie well within what the
    service says it takes.
    """

    url: str
    key_variable: str
    texts: int
    tokens: int
    dimensions_field: str
    roles: Mapping[str, str]
    """What the request's `input_type` is for queries and documents; empty where it has none."""


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", 256, 100_000, "dimensions", {}),
    "voyage": Provider(
        "https://api.voyageai.com/v1",
        "VOYAGE_API_KEY",
        128,
        50_000,
        "output_dimension",
        {"query": "query", "document": "document"},
    ),
    "ollama": Provider("http://127.0.0.1:11434/v1", "", 32, 16_000, "dimensions", {}),
    "llamacpp": Provider("http://127.0.0.1:8080/v1", "", 32, 16_000, "dimensions", {}),
}
"""By the word before the colon of a model's name. Any other server that speaks as OpenAI does is named `openai:MODEL`
with its address in SPECKIT_EMBEDDER_URL."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address. `budget` is the number of tokens that one process may send, None for no limit, and
    `per_minute` that of requests; `dimensions` are asked for, None for what the model gives by itself."""

    provider: str
    model: str
    url: str
    key: str = field(repr=False)
    key_variable: str
    texts: int
    tokens: int
    dimensions: int | None
    seconds: float
    per_minute: int | None
    budget: int | None

    @property
    def name(self) -> str:
        """As a user names it."""
        return f"{self.provider}:{self.model}"

    @property
    def host(self) -> str:
        """The host that texts are sent to, with its port if it has one of its own."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def request(self, texts: list[str], role: str) -> dict[str, object]:
        """The body of a request for the vectors of `texts`, which are a "query" or "document"s."""
        made = PROVIDERS[self.provider]
        body: dict[str, object] = {"model": self.model, "input": texts}
        if made.roles:
            body["input_type"] = made.roles[role]
        else:
            body["encoding_format"] = "float"
        if self.dimensions is not None:
            body[made.dimensions_field] = self.dimensions
        return body


def endpoint(provider: str, model: str, environ: Mapping[str, str]) -> Endpoint:
    """The endpoint that a name and the environment describe. Raises E001 with everything that is wrong with them."""
    made = PROVIDERS[provider]
    problems: list[Problem] = []
    url = (environ.get(EMBEDDER_URL_VARIABLE) or made.url).rstrip("/")
    if wrong := _wrong(url):
        raise SpeckitError.of([_problem(f"{EMBEDDER_URL_VARIABLE} is '{_without_user(url)}': {wrong}")])
    own = urlsplit(url).hostname == urlsplit(made.url).hostname
    variable = made.key_variable if own and made.key_variable else EMBEDDER_KEY_VARIABLE
    key = environ.get(variable, "")
    if own and made.key_variable and not key:
        problems.append(_problem(f"{provider}:{model} needs a key, and {variable} is not set"))
    if key and (not key.isascii() or not key.isprintable() or " " in key):
        problems.append(_problem(f"{variable} holds what no key can hold: blanks or other than printable ASCII"))
    if key and urlsplit(url).scheme == "http" and not _local(url):
        problems.append(_problem(f"{url} is not encrypted: the key in {variable} would be readable on its way"))

    def number(name: str, most: int) -> int | None:
        return _number(name, most, environ, problems)

    dimensions, batch = number(EMBEDDER_DIMENSIONS_VARIABLE, 8_192), number(EMBEDDER_BATCH_VARIABLE, 2_048)
    seconds = number(EMBEDDER_TIMEOUT_VARIABLE, LONGEST_SECONDS)
    per_minute, budget = number(EMBEDDER_RATE_VARIABLE, 1_000_000), number(EMBEDDER_BUDGET_VARIABLE, 10**12)
    if problems:
        raise SpeckitError.of(problems)
    return Endpoint(
        provider=provider,
        model=model,
        url=url,
        key=key,
        key_variable=variable,
        texts=batch or made.texts,
        tokens=made.tokens,
        dimensions=dimensions,
        seconds=float(seconds or SECONDS),
        per_minute=per_minute,
        budget=budget,
    )


def _number(name: str, most: int, environ: Mapping[str, str], problems: list[Problem]) -> int | None:
    written = environ.get(name, "")
    if not written:
        return None
    if not written.isascii() or not written.isdigit() or not 1 <= int(written) <= most:
        problems.append(_problem(f"{name} is '{written}', accepted: a whole number from 1 to {most:,}"))
        return None
    return int(written)


def _wrong(url: str) -> str:
    """Why this is no address to ask, "" when it is one."""
    tests: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("accepted: http:// or https://, then a host", lambda: urlsplit(url).scheme in ("http", "https")),
        ("it names no host", lambda: bool(urlsplit(url).hostname)),
        ("its port is no number up to 65535", lambda: urlsplit(url).port != 0),
        (f"a user or password does not belong there, a key goes into {EMBEDDER_KEY_VARIABLE}", lambda: "@" not in url),
        ("a query or fragment does not belong there", lambda: not {"?", "#"} & set(url)),
        ("it holds blanks or signs that are not printable", lambda: url.isprintable() and " " not in url),
    )
    for reason, holds in tests:
        try:
            if not holds():
                return reason
        except ValueError:
            return reason
    return ""


def _without_user(url: str) -> str:
    """An address to show: what stands before its host may be a password."""
    start, slashes, rest = url.partition("//")
    return f"{start}{slashes}{rest.rpartition('@')[2]}"


def _local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _problem(message: str) -> Problem:
    return Problem("E001", message, "Words find everything meanwhile.", ("see docs/embedders.md",))
