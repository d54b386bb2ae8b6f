"""Records what became of answers: rows that reached their reader, and texts that were opened (features M2 and T28)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.engine.answers.results import SearchResult
from speckit_memory.engine.recording import session_events
from speckit_memory.engine.session import usage_events
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.errors import SpeckitError

if TYPE_CHECKING:
    from speckit_memory.engine.search.reading import TextExcerpt


@dataclass(eq=False)
class FeedbackService:
    """Records the use of memories, which later answers and comparisons of pipelines read."""

    session: StoreSession

    def delivered(self, result: SearchResult, count: int | None = None) -> str:
        """Records that the first `count` results (all by default) have reached the caller.

        Their usage is counted, the session attends to them and will not be sent them again, and memories that were
        shown with their whole text or sections count as opened. Call it with the number of rows that were really shown.
        Usage and comparison records are written shortly afterwards, outside the request. Returns a warning if the
        session could not be updated, else "".
        """
        outcome, opened = result.outcome, self.session.opened
        if result.origin != opened.name:
            return ""  # its ids are those of another store
        memories = [row.id for row in result.results[:count] if not row.repeated]
        opened.usage.note(memories, outcome.query.now, result.opened(count))
        pipeline = self.session.configuration.answered(result).runner.pipeline
        usage_events.note_answer(opened, pipeline, result, count)
        if self.session.configuration.now.replays is not None:
            self.session.upkeep.saved()
        remembered = any(step.about.looks_back for step in pipeline.annotate)
        shown = len(result.results) if count is None else count
        try:
            session_events.record_served(opened.database, result, shown, remembered=remembered)
        except SpeckitError as error:
            return f"this answer could not be recorded in the session, so it may be repeated: {error}"
        return ""

    def opened(self, reading: TextExcerpt, *, session: str = "") -> None:
        """Records that a reading was shown, which counts as opening the memory (features M2 and T28).

        The memory is retained longer, and if an answer contained it, the reader chose it there. The session attends to
        it (feature M4) and was sent the text (feature A2). Call it with the text that is really shown; usage is written
        shortly afterwards.
        """
        if self.session.opened.name == reading.origin:  # else its id is that of another store
            usage_events.note_read(self.session.opened, reading.memory.id, reading.text, session)

    def write(self) -> None:
        """Writes pending usage counts and observations now; otherwise a thread writes them within seconds."""
        opened = self.session.opened
        opened.usage.write()
        opened.recorder.write()
