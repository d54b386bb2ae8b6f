"""A project's memories as files of every kind, and the questions that make every component of the product matter.

Everything is dated relative to a moment, so that ages are the same whenever the tests run.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from storing.by_hand import focus
from storing.indexes import read_model

from speckit_memory.config.workspace.settings import settings
from speckit_memory.engine import Memory
from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.components import registry
from speckit_memory.engine.recording.recorder import Recorder
from speckit_memory.engine.runtime.models import QueryModels
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.runtime.text_models import TextModels
from speckit_memory.engine.search.searcher import Searcher
from speckit_memory.engine.serving.serving import ConfigurationState
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.memory.graph.ranking import of_edges
from speckit_memory.memory.indexing import encoder_vectors
from speckit_memory.memory.models.crossencoders import GuardedCrossEncoder
from speckit_memory.memory.store.file.connection import Database
from speckit_memory.memory.store.read_model.current import ReadModel
from speckit_memory.memory.store.reading.reader import body
from speckit_memory.memory.store.tables.graph import ranks
from speckit_memory.memory.store.tables.sessions import sent_texts
from speckit_memory.memory.store.writing.writer import set_attribute
from speckit_memory.pipeline.configuration.builder import build
from speckit_memory.pipeline.ports import Column
from speckit_memory.pipeline.running.runner import Runner

DAY = 86_400.0
SESSION = "conversation"
LEARNED = "zusammenfassung"
"""A phrase that no text holds and use has taught."""


@dataclass(frozen=True)
class Note:
    """A Markdown file. `head` is the rest of its front matter, `age` in days."""

    title: str
    body: str
    age: float = 20.0
    tier: str = "normal"
    kind: str = "general"
    triggers: Sequence[str] = ()
    links: Sequence[str] = ()

    def text(self, now: float) -> str:
        made = datetime.fromtimestamp(now - self.age * DAY, UTC).isoformat()
        head = [f"title: {self.title}", f"importance_tier: {self.tier}", f"context_type: {self.kind}", f"date: {made}"]
        head += [f"trigger_phrases: [{', '.join(self.triggers)}]"] * bool(self.triggers)
        head += ["causalLinks:", *(f"  {link}" for link in self.links)] if self.links else []
        return "\n".join(["---", *head, "---", f"# {self.title}", "", self.body, ""])


def _long(subject: str) -> str:
    """Several passages, two of them in named sections."""
    parts = [f"## {subject}, part {n}\n\n" + f"The {subject} keeps part {n} close to the reader. " * 30 for n in "1234"]
    parts.insert(1, f"<!-- ANCHOR:summary -->\nIn short, the {subject} is a cache.\n<!-- /ANCHOR:summary -->")
    parts.insert(3, f"<!-- ANCHOR:next-steps -->\nMeasure the {subject} again.\n<!-- /ANCHOR:next-steps -->")
    return "\n\n".join(parts)


GATEWAYS = ("orders", "refunds", "invoices", "payouts", "receipts", "disputes", "deposits", "transfers", "mandates",
            "coupons", "vouchers", "credits", "debits", "chargebacks", "balances", "statements", "tariffs")  # fmt: skip

NOTES: dict[str, Note] = {
    "rules/constitutional/house.md": Note(
        "House rules", "Never push untested work. Never store a secret in the repository.", tier="constitutional"
    ),
    # decisions, connected by every relation
    "docs/decisions/rank-fusion.md": Note(
        "Fuse channels by rank",
        "We decided to fuse the ranked lists of all channels by reciprocal rank, because scores of lexical and dense "
        "channels cannot be compared.",
        tier="important", kind="decision", triggers=("rank fusion", "reciprocal rank"),
        links=("derived_from: [docs/research/fusion.md]", "supports: [docs/decisions/channels.md]"),
    ),
    "docs/decisions/score-fusion.md": Note(
        "Fuse channels by score",
        "We decided to add standardised scores of the channels instead of their ranks; ranks forget distances.",
        age=10, kind="decision", triggers=("score fusion",),
        links=("supersedes: [docs/decisions/rank-fusion.md]", "contradicts: [docs/research/fusion.md]"),
    ),
    "docs/decisions/channels.md": Note(
        "Search by seven channels",
        "Every channel of the search is one source of candidates, and the lists of the channels are merged.",
        kind="decision", links=("enabled: [docs/decisions/score-fusion.md]", "caused: [docs/decisions/storage.md]"),
    ),
    "docs/decisions/storage.md": Note(
        "One SQLite file",
        "The store is one file with a write-ahead log (WAL), as REQ-006 demands. Every index lives inside it.",
        kind="decision", triggers=("wal mode",), age=35,
    ),
    "docs/decisions/vectors.md": Note(
        "Static vectors", "Vectors of passages are made without a network, from a table of static token vectors.",
        kind="decision", links=("caused_by: [docs/decisions/storage.md]",), age=28,
    ),
    # research, some of it near duplicates of one another
    "docs/research/fusion.md": Note(
        "Comparing fusion of ranks and scores", "We compared reciprocal rank fusion with the fusion of scores.",
        kind="research", tier="critical", age=40,
    ),
    "docs/research/reranking.md": Note(
        "Reranking with models", "We investigated models that read question and passage together.", kind="research",
        age=45,
    ),
    "docs/research/reranking-copy.md": Note(
        "Reranking with models", "We investigated models which read the question and a passage together.",
        kind="research", age=45,
    ),
    "docs/research/reranking-draft.md": Note(
        "Reranking with models", "Models read a question and a passage together, we investigated.", kind="research",
        age=45,
    ),
    # a spec folder with a hierarchy below it
    "specs/auth/spec.md": Note(
        "Login and sessions",
        "<!-- SPECKIT_LEVEL: 3 -->\nUsers log in with a password and a token. A session ends after an hour.",
        triggers=("login flow",), kind="decision", age=15,
    ),
    "specs/auth/plan.md": Note("Plan of the login", "First the password, then the token, then the session.", age=15),
    "specs/auth/tokens/spec.md": Note("Token rotation", "A token is rotated every hour, the old one fails.", age=14),
    "specs/auth/tokens/tasks.md": Note("Tasks of the rotation", "Rotate the token, log errors, fix the bug.", age=14),
    "specs/auth/scratch/ideas.md": Note("Ideas for the login", "Maybe the login could remember the password.", age=3),
    # what was written lately, at one sitting
    "docs/journal/monday.md": Note(
        "Monday", "Fixed the crash of the importer on empty files.", age=0.10, kind="implementation"
    ),
    "docs/journal/monday-late.md": Note(
        "Monday, later", "The importer crash came from an empty header, fixed.", age=0.11, kind="implementation"
    ),
    "docs/journal/week.md": Note("The week", "The importer reads files in batches; a crash loses one batch.", age=60),
    **{
        f"docs/journal/day-{day}.md": Note(
            f"Day {day}", f"Looked at the importer crash, attempt {day}." + " And again." * day, age=1 + day / 10
        )
        for day in range(1, 8)
    },
    # tiers and states
    "docs/old/dormant.md": Note("Import of a format", "The importer of the first format often crashed.", age=89),
    "docs/old/archived.md": Note("Import before that", "Before the importer there was a crash in a script.", age=300),
    "docs/old/deprecated.md": Note("Importer by hand", "The importer was once a person. No crash.", tier="deprecated"),
    "docs/old/temporary.md": Note("Importer lock", "The importer crash leaves a lock file.", tier="temporary", age=2),
    "docs/old/expired.md": Note("Importer note", "The importer crash of last month.", tier="temporary", age=30),
    # other scripts, identifiers
    "docs/cjk/design.md": Note("検索の設計", "全文検索は二文字の並びで日本語を索引する。設計の決定はここに書く。"),
    "docs/copies/design.md": Note("検索の設計", "全文検索は二文字の並びで日本語を索引する。設計の決定はここに書く。"),
    "docs/cjk/storage.md": Note("保存の設計", "すべての記憶は一つのファイルに保存される。"),
    "docs/code/mpab.md": Note("Aggregation", "The function `computeMPAB` aggregates passages, see REQ-042."),
    # long texts
    "docs/cache/quokka.md": Note("Quokka cache", _long("quokka cache"), age=25),
    "docs/cache/wombat.md": Note("Wombat cache", _long("wombat cache"), age=25, kind="implementation"),
    "docs/cache/short.md": Note("Caches", "A quokka cache is warm, a wombat cache is cold.", age=25),
    # many of one kind, and one that only a link leads to
    "docs/gateway/holidays.md": Note(
        "Bank holidays", "Nothing is settled until the next morning.", tier="important",
        links=("caused: [docs/gateway/orders.md]",),
    ),
    **{
        f"docs/gateway/{name}.md": Note(
            f"Gateway of {name}",
            f"The payment gateway retries {name} three times before the request fails. "
            + "The next attempt comes later than the one before it. " * (20 + place),
            age=12.0 + place,
            triggers=("gateway retries",) if place % 5 == 0 else (),
            links=(f"related_to: [docs/gateway/{GATEWAYS[place - 1]}.md]",) if place % 3 == 1 else (),
        )
        for place, name in enumerate(GATEWAYS)
    },
}  # fmt: skip


@dataclass(frozen=True)
class Asked:
    """One question, as arguments of `Memory.search`."""

    text: str
    arguments: dict[str, Any]


def asked(text: str, **arguments: Any) -> Asked:
    return Asked(text, arguments)


QUESTIONS = (
    asked("rank fusion"),
    asked("why did we decide to fuse the channels by score instead of by rank"),
    asked("how does the payment gateway retry failing requests of orders and refunds before it gives up"),
    asked("payment gateway retries"),
    asked("gateway retries"),
    asked("gateway payment", limit=40),  # more rows than the budget of a simple question allows
    asked("looked at the crash"),  # more HOT rows than the state allows
    asked("where do retries of the gateway come from, and why does every payment wait for the next attempt"),
    asked("fix the importer crash on empty files"),
    asked("importer crash"),
    asked("actually I want rank fusion, please use reciprocal rank"),
    asked("token login session password"),
    asked("spec of the login"),
    asked("reranking with models"),
    asked("quokka cache"),
    asked("quokka cache part 3 summary"),
    asked("検索の設計"),
    asked("computeMPAB"),
    asked("which payment gateway retries the requests that fail, and what has computeMPAB to do with them"),
    asked("zebra"),
    asked("write-ahead log"),
    asked("the latest note about the quokka cache"),
    asked("importr crash"),
    asked("multiplied"),  # found by relaxing the similarity
    asked("harpsichord"),  # the same, but below the floor of relevance
    asked("ungulates of the savannah"),
    asked("where is everything that the store keeps, and which file holds the vectors of all passages and the index"),
    asked("fix the search error in the pipeline config", mode="deep"),
    asked("how is the quokka cache measured", anchors=["summary", "next-steps"]),
    asked("payment gateway retries", session=SESSION),
    asked("channels and ranks of the merged lists that we fuse", session=SESSION, token_usage=0.9),
    asked("importer crash", token_usage=0.7),
    asked("why did we decide to fuse the channels by score instead of by rank", mode="quick"),
)  # fmt: skip
"""Texts with the arguments that some components wait for; most have none.

Tests name some by their places, so new ones come last."""


class WordsInCommon:
    """Stands for the cross-encoder that a user configures: log-odds that grow with the words in common."""

    def load(self) -> None:
        pass

    def logits(self, query: str, texts: Sequence[str]) -> Column:
        wanted = set(query.lower().split())
        return np.array([len(wanted & set(text.lower().split())) / 2 - 1 for text in texts], np.float64)


class Store(OpenStore):
    """The open store of the product, with a cross-encoder, and the bundled model as the encoder of the second look."""

    @cached_property
    def read_model(self) -> ReadModel:
        relevance = GuardedCrossEncoder(WordsInCommon())
        models = QueryModels(
            self.database, self.models.now, self.analyser, relevance, self.vector_index, self.models.wanted()
        )
        return read_model(self.database, models)


class Project(Memory):
    """The product over the files of a folder, with a cross-encoder. Keeps every answer that it gave."""

    answers: list[SearchResult]

    def search(self, text: str, **arguments: Any) -> SearchResult:
        result = super().search(text, **arguments)
        self.answers.append(result)
        return result


def project(root: Path, environ: Mapping[str, str]) -> Project:
    """The project at `root` behind the catalogue preset. Failures of steps are raised."""
    config = settings(root / "memory.db", "catalogue", root, environ)
    runner = Runner(build(config.pipeline, registry(), config.environ), strict=True)
    models = TextModels(config.environ)

    def store(create: bool) -> OpenStore:
        return Store(
            Database.open(config.db, create=create), config.root, models, Recorder(config.db, config.recording)
        )

    opened = Project(
        StoreSession(ReopeningStore(store, create=True), ConfigurationState(config, Searcher(runner, config)))
    )
    opened.answers = []
    return opened


def write(root: Path, now: float, keys: Sequence[str] = tuple(NOTES)) -> None:
    """The files, in this order."""
    for key in keys:
        file = root / key
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(NOTES[key].text(now), encoding="utf-8")
        changed = now - NOTES[key].age * DAY
        os.utime(file, (changed, changed))


def live(memory: Memory, now: float) -> None:
    """What the life of the memories leaves behind, which later features of the product write."""
    encoder_vectors.make_all(memory.models.embedder, memory.session.database)
    ids = {key: memory.get(key).id for key in NOTES}
    gateways = [ids[f"docs/gateway/{name}.md"] for name in GATEWAYS]
    with memory.session.database.write() as txn:
        key = "(SELECT content_hash || '/' FROM memories WHERE id = ?)"
        txn.connection.execute(f"DELETE FROM embedding_cache WHERE content_hash = {key}", (gateways[2],))
        set_attribute(txn, "confidence", {gateways[2]: 0.9, gateways[5]: 0.1, ids["specs/auth/spec.md"]: 0.8})
        set_attribute(txn, "validation_count", {gateways[2]: 6, gateways[5]: 3, ids["specs/auth/spec.md"]: 2})
        set_attribute(txn, "access_count", {gateways[3]: 8, ids["docs/journal/week.md"]: 4})
        set_attribute(txn, "last_accessed", dict.fromkeys((gateways[3], gateways[12], gateways[13]), now - DAY))
        set_attribute(txn, "last_accessed", {ids["docs/journal/week.md"]: now - 5 * DAY})
        # gateways in every state: COLD, DORMANT, ARCHIVED; those that were accessed are HOT, the others WARM
        of_state = {0.05: gateways[6:9], 0.005: gateways[9:11], 0.001: gateways[11:12]}
        set_attribute(txn, "stability", {memory: days for days, some in of_state.items() for memory in some})
        set_attribute(txn, "stability", {ids["docs/old/dormant.md"]: 0.05, ids["docs/journal/week.md"]: 30.0})
        txn.connection.execute(
            "INSERT INTO triggers VALUES (?1, 'learned', ?2, ?2, 0, 0.7, ?3, NULL)",
            (ids["docs/code/mpab.md"], LEARNED, now - DAY),
        )
        focus(txn, SESSION, gateways[4], 1.0, now - 60)
        focus(txn, SESSION, ids["docs/decisions/channels.md"], 0.6, now - 60)
        sent_texts.mark_sent(txn, SESSION, [(gateways[0], body(txn.connection, gateways[0]).strip("\n"))], now - 60)
        # as in a store with an edge per memory: these notes have fewer
        ranks.replace(txn, of_edges(txn.connection), ranks.state(txn.connection).version)


@contextmanager
def living(root: Path, now: float) -> Iterator[Project]:
    """The project at `root`: its files written and indexed, and what a life leaves behind in it."""
    write(root, now)
    with project(root, {}) as opened:
        opened.index([root])
        opened.session.opened.usage.write()  # later it would be among what tests change
        live(opened, now)
        yield opened
