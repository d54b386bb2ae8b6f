"""The store that the tools share: opened by the first call, by one thread, however many ask at once."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from threading import Event, Lock
from typing import TYPE_CHECKING

from config.errors import SpeckitError
from server import logs

if TYPE_CHECKING:
    from engine import Memory

WARM_UP = "warm up"


class Workspace:
    """Opens the memory when it is first needed: numpy and the models must not delay the handshake (feature T27)."""

    def __init__(self, opener: Callable[[], Memory]) -> None:
        """`opener` is called once; when it raises, the next call tries again."""
        self._opener = opener
        self._lock = Lock()
        self._warming = Lock()
        self._memory: Memory | None = None
        self.closing = Event()

    def memory(self) -> Memory:
        """The open memory."""
        if self._memory is None:
            with self._lock:
                if self._memory is None:
                    self._memory = self._opener()
        return self._memory

    def count_tokens(self, texts: Sequence[str]) -> list[int]:
        """How many tokens each text has; estimated while there is no open memory, as after a failure to open it."""
        if self._memory is not None:
            return self._memory.count_tokens(texts)
        from memory.indexing.embedders import counted_tokens  # loads numpy, which must not delay the handshake

        return counted_tokens(texts)

    def warm_up(self) -> None:
        """Does ahead of time what the first search would wait for.

        A failure is logged; the first search tells the client.
        """
        with self._warming:
            if self.closing.is_set():
                return
            try:
                # not a search: nobody asked, and what is served counts as used
                memory = self.memory()
                memory.plan(WARM_UP)
                memory.embedder.embed_query(WARM_UP)
                memory.count_tokens([WARM_UP])
            except SpeckitError as error:
                logs.event("not ready", problems=[str(problem) for problem in error.problems])

    def _inside(self, path: str) -> tuple[Path, tuple[str, ...]]:
        """A path of the workspace, made absolute, and its parts below the root. Raises E014 for any other."""
        root = self.memory().settings.root.resolve()
        resolved = (root / path).resolve()
        if not resolved.is_relative_to(root):
            raise SpeckitError(
                "E014",
                f"'{path}' is outside the workspace '{root}'",
                hint="Only files of the workspace can be remembered.",
                actions=("give a path inside the workspace", "set SPECKIT_ROOT to a folder that holds the file"),
            )
        return resolved, resolved.relative_to(root).parts

    def folder(self, path: str) -> Path:
        """A folder of the workspace, made absolute: what an index run of all of it would enter. Raises E014 else."""
        from memory.indexing.scanner import SKIPPED_FOLDERS  # loads numpy, which must not delay the handshake

        folder, parts = self._inside(path)
        for part in parts:
            if part.startswith(".") or part in SKIPPED_FOLDERS:
                what = "hidden" if part.startswith(".") else f"in '{part}'"
                hint = f"Not indexed are hidden folders and {', '.join(sorted(SKIPPED_FOLDERS))}."
                raise SpeckitError("E014", f"'{path}' is {what}", hint=hint, actions=("choose another folder",))
        if folder.is_file():
            raise SpeckitError("E014", f"'{path}' is a file", actions=("remember one file with memory_save",))
        return folder

    def document(self, path: str) -> Path:
        """A document of the workspace, made absolute: what an index run would take. Raises E014 for any other path."""
        from memory.indexing.scanner import SUFFIXES  # loads numpy, which must not delay the handshake

        file, parts = self._inside(path)
        hint = f"Documents are {', '.join(sorted(SUFFIXES))} files outside hidden folders."
        if any(part.startswith(".") for part in parts):
            raise SpeckitError("E014", f"'{path}' is hidden", hint=hint)
        if file.suffix.lower() not in SUFFIXES:
            raise SpeckitError("E014", f"'{path}' is not a document", hint=hint)
        return file

    def stop_when_closing(self, _progress: object) -> None:
        """A progress callback that ends a long piece of work at its next step once the server shuts down."""
        if self.closing.is_set():
            raise SpeckitError("E081", "the server is shutting down; what was indexed so far is kept")

    def finish(self, tools_running: int) -> None:
        """Closes the store before the process ends, unless somebody still uses it.

        Whoever still does loses nothing: a transaction is complete or was never begun.
        """
        self.closing.set()
        if tools_running or self._warming.locked():
            return
        if self._memory is not None:
            self._memory.close()
