"""How people ask to go on with their work, and what is left of a question when that is taken away."""

from __future__ import annotations

from collections.abc import Sequence

from speckit_memory.pipeline.ports import Lexicon

PHRASES = (
    "please resume continue carry on go going pick up where was I where were we left off stopped what is next last "
    "time yesterday today session previous earlier work working task tasks project status so far again did do does "
    "doing are you my our us the a an of in at to it this that with and let lets ok okay now can could"
)
"""How people ask for the state of their work. What else they say names the work they mean."""


def naming_terms(terms: Sequence[str], lexicon: Lexicon) -> tuple[str, ...]:
    """The terms of a question that name the work to go on with; none when it only asks to go on."""
    # word by word: of a text that holds nothing but stop words they are all kept
    idle = {term for word in PHRASES.split() for term in lexicon.analyse(word)}
    return tuple(term for term in dict.fromkeys(terms) if term not in idle)
