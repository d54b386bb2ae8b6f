"""Requests vectors from a service, with timeouts, retries and limits (feature I6)."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import deque
from collections.abc import Callable
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.echo import abridge
from speckit_memory.memory.models.embedders.remote import reply
from speckit_memory.memory.models.embedders.remote.endpoint import Endpoint
from speckit_memory.memory.models.embedders.remote.reply import ReplyError
from speckit_memory.pipeline.ports import Vectors

if TYPE_CHECKING:
    import httpx2


MINUTE = 60.0


class Pace:
    """Delays requests beyond `per_minute` in any minute, and refuses those beyond the `budget` of tokens.

    Safe to share between threads. `clock` and `sleep` are in seconds; None means no limit.
    """

    def __init__(
        self,
        per_minute: int | None,
        budget: int | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._per_minute, self._budget = per_minute, budget
        self._clock, self.sleep = clock, sleep
        self._guard = threading.Lock()
        self._begun: deque[float] = deque()
        self.spent = 0
        """Tokens sent, including those of failed requests, which the service may have counted."""

    def pay(self, tokens: int) -> None:
        """Charge the tokens of a request. Raises E001, without charging them, if they exceed the rest of the budget."""
        with self._guard:
            if self._budget is not None and self.spent + tokens > self._budget:
                raise SpeckitError(
                    "E001",
                    f"the budget of {self._budget:,} tokens is spent: {self.spent:,} were sent, "
                    f"the next request has {tokens:,}",
                    hint="The rest stays pending; finished vectors stay in the cache.",
                    actions=("index again to resume", "raise SPECKIT_EMBEDDER_TOKEN_BUDGET"),
                )
            self.spent += tokens

    def wait(self, longest: float) -> bool:
        """Wait until another request may begin; return False at once if that would take longer than `longest`."""
        while self._per_minute is not None:
            with self._guard:
                now = self._clock()
                # Sliding window: the start times of the requests in the last minute.
                while self._begun and now - self._begun[0] >= MINUTE:
                    self._begun.popleft()
                if len(self._begun) < self._per_minute:
                    self._begun.append(now)
                    return True
                left = MINUTE - (now - self._begun[0])
            if left > longest:
                return False
            self.sleep(left)
            longest -= left
        return True


ATTEMPTS = 5
FIRST_WAIT = 0.5
"""Seconds before the second attempt, doubled before each further one; half of the wait is random (jitter)."""
LONGEST_WAIT = 60.0
"""Longest wait in seconds that a service may request; with a longer one, the request fails."""
CONNECT_SECONDS = 10.0
BUSY = frozenset({408, 425, 429, 500, 502, 503, 504, 529})
"""HTTP status codes after which a retry may succeed."""
SHOWN = 200
"""Characters of a service's reply shown in messages."""

_WHAT_TO_DO = {
    400: "The service does not accept the request: check whether it knows the model and supports these dimensions.",
    401: "The service does not accept the key in {variable}.",
    403: "The service does not permit this with the key in {variable}.",
    404: "The service does not know the model or the address {url}.",
    413: "The service accepts fewer texts per request: set SPECKIT_EMBEDDER_BATCH to a smaller number.",
    429: "The service receives too many requests: set SPECKIT_EMBEDDER_REQUESTS_PER_MINUTE, or check the account.",
}


class _BusyError(Exception):
    """A retry may succeed; `wait` is the wait that the service requests, in seconds."""

    def __init__(self, reason: str, wait: float | None = None, hint: str = "") -> None:
        super().__init__(reason)
        self.wait, self.hint = wait, hint


class EmbeddingClient:
    """A client of one service. Safe to share between threads; it connects with the first request."""

    def __init__(self, endpoint: Endpoint, pace: Pace | None = None) -> None:
        self._endpoint = endpoint
        self._pace = pace or Pace(endpoint.per_minute, endpoint.budget)
        self._http: httpx2.Client | None = None
        self._chance = random.Random()

    def vectors(
        self, texts: list[str], role: str, tokens: int, dimensions: int | None, *, seconds: float, attempts: int
    ) -> Vectors:
        """Request the vectors of texts.

        Args:
            texts: The texts of one request.
            role: "query" or "document".
            tokens: The number of tokens of the texts, charged to the budget for each attempt.
            dimensions: The expected length of a vector, None if unknown.
            seconds: The time limit of one attempt.
            attempts: The number of attempts.

        Returns:
            Unit rows, shape (len(texts), dimensions).

        Raises:
            SpeckitError: E001 if all attempts fail or a limit is reached.
        """
        # Exponential backoff with jitter; a Retry-After of the service takes precedence.
        for attempt in range(1, attempts + 1):
            if not self._pace.wait(seconds if attempts == 1 else LONGEST_WAIT * 2):
                raise self._failed("the limit of requests per minute is reached", retryable=True)
            self._pace.pay(tokens)
            try:
                return self._once(texts, role, dimensions, seconds)
            except _BusyError as busy:
                wait = busy.wait if busy.wait is not None else self._wait(attempt)
                if attempt == attempts:
                    tried = f" ({attempts} attempts)" if attempts > 1 else ""
                    raise self._failed(f"{busy}{tried}", busy.hint, retryable=True) from busy
                if wait > LONGEST_WAIT:
                    asks = f"{busy}, and requests a wait of {wait:,.0f} s"
                    raise self._failed(asks, busy.hint, retryable=True) from busy
                self._pace.sleep(wait)
        raise AssertionError  # the last attempt returns or raises

    def _wait(self, attempt: int) -> float:
        return FIRST_WAIT * float(2 ** (attempt - 1)) * (0.5 + 0.5 * self._chance.random())

    def _once(self, texts: list[str], role: str, dimensions: int | None, seconds: float) -> Vectors:
        import httpx2

        # The timeouts of the HTTP client apply to single reads; `until` limits the whole reply.
        until = time.monotonic() + seconds
        limits = httpx2.Timeout(seconds, connect=min(CONNECT_SECONDS, seconds))
        content = json.dumps(self._endpoint.request(texts, role)).encode()
        try:
            with self._opened().stream(
                "POST", f"{self._endpoint.url}/embeddings", content=content, headers=self._headers(), timeout=limits
            ) as response:
                body = self._body(response, reply.largest(len(texts)), until)
                self._judge(response.status_code, response.headers, body)
        except httpx2.TimeoutException as error:
            raise _BusyError(f"it did not answer within {seconds:g} s") from error
        except httpx2.HTTPError as error:
            raise _BusyError(f"the connection failed: {type(error).__name__}: {self._told(str(error))}") from error
        except httpx2.InvalidURL as error:
            raise self._failed(f"{self._endpoint.url} is not a valid address: {error}") from error
        try:
            return reply.vectors(body, len(texts), dimensions)
        except ReplyError as error:
            if error.again:
                raise _BusyError(str(error)) from error
            raise self._failed(str(error)) from error

    def _body(self, response: httpx2.Response, most: int, until: float) -> bytes:
        """Read the whole reply; one that is too slow or too long is rejected."""
        body = bytearray()
        for part in response.iter_bytes():
            body += part
            if len(body) > most:
                raise self._failed(f"its answer has more than {most:,} bytes")
            if time.monotonic() > until:
                raise _BusyError("its answer was not complete in time")
        return bytes(body)

    def _judge(self, status: int, headers: httpx2.Headers, body: bytes) -> None:
        if 200 <= status < 300:
            return
        said = self._told(body[: 4 * SHOWN].decode(errors="replace"))
        reason = f"it answered {status}" + (f": {said}" if said else "")
        hint = _WHAT_TO_DO.get(status, "").format(variable=self._endpoint.key_variable, url=self._endpoint.url)
        if status in BUSY:
            raise _BusyError(reason, _asked_to_wait(headers.get("retry-after")), hint)
        raise self._failed(reason, hint)

    def _headers(self) -> dict[str, str]:
        headers = {"Content-Type": "application/json", "Accept": "application/json", "Accept-Encoding": "identity"}
        if self._endpoint.key:
            headers["Authorization"] = f"Bearer {self._endpoint.key}"
        return headers

    def _opened(self) -> httpx2.Client:
        if self._http is None:
            import httpx2

            # A redirect would send texts, and perhaps the key, to a host that the user has not named.
            self._http = httpx2.Client(follow_redirects=False)
        return self._http

    def _told(self, said: str) -> str:
        """Return the message of a service on one line, without the key."""
        plain = " ".join(said.split())
        if self._endpoint.key:
            plain = plain.replace(self._endpoint.key, "[key]")
        return abridge(plain, SHOWN)

    def _failed(self, reason: str, hint: str = "", *, retryable: bool = False) -> SpeckitError:
        return SpeckitError(
            "E001",
            f"{self._endpoint.name} at {self._endpoint.host} cannot be used: {reason}",
            hint=hint or "Until then, searches use words only.",
            actions=("index again to resume: finished vectors stay in the cache", "see docs/embedders.md"),
            retryable=retryable,
        )


def _asked_to_wait(header: str | None) -> float | None:
    """Return the seconds of a Retry-After header, a number or a date; None if it is missing or invalid."""
    if not header:
        return None
    try:
        seconds = float(header)
    except ValueError:
        try:
            seconds = parsedate_to_datetime(header).timestamp() - time.time()
        except (ValueError, OverflowError):
            return None
    return max(seconds, 0.0) if seconds == seconds else None  # noqa: PLR0124 - a header may say "nan"
