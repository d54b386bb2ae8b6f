"""A folder of hostile files, indexed by the console script as users do: nothing breaks, nothing waits, nothing outside
is read, and each file is a memory or is refused with its reason."""

from __future__ import annotations

import os
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any

from hostile_files import Hostile, Outside, make

from speckit_memory.errors import SpeckitError
from speckit_memory.errors.codes import CODES
from speckit_memory.errors.names import displayable_name
from speckit_memory.memory.indexing.source_processing import SourceProcessor, SourceTask
from speckit_memory.memory.parsing.analysis import Analyser
from speckit_memory.memory.parsing.markdown.chunks import DEFAULT_SIZES
from speckit_memory.memory.scanning.scanner import FoundFile
from tests.server.doors import COMMAND, Ran, environment

WORD = "zyxomancanary"
"""Nowhere but in the file outside of the workspace."""
SLOW_SECONDS = 5.0
"""So long one file may take at most, on a machine that does nothing else."""
MODES = "sources:\n  formats: [rst, html]\n"
TIMEOUT = 3600


@dataclass(slots=True)
class Figures:
    """What became of the files."""

    files: int = 0
    memories: int = 0
    refused: int = 0
    aliases: int = 0
    moving: int = 0
    """Files that were changed while they were read: what they are depends on when."""
    by_code: Counter[str] = field(default_factory=Counter)
    index_seconds: float = 0.0
    again_seconds: float = 0.0
    slowest_seconds: float = 0.0
    slowest: str = ""
    broken: list[str] = field(default_factory=list)
    """What was promised and is not so."""


def tried(folder: Path, count: int, seed: int, documents: list[bytes]) -> Figures:
    """Makes and indexes so many files in a folder, which must be empty; what is broken is told, nothing raises."""
    outside = Outside(folder / "outside", folder / "outside" / "secret.md", WORD)
    outside.folder.mkdir()
    outside.file.write_text(f"# Secret\n\nThe {WORD} sleeps here.\n")
    root = folder / "workspace"
    (root / ".speckit").mkdir(parents=True)
    (root / ".speckit" / "config.yaml").write_text(MODES)
    (root / "good.md").write_text("# Good\n\nThe quokka survived.\n")
    made = make(root, count, seed, documents, outside)
    figures = Figures(files=count)
    before = set(folder.iterdir())

    with _restless(root, [one for one in made if one.moves], seed):
        first, figures.index_seconds = _ran(root, "index", ".", "--json")
    again, _ = _ran(root, "index", ".", "--json")  # what moved has come to rest
    last, figures.again_seconds = _ran(root, "index", ".", "--json")
    figures.broken += [*_well(first), *_well(again), *_well(last)]
    if WORD.encode() in b"".join(_contents(root)):  # before it is asked for: what is asked is kept
        figures.broken.append("a file outside of the workspace was read")
    if not figures.broken:
        _count(figures, made, first.json, again.json)
        _compare(figures, again.json, last.json)
        _ask(figures, root)
    if (root / "pwned").exists() or Path("pwned").exists() or set(folder.iterdir()) != before:
        figures.broken.append("something was run or written outside of the workspace")
    _time(figures, root, made)
    return figures


def _ran(root: Path, *arguments: str) -> tuple[Ran, float]:
    started = time.monotonic()
    done = subprocess.run(
        [COMMAND, *arguments],
        capture_output=True,
        check=False,
        cwd=root,
        env=environment(root, SPECKIT_DB=str(root / ".speckit" / "memory.db")),
        stdin=subprocess.DEVNULL,
        timeout=TIMEOUT,
    )
    ran = Ran(done.returncode, done.stdout.decode(), done.stderr.decode(errors="replace"))
    return ran, time.monotonic() - started


def _well(ran: Ran) -> Iterator[str]:
    """A run that ends with a report is well, though files were refused."""
    if ran.status not in (0, 1, 2) or "Traceback" in ran.err or "E199" in ran.out + ran.err:
        yield f"status {ran.status}: {ran.err[-2000:]}"
    else:
        try:
            ran.json["created"]
        except (ValueError, KeyError) as error:
            yield f"no report: {error!r}: {ran.out[:500]} {ran.err[-500:]}"


def _refusals(report: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """(key, code) of all that is told; a message begins with the key where no place is given."""
    for problem in (*report["problems"], *report.get("errors", ())):
        place = problem.get("where") or {}
        yield place.get("file") or problem["message"], problem["code"]


def _count(figures: Figures, made: list[Hostile], first: dict[str, Any], again: dict[str, Any]) -> None:
    """Each file is one thing: a memory, another name of one, or refused with a code and a reason."""
    created = {*first["created"], *again["created"], *again["updated"]}
    told = [*_refusals(first), *_refusals(again)]
    aliases = {key for report in (first, again) for names in report["aliases"] for key in names[1:]}
    by_place: dict[str, str] = {}
    loose: list[tuple[str, str]] = []
    for place, code in told:
        by_place.setdefault(place, code)
        loose.append((place, code))
    for one in made:
        key = displayable_name(one.key)
        refused = by_place.get(key) or next((code for text, code in loose if text.startswith(f"{key}: ")), "")
        if one.moves:
            figures.moving += 1
        elif key in created:
            figures.memories += 1
        elif key in aliases:
            figures.aliases += 1
        elif refused:
            figures.refused += 1
            figures.by_code[refused] += 1
        else:
            figures.broken.append(f"nothing was said of {key!r} ({one.kind})")
    if unknown := {code for _, code in told} - CODES.keys():
        figures.broken.append(f"codes that nobody knows: {unknown}")


def _compare(figures: Figures, before: dict[str, Any], after: dict[str, Any]) -> None:
    """Another run does nothing, and says the same of what is refused."""
    done = {name: after[name] for name in ("created", "updated", "vanished", "renamed") if after[name]}
    if done or after["embedded"]:
        figures.broken.append(f"a run over unchanged files did something: {done}, {after['embedded']} embedded")
    stored = {*before["created"], *before["updated"]}
    said = {each for each in _refusals(before) if each[0] not in stored}
    now = set(_refusals(after))
    if said != now:
        figures.broken.append(f"another run says something else: {sorted(said ^ now)[:5]}")


def _ask(figures: Figures, root: Path) -> None:
    found, _ = _ran(root, "search", "which quokka survived", "--json")
    # files may call themselves constitutional, and stand in every answer then
    if found.status or next(row["key"] for row in found.json["results"] if row["tier"] == "normal") != "good.md":
        figures.broken.append(f"a search does not answer: {found.out[:300]} {found.err[-300:]}")
    secret, _ = _ran(root, "search", WORD, "--json")
    if any(WORD in row["snippet"] for row in secret.json["results"]):
        figures.broken.append("a search finds what lies outside of the workspace")
    doctor, _ = _ran(root, "doctor")
    if doctor.status:
        figures.broken.append(f"doctor: {doctor.out[-1500:]} {doctor.err[-500:]}")


def _contents(root: Path) -> Iterable[bytes]:
    return (path.read_bytes() for path in (root / ".speckit").rglob("*") if path.is_file())


def _time(figures: Figures, root: Path, made: list[Hostile]) -> None:
    """What each file takes to be read, cut and analysed: more than nine tenths of what it takes altogether."""
    maker = SourceProcessor(Analyser(), DEFAULT_SIZES)
    for one in made:
        started = time.process_time()
        with suppress(OSError, SpeckitError):
            if (root / one.key).is_file() and not one.moves:
                maker(SourceTask(FoundFile(one.key, root, 0)))
        seconds = time.process_time() - started
        if seconds > figures.slowest_seconds:
            figures.slowest_seconds, figures.slowest = seconds, f"{one.key} ({one.kind})"
    if figures.slowest_seconds > SLOW_SECONDS:
        figures.broken.append(f"{figures.slowest} takes {figures.slowest_seconds:.1f} s")


@contextmanager
def _restless(root: Path, moving: list[Hostile], seed: int) -> Iterator[None]:
    """Changes these files, takes them away and brings them back as long as it lasts; each is a file at its end."""
    over = threading.Event()
    rng = Random(seed)

    def act() -> None:
        while not over.is_set() and moving:
            path = root / rng.choice(moving).key
            with suppress(OSError):
                what = rng.randrange(4)
                if what == 0:
                    path.unlink()
                elif what == 1:
                    path.write_bytes(b"# Changed\n\n" + rng.randbytes(50) + b"more\n" * rng.randrange(1000))
                elif what == 2:
                    os.truncate(path, rng.randrange(100))
                else:
                    path.unlink()
                    path.symlink_to(root.parent / "outside" / "secret.md")
            time.sleep(0.002)

    thread = threading.Thread(target=act)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        for one in moving:
            with suppress(OSError):
                (root / one.key).unlink()
            (root / one.key).write_text(f"# At rest\n\nThe file {one.key!r} is one again.\n", errors="replace")


def seeds(*folders: Path) -> list[bytes]:
    """The documents of these folders, those of up to 50,000 bytes, by name."""
    files = sorted(path for folder in folders for path in folder.rglob("*.md") if path.is_file())
    return [data for path in files if len(data := path.read_bytes()) <= 50_000]


def told(figures: Figures) -> str:
    """The figures in a few lines."""
    codes = ", ".join(f"{code} {number}" for code, number in sorted(figures.by_code.items()))
    return (
        f"{figures.files:,} files: {figures.memories:,} memories, {figures.aliases:,} further names of one, "
        f"{figures.refused:,} refused ({codes}), {figures.moving:,} changed while they were read\n"
        f"indexed in {figures.index_seconds:.0f} s, once more in {figures.again_seconds:.0f} s; "
        f"the slowest: {figures.slowest}, {figures.slowest_seconds:.2f} s"
    )
