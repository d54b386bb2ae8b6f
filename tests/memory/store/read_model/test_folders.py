from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.read_model.facts.folders import LONGEST_SENTENCE, MOST_KEYWORDS, first_sentence
from speckit_memory.memory.store.records import Document, Tier
from speckit_memory.memory.store.tables.memories import promotions
from speckit_memory.memory.store.writing import writer
from speckit_memory.pipeline import ports
from speckit_memory.pipeline.ports import FolderDescription

Make = Callable[..., Document]
NOW = 1000.0


def put(database: Database, *documents: Document) -> list[int]:
    with database.write() as txn:
        return [writer.put_document(txn, document, None, NOW, None).id for document in documents]


def sentences(model: ReadModel) -> dict[str, str]:
    return {found.folder: found.sentence for found in model.current().folders.described()}


@pytest.mark.requirement("C13.described")
def test_a_folder_is_described_by_its_introduction_and_the_words_of_titles_and_triggers(
    database: Database, model: ReadModel, document: Make
) -> None:
    put(
        database,
        document("specs/auth/plan.md", folder="specs/auth", title_tokens=("plan", "token"), tier=Tier.CRITICAL),
        document(
            "specs/auth/spec.md",
            folder="specs/auth",
            body="# Sign in with tokens\n\nText.",
            title_tokens=("sign", "token"),
            trigger_tokens=("oauth",),
            path_tokens=("path",),
        ),
        document("b.md", folder="", title="Of the root", title_tokens=("root",)),
    )
    assert model.current().folders.described() == (
        FolderDescription("", "Of the root", frozenset({"root"})),
        FolderDescription("specs/auth", "Sign in with tokens", frozenset({"plan", "token", "sign", "oauth"})),
    )


@pytest.mark.parametrize(
    ("names", "sentence"),
    [
        (("a.md", "index.md", "README.md", "spec.md"), "text of spec.md"),
        (("a.md", "index.md", "README.md"), "text of README.md"),
        (("a.md", "Index.md"), "text of Index.md"),
        (("b.md", "a.md"), "Title of a.md"),
    ],
)
def test_the_best_introduction_speaks_for_its_folder_and_else_the_first_title(
    names: tuple[str, ...], sentence: str, database: Database, model: ReadModel, document: Make
) -> None:
    put(database, *(document(name, body=f"text of {name}") for name in names))
    assert sentences(model) == {"": sentence}


def test_without_an_introduction_the_most_important_title_speaks(
    database: Database, model: ReadModel, document: Make
) -> None:
    put(
        database,
        document("a.md", title="Old", tier=Tier.DEPRECATED),
        document("spec.md", title="Says nothing", body="```\n# code\n```\n"),
        document("z.md", title="Rules", tier=Tier.IMPORTANT),
    )
    assert sentences(model) == {"": "Rules"}


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("intro\n\n# Fusion of *scores* [here](x.md) #\n", "Fusion of scores here"),
        ("Fusion\n======\n\ntext", "Fusion"),
        ("```sh\n# not a heading\n```\n\n# Heading", "Heading"),
        ("~~~\n# never closed", ""),
        ("<!-- ANCHOR:a\n# no\n-->\n# Yes", "Yes"),
        ("#\n\nSome text", "Some text"),
        ("Intro\n\n## 2. PROBLEM & PURPOSE\n\n### Problem Statement\n\n- They *forget* `keys`.\n", "They forget keys."),
        ("Intro\n\n## Problem statement\n\nIt is slow.\n", "It is slow."),
        ("Intro\n\n## Problem and purpose\n", "Intro"),
        ("## Only a section\n\n| a | b |\n---\n\n> 1. Quoted words\nmore", "1. Quoted words"),
        ("keep snake_case_names", "keep snake_case_names"),
        ("検索の設計", "検索の設計"),
        ("", ""),
    ],
)
def test_the_first_sentence_is_a_heading_a_problem_or_the_first_content(text: str, sentence: str) -> None:
    assert first_sentence(text) == sentence


def test_long_sentences_are_cut_at_a_blank_and_long_words_within() -> None:
    assert first_sentence("word " * 40) == "word " * 28 + "word…"
    assert first_sentence("検" * 200) == "検" * 149 + "…"


@given(st.text(alphabet="# -=`~<!>a\n|*[]().&problem ", max_size=400))
def test_any_text_has_a_short_sentence_of_one_line(text: str) -> None:
    found = first_sentence(text)
    assert len(found) <= LONGEST_SENTENCE
    assert found == " ".join(found.split())


def test_the_words_that_most_members_have_are_kept(database: Database, model: ReadModel, document: Make) -> None:
    rare = [f"rare{number:03}" for number in range(MOST_KEYWORDS)]
    put(
        database,
        document("a", title_tokens=("common", *rare), trigger_tokens=("common",)),
        document("b", title_tokens=("common",)),
    )
    [found] = model.current().folders.described()
    assert found.keywords == {"common", *rare[:-1]}


@pytest.mark.requirement("C13.described")
def test_only_folders_whose_members_changed_are_described_again(
    database: Database, model: ReadModel, document: Make
) -> None:
    members = [f"{folder}/{number}" for folder in "abc" for number in (1, 2)]
    put(database, *(document(key, folder=key[0]) for key in members))
    model.load()
    old = model.current().folders
    before = {found.folder: found for found in old.described()}
    put(database, document("b/1", folder="d", title="Moved"), document("c/3", folder="c"))
    with database.write() as txn:
        writer.set_attribute(txn, "access_count", {1: 3})
    after = {found.folder: found for found in model.current().folders.described()}
    assert sorted(after) == ["a", "b", "c", "d"]
    assert [folder for folder in after if after[folder] is before.get(folder)] == ["a"]
    assert (before["b"].sentence, after["b"].sentence) == ("Title of b/1", "Title of b/2")
    assert after["d"].sentence == "Moved"
    assert old.described() == tuple(before.values())


def test_descriptions_follow_changes_that_nobody_asked_about_in_between(
    database: Database, model: ReadModel, document: Make
) -> None:
    [a, _] = put(database, document("a/1", folder="a"), document("b/1", folder="b"))
    model.current().folders.described()
    put(database, document("b/1", folder="b", title="Once"))
    model.current()
    put(database, document("b/0", folder="b", title="Twice"))
    with database.write() as txn:
        writer.delete_memories(txn, [a])
    assert sentences(model) == {"b": "Twice"}


@pytest.mark.requirement("C13", "F17")
def test_a_promoted_memory_speaks_for_its_folder(database: Database, model: ReadModel, document: Make) -> None:
    [_, promoted] = put(database, document("a/1", folder="a"), document("a/2", folder="a"))
    assert sentences(model) == {"a": "Title of a/1"}
    with database.write() as txn:
        promotions.promote(txn, promoted, NOW)
    assert sentences(model) == {"a": "Title of a/2"}


def test_an_unchanged_state_describes_its_folders_once(database: Database, model: ReadModel, document: Make) -> None:
    put(database, document("a"))
    folders: ports.Folders = model.current().folders
    assert folders.described() is folders.described()


def test_a_memory_that_went_before_its_folder_was_described_leaves_its_title(
    database: Database, model: ReadModel, document: Make
) -> None:
    [only] = put(database, document("spec.md", body="# Heading", title="Spec", title_tokens=("spec",)))
    late = model.current()
    with database.write() as txn:
        writer.delete_memories(txn, [only])
    assert late.folders.described() == (FolderDescription("", "Spec", frozenset()),)
    assert model.current().folders.described() == ()
