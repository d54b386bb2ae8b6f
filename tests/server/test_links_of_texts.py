"""Links that documents make in their texts, as lineages show them."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.doors import call

OLD, NEW = "docs/adr/0003-old.md", "docs/adr/0005-new.md"


def written(root: Path, files: dict[str, str]) -> None:
    for key, text in files.items():
        (root / key).parent.mkdir(parents=True, exist_ok=True)
        (root / key).write_text(text)
    ran = call(root, ["index", "."])
    assert (ran.status, ran.err) == (0, "")


def edges(root: Path, key: str) -> list[tuple[str, str, str, float, str]]:
    """Those of one document: source, relation, target, strength and evidence."""
    links = call(root, ["lineage", key, "--depth", "1", "--json"]).json["links"]
    return sorted(
        (edge["source"], edge["relation"], edge["target"], edge["strength"], edge["evidence"]) for edge in links
    )


@pytest.mark.requirement("I3.texts")
@pytest.mark.parametrize(
    ("declarer", "text", "evidence"),
    [
        (OLD, "# 3. Old\n\n## Status\n\nSuperseded by [5](0005-new.md)\n", "Status: Superseded by [5](0005-new.md)"),
        (OLD, "# Old\n\n* Status: superseded by ADR-5\n\nText.\n", "Status: superseded by ADR-5"),
        (OLD, "---\nstatus: superseded by 0005\n---\nText.\n", "status: superseded by 0005"),
        (OLD, "---\nsuperseded_by: docs/adr/0005-new.md\n---\nText.\n", "superseded_by: docs/adr/0005-new.md"),
        (OLD, "Text.\n\n> Replaced by [it](/docs/adr/0005-new.md#y)\n", "Replaced by [it](/docs/adr/0005-new.md#y)"),
        (NEW, "---\nreplaces: [3]\n---\nText.\n", "replaces: 3"),
        (NEW, "# New\n\n- Supersedes:\n  - the [old](0003-old.md)\n\nText.\n", "Supersedes: - the [old](0003-old.md)"),
        (NEW, "---\nsupersedes:\n  - ADR-0003\n---\nText.\n", "supersedes: ADR-0003"),
        (NEW, "# New\n\nStatus: accepted, supersedes ADR 3\n\nText.\n", "Status: accepted, supersedes ADR 3"),
        (NEW, "# New\n\nText.\n\nThis decision replaces [one](./0003-old.md).\n", "replaces [one](./0003-old.md)."),
    ],
)  # fmt: skip
def test_what_a_document_says_it_replaces_is_an_edge_with_its_words(
    tmp_path: Path, declarer: str, text: str, evidence: str
) -> None:
    others = {OLD: "Old.\n", NEW: "New.\n", "notes/5.md": "Five.\n", "notes/3.md": "Three.\n"}
    written(tmp_path, others | {declarer: text})

    assert edges(tmp_path, OLD) == [(NEW, "supersedes", OLD, 1.0, evidence)]
    rows = call(tmp_path, ["search", "old", "--json"]).json["results"]
    assert [row["notes"]["superseded_by"][0]["key"] for row in rows if row["key"] == OLD] == [NEW]

    written(tmp_path, {declarer: "Nothing of it any more.\n"})
    assert edges(tmp_path, OLD) == []


@pytest.mark.requirement("I3.texts")
@pytest.mark.parametrize(
    "text",
    [
        "This cache replaces [the old one](0003-old.md) in memory.\n", "Replaces 3 servers.\n",
        "---\nrelated: 3 kinds of caches\n---\nText.\n", "```\nSuperseded by ADR-3\n```\n",
        "As in `Replaces: ADR-3`.\n",
        "---\nstatus: superseded by PEP 3\n---\nText.\n",
    ],
)  # fmt: skip
def test_prose_and_code_say_of_no_document_that_it_is_replaced(tmp_path: Path, text: str) -> None:
    written(tmp_path, {OLD: "Old.\n", "peps/pep-0003.rst.md": "PEP.\n", NEW: text})

    assert not [edge for edge in edges(tmp_path, OLD) if edge[3] > 0.3]


@pytest.mark.requirement("I3.texts")
def test_markdown_links_to_documents_are_weak_edges_in_whatever_order_documents_come(tmp_path: Path) -> None:
    text = (
        "# Guide\n\n[a](adr/a.md) [b](./my%20b.md#part) [c](</docs/c.md> \"C\") [d][d] ![p](p.md) [w](https://x.org/w.md)\n"
        "`[code](code.md)` [there](#there)\n\n```\n[fence](fence.md)\n```\n\n[d]: ../d.md\n"
    )  # fmt: skip
    written(tmp_path, {"docs/guide.md": text})
    assert edges(tmp_path, "docs/guide.md") == []
    assert "declared links" not in call(tmp_path, ["stats"]).out

    later = ("docs/adr/a.md", "docs/my b.md", "docs/c.md", "d.md", "docs/p.md", "w.md", "docs/code.md", "docs/fence.md")
    written(tmp_path, {key: f"{key}\n" for key in later})

    assert edges(tmp_path, "docs/guide.md") == [
        ("docs/guide.md", "supports", "d.md", 0.3, "links to it: [d]: ../d.md"),
        ("docs/guide.md", "supports", "docs/adr/a.md", 0.3, "links to it: [a](adr/a.md)"),
        ("docs/guide.md", "supports", "docs/c.md", 0.3, 'links to it: [c](</docs/c.md> "C")'),
        ("docs/guide.md", "supports", "docs/my b.md", 0.3, "links to it: [b](./my%20b.md#part)"),
    ]


@pytest.mark.requirement("I3.texts")
def test_related_documents_and_folders_with_a_readme_are_named_by_front_matter(tmp_path: Path) -> None:
    one = "keps/sig-a/1-one/README.md"
    head = '---\nsee-also: ["/keps/sig-b/22-two"]\nrelated: KEP-333\n---\nOne.\n'
    two, three = "keps/sig-b/22-two/README.md", "keps/sig-c/0333-three/README.md"
    written(tmp_path, {one: head, two: "Two.\n", three: "Three.\n"})

    assert [edge[:4] for edge in edges(tmp_path, one)] == [(one, "supports", two, 0.5), (one, "supports", three, 0.5)]


@pytest.mark.requirement("I3.mentions")
def test_a_mention_gives_way_to_a_link_made_by_hand(tmp_path: Path) -> None:
    pages = [f"p{number:02}.md" for number in range(25)]
    hub = "".join(f"[{page}]({page})\n" for page in pages)
    written(tmp_path, {"hub.md": hub, "why.md": "Why.\n"} | {page: f"{page}\n" for page in pages})
    assert len(edges(tmp_path, "hub.md")) == 20

    assert call(tmp_path, ["links", "add", "hub.md", "caused", "why.md"]).status == 0
    assert call(tmp_path, ["links", "add", "hub.md", "supports", "p24.md"]).status == 0

    after = edges(tmp_path, "hub.md")
    assert len(after) == 20
    assert [edge[1:4] for edge in after if edge[3] == 1.0] == [("caused", "why.md", 1.0), ("supports", "p24.md", 1.0)]


@pytest.mark.requirement("I3.texts")
def test_a_link_of_a_text_is_taken_out_in_the_text(tmp_path: Path) -> None:
    written(tmp_path, {"a.md": "See [b](b.md).\n", "b.md": "B.\n"})

    refused = call(tmp_path, ["links", "remove", "1"])

    assert (refused.status, "remove it from a.md, then index that file" in refused.err) == (2, True)
