"""Cleans a document on intake and reports the changes: secrets, recalled text, quality (I9, I10)."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace

from speckit_memory.config.workspace.options import SavingRules
from speckit_memory.errors import Problem, Where
from speckit_memory.memory.intake import quality, secrets, self_quotes
from speckit_memory.memory.intake.quality import DocumentQuality
from speckit_memory.memory.intake.secrets import Secret
from speckit_memory.memory.intake.self_quotes import SelfQuote
from speckit_memory.memory.intake.source import Source
from speckit_memory.memory.parsing import generated
from speckit_memory.memory.parsing.classify import UNKNOWN_TYPE, InferredType
from speckit_memory.memory.parsing.markdown import anchors
from speckit_memory.memory.parsing.markdown.anchors import Section

SECRET_CODE = "E097"
RECALLED_CODE = "E098"
REMARKS = frozenset({SECRET_CODE, RECALLED_CODE})
"""Codes of omissions from a document, which do not prevent saving it."""


@dataclass(slots=True)
class Intake:
    """The changes made to one document on intake. Secrets are recorded by kind and line, never by content."""

    secrets: tuple[Secret, ...] = ()
    suspicions: tuple[Secret, ...] = ()
    """Possible secrets, which are stored."""
    recalled: tuple[SelfQuote, ...] = ()
    quality: DocumentQuality | None = None
    memory_type: InferredType = UNKNOWN_TYPE
    only_recalled: bool = False
    """Whether the document holds only text recalled from an answer."""
    only_generated: bool = False
    """Whether the document holds only text that `init` wrote for agents."""

    def text(self, text: str, rules: SavingRules) -> str:
        """Return the text to store, with the same number of lines."""
        own = generated.leave_out(text)
        self.only_generated = own != text and not own.strip()
        kept, self.recalled = self_quotes.leave_out(own)
        self.only_recalled = bool(self.recalled) and not kept.strip()
        if rules.secrets == "keep":
            return kept
        kept, self.secrets, self.suspicions = secrets.examine(kept, addresses=rules.secrets == "all")
        return kept

    def metadata(self, text: str, rules: SavingRules) -> str:
        """Return the text of the metadata file to store; its secrets are recorded for line 1."""
        if rules.secrets == "keep":
            return text
        kept, found = secrets.redact(text, addresses=rules.secrets == "all")
        self.secrets += tuple(secret._replace(line=1) for secret in found)
        return kept

    def source(self, source: Source, rules: SavingRules) -> Source:
        """Return the source with title and trigger phrases to store; their secrets are recorded for line 1."""
        if rules.secrets == "keep" or not (source.title or source.triggers):
            return source
        addresses = rules.secrets == "all"
        title, found = secrets.redact(source.title, addresses=addresses) if source.title else (source.title, ())
        phrases = [secrets.redact(phrase, addresses=addresses) for phrase in source.triggers]
        self.secrets += (*found, *(secret for _, more in phrases for secret in more))
        return replace(source, title=title, triggers=tuple(phrase for phrase, _ in phrases))

    def mended(
        self,
        triggers: tuple[str, ...],
        sections: tuple[Section, ...],
        broken: int,
        body: str,
        title: str,
        key: str,
        rules: SavingRules,
    ) -> tuple[tuple[str, ...], tuple[Section, ...]]:
        """Assess the quality of a document, and mend it below the pass mark.

        Mending stops after `quality.MOST_ATTEMPTS` attempts, or when one changes nothing.

        Args:
            triggers: The declared trigger phrases.
            sections: The well-formed sections.
            broken: The number of broken anchor tags.
            body: The text of the document.
            title: Its title, which does not become a trigger phrase.
            key: Its key.
            rules: With quality "report", nothing is mended.

        Returns:
            The trigger phrases and sections to store.
        """
        found = quality.assess(len(triggers), len(sections), broken, body)
        done: list[str] = []
        attempts = 0
        # Each attempt adds trigger phrases from headings and closes open sections, then scores again.
        while not found.passed and rules.quality != "report" and attempts < quality.MOST_ATTEMPTS:
            more = (
                quality.triggers_of_headings(body, (title, *triggers))
                if len(triggers) < quality.ENOUGH_TRIGGERS
                else ()
            )
            closed = anchors.find(body, key, closing_open=True)[0] if broken else sections
            if not more and len(closed) == len(sections):
                break
            attempts += 1
            if more:
                done.append(f"{len(more)} trigger phrases taken from headings: {', '.join(more)}")
            if len(closed) > len(sections):
                done.append(f"{len(closed) - len(sections)} open sections closed where the next one begins")
            broken -= len(closed) - len(sections)
            triggers, sections = (*triggers, *more), closed
            found = quality.assess(len(triggers), len(sections), broken, body)
        self.quality = replace(found, mended=tuple(done), attempts=attempts)
        return triggers, sections

    def redacted(self) -> dict[str, int]:
        """Return the number of redacted secrets by kind."""
        return dict(Counter(kind for kind, _ in self.secrets))

    def problems(self, key: str) -> list[Problem]:
        """Return the problems that report the secrets and the recalled text of a document."""
        told = [
            Problem(SECRET_CODE, f"{kind} left out of the stored text", where=Where(key, line, 1))
            for kind, line in self.secrets
        ]
        told += [
            Problem(SECRET_CODE, f"{kind} may be a secret, but stay in the stored text", where=Where(key, line, 1))
            for kind, line in self.suspicions
        ]
        return told + [
            Problem(
                RECALLED_CODE,
                f"lines {block.first_line} to {block.last_line} were copied from an answer"
                f"{f' about {block.source}' if block.source else ''} and are left out of the stored text",
                where=Where(key, block.first_line, 1),
            )
            for block in self.recalled
        ]
