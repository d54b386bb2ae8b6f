"""What people ask: sessions in their words, judged queries in others, with judgements by construction."""

from __future__ import annotations

from dataclasses import dataclass
from random import Random
from typing import Literal

from bench.ageing.project import Component, Document, Project
from bench.ageing.words import HISTORY, Aspect

Kind = Literal["question", "words", "nickname", "error", "history"]
KINDS: dict[Kind, float] = {"question": 0.4, "words": 0.25, "nickname": 0.15, "error": 0.12, "history": 0.08}
"""How often judged queries are of each kind."""
ANSWERS, MENTIONS, TOUCHES = 3.0, 2.0, 1.0
"""Grades: it is about what was asked, and so; it says so beside other things; it tells of something near."""


@dataclass(frozen=True, slots=True)
class Question:
    """A text, and the fact that it is about."""

    text: str
    component: Component
    aspect: Aspect
    kind: Kind


@dataclass(frozen=True, slots=True)
class Judged:
    """A judged query: grades above 0 by key, and the keys of what would answer it wrongly because it was so once.

    `session` is the one that it is asked in, "" for none. `asked_before` tells that sessions asked about its component.
    """

    id: str
    question: Question
    grades: dict[str, float]
    stale: frozenset[str]
    session: str = ""
    asked_before: bool = False


def of_session(project: Project, component: Component, random: Random) -> Question:
    """What somebody asks who works on a component."""
    aspect = random.choice(component.aspects)
    errors = [document for document in _incidents(project, component) if random.random() < 0.3]
    if errors and random.random() < 0.2:
        return Question(random.choice(errors).error, component, _aspect_of(errors[-1], component), "error")
    if random.random() < 0.3:
        return Question(f"{component.name} {aspect.word[0]}", component, aspect, "words")
    return Question(random.choice(aspect.asked).format(c=component.name), component, aspect, "question")


def held_out(project: Project, component: Component, random: Random) -> Question:
    """A judged question about a component, in words that no session uses."""
    aspect = random.choice(component.aspects)
    [kind] = random.choices(list(KINDS), list(KINDS.values()))
    incidents = _incidents(project, component)
    told = project.values[component.name, aspect.name]
    if kind == "error" and incidents:
        incident = random.choice(incidents)
        text = f"{component.name}: {incident.error.rsplit(':', 1)[-1].strip()}"
        return Question(text, component, _aspect_of(incident, component), "error")
    if kind == "history" and len(told) > 1:
        text = random.choice(HISTORY).format(c=component.name, o=told[-2], v=told[-1])
        return Question(text, component, aspect, "history")
    if kind == "words":
        return Question(random.choice((f"{aspect.word[1]} {component.name}", f"{component.name} {aspect.word[1]}")),
                        component, aspect, "words")  # fmt: skip
    name, named = (component.nickname, "nickname") if kind == "nickname" else (component.name, "question")
    return Question(random.choice(aspect.held_out).format(c=name), component, aspect, named)  # type: ignore[arg-type]


def judged(project: Project, question: Question) -> tuple[dict[str, float], frozenset[str]]:
    """The grades and the stale ones among all documents, by what is true now."""
    subject = question.component.name, question.aspect.name
    now, former = project.values[subject][-1], project.values[subject][:-1]
    grades: dict[str, float] = {}
    stale: set[str] = set()
    for path, document in project.documents.items():
        for claim in document.claims:
            if (claim.component, claim.aspect) != subject:
                continue
            grade = _grade(question, document, claim.value == now, claim.main)
            if question.kind == "history":
                if former and claim.value in (former[-1], now):
                    grades[path] = ANSWERS if claim.main else TOUCHES
            elif grade:
                grades[path] = grade
            elif claim.value != now:
                stale.add(path)
    return grades, frozenset(stale)


def _grade(question: Question, document: Document, is_so: bool, main: bool) -> float:
    if document.error:
        same = question.kind == "error" and document.error.endswith(question.text.rsplit(": ", 1)[-1])
        return ANSWERS if same else TOUCHES  # what went wrong one day stays as it was
    if question.kind == "error":
        return TOUCHES if is_so else 0.0
    if not is_so:
        return 0.0
    return ANSWERS if main else MENTIONS


def _incidents(project: Project, component: Component) -> list[Document]:
    return [
        document
        for document in project.documents.values()
        if document.error and document.claims[0].component == component.name
    ]


def _aspect_of(incident: Document, component: Component) -> Aspect:
    return next(aspect for aspect in component.aspects if aspect.name == incident.claims[0].aspect)
