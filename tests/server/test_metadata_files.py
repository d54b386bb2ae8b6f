"""What a file next to a README says of it is found through the console script, and follows that file."""

from __future__ import annotations

from pathlib import Path

import pytest
from files import write_file

from tests.server.doors import Ran, call

KEP = """\
title: Sidecar quokkas
authors:
  - "@ada-quill"
  - "@bo-lind"
owning-sig: sig-node
status: implementable
creation-date: 2024-03-05
see-also:
  - "/keps/11-lids"
replaces: ["keps/12-pots"]
"""
README = "# KEP-10: {0}\n\nAll about {0}.\n"

pytestmark = pytest.mark.requirement("I1.outside")


@pytest.fixture
def keps(tmp_path: Path) -> Path:
    for folder, about in {"10-crates": "crates", "11-lids": "lids", "12-pots": "pots"}.items():
        write_file(tmp_path / "keps" / folder / "README.md", README.format(about))
    write_file(tmp_path / "keps" / "10-crates" / "kep.yaml", KEP)
    return tmp_path


def index(root: Path) -> Ran:
    return call(root, ["index", "keps", "--json"])


def first(root: Path, query: str) -> str:
    """The key of the best result, "" where it holds none of the words."""
    found = call(root, ["search", query, "--json", "--limit", "1", "--explain"]).json["results"]
    return found[0]["key"] if found and "bm25" in found[0]["channels"] else ""


CRATES = "keps/10-crates/README.md"
SAID = ("proposals by ada-quill", "sig-node", "status implementable", "created in March 2024", "sidecar quokkas")


def test_a_document_is_found_by_what_the_file_next_to_it_says(keps: Path) -> None:
    assert index(keps).status == 0
    assert {query: first(keps, query) for query in SAID} == dict.fromkeys(SAID, CRATES)
    links = call(keps, ["lineage", CRATES, "--json"]).out
    assert all(target in links for target in ("keps/11-lids/README.md", "keps/12-pots/README.md"))
    assert "Sidecar" not in call(keps, ["show", CRATES]).out


def test_the_next_run_sees_that_it_changed_or_went_or_came(keps: Path) -> None:
    index(keps)
    file = keps / "keps" / "10-crates" / "kep.yaml"
    assert index(keps).json["updated"] == []
    file.write_text(KEP.replace("ada-quill", "cy-moss"))
    assert index(keps).json["updated"] == [CRATES]
    assert (first(keps, "cy-moss"), first(keps, "ada-quill")) == (CRATES, "")
    file.unlink()
    assert index(keps).json["updated"] == [CRATES]
    assert first(keps, "cy-moss") == ""
    write_file(keps / "keps" / "11-lids" / "metadata.yml", "owner: Dee Fox\n")
    assert index(keps).json["updated"] == ["keps/11-lids/README.md"]
    assert first(keps, "Dee Fox") == "keps/11-lids/README.md"
    assert index(keps).json["updated"] == []


@pytest.mark.parametrize(
    ("said", "found"),
    [
        ("status: [open\nauthors: Ada Quill\n", "Ada Quill"),
        ("owner: Ada: Quill\nstatus: rejected\n", "rejected"),
        ("- a list\n", ""),
        ("\x00", ""),
        ("a: " + "x" * 100_001, ""),
    ],
    ids=["open list", "colon", "no mapping", "binary", "too long"],
)
def test_what_is_not_understood_is_told_and_the_rest_counts(keps: Path, said: str, found: str) -> None:
    write_file(keps / "keps" / "10-crates" / "kep.yaml", said)
    ran = index(keps)
    assert (ran.status, len(ran.json["created"])) == (0, 3), ran.out
    told = [problem for problem in ran.json["problems"] if "kep.yaml" in str(problem)]
    assert {problem["code"] for problem in told} == {"E099"}
    assert first(keps, "crates") == CRATES
    assert first(keps, found) == CRATES if found else True
    assert call(keps, ["save", CRATES]).status == 0


def test_a_file_that_may_describe_two_documents_describes_none(keps: Path) -> None:
    write_file(keps / "keps" / "10-crates" / "index.md", "# Contents\n\nA table of what is here.\n")
    index(keps)
    assert first(keps, "ada-quill") == ""


def test_a_secret_in_it_is_left_out_and_told(keps: Path) -> None:
    token = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    write_file(keps / "keps" / "10-crates" / "kep.yaml", f"status: provisional\ntoken: {token}\n")
    assert "E097" in index(keps).out
    assert (first(keps, "provisional"), first(keps, token)) == (CRATES, "")
