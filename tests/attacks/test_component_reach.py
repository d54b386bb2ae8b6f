"""What of a component reaches the frame past its answers: errors in the frame's own classes, objects it leaves in the
process, spellings that grow, parameters of a familiar name, and extensions that cannot be loaded."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from frame.attacking import ANNOTATED, NOW, TEXT, memory, target
from frame.attacks import Attack
from frame.hostile import attacked, component
from isolated.distributions import installed
from tally import Tally

from speckit_memory.engine.answers.request import SearchRequest
from speckit_memory.pipeline.model.columns import Hits, Notes, Plan, Query, Respelling
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import ChannelParams, Role
from speckit_memory.pipeline.running.runner import Runner
from tests.server.doors import call

pytestmark = pytest.mark.requirement("P9")


def test_spellings_that_stand_for_themselves_do_not_grow(tally: Tally) -> None:
    twice = Respelling("gateway", "gateway", {"gateway": 1.0}, " ".join(["gateway"] * 20))
    plan = Plan(variants=(TEXT,), respelt=(twice,) * 100)
    assert Query(text=TEXT, now=NOW).planned(plan).reading == TEXT.replace("gateway", twice.reading)
    tally.tried()


@pytest.mark.parametrize(
    "change",
    [
        {"respelt": (Respelling("gateway", "gateway", {"gateway": 1.0}, "x" * 201),)},
        {"respelt": (Respelling("gateway", "gateway", {"x" * 201: 1.0}, "gateway"),)},
        {"respelt": (Respelling("", "", {"gateway": 1.0}, "gateway"),)},
        {"variants": (TEXT, "x " * 5001)},
    ],
)
@pytest.mark.parametrize("role", [Role.UNDERSTANDER, Role.RECOVERER])
def test_texts_of_a_plan_are_no_longer_than_those_of_questions(
    role: Role, change: dict[str, Any], tally: Tally
) -> None:
    def planned(query: Query, plan: Plan, store: Any) -> Plan:
        own = {"variants": (query.text, *change["variants"][1:])} if "variants" in change else change
        return replace(plan, **own)

    target(role).refuses(Attack(f"{change}"[:50], planned))
    tally.tried()


@pytest.mark.parametrize("value", ["high", None, [], float("nan"), True])
@pytest.mark.parametrize("name", ["min_similarity", "level"])
def test_a_parameter_of_a_familiar_name_may_be_anything(name: str, value: Any, tmp_path: Path, tally: Tally) -> None:
    kind = type("Params", (ChannelParams,), {"__annotations__": {name: Any}, name: value})
    made = component(Role.CHANNEL, lambda *asked: Hits(np.empty(0, np.int64), np.empty(0), Scale.UNIT))
    made.Params = kind
    text = ANNOTATED.replace("recover: []", "recover:\n    - {use: fallback}")
    pipeline = attacked(tmp_path, Role.CHANNEL, made, text)
    store = memory().session.view()

    outcome = Runner(pipeline).run(SearchRequest(text="zebra", limit=3).query(store, NOW, None), store)

    assert outcome.trace.degraded == ()
    tally.tried()


BROKEN = {
    "badimport": "import no_such_module\n",
    "badregister": "def register(registry):\n    raise SystemExit(3)\n",
    "freezing": "def register(registry):\n    registry.freeze()\n",
    "taking": "def register(registry):\n    registry.add('annotator', type('Pin', (), {}), 'state_filter')\n",
}


@pytest.mark.usefixtures("processes")
def test_extensions_that_cannot_be_loaded_stop_nothing_and_are_named(tmp_path: Path, tally: Tally) -> None:
    folders = [installed(tmp_path / name, name, source) for name, source in BROKEN.items()]
    env = {"PYTHONPATH": os.pathsep.join(map(str, folders))}

    assert call(tmp_path, ["pipeline", "show"], env).status == 0
    told = {check["name"]: check for check in call(tmp_path, ["doctor", "--json"], env).json["checks"]}
    assert told["extensions"]["verdict"] == "fail"
    for name in ("badimport", "badregister", "taking"):
        assert name in str(told["extensions"])
        tally.survived()


LARGE: dict[str, Callable[[int], Notes]] = {
    "a long text about a row": lambda row: Notes(by_id={row: {"x": "y" * 100_001}}),
    "many values about a row": lambda row: Notes(by_id={row: {"also_at": [1] * 1_001}}),
    "a long text about the whole": lambda row: Notes(overall={"x": ["y" * 60_000] * 2}),
    "many values about the whole": lambda row: Notes(overall={"x": [1] * 20_001}),
    "a long warning": lambda row: Notes(warnings=("x" * 10_001,)),
    "a long name": lambda row: Notes(by_id={row: {"y" * 20_001: 1}}),
}


@pytest.mark.parametrize("name", LARGE)
def test_no_remark_makes_an_answer_that_cannot_be_sent(name: str, tally: Tally) -> None:
    target(Role.ANNOTATOR).refuses(Attack(name, lambda query, ranking, store: LARGE[name](int(ranking.ids[0]))))
    tally.tried()


def test_sections_may_be_as_long_as_memories_are(tmp_path: Path, tally: Tally) -> None:
    def whole(query: Query, ranking: Any, store: Any) -> Notes:
        return Notes(by_id={int(ranking.ids[0]): {"sections": [{"anchor": "x", "text": "y" * 5_000_000}]}})

    pipeline = attacked(tmp_path, Role.ANNOTATOR, component(Role.ANNOTATOR, whole))
    store = memory().session.view()
    asked = replace(SearchRequest(text=TEXT, limit=3).query(store, NOW, None), anchors=("x",))

    assert Runner(pipeline).run(asked, store).trace.degraded == ()
    tally.tried()
