"""What `eval run` and `eval compare` measure of ranks and communities: that a dataset's edges make them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.server.doors import Ran, call

SCALED = """\
pipeline: scaled
extends: none
candidates: {channels: [{use: bm25}]}
fusion: [{use: z_score, normalise: min_max}]
"""
CENTRAL = """\
pipeline: central
extends: scaled.yaml
fusion: {add: [{use: centrality}]}
"""
GROUPED = """\
pipeline: grouped
extends: scaled.yaml
candidates: {channels: {add: [{use: community}]}}
"""
KEYS = ("gateway", "tenants", "quota", "ledger")
TEXTS = (
    "One gateway for all tenants.",
    "Tenants share a gateway, and each tenant pays its own part of it.",
    "A quota holds for a day.",
    "The ledger is append-only.",
)
SPARSE = [
    ("tenants", "derived_from", "gateway"),
    ("quota", "derived_from", "gateway"),
    ("quota", "supports", "tenants"),
]
DENSE = [*SPARSE, ("tenants", "enabled", "quota")]
"""As many edges as documents: what the least of a dense graph is."""


def dataset(root: Path, edges: list[tuple[str, str, str]]) -> Path:
    """Four documents with these edges and a query that the words of two answer."""
    (root / "qrels").mkdir(parents=True)
    corpus = [{"_id": key, "title": key.title(), "text": text} for key, text in zip(KEYS, TEXTS, strict=True)]
    (root / "corpus.jsonl").write_text("".join(json.dumps(one) + "\n" for one in corpus))
    (root / "queries.jsonl").write_text(json.dumps({"_id": "q", "text": "tenants gateway"}) + "\n")
    (root / "qrels" / "test.tsv").write_text("query-id\tcorpus-id\tscore\nq\tquota\t1\n")
    lines = ["source\trelation\ttarget\tstrength", *("\t".join((*edge, "1.0")) for edge in edges)]
    (root / "edges.tsv").write_text("\n".join(lines) + "\n")
    return root


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., Ran]:
    """Runs `eval` on a dataset with these edges, and gives the scores of each pipeline by document as well."""
    for text in (SCALED, CENTRAL, GROUPED):
        (tmp_path / f"{text.split()[1]}.yaml").write_text(text)

    def run(command: str, edges: list[tuple[str, str, str]], *arguments: str) -> Ran:
        folder = tmp_path / f"edges{len(edges)}"
        if not folder.exists():
            dataset(folder, edges)
        return call(tmp_path, ["eval", command, "--dataset", folder, "--json", *arguments]).ok()

    return run


def scores(root: Path) -> dict[str, dict[str, float]]:
    """The scores in a run file, by pipeline and document."""
    found: dict[str, dict[str, float]] = {}
    for line in (root / "ranked.run").read_text().splitlines():
        _, _, key, _, score, tag = line.split()
        found.setdefault(tag, {})[key] = float(score)
    return found


@pytest.mark.requirement("M10.read")
def test_a_dense_dataset_is_ranked_and_grouped_before_it_is_searched(ask: Callable[..., Ran], tmp_path: Path) -> None:
    three = ("--pipeline", "scaled.yaml", "--pipeline", "central.yaml", "--pipeline", "grouped.yaml")
    ran = ask("run", DENSE, *three, "--run-file", "ranked.run")
    found = scores(tmp_path)
    gains = {key: found["central"][key] - found["scaled"][key] for key in found["scaled"]}
    # all follows from the gateway, so that it has the highest rank, which gains the whole weight of 0.05
    assert gains["gateway"] == pytest.approx(0.05)
    assert 0.0 < gains["tenants"] < 0.05
    # no word of the query stands in the quota, which is of the community of what it finds; the ledger has no edge
    assert found["scaled"].keys() == {"gateway", "tenants"}
    assert found["grouped"].keys() == {"gateway", "tenants", "quota"}
    recall = {one["name"]: one["metrics"]["Recall@20"] for one in ran.json["pipelines"]}
    assert recall == {"scaled": 0.0, "central": 0.0, "grouped": 1.0}


@pytest.mark.requirement("M10.read")
def test_a_comparison_tells_what_ranks_change_on_dense_edges_alone(ask: Callable[..., Ran]) -> None:
    for edges, changed in ((DENSE, 1), (SPARSE, 0)):
        two = ask("compare", edges, "--no-keep", "--pipeline", "scaled.yaml", "--pipeline", "central.yaml").json
        assert [one["score_differences"] for one in two["contrasts"]] == [changed]
        flag = ask("compare", edges, "--no-keep", "--flag", "SPECKIT_COMMUNITY_DETECTION").json
        [contrast] = flag["contrasts"]
        assert contrast["ordering_differences"] + contrast["score_differences"] == changed


@pytest.mark.requirement("M10.gate")
def test_nothing_is_ranked_where_an_edge_is_missing(ask: Callable[..., Ran], tmp_path: Path) -> None:
    three = ("--pipeline", "scaled.yaml", "--pipeline", "central.yaml", "--pipeline", "grouped.yaml")
    ask("run", SPARSE, *three, "--run-file", "ranked.run")
    found = scores(tmp_path)
    assert found["central"] == found["scaled"] == found["grouped"]
