"""The catalogue of attacks by role, as data: a name, and what the method of a component returns or does.

Every component of a role may do any of it, and nothing of what is served may change for it (`frame.attacking`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from itertools import count, repeat
from typing import Any

import numpy as np

from speckit_memory.pipeline.model.columns import Fused, Grouped, Hits, Notes, Plan, Rescored, Respelling, Selected
from speckit_memory.pipeline.model.scales import Scale
from speckit_memory.pipeline.roles.contracts import Role

Asked = tuple[Any, ...]
"""What a component is called with."""


@dataclass(frozen=True)
class Attack:
    """What a component does instead of its work."""

    name: str
    work: Callable[..., Any]


def forged(answer: Any, field: str, value: Any) -> Any:
    """A copy of an answer with one field of any value, past its constructor."""
    copy = object.__new__(type(answer))
    for known in fields(answer):
        object.__setattr__(copy, known.name, value if known.name == field else getattr(answer, known.name))
    return copy


def honest(role: Role, asked: Asked) -> Any:
    """An answer that the role is entitled to and that changes as little as may be."""
    match role:
        case Role.UNDERSTANDER | Role.RECOVERER:
            return asked[1]
        case Role.CHANNEL:
            ids = asked[2].attributes.in_folder("docs/gateway")[:3]
            return Hits(ids, np.array([0.9, 0.5, 0.1]), Scale.UNIT)
        case Role.FUSER:
            candidates = asked[1]
            return Fused(("all",), np.linspace(0.0, 1.0, len(candidates))[:, None])
        case Role.SIGNAL:
            return np.zeros(len(asked[1]))
        case Role.RERANKER:
            return Rescored(asked[1].score.copy())
        case _:
            return Notes(by_id={i: {"remark": "x"} for i in asked[1].ids.tolist()}, keep=np.ones(len(asked[1]), bool))


def cyclic() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


def laughing() -> list[Any]:
    """Ten to the power of fifteen values in a few lists."""
    found: list[Any] = [1]
    for _ in range(15):
        found = [found] * 10
    return found


def endless() -> Iterator[int]:
    return repeat(1)


VALUES: dict[str, Callable[[], Any]] = {
    "None": lambda: None,
    "seven": lambda: 7,
    "minus one": lambda: -1,
    "true": lambda: True,
    "real": lambda: 2.5,
    "NaN": lambda: float("nan"),
    "infinity": lambda: float("inf"),
    "huge": lambda: 10**400,
    "text": lambda: "text",
    "surrogate": lambda: "\ud800",
    "long text": lambda: "x" * 10_000_000,
    "bytes": lambda: b"text",
    "list": lambda: [1],
    "texts in a list": lambda: ["text"],
    "texts": lambda: ("text",),
    "a tuple of surrogates": lambda: ("\ud800",),
    "a tuple of numbers": lambda: (1,),
    "many texts": lambda: ("x",) * 100_000,
    "dict": lambda: {"a": 1},
    "dict of texts": lambda: {"a": "b"},
    "dict by numbers": lambda: {1: 2},
    "set": lambda: {1},
    "object": object,
    "class": lambda: int,
    "function": lambda: len,
    "endless": endless,
    "generator": lambda: (i for i in count()),
    "numpy integer": lambda: np.int64(3),
    "numpy bool": lambda: np.bool_(True),
    "array": lambda: np.array([1.0, 2.0]),
    "array of objects": lambda: np.array([object()] * 3),
    "wide array": lambda: np.broadcast_to(np.float64(1.0), (10**12,)),
}
"""Values of every kind, none of which is fit for most fields."""

FIT: dict[tuple[type, str], set[str]] = {
    (Plan, "intent"): {"text"},
    (Plan, "connected"): {"None", "seven"},
    (Plan, "graph_gap"): {"true"},
    (Plan, "channels"): {"None"},
    (Plan, "limits"): {"dict"},
    (Plan, "reasons"): {"texts"},
    (Plan, "mode"): {"None"},
    (Plan, "importance_boost"): {"seven", "minus one", "real"},
    (Plan, "folders"): {"texts"},
    (Plan, "topic"): {"None", "texts"},
    (Plan, "counted_from"): {"None", "seven", "minus one", "real"},
    (Plan, "min_similarity"): {"None", "minus one"},
    (Plan, "limit_factor"): {"seven", "real"},
    (Hits, "passages"): {"None"},
    (Rescored, "workings"): {"None"},
    (Grouped, "workings"): {"None"},
    (Hits, "rest"): {"NaN"},
    (Fused, "names"): {"texts"},
    (Notes, "overall"): {"dict", "dict of texts"},
    (Notes, "warnings"): {"texts"},
    (Notes, "keep"): {"None"},
    (Notes, "in_place"): {"true"},
}
"""Which of them fit a field after all."""

OF_THE_FRAME = {(Plan, name) for name in ("memories", "warnings", "asked_similarity", "attempt")}
"""Fields that only the frame sets: what a step puts there is left."""

ANSWERS: dict[Role, list[type]] = {
    Role.UNDERSTANDER: [Plan],
    Role.CHANNEL: [Hits],
    Role.RECOVERER: [Plan],
    Role.FUSER: [Fused],
    Role.SIGNAL: [],
    Role.RERANKER: [Rescored, Selected, Grouped],
    Role.ANNOTATOR: [Notes],
}


def of_kind(kind: type, role: Role, asked: Asked) -> Any:
    """An honest answer of this kind."""
    if kind is Selected:
        return Selected(np.ones(len(asked[1]), bool))
    if kind is Grouped:
        return Grouped(asked[1].candidates.parents.copy(), asked[1].score.copy())
    return honest(role, asked)


def unfit_values(role: Role) -> list[Attack]:
    """Every field of every answer of the role, with values of every kind."""
    found = [
        Attack(
            f"{kind.__name__}.{field.name} = {name}",
            lambda *asked, k=kind, f=field.name, v=value: forged(of_kind(k, role, asked), f, v()),
        )
        for kind in ANSWERS[role]
        for field in fields(kind)
        if (kind, field.name) not in OF_THE_FRAME
        for name, value in VALUES.items()
        if name not in FIT.get((kind, field.name), set())
    ]
    return found + [Attack(f"returns {name}", lambda *asked, v=value: v()) for name, value in VALUES.items()]


def columns(role: Role) -> list[Attack]:
    """Arrays of the right length that are not plain, or hold what no score may be."""

    twists: dict[str, Callable[[Any], Any]] = {
        "masked": np.ma.masked_array,
        "matrix": lambda array: array.view(np.recarray),
        "of the other byte order": lambda array: array.astype(array.dtype.newbyteorder()),
        "of objects": lambda array: array.astype(object),
        "of texts": lambda array: array.astype(str),
        "too short": lambda array: array[:-1],
        "too long": lambda array: np.concatenate([array, array[:1]]),
        "flat": lambda array: array.reshape(1, -1),
        "complex": lambda array: array.astype(complex),
    }
    numbers = {
        "of NaN": lambda array: np.full_like(array, np.nan),
        "of infinity": lambda array: np.full_like(array, np.inf),
        "of 1e308": lambda array: np.full_like(array, 1e308),
        "of -1e308": lambda array: np.full_like(array, -1e308),
    }
    targets: dict[Role, list[tuple[type, str]]] = {
        Role.CHANNEL: [(Hits, "ids"), (Hits, "scores")],
        Role.FUSER: [(Fused, "parts")],
        Role.RERANKER: [(Rescored, "scores"), (Selected, "keep"), (Grouped, "groups"), (Grouped, "scores")],
        Role.ANNOTATOR: [(Notes, "keep")],
    }
    found = []
    for kind, field in targets.get(role, ()):
        fitting = {name: twist for name, twist in twists.items() if field != "keep" or "byte order" not in name}
        for name, twist in {**fitting, **(numbers if field in ("scores", "parts") else {})}.items():

            def work(*asked: Any, k: type = kind, f: str = field, t: Callable[[Any], Any] = twist) -> Any:
                answer = of_kind(k, role, asked)
                return forged(answer, f, t(getattr(answer, f)))

            found.append(Attack(f"{kind.__name__}.{field} {name}", work))
    if role is Role.SIGNAL:
        found = [
            Attack(f"a column {name}", lambda *asked, t=twist: t(np.zeros(len(asked[1]))))
            for name, twist in {**twists, **numbers}.items()
        ]
    return found


def spellings(role: Role) -> list[Attack]:
    """Plans whose spellings are none."""
    if role not in (Role.UNDERSTANDER, Role.RECOVERER):
        return []
    unfit: dict[str, Any] = {
        "a tuple": ("a", "b", {"c": 1.0}, "d"),
        "no terms": Respelling("a", "b", {}, "c"),
        "a weight of 0": Respelling("a", "b", {"c": 0.0}, "d"),
        "a weight of NaN": Respelling("a", "b", {"c": float("nan")}, "d"),
        "a weight above 1": Respelling("a", "b", {"c": 2.0}, "d"),
        "terms that are no texts": Respelling("a", "b", {1: 1.0}, "d"),  # type: ignore[dict-item]
        "a word that is none": Respelling(None, "b", {"c": 1.0}, "d"),  # type: ignore[arg-type]
    }
    found = [
        Attack(f"a spelling with {name}", lambda query, plan, store, s=spelling: forged(plan, "respelt", (s,)))
        for name, spelling in unfit.items()
    ]
    return [
        *found,
        Attack("10,000 variants", lambda q, plan, s: forged(plan, "variants", (q.text, *map(str, range(9999))))),
    ]


REMARKS: dict[str, Callable[[], Any]] = {
    "a score": lambda: {"score": 99},
    "a Score": lambda: {"Score": 99},
    "a wide score": lambda: {"ｓｃｏｒｅ": 99},
    "a hyphened score": lambda: {"s-c-o-r-e": 99},
    "a numbered rank": lambda: {"rank_1": 99},
    "a position": lambda: {"POSITION": 1},
    "a nested score": lambda: {"x": {"score": 1}},
    "a listed rank": lambda: {"x": [{"y": {"ranks": 1}}]},
    "pairs": lambda: [("score", 99)],
    "NaN": lambda: {"x": float("nan")},
    "infinity": lambda: {"x": [float("-inf")]},
    "a big number": lambda: {"x": 2**64},
    "bytes": lambda: {"x": b"y"},
    "a set": lambda: {"x": {1}},
    "an object": lambda: {"x": object()},
    "a numpy number": lambda: {"x": np.int64(1)},
    "an array": lambda: {"x": np.ones(3)},
    "a number as key": lambda: {"x": {1: 2}},
    "a tuple as key": lambda: {("x",): 2},
    "a surrogate": lambda: {"x": "\udc80"},
    "a surrogate as key": lambda: {"\udc80": 1},
    "a circle": lambda: {"x": cyclic()},
    "depth": lambda: {"x": deep()},
    "laughter": lambda: {"x": laughing()},
    "many values": lambda: {"x": [0] * 300_000},
    "a generator": lambda: {"x": (i for i in count())},
    "nothing": lambda: None,
    "a number": lambda: 7,
    "a text": lambda: "remark",
}


def remarks(role: Role) -> list[Attack]:
    """Notes that no answer can hold, or that would be taken for the ranking or for a row's own facts."""
    if role is not Role.ANNOTATOR:
        return []

    def first(ranking: Any, remark: Any) -> Notes:
        return Notes(by_id={int(ranking.ids[0]): remark})

    found = [Attack(f"{name} about a row", lambda q, r, s, v=value: first(r, v())) for name, value in REMARKS.items()]
    found += [
        Attack(f"{name} about the whole", lambda *a, v=value: Notes(overall=v())) for name, value in REMARKS.items()
    ]
    rows = ["id", "key", "Title", "folder", "tier", "channels", "steps", "snippet", "reason", "heading", "lines",
            "chunk_hits", "notes", "content", "memory_text"]  # fmt: skip
    found += [Attack(f"a note '{name}'", lambda q, r, s, n=name: first(r, {n: "else"})) for name in rows]
    forms: dict[str, Any] = {
        "state": "BOILING", "also_at": "x", "superseded_by": [[1]], "found_by": [1], "sections": [{"anchor": 1}],
    }  # fmt: skip
    found += [Attack(f"'{n}' of another form", lambda q, r, s, n=n, v=v: first(r, {n: v})) for n, v in forms.items()]
    said = [{"anchor": "x", "text": "not what the memory says"}]
    found.append(Attack("sections nobody asked for", lambda q, r, s: first(r, {"sections": said})))
    whole: dict[str, Any] = {
        "warnings": ["x"], "degraded": [], "evidence_gap": "maybe", "token_budget": "many", "overflow": {"rows": 1},
        "deduplicated": 5, "anchors": [],
    }  # fmt: skip
    found += [Attack(f"'{n}' about the whole", lambda *a, n=n, v=v: Notes(overall={n: v})) for n, v in whole.items()]
    ids: dict[str, Callable[[Any], Any]] = {
        "a numpy id": lambda ranking: ranking.ids[0],
        "a bool as id": lambda ranking: True,
        "a text as id": lambda ranking: str(ranking.ids[0]),
        "a real id": lambda ranking: float(ranking.ids[0]),
        "a foreign id": lambda ranking: 10**9,
        "a huge id": lambda ranking: 10**400,
    }
    return found + [Attack(name, lambda q, r, s, i=i: Notes(by_id={i(r): {"x": 1}})) for name, i in ids.items()]


class OddError(BaseException):
    """No exception that anybody expects."""


def recursing(*asked: Any) -> Any:
    return recursing(*asked)


RAISED: dict[str, Callable[[], BaseException]] = {
    "SystemExit": lambda: SystemExit(3),
    "GeneratorExit": GeneratorExit,
    "CancelledError": asyncio.CancelledError,
    "MemoryError": MemoryError,
    "RecursionError": lambda: RecursionError("deep"),
    "StopIteration": StopIteration,
    "Exception": lambda: ValueError("look elsewhere"),
    "BaseException": OddError,
    "a surrogate": lambda: ValueError("\ud800"),
    "long": lambda: ValueError("x" * 10_000_000),
    "an exception group": lambda: BaseExceptionGroup("several", [SystemExit(1), ValueError("look elsewhere")]),
}


def raising(role: Role) -> list[Attack]:
    """Everything that can be raised."""

    def work(make: Callable[[], BaseException]) -> Callable[..., Any]:
        def raise_it(*asked: Any) -> Any:
            raise make()

        return raise_it

    found = [Attack(f"raises {name}", work(make)) for name, make in RAISED.items()]
    return [*found, Attack("recurses", recursing)]


FAMILIES: dict[str, Callable[[Role], list[Attack]]] = {
    "unfit values": unfit_values,
    "columns": columns,
    "spellings": spellings,
    "remarks": remarks,
    "raised": raising,
}


def attacks(role: Role, family: str) -> list[Attack]:
    """The attacks of a family that a component of this role can try."""
    return FAMILIES[family](role)
