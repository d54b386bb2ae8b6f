"""What must not type-check: the first fence around stage 4 is the type of an annotator (feature P3)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

HEADER = """\
import numpy as np
from speckit_memory.pipeline.roles.contracts import Annotator, Channel, Reranker, Signal
from speckit_memory.pipeline.model.columns import Fused, Hits, Notes, Pool, Query, Rescored
from speckit_memory.pipeline.ports import Column, Store, Unavailable
from speckit_memory.pipeline.model.ranking import Ranking
from typing import ClassVar, Literal
"""

ACCEPTED = """
class Good:
    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Notes | Unavailable:
        return Notes(keep=ranking.scores > 0.5)

good: Annotator = Good()
"""

REFUSED = {
    "an annotator that rescores": """
class Rescorer:
    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Rescored:
        return Rescored(ranking.scores)

bad: Annotator = Rescorer()  # refused
""",
    "an annotator that returns a ranking": """
class Sorter:
    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Ranking:
        return ranking

bad: Annotator = Sorter()  # refused
""",
    "an annotator that takes a pool": """
class Greedy:
    def annotate(self, query: Query, ranking: Pool, store: Store) -> Notes:
        return Notes()

bad: Annotator = Greedy()  # refused
""",
    "notes with a score column": """
notes = Notes(scores=np.zeros(3))  # refused
""",
    "a subclass of the sealed ranking": """
class Forged(Ranking):  # refused
    pass
""",
    "a signal that drops rows": """
class Dropper:
    combine: ClassVar[Literal["add", "multiply"]] = "add"

    def evidence(self, query: Query, pool: Pool, store: Store) -> Pool:
        return pool

bad: Signal = Dropper()  # refused
""",
    "a channel that fuses": """
class Fuse:
    def search(self, query: Query, limit: int, store: Store) -> Fused:
        return Fused((), np.zeros((0, 0)))

bad: Channel = Fuse()  # refused
""",
    "a reranker that annotates": """
class Annotate:
    def rerank(self, query: Query, pool: Pool, store: Store) -> Notes:
        return Notes()

bad: Reranker = Annotate()  # refused
""",
}


@pytest.mark.requirement("P3.types")
@pytest.mark.usefixtures("processes")
def test_what_a_role_is_not_entitled_to_does_not_type_check(tmp_path: Path) -> None:
    file = tmp_path / "roles.py"
    file.write_text(HEADER + ACCEPTED + "".join(REFUSED.values()).replace("\nbad:", "\nbad_NAME:"), encoding="utf-8")
    text = file.read_text()
    for number in range(text.count("bad_NAME")):
        text = text.replace("bad_NAME", f"bad{number}", 1)
    file.write_text(text, encoding="utf-8")
    expected = [number for number, line in enumerate(text.splitlines(), 1) if line.endswith("# refused")]

    root = Path(__file__).parents[2]
    arguments = [sys.executable, "-m", "mypy", "--strict", "--no-error-summary", "--no-pretty", str(file)]
    checked = subprocess.run(arguments, cwd=root, capture_output=True, text=True, check=False)

    errors = [line for line in checked.stdout.splitlines() if f"{file.name}:" in line and ": error:" in line]
    assert [int(line.split(":")[1]) for line in errors] == expected, checked.stdout + checked.stderr
