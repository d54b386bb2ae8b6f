"""Names in texts: each rule, what is no name, and texts made to keep a pattern busy."""

from __future__ import annotations

import random

import pytest

from speckit_memory.memory.graph.entities import DENIED, LONGEST, MOST, entities

TEXT = """# The Plan Of Record

We moved the Tenant Gateway to `raft` using Postgres, with sqlite-vec and via HTTP/2. The service implements OAuth2.

## Shared ledger of the north

It is called a "write barrier", and “ledger epoch”.

```python
class Not The Gateway: "nor this"
```
"""


@pytest.mark.requirement("M10.named")
def test_each_rule_finds_its_names() -> None:
    assert {entity.name: entity.kind for entity in entities(TEXT)} == {
        "plan of record": "phrase",
        "tenant gateway": "phrase",
        "postgres": "used",
        "sqlite-vec": "used",
        "http": "used",
        "oauth2": "used",
        "shared ledger of the north": "heading",
        "write barrier": "quoted",
        "ledger epoch": "quoted",
        "python": "language",
    }


@pytest.mark.requirement("M10.named")
@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("The TENANT GATEWAY and the Tenant Gateway", ["tenant gateway"]),
        ("The API. A Server. If Postgres", []),
        ("## Summary\n## Non-Goals\n### Open questions", []),
        ("# A title is no heading of a part", []),
        ('"x" and "123" and ""', []),
        (f"## {'long ' * 30}", []),
        ("## Caf\u00e9\n## Cafe\u0301", ["caf\u00e9"]),
        ("````sql\n```\nTenant Gateway\n````\nLedger Epoch", ["ledger epoch", "sql"]),
        ("~~~sql\nTenant Gateway", ["sql"]),
        ("", []),
    ],
)
def test_names_are_compared_without_capitals_and_articles(text: str, names: list[str]) -> None:
    assert [entity.name for entity in entities(text)] == names


@pytest.mark.requirement("M10.named")
def test_names_that_stand_there_most_often_are_kept_and_every_name_is_within_its_limits() -> None:
    text = "\n".join(f'"name {number:03}"' for number in range(2 * MOST)) + '\n"name 099"\n'
    found = entities(text)
    assert (found[0].name, len(found)) == ("name 099", MOST)
    random.seed(5)
    signs = ' \n\t"“”#`~ABCabc019._-é使'
    for _ in range(300):
        for name, _kind in entities("".join(random.choices(signs, k=200))):
            assert 1 < len(name) <= LONGEST
            assert name not in DENIED
            assert name == name.strip().casefold()


@pytest.mark.parametrize(
    "text",
    ["`" * 200_000, "```\n" * 50_000, "Aaaa " * 40_000, "## " + " " * 190_000 + "x", '"' * 200_000, "with " * 40_000,
     "## " + "the " * 40_000, "A0" * 99_999 + "_", "``` " + " " * 199_000],
    ids=lambda text: repr(text[:6]),
)  # fmt: skip
def test_no_text_keeps_a_pattern_busy(text: str) -> None:
    assert len(entities(text)) <= 2  # with a pattern that goes back over the text, this takes minutes
