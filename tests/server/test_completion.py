from __future__ import annotations

import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from speckit_memory.config.pipelines.sources import presets
from tests.server.doors import COMMAND, call, environment


def completed(root: Path, line: str) -> list[str]:
    """What the shell is offered for the last word of a line."""
    words = line.split(" ")
    env = {"_SPECKIT_MEMORY_COMPLETE": "bash_complete", "COMP_WORDS": line, "COMP_CWORD": str(len(words) - 1)}
    ran = call(root, [], env)
    assert (ran.status, ran.err) == (0, "")
    return ran.out.split()


@pytest.mark.parametrize(
    ("line", "offered"),
    [
        ("speckit-memory se", ["plain,search", "plain,serve"]),
        ("speckit-memory pipeline c", ["plain,calibrate", "plain,check"]),
        ("speckit-memory search --fo", ["plain,--folder"]),
        ("speckit-memory search --mode d", ["plain,deep"]),
        ("speckit-memory search --pipeline bm", ["file,bm", "plain,bm25"]),
        ("speckit-memory eval run --pipeline qu", ["file,qu", "plain,quality"]),
        ("speckit-memory pipeline diff default r", ["file,r", "plain,resume", "plain,rrf", "plain,rsf"]),
        ("speckit-memory index do", ["file,do"]),
        ("speckit-memory search --set maxsim.g", ["plain,maxsim.gain=5.0"]),
        ("speckit-memory search --pipeline rrf --set rrf.k", ["plain,rrf.k=60.0"]),
        ("speckit-memory search --pipeline nothing.yaml --set rrf", []),
        (
            "speckit-memory pipeline tune default --parameter regu",
            ["plain,regularise.weight", "plain,regularise.neighbours"],
        ),
        ("speckit-memory pipeline tune nothing.yaml --parameter regu", []),
    ],
)
def test_commands_options_and_values_are_completed(tmp_path: Path, line: str, offered: list[str]) -> None:
    assert completed(tmp_path, line) == offered


def test_every_shipped_pipeline_is_offered(tmp_path: Path) -> None:
    assert completed(tmp_path, "speckit-memory search --pipeline ")[1:] == [f"plain,{name}" for name in presets()]


def test_completing_leaves_no_trace(tmp_path: Path) -> None:
    completed(tmp_path, "speckit-memory search why rank fus")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.usefixtures("processes")
def test_each_shell_gets_a_script(tmp_path: Path, shell: str) -> None:
    ran = call(tmp_path, [], {"_SPECKIT_MEMORY_COMPLETE": f"{shell}_source"}).ok()
    assert f"_SPECKIT_MEMORY_COMPLETE={shell}_complete" in ran.out
    assert "speckit-memory" in ran.out


def test_an_unknown_shell_is_named(tmp_path: Path) -> None:
    ran = call(tmp_path, [], {"_SPECKIT_MEMORY_COMPLETE": "csh_source"}).ended(2)
    assert "'csh_source', accepted: bash_source, zsh_source, fish_source" in ran.err


@pytest.mark.skipif(shutil.which("bash") is None, reason="needs bash")
@pytest.mark.usefixtures("processes")
def test_bash_completes_with_the_script(tmp_path: Path) -> None:
    folder = shlex.quote(str(COMMAND.parent))
    script = f"""
    PATH={folder}:$PATH
    eval "$(_SPECKIT_MEMORY_COMPLETE=bash_source speckit-memory)"
    compopt() {{ :; }}  # knows nothing to do outside a completion
    COMP_WORDS=(speckit-memory search --mode fo) COMP_CWORD=3
    _speckit_memory_completion speckit-memory
    printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(
        ["bash", "--norc", "-c", script], capture_output=True, text=True, check=True, env=environment(tmp_path)
    )
    assert done.stdout.split() == ["focused"]
