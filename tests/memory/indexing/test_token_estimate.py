"""The estimate against a real tokeniser, the bundled one, over texts of every kind that memories hold."""

from __future__ import annotations

import json
from base64 import b64encode
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from speckit_memory.errors import SpeckitError
from speckit_memory.memory.models.embedders import StaticEmbedder, counted_tokens
from speckit_memory.memory.models.embedders.counting import estimated_tokens

PROJECT = Path(__file__).parents[3]
MODEL = StaticEmbedder()
RANDOM = Random(7)
ROWS = [
    {"id": n, "key": f"docs/{n:04d}-fuse.md", "score": round(RANDOM.random(), 4), "state": "HOT"} for n in range(90)
]
TEXTS = {
    "prose": (PROJECT / "docs/decisions/0014-readings-of-the-catalogue.md").read_text(),
    "English": "The river had risen overnight, and nobody in the village could remember a spring like it. " * 20,
    "code": (PROJECT / "memory/parsing/markdown/chunks.py").read_text(),
    "configuration": (PROJECT / "config/pipeline.yaml").read_text(),
    "JSON": json.dumps(ROWS, indent=2),
    "minified JSON": json.dumps(ROWS, separators=(",", ":")),
    "table": "\n".join(f"| step{n} | {RANDOM.random():.3f} | {RANDOM.random():.3f} | yes |" for n in range(90)),
    "log": "\n".join(f"2026-11-22T08:42:{n % 60:02d}.{n:03d}Z INFO [work-3] GET /api/{n} 200 12ms" for n in range(90)),
    "Japanese": "全文検索は二文字の並びで日本語を索引する。順位を統合する。" * 20,
    "Chinese": "我们决定使用排名融合，因为词法和向量通道的分数无法比较。" * 20,
    "Korean": "전체 텍스트 검색은 두 글자의 배열로 한국어를 색인합니다." * 20,
    "Russian": "Мы решили объединять ранги, потому что оценки каналов несравнимы. " * 20,
    "German": "Wir haben uns entschieden, Ränge zusammenzuführen, weil die Bewertungen unvergleichbar sind. " * 20,
    "Arabic": "قررنا دمج الرتب لأن درجات القنوات المعجمية والمتجهة لا يمكن مقارنتها. " * 20,
    "Hindi": "हमने रैंक को मिलाने का निर्णय लिया क्योंकि अंकों की तुलना नहीं की जा सकती। " * 20,
    "signs": "∀x∈ℝ: ∑ᵢ wᵢ·xᵢ ≤ √(n−1) → λ ≥ ½ ⇒ α∧β; done 🎉 broken ❌ " * 20,
    "random": b64encode(RANDOM.randbytes(900)).decode() + RANDOM.randbytes(900).hex(),
}


@pytest.mark.requirement("T24")
@pytest.mark.parametrize("kind", TEXTS)
def test_the_estimate_is_hardly_ever_too_low_and_never_wildly_too_high(kind: str) -> None:
    text = TEXTS[kind]
    (real,) = MODEL.count_tokens([text])
    assert 0.95 * real <= estimated_tokens(text) <= 1.2 * real


@given(st.text(max_size=200), st.text(max_size=200))
def test_every_character_is_counted_by_some_kind(first: str, second: str) -> None:
    assert estimated_tokens("") == 0
    both = estimated_tokens(f"{first} {second}")
    assert both <= estimated_tokens(first) + estimated_tokens(second) + 2
    assert both >= (1 if (first + second).strip(" ") else 0)


@pytest.mark.requirement("T24")
def test_texts_are_counted_by_the_tokeniser_without_reading_the_vectors() -> None:
    model = StaticEmbedder()
    texts = ["fused by score", "", "全文検索"]
    assert counted_tokens(texts, model) == [len(tokens) for tokens in MODEL.tokenise(texts)]
    assert model._rows is None  # 32 MB and a tenth of a second, which counting does not need


def test_without_a_tokeniser_texts_are_counted_by_their_scripts(tmp_path: Path) -> None:
    broken = StaticEmbedder(tmp_path)
    with pytest.raises(SpeckitError, match="cannot be read"):
        broken.count_tokens(["x"])
    assert counted_tokens(["fused by score"], broken) == [estimated_tokens("fused by score")]
    assert counted_tokens(["fused by score"]) == [estimated_tokens("fused by score")]
