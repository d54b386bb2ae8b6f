"""Where extensions of a store in another folder run."""

from __future__ import annotations

from pathlib import Path

from speckit_memory.config.workspace.workspace_file import ExtensionSettings, extensions_in_force


def write(root: Path, text: str) -> Path:
    (root / ".speckit").mkdir(parents=True, exist_ok=True)
    (root / ".speckit" / "config.yaml").write_text(text, encoding="utf-8")
    return root


def test_the_workspace_and_the_environment_decide(tmp_path: Path) -> None:
    assert extensions_in_force({}, tmp_path) == ExtensionSettings("isolated", 2048)
    write(tmp_path, "extensions: isolated\nextensions_memory_mb: 4096\n")
    assert extensions_in_force({}, tmp_path) == ExtensionSettings("isolated", 4096)
    environ = {"SPECKIT_ROOT": str(tmp_path), "SPECKIT_EXTENSIONS": "none", "SPECKIT_EXTENSIONS_MEMORY_MB": "0"}
    assert extensions_in_force(environ, tmp_path) == ExtensionSettings("none", 0)


def test_a_store_elsewhere_is_no_way_around_the_workspace(tmp_path: Path) -> None:
    mine, other = write(tmp_path / "mine", "extensions: isolated\n"), write(tmp_path / "other", "extensions: trusted\n")
    strict = write(tmp_path / "strict", "extensions: none\n")
    environ = {"SPECKIT_ROOT": str(mine)}
    assert extensions_in_force(environ).mode == "isolated"
    assert extensions_in_force(environ, other).mode == "isolated"
    assert extensions_in_force(environ, strict).mode == "none"
