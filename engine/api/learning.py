"""The operations on learned data: task records, judgements, and phrases learned from selections."""

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
from speckit_memory.engine.session.reopening import ReopeningStore
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.store.tables.words.phrases import normalised_phrase

if TYPE_CHECKING:
    from speckit_memory.memory.lifecycle.tasks import Task, TaskHistory
    from speckit_memory.memory.lifecycle.validations import UndoneJudgements
    from speckit_memory.memory.store.tables.memories.judgements import Judgement
    from speckit_memory.memory.store.tables.sessions.selections import LearnedPhrase


class LearningOperations(ABC):
    """The operations that record what was known before a task and learned from it."""

    @property
    @abstractmethod
    def settings(self) -> Settings:
        """The settings in force."""

    @property
    @abstractmethod
    def _followed(self) -> ReopeningStore:
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
        """Records what is known before a task (feature M15).

        Until the task is complete, another call replaces the record, except for gaps and session if it gives none.

        Args:
            folder: The folder of the task.
            task: The name of the task.
            knowledge: From 0 to 100.
            uncertainty: From 0 to 100.
            context: From 0 to 100.
            gaps: Known gaps in the knowledge.
            session: The session that works on the task.

        Raises:
            SpeckitError: E030 to E032 with all problems; E084 for a completed task.
        """
        from speckit_memory.memory.lifecycle import tasks  # searches do not need it
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
        """Completes the record of a task (feature M15). Another call corrects the earlier one.

        Args:
            folder: The folder of the task.
            task: The name of the task.
            knowledge: From 0 to 100.
            uncertainty: From 0 to 100.
            context: From 0 to 100.
            gaps_closed: Gaps that the task has closed.
            new_gaps: Gaps that the task has revealed.

        Returns:
            The record; its `learned` is the gain of the task.

        Raises:
            SpeckitError: E030 to E032 with all problems; E010 if there is no preflight record.
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
        """The latest tasks of a folder, with means and trend over all of its tasks (M15).

        Args:
            folder: The folder of the tasks.
            session: Only tasks of this session; "" for all.
            limit: Maximum number of tasks, 1 to 100.
            only_complete: Leave out tasks without a postflight record.

        Raises:
            SpeckitError: E032 for a limit out of range.
        """
        from speckit_memory.memory.lifecycle import tasks

        wanted = identifier(normalised_folder(folder))
        return self._followed.run(
            lambda opened: tasks.history(
                opened.database, wanted, session=identifier(session), limit=limit, only_complete=only_complete
            )
        )

    def last_task(self, folder: str = "", session: str = "") -> Task | None:
        """The latest task in or below a folder ("" for anywhere), those of this session first. None if there is
        none."""
        from speckit_memory.memory.lifecycle import tasks

        wanted = identifier(normalised_folder(folder)) if folder else ""
        return self._followed.run(lambda opened: tasks.last(opened.database, wanted, identifier(session)))

    def learned(self) -> LearnedPhrases:
        """The active trigger phrases learned from selections, with the selections behind them (feature M12)."""
        from speckit_memory.memory.lifecycle import learned_triggers
        from speckit_memory.memory.store.tables.sessions import selections

        def found(opened: OpenStore) -> LearnedPhrases:
            now = time.time()
            with opened.database.snapshot_read() as connection:
                stands = learned_triggers.phase(connection, now)
                return LearnedPhrases(
                    tuple(selections.learned_phrases(connection, now)),
                    stands.learns,
                    stands.pairs,
                    stands.pairs_wanting,
                    stands.seconds_wanting,
                    opened.recorder.wanted.texts,
                )

        return self._followed.run(found)

    def unlearn(self, name: int | str | None = None, phrase: str = "") -> tuple[LearnedPhrase, ...]:
        """Deletes learned phrases permanently. Returns them. Raises E080.

        `name` restricts it to one memory, by id or key, and `phrase` to one phrase.
        """
        from speckit_memory.memory.store.reading import reader
        from speckit_memory.memory.store.tables.sessions import selections

        def take(opened: OpenStore) -> tuple[LearnedPhrase, ...]:
            now, wanted = time.time(), normalised_phrase(phrase)
            with opened.database.write() as txn:
                memory = None if name is None else reader.get_memory(txn.connection, name).id
                going = [
                    one
                    for one in selections.learned_phrases(txn.connection, now)
                    if memory in (None, one.memory) and wanted in ("", one.phrase)
                ]
                for one in going:
                    selections.unlearn(txn, one.memory, one.phrase, now)
            return tuple(going)

        return self._followed.run(take, repeatable=False)

    def judgements(
        self, name: int | str | None = None, *, session: str = "", limit: int = 100
    ) -> tuple[Judgement, ...]:
        """The latest judgements and promotions, with time, session and effect (feature F17).

        Restricted to a memory, by id or key, or to a session, if given. The last 200 events of each memory are kept,
        including uses after the first judgement. Raises E080, and E032 for a limit that is not positive.
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
        """Reverts judgements and promotions: by numbers from `judgements`, all or none; or all of a memory, a session,
        or both.

        The memory is left as if they had never been given: later judgements and reviews are replayed, and a promotion
        is reverted if too little trust remains. No record is deleted. Raises E080 for unknown ones, and E030 for ones
        already reverted and for an ambiguous call.
        """
        from speckit_memory.memory.lifecycle import validations

        if bool(numbers) is (name is not None or session != ""):
            raise SpeckitError("E030", "name either the judgements, or the memory or session they belong to")

        def take(opened: OpenStore) -> UndoneJudgements:
            if numbers:
                return validations.undo(opened.database, list(dict.fromkeys(numbers)), now=time.time())
            return validations.undo_all(opened.database, name=name, session=identifier(session), now=time.time())

        return self._followed.run(take, repeatable=False)


@dataclass(frozen=True, slots=True)
class LearnedPhrases:
    """The learned phrases, and the progress of learning.

    It `learns` once enough `pairs` of a query and a memory were seen for long enough; `pairs_wanting` and
    `seconds_wanting` are missing until then. Learning needs the recorded `texts` of queries.
    """

    phrases: tuple[LearnedPhrase, ...]
    learns: bool
    pairs: int
    pairs_wanting: int
    seconds_wanting: float
    texts: bool


def _place(folder: str, task: str) -> tuple[str, str]:
    """Folder and task as identifiers: control characters escaped, secrets masked. Raises E014 outside the workspace."""
    below = normalised_folder(folder)
    if ".." in below.split("/"):
        raise SpeckitError("E014", f"the folder '{below}' is outside the workspace")
    return identifier(below), identifier(task.strip())
