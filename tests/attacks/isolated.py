"""What the attacks on isolation share: a workspace, the hostile extension and a pipeline with all of its steps."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from files import write_file

from tests.server.doors import DOCUMENTS, call

PLAIN = """\
pipeline: plain
fusion: [{use: z_score, normalise: min_max}]
rerank: [min_max]
annotate: [attribution]
candidates: {understand: [complexity]}
"""
HOSTILE = """\
pipeline: hostile
candidates:
  understand: [complexity, hostile_understander]
  channels: [bm25, vector, graph, trigger, identifier, phrase, constitutional, hostile_channel]
  recover: [hostile_recoverer, fallback]
fusion: [{use: z_score, normalise: min_max}, {use: hostile_signal, optional: true}]
rerank: [{use: hostile_reranker, optional: true}, min_max]
annotate: [attribution, hostile_annotator]
"""
STEPS = ("understander", "channel", "signal", "reranker", "annotator")
"""The roles that every search of the hostile pipeline calls."""


def workspace(root: Path) -> Path:
    """An indexed workspace with both pipelines."""
    for name, text in DOCUMENTS.items():
        write_file(root / name, text)
    assert call(root, ["index", "docs", "--json"]).status == 0
    (root / "plain.yaml").write_text(PLAIN, encoding="utf-8")
    (root / "hostile.yaml").write_text(HOSTILE, encoding="utf-8")
    return root


def isolated(path: Path, **more: str) -> dict[str, str]:
    """The environment in which the distributions of a folder are installed, and run in a process of their own."""
    return {"PYTHONPATH": str(path), "SPECKIT_EXTENSIONS": "isolated", "SPECKIT_EXTENSIONS_MEMORY_MB": "512", **more}


def served(answer: dict[str, Any]) -> list[Any]:
    """What an answer serves: ids, scores, texts and why, but not which steps touched them."""
    return [{name: row[name] for name in ("id", "key", "score", "snippet", "reason")} for row in answer["results"]]


def lost(answer: dict[str, Any]) -> dict[str, str]:
    """The steps that did not do their work, each with the reason."""
    return {part["part"]: part["reason"] for part in answer["notes"]["degraded"]}
