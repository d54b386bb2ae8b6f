"""Pass 1: YAML with positions, all problems at once."""

from __future__ import annotations

import string
from collections.abc import Iterator

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.config.yaml.reader import Node, Sequence, YamlMapping, locate, plain, read
from speckit_memory.errors import Where


def found(text: str) -> list[tuple[str, int, int]]:
    _, problems = read(text, "f.yaml")
    return [(p.code, p.where.line, p.where.column) for p in problems if p.where]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("12", 12), ("-3", -3), ("012", 12), ("0x1F", 31), ("0o17", 15), ("1.5", 1.5), (".5", 0.5), ("1e3", 1000.0),
        ("true", True), ("False", False), ("null", None), ("~", None), ("1:30", "1:30"), ("2026-11-21", "2026-11-21"),
        ("'12'", "12"), ('"true"', "true"), ("plain words", "plain words"), ("'no'", "no"),
    ],
)  # fmt: skip
def test_plain_words_mean_what_yaml_1_2_says(text: str, value: object) -> None:
    node, problems = read(f"a: {text}\n", "f.yaml")

    assert node is not None
    assert plain(node) == {"a": value}
    assert problems == []


@pytest.mark.requirement("P7")
def test_every_problem_is_reported_at_its_place() -> None:
    text = "a: on\nb: 1\nb: 2\nc: .nan\nd: !!python/name:os.system x\n"

    assert found(text) == [("E113", 1, 4), ("E112", 3, 1), ("E114", 4, 4), ("E111", 5, 4)]


def spans(node: Node) -> Iterator[tuple[Node, str]]:
    """Every value, with its text from where it begins to where it ends."""
    begin, (line, column) = node.where, node.end
    lines = SPANS.splitlines()[begin.line - 1 : line]
    yield node, "\n".join([*lines[:-1], lines[-1][: column - 1]])[begin.column - 1 :]
    for inner in node.items if isinstance(node, Sequence) else ():
        yield from spans(inner)
    for entry in node.entries if isinstance(node, YamlMapping) else ():
        yield from spans(entry.value)


SPANS = """\
a: plain words  # remark
b: "quoted # \\" text"
c: 'it''s'
d: {x: 1, y: [2, "3"], z: }  # remark
e:
- one
- two two  # remark

f:
  g: 3.5

  # remark
h: é漢 x
"""


def test_a_value_ends_where_its_text_does() -> None:
    node, _ = read(SPANS, "f.yaml")
    assert node is not None
    found = list(spans(node))
    assert [text for _, text in found if "\n" not in text] == [
        *("plain words", '"quoted # \\" text"', "'it''s'", '{x: 1, y: [2, "3"], z: }', "1", '[2, "3"]', "2", '"3"', ""),
        *("one", "two two", "g: 3.5", "3.5", "é漢 x"),
    ]
    for value, text in found:
        again, _ = read(text, "f.yaml")
        assert (plain(again) if again else None) == plain(value)


def test_the_first_of_two_equal_keys_is_kept() -> None:
    node, _ = read("a: 1\na: 2\n", "f.yaml")

    assert node is not None
    assert plain(node) == {"a": 1}


@pytest.mark.parametrize("text", ["a: [1\nb: 2", "a: 'x", "\ta: 1", "a: b: c", "- a\nb: 1", "&a [*a]", "a: \x00"])
def test_broken_yaml_is_one_problem_with_a_place(text: str) -> None:
    _, problems = read(text, "f.yaml")

    assert {problem.code for problem in problems} == {"E111"}
    assert all(problem.where for problem in problems)


@pytest.mark.parametrize(
    "text",
    ["[" * 100_000, "{a: " * 60_000, "a: &a [1]\nb: *a\n", "- " * 5_000, "a: " + "9" * 5_000, "a: 1e999", "a: -.inf"],
    ids=lambda text: text[:8],
)
def test_texts_made_to_hurt_are_one_problem_at_once(text: str) -> None:
    _, problems = read(text, "f.yaml")

    assert len(problems) == 1
    assert problems[0].code in ("E111", "E114")
    assert problems[0].where


def test_several_documents_are_refused() -> None:
    assert found("a: 1\n---\nb: 2\n") == [("E111", 3, 1)]


def test_an_empty_text_is_no_problem() -> None:
    assert read("# nothing\n", "f.yaml") == (None, [])


def test_positions_follow_the_first_line_of_an_embedded_document() -> None:
    _, problems = read("a: yes\n", "notes.md", first_line=2)

    assert [problem.where for problem in problems] == [Where("notes.md", 2, 4)]


def test_locate_finds_the_deepest_ancestor_that_exists() -> None:
    node, _ = read("a:\n  b: [1, 2]\n", "f.yaml")

    assert isinstance(node, YamlMapping)
    assert locate(node, ("a", "b", 1)) == Where("f.yaml", 2, 10)
    assert locate(node, ("a", "x", "y")) == Where("f.yaml", 2, 3)


# The dumper of PyYAML leaves these bare, and the reader refuses them bare: see E113.
AMBIGUOUS = {"y", "Y", "n", "N"}
words = st.text(string.ascii_letters + " _-:#'\"[]{}äß漢\n", max_size=12).filter(lambda word: word not in AMBIGUOUS)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(-1e6, 1e6, allow_nan=False) | words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=3),
    max_leaves=10,
)


@given(values)
def test_what_was_dumped_is_read_back(value: object) -> None:
    node, problems = read(yaml.safe_dump(value, allow_unicode=True), "f.yaml")

    assert problems == []
    assert (None if node is None else plain(node)) == value


@given(st.text(max_size=60))
def test_no_text_makes_the_reader_fail(text: str) -> None:
    _, problems = read(text, "f.yaml")

    assert all(problem.where for problem in problems)
