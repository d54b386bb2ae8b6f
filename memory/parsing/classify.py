"""Classifies a document by its path and its words (feature I4)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Set
from pathlib import PurePosixPath
from typing import NamedTuple

from speckit_memory.memory.parsing.keys import without_suffix
from speckit_memory.memory.store.records import Tier

CONTEXT_WORDS = {
    "research": ("explored", "researched", "investigated", "compared"),
    "implementation": ("implemented", "refactored", "deployed"),
    "decision": ("decided", "decision", "chose", "chosen"),
    "discovery": ("found", "discovered"),
}
CONTEXT_TYPES = (*CONTEXT_WORDS, "general")
READING_TOOLS, ASKING_TOOL = ("Read", "Grep", "Glob"), "AskUserQuestion"
"""Tools with which coding agents look things up, and the one that asks the user for a decision."""
OTHER_TOOLS = ("Bash", "Edit", "MultiEdit", "NotebookEdit", "Task", "TodoWrite", "WebFetch", "WebSearch", "Write")
MEMORY_TYPES = (
    "working",
    "episodic",
    "prospective",
    "implicit",
    "declarative",
    "procedural",
    "semantic",
    "autobiographical",
    "meta-cognitive",
)
SPEC_DOCUMENTS = {
    "spec.md": "spec",
    "plan.md": "plan",
    "tasks.md": "tasks",
    "checklist.md": "checklist",
    "decision-record.md": "decision_record",
    "implementation-summary.md": "implementation_summary",
    "research.md": "research",
    "handover.md": "handover",
}

_TYPE_OF_TIER = {
    Tier.CONSTITUTIONAL: "meta-cognitive",
    Tier.CRITICAL: "semantic",
    Tier.IMPORTANT: "declarative",
    Tier.TEMPORARY: "working",
    Tier.DEPRECATED: "episodic",
}
_WORDS_OF_PATH = (
    ("scratch|tmp|temp|draft|drafts|wip|sessions?", "working"),
    ("handover|journal|log|logs|meetings?|minutes|incidents?|post-?mortems?", "episodic"),
    ("tasks?|todos?|roadmap|backlog|plans?|next-steps", "prospective"),
    ("patterns?|conventions?|style|habits?", "implicit"),
    ("how-?to|guides?|runbooks?|playbooks?|tutorials?|checklists?|procedures?|workflows?|install", "procedural"),
    ("spec|specification|architecture|glossary|concepts?|reference|api|schema|design", "semantic"),
    ("changelog|history|implementation-summary|about|releases?", "autobiographical"),
    ("constitutional|rules|principles|retro(?:spectives?)?|lessons(?:-learned)?|reflections?", "meta-cognitive"),
    ("decisions?|decision-record|adr|research|facts|notes", "declarative"),
)
_TYPE_OF_PATH = tuple((re.compile(rf"(?:^|[/_.-])(?:{words})(?:[/_.-]|$)"), kind) for words, kind in _WORDS_OF_PATH)
_ANY_OF_PATH = re.compile(rf"(?:^|[/_.-])(?:{'|'.join(words for words, _ in _WORDS_OF_PATH)})(?:[/_.-]|$)")
_WORDS_OF_TITLE = (
    ("how to|steps|guide|procedure|install|set up|configure|workflow", "procedural"),
    ("todo|next steps|upcoming|planned|remind|deadline", "prospective"),
    ("session|yesterday|today|incident|meeting|happened", "episodic"),
    ("lesson|learned|retrospective|mistake|principle", "meta-cognitive"),
    ("concept|definition|architecture|overview|what is", "semantic"),
    ("pattern|convention|style|always|never", "implicit"),
    ("milestone|project history|we built", "autobiographical"),
    ("in progress|current state|scratch|draft", "working"),
)
_TYPE_OF_WORDS = tuple((re.compile(rf"\b(?:{words})\b"), kind) for words, kind in _WORDS_OF_TITLE)
_ANY_OF_WORDS = re.compile(rf"\b(?:{'|'.join(words for words, _ in _WORDS_OF_TITLE)})\b")
_CONTEXT_OF_WORD = {word: context for context, words in CONTEXT_WORDS.items() for word in words}
_CONTEXT_WORD = re.compile(rf"\b(?:{'|'.join(_CONTEXT_OF_WORD)})\b")
_CONTEXT_WORD_IN_ANY_CASE = re.compile(_CONTEXT_WORD.pattern, re.IGNORECASE)
_LETTERS_LIKE_OTHERS = "ſ\u212aıİ"
"""Letters that a case-insensitive pattern matches as s, k or i although `str.lower` does not map them there."""
_TOOLS = (*READING_TOOLS, ASKING_TOOL, *OTHER_TOOLS)
_NAMES_OF_TOOLS = "|".join(_TOOLS)
_TOOL_USE = re.compile(rf"`({_NAMES_OF_TOOLS})(?:\([^`\n]*\))?`|(?<![\w.`])(?<!func )({_NAMES_OF_TOOLS})\(")
_SIGNS_OF_TOOLS = ("Grep", "Glob", ASKING_TOOL)
"""A text without one of these names no agent tools: `Read(`, for example, is an ordinary call in Go."""
_LEVEL = re.compile(r"<!--\s*SPECKIT_LEVEL:\s*([1-9])\+?\s*-->")
_LEVEL_MARK_WITHIN = 2048


def context_type(declared: str, title: str, body: str) -> str:
    """Return the declared context type, else the one with the most words, else the one its tools suggest, else
    "general".

    Words in the title count double. A single passing "found" proves nothing: the leader needs a count of two and a
    lead over the others.
    """
    if declared:
        return declared
    said = _contexts(title)
    counts = Counter((*said, *said, *_contexts(body)))
    ranked = [*counts.most_common(2), ("", 0), ("", 0)]
    (leader, most), (_, next_most) = ranked[:2]
    return leader if most >= 2 and most > next_most else _by_tools(body)


def _by_tools(body: str) -> str:
    """Infer the context from the agent tools that the text names as code, `Grep` or Grep("TODO").

    A question to the user means "decision"; a majority of at least two look-ups means "research".
    """
    if not any(sign in body for sign in _SIGNS_OF_TOOLS):
        return "general"
    used = Counter(quoted or called for quoted, called in _TOOL_USE.findall(body))
    if used[ASKING_TOOL]:
        return "decision"
    read = sum(used[tool] for tool in READING_TOOLS)
    signed = any(used[tool] for tool in _SIGNS_OF_TOOLS)
    return "research" if signed and read >= 2 and 2 * read > used.total() else "general"


def _contexts(text: str) -> list[str]:
    """Return the context of each context word in a text, in text order and ignoring case."""
    if not text.isascii() and any(letter in text for letter in _LETTERS_LIKE_OTHERS):
        # A case-insensitive pattern also matches a dotless ı as i; the look-up by casefold drops such matches.
        found = (_CONTEXT_OF_WORD.get(word.casefold()) for word in _CONTEXT_WORD_IN_ANY_CASE.findall(text))
        return [context for context in found if context]
    lower = text.lower()
    if not any(word in lower for word in _CONTEXT_OF_WORD):  # much faster than the pattern
        return []
    return [_CONTEXT_OF_WORD[word] for word in _CONTEXT_WORD.findall(lower)]


class InferredType(NamedTuple):
    """A memory type, the step of the cascade that decided it, and the confidence of that step."""

    kind: str
    by: str
    confidence: float


UNKNOWN_TYPE = InferredType("declarative", "default", 0.5)


def memory_type(declared: str, tier: Tier | None, key: str, title: str, triggers: tuple[str, ...]) -> InferredType:
    """Infer one of `MEMORY_TYPES` by the first of five steps that applies.

    The steps are: declared type (1.0), tier (0.9), path (0.8), words of title and triggers (0.7), default (0.5). Of
    several matching rules, the path step prefers the deepest match and the word step the most matched characters, so
    that "next steps" outweighs "steps".

    Args:
        declared: The declared type, "" if none.
        tier: The declared tier; the normal tier implies no type.
        key: The key of the document.
        title: Its title.
        triggers: Its trigger phrases.

    Returns:
        The type, the name of the step and its confidence.
    """
    if declared in MEMORY_TYPES:
        return InferredType(declared, "declared", 1.0)
    if tier in _TYPE_OF_TIER:
        return InferredType(_TYPE_OF_TIER[tier], "tier", 0.9)
    path = without_suffix(key).casefold()
    if _ANY_OF_PATH.search(path):  # one pattern instead of nine where none of them matches
        positions = {kind: max((m.start() for m in rule.finditer(path)), default=-1) for rule, kind in _TYPE_OF_PATH}
        return InferredType(max(positions, key=positions.__getitem__), "path", 0.8)
    words = "\n".join((title, *triggers)).casefold()
    if not _ANY_OF_WORDS.search(words):
        return UNKNOWN_TYPE
    # Score of a type: the number of characters that its words match.
    said = {kind: sum(map(len, rule.findall(words))) for rule, kind in _TYPE_OF_WORDS}
    return InferredType(max(said, key=said.__getitem__), "words", 0.7)


def document_type(key: str) -> str:
    """Return "constitutional", "scratch", one of `SPEC_DOCUMENTS` (below specs/, outside memory/), else "memory"."""
    if not any(folder in key for folder in ("constitutional", "scratch", "specs")):
        return "memory"
    path = PurePosixPath(key)
    folders = path.parts[:-1]
    if "constitutional" in folders:
        return "constitutional"
    if "scratch" in folders:
        return "scratch"
    if "specs" in folders and "memory" not in folders:
        return SPEC_DOCUMENTS.get(path.name, "memory")
    return "memory"


def spec_level(kind: str, text: str, siblings: Callable[[], Set[str]]) -> int | None:
    """Return the level of a spec document: its SPECKIT_LEVEL mark, else 1 to 3 by its siblings; None for other kinds.

    `siblings` lists the names of all files in the document's folder; it is only called if there is no mark.
    """
    if kind not in SPEC_DOCUMENTS.values():
        return None
    if match := _LEVEL.search(text, 0, _LEVEL_MARK_WITHIN):
        return int(match[1])
    names = siblings()
    return 3 if "decision-record.md" in names else 2 if "checklist.md" in names else 1
