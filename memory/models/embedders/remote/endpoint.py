"""Configures the service that supplies vectors, and its limits (feature I6).

A key is only sent to the host for which it was issued, and never unencrypted to another machine.
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
"""Default time limit of a request for passages, without retries."""
LONGEST_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Provider:
    """A kind of service. `key_variable` names the variable with the key for the host of `url`, "" if it needs none.

    A request has at most `texts` texts and `tokens` tokens, by this product's count; both are well below the documented
    limits of the service.
    """

    url: str
    key_variable: str
    texts: int
    tokens: int
    dimensions_field: str
    roles: Mapping[str, str]
    """The request's `input_type` for queries and documents; empty if the service has none."""


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
"""Providers by the word before the colon of a model name. Other OpenAI-compatible servers are named `openai:MODEL`,
with their address in SPECKIT_EMBEDDER_URL."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A model at an address. `budget` limits the tokens that one process sends, and `per_minute` its requests; None for
    no limit. `dimensions` are requested from the model, None for its default."""

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
        """The name of the model in settings."""
        return f"{self.provider}:{self.model}"

    @property
    def host(self) -> str:
        """The host to which texts are sent, with its port if the address has one."""
        return urlsplit(self.url).netloc.rpartition("@")[2]

    def request(self, texts: list[str], role: str) -> dict[str, object]:
        """Return the body of a request for the vectors of `texts`; `role` is "query" or "document"."""
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
    """Return the endpoint for a name and the environment. Raises E001 with all configuration errors."""
    made = PROVIDERS[provider]
    problems: list[Problem] = []
    url = (environ.get(EMBEDDER_URL_VARIABLE) or made.url).rstrip("/")
    if wrong := _wrong(url):
        raise SpeckitError.of([_problem(f"{EMBEDDER_URL_VARIABLE} is '{_without_user(url)}': {wrong}")])
    # The provider's key only goes to the provider's host; any other host needs its own variable.
    own = urlsplit(url).hostname == urlsplit(made.url).hostname
    variable = made.key_variable if own and made.key_variable else EMBEDDER_KEY_VARIABLE
    key = environ.get(variable, "")
    if own and made.key_variable and not key:
        problems.append(_problem(f"{provider}:{model} needs a key, and {variable} is not set"))
    if key and (not key.isascii() or not key.isprintable() or " " in key):
        problems.append(_problem(f"{variable} is not a valid key: it has blanks or characters beyond printable ASCII"))
    if key and urlsplit(url).scheme == "http" and not _local(url):
        problems.append(_problem(f"{url} is not encrypted: the key in {variable} would be readable in transit"))

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
    """Return why the address of a service is invalid, "" if it is valid."""
    tests: tuple[tuple[str, Callable[[], bool]], ...] = (
        ("accepted: http:// or https://, then a host", lambda: urlsplit(url).scheme in ("http", "https")),
        ("it names no host", lambda: bool(urlsplit(url).hostname)),
        ("its port is not a number from 1 to 65535", lambda: urlsplit(url).port != 0),
        (f"a user or password does not belong there, a key goes into {EMBEDDER_KEY_VARIABLE}", lambda: "@" not in url),
        ("a query or fragment does not belong there", lambda: not {"?", "#"} & set(url)),
        ("it contains blanks or unprintable characters", lambda: url.isprintable() and " " not in url),
    )
    for reason, holds in tests:
        try:
            if not holds():
                return reason
        except ValueError:
            return reason
    return ""


def _without_user(url: str) -> str:
    """Return an address for messages, without user information, which may contain a password."""
    start, slashes, rest = url.partition("//")
    return f"{start}{slashes}{rest.rpartition('@')[2]}"


def _local(url: str) -> bool:
    host = urlsplit(url).hostname or ""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _problem(message: str) -> Problem:
    return Problem("E001", message, "Until then, searches use words only.", ("see docs/embedders.md",))
