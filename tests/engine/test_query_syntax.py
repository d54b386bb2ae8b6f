from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.engine.answers.query_syntax import MOST_WORDS, ParsedQuery, read

QUOTES = '"“”„‟«»＂'


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ('"rank fusion" -rsf', ParsedQuery("rank fusion", ("rank fusion",), ("rsf",))),
        ("“rank fusion” weights", ParsedQuery("rank fusion weights", ("rank fusion",))),
        ("„Größe der Liste“ «par rang»", ParsedQuery("Größe der Liste par rang", ("Größe der Liste", "par rang"))),
        ('"fusion"', ParsedQuery("fusion", ("fusion",))),
        ('why " rank   fusion "?', ParsedQuery("why rank fusion?", ("rank fusion",))),
        ('fusion -"by rank"', ParsedQuery("fusion", (), ("by rank",))),
        ("-rsf, fusion -c++ -user_id.", ParsedQuery("fusion", (), ("rsf", "c++", "user_id"))),
        ("fusion -हिन्दी -3", ParsedQuery("fusion -3", (), ("हिन्दी",))),
        ('"-rsf fusion"', ParsedQuery("-rsf fusion", ("-rsf fusion",))),
        ("fuse without ranks -rsf.", ParsedQuery("fuse without ranks", (), ("rsf",))),
        ("caching but not redis", ParsedQuery("caching", (), ("redis",), "not redis")),
        ("caching, not redis, not disks", ParsedQuery("caching", (), ("redis", "disks"), "not redis")),
        ("caching, and no redis", ParsedQuery("caching", (), ("redis",), "no redis")),
        (
            "fast caching but not a redis cluster",
            ParsedQuery("fast caching", (), ("redis cluster",), "not redis cluster"),
        ),
        ("caching, not Redis?", ParsedQuery("caching", (), ("Redis",), "not Redis")),
        ("caching except redis, nginx or etcd", ParsedQuery("caching", (), ("redis", "nginx", "etcd"), "except redis")),
        ("caching other than redis", ParsedQuery("caching", (), ("redis",), "other than redis")),
        ("-abc -abc", ParsedQuery("", (), ("abc",))),
    ],
)
def test_quotes_require_and_a_minus_leaves_out(text: str, typed: ParsedQuery) -> None:
    assert read(text) == typed


@pytest.mark.parametrize(
    "text",
    [
        "rank-fusion of token-based lists",
        "git commit --amend",
        "a - b",
        "ls -la docs",
        "rm -rf build",
        "pytest -n 2 -q tests",
        "unexpected argument -k3 in it",
        'ERROR - cannot open "memory.db": "locked" in "wal"',
        '{"level": "warning", "event": "rank fusion"}',
        'level: "rank fusion"',
        "a --b -- c ---d",
        'the 5" disk and the 3" disk',
        'print("rank fusion")',
        'title="rank fusion"',
        'an "unbalanced quote',
        'nothing "" in "…" it',
        '"rank fusion"al',
        "don't 'quote singly'",
        '"rank fusion"\n-rsf',
        '"rank fusion" -rsf' + " word" * MOST_WORDS,
        "(-rsf)",
        'add the --dry-run flag to the control-plane phase of "kubeadm init".',
        "Several crashes were identified and fixed using his -based tool.",
        "caching not redis",
        "not redis",
        "deploy without downtime",
        "how to deploy without downtime",
        "it is fast, not slow",
        "caching, not only redis",
        "caching but not just in redis",
        "Mice without IFN-γ or its receptor are highly susceptible",
    ],
)
def test_what_is_pasted_or_stands_alone_is_no_mark(text: str) -> None:
    assert read(text) == ParsedQuery(text)


@given(st.text(alphabet=st.sampled_from(f"ab1é字- \t\n.,({QUOTES}"), max_size=60))
def test_words_are_required_left_out_or_searched_and_never_lost(text: str) -> None:
    typed = read(text)

    assert typed.text == text.strip() or typed.text == " ".join(typed.text.split())
    for phrase in (*typed.required, *typed.excluded):
        assert any(character.isalnum() for character in phrase)
        assert phrase == " ".join(phrase.split())
    assert all(phrase in typed.text for phrase in typed.required)
    everything = "".join((typed.text, *typed.excluded))
    assert {c for c in text if c.isalnum()} == {c for c in everything if c.isalnum()}


@given(st.text(alphabet="ab- \n'(=", max_size=60))
def test_a_text_without_marks_is_left_as_it_is(text: str) -> None:
    if " -" not in f" {text}".replace("\n", " "):
        assert read(text) == ParsedQuery(text.strip())


@given(st.lists(st.sampled_from(["rank", "fusion", "user_id", "größe"]), min_size=1, max_size=MOST_WORDS - 2))
def test_a_phrase_comes_back_as_it_was_quoted(words: list[str]) -> None:
    phrase = " ".join(words)

    assert read(f'x "{phrase}" -yes') == ParsedQuery(f"x {phrase}", (phrase,), ("yes",))


def test_a_long_line_of_quotes_costs_little() -> None:
    text = '"' + "a" * 9_998

    assert read(text) == ParsedQuery(text)
