"""Pass 1: YAML with positions, all problems at once."""

from __future__ import annotations

import string
from pathlib import Path
from unittest.mock import patch

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from tiers import examples

from speckit_memory.config.yaml import reader
from speckit_memory.config.yaml.reader import MAX_DEPTH, MOST_VALUES, YamlMapping, _small, _sound, locate, plain, read
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


@pytest.mark.requirement("P7", "P10")
@settings(max_examples=examples(2))
@given(
    st.sampled_from(["", "a: 1\nb:\n  - x\n", "a: {b: 1, c: [2]}\n"]),
    st.lists(
        st.sampled_from([*"ab: -[]{},'\"#&*!|>?%@\t0129.eE~\n", "\n  ", "\n- ", "key: ", "on", "true", "---\n", "&a "])
    ),
)
def test_the_quick_way_reads_what_nothing_is_wrong_with_and_nothing_else(begin: str, end: list[str]) -> None:
    text = begin + "".join(end)
    quickly = _sound(text, "f.yaml", 3)
    with patch.object(reader, "_sound", return_value=None):
        node, problems = read(text, "f.yaml", 3)

    if quickly is not None:
        assert (quickly, []) == (node, problems)
    elif not problems and node is not None:
        assert set(text) & set("&!")  # which are looked at with care


@pytest.mark.parametrize("file", sorted(Path(reader.__file__).parent.rglob("*.yaml")), ids=lambda path: path.name)
def test_shipped_files_are_read_the_quick_way(file: Path) -> None:
    text = file.read_text(encoding="utf-8")
    with patch.object(reader, "_sound", return_value=None):
        node, problems = read(text, "f.yaml")

    assert problems == []
    assert _sound(text, "f.yaml", 1) == node


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


@given(st.text(st.sampled_from("[]{},:?-*&a \n\"'#|>!~"), max_size=60))
def test_a_text_means_the_same_surveyed_or_not(text: str) -> None:
    with patch.object(reader, "_small", return_value=False):
        surveyed = read(text, "x.md")
    assert read(text, "x.md") == surveyed


def test_a_text_that_could_nest_too_deeply_is_surveyed() -> None:
    assert not _small("- " * MAX_DEPTH + "a")
    assert not _small("[" * MAX_DEPTH)
    assert not _small("&a b")
    assert not _small("*a")
    assert not _small("a" * MOST_VALUES)
    assert _small("title: A plain head\ntriggers: [one, two]")
