from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from unicodedata import normalize

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.parsing import analysis
from speckit_memory.memory.parsing.analysis import LONGEST_WORD, STOP_WORDS, Analyser, _Stretches

WORDS = [
    "foo",
    "Bar",
    "--dry",
    "--",
    "'s",
    "’",
    "é",
    "\u0301",
    "_",
    "::",
    "/",
    ".",
    "++",
    "#",
    "1.2",
    "the",
    "日本",
    "ﬁ",
    "¨",
]
BLANKS = [" ", "\n", "\t", "\u00a0", "\u3000", "\u2028", "\x1c", "\x85", "\u200b"]


@pytest.mark.requirement("C3.words")
@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Searching the memories", ("search", "memori")),
        ("computeMPAB", ("computempab", "comput", "mpab")),
        ("user_id", ("user_id", "user", "id")),
        ("REQ-006", ("req-006", "req", "006")),
        ("v1.2.3, 1.2.3 and 3.11", ("1.2.3", "1.2.3", "3.11")),
        ("//x.io/v1.29/doc", ("x.io/v1.29/doc", "1.29", "x", "io", "v1", "29", "doc")),
        ("auth/token_store.py", ("auth/token_store.py", "auth", "token_store", "token", "store", "py")),
        ("ｒｅｑ－００６ ﾃﾞｰﾀ", ("req-006", "req", "006", "デー", "ータ")),
        ("state-of-the-art", ("state", "art")),
        ("C++ or C#, not c", ("c++", "c#", "c")),
        ("python3 utf8", ("python3", "python", "3", "utf8", "utf", "8")),
        ("APIs IPv6 a3f9bc0d", ("api", "ipv6", "ipv", "6", "a3f9bc0d")),
        ("docs/rrf.md os.path", ("docs/rrf.md", "doc", "rrf", "md", "os.path", "os", "path")),
        ("__init__ ____", ("init",)),
        ("sha256sum utf8mb4", ("sha256sum", "sha", "sum", "utf8mb4", "utf", "mb")),
        ("base64Encode", ("base64encode", "base64", "base", "encod")),
        ("OAuth2Token OAuth", ("oauth2token", "oauth2", "oauth", "auth", "token", "oauth", "auth")),
        ("HTTP2Server", ("http2server", "http2", "http", "server")),
        ("getXValue k8sCluster", ("getxvalu", "get", "valu", "k8scluster", "k8s", "cluster")),
        ("größeMax", ("grössemax", "grösse", "max")),
        ("ÄndereWert ΑλφαΒήτα", ("änderewert", "ändere", "wert", "αλφαβήτα", "αλφα", "βήτα")),
        ("iPhone eBPF aB", ("iphon", "phone", "ebpf", "bpf", "ab")),
        ("__init__.py", ("init__.py", "init", "py")),
        ("std::vector<int> a: b", ("std::vector", "std", "vector", "int", "b")),
        ("foo.bar.bazQux()", ("foo.bar.bazqux", "foo", "bar", "bazqux", "baz", "qux")),
        ("--dry-run --force", ("--dry-run", "dri", "run", "--force", "forc")),
        ("rank--fusion --- dry-run", ("rank", "fusion", "dri", "run")),
        ("MAX_CONST_NAME x86_64", ("max_const_name", "max", "const", "name", "x86_64", "x86", "64")),
        ("docs/getXValue.md", ("docs/getxvalue.md", "doc", "getxvalu", "get", "valu", "md")),
        ("3rd 22nd deadbeef4cafe 10ms", ("3rd", "22nd", "deadbeef4cafe", "10ms", "ms")),
        ("the project’s users don't", ("project", "user")),
        ("STRASSE straße", ("strass", "strass")),
        ("cafe\u0301 café", ("café", "café")),
        ("使用SQLite数据库", ("使用", "sqlite", "sq", "lite", "数据", "据库")),
        ("検索エンジン", ("検索", "索エ", "エン", "ンジ", "ジン")),
        ("데이터 字", ("데이", "이터", "字")),
        ("死锁是什么? 锁怎么办", ("死锁", "锁")),
        ("什么是", ("什么", "么是")),
        ("हिन्दी ภาษาไทย поиск", ("हिन्दी", "ภาษาไทย", "поиск")),
        ("what is it?", ("what", "is", "it")),
        ("", ()),
    ],
)
def test_text_becomes_the_tokens_of_its_words_identifiers_and_scripts(text: str, tokens: tuple[str, ...]) -> None:
    assert Analyser().tokens(text) == tokens


@pytest.mark.requirement("C3.words")
@pytest.mark.parametrize(
    ("text", "in_german", "more"),
    [
        ("Searching the memories", False, ()),
        ("Prüfung der Schlüssel", False, ()),
        (
            "Prüfung der Schlu\u0308ssel im Low-Code-Server, getKey",
            True,
            ("de:", "de:prufung", "de:schlussel", "de:low", "de:cod", "de:serv"),
        ),
        ("行锁怎么办 字", False, ("行", "锁")),
    ],
)
def test_behind_the_tokens_of_a_document_stand_chinese_characters_and_german_stems(
    text: str, in_german: bool, more: tuple[str, ...]
) -> None:
    analyser = Analyser()

    assert analyser.held(text, in_german) == analyser.tokens(text) + more


@given(st.text())
def test_a_letter_or_digit_always_leaves_a_token_and_no_token_has_a_blank(text: str) -> None:
    tokens = Analyser().tokens(text)

    assert all(token and token.split() == [token] for token in tokens)
    if any(character.isalnum() for character in text):
        assert tokens


NAMES = st.text(alphabet="abxyABXYéÉ012_-./:", min_size=1, max_size=12)


@given(NAMES)
def test_no_part_of_an_identifier_is_a_single_letter_or_the_whole_again(name: str) -> None:
    tokens = Analyser().tokens(name)

    if len(tokens) > 1 and not any(separator in name for separator in "-_./:"):
        whole, *inside = tokens
        assert all(len(part) > 1 or part.isdigit() for part in inside)
        assert all(len(part) <= len(whole) + 1 for part in inside)
        assert whole not in inside


@given(st.sampled_from(["alpha", "beta", "gamma"]), st.sampled_from(["Delta", "Omega"]), st.sampled_from("237"))
def test_the_words_of_an_identifier_find_it(first: str, second: str, digit: str) -> None:
    analyser = Analyser()
    words = set(analyser.tokens(f"{first} {second}"))

    for name in (
        first + second,
        f"{first}{digit}{second}",
        f"{first}{digit}{second.lower()}",
        f"{first}_{second}",
        f"{first}X{second}",
        f"--{first}-{second}",
        f"{first}::{second}",
        f"{first}.x.{second}()",
    ):
        assert words <= set(analyser.tokens(name)), name


@given(st.text(), st.text())
def test_a_shared_analyser_gives_what_a_fresh_one_gives(first: str, second: str) -> None:
    shared = Analyser()
    shared.tokens(first)

    assert shared.tokens(second) == Analyser().tokens(second)


@given(st.lists(st.sampled_from(WORDS) | st.from_regex(r"[A-Za-zé]{0,70}", fullmatch=True) | st.text(max_size=5)))
def test_a_word_has_its_token_where_it_has_one(words: list[str]) -> None:
    each = [Analyser().tokens(word) for word in words]

    assert Analyser().word_tokens(words) == [tokens[0] if len(tokens) == 1 else None for tokens in each]


def test_a_run_too_long_for_a_name_is_not_kept_whole() -> None:
    path = "/".join(["folder"] * LONGEST_WORD)

    assert set(Analyser().tokens(path)) == {"folder"}


def test_threads_share_an_analyser() -> None:
    analyser = Analyser()
    texts = [f"word{number} memories{number} computeValue{number}" for number in range(2000)]
    expected = [Analyser().tokens(text) for text in texts]

    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(analyser.tokens, texts)) == expected


@pytest.mark.requirement("C3.words")
@given(st.lists(st.sampled_from(WORDS + BLANKS) | st.text(max_size=5), max_size=12).map("".join))
def test_cutting_between_blanks_first_finds_the_words_of_the_whole_text(text: str) -> None:
    words = analysis._word_of_any_script().findall(normalize("NFKC", text))
    of_each = _Stretches(STOP_WORDS)

    expected = [token for word in words for token in of_each.cut(word, STOP_WORDS)]
    assert list(Analyser().tokens(text)) == (expected or [t for word in words for t in of_each.cut(word, frozenset())])


@given(st.text("ab9_ .-/:'+#\n\x1c", max_size=20) | st.text(st.characters(max_codepoint=127), max_size=20))
def test_plain_text_is_cut_as_text_of_any_script_is(text: str) -> None:
    assert analysis._words(text) == analysis._word_of_any_script().findall(text)
