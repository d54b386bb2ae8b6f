"""Models behind HTTP, asked of a service on this machine that answers well, slowly and wrongly (feature I6)."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from email.utils import formatdate
from typing import Any

import embedding_service
import numpy as np
import pytest
from embedding_service import Answer, Service, vector, well

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import StaticEmbedder
from speckit_memory.memory.models.embedders.choice import of_setting
from speckit_memory.memory.models.embedders.model_folder import Prompts
from speckit_memory.memory.models.embedders.remote import client as client_module
from speckit_memory.memory.models.embedders.remote import embedder as embedder_module
from speckit_memory.memory.models.embedders.remote import reply
from speckit_memory.memory.models.embedders.remote.client import EmbeddingClient, Pace
from speckit_memory.memory.models.embedders.remote.embedder import RemoteEmbedder
from speckit_memory.memory.models.embedders.remote.endpoint import endpoint

KEY = "sk-a-key-that-nobody-may-see"
BUNDLED = StaticEmbedder()

pytestmark = pytest.mark.requirement("I6")


@pytest.fixture
def service() -> Iterator[Service]:
    with embedding_service.running() as running:
        yield running


class Slept:
    """A clock that sleeping moves."""

    def __init__(self) -> None:
        self.now, self.naps = 100.0, list[float]()

    def clock(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.naps.append(seconds)
        self.now += seconds


def remote(service: Service, slept: Slept | None = None, kind: str = "openai", **environ: str) -> RemoteEmbedder:
    """The embedder of the service, which sleeps nowhere but on `slept`."""
    slept = slept or Slept()
    asked = endpoint(kind, "tiny", {"SPECKIT_EMBEDDER_URL": service.url, "SPECKIT_EMBEDDER_KEY": KEY, **environ})
    pace = Pace(asked.per_minute, asked.budget, slept.clock, slept.sleep)
    return RemoteEmbedder(asked, BUNDLED, Prompts("", ""), EmbeddingClient(asked, pace))


def refusal(embedder: RemoteEmbedder, texts: tuple[str, ...] = ("one", "two"), *, again: bool | None = None) -> str:
    """What embedding these texts is refused with; `again` if it matters whether that may pass by itself."""
    with pytest.raises(SpeckitError) as caught:
        embedder.embed_documents(texts)
    problem = caught.value.problems[0]
    assert problem.code == "E001"
    assert again in (None, problem.retryable)
    whole = f"{problem} {problem.hint} {problem.actions}"
    assert KEY not in whole
    return whole


def test_vectors_come_in_the_order_of_the_texts_whatever_the_order_of_the_answer(service: Service) -> None:
    rows = remote(service).embed_documents(["alpha beta", "  ", "gamma"])
    expected = np.array([vector("alpha beta"), vector("gamma")])
    assert np.allclose(rows[[0, 2]], expected / np.linalg.norm(expected, axis=1)[:, None], atol=1e-6)
    assert not rows[1].any()
    assert service.texts == ["alpha beta", "gamma"]  # a blank text is not sent


def test_texts_are_sent_in_batches_and_the_key_with_each(service: Service) -> None:
    embedder = remote(service, SPECKIT_EMBEDDER_BATCH="3")
    embedder.embed_documents([f"text {number}" for number in range(8)])
    assert [len(request["input"]) for request in service.requests] == [3, 3, 2]
    assert {headers["authorization"] for headers in service.headers} == {f"Bearer {KEY}"}


def test_a_batch_holds_no_more_tokens_than_the_service_takes(service: Service) -> None:
    embedder = remote(service, kind="ollama")
    most = embedder.endpoint.tokens
    long = "word " * (most // 3)
    embedder.embed_documents([long] * 5)
    assert [len(request["input"]) for request in service.requests] == [2, 2, 1]
    assert all(sum(embedder.count_tokens(request["input"])) <= most for request in service.requests)


def test_a_shorter_vector_is_asked_for_in_the_words_of_the_service(service: Service) -> None:
    rows = remote(service, kind="voyage", SPECKIT_EMBEDDER_DIMENSIONS="4").embed_documents(["one"])
    assert rows.shape == (1, 4)
    assert service.requests == [{"model": "tiny", "input": ["one"], "input_type": "document", "output_dimension": 4}]


def test_a_query_says_that_it_is_one_and_is_sent_once(service: Service) -> None:
    embedder = remote(service, kind="voyage")
    assert np.array_equal(embedder.embed_query("why"), embedder.embed_query("why"))
    assert [request["input_type"] for request in service.requests] == ["query"]


def busy(status: int, **headers: str) -> embedding_service.Behaviour:
    answer: Answer = (status, headers, b'{"error": {"message": "busy"}}')
    return lambda _service, _body: answer


@pytest.mark.parametrize("status", [429, 500, 502, 503, 529])
def test_a_busy_service_is_asked_again_after_growing_waits(service: Service, status: int) -> None:
    slept = Slept()
    service.behaviours = [busy(status)] * 3
    assert remote(service, slept).embed_documents(["one"]).shape == (1, 8)
    assert len(service.requests) == 4
    assert all(0.25 * 2**at <= nap <= 0.5 * 2**at for at, nap in enumerate(slept.naps))


@pytest.mark.parametrize("at", ["7", "date"])
def test_a_service_that_asks_to_wait_is_waited_for(service: Service, at: str) -> None:
    slept = Slept()
    service.behaviours = [
        busy(429, **{"Retry-After": formatdate(time.time() + 30, usegmt=True) if at == "date" else at})
    ]
    remote(service, slept).embed_documents(["one"])
    (nap,) = slept.naps
    assert nap == 7.0 or (at == "date" and 0 < nap <= 30)


def test_a_service_that_asks_to_wait_for_long_is_not(service: Service) -> None:
    service.behaviours = [busy(429, **{"Retry-After": "3600"})]
    told = refusal(remote(service), again=True)
    assert "429" in told
    assert "requests a wait of 3,600 s" in told
    assert len(service.requests) == 1


def test_who_stays_busy_is_given_up(service: Service) -> None:
    service.always = busy(500)
    assert "it answered 500" in refusal(remote(service), again=True)
    assert len(service.requests) == client_module.ATTEMPTS


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 302])
def test_what_will_not_get_better_is_not_tried_again(service: Service, status: int) -> None:
    said = f"your key {KEY} is not good"
    elsewhere = {"Location": "http://127.0.0.1:1/"}
    service.always = lambda _service, _body: (status, elsewhere, json.dumps({"error": said}).encode())
    told = refusal(remote(service), again=False)
    assert f"it answered {status}" in told
    assert "your key [key] is not good" in told
    assert len(service.requests) == 1


def data(rows: list[Any]) -> bytes:
    return json.dumps({"data": [{"index": at, "embedding": row} for at, row in enumerate(rows)]}).encode()


WRONG: dict[str, tuple[bytes, str]] = {
    "too few": (data([[1.0] * 8]), "1 vectors for 2 texts"),
    "too many": (data([[1.0] * 8] * 3), "3 vectors for 2 texts"),
    "uneven": (data([[1.0] * 8, [1.0] * 7]), "7 and 8 dimensions, expected one length"),
    "empty": (data([[], []]), "not a list of numbers"),
    "NaN": (data([[float("nan")] * 8] * 2), "zero or not finite"),
    "infinite": (data([[float("inf")] * 8] * 2), "zero or not finite"),
    "zero": (data([[0.0] * 8] * 2), "zero or not finite"),
    "vast": (data([[10**400] * 8] * 2), "too large"),
    "words": (data([["a"] * 8] * 2), "not a number"),
    "truths": (data([[True] * 8] * 2), "not a number"),
    "no data": (b'{"object": "list"}', "no list 'data'"),
    "a list": (b"[]", "no list 'data'"),
    "no objects": (b'{"data": [1, 2]}', "is not an object"),
    "places": (b'{"data": [{"index": 0, "embedding": [1]}, {"index": 0, "embedding": [1]}]}', "indexes"),
}


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_answer_is_refused_with_its_reason(service: Service, case: str) -> None:
    body, reason = WRONG[case]
    service.always = lambda _service, _body: (200, {}, body)
    assert reason in refusal(remote(service))
    assert len(service.requests) == 1


def test_vectors_of_another_length_than_before_are_refused(service: Service) -> None:
    embedder = remote(service)
    embedder.embed_documents(["one"])
    service.always = lambda service, body: well(service, body, dimensions=5)
    assert "5 dimensions, expected 8" in refusal(embedder)


@pytest.mark.parametrize("body", [b"<html>busy</html>", b'{"data": [{"embedding": [0.1, 0.', b"", b"[" * 100_000])
def test_what_is_not_json_is_asked_for_again(service: Service, body: bytes) -> None:
    service.behaviours = [lambda _service, _body: (200, {}, body)]
    assert remote(service).embed_documents(["one"]).shape == (1, 8)
    assert len(service.requests) == 2
    service.always = lambda _service, _body: (200, {}, body)
    assert "not JSON" in refusal(remote(service))


def test_a_dropped_connection_is_made_again(service: Service) -> None:
    service.behaviours = [lambda _service, _body: None, lambda _service, _body: (200, {"Content-Length": "99"}, b"{")]
    assert remote(service).embed_documents(["one"]).shape == (1, 8)
    assert len(service.requests) == 3


def test_an_answer_without_end_is_not_read(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reply, "LARGEST_FRAME", 1_000)
    monkeypatch.setattr(reply, "LARGEST_VECTOR", 1_000)
    service.always = lambda _service, _body: (200, {}, b" " * 1_000_000)
    assert "more than 3,000 bytes" in refusal(remote(service))
    assert len(service.requests) == 1


@pytest.mark.parametrize("how", ["silent", "dripping"])
@pytest.mark.usefixtures("exhaustive")
def test_a_slow_service_is_not_waited_for(service: Service, how: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder_module, "ATTEMPTS", 2)

    def slow(_service: Service, _body: dict[str, Any]) -> Answer:
        if how == "silent":
            time.sleep(2.5)
        return 200, {"x-drip": "yes"} if how == "dripping" else {}, b" " * 400

    service.always = slow
    told = refusal(remote(service, SPECKIT_EMBEDDER_TIMEOUT_S="1"))
    assert "did not answer within 1 s" in told or "not complete in time" in told
    assert len(service.requests) == 2


def test_nobody_there_is_told_by_address(service: Service) -> None:
    embedder = remote(service, SPECKIT_EMBEDDER_URL="http://127.0.0.1:1/v1")
    assert "127.0.0.1:1 cannot be used: the connection failed: ConnectError" in refusal(embedder)


def test_after_a_failed_query_the_service_rests_and_documents_still_ask(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    embedder = remote(service)
    service.behaviours = [busy(500)]
    for _ in range(3):
        with pytest.raises(SpeckitError, match="500"):
            embedder.embed_query("why")
    assert len(service.requests) == 1
    assert embedder.embed_documents(["one"]).shape == (1, 8)
    monkeypatch.setattr(embedder, "_rests_until", 0.0)
    assert embedder.embed_query("why").any()


def test_no_more_requests_begin_in_a_minute_than_are_allowed(service: Service) -> None:
    slept = Slept()
    embedder = remote(service, slept, SPECKIT_EMBEDDER_BATCH="1", SPECKIT_EMBEDDER_REQUESTS_PER_MINUTE="2")
    embedder.embed_documents(["one", "two", "three", "four", "five"])
    assert slept.naps == [60.0, 60.0]
    with pytest.raises(SpeckitError, match="limit of requests per minute"):
        [embedder.embed_query(f"query {number}") for number in range(3)]
    assert slept.naps == [60.0, 60.0]  # a query is not held back so long, it is answered by words


def test_the_budget_of_tokens_ends_before_it_is_overdrawn(service: Service) -> None:
    texts = [f"text number {number}" for number in range(20)]
    each = BUNDLED.count_tokens(texts[:1])[0]
    embedder = remote(service, SPECKIT_EMBEDDER_BATCH="1", SPECKIT_EMBEDDER_TOKEN_BUDGET=str(each * 4))
    assert "the budget of" in refusal(embedder, tuple(texts))
    assert 0 < sum(BUNDLED.count_tokens(service.texts)) <= each * 4


def test_a_key_goes_to_nobody_but_the_host_it_is_for(service: Service) -> None:
    environ = {"OPENAI_API_KEY": KEY, "VOYAGE_API_KEY": KEY, "SPECKIT_EMBEDDER_URL": service.url}
    for kind in ("openai", "voyage", "ollama", "llamacpp"):
        of_setting(f"{kind}:tiny", environ, BUNDLED).embed_documents(["one"])
    assert len(service.headers) == 4
    assert not any("authorization" in headers or KEY in str(headers) for headers in service.headers)


def test_a_key_is_neither_shown_nor_part_of_the_models_name(service: Service) -> None:
    embedder = remote(service)
    assert KEY not in f"{embedder.model_id} {embedder.provenance} {embedder.endpoint!r}"
    other = remote(service, SPECKIT_EMBEDDER_KEY="another")
    assert embedder.model_id == other.model_id
    assert remote(service, SPECKIT_EMBEDDER_DIMENSIONS="4").model_id != embedder.model_id


SETTINGS: dict[str, tuple[dict[str, str], tuple[str, ...]]] = {
    "no key": ({}, ("openai:tiny needs a key, and OPENAI_API_KEY is not set",)),
    "a wrong key": ({"OPENAI_API_KEY": "a b"}, ("OPENAI_API_KEY is not a valid key",)),
    "no address": ({"SPECKIT_EMBEDDER_URL": "example.org/v1"}, ("http:// or https://",)),
    "no host": ({"SPECKIT_EMBEDDER_URL": "https:///v1"}, ("names no host",)),
    "a port": ({"SPECKIT_EMBEDDER_URL": "https://example.org:99999"}, ("port",)),
    "a user": ({"SPECKIT_EMBEDDER_URL": f"https://me:{KEY}@example.org"}, ("a user or password",)),
    "plain": (
        {"SPECKIT_EMBEDDER_URL": "http://example.org/v1", "SPECKIT_EMBEDDER_KEY": KEY},
        ("not encrypted: the key in SPECKIT_EMBEDDER_KEY",),
    ),
    "numbers": (
        {
            "SPECKIT_EMBEDDER_URL": "https://example.org",
            "SPECKIT_EMBEDDER_DIMENSIONS": "0",
            "SPECKIT_EMBEDDER_BATCH": "-1",
            "SPECKIT_EMBEDDER_TIMEOUT_S": "soon",
            "SPECKIT_EMBEDDER_REQUESTS_PER_MINUTE": "1.5",
            "SPECKIT_EMBEDDER_TOKEN_BUDGET": "99999999999999",
        },
        ("DIMENSIONS is '0'", "BATCH is '-1'", "TIMEOUT_S is 'soon'", "MINUTE is '1.5'", "BUDGET is '9999"),
    ),
}


@pytest.mark.parametrize("case", SETTINGS)
def test_wrong_settings_are_told_all_at_once_and_nothing_is_sent(case: str) -> None:
    environ, expected = SETTINGS[case]
    embedder = of_setting("openai:tiny", environ, BUNDLED)
    with pytest.raises(SpeckitError) as caught:
        embedder.embed_query("text")
    told = " ".join(map(str, caught.value.problems))
    assert all(part in told for part in expected), told
    assert KEY not in told
    assert len(caught.value.problems) == len(expected)


@pytest.mark.parametrize(
    ("setting", "part"),
    [
        ("opnai:tiny", "did you mean 'openai'?"),
        ("fastembd:BAAI/bge-small-en-v1.5", "did you mean 'fastembed'?"),
        ("bundeld", "did you mean 'bundled'?"),
        ("openai:", "names no model after the colon, as in openai:text-embedding-3-small"),
        ("openai:a b", "names no model after the colon"),
    ],
)
def test_a_wrong_name_is_told_with_the_nearest(setting: str, part: str) -> None:
    with pytest.raises(SpeckitError) as caught:
        of_setting(setting, {}, BUNDLED).embed_query("text")
    assert part in caught.value.problems[0].message


@pytest.mark.parametrize(
    ("environ", "name"),
    [
        ({}, "bundled"),
        ({"OPENAI_API_KEY": KEY}, "openai:text-embedding-3-small"),
        ({"OPENAI_API_KEY": KEY, "VOYAGE_API_KEY": KEY}, "voyage:voyage-3.5"),
    ],
)
def test_keys_are_looked_at_for_who_said_auto_and_for_nobody_else(environ: dict[str, str], name: str) -> None:
    assert of_setting("auto", environ, BUNDLED).provenance.name == name
    assert of_setting("", environ, BUNDLED) is BUNDLED
    assert of_setting("bundled", environ, BUNDLED) is BUNDLED
