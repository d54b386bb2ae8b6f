"""What every registered component must keep to, whatever it does. A new component is covered without a new test.

A component that always answers `Unavailable`, or nothing, keeps to no contract here: the store of these tests has every
part, so that each must answer, and some question or pool of the fixed ones must make a difference to each.
"""

from __future__ import annotations

import tomllib
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages

import pytest

from speckit_memory import channels, signals, stages
from speckit_memory.engine.components import COMPONENTS
from speckit_memory.pipeline import About, Registry, Role
from speckit_memory.pipeline.roles.component_facts import misfits
from speckit_memory.pipeline.roles.registry import RegisteredComponent
from speckit_memory.pipeline.testing import Case, contract_cases

MANIFEST = tomllib.loads((Path(__file__).parents[1] / "requirements.toml").read_text(encoding="utf-8"))

REQUIRED = {"single": {"scale": "bm25"}}
"""Parameters without a default."""

VARIANTS: dict[str, tuple[dict[str, object], ...]] = {
    "vector": ({"level": "chunk"}, {"min_similarity": 0.5}, {"context": 0.2}),
    "bm25": (
        {"passage": 1.0},
        {"passage": 1.0, "level": "chunk"},
        {"passage": 1.0, "passage_title": 0.0},
        {"context": 0.2},
        {"max_terms": 1},
        {"feedback": {"model": "rm3"}},
        {"passage": 1.0, "feedback": {"model": "bo1"}},
    ),
    "graph": ({"hops": 2},),
    "rrf": ({"normalise": "min_max"}, {"weights": "by_intent"}, {"weights": "by_intent_ageless"}),
    "rsf": ({"form": "pair"}, {"form": "cross_variant"}),
    "z_score": ({"normalise": "min_max"}, {"normalise": "logistic"}, {"weights": "by_intent"}, {"missing": "mean"}),
    "single": ({"scale": "bm25", "normalise": "min_max"},),
    "temporal": ({"classification": "stability"}, {"classification": "elapsed"}),
    "composite": ({"model": "six_factor"}, {"model": "by_intent"}, {"classification_decay": True}, {"decay": False}),
    "folder_score": ({"form": "damped_sum"},),
    "causal": ({"hops": 1},),
    "collapse": ({"aggregate": "max"}, {"aggregate": "mean_top3"}),
    "mmr": ({"lambda": "by_intent"},),
    "evidence_gap": ({"form": "coverage"},),
    "fitting": ({"naming": ["bm25"], "similarity": "vector"},),
    "duplicates": ({"action": "mark"},),
    "session_dedup": ({"action": "mark"},),
    "superseded": ({"action": "hide"},),
    "token_budget": ({"budget": "by_complexity"}, {"sent": "content"}),
    "state_filter": ({"min_state": "WARM"}, {"limits": {"WARM": 1}}),
}
"""Further parameters under which a component must keep to its contract as well."""

NEEDS = {
    "vector": "vectors", "embedding_expansion": "vectors", "coactivation": "vectors", "mmr": "vectors",
    "regularise": "vectors", "maxsim": "a model of tokens", "cross_encoder": "a cross-encoder",
}  # fmt: skip
"""The part without which a component is unavailable; no other component may ever be."""

PROVES = {
    "channel_finds_something_and_only_what_the_filter_admits": ("C2", "C3", "C5", "C6", "C7", "C1.unit", "C4.ids"),
    "what_a_store_lacks_is_said_and_never_guessed": ("P9",),
    "pools_of_a_store_that_lacks_a_part_are_answered_too": ("P9",),
}
"""Which capabilities and facts the promises of the suite are."""


def shipped() -> Registry:
    """The components of the product alone, without those of installed extensions."""
    made = Registry()
    for role, component in COMPONENTS:
        made.admit(role, component)
    return made


def cases() -> list[object]:
    tried = {
        entry.name: [REQUIRED.get(entry.name, {}) | extra for extra in ({}, *VARIANTS.get(entry.name, ()))]
        for entry in shipped()
    }
    return [
        pytest.param(
            case, id=str(case), marks=[pytest.mark.requirement(*PROVES[case.name])] if case.name in PROVES else []
        )
        for case in contract_cases(shipped(), parameters=tried, may_lack=NEEDS)
    ]


@pytest.mark.parametrize("case", cases())
def test_a_component_keeps_its_promises(case: Case) -> None:
    case.run()


def test_each_file_holds_at_most_one_component_and_every_component_is_registered() -> None:
    modules = [
        import_module(found.name)
        for package in (channels, signals, stages)
        for found in walk_packages(package.__path__, f"{package.__name__}.")
    ]
    components = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type) and kind.__module__ == module.__name__ and isinstance(vars(kind).get("about"), About)
    ]

    assert {kind.__qualname__ for kind in components} == {kind.__qualname__ for _, kind in COMPONENTS}
    assert len({kind.__module__ for kind in components}) == len(components)
    # what components share is marked by the name of its file, and so is told from a component at a glance
    files = {module.__name__ for module in modules if not hasattr(module, "__path__")}
    assert {name for name in files if not name.rpartition(".")[2].startswith("_")} == {
        kind.__module__ for kind in components
    }


@pytest.mark.parametrize("entry", list(shipped()), ids=lambda entry: entry.name)
def test_a_component_of_the_product_is_called_as_its_file_and_names_its_features(entry: RegisteredComponent) -> None:
    assert entry.name == entry.origin.rpartition(".")[2]
    assert entry.about.features
    assert set(entry.about.features) <= MANIFEST.keys()


@pytest.mark.parametrize(("role", "component"), COMPONENTS, ids=lambda each: getattr(each, "__name__", str(each)))
def test_the_methods_of_every_component_are_those_of_its_role(role: Role, component: type) -> None:
    """So no process looks at them again when it starts: `Registry.admit` is told that this is proven."""
    assert list(misfits(role, component)) == []
