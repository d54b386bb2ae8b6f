"""German words in all their forms and compounds, and short Chinese terms, at the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.server.doors import call

LANGUAGES = Path(__file__).parents[1] / "evaluation" / "languages"
ENGLISH = {
    "refresh": "# Token refresh\n\nThe token refresh of the gateway runs hourly and is logged by the server.\n",
    "lower": "# Lower limits\n\nLower limits of the cache are for servers that die in the middle of a system test.\n",
}
QUARTERS = "# Quartale\n\nDas Deployment wird nicht vor dem Quartalsende auf dem Low-Code-Server ausgerollt.\n"


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("languages")
    texts = {f"english/{name}": text for name, text in ENGLISH.items()} | {"german/quarters": QUARTERS}
    for language in ("german", "chinese"):
        for line in (LANGUAGES / language / "corpus.jsonl").read_text(encoding="utf-8").splitlines():
            document = json.loads(line)
            texts[f"{language}/{document['_id']}"] = f"# {document['title']}\n\n{document['text']}\n"
    for key, text in texts.items():
        (root / key).with_suffix(".md").parent.mkdir(exist_ok=True)
        (root / key).with_suffix(".md").write_text(text, encoding="utf-8")
    call(root, ["index", "."]).ok()
    return root


def keys(root: Path, query: str, pipeline: str = "bm25") -> list[str]:
    found = call(root, ["search", "--json", "--pipeline", pipeline, "--", query]).ok().json["results"]
    return [row["key"].removesuffix(".md") for row in found]


@pytest.mark.requirement("C3.german")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("Häuser", "haeuser"),
        ("haeuser", "haeuser"),
        ("Passwörter", "passwort"),
        ("Uebersetzung fehlt", "uebersetzung"),
        ("Mahnungen", "versand"),
        ("Wie oft werden Signaturen erneuert?", "schluessel"),
        ("Kopie", "sicherung"),
        ("Fristen Kündigung", "kuendigung"),
        ("Platte", "tausch"),
        ("Datenbankumstellung", "datenbank"),
        ("Bildgröße", "bild"),
        ("Ordnerstruktur", "ordner"),
        ("Wann darf man Verträge eines Rechenzentrums kündigen?", "kuendigung"),
    ],
)
def test_german_words_are_found_in_other_forms_and_in_compounds(root: Path, query: str, first: str) -> None:
    assert keys(root, query)[:1] == [f"german/{first}"]


@pytest.mark.requirement("C3.german")
def test_the_language_of_a_question_does_not_hide_documents_in_another(root: Path) -> None:
    assert keys(root, "Wie funktioniert das token refresh und wann?")[0] == "english/refresh"
    assert keys(root, "when is the deployment before Quartalsende?")[0] == "german/quarters"
    assert keys(root, "how are lower limits of the system tested on the servers?")[0] == "english/lower"


@pytest.mark.requirement("C3.german")
def test_words_that_german_documents_hold_in_another_form_are_not_taken_for_misspelt(root: Path) -> None:
    found = call(root, ["search", "--json", "--", "Mahnungsbrief Bildern"]).ok().json

    assert found["plan"]["respelt"] == {}
    assert {row["key"] for row in found["results"][:2]} == {"german/versand.md", "german/bild.md"}


@pytest.mark.requirement("C3.chinese")
@pytest.mark.parametrize(
    ("query", "first"),
    [
        ("锁", "suo"),
        ("死锁是什么", "sisuo"),
        ("什么是死锁?", "sisuo"),
        ("死锁怎么办", "sisuo"),
        ("为什么会过期", "zhengshu"),
        ("字", "fenci"),
        ("树是什么", "shu"),
        ("节点是什麼", "shu"),
    ],
)
def test_a_short_chinese_term_is_found_whatever_asks_for_it(root: Path, query: str, first: str) -> None:
    assert keys(root, query)[:1] == [f"chinese/{first}"]


@pytest.mark.parametrize(("language", "least"), [("german", 0.93), ("chinese", 0.97)])
def test_words_alone_answer_questions_in_a_language(root: Path, language: str, least: float) -> None:
    dataset = LANGUAGES / language
    report = call(root, ["eval", "run", "--dataset", dataset, "--pipeline", "bm25", "--json"]).ok().json

    assert least < report["pipelines"][0]["metrics"]["nDCG@10"]
