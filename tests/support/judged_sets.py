"""Tiny datasets in which it is known what a pipeline should do with titles."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path

FILLER = [f"filler{letter}" for letter in "abcdefghijklmno"]

PIPELINE = """\
pipeline: words
candidates:
  understand: []
  channels:
    - {use: bm25, fields: {title: 0, triggers: 0, path: 0, body: 1}, single: {title: 0}}
  recover: []
fusion:
  - {use: single, scale: bm25}
rerank: []
annotate: []
extends: none
"""
"""The title of a document does not count, and may be given any weight from 0 to 2."""


def write(
    folder: Path, documents: Iterable[tuple[str, str, str]], judged: Iterable[tuple[str, str]], created_at: float = 0.0
) -> Path:
    """A dataset of (key, title, text) with one relevant document per (query, key); its date is unknown unless given."""
    (folder / "qrels").mkdir(parents=True)
    dated = {"metadata": {"created_at": created_at}} if created_at else {}
    corpus = [{"_id": key, "title": title, "text": text, **dated} for key, title, text in documents]
    pairs = list(judged)
    queries = [{"_id": f"q{n}", "text": text} for n, (text, _) in enumerate(pairs)]
    for name, records in (("corpus", corpus), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    rows = [f"q{n}\t{key}\t1" for n, (_, key) in enumerate(pairs)]
    (folder / "qrels" / "test.tsv").write_text("\n".join(("query-id\tcorpus-id\tscore", *rows)) + "\n")
    return folder


def titles(folder: Path, *, by_title: int = 0, by_text: int = 0, by_mention: int = 0, created_at: float = 0.0) -> Path:
    """Topics of one word each. One document has it as its title, another in its text.

    The first topics are answered by the title, while the text mentions the word once: titles must count, by about 0.9.
    The next are answered by the text, which is full of the word: titles must not count much more, up to about 1.7. The
    last are answered by a text that mentions the word once: titles must count less than 0.9.
    """
    documents, judged = [], []
    for n in range(by_title + by_text + by_mention):
        # letters alone: a name with a number is searched by its parts as well
        word = folder.name + "".join("abcdefghij"[int(digit)] for digit in str(n)) + "x"
        often = 12 if by_title <= n < by_title + by_text else 1
        documents.append((f"t{n}", word, " ".join(FILLER)))
        documents.append((f"b{n}", f"note {n}", " ".join([*FILLER[:-often], *[word] * often])))
        judged.append((word, f"t{n}" if n < by_title else f"b{n}"))
    return write(folder, documents, judged, created_at)
