"""What lies in a model's place after it was fetched, whatever happens to the place meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import Any

import pytest

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders.pulled import fetching
from speckit_memory.memory.models.embedders.pulled.shelf import ModelManifest, manifest_of, place_of, write_manifest

pytestmark = pytest.mark.requirement("I6.fetched")

MODEL = "maker/tiny"


def put(folder: Path, content: bytes, revision: str) -> ModelManifest:
    """A model of one file in a folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "model.onnx").write_bytes(content)
    manifest = ModelManifest(
        MODEL, "maker/repository", revision, "mean", 4, {"model.onnx": sha256(content).hexdigest()}
    )
    write_manifest(folder, manifest)
    return manifest


@pytest.fixture
def environ(tmp_path: Path) -> dict[str, str]:
    return {"SPECKIT_MODELS": str(tmp_path / "models")}


@pytest.fixture
def place(environ: dict[str, str]) -> Path:
    return place_of(MODEL, environ)


@pytest.fixture
def fetched(monkeypatch: pytest.MonkeyPatch) -> Callable[[Callable[[], object]], None]:
    """Has a fetch bring a model without a network, and something else happen before it is put in its place."""

    def arrange(meanwhile: Callable[[], object]) -> None:
        def bring(_known: Any, folder: Path, _progress: Any) -> ModelManifest:
            manifest = put(folder, b"fetched", "new")
            meanwhile()
            return manifest

        monkeypatch.setattr(fetching, "_fetched", bring)

    monkeypatch.setattr(fetching, "_describe_model", lambda model: {"model": model})
    return arrange


def test_what_is_damaged_is_replaced_and_nothing_is_left_beside_it(
    environ: dict[str, str], place: Path, fetched: Callable[[Callable[[], object]], None]
) -> None:
    put(place, b"whole", "old")
    (place / "model.onnx").write_bytes(b"damaged")
    fetched(lambda: None)
    found, was_fetched = fetching.fetch(MODEL, environ)
    assert (found.revision, was_fetched) == ("new", True)
    assert (place / "model.onnx").read_bytes() == b"fetched"
    assert list(place.parent.iterdir()) == [place]


def test_what_another_process_put_there_meanwhile_is_what_is_told(
    environ: dict[str, str], place: Path, fetched: Callable[[Callable[[], object]], None]
) -> None:
    fetched(lambda: put(place, b"others", "theirs"))
    assert fetching.fetch(MODEL, environ)[0].revision == "theirs"
    assert manifest_of(place) == fetching.fetch(MODEL, environ)[0]
    assert list(place.parent.iterdir()) == [place]


@pytest.mark.parametrize("there", [True, False])
def test_a_place_that_cannot_be_taken_is_an_error_and_stays_as_it_was(
    environ: dict[str, str],
    place: Path,
    fetched: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
    there: bool,
) -> None:
    if there:
        put(place, b"whole", "old")
        (place / "model.onnx").write_bytes(b"damaged")
    fetched(lambda: None)
    rename = Path.rename

    def refused(self: Path, target: Path) -> Path:
        if self.name.startswith(".fetching-"):
            raise PermissionError(13, "Permission denied")
        return rename(self, target)

    monkeypatch.setattr(Path, "rename", refused)
    with pytest.raises(SpeckitError) as caught:
        fetching.fetch(MODEL, environ)
    assert caught.value.code == "E001"
    assert "could not be fetched: Permission denied" in caught.value.problems[0].message
    assert [path.name for path in place.parent.iterdir()] == ([place.name] if there else [])
    assert not there or (place / "model.onnx").read_bytes() == b"damaged"


def test_what_does_not_arrive_whole_is_no_success(
    environ: dict[str, str],
    place: Path,
    fetched: Callable[[Callable[[], object]], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    fetched(lambda: None)
    rename = Path.rename

    def torn(self: Path, target: Path) -> Path:
        moved = rename(self, target)
        if self.name.startswith(".fetching-"):
            (moved / "model.onnx").unlink()
        return moved

    monkeypatch.setattr(Path, "rename", torn)
    with pytest.raises(SpeckitError, match="is not the one that was stored"):
        fetching.fetch(MODEL, environ)
