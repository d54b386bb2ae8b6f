"""`eval tokens`: what reaches an agent within a number of tokens, through the command line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.engine import Memory
from speckit_memory.evaluation.datasets.dataset import DatasetQuery
from speckit_memory.evaluation.tokens.recall_per_token import SentAnswer, figures_of
from speckit_memory.server.operations.evaluation.eval_tokens import ToolAnswers
from speckit_memory.server.replies.answer_form import SHIPPED_FORM, AnswerForm
from tests.server.doors import call, with_client
from tests.server.test_mcp_stdio import TOKENISER

WORDS = [
    "quokka",
    "wallaby",
    "numbat",
    "potoroo",
    "bilby",
    "dunnart",
    "quoll",
    "bettong",
    "koala",
    "kowari",
    "phascogale",
    "planigale",
]


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """36 subjects with two relevant memories each: one short, one long whose subject stands at its end."""
    folder = tmp_path_factory.mktemp("tokens") / "sets"
    (folder / "qrels").mkdir(parents=True)
    documents, queries, judged = [], [], ["query-id\tcorpus-id\tscore"]
    for word in (f"{word}{ending}" for word in WORDS for ending in ("", "dale", "ford")):
        filler = "Entries are kept close to whoever reads them, and written down at night. " * 12
        documents += [
            {"_id": f"{word}/short.md", "title": f"The {word} cache", "text": f"The {word} cache has a reader."},
            {"_id": f"{word}/long.md", "title": "A log", "text": f"{filler}The {word} index is slow on Mondays."},
        ]
        queries.append({"_id": word, "text": f"why is the {word} cache with its index slow?"})
        judged += [f"{word}\t{word}/short.md\t2", f"{word}\t{word}/long.md\t1"]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels" / "test.tsv").write_text("\n".join(judged) + "\n")
    return folder


@pytest.fixture(scope="module")
def measured(dataset: Path) -> Any:
    forms = ["--form", str(SHIPPED_FORM), "--form", "excerpt=60,rows=1,why=none"]
    budgets = ["--budget", "300", "--budget", "1000"]
    ran = call(dataset.parent, ["eval", "tokens", "--dataset", dataset, *budgets, *forms, "--json"])
    assert ran.status == 0, ran.err
    return ran.json


def test_every_way_of_answering_is_measured_at_every_budget_and_compared_with_the_first(measured: Any) -> None:
    names = [one["name"] for one in measured["answers"]]
    assert names == [f"default {SHIPPED_FORM}", "default excerpt=60,rows=1,why=none,last=cut", "passages by FTS5",
                     "passages by vectors"]  # fmt: skip
    assert [one["peer"] for one in measured["answers"]] == [False, False, True, True]
    assert (measured["queries"], measured["documents"]) == (36, 72)
    for one in measured["answers"]:
        assert list(one["budgets"]) == ["300", "1000"]
        for budget, figures in one["budgets"].items():
            assert 0 < figures["tokens"] <= int(budget)
            assert 0 < figures["recall"] <= 1
    compared = [(one["a"], one["b"], one["metric"]) for one in measured["comparisons"]]
    assert compared == [
        (names[0], name, metric)
        for name in names[1:]
        for metric in ("recall@300", "words@300", "recall@1000", "words@1000")
    ]


def test_more_tokens_bring_more_and_a_form_of_one_row_brings_half(measured: Any) -> None:
    shipped, narrow = (one["budgets"] for one in measured["answers"][:2])
    assert shipped["1000"]["recall"] >= shipped["300"]["recall"]
    assert shipped["1000"]["recall"] == 1
    assert shipped["1000"]["tokens"] > shipped["300"]["tokens"]
    assert narrow["1000"]["recall"] == 0.5  # one of two relevant memories
    assert narrow["1000"]["tokens"] < shipped["300"]["tokens"]
    [worse] = [one for one in measured["comparisons"] if one["metric"] == "recall@1000" and "rows=1" in one["b"]]
    assert worse["verdict"] == "worse"


def test_what_is_measured_is_what_the_tool_sends(indexed: Path) -> None:
    asked = {"query": "rank fusion in the write-ahead log", "tokenBudget": 300}
    result = with_client(indexed, lambda client: client.call_tool("memory_search", asked))
    with Memory.open(indexed / "memory.db", root=indexed, environ={}, create=False, shadows=False) as memory:
        [answerer] = ToolAnswers()(memory)
        sent = answerer.answer(DatasetQuery("q", asked["query"]), 300)  # type: ignore[arg-type]
    text = result.content[0].text  # type: ignore[union-attr]  # tools answer with text
    assert sent.tokens == TOKENISER.count_tokens([text])[0] == result.structured_content["meta"]["token_count"]
    rows = result.structured_content["data"]["results"]
    assert sent.texts == tuple((row["key"], row["memory_text"]) for row in rows)
    assert len(rows) > 0


def test_the_figures_of_one_answer() -> None:
    def terms(text: str) -> frozenset[str]:
        return frozenset(text.split())

    held = {"a": terms("one two three"), "b": terms("one"), "c": terms("nothing of it")}
    sent = SentAnswer((("x", "one two"), ("a", "two")), 50)
    figures = figures_of(
        sent, DatasetQuery("q", "one two"), {"a": 2, "b": 1, "c": 1, "x": 0}, held, terms,
        lambda texts: [10 * len(text.split()) for text in texts],
    )  # fmt: skip
    assert figures["recall"] == pytest.approx(1 / 3)
    assert figures["words"] == pytest.approx((1 / 2 + 0 + 0) / 3)
    assert figures["gain"] == pytest.approx(2 / 1.5849625 / (2 + 1 / 1.5849625 + 1 / 2))
    assert figures["gain per 1,000 tokens"] == pytest.approx(20 * figures["gain"])
    assert (figures["useful"], figures["nothing"], figures["memories"], figures["tokens"]) == (10 / 50, 0, 2, 50)
    nothing = figures_of(
        SentAnswer((), 7), DatasetQuery("q", "one"), {"a": 1}, held, terms, lambda texts: [0] * len(texts)
    )
    assert (nothing["recall"], nothing["words"], nothing["gain"], nothing["nothing"]) == (0, 0, 0, 1)


@pytest.mark.parametrize(
    ("form", "said"),
    [
        ("exerpt=3", "E030 'exerpt=3' is not part of a form; did you mean 'excerpt'?"),
        ("excerpt=3", "E032 'excerpt' of a form is '3'; accepted: 20 to 100,000"),
        ("rows=x", "E032 'rows' of a form is 'x'; accepted: 0 to 100"),
        ("last=dorp", "E030 'last' of a form is 'dorp'; did you mean 'drop'?"),
        ("why=ful", "E030 'why' of a form is 'ful'; did you mean 'full'?"),
        ("", "E030 '' is not part of a form"),
    ],
)
def test_what_is_no_form_is_refused_with_what_is(form: str, said: str) -> None:
    from speckit_memory.errors import SpeckitError

    with pytest.raises(SpeckitError) as raised:
        AnswerForm.parsed(form)
    assert str(raised.value).startswith(said)
    assert AnswerForm.parsed("excerpt=20") == AnswerForm(excerpt=20)
