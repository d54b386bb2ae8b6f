"""The bands of edge density and the way to the next one."""

from __future__ import annotations

import pytest

from speckit_memory.memory.store.reading.density import Density, describe_density


@pytest.mark.requirement("M9.bands")
@pytest.mark.parametrize(
    ("edges", "memories", "expected"),
    [
        (0, 0, ("empty", None, 0)),
        (0, 9, ("empty", "sparse", 1)),
        (0, 2, ("empty", "moderate", 1)),
        (1, 9, ("sparse", "moderate", 4)),  # 4.5 edges are needed
        (4, 9, ("sparse", "moderate", 1)),
        (5, 9, ("moderate", "dense", 4)),
        (5, 10, ("moderate", "dense", 5)),
        (8, 9, ("moderate", "dense", 1)),
        (9, 9, ("dense", None, 0)),
        (40, 9, ("dense", None, 0)),
    ],
)
def test_bands_and_missing_edges(edges: int, memories: int, expected: tuple[str, str | None, int]) -> None:
    found = Density(edges, memories, 2)
    assert (found.band, found.next_band, found.missing) == expected
    if found.next_band:
        assert Density(edges + found.missing, memories, 2).band == found.next_band
        assert Density(edges + found.missing - 1, memories, 2).band == found.band


def test_the_way_to_the_next_band_is_told() -> None:
    assert describe_density(Density(3, 9, 4)) == "0.33 causal edges per memory (sparse), 2 more to moderate"
    assert describe_density(Density(9, 9, 4)) == "1.00 causal edges per memory (dense)"
    assert describe_density(Density(0, 0, 0)) == "0.00 causal edges per memory (empty)"
