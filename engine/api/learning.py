"""The operations on learned data: task records, judgements, and phrases learned from selections."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass

from speckit_memory.engine.answers.request import normalised_folder
from speckit_memory.engine.recording.screening import storable
from speckit_memory.engine.runtime.open_store import OpenStore
from speckit_memory.engine.session.store_session import StoreSession
from speckit_memory.engine.session.usage_events import note_validated
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.intake.secrets import identifier
from speckit_memory.memory.lifecycle import tasks, validations
from speckit_memory.memory.lifecycle.epistemic import TaskScores
from speckit_memory.memory.lifecycle.tasks import Task, TaskHistory
from speckit_memory.memory.store.reading import reader
from speckit_memory.memory.store.tables.memories import judgements
from speckit_memory.memory.store.tables.memories.judgements import Judgement


@dataclass(eq=False)
class LearningService:
    """The operations that record what was known before a task and learned from it."""

    session: StoreSession

    def preflight(
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
        place, scores = _place(folder, task), TaskScores(knowledge, uncertainty, context)
        begun = tasks.Task(*place, identifier(session), scores, storable(tuple(gaps), self.session.root), time.time())
        return self.session.write(lambda opened: tasks.preflight(opened.database, begun), create=True)

    def postflight(
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
        place, scores = _place(folder, task), TaskScores(knowledge, uncertainty, context)
        closed, new = (storable(tuple(gaps), self.session.root) for gaps in (gaps_closed, new_gaps))
        return self.session.read(
            lambda opened: tasks.postflight(
                opened.database, *place, scores, gaps_closed=closed, new_gaps=new, now=time.time()
            ),
        )

    def history(self, folder: str, *, session: str = "", limit: int = 10, only_complete: bool = False) -> TaskHistory:
        """The latest tasks of a folder, with means and trend over all of its tasks (M15).

        Args:
            folder: The folder of the tasks.
            session: Only tasks of this session; "" for all.
            limit: Maximum number of tasks, 1 to 100.
            only_complete: Leave out tasks without a postflight record.

        Raises:
            SpeckitError: E032 for a limit out of range.
        """
        wanted = identifier(normalised_folder(folder))
        return self.session.read(
            lambda opened: tasks.history(
                opened.database, wanted, session=identifier(session), limit=limit, only_complete=only_complete
            )
        )

    def last_task(self, folder: str = "", session: str = "") -> Task | None:
        """The latest task in or below a folder ("" for anywhere), those of this session first. None if there is
        none."""
        wanted = identifier(normalised_folder(folder)) if folder else ""
        return self.session.read(lambda opened: tasks.last(opened.database, wanted, identifier(session)))

    def validate(
        self, name: int | str, *, useful: bool, promote: bool = False, session: str = ""
    ) -> validations.ValidationResult:
        """Records that a memory was useful or not, which raises or lowers its confidence (feature F17).

        A useful memory that was archived is restored as by `lifecycle.unarchive`. `judgements` lists the judgement,
        `undo_judgements` reverts it.

        Args:
            name: The memory, by id or key.
            useful: Whether it was useful.
            promote: Make the memory critical afterwards.
            session: The session that judges.

        Raises:
            SpeckitError: E080 if there is no such memory; E082 if it may not be promoted, and then nothing is recorded.
        """

        def judge(opened: OpenStore) -> validations.ValidationResult:
            judged = validations.validate(
                opened.database, name, useful, promote=promote, now=time.time(), session=identifier(session)
            )
            if useful:
                note_validated(opened, judged.id)
            return judged

        return self.session.write(judge, repeatable=False)  # a repetition would count the judgement twice

    def promote(self, name: int | str, *, session: str = "") -> validations.ValidationResult:
        """Makes a memory critical if readers found it useful often enough; `session` is recorded. Raises E080, E082."""
        return self.session.write(
            lambda opened: validations.promote(opened.database, name, now=time.time(), session=identifier(session)),
            repeatable=False,
        )

    def judgements(
        self, name: int | str | None = None, *, session: str = "", limit: int = 100
    ) -> tuple[Judgement, ...]:
        """The latest judgements and promotions, with time, session and effect (feature F17).

        Restricted to a memory, by id or key, or to a session, if given. The last 200 events of each memory are kept,
        including uses after the first judgement. Raises E080, and E032 for a limit that is not positive.
        """
        if limit < 1:
            raise SpeckitError("E032", f"the limit is {limit}", hint="accepted: 1 and more")

        def found(opened: OpenStore) -> tuple[Judgement, ...]:
            with opened.database.snapshot_read() as connection:
                memory = None if name is None else reader.get_memory(connection, name).id
                return tuple(judgements.judgements(connection, memory=memory, session=identifier(session), limit=limit))

        return self.session.read(found)

    def undo_judgements(
        self, numbers: Sequence[int] = (), *, name: int | str | None = None, session: str = ""
    ) -> validations.UndoneJudgements:
        """Reverts judgements and promotions: by numbers from `judgements`, all or none; or all of a memory, a session,
        or both.

        The memory is left as if they had never been given: later judgements and reviews are replayed, and a promotion
        is reverted if too little trust remains. No record is deleted. Raises E080 for unknown ones, and E030 for ones
        already reverted and for an ambiguous call.
        """
        if bool(numbers) is (name is not None or session != ""):
            raise SpeckitError("E030", "name either the judgements, or the memory or session they belong to")

        def take(opened: OpenStore) -> validations.UndoneJudgements:
            if numbers:
                return validations.undo(opened.database, list(dict.fromkeys(numbers)), now=time.time())
            return validations.undo_all(opened.database, name=name, session=identifier(session), now=time.time())

        return self.session.write(take, repeatable=False)


def _place(folder: str, task: str) -> tuple[str, str]:
    """Folder and task as identifiers: control characters escaped, secrets masked. Raises E014 outside the workspace."""
    below = normalised_folder(folder)
    if ".." in below.split("/"):
        raise SpeckitError("E014", f"the folder '{below}' is outside the workspace")
    return identifier(below), identifier(task.strip())
