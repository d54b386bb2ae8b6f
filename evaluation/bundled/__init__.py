"""The ground truth that ships: curated queries about the product's own documents, judged by hand.

`queries.jsonl` and `qrels/test.tsv` are a dataset in the BEIR layout whose documents are the project's own, in `docs/`
(a link in a checkout, files in an installed package). Beside `category` and `intent` a query's metadata say its
complexity, the form in which it was typed, where it comes from, and what an answer is expected to hold. `pool.tsv` says
which methods had a judged document among their first five; what none of them had was found by reading.
"""

from __future__ import annotations

from pathlib import Path

NAME = "bundled"
"""What `--dataset` takes for this dataset, wherever one stands. A folder of that name is `./bundled`."""

FOLDER = Path(__file__).resolve().parent
POOL = "pool.tsv"
