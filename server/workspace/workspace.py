"""The store shared by the tools: the first call that needs it opens it, in one thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from speckit_memory.config.files.paths import is_file, is_there, named_path, resolve_path
from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES
from speckit_memory.config.workspace.private_folders import closed_problem
from speckit_memory.config.workspace.settings import ROOT_VARIABLE, Settings
from speckit_memory.engine.background.gate import SERVING
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.guarding.store_file import store_is_there
from speckit_memory.pipeline.process.cancellation import require_wanted
from speckit_memory.server.console.failures import internal
from speckit_memory.server.console.missing_store import no_store, why_not_create
from speckit_memory.server.logging import logs
from speckit_memory.server.replies.answer_cache import SECONDS, AnswerCache
from speckit_memory.server.replies.call_progress import PhaseProgress, tell

if TYPE_CHECKING:
    from speckit_memory.engine import Memory
    from speckit_memory.engine.api.pipelines import StateToken

WARM_UP = "warm up"
NO_WORKSPACE = "E015"
"""The error code of requests before the client has chosen a workspace."""
_ELSEWHERE = (
    "set SPECKIT_ROOT to the project's folder where the client configures this server",
    "ask the user to run `speckit-memory init` in the project's folder",
)


class Workspace:
    """Opens the memory on first use, since numpy and the models must not delay the handshake (feature T27)."""

    def __init__(
        self,
        opener: Callable[[bool], Memory],
        config: Settings | None,
        *,
        cache_seconds: float = SECONDS,
        name: str = "",
    ) -> None:
        """`opener` takes whether it may create the store; if it raises, the next call tries again. Cached answers stay
        valid for `cache_seconds`, 0 for no cache. `name` is "" for a single workspace."""
        self.name = name
        self.answers = AnswerCache(self._standing, cache_seconds)
        self._opener = opener
        self._settings = config
        self._lock = Lock()
        self._warming = Lock()
        self._memory: Memory | None = None
        self._counting = Lock()  # a separate lock: counting must not wait for an opening
        self._users = 0
        self._used_at = time.monotonic()
        self.closing = Event()

    def _standing(self) -> StateToken | None:
        return self.memory().pipelines.standing()

    @property
    def _config(self) -> Settings:
        """The settings at construction; they fix the folder and the store."""
        assert self._settings is not None  # a subclass overrides this otherwise
        return self._settings

    @property
    def config(self) -> Settings:
        """The present settings: places of the store and the documents, and the pipeline."""
        return self._config if self._memory is None else self._memory.session.settings

    @property
    def has_store(self) -> bool:
        """Whether the store's file exists."""
        return store_is_there(self._config.db)

    @property
    def is_open(self) -> bool:
        """Whether the store has been opened."""
        return self._memory is not None

    def config_hash(self) -> str:
        """The hash of the pipeline in force, for the log; "" while the store is not open."""
        memory = self._memory
        return memory.pipelines.current.hash if memory else ""

    def memory(self, create: bool = False) -> Memory:
        """Returns the memory, opened if necessary. Raises E010 if there is no store and none may be created.

        A store that was deleted while open counts as missing; a request looks at its path once.
        """
        with self._lock:
            if self._memory is None:
                began = time.time()
                self._memory = self._open(create)
                self._memory.lifecycle.keep_maintained()
                # changes of the configuration files since `began` are noticed as well
                self._memory.pipelines.follow(began)
            elif create or not SERVING.has_checked(self):
                if not store_is_there(self._config.db):
                    self._require_creation(create)
                    self._memory.session.create_again()
                SERVING.note_checked(self)
            memory = self._memory
        memory.pipelines.reload()  # outside the lock: other calls need not wait while a changed pipeline is built
        return memory

    @contextmanager
    def in_use(self, *, asked: bool = True) -> Iterator[None]:
        """Keeps the store open inside the block and, if `asked`, restarts the idle time afterwards."""
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
        """Closes the store and clears the cache if the last use ended `seconds` ago; returns whether it did.

        The next call opens it again. Raises E022 if a thread is still inside a query; the store is closed when that
        ends.
        """
        with self._lock:
            with self._counting:
                idle = not self._users and time.monotonic() - self._used_at >= seconds
            if self._memory is None or not idle:
                return False
            # detach under the lock, close outside it: closing may take a while
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
        """Raises E010 unless the missing store may be created."""
        if reason := why_not_create(self._config):
            raise no_store(self._config, _ELSEWHERE, f", and {self._config.root} is not a workspace: {reason}")
        if not create:
            raise no_store(self._config, ("call memory_index_scan, or memory_save for one file",))

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """The number of tokens of each text; estimated while the memory is not open."""
        if self._memory is not None:
            return self._memory.models.count_tokens(texts)
        from speckit_memory.memory.models.embedders import (
            counted_tokens,  # loads numpy, which must not delay the handshake
        )

        return counted_tokens(texts)

    def warm_up(self) -> None:
        """Loads everything that the first search needs.

        Failures are logged; the first search reports them to the client.
        """
        with self._warming, self.in_use(), logs.about(self.name):
            if self.closing.is_set():
                return
            try:
                # not a search, whose results would count as used
                memory = self.memory()
                memory.explain.plan(WARM_UP)
                memory.models.embedder.embed_query(WARM_UP)
                memory.models.count_tokens([WARM_UP])
                memory.models.load_vectors()
            except SpeckitError as error:
                logs.event("not ready", problems=[str(problem) for problem in error.problems])
            except BaseException as error:  # may come from a component; no caller waits for this thread
                logs.event("not ready", problems=[str(internal(error))])

    def _inside(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """The absolute path and its parts below the root. Raises E014 for a path outside the workspace."""
        root = resolve_path(self._config.root)
        # resolve links before the check, so that a link cannot lead out of the workspace
        led = resolve_path(named_path(root / path))
        if not led.is_relative_to(root):
            raise SpeckitError(
                "E014",
                f"'{path}' is outside the workspace '{root}'",
                hint="Only files of the workspace can be saved.",
                actions=("give a path inside the workspace", "set SPECKIT_ROOT to a folder that contains the file"),
            )
        return led, led.relative_to(root).parts

    def _require_open(self, path: str, parts: tuple[str, ...], is_folder: bool) -> None:
        """Raises E014 for a path that is excluded from indexing, unless it is a source given on the command line."""
        from speckit_memory.config.workspace.workspace_file import load_workspace_config
        from speckit_memory.memory.scanning.selection import (  # loads numpy, which must not delay the handshake
            DOCUMENT_FOLDERS,
            SKIPPED_FOLDERS,
            refusal,
        )

        if self._config.is_closed("/".join(parts) + "/" * is_folder):
            raise SpeckitError.of([closed_problem(path)])
        reason = refusal(parts, is_folder, load_workspace_config(self._config.root).sources)
        if not reason or self._named_before(parts, is_folder):
            return
        raise SpeckitError(
            "E014",
            f"'{path}' is {reason}",
            hint=(
                f"Not indexed are {', '.join(sorted(SKIPPED_FOLDERS))} and hidden folders except "
                f"{', '.join(sorted(DOCUMENT_FOLDERS))}."
            ),
            actions=("choose another path", "name the hidden folder under sources.include in .speckit/config.yaml"),
        )

    def _named_before(self, parts: tuple[str, ...], is_folder: bool) -> bool:
        """Whether a path is a source, or inside one and not excluded below it."""
        from speckit_memory.config.workspace.options import SourcePatterns
        from speckit_memory.memory.scanning.selection import refusal

        if not store_is_there(self._config.db):
            return False
        sources = [tuple(name.split("/")) for name in self.memory().documents.sources() if name]
        return any(
            parts[: len(name)] == name and not refusal(parts[len(name) :], is_folder, SourcePatterns())
            for name in sources
        )

    def folder(self, path: str) -> Path:
        """The absolute path of a folder that an index run would enter. Raises E014 for any other path."""
        folder, parts = self._inside(path)
        if is_file(folder):
            raise SpeckitError("E014", f"'{path}' is a file", actions=("save a single file with memory_save",))
        self._require_open(path, parts, is_folder=True)
        return folder

    def document(self, path: str) -> Path:
        """The absolute path of a document that an index run would take. Raises E014 for any other path."""
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
        """The key of a document, given the absolute path that `document` returns."""
        return path.relative_to(resolve_path(self._config.root)).as_posix()

    def memory_to_fill(self, path: Path) -> Memory:
        """Returns the memory; its store is created only if the path to index exists. Raises E010 otherwise, so that no
        empty store is left behind."""
        if path == path.parent and not self._config.environ.get(ROOT_VARIABLE):
            message = "the whole file system is not a workspace"
            raise SpeckitError("E014", message, hint="The server was started in /.", actions=_ELSEWHERE)
        if not store_is_there(self._config.db) and not is_there(path):
            from speckit_memory.memory.scanning.missing_paths import missing_path

            root = resolve_path(self._config.root)
            raise SpeckitError.of([missing_path(path.relative_to(root).as_posix(), root)])
        return self.memory(create=True)

    def on_progress(self, progress: PhaseProgress) -> None:
        """Progress callback: reports to the client, and stops the work at its next step when the server shuts down or
        the call was cancelled."""
        if self.closing.is_set():
            raise SpeckitError("E081", "the server is shutting down")
        require_wanted()
        tell(progress)

    def finish(self, tools_running: int) -> None:
        """Closes the store before the process ends, unless a tool still uses it.

        Pending shadow pipelines get a moment to finish. Running tools lose no data, as every transaction is either
        complete or not begun.
        """
        self.closing.set()
        if self._memory is None:
            return
        from speckit_memory.engine.components import end_extensions  # loaded only by servers that opened a store

        self._memory.shadows.stop()
        end_extensions()
        # a thread still uses the store: closing it would make its call fail
        if tools_running or self._warming.locked():
            self._memory.feedback.write()  # notes on answers sent: a short session may end during the warm-up
        else:
            self._memory.close()
