"""Reads the links a document declares to others (feature I3), in its front matter or in a `causalLinks:` block.

docs/decisions/0006-link-vocabulary.md explains which edge each relation word becomes.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Set
from typing import NamedTuple

from speckit_memory.config.yaml.reader import Node, Scalar, Sequence, YamlMapping, plain, read
from speckit_memory.errors import Problem, Where, nearest
from speckit_memory.memory.parsing.limits import (
    LONGEST_FRONT_MATTER,
    LONGEST_TARGET,
    MOST_LINK_BLOCKS,
    MOST_LINKS,
    Limits,
    limit_exceeded,
)
from speckit_memory.memory.store.records import Link, Relation
from speckit_memory.memory.store.tables.graph.link_targets import candidate_keys, last_part

WEAK = 0.5
"""Strength of links that state a connection but not a cause."""


class DeclaredRelation(NamedTuple):
    """The edge that a relation word declares; with `reverse`, the target is the source of the edge."""

    relation: Relation
    strength: float = 1.0
    reverse: bool = False


VOCABULARY: dict[str, DeclaredRelation] = {
    "caused_by": DeclaredRelation(Relation.CAUSED, reverse=True),
    "blocks": DeclaredRelation(Relation.ENABLED, WEAK),
    "related_to": DeclaredRelation(Relation.SUPPORTS, WEAK),
    **{relation.value: DeclaredRelation(relation) for relation in Relation},
}

LONGEST_EVIDENCE = 2000
"""Characters of the evidence text of a link."""
OF_A_LINK = ("target", "strength", "evidence")
"""The keys of a link written as a mapping."""
_BLOCK = re.compile(r"^([ \t]*)causal_?[lL]inks:[ \t]*$", re.MULTILINE)
_LONGEST_BLOCK = 20_000
_YAML_FENCE = re.compile(r"```ya?ml[ \t]*\n(?!---)")
_NEXT = ("write the whole key of the memory", "index the document it refers to")


def declared_links(node: Node) -> tuple[dict[Link, Where], list[Problem]]:
    """Read a `causalLinks` value: a mapping from words of `VOCABULARY` to one target or a list of them.

    A target may be a mapping with the keys `OF_A_LINK`. Each link is returned with the place of its target.
    """
    links: dict[Link, Where] = {}
    problems: list[Problem] = []
    match node:
        case Scalar(value=None):
            return {}, []
        case YamlMapping(entries=entries):
            pass
        case _:
            return {}, [Problem("E090", "causalLinks must map relations to lists of memories", where=node.where)]
    for entry in entries:
        meaning = VOCABULARY.get(entry.key)
        if meaning is None:
            hint = nearest(entry.key, VOCABULARY)
            problems.append(Problem("E090", f"'{entry.key}' is not a causal relation", hint, where=entry.where))
            continue
        values = entry.value.items if isinstance(entry.value, Sequence) else (entry.value,)
        for value in values:
            match value:
                case Scalar(value=str() as text) if text.strip():
                    target = text.strip()
                    if len(target) > LONGEST_TARGET:
                        problems.append(limit_exceeded("target", value.where))
                        continue
                    link = Link(meaning.relation, target, meaning.strength, f"{entry.key}: {target}", meaning.reverse)
                    links.setdefault(link, value.where)
                case YamlMapping() if value.get("target"):
                    described = _described(entry.key, meaning, value, problems)
                    if described is not None:
                        links.setdefault(described, value.where)
                case Scalar(value=None | ""):
                    pass
                case _:
                    message = f"'{entry.key}' must name memories by key, path or file name"
                    problems.append(Problem("E090", message, where=value.where))
    return links, problems


def _described(word: str, meaning: DeclaredRelation, node: YamlMapping, problems: list[Problem]) -> Link | None:
    """Read a link written as a mapping with the keys `OF_A_LINK`; None if a value is invalid."""
    said = {each.key: each for each in node.entries}
    wrong = [
        Problem("E090", f"'{each.key}' is not a key of a link", nearest(each.key, OF_A_LINK), where=each.where)
        for each in node.entries
        if each.key not in OF_A_LINK
    ]
    values = {name: plain(said[name].value) if name in said else None for name in OF_A_LINK}
    target, strength, evidence = (values[name] for name in OF_A_LINK)
    if not isinstance(target, str) or not target.strip():
        wrong.append(Problem("E090", "the target of a link must be a key, path or file name", where=node.where))
    elif len(target.strip()) > LONGEST_TARGET:
        wrong.append(limit_exceeded("target", said["target"].value.where))
    if strength is not None and (isinstance(strength, bool) or not isinstance(strength, int | float)):
        wrong.append(Problem("E090", "the strength of a link must be a number", where=said["strength"].where))
    elif isinstance(strength, int | float) and not 0 <= strength <= 1:
        wrong.append(Problem("E090", "the strength of a link must be from 0 to 1", where=said["strength"].where))
    if isinstance(evidence, list | dict) or len(str(evidence)) > LONGEST_EVIDENCE:
        message = f"the evidence of a link must be a text of at most {LONGEST_EVIDENCE:,} characters"
        wrong.append(Problem("E090", message, where=said["evidence"].where))
    problems += wrong
    if wrong or not isinstance(target, str):
        return None
    told = "" if evidence is None else str(evidence).strip()
    value = meaning.strength if not isinstance(strength, int | float) else float(strength)
    return Link(meaning.relation, target.strip(), value, told or f"{word}: {target.strip()}", meaning.reverse)


def body_links(
    text: str, file: str, first_line: int = 1, limits: Limits | None = None
) -> tuple[dict[Link, Where], list[Problem]]:
    """Read the links of every `causalLinks:` block in a text.

    A block starts a paragraph or a code fence, or is among the keys of a YAML fence below a heading with "metadata".

    Args:
        text: The text to search.
        file: The file named in the places of links and problems.
        first_line: The number of the text's first line in its file.
        limits: Notes the first block beyond the limits of a document; reading stops there.

    Returns:
        The links, each with the place of its target, and the problems found.
    """
    links: dict[Link, Where] = {}
    problems: list[Problem] = []
    line, counted, blocks, characters, looked_back = first_line, 0, 0, 0, 0
    for match in _BLOCK.finditer(text) if "inks:" in text else ():
        previous = text[text.rfind("\n", 0, max(match.start() - 1, 0)) + 1 : match.start()].strip()
        # A block must start a paragraph or a fence, except among metadata; the look-backs are bounded too.
        if previous and not previous.startswith(("```", "~~~")) and not previous.endswith("-->"):
            looked_back += 1
            if looked_back > MOST_LINK_BLOCKS or not _in_metadata(text, match.start()):
                continue  # among other keys: an example of front matter
        blocks += 1
        if blocks > MOST_LINK_BLOCKS or characters > LONGEST_FRONT_MATTER or len(links) > MOST_LINKS:
            (limits or Limits()).note("link block", text, match.start())
            break
        block = [match[0]]
        for following in text[match.end() + 1 : match.end() + _LONGEST_BLOCK].split("\n"):
            content = following.lstrip()
            if not content or not (len(following) - len(content) > len(match[1]) or content.startswith("- ")):
                break
            block.append(following)
        line, counted = line + text.count("\n", counted, match.start()), match.start()
        characters += sum(map(len, block))
        indented = "\n".join(block)  # indentation by blanks is valid YAML and keeps the columns of the places
        node, found = read(textwrap.dedent(indented) if "\t" in match[1] else indented, file, line)
        problems += found
        if isinstance(node, YamlMapping):
            declared, found = declared_links(node.entries[0].value)
            links |= declared
            problems += found
    return links, problems


def _in_metadata(text: str, offset: int) -> bool:
    """Whether an offset is within a YAML fence below a heading with the word "metadata".

    Session templates keep their metadata there. A fence that begins with a line --- is an example of front matter.
    """
    fence = text.rfind("\n```", max(0, offset - _LONGEST_BLOCK), offset)
    opening = _YAML_FENCE.match(text, fence + 1) if fence >= 0 else None
    if opening is None or opening.end() > offset:
        return False
    heading = text.rfind("\n#", max(0, fence - _LONGEST_BLOCK), fence + 1)
    return heading >= 0 and "metadata" in text[heading : text.find("\n", heading + 1)].casefold()


def unresolved(targets: Iterable[tuple[str, Where]], keys: Set[str]) -> list[Problem]:
    """Return a problem for every target that matches no memory, or several.

    `keys` holds the keys of all stored memories. The file of a target's place is the key of the declaring document.
    """
    by_name: dict[str, set[str]] = {}
    problems: list[Problem] = []
    for target, where in targets:
        if not by_name:
            for key in keys:
                by_name.setdefault(last_part(key), set()).add(key)
        found = candidate_keys(target, where.file, by_name.get(last_part(target), ()))
        if not found:
            hint = "The link is kept and takes effect once that memory is stored."
            problems.append(Problem("E090", f"'{target}' names no memory", hint, _NEXT, where))
        elif len(found) > 1:
            hint = f"It may mean {', '.join(found[:3])}{' and others' if len(found) > 3 else ''}."
            problems.append(Problem("E090", f"'{target}' names {len(found)} memories", hint, _NEXT, where))
    return problems
