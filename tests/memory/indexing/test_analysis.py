from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.indexing.analysis import LONGEST_WORD, Analyser


@pytest.mark.requirement("C3.words")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Searching the memories", ("search", "memori")),
        ("computeMPAB", ("computempab", "comput", "mpab")),
        ("user_id", ("user_id", "user", "id")),
        ("REQ-006", ("req-006", "req", "006")),
        ("v1.2.3, 1.2.3 and 3.11", ("1.2.3", "1.2.3", "3.11")),
        ("auth/token_store.py", ("auth/token_store.py", "auth", "token_store", "token", "store", "py")),
        ("ｒｅｑ－００６ ﾃﾞｰﾀ", ("req-006", "req", "006", "デー", "ータ")),
        ("state-of-the-art", ("state", "art")),
        ("C++ or C#, not c", ("c++", "c#", "c")),
        ("python3 utf8", ("python3", "python", "3", "utf8", "utf", "8")),
        ("APIs IPv6 a3f9bc0d", ("api", "ipv6", "ipv", "6", "a3f9bc0d")),
        ("docs/rrf.md os.path", ("docs/rrf.md", "doc", "rrf", "md", "os.path", "os", "path")),
        ("__init__ ____", ("init",)),
        ("the project’s users don't", ("project", "user")),
        ("STRASSE straße", ("strass", "strass")),
        ("cafe\u0301 café", ("café", "café")),
        ("使用SQLite数据库", ("使用", "sqlite", "sq", "lite", "数据", "据库")),
        ("検索エンジン", ("検索", "索エ", "エン", "ンジ", "ジン")),
        ("데이터 字", ("데이", "이터", "字")),
        ("हिन्दी ภาษาไทย поиск", ("हिन्दी", "ภาษาไทย", "поиск")),
        ("what is it?", ("what", "is", "it")),
        ("", ()),
    ],
)
def test_text_becomes_the_tokens_of_its_words_identifiers_and_scripts(text: str, tokens: tuple[str, ...]) -> None:
    assert Analyser().tokens(text) == tokens


@given(st.text())
def test_a_letter_or_digit_always_leaves_a_token_and_no_token_has_a_blank(text: str) -> None:
    tokens = Analyser().tokens(text)

    assert all(token and token.split() == [token] for token in tokens)
    if any(character.isalnum() for character in text):
        assert tokens


@given(st.text(), st.text())
def test_a_shared_analyser_gives_what_a_fresh_one_gives(first: str, second: str) -> None:
    shared = Analyser()
    shared.tokens(first)

    assert shared.tokens(second) == Analyser().tokens(second)


def test_a_run_too_long_for_a_name_is_not_kept_whole() -> None:
    path = "/".join(["folder"] * LONGEST_WORD)

    assert set(Analyser().tokens(path)) == {"folder"}


def test_threads_share_an_analyser() -> None:
    analyser = Analyser()
    texts = [f"word{number} memories{number} computeValue{number}" for number in range(2000)]
    expected = [Analyser().tokens(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(analyser.tokens, texts)) == expected
