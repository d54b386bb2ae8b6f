"""Finds, or starts, the one process that serves a store to several clients (`serve --shared`).

It listens on a Unix socket that only its user can open. The name of the socket is a digest of all that decides
answers: the program, the store, the options and some environment variables. So clients share a process only if each
would get the same answers from a process of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import socket
import stat
import struct
import sys
from contextlib import suppress
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any

from speckit_memory import __file__ as package
from speckit_memory.config.files.file_lock import locked
from speckit_memory.config.files.paths import resolve_path, working_folder
from speckit_memory.config.workspace.options import ToolProfile
from speckit_memory.config.workspace.settings import DB_VARIABLE, ROOT_VARIABLE, settings
from speckit_memory.errors import SpeckitError
from speckit_memory.server.console.arguments.options import Common

PROCESS = "speckit_memory.server.transport.shared_process"
LONGEST_PATH = 100
"""Bytes; the address of a Unix socket has at most 108 on Linux and 104 on macOS, with an end mark."""
WAITING = 64
"""Clients that may connect before the process has accepted the first of them."""
_DECIDING = (
    *("HOME", "LANG", "LANGUAGE", "TZ", "LD_LIBRARY_PATH", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_DATA_HOME"),
    *("OPENAI_API_KEY", "VOYAGE_API_KEY", "SSL_CERT_FILE", "SSL_CERT_DIR"),
)
_DECIDING_BEGINNINGS = ("SPECKIT_", "PG", "LC_", "PYTHON", "TOKENIZERS_", "HF_", "FASTEMBED_", "CUDA_", "TORCH_")
_DECIDING_ENDINGS = ("_NUM_THREADS", "_PROXY", "_proxy")
_PASSED = ("PATH", "TMPDIR", "USER", "LOGNAME")
"""Variables that the process takes from its first client. They say where programs and temporary files are, and differ
between terminals and editors."""


def deciding_variables() -> dict[str, str]:
    """The environment variables that may change answers."""
    return {
        name: value
        for name, value in sorted(os.environ.items())
        if name in _DECIDING or name.startswith(_DECIDING_BEGINNINGS) or name.endswith(_DECIDING_ENDINGS)
    }


@dataclass(frozen=True, slots=True)
class SharedOptions:
    """The options of `serve` that decide what the process serves; without a `root` the workspace is that of the
    environment or the working folder."""

    common: Common
    root: Path | None
    profile: ToolProfile | None
    warm_up: bool
    cache_seconds: int
    watch: bool

    def key(self) -> str:
        """A digest of all that decides answers. Raises E014 if the store or the workspace cannot be a path."""
        common, root = self.common, self.root
        config = settings(common.db, common.pipeline, root)
        variables = deciding_variables()
        program = Path(package)
        # these two are in the key as the places that they name
        rest = {name: value for name, value in variables.items() if name not in (ROOT_VARIABLE, DB_VARIABLE)}
        relative = common.pipeline or any(name.startswith("SPECKIT_") for name in rest)
        deciding = [
            [sys.executable, sys.version, str(program), program.stat().st_mtime_ns],
            [str(config.root), str(resolve_path(config.db)), bool(root), bool(common.db)],
            [common.pipeline, sorted(common.overrides.items())],
            [self.profile, self.warm_up, self.cache_seconds, self.watch],
            [rest, [variables.get(name) is not None for name in (ROOT_VARIABLE, DB_VARIABLE)]],
            # paths in options and variables may be relative to it
            str(working_folder()) if relative else "",
        ]
        return sha256(json.dumps(deciding).encode("utf-8", "surrogateescape")).hexdigest()[:32]


@dataclass(frozen=True, slots=True)
class SharedSocket:
    """The socket of the process for some options."""

    path: Path
    options: SharedOptions

    @classmethod
    def of(cls, options: SharedOptions) -> SharedSocket:
        """The socket for these options, in a folder that is made if necessary. Raises E036 if there can be none,
        E014 if the store or the workspace cannot be a path."""
        if not hasattr(socket, "AF_UNIX") or sys.platform == "win32":
            raise _unusable("this system has no Unix sockets", "leave --shared out: each client has its own process")
        name = f"{options.key()}.sock"
        runtime = os.environ.get("XDG_RUNTIME_DIR", "")
        folders = [Path(runtime, "speckit-memory")] if os.path.isdir(runtime) else []  # noqa: PTH112 -- also for ""
        own = f"speckit-memory-{os.geteuid()}"
        folders += [Path(temporary, own) for temporary in (os.environ.get("TMPDIR", ""), "/tmp") if temporary]
        fitting = [folder for folder in folders if len(os.fsencode(folder / name)) <= LONGEST_PATH]
        _require_private(fitting[0])  # that in /tmp always fits
        # the process may have another working folder
        root = settings(options.common.db, options.common.pipeline, options.root).root
        return cls(fitting[0] / name, replace(options, root=root))

    def connect(self) -> socket.socket:
        """Connects to the process, and starts it unless it is there. Raises E036 if that is impossible."""
        try:
            if (connection := self._reached()) is not None:
                return connection
            with locked(self.path):
                # another client may have been first
                return self._reached() or self._started()
        except OSError as error:
            raise _unusable(f"{self.path} cannot be used: {error.strerror or error}") from None

    def _reached(self) -> socket.socket | None:
        """A connection to the process; None if none listens. Raises E036 if another user does."""
        try:
            found = self.path.lstat()
        except FileNotFoundError:
            return None
        if not stat.S_ISSOCK(found.st_mode) or found.st_uid != os.geteuid():
            raise _unusable(f"{self.path} is not a socket of yours", "remove it")
        connection = socket.socket(socket.AF_UNIX)
        try:
            connection.connect(str(self.path))
            if is_of_user(connection):
                return connection
        except (ConnectionRefusedError, FileNotFoundError):  # its process was killed, or has just ended
            connection.close()
            return None
        except OSError:
            connection.close()
            raise
        connection.close()
        raise _unusable(f"another user listens on {self.path}")

    def _started(self) -> socket.socket:
        """Starts the process, which is handed a socket that already listens: no client waits until it is ready."""
        from subprocess import DEVNULL, PIPE

        from speckit_memory.pipeline.process.python_process import start_python

        self.path.unlink(missing_ok=True)
        environment = deciding_variables() | {name: os.environ[name] for name in _PASSED if name in os.environ}
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(self.path))
            self.path.chmod(0o600)
            listener.listen(WAITING)
            number = listener.fileno()
            try:
                process = start_python(PROCESS, number, stdin=PIPE, stdout=DEVNULL, pass_fds=(number,), env=environment)
            except OSError:
                self.path.unlink()
                raise
            _started[:] = [earlier for earlier in _started if earlier.poll() is None] + [process]
            assert process.stdin is not None
            with suppress(BrokenPipeError), process.stdin:  # it has ended, which the connection tells
                process.stdin.write(pickle.dumps(self))
            connection = self._reached()
        assert connection is not None  # we listen ourselves
        return connection


_started: list[Any] = []
"""Processes started by this one that run. The references keep the interpreter from warning that they outlive it."""


def is_of_user(connection: socket.socket) -> bool:
    """Whether the other end belongs to the user of this process; only Linux tells. Elsewhere the modes of the socket
    and its folder must do."""
    if sys.platform != "linux":
        return True
    credentials = connection.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _process, user, _group = struct.unpack("3i", credentials)
    return bool(user == os.geteuid())


def _require_private(folder: Path) -> None:
    """Makes the folder of the sockets. Raises E036 if it is not one that its user alone can enter."""
    try:
        with suppress(FileExistsError):
            folder.mkdir(0o700)
        found = folder.lstat()
    except OSError as error:
        raise _unusable(f"the folder {folder} cannot be made: {error.strerror}") from None
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise _unusable(f"{folder} is not a folder of yours")
    if found.st_mode & 0o077:
        raise _unusable(f"others can enter {folder}", f"run `chmod 700 {folder}`")


def _unusable(reason: str, *actions: str) -> SpeckitError:
    return SpeckitError("E036", reason, actions=actions)
