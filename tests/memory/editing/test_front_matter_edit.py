"""Front matter that is edited keeps whatever the edit does not say (feature T8)."""

from __future__ import annotations

import pytest
from answered import refused

from speckit_memory.memory.editing.front_matter_edit import Value, edit_front_matter

LIST = """---
trigger_phrases:  # what people say
  # of the cache
  - quokka cache  # the first one
  - "wombat: cache"
  # of its name
  - kangaroo

title: Caches
---
# Caches
"""

CASES: dict[str, tuple[str, dict[str, Value], str]] = {
    "a comment behind a value": (
        "---\ntier: important  # or the audit fails\n---\nText.\n",
        {"tier": "critical"},
        "---\ntier: critical  # or the audit fails\n---\nText.\n",
    ),
    "a sign that begins no comment": (
        '---\ntitle: "C # and F#" # languages\n---\n',
        {"title": "Only F# # here"},
        '---\ntitle: "Only F# # here" # languages\n---\n',
    ),
    "a list in one line": (
        "---\ntriggers: [a b, 'c # d'] # two\n---\n",
        {"triggers": ("e",)},
        "---\ntriggers: [e] # two\n---\n",
    ),
    "items that go and come": (
        LIST,
        {"triggers": ("quokka cache", "kangaroo", "rock: wallaby")},
        LIST.replace('  - "wombat: cache"\n', "").replace("  - kangaroo\n", '  - kangaroo\n  - "rock: wallaby"\n'),
    ),
    "items that stay, and another key": (
        LIST,
        {"triggers": ("quokka cache", "wombat: cache", "kangaroo"), "title": "Warm caches"},
        LIST.replace("title: Caches", "title: Warm caches"),
    ),
    "another order": (
        LIST,
        {"triggers": ("kangaroo", "quokka cache")},
        "---\ntrigger_phrases:  # what people say\n  # of the cache\n  # of its name\n  - kangaroo\n"
        "  - quokka cache\n\ntitle: Caches\n---\n# Caches\n",
    ),
    "no items": (
        LIST,
        {"triggers": ()},
        "---\ntrigger_phrases: []  # what people say\n\ntitle: Caches\n---\n# Caches\n",
    ),
    "items of several lines": (
        "---\ntriggers:\n  - one\n    two\n  - three\n---\n",
        {"triggers": ("three", "four")},
        "---\ntriggers:\n  - three\n  - four\n---\n",
    ),
    "items that are not indented, with the line ends of another system": (
        "---\r\ntriggers:\r\n- one\r\n# two was here\r\n- three\r\ntier: normal\r\n---\r\nText.\r\n",
        {"triggers": ("one", "three", "four")},
        "---\r\ntriggers:\r\n- one\r\n# two was here\r\n- three\r\n- four\r\ntier: normal\r\n---\r\nText.\r\n",
    ),
}


@pytest.mark.requirement("T8")
@pytest.mark.parametrize("case", CASES)
def test_what_an_edit_does_not_say_stays(case: str) -> None:
    before, values, after = CASES[case]

    assert edit_front_matter(before, values, "a.md") == after


def test_front_matter_that_cannot_be_edited_in_place_is_left_alone() -> None:
    with refused("E101"):
        edit_front_matter("---\n{title: a, tier: normal}\n---\n", {"title": "b"}, "a.md")
