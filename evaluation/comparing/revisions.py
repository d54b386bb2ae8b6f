"""Reads the pipeline of another revision with `git show`: its file, the files it extends, and the workspace's flags."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from speckit_memory.config.pipelines.document import read_text
from speckit_memory.config.pipelines.sources import NOTHING, presets
from speckit_memory.config.workspace.settings import FLAGS_FILE, PIPELINE_FILE, ROOT_VARIABLE
from speckit_memory.engine import components
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.configuration.effective import Effective
from speckit_memory.pipeline.configuration.loading import load

_SECONDS = 30
_MOST_FILES = 20


def pipeline_of(revision: str, pipeline: str, root: Path, environ: Mapping[str, str]) -> Effective:
    """The pipeline as of `REV` or `REV:PATH`, read without a checkout.

    Args:
        revision: `REV`, or `REV:PATH` with a path relative to the top of the repository.
        pipeline: The gated pipeline. Its file is read as of that revision; a preset is the shipped one with the flags
            of that revision.
        root: The workspace.
        environ: Environment variables.

    Raises:
        SpeckitError: E030 when the repository has no such revision or file, or git cannot be run.
    """
    name, _, path = revision.partition(":")
    # a leading "-" would be read as an option of git
    if not name or name.startswith("-"):
        raise SpeckitError("E030", f"'{revision}' does not name a revision", actions=("give a branch, tag or commit",))
    top = Path(_git(root, "rev-parse", "--show-toplevel", failing=f"'{root}' is not in a git repository").strip())
    said = f"'{name}' is not a revision of the repository '{top}'"
    # ^{commit} resolves tags to their commit; --end-of-options keeps a name from being read as an option.
    commit = _git(
        top, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}", failing=said
    ).strip()
    wanted = path or _file_of(pipeline, top, root)
    with TemporaryDirectory(prefix="speckit-revision-") as folder:
        # copy the files to a temporary workspace, so that `extends` and flags resolve as usual
        for file in _needed(top, commit, wanted):
            (Path(folder) / file).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / file).write_text(_show_file(top, commit, file), encoding="utf-8")
        flags = (root / FLAGS_FILE).resolve().relative_to(top.resolve()).as_posix()
        if _has(top, commit, flags):
            (Path(folder) / FLAGS_FILE).parent.mkdir(parents=True, exist_ok=True)
            (Path(folder) / FLAGS_FILE).write_text(_show_file(top, commit, flags), encoding="utf-8")
        source = Path(folder) / wanted if wanted else pipeline
        there = {**environ, ROOT_VARIABLE: folder}
        whole = load(source, there, None, components.registry(environ).flag_files)
    # The commit, not the name: a branch moves on.
    return replace(whole, name=f"{whole.name}@{commit[:12]}")


def _file_of(pipeline: str, top: Path, root: Path) -> str:
    """The path of a pipeline inside its repository, "" for a preset."""
    if pipeline in presets():
        file = root / PIPELINE_FILE
        if pipeline != "default" or not file.is_file():
            return ""
    else:
        file = Path(pipeline)
    absolute = file.resolve()
    if not absolute.is_relative_to(top.resolve()):
        raise SpeckitError("E030", f"'{pipeline}' is outside the repository '{top}': it has no earlier revision there")
    return absolute.relative_to(top.resolve()).as_posix()


def _needed(top: Path, commit: str, wanted: str) -> Iterator[str]:
    """The pipeline file and the files it extends, if they are in the repository."""
    seen: list[str] = []
    while wanted and wanted not in seen and len(seen) < _MOST_FILES:
        if not _has(top, commit, wanted):
            raise SpeckitError("E030", f"revision {commit[:12]} has no file '{wanted}'", actions=("give REV:PATH",))
        seen.append(wanted)
        yield wanted
        extends = read_text(_show_file(top, commit, wanted), wanted).said.extends
        if extends == NOTHING or extends in presets() or Path(extends).is_absolute():
            return
        # `extends` is relative to the file that contains it
        place = (top / wanted).parent / extends
        wanted = Path(*place.resolve().relative_to(top.resolve()).parts).as_posix()


def _has(top: Path, commit: str, path: str) -> bool:
    return _ran(top, "cat-file", "-e", f"{commit}:{path}").returncode == 0


def _show_file(top: Path, commit: str, path: str) -> str:
    return _git(top, "show", f"{commit}:{path}", failing=f"revision {commit[:12]} has no file '{path}'")


def _git(folder: Path, *arguments: str, failing: str) -> str:
    done = _ran(folder, *arguments)
    if done.returncode:
        raise SpeckitError("E030", failing, actions=("give a branch, tag or commit", "see `git log --oneline`"))
    return done.stdout.decode("utf-8", "replace")


def _ran(folder: Path, *arguments: str) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            check=False,
            timeout=_SECONDS,
            stdin=subprocess.DEVNULL,
        )
    except FileNotFoundError as error:
        raise SpeckitError("E030", "git is not installed, and a revision was named") from error
    except subprocess.TimeoutExpired as error:
        raise SpeckitError("E030", f"git did not answer within {_SECONDS} s") from error
