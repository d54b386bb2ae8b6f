"""Classifies the purpose of a query: one of seven intents, by key words and phrases."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from speckit_memory.pipeline.model.columns import INTENTS, Plan, Query
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import About, NoParams

_BETWEEN = ".*"


class _Phrase:
    """A regular expression, or two with any text of the same line between them, as in `move.*into`.

    The two are searched one after the other: a single expression would take time quadratic in the length of the text.
    """

    def __init__(self, phrase: str) -> None:
        self.expression = phrase
        """The whole pattern."""
        self.begins, _, last = phrase.partition(_BETWEEN)
        """The pattern up to any text, from a word's beginning on."""
        self._first = re.compile(self.begins)
        self._last = re.compile(last) if last else None

    def find(self, text: str) -> str | None:
        """The first match in a text, up to the last match of the second part in its line; None if there is none."""
        if self._last is None:
            found = self._first.search(text)
            return found.group() if found else None
        for line in text.split("\n"):
            if (begin := self._first.search(line)) and (ends := [*self._last.finditer(line, begin.end())]):
                return line[begin.start() : ends[-1].end()]
        return None


@dataclass(frozen=True, slots=True)
class _Intent:
    """The words and phrases that are evidence for an intent. Words are matched whole, with common suffixes."""

    words: frozenset[str]
    phrases: tuple[_Phrase, ...]


def _intent(words: str, *phrases: str) -> _Intent:
    return _Intent(frozenset(words.split()), tuple(map(_Phrase, phrases)))


SIGNS = {
    "add_feature": _intent(
        "add implement create build introduce extend support enable integrate feature capability new functionality",
        r"\b(?:add|implement|introduce)\s+(?:a |an |the |new |support)",
        r"\b(?:create|build|write)\s+(?:a |an )?new\b",
        r"\bhow (?:do|can|should) (?:i|we) (?:add|implement|extend|support)\b",
        r"\bnew (?:feature|endpoint|command|option|tool|channel)\b",
        r"\bset(?:ting)? up\b",
    ),
    "fix_bug": _intent(
        "bug fix error crash broken fail failure exception wrong regression traceback debug hang leak deadlock",
        r"\b(?:does|do|is|are|did)(?: not|n't) work",
        r"\bwhy (?:is|are|does|do|did)\b.*\b(?:fail|crash|break|broken|hang|wrong|slow|error)",
        r"\b(?:stack ?trace|error message|null pointer|segfault|timed? ?out)\b",
        r"\b(?:stops?|stopped|keeps?|kept) (?:working|failing|crashing|hanging)\b",
        r"\b(?:fix|debug|repair|resolve)\s+(?:a |an |the |this )?\w+",
        r"\bhow (?:do|can) (?:i|we) fix\b",
    ),
    "refactor": _intent(
        "refactor restructure simplify cleanup rename extract deduplicate modularise modularize split decouple rewrite",
        r"\bclean(?:ing)? up\b",
        r"\b(?:split|move|extract|pull)\b.*\b(?:into|out of|to its own)\b",
        r"\b(?:reduce|remove) (?:the )?(?:duplication|duplicate|complexity|coupling|dead code)\b",
        r"\bmake\b.*\b(?:simpler|cleaner|more readable|maintainable)\b",
        r"\btechnical debt\b",
    ),
    "security_audit": _intent(
        "security vulnerability audit exploit injection xss csrf cve threat attack permission secret leak sanitise "
        "sanitize encryption",
        r"\b(?:sql|command|prompt|code) injection\b",
        r"\b(?:security|access|permission) (?:review|audit|check|risk|hole|issue)",
        r"\b(?:is|are)\b.*\b(?:secure|safe|vulnerable|exploitable)\b",
        r"\b(?:leak|expose|exfiltrate)\w*\b.*\b(?:secret|token|credential|password|key)",
        r"\bpath traversal\b",
    ),
    "understand": _intent(
        "understand explain overview architecture works meaning purpose concept describe learn tour walkthrough",
        r"\bhow (?:does|do|is|are)\b.*\b(?:work|used|built|structured|organi[sz]ed|handled|computed|calculated)",
        r"\bwhat (?:is|are|does|do)\b",
        r"\b(?:explain|describe|walk me through|tell me about|show me how)\b",
        r"\bwhere (?:is|are|does|do)\b",
        r"\bwhat's the (?:purpose|point|idea|difference)\b",
        r"\boverview of\b",
    ),
    "find_spec": _intent(
        "spec specification requirement requirements prd acceptance criteria scope plan milestone",
        r"\b(?:spec|specification|requirements?|plan|tasks?|checklist) (?:for|of|about)\b",
        r"\b(?:find|show|open|locate|where is)\b.*\b(?:spec|specification|requirements?|plan)\b",
        r"\bacceptance criteri",
        r"\breq-?\d+",
        r"\bwhat (?:is|was) (?:planned|specified|required|in scope)\b",
    ),
    "find_decision": _intent(
        "decision decided decide rationale adr tradeoff chose choose alternative rejected reason reasoning why",
        r"\bwhy (?:did|do|are|have) (?:we|they|you)\b",
        r"\bwhy (?:was|were|is|are)\b.*\b(?:chosen|used|picked|selected|preferred|rejected|dropped|needed)\b",
        r"\b(?:decision|rationale|reasoning|trade-?offs?) (?:for|behind|about|on|record|to)\b",
        r"\b(?:chose|chosen|picked|prefer(?:red)?|instead of|rather than|over)\b.*\b(?:over|instead|than|because)\b",
        r"\bwhat (?:was|were|did)\b.*\b(?:decided|decide|agreed|chosen)\b",
    ),
}
"""The evidence for each intent (feature C8)."""

_BEGINNINGS = re.compile(
    r"\b(?:" + "|".join(phrase.begins.removeprefix(r"\b") for sign in SIGNS.values() for phrase in sign.phrases) + ")"
)
"""Matches wherever some phrase begins; most queries have none, and need no search for each of them."""

KEYWORD_WEIGHT = 0.6
PHRASE_WEIGHT = 0.4
UNKNOWN = "understand"
"""The intent of a query without any evidence; its confidence is 0."""

_WORD = re.compile(r"[^\W_]+")
_ENDING = re.compile(r"(?<=\w{3})(?:ies|es|s|ing|ed)$")


class Intent:
    """Classifies the query as one of seven intents by key words and by phrases.

    The evidence for an intent is 0.6·(1 − ½^w) + 0.4·(1 − ¼^p) for w different key words and p phrases. The confidence
    is the evidence of the best intent, times its share of all evidence, so that it is low if several intents have
    evidence. Below 0.3 channel weights remain static. Feature C8.
    """

    about = About(features=("C8",), finds_intent=True)
    Params = NoParams

    def __init__(self, params: NoParams) -> None:
        pass

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:  # noqa: ARG002 - only the text is used
        """The plan with the intent, its confidence and the evidence."""
        text = query.text.casefold().replace("’", "'")
        words = {form for word in _WORD.findall(text) for form in (word, _ENDING.sub("", word))}
        # Sorted, so that the reason reads the same in every process; sets of strings have no fixed order.
        hits = {name: sorted(SIGNS[name].words & words) for name in INTENTS}
        begun = _BEGINNINGS.search(text) is not None
        phrases = {name: _phrases_in(SIGNS[name].phrases, text) if begun else [] for name in INTENTS}
        evidence = {
            name: KEYWORD_WEIGHT * (1 - 0.5 ** len(hits[name])) + PHRASE_WEIGHT * (1 - 0.25 ** len(phrases[name]))
            for name in INTENTS
        }
        # max keeps the first of equal values: the order of INTENTS decides ties.
        best = max(evidence, key=lambda name: evidence[name])
        if not evidence[best]:
            return replace(plan, intent=UNKNOWN, intent_confidence=0.0, reasons=plan.because("intent: no evidence"))
        # evidence · (evidence / all evidence)
        confidence = evidence[best] ** 2 / sum(evidence.values())
        shown = ", ".join((*hits[best], *(f"'{phrase}'" for phrase in phrases[best])))
        reason = f"intent: {best} ({confidence:.2f}) because of {shown}"
        return replace(plan, intent=best, intent_confidence=confidence, reasons=plan.because(reason))


def _phrases_in(phrases: tuple[_Phrase, ...], text: str) -> list[str]:
    return [found for phrase in phrases if (found := phrase.find(text)) is not None]
