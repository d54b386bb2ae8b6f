"""What a target of the fuzzer is: inputs, a check that raises, and a readable form of each input."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hypothesis.strategies import SearchStrategy
from tally import Tally

CORPUS = Path(__file__).parent.parent / "corpus"

Check = Callable[[Any, Tally], None]


@dataclass(frozen=True)
class Target:
    """One kind of input. `check` raises when the product breaks a promise, and tells the tally what it tried.

    `read` and `write` turn an input into the content of a file and back, so that what failed can be kept and read.
    `corpus` names the folder of kept inputs; several targets may share one.
    """

    name: str
    cases: SearchStrategy[Any]
    check: Check
    suffix: str
    corpus: str
    read: Callable[[bytes], Any] = json.loads
    write: Callable[[Any], bytes] = lambda case: json.dumps(case, indent=1).encode() + b"\n"
    per_round: int = 40
    """Inputs of one round, after which the clock is looked at."""
    shrinks: bool = True
    """Whether a finding is made smaller, which takes many tries."""

    def kept(self) -> list[Path]:
        """The files of the corpus, by name."""
        return sorted((CORPUS / self.corpus).glob(f"*{self.suffix}"))


def same(data: bytes) -> bytes:
    """The form of an input that is a file already."""
    return data
