"""`model list`, `pull` and `use` through the installed script: fetched once, built beside, changed and taken back."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import embedding_service
import model_hub
import pytest
from embedding_service import Answer, Service, well
from files import write_file
from model_hub import MODEL, REVISION, Hub

from speckit_memory.evaluation.tuning import spaces
from tests.server.doors import COMMAND, DOCUMENTS, Ran, call, environment

pytest.importorskip("fastembed")

NAME = f"fastembed:{MODEL}"
NOBODY = "http://127.0.0.1:9"
"""Where no repository is."""

pytestmark = pytest.mark.requirement("I6", "I7")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    for key, text in DOCUMENTS.items():
        (tmp_path / key).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / key).write_text(text, encoding="utf-8")
    return tmp_path


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[Hub]:
    with model_hub.running(tmp_path) as running:
        yield running


@pytest.fixture
def service() -> Iterator[Service]:
    with embedding_service.running() as running:
        yield running


def run(root: Path, *arguments: str, **environ: str) -> Ran:
    """A run of the script without a network but for what `environ` names."""
    models = {"SPECKIT_MODELS": str(root / "models"), "HF_ENDPOINT": NOBODY, "HF_HUB_DISABLE_TELEMETRY": "1"}
    return call(root, arguments, environment(root, **{**models, **environ}), cwd=root)


def model_in_use(root: Path, **environ: str) -> str:
    (found,) = [
        one
        for one in run(root, "model", "list", "--json", **environ).json["store"]["models"]
        if one["place"] == "in use"
    ]
    return str(found["name"])


def search(root: Path, text: str, **environ: str) -> tuple[list[str], str]:
    """The keys found and everything that is told beside them."""
    found = run(root, "search", text, "--json", **environ).ok()
    return [result["key"] for result in found.json["results"]], found.out


@pytest.mark.requirement("I6.fetched", "I6.back")
@pytest.mark.usefixtures("processes")
def test_a_model_is_fetched_used_without_a_network_and_taken_back(root: Path, hub: Hub) -> None:
    assert run(root, "index", "docs").status == 0
    assert model_in_use(root) == "bundled"
    before = search(root, "why are ranks fused")
    fetched = run(root, "model", "pull", NAME, "--json", HF_ENDPOINT=hub.url).ok()
    assert fetched.json["fetched"]
    assert (fetched.json["revision"], "OnnxTextEmbedding" in fetched.json["pooling"]) == (REVISION, True)
    assert set(fetched.json["files"]) == set(hub.files)

    refused = run(root, "model", "use", NAME, "--json")  # where there is no network
    assert (refused.status, "changed" in refused.json) == (1, False), "a model of five words is worse"
    assert refused.json["built"]["embedded"] == refused.json["built"]["total"] > 0
    assert refused.json["compared"]["made"] > 0
    assert model_in_use(root) == "bundled"
    used = run(root, "model", "use", NAME, "--no-compare", "--json").ok()
    assert used.json["built"]["embedded"] == 0, "what was built is kept"
    assert used.json["changed"]["pending"] == 0
    assert model_in_use(root) == NAME
    keys, told = search(root, "backup copy")
    assert keys[0] == "docs/storage/backup.md"
    assert "unavailable" not in told.lower()
    again = run(root, "index", "docs", "--force", "--json")  # by the model of the store
    assert (again.json["embedded"], again.json["pending"]) == (0, 0)
    run(root, "doctor", "--json").ok()

    run(root, "model", "use", "--rollback", "--json").ok()
    assert model_in_use(root) == "bundled"
    assert search(root, "why are ranks fused")[0] == before[0]
    forth = run(root, "model", "use", "--rollback", "--json")
    assert forth.json["changed"]["after"] == used.json["changed"]["after"]
    assert model_in_use(root) == NAME
    assert run(root, "doctor", "--json").status == 0


@pytest.mark.usefixtures("processes")
def test_what_is_whole_is_not_fetched_again_and_what_is_damaged_is(root: Path, hub: Hub) -> None:
    run(root, "model", "pull", NAME, HF_ENDPOINT=hub.url)
    asked = len(hub.asked)
    assert not run(root, "model", "pull", NAME.lower(), "--json", HF_ENDPOINT=hub.url).json["fetched"]
    assert len(hub.asked) == asked
    (weights,) = (root / "models").glob("*/*.onnx")
    weights.write_bytes(weights.read_bytes()[:-1] + b"x")
    run(root, "index", "docs")
    refused = run(root, "model", "use", NAME)
    assert refused.status != 0
    assert "model_optimized.onnx" in refused.err
    assert f"run `speckit-memory model pull {NAME}`" in refused.err
    assert model_in_use(root) == "bundled"
    assert run(root, "model", "pull", NAME, "--json", HF_ENDPOINT=hub.url).json["fetched"]
    assert run(root, "model", "use", NAME, "--no-compare").status == 0


@pytest.mark.parametrize("name", ["model_optimized.onnx", "tokenizer.json"])
@pytest.mark.usefixtures("processes")
def test_what_is_not_what_its_repository_says_is_not_kept(root: Path, hub: Hub, name: str) -> None:
    content = hub.files[name]
    hub.served[name] = bytes([content[0] ^ 1]) + content[1:]
    refused = run(root, "model", "pull", NAME, HF_ENDPOINT=hub.url)
    assert refused.status != 0
    assert f"the checksum of '{name}' is not that of its repository" in refused.err
    assert list((root / "models").iterdir()) == []


def test_where_there_is_no_network_a_fetch_says_so_and_leaves_nothing(root: Path) -> None:
    refused = run(root, "model", "pull", NAME)
    assert refused.status != 0
    assert f"{NAME} could not be fetched" in refused.err
    assert "Traceback" not in refused.err
    assert list((root / "models").iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (["pull", "fastembed:BAAI/bge-smal-en-v1.5"], "did you mean 'BAAI/bge-small-en-v1.5'?"),
        (["pull", "fastembd:BAAI/bge-small-en-v1.5"], "did you mean 'fastembed'?"),
        (["pull", "openai:text-embedding-3-small"], "cannot be fetched"),
        (["use", "bundld"], "did you mean 'bundled'?"),
        (["use", "mine"], "error E001: 'mine' is neither an ONNX file nor a folder"),
        (["use", NAME], f"run `speckit-memory model pull {NAME}`"),
        (["use", "ollama:tiny"], "is not the model that SPECKIT_EMBEDDER names"),
        (["use", "--rollback"], "was never changed"),
        (["use"], "give either a NAME or --rollback"),
    ],
)
def test_a_wrong_name_is_told_with_what_to_do(root: Path, arguments: list[str], part: str) -> None:
    run(root, "index", "docs")
    refused = run(root, "model", *arguments)
    assert refused.status != 0
    assert part in " ".join(refused.err.split()), refused.err
    assert "Traceback" not in refused.err
    assert model_in_use(root) == "bundled"


def many(root: Path) -> None:
    for number in range(300):
        (root / "docs" / f"note{number}.md").write_text(f"# Note {number}\n\nThe subject of it is number {number}.\n")
    assert run(root, "index", "docs").status == 0


@pytest.mark.requirement("I6.beside")
@pytest.mark.usefixtures("processes")
def test_killed_while_vectors_are_made_the_old_ones_serve_and_the_next_run_goes_on(
    root: Path, service: Service
) -> None:
    many(root)
    go_on = threading.Event()

    def held(service: Service, body: dict[str, Any]) -> Answer:
        if len(body["input"]) > 1 and len(service.texts) > 100:
            go_on.wait(240)
        return well(service, body)

    service.always = held
    named = {"SPECKIT_EMBEDDER": "openai:tiny", "SPECKIT_EMBEDDER_URL": service.url, "SPECKIT_EMBEDDER_BATCH": "8"}
    env = environment(root, SPECKIT_EMBEDDER_TIMEOUT_S="300", **named)
    first = subprocess.Popen([COMMAND, "model", "use", "openai:tiny", "--no-compare"], env=env, cwd=root)
    deadline = time.monotonic() + 120
    while len(service.texts) <= 100 and time.monotonic() < deadline:
        time.sleep(0.02)
    keys, told = search(root, "number 7")  # the old vectors serve meanwhile, and say so
    assert keys
    assert "vectors of openai:tiny are being made" in told
    second = call(root, ["model", "use", "openai:tiny", "--no-compare"], env, cwd=root)
    assert second.status != 0
    assert "another process builds the vectors of openai:tiny" in " ".join(second.err.split())
    first.send_signal(signal.SIGKILL if sys.platform != "win32" else signal.SIGTERM)
    first.wait()
    go_on.set()
    assert model_in_use(root) == "bundled"
    kept, told = search(root, "number 7")
    assert kept == keys
    assert "being made" not in told
    assert "vectors of openai:tiny are made for" in told

    service.always = well
    sent = len(service.texts)
    done = call(root, ["model", "use", "openai:tiny", "--no-compare", "--json"], env, cwd=root).ok()
    assert done.json["built"]["cached"] > 0
    assert len(service.texts) - sent < done.json["built"]["total"]
    assert done.json["changed"]["pending"] == 0
    assert model_in_use(root) == "openai:tiny"
    _, told = search(root, "number 7", **named)
    assert "being made" not in told
    assert run(root, "doctor", "--json", **named).status == 0


def test_a_file_of_a_store_makes_no_process_ask_a_service(root: Path, service: Service) -> None:
    run(root, "index", "docs")
    named = {"SPECKIT_EMBEDDER": "openai:tiny", "SPECKIT_EMBEDDER_URL": service.url}
    assert run(root, "model", "use", "openai:tiny", "--no-compare", **named).status == 0
    sent = len(service.texts)
    keys, told = search(root, "backups", SPECKIT_EMBEDDER_URL=service.url, OPENAI_API_KEY="sk-key")
    assert keys
    assert "run `speckit-memory index PATH`" in told
    assert len(service.texts) == sent


@pytest.mark.requirement("I6.fetched")
@pytest.mark.usefixtures("processes")
def test_only_model_use_leaves_a_choice_that_runs_without_the_variable_obey(root: Path, hub: Hub) -> None:
    run(root, "index", "docs")
    run(root, "model", "pull", NAME, HF_ENDPOINT=hub.url)
    run(root, "index", "docs", SPECKIT_EMBEDDER=NAME)
    assert model_in_use(root) == NAME
    keys, told = search(root, "backup copy")  # the model is here, so that its vectors answer
    assert keys[0] == "docs/storage/backup.md"
    assert f"vectors of {NAME} answer; no model is configured" in told
    assert "E003" in run(root, "index", "docs", "--json").out
    assert model_in_use(root) == "bundled"

    assert run(root, "model", "use", NAME, "--no-compare").status == 0
    assert "E003" in run(root, "index", "docs", "--json", SPECKIT_EMBEDDER="bundled").out
    assert model_in_use(root) == "bundled"
    assert f"vectors of bundled answer; {NAME} was chosen for the store" in search(root, "backup copy")[1]
    assert "E003" in run(root, "index", "docs", "--json").out
    assert model_in_use(root) == NAME


def test_an_index_run_with_another_model_changes_only_when_all_vectors_are_there(root: Path, service: Service) -> None:
    run(root, "index", "docs")
    named = {"SPECKIT_EMBEDDER": "openai:tiny", "SPECKIT_EMBEDDER_URL": service.url}
    keys, told = search(root, "backups", **named)
    assert keys
    assert "vectors of bundled answer; SPECKIT_EMBEDDER names openai:tiny" in told
    assert service.texts == []  # the old vectors answer, and nobody is asked
    service.always = lambda _service, _body: (500, {}, b"")
    failed = run(root, "index", "docs", "--json", SPECKIT_EMBEDDER_TIMEOUT_S="1", **named)
    assert "E001" in failed.out
    assert model_in_use(root) == "bundled"
    service.always = well
    indexed = run(root, "index", "docs", "--json", **named)
    assert "E003" in indexed.out
    assert model_in_use(root) == "openai:tiny"
    assert indexed.json["pending"] == 0


def test_no_key_is_in_any_file_or_output(root: Path, service: Service) -> None:
    key = "sk-secret-of-the-user"
    named = {"SPECKIT_EMBEDDER": "openai:tiny", "SPECKIT_EMBEDDER_URL": service.url, "SPECKIT_EMBEDDER_KEY": key}
    runs = [
        run(root, *words, **named)
        for words in (("index", "docs"), ("search", "backups"), ("doctor",), ("model", "list"))
    ]
    assert {headers["authorization"] for headers in service.headers} == {f"Bearer {key}"}
    assert not any(key in found.out + found.err for found in runs)
    assert not any(key.encode() in path.read_bytes() for path in root.rglob("*") if path.is_file())


@pytest.mark.usefixtures("processes")
def test_two_processes_that_fetch_at_once_leave_one_whole_model(root: Path, hub: Hub) -> None:
    env = environment(root, SPECKIT_MODELS=str(root / "models"), HF_ENDPOINT=hub.url)
    processes = [
        subprocess.Popen([COMMAND, "model", "pull", NAME], env=env, stdout=subprocess.DEVNULL) for _ in range(2)
    ]
    assert [process.wait(120) for process in processes] == [0, 0]
    assert len(list((root / "models").iterdir())) == 1
    assert not run(root, "model", "pull", NAME, "--json").json["fetched"]


NOUNS = (
    "kettle",
    "violin",
    "glacier",
    "lawyer",
    "tractor",
    "pepper",
    "comet",
    "harbour",
    "beetle",
    "poem",
    "wallet",
    "knee",
)


def noise(_service: Service, body: dict[str, Any]) -> Answer:
    """Vectors that say nothing of the texts: digests."""
    data = [
        {"index": at, "embedding": [byte / 128 - 1 for byte in sha256(text.encode()).digest()]}
        for at, text in enumerate(body["input"])
    ]
    return 200, {}, json.dumps({"object": "list", "data": data, "model": body["model"]}).encode()


@pytest.mark.requirement("I6.worse")
def test_vectors_that_mean_nothing_are_called_worse_and_are_not_put_in_use(
    root: Path, tmp_path: Path, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    texts = [{"_id": noun, "title": "", "text": f"All about the {noun}."} for noun in NOUNS]
    asked = [{"_id": noun, "text": f"{noun}s?"} for noun in NOUNS]
    for name, rows in {"corpus.jsonl": texts, "queries.jsonl": asked}.items():
        write_file(tmp_path / "set" / name, "".join(json.dumps(row) + "\n" for row in rows))
    qrels = "".join(f"{noun}\t{noun}\t1\n" for noun in NOUNS)
    write_file(tmp_path / "set" / "qrels" / "test.tsv", f"query-id\tcorpus-id\tscore\n{qrels}")
    monkeypatch.setattr(spaces, "JUDGED", tmp_path / "set")
    monkeypatch.setattr(spaces, "MADE", 2)
    service.always = noise
    run(root, "index", "docs")

    refused = run(root, "model", "use", "openai:tiny", "--json", **service.environ)

    assert (refused.status, "changed" in refused.json) == (1, False)
    assert refused.json["refused"].startswith("nothing was changed, because the vectors of openai:tiny are worse")
    compared = refused.json["compared"]
    assert {one["verdict"] for one in compared["alone"]} == {"worse"}
    assert "same" not in {one["verdict"] for one in compared["comparisons"]}
    assert model_in_use(root) == "bundled"
    assert run(root, "model", "use", "openai:tiny", "--no-compare", **service.environ).status == 0
    assert model_in_use(root, **service.environ) == "openai:tiny"
