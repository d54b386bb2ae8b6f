"""The store that the tools share: opened by the first call that needs it, by one thread, however many ask at once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from speckit_memory.config.files.paths import is_file, is_there, named_path, resolved
from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES
from speckit_memory.config.workspace.settings import ROOT_VARIABLE, Settings
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.pipeline.process.cancellation import require_wanted
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.missing_store import no_store, why_not_create
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_cache import SECONDS, AnswerCache
from speckit_memory.server.replies.call_progress import Progress, tell

if TYPE_CHECKING:
    from speckit_memory.engine import Memory

WARM_UP = "warm up"
NO_WORKSPACE = "E015"
"""The code of what is asked before a client has chosen among several."""
_ELSEWHERE = (
    "set SPECKIT_ROOT to the project's folder where the client configures this server",
    "ask the user to run `speckit-memory init` in the project's folder",
)


class Workspace:
    """Opens the memory when it is first needed: numpy and the models must not delay the handshake (feature T27)."""

    def __init__(
        self,
        opener: Callable[[bool], Memory],
        config: Settings | None,
        *,
        cache_seconds: float = SECONDS,
        name: str = "",
    ) -> None:
        """`opener` is told whether it may create the store; when it raises, the next call tries again. An answer is
        given again for so many seconds while nothing changes; 0 for never. It has a `name` where there are several."""
        self.name = name
        self.answers = AnswerCache(lambda: self.memory().standing(), cache_seconds)
        self._opener = opener
        self._settings = config
        self._lock = Lock()
        self._warming = Lock()
        self._memory: Memory | None = None
        self._counting = Lock()  # its own: who counts must not wait for who opens
        self._users = 0
        self._used_at = time.monotonic()
        self.closing = Event()

    @property
    def _config(self) -> Settings:
        """The settings that the workspace was made with: its folder and its store stay what they are."""
        assert self._settings is not None  # or somebody else knows them
        return self._settings

    @property
    def config(self) -> Settings:
        """Where the store and the documents are, and the pipeline in force."""
        return self._config if self._memory is None else self._memory.settings

    @property
    def has_store(self) -> bool:
        """Whether there is a file to open."""
        return store_is_there(self._config.db)

    @property
    def is_open(self) -> bool:
        """Whether somebody needed the store already."""
        return self._memory is not None

    def config_hash(self) -> str:
        """The hash of the pipeline in force, "" before somebody needed the store: what the log names a call by."""
        memory = self._memory
        return memory.pipeline.hash if memory else ""

    def memory(self, create: bool = False) -> Memory:
        """The open memory. Raises E010 when there is no store, unless one may be created, and is.

        That holds for a store too which was deleted while it was open.
        """
        with self._lock:
            if self._memory is None:
                began = time.time()
                self._memory = self._open(create)
                self._memory.keep_maintained()
                self._memory.follow_files(began)
            elif not store_is_there(self._config.db):
                self._require_creation(create)
                self._memory.make_again()
            memory = self._memory
        memory.look_at_files()  # outside: others need not wait while a changed pipeline is built
        return memory

    @contextmanager
    def in_use(self, *, asked: bool = True) -> Iterator[None]:
        """The store stays open for as long as this lasts, whatever it waits for, and for a while after it unless
        nobody has `asked` for it."""
        with self._counting:
            self._users += 1
        try:
            yield
        finally:
            with self._counting:
                self._users -= 1
                if asked:
                    self._used_at = time.monotonic()

    def close_if_idle(self, seconds: float) -> bool:
        """Closes the store when its last use ended so long ago, and forgets what was asked; whether it did.

        The next call opens it anew. Raises E022 when a thread is inside a query all the same; the store is closed
        when that has ended.
        """
        with self._lock:
            with self._counting:
                idle = not self._users and time.monotonic() - self._used_at >= seconds
            if self._memory is None or not idle:
                return False
            memory, self._memory = self._memory, None
        self.answers.clear()
        memory.close()
        return True

    def _open(self, create: bool) -> Memory:
        try:
            return self._opener(False)
        except SpeckitError as error:
            if error.code != "E010":
                raise
        self._require_creation(create)
        return self._opener(True)

    def _require_creation(self, create: bool) -> None:
        """Raises E010 unless the store, which is not there, may be made."""
        if reason := why_not_create(self._config):
            raise no_store(self._config, _ELSEWHERE, f", and {self._config.root} is no workspace: {reason}")
        if not create:
            raise no_store(self._config, ("call memory_index_scan, or memory_save for one file",))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has; estimated while there is no open memory, as after a failure to open it."""
        if self._memory is not None:
            return self._memory.count_tokens(texts)
        from speckit_memory.memory.models.embedders import (
            counted_tokens,  # loads numpy, which must not delay the handshake
        )

        return counted_tokens(texts)

    def warm_up(self) -> None:
        """Does ahead of time what the first search would wait for.

        A failure is logged; the first search tells the client.
        """
        with self._warming, logs.about(self.name):
            if self.closing.is_set():
                return
            try:
                # not a search: nobody asked, and what is served counts as used
                memory = self.memory()
                memory.plan(WARM_UP)
                memory.embedder.embed_query(WARM_UP)
                memory.count_tokens([WARM_UP])
                memory.load_vectors()
            except SpeckitError as error:
                logs.event("not ready", problems=[str(problem) for problem in error.problems])
            except BaseException as error:  # a component's; nobody waits for this thread
                logs.event("not ready", problems=[str(internal(error))])

    def _inside(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """A path of the workspace, made absolute, and its parts below the root. Raises E014 for any other."""
        root = resolved(self._config.root)
        led = resolved(named_path(root / path))
        if not led.is_relative_to(root):
            raise SpeckitError(
                "E014",
                f"'{path}' is outside the workspace '{root}'",
                hint="Only files of the workspace can be remembered.",
                actions=("give a path inside the workspace", "set SPECKIT_ROOT to a folder that holds the file"),
            )
        return led, led.relative_to(root).parts

    def _require_open(self, path: str, parts: tuple[str, ...], is_folder: bool) -> None:
        """Raises E014 for a path where nothing is indexed, unless somebody named it at the command line."""
        from speckit_memory.config.workspace.workspace_file import load_workspace_config
        from speckit_memory.memory.scanning.selection import (  # loads numpy, which must not delay the handshake
            DOCUMENT_FOLDERS,
            SKIPPED_FOLDERS,
            refusal,
        )

        reason = refusal(parts, is_folder, load_workspace_config(self._config.root).sources)
        if not reason or self._named_before(parts, is_folder):
            return
        raise SpeckitError(
            "E014",
            f"'{path}' is {reason}",
            hint=(
                f"Not indexed are {', '.join(sorted(SKIPPED_FOLDERS))} and hidden folders but "
                f"{', '.join(sorted(DOCUMENT_FOLDERS))}."
            ),
            actions=("choose another path", "name the hidden folder under sources.include in .speckit/config.yaml"),
        )

    def _named_before(self, parts: tuple[str, ...], is_folder: bool) -> bool:
        """Whether a path is a source, or nothing but a source's name keeps it from being taken."""
        from speckit_memory.config.workspace.workspace_file import SourcePatterns
        from speckit_memory.memory.scanning.selection import refusal

        if not store_is_there(self._config.db):
            return False
        sources = [tuple(name.split("/")) for name in self.memory().sources() if name]
        return any(
            parts[: len(name)] == name and not refusal(parts[len(name) :], is_folder, SourcePatterns())
            for name in sources
        )

    def folder(self, path: str) -> Path:
        """A folder of the workspace, made absolute: what an index run of all of it would enter. Raises E014 else."""
        folder, parts = self._inside(path)
        if is_file(folder):
            raise SpeckitError("E014", f"'{path}' is a file", actions=("remember one file with memory_save",))
        self._require_open(path, parts, is_folder=True)
        return folder

    def document(self, path: str) -> Path:
        """A document of the workspace, made absolute: what an index run would take. Raises E014 for any other path."""
        file, parts = self._inside(path)
        self._require_open(path, parts, is_folder=False)
        if file.suffix.lower() not in DOCUMENT_SUFFIXES:
            raise SpeckitError(
                "E014",
                f"'{path}' is not a document",
                hint=f"Documents are {', '.join(sorted(DOCUMENT_SUFFIXES))} files.",
            )
        return file

    def key(self, path: Path) -> str:
        """The key of a document of the workspace, as `document` made it absolute."""
        return path.relative_to(resolved(self._config.root)).as_posix()

    def memory_to_fill(self, path: Path) -> Memory:
        """The memory, created for the sake of a path that is there. Raises E010 when it is not: a store made in vain
        would be worse than none."""
        if path == path.parent and not self._config.environ.get(ROOT_VARIABLE):
            message = "the whole file system is no workspace"
            raise SpeckitError("E014", message, hint="The server was started in /.", actions=_ELSEWHERE)
        if not store_is_there(self._config.db) and not is_there(path):
            from speckit_memory.memory.scanning.missing_paths import missing_path

            root = resolved(self._config.root)
            raise SpeckitError.of([missing_path(path.relative_to(root).as_posix(), root)])
        return self.memory(create=True)

    def on_progress(self, progress: Progress) -> None:
        """A progress callback that tells the client how far a long piece of work is, and ends that at its next step
        once the server shuts down, or the client has taken the call back."""
        if self.closing.is_set():
            raise SpeckitError("E081", "the server is shutting down")
        require_wanted()
        tell(progress)

    def finish(self, tools_running: int) -> None:
        """Closes the store before the process ends, unless somebody still uses it.

        Pipelines that run beside searches and have not come to it are waited for a moment.

        Whoever still does loses nothing: a transaction is complete or was never begun.
        """
        self.closing.set()
        if self._memory is None:
            return
        self._memory.end_shadows()
        self._memory.end_extensions()
        if tools_running or self._warming.locked():
            self._memory.write_notes()  # of answers that were given: a short session ends while the server warms up
        else:
            self._memory.close()
