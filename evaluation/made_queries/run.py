"""From a dataset to datasets with made queries: `eval make-queries`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.evaluation.datasets.dataset import Dataset, read
from speckit_memory.evaluation.made_queries.folders import check_targets, clear, targets, write
from speckit_memory.evaluation.made_queries.kinds import KINDS
from speckit_memory.evaluation.made_queries.making import SEED, Maker

Scope = Literal["auto", "corpus", "folder"]


@dataclass(frozen=True, slots=True)
class MadeKind:
    """How many queries of a kind were made, and the folder they are in; none is written for none.

    `reason` says why there are fewer than asked for, "" when there are not.
    """

    kind: str
    queries: int
    folder: str | None
    reason: str


@dataclass(frozen=True, slots=True)
class MakingReport:
    """What was made of a dataset. `asked` is the number of queries wanted of each kind."""

    dataset: str
    documents: int
    scope: Literal["corpus", "folder"]
    seed: int
    asked: int
    kinds: tuple[MadeKind, ...]

    def as_json(self) -> dict[str, Any]:
        """The document that `--json` prints."""
        return asdict(self)

    def as_text(self) -> str:
        """The report for a reader."""
        scope = "" if self.scope == "corpus" else ", each query within one folder"
        lines = [f"{self.dataset}: {self.documents:,} documents{scope}, seed {self.seed}"]
        width = max(len(made.kind) for made in self.kinds)
        for made in self.kinds:
            lines.append(
                f"{made.kind:{width}}  {made.queries:,} of {self.asked:,} queries  {made.folder or ''}".rstrip()
            )
            lines += [f"{'':{width}}  {made.reason}"] if made.reason else []
        return "\n".join(lines)


def make_queries(
    dataset: Path,
    out: Path,
    kinds: Sequence[str] = (),
    *,
    queries: int = 200,
    seed: int = SEED,
    scope: Scope = "auto",
    force: bool = False,
    progress: Callable[[str, int, int], None] | None = None,
) -> MakingReport:
    """Makes `queries` queries of each kind from the documents of a dataset and writes them to `out`.

    No kinds means all of them. Several kinds get a folder each in `out`. A scope of `folder` makes queries that search
    one folder; `auto` does so when the queries of the dataset do, all of them. `progress` is called with the kind,
    how many kinds are done, and of how many. Raises SpeckitError with what is wrong with the dataset (E123) or the
    folders (E014), and when not one query could be made (E125).
    """
    chosen = list(dict.fromkeys(kinds)) or list(KINDS)
    for kind in chosen:
        if kind not in KINDS:
            raise SpeckitError("E030", f"'{kind}' is no kind of query; {nearest(kind, KINDS)}")
    folders = targets(out, chosen)
    check_targets(folders.values(), dataset, force=force)
    source = read(dataset, judged=False)
    scoped = scope == "folder" or (scope == "auto" and _all_in_folders(source))
    maker = Maker(source.corpus(), scoped=scoped, seed=seed)
    made = []
    for number, kind in enumerate(chosen):
        if progress is not None:
            progress(kind, number, len(chosen))
        found = maker.make(kind, queries)
        if found:
            write(folders[kind], dataset, kind, found)
        else:
            clear(folders[kind])
        reason = "" if len(found) == queries else f"there is no further {KINDS[kind].asks_for}"
        made.append(MadeKind(kind, len(found), str(folders[kind]) if found else None, reason))
    if not any(kind.queries for kind in made):
        reasons = "; ".join(f"{kind.kind}: {kind.reason}" for kind in made)
        raise SpeckitError("E125", f"no query could be made of '{dataset}': {reasons}")
    return MakingReport(source.name, len(source.keys), "folder" if scoped else "corpus", seed, queries, tuple(made))


def _all_in_folders(dataset: Dataset) -> bool:
    return bool(dataset.queries) and all(query.folder for query in dataset.queries)
