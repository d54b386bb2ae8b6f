"""A store of plain Python data that implements the ports by definition, for tests of single components.

Words are runs of letters and digits. Every distinct word of the store has an axis of its own in the vector space, so
that cosines can be worked out by hand; a query of unknown words has the zero vector.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from speckit_memory.pipeline.ports import (
    FIELDS,
    Column,
    Filter,
    FolderDescription,
    Ids,
    Neighbours,
    Passage,
    Postings,
    Unavailable,
    Vectors,
)

DAY = 86_400.0


def words(text: str) -> tuple[str, ...]:
    return tuple(re.findall(r"[^\W_]+", text.casefold()))


@dataclass
class Memory:
    """One memory. `chunks` are its texts; a single chunk shares the memory's id, several are numbered id·100 + i."""

    id: int
    title: str = ""
    chunks: tuple[str, ...] = ("",)
    triggers: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    path: str = ""
    folder: str = ""
    tier: str = "normal"
    context_type: str = "general"
    document_type: str = "memory"
    memory_type: str = "declarative"
    numbers: dict[str, float] = field(default_factory=dict)
    labels: dict[str, str] = field(default_factory=dict)

    @property
    def chunk_ids(self) -> list[int]:
        if len(self.chunks) == 1:
            return [self.id]
        return [self.id * 100 + i for i in range(1, len(self.chunks) + 1)]


@dataclass(frozen=True)
class Edge:
    source: int
    target: int
    relation: str = "supports"
    strength: float = 1.0


class FakeScope:
    def __init__(self, store: FakeStore, admitted: set[int]) -> None:
        self._store, self._admitted = store, admitted

    @property
    def size(self) -> int:
        return len(self._admitted)

    @property
    def complete(self) -> bool:
        return len(self._admitted) == len(self._store.memories)

    def admits(self, ids: Ids) -> np.ndarray:
        return np.array([self._store.parent.get(int(i)) in self._admitted for i in ids], np.bool_)


class FakeAttributes:
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def _of(self, id_: int) -> Memory:
        return self._store.memories[self._store.parent[int(id_)]]

    def parents(self, ids: Ids) -> Ids:
        return np.array([self._store.parent[int(i)] for i in ids], np.int64)

    def number(self, name: str, ids: Ids) -> Column:
        return np.array([self._of(i).numbers.get(name, np.nan) for i in ids], np.float64)

    def label(self, name: str, ids: Ids) -> np.ndarray:
        labels = [self._of(i).labels.get(name, getattr(self._of(i), name, "")) for i in ids]
        return np.array(labels, np.object_)

    def scope(self, wanted: Filter, now: float) -> FakeScope:
        def inside(folder: str, wanted: str) -> bool:
            return not wanted or folder == wanted or folder.startswith(wanted + "/")

        admitted = {
            m.id
            for m in self._store.memories.values()
            if m.tier != "deprecated"
            and not m.numbers.get("expires_at", np.inf) < now
            and inside(m.folder, wanted.folder)
            and (not wanted.folders or any(inside(m.folder, folder) for folder in wanted.folders))
            and wanted.tier in ("", m.tier)
            and wanted.context_type in ("", m.context_type)
            and (wanted.memories is None or m.id in wanted.memories)
        }
        return FakeScope(self._store, admitted)

    def neighbours(self, ids: Ids) -> tuple[Ids, Ids]:
        stored = sorted(self._store.memories)

        def beside(id_: int, step: int) -> int:
            if id_ < 0:  # a hole of an index
                return -1
            memory = self._of(id_)
            at = stored.index(memory.id) + step
            other = self._store.memories[stored[at]] if 0 <= at < len(stored) else None
            linked = other and memory.folder and other.folder == memory.folder
            short = linked and all(m.numbers.get("characters", np.inf) < 600 for m in (memory, other))
            return other.id if short else -1

        return (
            np.array([beside(int(i), -1) for i in ids], np.int64),
            np.array([beside(int(i), 1) for i in ids], np.int64),
        )

    def of_tier(self, tier: str) -> Ids:
        return np.array(sorted(m.id for m in self._store.memories.values() if m.tier == tier), np.int64)

    def in_folder(self, folder: str) -> Ids:
        return np.array(sorted(m.id for m in self._store.memories.values() if m.folder == folder), np.int64)

    @property
    def count(self) -> int:
        return len(self._store.memories)


class FakePassages:
    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def passages(self, ids: Sequence[int]) -> list[Passage]:
        return [self._passage(int(i)) for i in ids]

    def _passage(self, id_: int) -> Passage:
        memory = self._store.memories[self._store.parent[id_]]
        at = memory.chunk_ids.index(id_) if id_ in memory.chunk_ids else 0
        return Passage(memory.chunk_ids[at], memory.id, memory.chunks[at], "", "", at + 1, at + 1)

    def of_memory(self, memory: int) -> list[Passage]:
        return self.passages(self._store.memories[memory].chunk_ids)

    def in_sections(self, names: Sequence[str]) -> list[Passage]:
        everything = (self._passage(i) for memory in self._store.memories.values() for i in memory.chunk_ids)
        return [passage for passage in everything if any(f"ANCHOR:{name}" in passage.text for name in names)]

    def body(self, memory: int) -> str:
        return "\n\n".join(self._store.memories[memory].chunks)


class FakeVectors:
    def __init__(self, store: FakeStore, unavailable: str) -> None:
        self._store, self._unavailable = store, unavailable
        vocabulary = sorted({w for m in store.memories.values() for chunk in m.chunks for w in words(chunk)})
        self._axis = {word: axis for axis, word in enumerate(vocabulary)}

    @property
    def dimensions(self) -> int:
        return len(self._axis)

    static = True

    def embed(self, text: str) -> Vectors | Unavailable:
        return Unavailable(self._unavailable) if self._unavailable else self._vector(text)

    def _vector(self, text: str) -> Vectors:
        vector = np.zeros(self.dimensions, np.float32)
        for word in words(text):
            if word in self._axis:
                vector[self._axis[word]] += 1.0
        norm = np.linalg.norm(vector)
        return vector / norm if norm else vector

    def nearest(self, query: Vectors, limit: int, scope: FakeScope, level: str) -> tuple[Ids, Column, Ids]:
        best: dict[int, tuple[float, int]] = {}
        for memory in self._store.memories.values():
            if not scope.admits(np.array([memory.id]))[0]:
                continue
            for chunk, text in zip(memory.chunk_ids, memory.chunks, strict=True):
                similarity = round(float(self._vector(text).astype(np.float64) @ query.astype(np.float64)), 7)
                key = chunk if level == "chunk" else memory.id
                if key not in best or similarity > best[key][0]:
                    best[key] = (similarity, chunk)
        rows = sorted(((-s, i, c) for i, (s, c) in best.items()))[:limit]
        return (
            np.array([i for _, i, _ in rows], np.int64),
            np.array([-s for s, _, _ in rows], np.float64),
            np.array([c for _, _, c in rows], np.int64),
        )

    def vectors(self, ids: Ids) -> Vectors:
        return np.stack([self._of(int(i)) for i in ids]) if len(ids) else np.empty((0, self.dimensions), np.float32)

    def _of(self, id_: int) -> Vectors:
        memory = self._store.memories[self._store.parent[id_]]
        if id_ in memory.chunk_ids:
            return self._vector(memory.chunks[memory.chunk_ids.index(id_)])
        mean = np.sum([self._vector(text) for text in memory.chunks], axis=0)
        norm = np.linalg.norm(mean)
        return mean / norm if norm else mean


class FakeIndex:
    def __init__(self, entries: Iterable[tuple[int, Sequence[str]]], holes: int = 0) -> None:
        entries = list(entries)
        self._tokens = [()] * holes + [tuple(tokens) for _, tokens in entries]
        self._ids = [-1] * holes + [id_ for id_, _ in entries]
        self._live = len(entries)

    @property
    def ids(self) -> Ids:
        return np.array(self._ids, np.int64)

    @property
    def lengths(self) -> np.ndarray:
        return np.array([len(tokens) for tokens in self._tokens], np.float32)

    @property
    def count(self) -> int:
        return self._live

    def rows_of(self, ids: Ids) -> np.ndarray:
        return np.array([self._ids.index(id_) if id_ in self._ids else -1 for id_ in ids.tolist()], np.int32)

    def postings(self, term: str) -> Postings:
        rows = [row for row, tokens in enumerate(self._tokens) if term in tokens]
        frequency = [self._tokens[row].count(term) for row in rows]
        return Postings(np.array(rows, np.int32), np.array(frequency, np.float32))

    def holders(self, term: str) -> int:
        return len(self.postings(term).rows)

    def adjacent(self, first: str, second: str) -> np.ndarray:
        rows = [row for row, tokens in enumerate(self._tokens) if (first, second) in pairwise(tokens)]
        return np.array(rows, np.int32)


class FakeLexicon:
    def __init__(self, store: FakeStore, holes: int) -> None:
        memories = list(store.memories.values())
        texts = {
            "title": lambda m: m.title,
            "triggers": lambda m: " ".join(m.triggers),
            "path": lambda m: m.path,
            "body": lambda m: " ".join(m.chunks),
        }
        self._indexes = {
            (name, "memory"): FakeIndex(((m.id, words(text(m))) for m in memories), holes)
            for name, text in texts.items()
        }
        chunks = ((i, words(c)) for m in memories for i, c in zip(m.chunk_ids, m.chunks, strict=True))
        self._indexes["body", "chunk"] = FakeIndex(chunks, holes)

    def analyse(self, text: str) -> tuple[str, ...]:
        return words(text)

    def index(self, name: str, level: str = "memory") -> FakeIndex:
        return self._indexes[name, level]

    def words(self) -> set[str]:
        return {token for index in self._indexes.values() for tokens in index._tokens for token in tokens}


class FakeFullText:
    """Scores are Σ weight · frequency: enough to have an order that weights change."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def match(
        self, tokens: Sequence[str], weights: Sequence[float], limit: int, scope: FakeScope
    ) -> tuple[Ids, Column]:
        scores: dict[int, float] = defaultdict(float)
        for name, weight in zip(FIELDS, weights, strict=True):
            index = self._store.lexicon.index(name)
            for token in dict.fromkeys(tokens):
                postings = index.postings(token)
                for row, frequency in zip(postings.rows, postings.frequency, strict=True):
                    scores[int(index.ids[row])] += weight * float(frequency)
        rows = sorted((-s, i) for i, s in scores.items() if scope.admits(np.array([i]))[0])[:limit]
        return np.array([i for _, i in rows], np.int64), np.array([-s for s, _ in rows], np.float64)


class FakeGraph:
    def __init__(self, edges: Sequence[Edge], parent: dict[int, int]) -> None:
        self._edges, self._parent = edges, parent

    @property
    def edge_count(self) -> int:
        return len(self._edges)

    def _adjacent(self, weights: dict[str, float]) -> dict[int, list[tuple[int, float]]]:
        adjacent: dict[int, list[tuple[int, float]]] = defaultdict(list)
        for edge in self._edges:
            value = edge.strength * weights.get(edge.relation, 1.0)
            adjacent[edge.source].append((edge.target, value))
            adjacent[edge.target].append((edge.source, value))
        return adjacent

    def neighbours(self, seeds: Ids, hops: int, relation_weights: dict[str, float]) -> Neighbours:
        adjacent, rows = self._adjacent(relation_weights), []
        start = {self._parent[int(seed)] for seed in seeds}
        for seed in sorted(start):
            reached, front = {seed: 1.0}, {seed: 1.0}
            for hop in range(1, hops + 1):
                best: dict[int, float] = {}
                for node, product in front.items():
                    for other, value in adjacent[node]:
                        if other not in reached:
                            best[other] = max(best.get(other, 0.0), product * value)
                reached |= best
                front = best
                rows += [(seed, node, hop, product) for node, product in sorted(best.items()) if node not in start]
        columns = list(zip(*rows, strict=True)) or [(), (), (), ()]
        return Neighbours(
            np.array(columns[0], np.int64),
            np.array(columns[1], np.int64),
            np.array(columns[2], np.int32),
            np.array(columns[3], np.float64),
        )

    def edges(self, ids: Ids, relation: str) -> tuple[Ids, Ids]:
        among = {self._parent[int(i)] for i in ids}
        pairs = sorted(
            (e.source, e.target) for e in self._edges if e.relation == relation and {e.source, e.target} <= among
        )
        return np.array([s for s, _ in pairs], np.int64), np.array([t for _, t in pairs], np.int64)

    def regions(self, ids: Ids) -> Ids:
        adjacent = self._adjacent({})
        return np.array([self._region(self._parent[int(i)], adjacent) for i in ids], np.int64)

    @staticmethod
    def _region(node: int, adjacent: dict[int, list[tuple[int, float]]]) -> int:
        reached, front = {node}, [node]
        while front:
            front = [other for at in front for other, _ in adjacent[at] if other not in reached]
            reached |= set(front)
        return min(reached) if len(reached) > 1 else -1

    def degrees(self, relation_weights: dict[str, float]) -> tuple[Ids, Column]:
        total: Counter[int] = Counter()
        for edge in self._edges:
            for end in (edge.source, edge.target):
                total[end] += edge.strength * relation_weights.get(edge.relation, 1.0)
        ids = sorted(total)
        return np.array(ids, np.int64), np.array([total[i] for i in ids], np.float64)


class FakeTriggers:
    def __init__(self, store: FakeStore) -> None:
        self._phrases = [
            (m.id, words(phrase), weight)
            for m in store.memories.values()
            for weight, phrases in ((1.0, m.triggers), (0.7, m.learned))
            for phrase in phrases
        ]

    def exact(self, text: str) -> bool:
        return any(phrase == words(text) for _, phrase, _ in self._phrases)

    def matches(self, text: str, now: float) -> tuple[Ids, Column]:
        said = f" {' '.join(words(text))} "
        rows = sorted((i, w) for i, phrase, w in self._phrases if f" {' '.join(phrase)} " in said)
        return np.array([i for i, _ in rows], np.int64), np.array([w for _, w in rows], np.float64)


class FakeFolders:
    def __init__(self, descriptions: Sequence[FolderDescription]) -> None:
        self._descriptions = tuple(descriptions)

    def described(self) -> tuple[FolderDescription, ...]:
        return self._descriptions


class FakeSessions:
    """`attended` and `delivered` map a session to memories: with their attention, and as a set."""

    def __init__(self, attended: dict[str, dict[int, float]], delivered: dict[str, set[int]]) -> None:
        self._attended, self._delivered = attended, delivered

    def attention(self, session: str, ids: Ids, now: float) -> Column:
        return np.array([self._attended.get(session, {}).get(int(i), 0.0) for i in ids], np.float64)

    def sent(self, session: str, ids: Ids, now: float) -> np.ndarray:
        return np.array([int(i) in self._delivered.get(session, set()) for i in ids], np.bool_)


class FakeTokens:
    """A token is the axis of a word; its weight is log(passages / passages with the word)."""

    def __init__(self, store: FakeStore) -> None:
        self._store = store

    def count(self, texts: Sequence[str]) -> list[int]:
        return [len(words(text)) for text in texts]

    def of_text(self, text: str) -> Ids | Unavailable:
        axes = self._store.vectors._axis
        return np.array(sorted({axes[word] for word in words(text) if word in axes}), np.int64)

    def of_passages(self, ids: Ids) -> list[Ids]:
        texts = self._store.passages.passages([int(i) for i in ids])
        return [np.asarray(self.of_text(passage.text)) for passage in texts]

    def vectors(self, tokens: Ids) -> Vectors:
        return np.eye(self._store.vectors.dimensions, dtype=np.float32)[tokens]

    def weights(self, tokens: Ids) -> Column:
        passages = [set(words(chunk)) for m in self._store.memories.values() for chunk in m.chunks]
        names = sorted(self._store.vectors._axis)
        return np.array([np.log(len(passages) / sum(names[t] in p for p in passages)) for t in tokens], np.float64)


class FakeRelevance:
    def __init__(self, scores: dict[str, float] | None) -> None:
        self._scores = scores

    def score(self, query: str, texts: Sequence[str], deadline_ns: int | None) -> Column | Unavailable:
        if self._scores is None:
            return Unavailable("no cross-encoder is configured")
        return np.array([self._scores.get(text, np.nan) for text in texts], np.float64)


class FakeStore:
    """Implements `pipeline.ports.Store`. `holes` puts rows of removed entries into every inverted index."""

    def __init__(
        self,
        *memories: Memory,
        edges: Sequence[Edge] = (),
        folders: Sequence[FolderDescription] = (),
        attended: dict[str, dict[int, float]] | None = None,
        delivered: dict[str, set[int]] | None = None,
        relevance: dict[str, float] | None = None,
        no_embedder: str = "",
        holes: int = 0,
    ) -> None:
        self.memories = {m.id: m for m in memories}
        self.parent = {i: m.id for m in memories for i in (m.id, *m.chunk_ids)}
        self.attributes = FakeAttributes(self)
        self.passages = FakePassages(self)
        self.vectors = FakeVectors(self, no_embedder)
        self.lexicon = FakeLexicon(self, holes)
        self.fulltext = FakeFullText(self)
        self.graph = FakeGraph(edges, self.parent)
        self.triggers = FakeTriggers(self)
        self.folders = FakeFolders(folders)
        self.sessions = FakeSessions(attended or {}, delivered or {})
        self.tokens = FakeTokens(self)
        self.relevance = FakeRelevance(relevance)
