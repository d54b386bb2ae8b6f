"""Test support for components, also of extensions: a store of plain data, pools, and the contract suite.

Needs no test framework, and is not imported by the product (docs/extending.md).
"""

from speckit_memory.pipeline.testing.contract import Case, check_component, contract_cases
from speckit_memory.pipeline.testing.memories import DAY, Edge, Memory, words
from speckit_memory.pipeline.testing.pools import NOW, ask, pool_of, ranking_of
from speckit_memory.pipeline.testing.sample import Sample, sample_store
from speckit_memory.pipeline.testing.store import FakeStore
from speckit_memory.pipeline.testing.texts import FakePassages

__all__ = [
    "DAY",
    "NOW",
    "Case",
    "Edge",
    "FakePassages",
    "FakeStore",
    "Memory",
    "Sample",
    "ask",
    "check_component",
    "contract_cases",
    "pool_of",
    "ranking_of",
    "sample_store",
    "words",
]
