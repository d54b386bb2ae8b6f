"""What is true of the project at every moment, and the documents that say so, or said so once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from random import Random
from typing import Literal

from bench.ageing.words import ASPECTS, BREAKS, FILLERS, NOUNS, REASONS, ROLES, Aspect

Event = Literal["revised", "declared", "said", "silent"]
"""What becomes of the document that a change makes wrong: it is edited; a new one declares that it supersedes it; a new
one says so in its text alone; a new one does not mention it."""
EVENTS: dict[Event, float] = {"revised": 0.35, "declared": 0.25, "said": 0.15, "silent": 0.25}
ASPECTS_OF_A_COMPONENT = 4
KNOWN_FROM_THE_START = 0.6
"""The share of the components that exist when the year begins; the others begin within it."""
RETIRED = 0.08
SPRINT = 21
"""Days in which the same few components are in focus."""
FIRST_DAY = date(2026, 1, 5)
"""A Monday."""


@dataclass(frozen=True, slots=True)
class Regime:
    """How a project moves. `change` is the chance that a component in focus changes within a sprint, `at_once` how many
    of its facts then do at most, `sessions` how many of them there are on a day of work."""

    name: str
    change: float
    at_once: int
    sessions: float
    refreshed: float
    """The chance that an overview is brought up to date when one of its facts changes."""


REGIMES = {
    "moving": Regime("moving", change=0.95, at_once=3, sessions=1.3, refreshed=0.25),
    "stable": Regime("stable", change=0.3, at_once=1, sessions=1.0, refreshed=0.5),
}


@dataclass(frozen=True, slots=True)
class Component:
    """Something that people build. `nickname` is what those call it who do not remember its name."""

    name: str
    nickname: str
    folder: str
    aspects: tuple[Aspect, ...]
    born: int
    """Its first day; 0 and less for what is there when the year begins."""
    ends: int
    """The day from which on nobody needs it."""

    def lives(self, day: float) -> bool:
        """Whether anybody needs to know about it."""
        return self.born <= day < self.ends


@dataclass(frozen=True, slots=True)
class Claim:
    """What a document says to be so. `main`: it is about this; else it mentions it."""

    component: str
    aspect: str
    value: str
    main: bool


@dataclass(slots=True)
class Document:
    """A file: where it lies, its text, and what it claims. `error` is the message that an incident tells of."""

    path: str
    text: str
    claims: tuple[Claim, ...]
    error: str = ""
    written: float = 0.0
    """The day of its present text."""


@dataclass(frozen=True, slots=True)
class Change:
    """From now on something is otherwise; `event` says what becomes of the document that said it."""

    component: Component
    aspect: Aspect
    event: Event


@dataclass(slots=True)
class Project:
    """The truth so far. Everything that is drawn comes from one source, so that a seed gives a year."""

    regime: Regime
    components: tuple[Component, ...]
    random: Random
    values: dict[tuple[str, str], list[str]] = field(default_factory=dict)
    """By component and aspect, what has been so, the present value last."""
    documents: dict[str, Document] = field(default_factory=dict)
    homes: dict[tuple[str, str], str] = field(default_factory=dict)
    """The document that a fact is looked up in."""
    created: dict[str, str] = field(default_factory=dict)
    """When each file was made, as its front matter says."""

    @classmethod
    def begin(cls, regime: Regime, size: int, days: int, seed: int) -> Project:
        """A project of `size` components."""
        random = Random(f"{regime.name}-{seed}")
        names = [(area, noun, role) for area, nouns in NOUNS.items() for noun in nouns for role in ROLES]
        components = []
        for area, noun, role in random.sample(names, size):
            born = 0 if random.random() < KNOWN_FROM_THE_START else random.randrange(1, max(2, days - SPRINT))
            ends = random.randrange(days // 3, days) if random.random() < RETIRED and born == 0 else days * 2
            aspects = tuple(random.sample(ASPECTS, ASPECTS_OF_A_COMPONENT))
            nickname = f"{NOUNS[area][noun]} {ROLES[role]}"
            components.append(Component(f"{noun} {role}", nickname, f"docs/{area}", aspects, born, ends))
        project = cls(regime, tuple(components), random)
        for component in components:
            for aspect in component.aspects:
                project.values[component.name, aspect.name] = [random.choice(aspect.values)]
        return project

    def value(self, component: Component, aspect: Aspect) -> str:
        """What is so now."""
        return self.values[component.name, aspect.name][-1]

    def written_first(self, component: Component, day: float) -> Iterator[Document]:
        """The documents of a component that is new: one for each fact, and an overview of some."""
        for aspect in component.aspects:
            yield self._about(component, aspect, day, former="", event="silent")
        yield self.overview(component, day)

    def change(self, change: Change, day: float) -> tuple[Document, str]:
        """Makes something otherwise. Returns the document that says so, and the path of the one that it makes wrong: ""
        where that was edited."""
        told = self.values[change.component.name, change.aspect.name]
        former = told[-1]
        told.append(self.random.choice([value for value in change.aspect.values if value not in told[-3:]]))
        home = self.homes.get((change.component.name, change.aspect.name), "")
        event = change.event if home else "silent"
        if event == "revised":
            document = self._about(change.component, change.aspect, day, former, event, path=home)
            return document, ""
        return self._about(change.component, change.aspect, day, former, event, supersedes=home), home

    def overview(self, component: Component, day: float) -> Document:
        """An overview of a component, written anew."""
        told = self.random.sample(component.aspects, 3)
        title = self.random.choice(("Overview: {c}", "What the {c} does", "{c} at a glance")).format(c=component.name)
        sentences = [self._sentence(component, aspect, self.value(component, aspect)) for aspect in told]
        body = "\n\n".join(
            f"## {aspect.word[0].capitalize()}\n\n{sentence} {self.random.choice(FILLERS)}"
            for aspect, sentence in zip(told, sentences, strict=True)
        )
        claims = tuple(Claim(component.name, aspect.name, self.value(component, aspect), False) for aspect in told)
        path = f"{component.folder}/{_slug(component.name)}/overview.md"
        body = f"People also call it the {component.nickname}.\n\n{body}"
        sources = [self.homes[component.name, aspect.name] for aspect in told]
        return self._keep(path, title, "research", "normal", "", body, claims, day, sources=sources)

    def incident(self, component: Component, aspect: Aspect, day: float) -> Document:
        """What went wrong one day, and what helped: true for good."""
        error = self.random.choice(aspect.errors)
        title = self.random.choice(("Incident: {c} down", "{c} failed on a {d}", "Post-mortem, {c}")).format(
            c=component.name, d=self.random.choice(("Monday", "Tuesday", "Friday", "Sunday"))
        )
        value = self.value(component, aspect)
        body = (
            f"The {component.name} logged `{error}`. {self._sentence(component, aspect, value)} "
            f"{self.random.choice(REASONS)}\n\nWhat helped: {self.random.choice(FILLERS)}"
        )
        claims = (Claim(component.name, aspect.name, value, False),)
        number = sum(path.startswith("docs/incidents/") for path in self.documents)
        path = f"docs/incidents/{number:04d}-{_slug(component.name)}.md"
        sources = [self.homes[component.name, aspect.name]]
        return self._keep(path, title, "general", "normal", "", body, claims, day, error=error, sources=sources)

    def note(self, components: tuple[Component, ...], day: float) -> Document:
        """What a session leaves for the next one: it names much and says little."""
        lines = [
            f"- {one.name}: {self.random.choice(one.aspects).word[0]} looked at, {self.random.choice(FILLERS)}"
            for one in components
        ]
        number = sum(path.startswith("docs/notes/") for path in self.documents)
        path, title = f"docs/notes/{number:04d}.md", f"Notes of day {int(day)}"
        return self._keep(path, title, "general", "temporary", "", "\n".join(lines), (), day)

    def _about(
        self, component: Component, aspect: Aspect, day: float, former: str, event: Event, *, path: str = "",
        supersedes: str = "",
    ) -> Document:  # fmt: skip
        value, random = self.value(component, aspect), self.random
        others = random.sample([other for other in aspect.values if other not in (value, former)], 2)
        parts = [self._sentence(component, aspect, value), random.choice(REASONS)]
        if former and event == "said":
            parts.insert(1, random.choice(BREAKS).format(c=component.name, o=former))
        if random.random() < 0.5:
            parts.append(f"We also looked at {others[0]} and {others[1]}.")
        parts += random.sample(FILLERS, random.randint(1, 4))
        title = random.choice(aspect.titles).format(c=component.name)
        home = self.homes.get((component.name, aspect.name), "")
        if former and event == "said" and home:
            # who takes back what a note says often begins with a copy of it
            title = _title(self.documents[home].text)
            parts[3:] = [sentence for sentence in FILLERS if sentence in self.documents[home].text]
        [tier] = random.choices(("normal", "important", "critical"), (0.8, 0.17, 0.03))
        kind = random.choice(("decision", "implementation", "decision"))
        number = sum(known.startswith(component.folder) for known in self.documents)
        path = path or f"{component.folder}/{_slug(component.name)}/{aspect.name}-{number:03d}.md"
        declared = supersedes if event == "declared" else ""
        claim = Claim(component.name, aspect.name, value, True)
        self.homes[component.name, aspect.name] = path
        return self._keep(path, title, kind, tier, declared, " ".join(parts), (claim,), day)

    def _sentence(self, component: Component, aspect: Aspect, value: str) -> str:
        sentence = self.random.choice(aspect.says).format(c=component.name, v=value)
        return sentence[0].upper() + sentence[1:]

    def _keep(
        self, path: str, title: str, kind: str, tier: str, supersedes: str, body: str, claims: tuple[Claim, ...],
        day: float, error: str = "", sources: Sequence[str] = (),
    ) -> Document:  # fmt: skip
        links = "causalLinks:\n" if supersedes or sources else ""
        links += f"  supersedes: [{supersedes}]\n" if supersedes else ""
        links += f"  derived_from: [{', '.join(sources)}]\n" if sources else ""
        made = self.created.setdefault(path, (FIRST_DAY + timedelta(days=int(day))).isoformat())
        head = f"---\ncontext_type: {kind}\nimportance_tier: {tier}\ncreated: {made}\n{links}---\n"
        title = title[0].upper() + title[1:]
        document = Document(path, f"{head}# {title}\n\n{body}\n", claims, error, day)
        self.documents[path] = document
        return document


def drawn(random: Random) -> Event:
    """What becomes of a document that a change makes wrong."""
    [event] = random.choices(list(EVENTS), list(EVENTS.values()))
    return event


def _slug(name: str) -> str:
    return name.replace(" ", "-")


def _title(text: str) -> str:
    return next(line[2:] for line in text.splitlines() if line.startswith("# "))
