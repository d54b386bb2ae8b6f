"""Hooks are found by what declares them, without running anything of a component."""

from __future__ import annotations

from typing import Any

import pytest

from speckit_memory.pipeline.roles.contracts import Role
from speckit_memory.pipeline.roles.hooks import ABOUT_CONCEPT, CHECK, HOOKS, ROLE_METHODS, combine_of

pytestmark = pytest.mark.requirement("P2")


class Sly:
    """Makes up whatever it is asked for."""

    def __getattr__(self, name: str) -> Any:
        raise SystemExit(name)

    @property
    def about_concept(self) -> Any:
        raise SystemExit("about_concept")


def test_finding_a_hook_runs_nothing_of_the_component() -> None:
    sly = Sly()

    assert CHECK.of(sly) is None
    assert combine_of(sly) is None
    assert ABOUT_CONCEPT.of(sly) is sly


def test_a_hook_that_a_subclass_takes_back_is_not_offered() -> None:
    class Checking:
        """Offers it."""

        @classmethod
        def check(cls, params: Any, context: Any) -> list[Any]:
            return []

    class Silent(Checking):
        """Offers it no longer."""

        check = None  # type: ignore[assignment]

    assert CHECK.of(Checking) is Checking
    assert CHECK.of(Silent) is None


@pytest.mark.parametrize(
    ("declared", "known"), [("add", "add"), ("multiply", "multiply"), ("replace", None), (7, None)]
)
def test_a_signal_combines_in_one_of_two_ways(declared: object, known: str | None) -> None:
    assert combine_of(type("Made", (), {"combine": declared})) == known


def test_every_method_is_one_that_its_protocol_declares() -> None:
    assert set(ROLE_METHODS) == set(Role)
    for method in (*ROLE_METHODS.values(), *HOOKS):
        assert method.name in vars(method.protocol)
