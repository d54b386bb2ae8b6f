"""Which segment a store trusts, whether it may be used, and when another one is due.

Segments are in the folder `<store file>.segments`. Only the file recorded in the store's `meta` table is used, and only
when all of its contents are known to be intact; a restored backup brings its own record. A store that several machines
share cannot say which file one of them trusts: there, the record is in the folder, under the store's identity, since
an address can lead to another store than before. Any problem with it gives None instead of an error: the store's engine
answers then.
"""

from __future__ import annotations

import json
import os
import re
import stat
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal, NamedTuple

from speckit_memory.config.files.regular_file import read_text
from speckit_memory.config.files.written_file import written
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.store.file.connection import Connection, Database, Transaction
from speckit_memory.memory.store.file.guarding.identity import KEPT
from speckit_memory.memory.store.file.guarding.queries import rows, value
from speckit_memory.memory.store.segment_files import stamp
from speckit_memory.memory.store.segment_files.container import MAGIC, Container, TornError
from speckit_memory.memory.store.segment_files.findings import Finding, GivenUpError
from speckit_memory.memory.store.tables import changes
from speckit_memory.memory.store.tables.meta import get_meta, set_meta

READ_AT_ONCE = 1 << 30
"""Bytes. A file not known to have been read, as in a copied project, is checked on opening up to this size, in a tenth
of the time of a search without it (docs/decisions/0078). Larger files are checked by callers that have time."""
FEWEST = 100
"""Memories. Fewer are read from the tables as fast as from a file."""
FORMAT = 3
"""Version of the set of arrays and their meanings. The layout of the file has its own version in `container`."""
VERSION = f"{MAGIC[-1]}.{FORMAT}"
"""The layout and format that this version of the product reads and writes; others are not used."""
USES_OF_A_DOCUMENT = 5
"""Changes of a memory's numbers that cost as much as one changed document."""
LINKS_OF_A_DOCUMENT = 20
"""Link changes counted as one document. A segment holds no links, but they fill the log of changes."""
PATIENCE_MS = 250
"""How long recording a failure waits for other writers; the store works without the record."""
_FORGOTTEN = "segment_forgotten"
"""Meta key of the number of the last change after which memories were deliberately forgotten."""
_FAILURE = "segment_failure"
"""Meta key of why the last writer failed, and when."""
_NAME = re.compile(r"[0-9a-f]{16}\.seg")
"""Segment file name: 16 random hex digits. Never reused; carries no meaning."""
_LARGEST_NOTE = 4096
_TYPES = {"name": str, "digest": str, "bytes": int, "sequence": int, "token": int, "version": str}
_untold: dict[Path, str] = {}
"""Failures that could not be stored, for example on a full disk, by store; known to this process only."""


class TrustedSegment(NamedTuple):
    """The file that a store trusts.

    `digest` is the hexadecimal SHA-256 of its table, which holds a checksum of each array; `bytes` its size; `sequence`
    and `token` identify the last change that it includes; `version` is that of its layout and format.
    """

    name: str
    digest: str
    bytes: int
    sequence: int
    token: int
    version: str = VERSION


class SegmentStatus(NamedTuple):
    """The state of a store's segment: a usable one and the number of changes it lacks, or why it is not usable.

    All fields are None if none was ever written.
    """

    segment: Container | None = None
    trusted: TrustedSegment | None = None
    behind: int | None = None
    finding: Finding | None = None


class SegmentStore:
    """The segments of a store. Its methods read the state that this thread's transaction sees, or the latest one."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.folder = folder_of(database.path)

    def trusted(self) -> TrustedSegment | None:
        """The segment recorded in the store; None without one, or for an unknown record."""
        try:
            found = json.loads(self._noted(changes.SEGMENT) or "null")
        except ValueError:
            return None
        if not isinstance(found, dict) or set(found) != set(_TYPES):
            return None
        if any(type(found[name]) is not kind for name, kind in _TYPES.items()) or not _NAME.fullmatch(found["name"]):
            return None
        return TrustedSegment(**found)

    def usable(self) -> Container | None:
        """The segment of the present state, or of an earlier state from which the log of changes leads to it
        (`changes.since(segment.about["sequence"])`)."""
        return self.status().segment

    def status(self, *, patient: bool = False, thorough: bool = False) -> SegmentStatus:
        """As `usable`, with the problem that prevents the use of the segment.

        Args:
            patient: Check a large file that is not known to be intact.
            thorough: Check the file completely even if it is known to be intact.
        """
        with self._database.snapshot_read() as connection:
            trusted = self.trusted()
            if trusted is None:
                return SegmentStatus()
            if trusted.version != VERSION:
                finding = Finding("version", f"{trusted.name} was written by another version")
                return SegmentStatus(trusted=trusted, finding=finding)
            behind = _behind(connection, trusted)
        if behind is None:
            finding = Finding("stale", f"{trusted.name} is of a state that the log of changes does not reach back to")
            return SegmentStatus(trusted=trusted, finding=finding)
        found = self._open(trusted, patient, thorough)
        if isinstance(found, Finding):
            return SegmentStatus(None, trusted, behind, found)
        return SegmentStatus(found, trusted, behind)

    def next_step(self) -> Literal["write", "remove"] | None:
        """What a writer has to do: "write" a segment of many memories, or "remove" the one that few memories are left
        of; None while a usable one is recent enough and free of deliberately forgotten memories.

        Checks a file that is not known to be intact.
        """
        memories = self.memories()
        many = memories >= FEWEST
        if not many and self.trusted() is None:
            return None
        now = self.status(patient=True)
        if now.segment is None or now.trusted is None or self.holds_forgotten(now.trusted):
            recent = False
        else:
            recent = catch_up_cost(self._database.reader(), now.trusted) <= most_behind(memories)
        if recent:
            return None
        return "write" if many else "remove"

    def memories(self) -> int:
        """Number of memories."""
        return int(value(self._database.reader(), "SELECT count(*) FROM memories"))

    def trust(self, txn: Transaction, segment: TrustedSegment) -> bool:
        """Trust this file from now on, unless the store is no longer in a later state of the same history.

        A backup restored while a segment is built sets the store back, and other changes may then reach the same
        sequence number; the token of each change tells them apart. A file with memories that were deliberately
        forgotten while it was written is not trusted either.
        """
        if _behind(txn.connection, segment) is None or self.holds_forgotten(segment):
            return False
        self._note(txn, changes.SEGMENT, json.dumps(segment._asdict()))
        self._note(txn, _FAILURE, None)
        _untold.pop(self._database.path, None)
        return True

    def give_up(self) -> None:
        """Trust no file from now on."""
        with self._database.write() as txn:
            self._note(txn, changes.SEGMENT, None)

    def forget(self) -> None:
        """Record that memories were deliberately forgotten: a segment that may contain them is due to be rewritten or
        removed, and one being written from an earlier state will not be trusted."""
        with self._database.write() as txn:
            set_meta(txn, _FORGOTTEN, str(last_change(txn.connection)[0]))

    def holds_forgotten(self, segment: TrustedSegment) -> bool:
        """Whether a file may contain deliberately forgotten memories."""
        noted = get_meta(self._database.reader(), _FORGOTTEN) or ""
        # Written after the forgetting, the file cannot contain the memories any more.
        return noted.isdecimal() and segment.sequence < int(noted)

    @contextmanager
    def recording_failures(self) -> Iterator[None]:
        """Record any failure inside the block and raise it as E029, except GivenUpError."""
        try:
            yield
        except GivenUpError:
            raise
        except Exception as error:  # memory may be short, and a damaged store may contain anything
            failed = error if isinstance(error, SpeckitError) and error.code == "E029" else self._failed(error)
            what = _untold[self._database.path] = str(failed.problems[0].message)
            # Kept in memory first: recording may fail for the same reason, such as a full disk.
            with suppress(SpeckitError, RuntimeError), self._database.write(PATIENCE_MS) as txn:
                self._note(txn, _FAILURE, json.dumps({"at": time.time(), "what": what}))
                _untold.pop(self._database.path, None)
            raise failed from error

    def last_failure(self) -> Finding | None:
        """The failure since which no segment has been written; None without one."""
        if untold := _untold.get(self._database.path):
            return Finding("failed", untold)
        try:
            noted = json.loads(self._noted(_FAILURE) or "null")
            when = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(float(noted["at"])))
            return Finding("failed", f"{noted['what']} ({when})")
        except (ValueError, TypeError, KeyError, OverflowError, OSError):
            return None

    def blocking_file(self) -> Finding | None:
        """A finding if something other than a folder is at its path; links too, as they could lead anywhere."""
        try:
            mode = self.folder.lstat().st_mode
        except FileNotFoundError:
            return None
        except OSError as error:
            return Finding("blocked", f"{self.folder} cannot be read: {error.strerror}")
        if stat.S_ISDIR(mode):
            return None
        return Finding("blocked", f"{self.folder} is {'a link' if stat.S_ISLNK(mode) else 'not a folder'}")

    def _noted(self, key: str) -> str | None:
        """A record about the files of this machine."""
        if not self._database.shared:
            return get_meta(self._database.reader(), key)
        try:
            return read_text(self._record(key), _LARGEST_NOTE)
        except (OSError, ValueError):
            return None

    def _note(self, txn: Transaction, key: str, text: str | None) -> None:
        """Records this about the files of this machine; None removes the record."""
        if self._database.shared:
            if text is None:
                self._record(key).unlink(missing_ok=True)
            else:
                with written(self._record(key)) as file:
                    file.write(text)
        elif text is None:
            txn.connection.execute("DELETE FROM meta WHERE key = ?", (key,))
        else:
            set_meta(txn, key, text)

    def _record(self, key: str) -> Path:
        """The file of a record about the files of this machine."""
        return self.folder / f"{key}-{self._database.store_id()}"

    def _open(self, trusted: TrustedSegment, patient: bool, thorough: bool) -> Container | Finding:
        if in_the_way := self.blocking_file():
            return in_the_way
        path = self.folder / trusted.name
        try:
            seen = stamp.look(path)
            if seen is None:
                return Finding("foreign", f"{path} is not a regular file")
            segment = Container.open(path)
            if segment.digest != trusted.digest:
                return Finding("foreign", f"{path} is not the file recorded in the store")
            if seen.bytes != trusted.bytes:
                return Finding("torn", f"{path} has {seen.bytes:,} bytes and was written with {trusted.bytes:,}")
            if not thorough and stamp.is_known(path, seen, trusted.digest):
                return segment
            if not (thorough or patient or seen.bytes <= READ_AT_ONCE):
                return Finding("unread", f"{path} was copied or touched since it was written, and not checked since")
            segment.verify()
            # The check is only valid for the metadata seen before reading.
            if stamp.look(path) != seen:
                return Finding("unread", f"{path} was touched while it was being read")
        except FileNotFoundError:
            return Finding("missing", f"{path} does not exist")
        except OSError as error:
            return Finding("failed", f"{path} cannot be read: {error.strerror or error}")
        except (TornError, ValueError, TypeError) as error:
            stamp.forget(path)
            return Finding("torn", f"{path} is damaged: {error}")
        # Other processes can now skip the check.
        stamp.note(path, seen, trusted.digest)
        return segment

    def _failed(self, error: Exception) -> SpeckitError:
        if isinstance(error, OSError):
            why = error.strerror or str(error)
        else:
            why = str(error) if isinstance(error, SpeckitError) else f"{type(error).__name__}: {error}"
        return SpeckitError("E029", f"no segment could be written in {self.folder}: {why}")


def folder_of(store: Path) -> Path:
    """The folder of a store's segments, next to the actual file if the path is a link."""
    return Path(f"{os.path.realpath(store)}.segments")


def most_behind(memories: int) -> int:
    """How many documents may change before a segment is rewritten: a thousand, or a tenth of the memories if that is
    more, but fewer than the log of changes keeps."""
    return min(max(1_000, memories // 10), KEPT // 2)


def catch_up_cost(connection: Connection, segment: TrustedSegment) -> int:
    """The cost of applying the changes since a segment, as a number of changed documents. Each search records ten uses,
    and each added or removed link counts for two memories."""
    # one pass over the entries after the segment, a range of the primary key
    found = value(
        connection,
        "SELECT count(*) FILTER (WHERE kind IN ('put', 'delete')) + count(*) FILTER (WHERE kind = 'attributes') / ? "
        "+ count(*) FILTER (WHERE kind = 'edges') / ? FROM changes WHERE seq > ?",
        (USES_OF_A_DOCUMENT, LINKS_OF_A_DOCUMENT, segment.sequence),
    )
    return int(found)


def last_change(connection: Connection) -> tuple[int, int]:
    """Number and token of the last change; zeros for a store without changes."""
    found = rows(connection, "SELECT seq, token FROM changes ORDER BY seq DESC LIMIT 1")
    return found[0] if found else (0, 0)


def _behind(connection: Connection, segment: TrustedSegment) -> int | None:
    """Number of changes after those that a segment includes.

    None when the log of changes does not reach back that far, or belongs to another history.
    """
    first, last = changes.ends(connection)
    # an empty log: only a segment that was written before any change is up to date
    if first is None:
        return None if segment.sequence else 0
    # sequence = first - 1: the log begins right after the segment, and has no token of it to compare
    if not first - 1 <= segment.sequence <= last:
        return None
    # The log still has the segment's last change: its token must be the same.
    if segment.sequence >= first:
        token = value(connection, "SELECT token FROM changes WHERE seq = ?", (segment.sequence,))
        if token != segment.token:
            return None
    return last - segment.sequence
