"""The dataset that ships: curated queries about the product's own documents, judged by hand.

`queries.jsonl` and `qrels/test.tsv` are a dataset in the BEIR layout; its documents are the project's own, in `docs/`
(a link in a checkout, files in an installed package). In addition to `category` and `intent`, the metadata of a query
gives its complexity, the form in which it was typed, its origin, and the content expected of an answer. `pool.tsv`
lists the methods that had a judged document among their first five; documents that none of them had were found by
reading.
"""

from __future__ import annotations

from pathlib import Path

NAME = "bundled"
"""The value of `--dataset` for this dataset. A folder of that name is given as `./bundled`."""

FOLDER = Path(__file__).resolve().parent
POOL = "pool.tsv"
