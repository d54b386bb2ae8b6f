from __future__ import annotations

import pytest

from speckit_memory.evaluation.datasets.documents import DatasetDocument
from speckit_memory.evaluation.made_queries.collection import Collection
from tests.evaluation.made_queries.made import collection, made


@pytest.mark.parametrize(
    "identifier",
    ["user_id", "__init__", "computeMPAB", "ConfigMap", "REQ-006", "v1.2.3", "3.11.4", "--dry-run",
     "auth/token_store.py", "/etc/hosts.conf", "token_store.py", "os.path.join", "sha256"],
)  # fmt: skip
def test_identifiers_are_known_by_their_shape(identifier: str) -> None:
    of = collection(f"We changed {identifier}, and it works.", "Nothing.")

    assert made("identifiers", of) == {identifier: (0,)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use `--force` here", ["--force"]),
        ("call time.sleep() here", ["time.sleep"]),
        ("call `time.sleep` here", ["time.sleep"]),
        ("it works --that is all", []),
        ("it was studied.dash and so on", []),
        ("either and/or both, a state-of-the-art thing of 0.05", []),
        ("see https://example.org/some_page/index.html", []),
        (r"the bytes \xb0 and so on", []),
    ],
)
def test_what_looks_like_an_identifier_in_prose_is_none(text: str, expected: list[str]) -> None:
    assert list(made("identifiers", collection(text))) == expected


def test_documents_with_the_identifier_in_any_case_or_place_are_relevant() -> None:
    of = collection("A ConfigMap here.", "apply configmap/settings", "Nothing.")

    assert made("identifiers", of) == {"ConfigMap": (0, 1)}


@pytest.mark.parametrize(
    ("identifier", "longer"),
    [("ConfigMap", "ConfigMaps"), ("1.2.3", "1.2.3.4"), ("user_id", "user_ids"), ("REQ-006", "REQ-0061"),
     ("--dry-run", "--dry-run-all"), ("v1.2.3", "11.2.3")],
)  # fmt: skip
def test_an_identifier_that_is_part_of_another_elsewhere_is_left_out(identifier: str, longer: str) -> None:
    of = collection(f"The {identifier} here.", f"The {longer} there.")

    assert identifier not in made("identifiers", of)


def test_a_version_is_the_same_with_and_without_its_v() -> None:
    assert made("identifiers", collection("Since v1.2.3 only.", "In 1.2.3 too."))["v1.2.3"] == (0, 1)


def test_an_identifier_of_six_documents_is_left_out() -> None:
    assert made("identifiers", collection(*["the user_id"] * 6, *["the user_no"] * 5)) == {"user_no": (6, 7, 8, 9, 10)}


def test_a_version_inside_a_url_is_asked_for_by_itself() -> None:
    of = collection(
        "See https://kettles.example/v1.29/notes.", "Since v1.29 it whistles.", "https://kettles.example/v3"
    )

    assert made("versions", of) == {"v1.29": (0, 1)}


def test_a_version_that_is_part_of_a_longer_one_elsewhere_is_left_out() -> None:
    assert made("versions", collection("https://kettles.example/v1.29/notes", "Since v1.29.3.")) == {}


def test_absolute_paths_lead_to_the_documents_that_are_there() -> None:
    documents = (DatasetDocument(key, "", "text") for key in ("docs/kettle.md", "docs/pot.md", "7", "d1:3"))
    queries = made("paths", Collection(documents))

    assert sorted(queries.values()) == [(0,), (1,)]
    assert all(query.startswith("/home/ada/project/docs/") for query in queries)
