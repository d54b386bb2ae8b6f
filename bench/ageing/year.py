"""One year of a project, lived through the doors of the product at simulated times."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, time
from pathlib import Path
from random import Random
from unittest.mock import patch

from bench.ageing.project import FIRST_DAY, SPRINT, Change, Component, Document, Project, Regime, drawn
from bench.ageing.questions import Judged, Question, held_out, judged, of_session
from bench.ageing.reader import LINKS, Read, reads
from speckit_memory.engine import Memory
from speckit_memory.errors import SpeckitError

DAY = 86_400.0
BEGIN = datetime.combine(FIRST_DAY, time(), UTC).timestamp()
FOCUS = 4
"""Components in focus at a time; half of them stay for the next sprint."""
IN_FOCUS = 0.65
"""The share of sessions that work on what is in focus."""
NEW_FOCUS_QUERIES = 0.5
"""The share of judged queries about what is in focus; the others ask about anything that lives."""
WORKSPACE = "evaluation: {keep_texts: 3650, observe: 0, max_mb: 500}\n"
DAYS_OF_WORK = 5
LINKS_TO_SOURCES = 0.5
STORE = ".speckit/memory.db"


@dataclass(slots=True)
class Clock:
    """The time of the simulated world: while it runs, every part of the product reads this."""

    now: float = BEGIN

    @contextmanager
    def running(self) -> Iterator[None]:
        """For as long as the context lasts."""
        with patch("time.time", lambda: self.now):
            yield

    @property
    def day(self) -> float:
        """Days since the beginning."""
        return (self.now - BEGIN) / DAY


@dataclass(frozen=True, slots=True)
class Checkpoint:
    """The project at one moment, with the queries that are judged then; the store is the one in the year's folder."""

    day: int
    now: float
    queries: tuple[Judged, ...]
    events: Counter[str]


@dataclass(slots=True)
class Year:
    """A project, its store below `root` and what happened. Nothing in it is drawn from anything but the seed."""

    regime: Regime
    root: Path
    seed: int
    size: int = 100
    days: int = 365
    queries: int = 80
    clock: Clock = field(default_factory=Clock)
    events: Counter[str] = field(default_factory=Counter)
    project: Project = field(init=False)
    random: Random = field(init=False)
    asked: set[str] = field(default_factory=set)
    _sessions: int = 0
    _memory: Memory | None = None

    def __post_init__(self) -> None:
        """Draws the project."""
        self.project = Project.begin(self.regime, self.size, self.days, self.seed)
        self.random = Random(f"year-{self.regime.name}-{self.seed}")

    def live(self, moments: Sequence[int], at: Callable[[Checkpoint], None]) -> None:
        """Runs all days; at the end of each of the days in `moments`, `at` finds the store closed."""
        (self.root / ".speckit").mkdir(parents=True, exist_ok=True)
        (self.root / ".speckit" / "config.yaml").write_text(WORKSPACE, encoding="utf-8")
        with self.clock.running():
            self._founded()
            focus: list[Component] = []
            changes: dict[int, list[Change]] = {}
            for day in range(self.days):
                if day % SPRINT == 0:
                    focus = self._focus(focus, day)
                    changes = self._planned(focus, day)
                self._day(day, focus, changes.get(day, []))
                if day in moments:
                    self._warm(day, focus)
                    self._close()
                    at(self._checkpoint(day, focus))
            self._close()

    def _open(self) -> Memory:
        """The store as a process that lives on has it."""
        if self._memory is None:
            self._memory = Memory.open(self.root / STORE, root=self.root, environ={}, shadows=False)
        return self._memory

    def _close(self) -> None:
        if self._memory is not None:
            self._memory.close()
        self._memory = None

    def _founded(self) -> None:
        """What was written before the year begins, in one index run."""
        for component in self.project.components:
            if component.born <= 0:
                long_ago = -self.random.randint(5, 400)
                for document in self.project.written_first(component, long_ago):
                    self._file(document, self.clock.now + document.written * DAY)
        report = self._open().index(self.root / "docs")
        self.events["indexed"] += len(report.created)

    def _focus(self, before: list[Component], day: int) -> list[Component]:
        staying = [component for component in before if component.lives(day)][: FOCUS // 2]
        living = [
            component for component in self.project.components if component.lives(day) and component not in staying
        ]
        return [*staying, *self.random.sample(living, min(len(living), FOCUS - len(staying)))]

    def _planned(self, focus: list[Component], day: int) -> dict[int, list[Change]]:
        """What changes within a sprint, by day of work."""
        planned: dict[int, list[Change]] = {}
        elsewhere = [component for component in self.project.components if component.lives(day)]
        moved = [component for component in focus if self.random.random() < self.regime.change]
        moved += [self.random.choice(elsewhere)] if self.random.random() < self.regime.change else []
        for component in moved:
            for aspect in self.random.sample(component.aspects, self.random.randint(1, self.regime.at_once)):
                when = day + self.random.randrange(SPRINT // 7) * 7 + self.random.randrange(DAYS_OF_WORK)
                planned.setdefault(when, []).append(Change(component, aspect, drawn(self.random)))
        return planned

    def _day(self, day: int, focus: list[Component], changes: list[Change]) -> None:
        self.clock.now = BEGIN + day * DAY + 8 * 3600.0
        if day % 7 >= DAYS_OF_WORK:
            return
        for component in self.project.components:
            if day - 3 < component.born <= day and component.born > 0 and not self._known(component):
                self._session(component, self._first_documents(component))
            self.events["retired"] += day - 1 < component.ends <= day
        for change in changes:
            self._session(change.component, self._changing(change))
        expected = self.regime.sessions
        for _ in range(int(expected) + (self.random.random() < expected % 1)):
            living = [component for component in self.project.components if self._known(component)]
            near = [component for component in focus if self._known(component)]
            component = self.random.choice(near if near and self.random.random() < IN_FOCUS else living)
            self._session(component, self._aside(component) if self.random.random() < 0.2 else iter(()))
        self.clock.now += 3600.0
        self.events["jobs"] += sum(done.state == "ran" for done in self._open().lifecycle.maintain().jobs)

    def _known(self, component: Component) -> bool:
        return component.lives(self.clock.day) and (component.name, component.aspects[0].name) in self.project.homes

    def _first_documents(self, component: Component) -> Iterator[Document]:
        self.events["begun"] += 1
        yield from self.project.written_first(component, self.clock.day)

    def _changing(self, change: Change) -> Iterator[Document]:
        event = change.event if (change.component.name, change.aspect.name) in self.project.homes else "silent"
        document, _ = self.project.change(change, self.clock.day)
        self.events[event] += 1
        yield document
        if self.random.random() < self.regime.refreshed:
            self.events["overview"] += 1
            yield self.project.overview(change.component, self.clock.day)

    def _aside(self, component: Component) -> Iterator[Document]:
        """What is written beside the work."""
        if self.random.random() < 0.5:
            self.events["incident"] += 1
            yield self.project.incident(component, self.random.choice(component.aspects), self.clock.day)
        else:
            self.events["note"] += 1
            living = [other for other in self.project.components if self._known(other)]
            yield self.project.note(tuple(self.random.sample(living, min(3, len(living)))), self.clock.day)

    def _session(self, component: Component, documents: Iterator[Document], name: str = "") -> None:
        """Questions about a component, then what is written."""
        self._sessions += 1
        session = name or f"session {self._sessions}"
        pause = 60.0 * self.random.randint(5, 30)
        self.clock.now += 0.0 if name else pause
        memory = self._open()
        opened: list[str] = []
        if self._known(component):
            for _ in range(self.random.randint(1, 3)):
                opened += self._search(memory, of_session(self.project, component, self.random), session)
        for document in documents:
            self.clock.now += 60.0 * self.random.randint(2, 8)
            self._save(memory, document, opened, session)
        memory.feedback.write()

    def _search(self, memory: Memory, question: Question, session: str) -> list[str]:
        self.clock.now += 60.0 * self.random.randint(1, 3)
        self.asked.add(question.component.name)
        self.events["searches"] += 1
        result = memory.search(
            question.text, session=session, query_id=f"{self.random.getrandbits(64):016x}", deadline_ms=None
        )
        memory.feedback.delivered(result)
        found = reads(self.project, question, result.results, self.random)
        for read in found:
            self.clock.now += 20.0
            self.events["opened"] += 1
            self.events["opened stale"] += read.what in ("stale", "marked")
            self.events["opened below 3"] += read.rank > 3
            memory.feedback.opened(memory.documents.read(read.key), session=session)
            if read.useful is not None:
                self._judge(memory, read)
        self._link(memory, found)
        return [read.key for read in found if not read.recognised]

    def _judge(self, memory: Memory, read: Read) -> None:
        self.events["useful" if read.useful else "not useful"] += 1
        standing = memory.learning.validate(read.key, useful=bool(read.useful))
        if standing.eligible and self.random.random() < 0.5:
            memory.learning.promote(read.key)
            self.events["promoted"] += 1

    def _link(self, memory: Memory, found: list[Read]) -> None:
        """Who has noticed that one replaces the other may say so."""
        stale = next((read.key for read in found if read.recognised), "")
        right = next((read.key for read in found if read.what == "right"), "")
        if stale and right and self.random.random() < LINKS:
            memory.graph.link(right, "supersedes", stale)
            self.events["linked by hand"] += 1

    def _save(self, memory: Memory, document: Document, opened: list[str], session: str) -> None:
        if opened and self.random.random() < LINKS_TO_SOURCES:
            document.text += "".join(
                f"\nSee [{key}](/{key}).\n" for key in dict.fromkeys(opened) if key != document.path
            )
            self.events["cited"] += 1
        path = self._file(document, self.clock.now)
        try:
            saved = memory.documents.save(path, session=session)
        except SpeckitError as refused:
            self.events[f"refused {refused.code}"] += 1
            return
        self.events["saved"] += 1
        if saved.verdict is not None:
            self.events[f"verdict {saved.verdict.kind}"] += 1

    def _file(self, document: Document, at: float) -> Path:
        path = self.root / document.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(document.text, encoding="utf-8")
        os.utime(path, (at, at))
        return path

    def _warm(self, day: int, focus: list[Component]) -> None:
        """Sessions that are under way when queries are judged; each works on a component."""
        self.clock.now = BEGIN + day * DAY + 18 * 3600.0
        for number, component in enumerate(component for component in focus if self._known(component)):
            began = self.clock.now
            self._session(component, iter(()), f"warm {day} {number}")
            self.clock.now = began  # they go on side by side

    def _checkpoint(self, day: int, focus: list[Component]) -> Checkpoint:
        """The queries of the next days: about what is in focus and about anything, some of them within a session."""
        random = Random(f"judged-{self.regime.name}-{self.seed}-{day}")
        self.clock.now = BEGIN + day * DAY + 18 * 3600.0 + 1200.0
        near = [component for component in focus if self._known(component)]
        living = [component for component in self.project.components if self._known(component)]
        drawn_queries: list[Judged] = []
        texts: set[tuple[str, str]] = set()
        for number in range(self.queries):
            component = random.choice(near if near and random.random() < NEW_FOCUS_QUERIES else living)
            session = ""
            if near and number % 3 == 0:  # every third within a session, half of these about what that works on
                at = random.randrange(len(near))
                session, component = f"warm {day} {at}", near[at] if random.random() < 0.5 else component
            question = held_out(self.project, component, random)
            grades, stale = judged(self.project, question)
            if grades and (question.text, session) not in texts:
                texts.add((question.text, session))
                name = f"{self.regime.name}-{self.seed}-{day}-{number}"
                drawn_queries.append(Judged(name, question, grades, stale, session, component.name in self.asked))
        return Checkpoint(day, self.clock.now, tuple(drawn_queries), Counter(self.events))
