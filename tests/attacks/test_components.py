"""Every role, attacked with the whole catalogue: nothing served changes, the step is named, nothing is raised."""

from __future__ import annotations

import pytest
from frame.attacking import target
from frame.attacks import FAMILIES, attacks
from tally import Tally

from speckit_memory.pipeline.roles.contracts import Role

CASES = [
    pytest.param(role, family, id=f"{role}-{family.replace(' ', '_')}")
    for role in Role
    for family in FAMILIES
    if attacks(role, family)
]


@pytest.mark.requirement("P9", "P3")
@pytest.mark.parametrize(("role", "family"), CASES)
def test_what_a_component_returns_or_does_ends_with_its_step(role: Role, family: str, tally: Tally) -> None:
    attacked = target(role)
    for attack in attacks(role, family):
        attacked.refuses(attack)
        tally.tried()

    attacked.is_clean()
