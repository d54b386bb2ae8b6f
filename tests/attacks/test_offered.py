"""URIs, prompts and completions that nobody means: each is answered in short, none is a defect, nothing leaks."""

from __future__ import annotations

import json
from typing import Any

import pytest
from raw_server import RawServer
from tally import Tally

from tests.attacks.test_tools import DEFECTS, MOST, NESTED, NUMBERS, TEXTS

pytestmark = pytest.mark.usefixtures("processes")

URIS = [
    "memory://../../etc/passwd", "memory:///etc/passwd", "memory://docs/../../secret.md", "memory://..%2f..%2fsecret.md",
    "memory://%00", "memory://docs/%", "memory://%ff%fe", "memory://%ud83d", "memory://docs/fusion.md%00.png",
    "memory://user:pass@host:1/x", "memory://[::1]/x", "memory://' OR 1=1 --", "memory://-1", "memory://" + "9" * 30,
    "memory://" + "%2e%2e/" * 500, "MEMORY://docs/fusion.md", "memory:docs/fusion.md", "memory:/docs/fusion.md",
    "speckit://", "speckit://pipeline/../x", "speckit://pipeline?x=1", "speckit://pipeline#x", "file:///etc/passwd",
    "http://127.0.0.1:1/", "data:text/plain,x", "//", "\\\\host\\share",
]  # fmt: skip
TEMPLATE = {"type": "ref/resource", "uri": "memory://{+key}"}
PROMPTS = {"handover": ("task", "folder"), "why": ("memory",), "remember": ("topic", "folder")}


def answered(server: RawServer, number: int, method: str, params: object) -> dict[str, Any]:
    """The answer to a request, of whatever kind, after checking what holds for all answers."""
    server.send({"jsonrpc": "2.0", "id": f"offered-{number}", "method": method, "params": params})
    answer = server.answer(f"offered-{number}")
    text = json.dumps(answer)
    assert len(text) <= MOST, method
    assert not any(f'"{code}"' in text or f"{code} " in text for code in DEFECTS), (method, params, text[:500])
    assert "root:" not in text
    return answer


@pytest.mark.usefixtures("processes")
def test_hostile_uris_cursors_and_references_are_refused(server: RawServer, tally: Tally) -> None:
    secret = "Scores of lexical"
    asked: list[tuple[str, dict[str, Any]]] = [("resources/read", {"uri": uri}) for uri in [*URIS, *TEXTS]]
    asked += [("resources/read", {"uri": f"memory://{text}"}) for text in TEXTS if text != "1"]  # which is an id
    asked += [("resources/list", {"cursor": text}) for text in TEXTS]
    asked += [("resources/read", {"uri": value}) for value in (*NUMBERS[:6], *NESTED[:8])]
    asked += [
        ("completion/complete", {"ref": reference, "argument": {"name": "key", "value": ""}})
        for reference in [{"type": "ref/resource", "uri": text} for text in TEXTS]
        + [{"type": "ref/prompt", "name": text} for text in TEXTS]
    ]
    for number, (method, params) in enumerate(asked):
        answer = answered(server, number, method, params)
        error = answer["error"]
        assert error["code"] in (-32602, -32600), (params, error)
        assert secret not in json.dumps(error)
        tally.tried()


def test_every_value_of_every_argument_of_a_prompt_is_taken_or_refused_in_short(
    server: RawServer, tally: Tally
) -> None:
    number = 10_000
    for prompt, names in PROMPTS.items():
        for name in names:
            for value in [*TEXTS, *NUMBERS[:6], *NESTED[:8]]:
                number += 1
                answer = answered(server, number, "prompts/get", {"name": prompt, "arguments": {name: value}})
                if "error" in answer:
                    assert answer["error"]["code"] == -32602, (prompt, name, answer)
                else:
                    [message] = answer["result"]["messages"]
                    assert all(ord(sign) >= 32 or sign == "\n" for sign in message["content"]["text"])
                tally.tried()
            for value in TEXTS:
                number += 1
                reference = {"type": "ref/prompt", "name": prompt}
                params = {"ref": reference, "argument": {"name": name, "value": value}}
                found = answered(server, number, "completion/complete", params)["result"]["completion"]
                assert len(found["values"]) <= min(100, found["total"])
                tally.tried()
    answer = answered(server, 0, "prompts/get", {"name": "why", "arguments": {"x" * 100_000: "1"}})
    assert len(json.dumps(answer)) < 5_000


def test_what_is_typed_is_no_pattern(server: RawServer, tally: Tally) -> None:
    for number, value in enumerate(("%", "_", "*", "d%", ".*", "[a-z]", "doc?", "'", "\\", "d_cs")):
        params = {"ref": TEMPLATE, "argument": {"name": "key", "value": value}}
        assert answered(server, 20_000 + number, "completion/complete", params)["result"]["completion"]["values"] == []
        tally.tried()


def test_subscriptions_are_bounded_and_whatever_they_name_harms_nobody(server: RawServer, tally: Tally) -> None:
    def subscribe(number: int, uri: object, method: str = "resources/subscribe") -> dict[str, Any]:
        tally.tried()
        return answered(server, 30_000 + number, method, {"uri": uri})

    for number, uri in enumerate([*URIS, *TEXTS]):
        assert "result" in subscribe(number, uri)
        assert "result" in subscribe(number, uri, "resources/unsubscribe")
        assert "result" in subscribe(number, uri, "resources/unsubscribe")
    for number, value in enumerate((*NUMBERS[:6], *NESTED[:8])):
        assert subscribe(number, value)["error"]["code"] == -32602
    taken = [uri for uri in (f"memory://{number}" for number in range(1_005)) if "result" in subscribe(0, uri)]
    assert len(taken) == 1_000
    assert "at most 1,000 are accepted" in subscribe(0, "memory://one/more")["error"]["message"]
    for uri in taken:
        subscribe(0, uri, "resources/unsubscribe")
    assert "result" in subscribe(0, "memory://one/more")
    assert "result" in subscribe(0, "memory://one/more", "resources/unsubscribe")
