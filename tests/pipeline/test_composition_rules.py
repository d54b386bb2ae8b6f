"""Rules about whole pipelines: one file that keeps to all of them, and for each rule one that breaks it (P6, P7)."""

from __future__ import annotations

from pathlib import Path

import pytest

from speckit_memory.engine import components
from speckit_memory.engine.pipelines import pipelines
from speckit_memory.pipeline import About, Plan, Query, Registry, Role, Store
from speckit_memory.pipeline.configuration.builder import examine
from speckit_memory.pipeline.configuration.schema import file_schema


def written(tmp_path: Path, text: str) -> Path:
    file = tmp_path / "p.yaml"
    file.write_text(text, encoding="utf-8")
    return file


COMPLETE = """\
candidates:
  understand:
    - {use: intent}
    - {use: complexity}
    - {use: router, simple: {channels: [vector, bm25]}}
    - {use: embedding_expansion}
  channels:
    - {use: vector, level: chunk}
    - {use: bm25}
    - {use: graph}
  recover: []
fusion:
  - {use: rrf, weights: by_intent, normalise: min_max}
  - {use: novelty}
  - {use: composite, model: by_intent}
rerank:
  - {use: collapse}
  - {use: min_max}
  - {use: channel_floor}
  - {use: mmr}
annotate:
  - {use: evidence_gap}
extends: none
"""
"""A file that keeps to every composition rule; each of the refused ones below breaks one."""

BROKEN = {
    "complexity routing keeps two channels": (
        "channels: [vector, bm25]}}", "channels: [vector, fts5]}}", (5, 29),
        "'router': simple queries keep fewer than 2 channels: of vector, fts5, this pipeline has vector",
    ),
    "a channel is routed to only when a step tells simple queries": (
        "    - {use: complexity}\n", "", (4, 7),
        "'router': routes by complexity, which no step determines; add 'complexity' before it",
    ),
    "complexity is judged before the queries are routed": (
        "    - {use: complexity}\n    - {use: router, simple: {channels: [vector, bm25]}}\n",
        "    - {use: router, simple: {channels: [vector, bm25]}}\n    - {use: complexity}\n", (5, 7),
        "'complexity' must come before 'router' (line 4)",
    ),
    "complexity is judged before queries are expanded": (
        "    - {use: complexity}\n    - {use: router, simple: {channels: [vector, bm25]}}\n    "
        "- {use: embedding_expansion}\n",
        "    - {use: embedding_expansion}\n    - {use: complexity}\n", (5, 7),
        "'complexity' must come before 'embedding_expansion' (line 4)",
    ),
    "simple queries are not expanded by vectors": (
        "    - {use: complexity}\n    - {use: router, simple: {channels: [vector, bm25]}}\n", "", (4, 7),
        "'embedding_expansion': must not expand simple queries, but no step finds them; add 'complexity' before it",
    ),
    "novelty comes before the passages are aggregated": (
        "  - {use: collapse}\n", "  - {use: collapse}\n  - {use: novelty, id: late}\n", (18, 5),
        "'novelty' is a signal and cannot be used under 'rerank'; it belongs to 'fusion'",
    ),
    "novelty comes before the composite": (
        "  - {use: novelty}\n  - {use: composite, model: by_intent}\n",
        "  - {use: composite, model: by_intent}\n  - {use: novelty}\n", (15, 5),
        "'novelty' must come before 'composite' (line 14)",
    ),
    "passages are made memories": (
        "  - {use: collapse}\n", "", (8, 7),
        "'vector' returns chunks, but no rerank step groups them; add 'collapse' under 'rerank'",
    ),
    "the channel floor needs scores in the unit interval": (
        "  - {use: min_max}\n  - {use: channel_floor}\n", "  - {use: channel_floor}\n  - {use: min_max}\n", (18, 5),
        "'channel_floor' needs scores on the scale unit; here they are on the scale boost. "
        "Put 'min_max' before it, or write 'after: min_max' where it is added to inherited steps that have one",
    ),
    "attributes are weighed by intent once": (
        "model: by_intent}\n", "model: by_intent}\n  - {use: composite, id: again, model: by_intent}\n", (16, 5),
        "'again' weighs attributes by intent, and so does 'composite'; keep one",
    ),
    "channels are weighed by intent once": (
        "normalise: min_max}\n", "normalise: min_max}\n  - {use: rrf, id: again, weights: by_intent}\n", (14, 5),
        "'again' weighs channels by intent, and so does 'rrf'; keep one",
    ),
    "nothing scores under annotate": (
        "  - {use: evidence_gap}", "  - {use: evidence_gap}\n  - {use: mmr, id: late}", (23, 5),
        "'mmr' is a reranker and changes scores or order, which nothing under 'annotate' may do; it belongs to "
        "'rerank'",
    ),
    "no signal stands under annotate": (
        "  - {use: evidence_gap}", "  - {use: importance}", (22, 5),
        "'importance' is a signal and changes scores or order, which nothing under 'annotate' may do; it belongs to "
        "'fusion'",
    ),
    "nothing is added to ranks without a normaliser": (
        "weights: by_intent, normalise: min_max}", "weights: by_intent}", (14, 5),
        "'novelty' adds a boost of the unit scale to scores on the scale rank_term. Set 'normalise' on the fuser",
    ),
    "a factor comes before what may leave scores below 0": (
        "  - {use: composite, model: by_intent}", "  - {use: interference}\n  - {use: importance}", (16, 5),
        "'importance' must come before 'interference' (line 15)",
    ),
    "the two decays of one memory exclude each other": (
        "  - {use: composite, model: by_intent}", "  - {use: composite, model: by_intent}\n  - {use: temporal}",
        (16, 5), "'temporal' and 'composite' (line 15) exclude each other",
    ),
}  # fmt: skip
"""Rule to a part of the complete file, what takes its place, where the problem is, and how it is told."""


@pytest.mark.requirement("P6", "P7")
def test_a_file_that_keeps_to_every_composition_rule_is_accepted(tmp_path: Path) -> None:
    assert pipelines.check(str(written(tmp_path, COMPLETE)), {}) == []


@pytest.mark.requirement("P6.once", "P7.expansion", "P7.novelty", "P7.floor", "P7.annotate")
@pytest.mark.parametrize("rule", BROKEN)
def test_a_file_that_breaks_one_rule_is_refused_at_the_place(rule: str, tmp_path: Path) -> None:
    part, instead, place, message = BROKEN[rule]
    assert COMPLETE.count(part) == 1
    file = str(written(tmp_path, COMPLETE.replace(part, instead)))

    found = [(p.where.file, p.where.line, p.where.column, p.message) for p in pipelines.check(file, {}) if p.where]

    assert (file, *place, message) in found


@pytest.mark.requirement("P6", "P7")
@pytest.mark.parametrize("weights", ["by_intent", "by_intent_ageless"])
def test_what_goes_by_intent_needs_a_step_that_determines_it(tmp_path: Path, weights: str) -> None:
    text = COMPLETE.replace("    - {use: intent}\n", "").replace("{use: mmr}", "{use: mmr, lambda: by_intent}")
    text = text.replace("weights: by_intent", f"weights: {weights}")

    found = pipelines.check(str(written(tmp_path, text)), {})

    said = "weighs by intent, which no step determines; add 'intent' under 'understand'"
    assert [(p.where.line, p.where.column, p.message) for p in found if p.where] == [
        (12, 25, f"'rrf' {said}"),
        (14, 29, f"'composite' {said}"),
        (19, 24, f"'mmr' {said}"),
    ]


class Asker:
    """Asks somebody what is wanted."""

    about = About(finds_intent=True)

    def __init__(self, params: object) -> None:
        pass

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        return plan


@pytest.mark.requirement("P6", "P7")
def test_a_step_of_another_distribution_may_determine_the_intent_and_names_no_feature(tmp_path: Path) -> None:
    registry = Registry()
    for role, component in components.COMPONENTS:
        registry.admit(role, component)
    registry.add(Role.UNDERSTANDER, Asker, "asker")

    checked = examine(str(written(tmp_path, COMPLETE.replace("use: intent", "use: asker"))), registry, {})

    assert checked.problems == ()
    described = file_schema(registry, [])["$defs"]["asker"]["description"]
    assert described == "Asks somebody what is wanted. (understander)"


@pytest.mark.requirement("P6")
@pytest.mark.parametrize("system", ["channels", "attributes"])
def test_either_weighting_by_intent_may_stand_alone(system: str, tmp_path: Path) -> None:
    text = COMPLETE.replace("weights: by_intent, ", "") if system == "attributes" else COMPLETE
    text = text.replace("model: by_intent", "model: five_factor") if system == "channels" else text

    assert pipelines.check(str(written(tmp_path, text)), {}) == []
