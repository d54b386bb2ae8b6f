"""What is meant by pasted traces, negations, absolute paths, versions, acronyms and slips, at the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.server.doors import call

NOTES = {
    "docs/adr/0003.md": "# Sessions\n\nCaching with redis. The session store forgot every token after an hour.\n",
    "docs/0003.md": "# Minutes\n\nCaching in memory, and lunch.\n",
    "docs/frames.md": "# Frames\n\nWhat main, middleware, dispatch and handler of the application do when asked.\n",
    "docs/adr/0004.md": "# Eviction\n\nA pod disruption budget (PDB) is kept.\n",
    "notes/short.md": "# Drains\n\nThe PDB was full; refresh_tokens was called too early.\n",
    "notes/long.md": "# Upgrades\n\nEach pod disruption budget counts, looming. Pipes tee without leaks.\n",
    "notes/url.md": "# Links\n\nRead https://example.org/docs/v1.29/caching and the loo paper; pipes leak.\n",
    "notes/toothpaste.md": "# Databases\n\nNot one databases was lost.\n",
}
PYTHON = """Traceback (most recent call last):
  File "/srv/app/main.py", line 3, in middleware
    dispatch(handler)
  File "/srv/app/handler.py", line 9, in refresh_tokens
    raise RuntimeError(message)
RuntimeError: """
JAVA = """Exception in thread "main" java.lang.IllegalStateException: {}
\tat com.example.app.Middleware.dispatch(Middleware.java:31)
\tat com.example.app.Main.main(Main.java:7)
\t... 12 more"""
NODE = """Error: {}
    at Handler.dispatch (/srv/app/middleware/handler.js:9:15)
    at async /srv/app/main.js:3:1"""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("meant")
    for name, text in NOTES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    assert call(root, ["index", "."]).status == 0
    return root


def answer(root: Path, *arguments: str) -> Any:
    return call(root, ["search", "--json", *arguments]).ok().json


def keys(root: Path, *arguments: str) -> list[str]:
    return [row["key"] for row in answer(root, *arguments)["results"]]


@pytest.mark.requirement("C2.traces")
@pytest.mark.parametrize("trace", [PYTHON + "{}", JAVA, NODE], ids=["python", "java", "node"])
def test_a_stack_trace_asks_about_its_exception_and_not_about_its_frames(root: Path, trace: str) -> None:
    message = "session store forgot every token"
    found = answer(root, trace.format(message))

    assert found["query"] == message
    assert found["results"][0]["key"] == "docs/adr/0003.md"


@pytest.mark.requirement("C2.traces")
def test_an_exception_that_says_next_to_nothing_is_looked_for_with_the_names_of_its_frames(root: Path) -> None:
    assert keys(root, f"{PYTHON}'sid'")[0] == "notes/short.md"


@pytest.mark.requirement("C2.negation")
@pytest.mark.parametrize("said", ["caching but not redis", "caching, not Redis?",
                                  "caching except for redis or minutes"])  # fmt: skip
def test_what_a_query_says_to_be_no_part_of_it_is_left_out(root: Path, said: str) -> None:
    found = answer(root, said)

    assert found["query"].casefold() == "caching"
    assert found["plan"]["excluded"][0].casefold() == "redis"
    assert "docs/adr/0003.md" not in [row["key"] for row in found["results"]]


@pytest.mark.requirement("C2.negation")
@pytest.mark.parametrize(
    "said",
    [
        "pipes without leaks",  # which is what a text says
        "caching without zeppelins",  # which no text holds
        "how does caching work without redis",
    ],
)
def test_what_texts_say_to_be_lacking_and_what_questions_ask_for_leaves_nothing_out(root: Path, said: str) -> None:
    found = answer(root, said)

    assert (found["query"], found["plan"]["excluded"]) == (said, [])


@pytest.mark.requirement("C3.paths")
@pytest.mark.parametrize(
    "path",
    ["/home/ada/project/docs/adr/0003.md", "/home/ada/project/docs/adr/0003.md:42", "see `./docs/adr/0003.md:4:2`.",
     r"C:\Users\ada\project\docs\adr\0003.md", "file:///home/ada/project/docs/adr/0003.md#L42", "adr/0003.md",
     "https://example.org/ada/project/blob/main/docs/adr/0003.md#L4-L9"],
)  # fmt: skip
def test_a_path_finds_the_document_that_lies_there(root: Path, path: str) -> None:
    assert keys(root, path, "--limit", "1") == ["docs/adr/0003.md"]


@pytest.mark.requirement("C3.versions")
def test_a_version_inside_a_url_is_found(root: Path) -> None:
    assert keys(root, "v1.29")[0] == "notes/url.md"


@pytest.mark.requirement("C11.acronyms")
def test_an_acronym_and_its_long_form_find_the_documents_of_both(root: Path) -> None:
    both = {"docs/adr/0004.md", "notes/short.md", "notes/long.md"}

    for query in ("PDB", "pdb", "pod disruption budget", "PDB limits"):
        assert set(keys(root, query, "--limit", "3")) == both


@pytest.mark.requirement("C11.acronyms")
def test_what_an_acronym_stands_for_is_learned_within_the_folder_that_is_searched(root: Path) -> None:
    assert any("acronyms: " in reason for reason in answer(root, "PDB")["plan"]["reasons"])
    assert not any("acronyms: " in reason for reason in answer(root, "PDB", "--folder", "notes")["plan"]["reasons"])


@pytest.mark.requirement("C2.slips")
def test_a_slip_with_the_stem_of_another_word_is_found_as_the_word_that_was_meant(root: Path) -> None:
    assert keys(root, "looing")[0] == "notes/long.md"
    assert keys(root, "loo")[0] == "notes/url.md"
    assert answer(root, "database")["notes"]["warnings"] == []  # another form of a word that is there


@pytest.mark.requirement("C2.slips")
@pytest.mark.parametrize("typed", ["databse", "tothpoaste", "databasse"])
def test_what_an_answer_names_in_place_of_a_slip_stands_in_a_document(root: Path, typed: str) -> None:
    (warning,) = answer(root, typed)["notes"]["warnings"][:1]

    named = warning.rpartition("instead: ")[2].split("'")[1]
    assert any(named in f"{text} {key}".lower() for key, text in NOTES.items())
