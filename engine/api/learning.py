"""What a memory learns beside documents: what tasks taught, and what selections did."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from speckit_memory.config.workspace.settings import Settings
from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.recording.screening import storable
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.reopening import Following
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase

if TYPE_CHECKING:
    from speckit_memory.memory.lifecycle.tasks import Task, TaskHistory
    from speckit_memory.memory.lifecycle.validations import UndoneJudgements
    from speckit_memory.memory.store.tables.memories.judgements import Judgement
    from speckit_memory.memory.store.tables.sessions.selections import LearnedPhrase


class Learning(ABC):
    """The operations that record what is known, before and after."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    @abstractmethod
    def _followed(self) -> Following:
        """The open store."""

    def task_preflight(
        self,
        folder: str,
        task: str,
        *,
        knowledge: int,
        uncertainty: int,
        context: int,
        gaps: Sequence[str] = (),
        session: str = "",
    ) -> Task:
        """Records what is known before a task of a folder, each score from 0 to 100 (feature M15).

        A repetition takes the place of the earlier record until the task is complete, but for gaps and session where it
        names none. Raises E030 to E032 with all that is wrong, and E084 for a task that is complete.
        """
        from speckit_memory.memory.lifecycle import tasks  # a search has no use for it
        from speckit_memory.memory.lifecycle.epistemic import TaskScores

        place, scores = _place(folder, task), TaskScores(knowledge, uncertainty, context)
        begun = tasks.Task(*place, identifier(session), scores, storable(tuple(gaps), self.settings.root), time.time())
        return self._followed.run(lambda opened: tasks.preflight(opened.database, begun), writes=True)

    def task_postflight(
        self,
        folder: str,
        task: str,
        *,
        knowledge: int,
        uncertainty: int,
        context: int,
        gaps_closed: Sequence[str] = (),
        new_gaps: Sequence[str] = (),
    ) -> Task:
        """Completes the record of a task: `learned` of what comes back tells what it has taught (feature M15).

        A repetition corrects the one before. Raises E030 to E032 with all that is wrong, and E010 without a record of
        what was known before.
        """
        from speckit_memory.memory.lifecycle import tasks
        from speckit_memory.memory.lifecycle.epistemic import TaskScores

        place, scores = _place(folder, task), TaskScores(knowledge, uncertainty, context)
        closed, new = (storable(tuple(gaps), self.settings.root) for gaps in (gaps_closed, new_gaps))
        return self._followed.run(
            lambda opened: tasks.postflight(
                opened.database, *place, scores, gaps_closed=closed, new_gaps=new, now=time.time()
            ),
        )

    def learning_history(
        self, folder: str, *, session: str = "", limit: int = 10, only_complete: bool = False
    ) -> TaskHistory:
        """The latest tasks of a folder, of one session or of all (""), with means and trend over all of them (M15).

        Raises E032 for a limit outside 1 to 100.
        """
        from speckit_memory.memory.lifecycle import tasks

        wanted = identifier(normalised_folder(folder))
        return self._followed.run(
            lambda opened: tasks.history(
                opened.database, wanted, session=identifier(session), limit=limit, only_complete=only_complete
            )
        )

    def last_task(self, folder: str = "", session: str = "") -> Task | None:
        """The task that was last begun or completed in a folder or below it, anywhere for ""; one of this session
        before those of others. None where no task was recorded."""
        from speckit_memory.memory.lifecycle import tasks

        wanted = identifier(normalised_folder(folder)) if folder else ""
        return self._followed.run(lambda opened: tasks.last(opened.database, wanted, identifier(session)))

    def learned(self) -> LearnedPhrases:
        """The trigger phrases that were learned from selections and count now, with what taught them (feature M12)."""
        from speckit_memory.memory.lifecycle import learned_triggers
        from speckit_memory.memory.store.tables.sessions import selections

        def found(opened: OpenStore) -> LearnedPhrases:
            now = time.time()
            with opened.database.snapshot_read() as connection:
                stands = learned_triggers.phase(connection, now)
                return LearnedPhrases(
                    tuple(selections.learned(connection, now)),
                    stands.learns,
                    stands.pairs,
                    stands.pairs_wanting,
                    stands.seconds_wanting,
                    opened.recorder.wanted.texts,
                )

        return self._followed.run(found)

    def unlearn(self, name: int | str | None = None, phrase: str = "") -> tuple[LearnedPhrase, ...]:
        """Takes learned phrases away, for good: those of a memory by id or key, or of all memories (None); this phrase
        alone, or every one (""). Returns what was taken. Raises E080.
        """
        from speckit_memory.memory.store.reading import reader
        from speckit_memory.memory.store.tables.sessions import selections

        def take(opened: OpenStore) -> tuple[LearnedPhrase, ...]:
            now, wanted = time.time(), normalised_phrase(phrase)
            with opened.database.write() as txn:
                memory = None if name is None else reader.get_memory(txn.connection, name).id
                going = [
                    one
                    for one in selections.learned(txn.connection, now)
                    if memory in (None, one.memory) and wanted in ("", one.phrase)
                ]
                for one in going:
                    selections.unlearn(txn, one.memory, one.phrase, now)
            return tuple(going)

        return self._followed.run(take, repeatable=False)

    def judgements(
        self, name: int | str | None = None, *, session: str = "", limit: int = 100
    ) -> tuple[Judgement, ...]:
        """What was judged useful or not and what was promoted, when, by which session, and what it did: the last first,
        of a memory by id or key or of all, by one session or by all (feature F17).

        Of each memory the last 200 are kept, uses after the first judgement counted in. Raises E080, and E032 for a
        limit that is not positive.
        """
        from speckit_memory.memory.store.reading import reader
        from speckit_memory.memory.store.tables.memories import judgements

        if limit < 1:
            raise SpeckitError("E032", f"the limit is {limit}", hint="accepted: 1 and more")

        def found(opened: OpenStore) -> tuple[Judgement, ...]:
            with opened.database.snapshot_read() as connection:
                memory = None if name is None else reader.get_memory(connection, name).id
                return tuple(judgements.judgements(connection, memory=memory, session=identifier(session), limit=limit))

        return self._followed.run(found)

    def undo_judgements(
        self, numbers: Sequence[int] = (), *, name: int | str | None = None, session: str = ""
    ) -> UndoneJudgements:
        """Takes judgements and promotions back: by the numbers that `judgements` tells, all or none; or all of a memory
        by id or key, of a session, or of a session about a memory.

        The memory is then as if they had never been given: later judgements and reviews are lived through once more,
        and a promotion for which too little trust is left goes too. Nothing of the record is deleted. Raises E080 for
        what there is not, and E030 for what was taken back before and where it is not said what is meant.
        """
        from speckit_memory.memory.lifecycle import validations

        if bool(numbers) is (name is not None or session != ""):
            raise SpeckitError("E030", "say which judgements, or of which memory or session: one of the two")

        def take(opened: OpenStore) -> UndoneJudgements:
            if numbers:
                return validations.undo(opened.database, list(dict.fromkeys(numbers)), now=time.time())
            return validations.undo_all(opened.database, name=name, session=identifier(session), now=time.time())

        return self._followed.run(take, repeatable=False)


@dataclass(frozen=True, slots=True)
class LearnedPhrases:
    """What was learned from selections, and where learning stands.

    It `learns` once enough `pairs` of a query and a memory have been seen for long enough; what is wanting is told in
    pairs and seconds. Without `texts` of questions nothing can be learned.
    """

    phrases: tuple[LearnedPhrase, ...]
    learns: bool
    pairs: int
    pairs_wanting: int
    seconds_wanting: float
    texts: bool


def _place(folder: str, task: str) -> tuple[str, str]:
    """A folder and a task as records name them: what no file could hold is spelled out, and a secret has a name in its
    place. Raises E014 for a folder that leads out of the workspace."""
    below = normalised_folder(folder)
    if ".." in below.split("/"):
        raise SpeckitError("E014", f"the folder '{below}' leads out of the workspace")
    return identifier(below), identifier(task.strip())
