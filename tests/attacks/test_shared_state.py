"""Whatever is done to what the store answers, later searches answer as if it had not been done.

The walk finds the answers by introspection: a new member of a port has no case here, and fails until it has one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from functools import partial
from mmap import mmap
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest
from frame.observed import NOW, plain, searches
from frame.vandal import public, vandalise
from storing.project import SESSION, living
from tally import Tally

from speckit_memory.engine import Memory
from speckit_memory.memory.store.read_model.words.late_entries import LateTexts
from speckit_memory.pipeline import ports
from speckit_memory.pipeline.ports import FIELDS, Filter

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")
TERMS = ("gateway", "fusion", "importer", "payment", "nowhere")


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    with living(tmp_path_factory.mktemp("project"), NOW) as opened:
        yield opened


@pytest.fixture(scope="module")
def before(memory: Memory) -> dict[str, Any]:
    """What searches answer before anything was attacked, twice, so that everything that is kept has been kept."""
    first = searches(memory)
    assert searches(memory) == first
    return first


def assert_unchanged(memory: Memory, before: dict[str, Any]) -> None:
    """Some of the searches again; the last test makes all of them."""
    found = searches(memory, ("default", "catalogue"), (1, 3, 9, 27))
    assert found == {question: before[question] for question in found}


def ids(store: Any) -> np.ndarray:
    """Memories and chunks, some unknown."""
    return np.array([*range(1, 60, 3), 10**6, -1], np.int64)


def scopes(store: Any) -> list[Any]:
    wanted = (Filter(), Filter(folder="docs"), Filter(folders=("specs",)), Filter(memories=(1, 2, 3)), Filter("void"))
    return [store.attributes.scope(each, NOW) for each in wanted]


def query_vector(store: Any) -> Any:
    return store.vectors.embed("payment gateway")


Cases = Callable[[Any], list[tuple[Any, ...]]]
CASES: dict[tuple[str, str], Cases] = {
    ("Scope", "admits"): lambda s: [(ids(s),), (ids(s)[:0],)],
    ("Attributes", "parents"): lambda s: [(ids(s),), (ids(s)[:0],)],
    ("Attributes", "number"): lambda s: [("created_at", ids(s)), ("characters", ids(s)), ("confidence", ids(s)[:0])],
    ("Attributes", "label"): lambda s: [(name, ids(s)) for name in ("key", "title", "folder", "tier", "content_hash")],
    ("Attributes", "neighbours"): lambda s: [(ids(s),), (ids(s)[:0],)],
    ("Attributes", "scope"): lambda s: [(Filter(), NOW), (Filter(folder="docs"), NOW), (Filter(tier="critical"), NOW)],
    ("Attributes", "of_tier"): lambda s: [("constitutional",), ("normal",), ("important",), ("none",)],
    ("Attributes", "oldest_first"): lambda s: [(scope,) for scope in scopes(s)],
    ("Attributes", "in_folder"): lambda s: [("docs/gateway",), ("docs/void",)],
    ("Passages", "prefetch"): lambda s: [(ids(s), ids(s)[:2].tolist(), ids(s)[:2].tolist()), (ids(s)[:0], [], [])],
    ("Passages", "passages"): lambda s: [(ids(s).tolist(),), ([],)],
    ("Passages", "of_memory"): lambda s: [(int(each),) for each in s.attributes.of_tier("normal")[:3]] + [(10**6,)],
    ("Passages", "in_sections"): lambda s: [(("summary", "next-steps"),), ((),)],
    ("Passages", "headed"): lambda s: [(("part", "next-steps"), ids(s)), ((), ids(s))],
    ("Passages", "names"): lambda s: [(("%gateway%", "hand%over"),), ((),)],
    ("Passages", "summaries"): lambda s: [(ids(s).tolist(),), ([],)],
    ("Passages", "body"): lambda s: [(1,), (10**6,)],
    ("Passages", "bodies"): lambda s: [((1, 10**6),), ((),)],
    ("VectorSpace", "embed"): lambda s: [("payment gateway",), ("quokka",), ("",)],
    ("VectorSpace", "nearest"): lambda s: [
        (vector, limit, scope, level)
        for vector in (query_vector(s), np.zeros_like(query_vector(s)))
        for limit in (0, 20)
        for scope in scopes(s)
        for level in ("memory", "chunk")
    ],
    ("VectorSpace", "vectors"): lambda s: [(ids(s),), (ids(s)[:0],)],
    ("TermIndex", "rows_of"): lambda s: [(ids(s),), (ids(s)[:0],)],
    ("TermIndex", "ids_of"): lambda s: [(np.arange(3),), (np.arange(0),)],
    ("TermIndex", "postings"): lambda s: [(term,) for term in TERMS],
    ("TermIndex", "holders"): lambda s: [(term,) for term in TERMS],
    ("TermIndex", "holding"): lambda s: [(term, rows) for term in TERMS for rows in (ids(s), ids(s)[:0])],
    ("TermIndex", "adjacent"): lambda s: [("payment", "gateway"), ("rank", "fusion"), ("no", "where")],
    ("Lexicon", "analyse"): lambda s: [("payment gateway REQ-042",), ("",)],
    ("Lexicon", "word_tokens"): lambda s: [(["gateway", "gateways", "payment-gateway", "the", "日本語", ""],), ([],)],
    ("Lexicon", "prefetch"): lambda s: [(TERMS,), ((),)],
    ("Lexicon", "index"): lambda s: [*((field,) for field in FIELDS), ("body", "chunk")],
    ("Lexicon", "words"): lambda s: [()],
    ("Lexicon", "near"): lambda s: [("paymnet", 1), ("gatway", 2), ("", 2)],
    ("Lexicon", "bags"): lambda s: [
        ((10.0, 5.0, 2.0, 1.0), 1.2, 0.75),
        ((0.0, 0.0, 0.0, 1.0), 1.2, 0.75, "memory"),
        ((1.0, 0.0, 0.0, 1.0), 1.2, 0.75, "chunk"),
    ],
    ("Bags", "ids_of"): lambda s: [(np.arange(3),), (np.arange(0),)],
    ("Bags", "parents_of"): lambda s: [(np.arange(3),), (np.arange(0),)],
    ("Bags", "better_neighbour"): lambda s: [(np.linspace(0.0, 1.0, 200),), (np.zeros(1),)],
    ("Bags", "scores"): lambda s: [(dict.fromkeys(TERMS, 1.0),), ({"gateway": 0.5},), ({},)],
    ("Bags", "coverage"): lambda s: [(dict.fromkeys(TERMS, 1.0),), ({"gateway": 0.5},), ({},)],
    ("FullText", "prefetch"): lambda s: [(["payment", "nowhere"],), ([],)],
    ("FullText", "holding"): lambda s: [
        (phrases, limit, scope)
        for phrases in (["payment", "gateway"], ["payment gateway"], ["nowhere"], [])
        for limit in (1, 20)
        for scope in scopes(s)
    ],
    ("FullText", "match"): lambda s: [
        (tokens, (10.0, 5.0, 2.0, 1.0), limit, scope)
        for tokens in (("payment", "gateway"), ("nowhere",), ())
        for limit in (1, 20)
        for scope in scopes(s)
    ],
    ("CausalGraph", "neighbours"): lambda s: [(ids(s), hops, {"supersedes": 1.5}) for hops in (1, 2)],
    ("CausalGraph", "in_edges"): lambda s: [(ids(s), relation) for relation in ("supersedes", "contradicts", "void")],
    ("CausalGraph", "regions"): lambda s: [(ids(s),)],
    ("CausalGraph", "degrees"): lambda s: [({},), ({"supersedes": 1.5, "contradicts": 0.8},)],
    ("CausalGraph", "ranks"): lambda s: [(ids(s),)],
    ("CausalGraph", "community"): lambda s: [(memory, 5) for memory in ids(s)[:3].tolist()],
    ("Triggers", "exact"): lambda s: [("rank fusion",), ("",)],
    ("Triggers", "matches"): lambda s: [("what about rank fusion and gateway retries", NOW), ("", NOW)],
    ("Folders", "described"): lambda s: [()],
    ("Sessions", "attention"): lambda s: [(SESSION, ids(s), NOW), ("", ids(s), NOW)],
    ("Sessions", "texts_sent"): lambda s: [(SESSION, ids(s), NOW), ("", ids(s), NOW)],
    ("TokenSpace", "count"): lambda s: [(["payment gateway", ""],), ([],)],
    ("TokenSpace", "of_text"): lambda s: [("payment gateway",), ("",)],
    ("TokenSpace", "of_passages"): lambda s: [(ids(s),), (ids(s)[:0],)],
    ("TokenSpace", "vectors"): lambda s: [(np.arange(300, 320),), (np.arange(0),)],
    ("TokenSpace", "weights"): lambda s: [(np.arange(300, 320),), (np.arange(0),)],
    ("EncoderModel", "closeness"): lambda s: [("gateway", ids(s)), ("x", ids(s)[:0])],
    ("RelevanceModel", "score"): lambda s: [("gateway", ["payment gateway", "x"], None), ("x", [], None)],
}
"""Arguments for every member of every port that takes some."""

PORTS = tuple(
    port
    for name in vars(ports)
    if isinstance(port := getattr(ports, name), type) and getattr(port, "_is_protocol", False)
)
MEMBERS = [(port, name) for port in PORTS for name in public(port)]


def reached(store: Any, port: type[Any]) -> list[Any]:
    """The objects of the store that answer for a port: there are several inverted indexes and scopes."""
    if port is ports.Store:
        return [store]
    if port is ports.Scope:
        return scopes(store)
    if port is ports.TermIndex:
        return [store.lexicon.index(*case) for case in CASES["Lexicon", "index"](store)]
    if port is ports.Bags:
        return [store.lexicon.bags(*case) for case in CASES["Lexicon", "bags"](store)]
    [name] = [name for name in public(ports.Store) if get_type_hints(getattr(ports.Store, name).fget)["return"] is port]
    return [getattr(store, name)]


def answers(thing: Any, port: type[Any], name: str, store: Any) -> Iterator[Any]:
    """What a member of a port answers, in all cases."""
    if isinstance(getattr(port, name), property):
        yield getattr(thing, name)
        return
    for case in CASES[port.__name__, name](store):
        try:
            yield getattr(thing, name)(*case)
        except ValueError:
            if name != "adjacent":  # only two indexes know the order of their words
                raise


def picture(store: Any, port: type[Any], name: str) -> list[Any]:
    """The same as plain data. What is a port itself is pictured by its own members."""
    return [
        [plain(answer) for answer in answers(thing, port, name, store) if not is_port(answer)]
        for thing in reached(store, port)
    ]


def is_port(answer: Any) -> bool:
    return not isinstance(answer, np.ndarray) and any(
        all(hasattr(answer, name) for name in public(port)) for port in PORTS
    )


def test_every_port_is_attacked(tally: Tally) -> None:
    named = {get_type_hints(getattr(ports.Store, name).fget)["return"] for name in public(ports.Store)}
    assert {*PORTS} == {*named, ports.Store, ports.Scope, ports.TermIndex, ports.Bags}
    tally.tried(len(MEMBERS))


@pytest.mark.parametrize(("port", "name"), MEMBERS, ids=[f"{port.__name__}.{name}" for port, name in MEMBERS])
@pytest.mark.usefixtures("exhaustive")
def test_an_answer_of_the_store_can_be_spoilt_and_nobody_else_sees_it(
    tally: Tally, memory: Memory, before: dict[str, Any], port: type[Any], name: str
) -> None:
    store = memory.session.view()
    known = picture(store, port, name)
    for _ in range(2):  # what is kept may be handed out only when it is asked for again
        for thing in reached(store, port):
            for answer in answers(thing, port, name, store):
                tally.tried(1 + (0 if is_port(answer) else vandalise(answer)))

    assert picture(store, port, name) == known
    assert picture(memory.session.view(), port, name) == known
    assert_unchanged(memory, before)


def test_an_index_that_searches_use_cannot_be_changed(tally: Tally, memory: Memory, before: dict[str, Any]) -> None:
    memory.models.load_vectors()
    lexicon: Any = memory.session.opened.read_model.current().lexicon
    late = LateTexts.of(np.array([10**7]), (" payment gateway",))
    for case in CASES["Lexicon", "index"](memory.session.view()):
        index = lexicon.index(*case)
        entry = int(index.ids[0])
        for change in (partial(index.add, late), partial(index.remove, [entry])):
            with pytest.raises(TypeError, match="take a copy"):
                change()
        twin = index.copy()
        twin.remove([entry])
        twin.add(late)
        with pytest.raises(TypeError):
            lexicon._indexes[case if len(case) == 2 else (*case, "memory")] = twin
        tally.tried(4)

    assert searches(memory) == before


def test_what_a_mapped_segment_answers_is_no_part_of_the_file(tmp_path: Path, tally: Tally) -> None:
    """`np.add.at` writes into read-only arrays as well, and whoever writes to a mapped file ends the process."""
    with living(tmp_path, NOW) as memory:
        memory.lifecycle.write_segment()
        memory.session.opened.renew()
        store: Any = memory.session.view()
        assert in_a_file(memory.session.opened.read_model.current().attributes._ids)
        for port, name in MEMBERS:
            for thing in reached(store, port):
                for answer in answers(thing, port, name, store):
                    for array in arrays(answer):
                        assert not in_a_file(array), f"{port.__name__}.{name}"
                        tally.tried(1)


def in_a_file(array: Any) -> bool:
    """Whether what an array leads to is a mapped file."""
    while array is not None and not isinstance(array, mmap):
        array = array.base if isinstance(array, np.ndarray) else getattr(array, "obj", None)
    return array is not None


def arrays(answer: Any) -> Iterator[np.ndarray]:
    if isinstance(answer, np.ndarray):
        yield answer
    elif isinstance(answer, tuple | list):
        for part in answer:
            yield from arrays(part)
    elif is_dataclass(answer):
        for field in fields(answer):
            yield from arrays(getattr(answer, field.name))
