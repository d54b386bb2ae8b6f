"""Lineages as documents and as diagrams."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.engine import Memory
from speckit_memory.engine.graph.lineage import LONGEST_LABEL, label

KEYS = ("a.md", "b.md", "c.md", "d.md")
SAFE = re.compile(r"(?:\w|[ .,/-]|#\d+;|…)*")


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    for key in KEYS:
        (tmp_path / key).write_text(f"# About {key[0]}\n\nNothing but {key[0] * 9}.\n", encoding="utf-8")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as opened:
        opened.index(tmp_path)
        yield opened


@pytest.mark.requirement("M8.lineage")
def test_a_lineage_is_grouped_by_what_links_say_of_the_nearer_end(memory: Memory) -> None:
    memory.graph.add_edges([
        ("a.md", "caused", "b.md", 0.9), ("b.md", "caused", "c.md", 0.8), ("c.md", "caused", "d.md", 0.7),
        ("b.md", "derived_from", "d.md", 0.6),
    ])  # fmt: skip
    found = memory.graph.lineage("b.md", depth=2)
    assert {name: [(s.source, s.target, s.hop) for s in steps] for name, steps in found.groups.items()} == {
        "caused by": [("a.md", "b.md", 1)],
        "caused": [("b.md", "c.md", 1), ("c.md", "d.md", 2)],
        "derived from": [("b.md", "d.md", 1)],
    }
    document = found.as_json()
    assert (document["links"], document["reached"], document["cut"], document["hints"]) == (4, 2, False, [])
    assert [known["key"] for known in document["memories"]] == ["b.md", "a.md", "c.md", "d.md"]
    assert document["groups"]["caused by"] == [{
        "edge": 1, "source": "a.md", "relation": "caused", "target": "b.md", "strength": 0.9, "evidence": "",
        "created_by": "manual", "direction": "incoming", "hop": 1,
    }]  # fmt: skip


@pytest.mark.requirement("M8.lineage")
def test_what_contradicts_or_holds_no_longer_is_said(memory: Memory) -> None:
    memory.graph.add_edges([("a.md", "contradicts", "b.md", 1.0), ("b.md", "supports", "a.md", 1.0)])
    assert memory.graph.lineage("a.md").hints == (
        "a.md contradicts b.md, and one supports the other: review which of them holds",
    )
    memory.graph.add_edges([("c.md", "supersedes", "b.md", 1.0), ("c.md", "contradicts", "b.md", 1.0)])
    assert memory.graph.lineage("b.md").hints[1:] == ("b.md is superseded by c.md",)
    memory.graph.add_edges([("b.md", "supersedes", "c.md", 1.0)])
    assert memory.graph.lineage("b.md").hints[1:] == ("b.md and c.md supersede each other: review which of them holds",)


@pytest.mark.requirement("M8.lineage")
def test_of_many_hints_the_first_are_told_and_how_many_more_there_are(tmp_path: Path) -> None:
    keys = [f"{number:02}.md" for number in range(31)]
    for key in keys:
        (tmp_path / key).write_text(f"# About {key}\n\nNothing but {key}.\n", encoding="utf-8")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as opened:
        opened.index(tmp_path)
        opened.graph.add_edges([(keys[number > 15], "supersedes", keys[number], 1.0) for number in range(1, 31)])
        hints = opened.graph.lineage("00.md").hints
    assert hints[:20] == tuple(f"{keys[n]} is superseded by {keys[n > 15]}" for n in range(1, 21))
    assert hints[20:] == ("10 more: ask for fewer hops or some relations",)


@pytest.mark.requirement("M8.mermaid")
def test_a_diagram_has_a_node_for_each_memory_and_an_arrow_for_each_link(memory: Memory) -> None:
    memory.graph.add_edges([("a.md", "caused", "b.md", 0.9), ("b.md", "contradicts", "c.md", 0.25)])
    assert memory.graph.lineage("a.md").mermaid() == (
        "flowchart LR\n"
        '    m1["About a<br/>a.md"]\n    m2["About b<br/>b.md"]\n    m3["About c<br/>c.md"]\n'
        '    m1 -->|"caused 0.9"| m2\n    m2 -.->|"contradicts 0.25"| m3\n'
        "    classDef asked stroke-width:3px\n    class m1 asked\n"
    )


@pytest.mark.requirement("M8.mermaid")
def test_no_title_breaks_a_diagram(tmp_path: Path) -> None:
    title = 'end"]; click m1 "https://evil" %%{init}%% `x` | --> <b onload=1> #quot; {{ }} \u202e'
    (tmp_path / "a.md").write_text(f"# {title}\n\nText.\n", encoding="utf-8")
    (tmp_path / 'b"];x.md').write_text("# B\n\nOther.\n", encoding="utf-8")
    with Memory.open(tmp_path / "m.db", root=tmp_path, environ={}) as memory:
        memory.index(tmp_path)
        memory.graph.add_edges([("a.md", "caused", 'b"];x.md', 1.0)])
        lines = memory.graph.lineage("a.md").mermaid().splitlines()
    assert len(lines) == 6
    node = re.compile(r'    m\d+\["(.*)<br/>(.*)"\]')
    for line in lines[1:3]:
        found = node.fullmatch(line)
        assert found is not None
        assert all(SAFE.fullmatch(part) for part in found.groups())
    assert lines[3] == '    m1 -->|"caused 1"| m2'


@given(st.text(max_size=200))
@pytest.mark.requirement("M8.mermaid")
def test_a_label_holds_nothing_that_means_something_and_says_what_the_text_says(text: str) -> None:
    shown = label(text)
    assert SAFE.fullmatch(shown)
    said = re.sub(r"#(\d+);", lambda sign: chr(int(sign[1])), shown)
    assert len(said) <= LONGEST_LABEL + 2
    if len(text) < LONGEST_LABEL and text.isprintable():
        assert said == " ".join(text.split())
