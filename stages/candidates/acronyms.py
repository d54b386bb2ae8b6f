"""Expands acronyms and abbreviates long forms, as the documents themselves define them: "Long Form (LF)"."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice

from pydantic import Field

from speckit_memory.memory.parsing.acronyms import SMALL_WORDS, long_form
from speckit_memory.pipeline.model.columns import Plan, Query
from speckit_memory.pipeline.ports import Scope, Store
from speckit_memory.pipeline.roles.contracts import About, Params

_WORD = re.compile(r"[^\W_]+")
_ACRONYM = re.compile(r"[^\W\d_]{2,6}")
_MOST_IN_FORM = 8


class AcronymsParams(Params):
    """The maximum length of queries, and of the search for definitions."""

    max_words: int = Field(
        4,
        ge=1,
        le=100,
        description="Maximum number of words; longer queries have enough words without this step.",
        json_schema_extra={"tunable": [1, 8]},
    )
    max_read: int = Field(
        50,
        ge=1,
        le=1000,
        description="Maximum number of passages with an acronym in which its definition is looked for.",
    )


class Acronyms:
    """Adds a variant of a short query in which an acronym is spelt out or a long form shortened.

    An acronym has the meaning that some document visible to the query gives it, as in "pod disruption budget (PDB)":
    words before the acronym in brackets whose initials it consists of, with or without small words. No dictionary is
    stored: definitions change and vanish with their documents. Each variant is searched by every channel. Feature C11.
    """

    about = About(features=("C11",), costly=True)
    Params = AcronymsParams

    def __init__(self, params: AcronymsParams) -> None:
        self._params = params

    def understand(self, query: Query, plan: Plan, store: Store) -> Plan:
        """The plan with one more variant if an acronym or a long form is known."""
        words = query.text.split()
        if query.concepts or not 0 < len(words) <= self._params.max_words:
            return plan
        scope = store.attributes.scope(query.wanted, query.now)
        known = dict([*self._spelt_out(words, scope, store), *self._shortened(query.text, scope, store)])
        if not known:
            return plan
        said = "|".join(map(re.escape, known))
        wording = re.sub(rf"(?<![^\W_])(?:{said})(?![^\W_])", lambda found: known[found[0]], query.text)
        told = "; ".join(f"'{said}' also as '{other}'" for said, other in known.items())
        variants = tuple(dict.fromkeys((*plan.variants, wording)))
        return replace(plan, variants=variants, reasons=plan.because(f"acronyms: {told}"))

    def _spelt_out(self, words: Sequence[str], scope: Scope, store: Store) -> Iterator[tuple[str, str]]:
        """The acronyms of the query with their long forms. A lower-case word only counts if it is the whole query."""
        index = store.lexicon.index("body", "chunk")
        for word in (word.strip(".,;:!?\"'()") for word in words):
            if not _ACRONYM.fullmatch(word) or not (word.isupper() or len(words) == 1):
                continue
            tokens = store.lexicon.analyse(word)
            if len(tokens) != 1 or not index.holders(tokens[0]):
                continue
            ids = index.ids_of(index.postings(tokens[0]).rows)
            ids = ids[scope.admits(ids)][: self._params.max_read]
            defined = re.compile(rf"(?<![^\W_])((?:[^\W_]+[ \n-]+){{1,{_MOST_IN_FORM}}})\({word.upper()}s?\)")
            for passage in store.passages.passages(ids.tolist()):
                found = (long_form(match[1], word) for match in defined.finditer(passage.text))
                if form := next(filter(None, found), ""):
                    yield word, form
                    break

    def _shortened(self, text: str, scope: Scope, store: Store) -> Iterator[tuple[str, str]]:
        """The longest run of query words for which documents define an acronym, with the acronym."""
        # bounded: a query without blanks may have thousands of words
        places = list(islice(_WORD.finditer(text), _MOST_IN_FORM + 1))
        if len(places) > _MOST_IN_FORM:
            return
        titles, bodies = store.lexicon.index("title"), store.lexicon.index("body")
        for size in range(len(places), 1, -1):
            for start in range(len(places) - size + 1):
                run = places[start : start + size]
                said = text[run[0].start() : run[-1].end()]
                # Initials of all words, and without small words: "Department of Defense" is DoD or DD.
                every = "".join(word[0][0] for word in run)
                telling = "".join(word[0][0] for word in run if word[0].casefold() not in SMALL_WORDS)
                for acronym in dict.fromkeys((every, telling)):
                    token = acronym.casefold()
                    known = len(acronym) > 1 and (bodies.holders(token) or titles.holders(token))
                    if known and len(store.fulltext.holding([f"{said} {acronym}"], 1, scope)):
                        yield said, acronym.upper()
                        return
