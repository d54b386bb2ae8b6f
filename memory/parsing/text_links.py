"""Extracts implicit links of a document (feature I3): Markdown links to other documents, front matter keys such as
`replaces:` and `see-also:`, and lines such as `Superseded by [ADR-5](0005-use-y.md)`.

Like declared links they become edges, with the text as their evidence, and are removed when that text is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from itertools import chain, islice
from urllib.parse import unquote

from speckit_memory.config.workspace.formats import DOCUMENT_SUFFIXES
from speckit_memory.memory.parsing.declarations.metadata import MetadataField
from speckit_memory.memory.parsing.limits import LONGEST_TARGET, MOST_LINKS, cut_at_word
from speckit_memory.memory.parsing.markdown.commonmark import leaves
from speckit_memory.memory.store.records import MENTION, Link, Relation

RELATED, MENTIONED = 0.5, 0.3
"""Strengths of links stated as related, and of links mentioned in passing."""
_EVIDENCE = 200
_LONGEST_STATEMENT = 400

_FORWARD = ("supersedes", "replaces", "obsoletes")
_BACKWARD = ("superseded", "replaced", "obsoleted")
_FIELDS = {
    **dict.fromkeys(_FORWARD, (Relation.SUPERSEDES, 1.0, False)),
    **{f"{word}-by": (Relation.SUPERSEDES, 1.0, True) for word in _BACKWARD},
    **dict.fromkeys(("see-also", "related", "related-to", "relates-to"), (Relation.SUPPORTS, RELATED, False)),
}
_TARGET = (
    r"\((?:<(?P<{0}a>[^<>\n]{{1,1000}})>|(?P<{0}b>[^()\s]{{1,1000}}(?:\([^()\s]*\)[^()\s]*)*))"
    r"(?:[ \t]+[\"'(][^\n]{{0,100}}?[\"')])?[ \t]*\)"
)
_INLINE = re.compile(rf"\[(?<![!\\]\[)(?P<text>(?:[^\[\]\n]|\[[^\[\]\n]*\]){{1,300}})\]{_TARGET.format('')}")
_DEFINITION = re.compile(r"^ {0,3}\[(?P<text>[^\[\]\n]{1,300})\]:[ \t]*<?(?P<target>[^<>\s]+)>?", re.MULTILINE)
_TO_DOCUMENT = re.compile(rf"(?:{'|'.join(map(re.escape, sorted(DOCUMENT_SUFFIXES)))})(?:[#?)>\s]|\Z)", re.IGNORECASE)
_OTHER_PLACE = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:|//|#")
_NUMBERED = r"(?P<kind>[A-Za-z]{2,12})(?:[- #]|:`)?0*(?P<number>\d{1,6})(?!\w|[.-]\d)`?"
_REFERENCE = re.compile(
    # a link, with or without an address; a numbered document; a path; a bare number
    rf"[*_]{{0,3}}(?:\[(?P<text>[^\[\]\n]{{1,300}})\](?:{_TARGET.format('')}|\[[^\[\]\n]*\])?"
    rf"|:?{_NUMBERED}|(?P<path>[\w./-]+\.(?:md|markdown|mdx|rst|txt)\b)"
    r"|#?0*(?P<bare>\d{1,6})(?=[ \t]*(?:[,;&()\n]|\.(?!\d)|and\b|\Z)))"
)
_BEFORE = re.compile(r"\s*(?:[-*+][ \t]+)?(?:the[ \t]+)?", re.IGNORECASE)
_BETWEEN = re.compile(r"[*_]{0,3}[ \t]*(?:,[ \t]*(?:and[ \t]+)?|and[ \t]+|&[ \t]*|;[ \t]*|[-+*][ \t]+)")
_VERB = (
    r"(?P<verb>supersed(?:es|ed[ \t-]by)|replac(?:es|ed[ \t-](?:by|with))|obsolet(?:es|ed[ \t-]by))"
    r"[*_]{0,3}[ \t]{0,9}:?[*_]{0,3}[ \t]{0,9}"
)
_STATEMENT = re.compile(rf"\b{_VERB}", re.IGNORECASE)
_LINE = re.compile(
    r"[ \t]*(?:[-*+>][ \t]+)*[*_]{0,3}(?:status[*_]{0,3}:[*_]{0,3}[ \t]{0,9})?(?:(?:this|the present)[ \t])?"
    r"(?:(?:adr|decision|document|kep|note|page|pep|proposal|record|rfc|spec|specification)[ \t])?"
    rf"(?:(?:is|was|has been)[ \t])?(?:now[ \t])?[*_]{{0,3}}{_VERB}",
    re.IGNORECASE,
)
_STEMS = ("upersede", "eplace", "bsolete", "UPERSEDE", "EPLACE", "BSOLETE")
_KIND = re.compile(r"(?:adr|cip|decision|eip|jep|kep|ep|pep|proposal|rfc|rfd|rip|sep|spec|tip)", re.IGNORECASE)


def text_links(body: str, fields: Iterable[MetadataField]) -> list[Link]:
    """Return the links of a text and its metadata fields, statements first; at most one mention per document. Line ends
    must be "\\n"."""
    links = [link for field in fields for link in _of_field(field)]
    lines = sorted({start for stem in _STEMS for start in _lines_with(body, stem)})
    statements = list(islice(filter(None, (_LINE.match(body, start) for start in lines)), MOST_LINKS))
    mentions = chain(_INLINE.finditer(body), _DEFINITION.finditer(body)) if _TO_DOCUMENT.search(body) else iter(())
    addressed = list(islice(mentions, MOST_LINKS))
    # Links in code and HTML blocks do not count; blocks are only parsed if there is a candidate.
    no_text = (
        [(leaf.start, leaf.end) for leaf in leaves(body) if leaf.kind in ("fence", "code", "html")]
        if statements or addressed
        else []
    )

    def is_text(at: int) -> bool:
        in_code = body.count("`", body.rfind("\n", 0, at) + 1, at) % 2
        return not in_code and not any(start <= at < end for start, end in no_text)

    for match in statements:
        if is_text(match.start("verb")):
            # The rest of the line holds the targets; the line from the verb on is the evidence.
            line = body[match.start("verb") : match.end() + _LONGEST_STATEMENT].split("\n", 1)[0]
            links += _statement(match["verb"], line[len(match[0]) - match.start("verb") + match.start() :], line)
    linked = {link.target for link in links}
    for match in addressed:
        address = match["target"] if match.re is _DEFINITION else match["a"] or match["b"]
        target = document_target(address)
        if target and target not in linked and is_text(match.start()):
            linked.add(target)
            links.append(Link(Relation.SUPPORTS, target, MENTIONED, _cut(MENTION + match[0].strip())))
    # Of equal links the first wins: fields, then statements, then mentions.
    first: dict[tuple[Relation, str, bool], Link] = {}
    for link in links:
        first.setdefault((link.relation, link.target, link.reverse), link)
    return list(first.values())


def _lines_with(text: str, word: str) -> Iterator[int]:
    """Yield the offsets of lines that contain a word. Most texts have few, so this is faster than a pattern."""
    at = text.find(word)
    while at >= 0:
        yield text.rfind("\n", 0, at) + 1
        end = text.find("\n", at)
        at = text.find(word, end) if end >= 0 else -1


def document_target(address: str) -> str:
    """Return the link target for the address of a document, "" if it is not a document of the workspace."""
    if _OTHER_PLACE.match(address):
        return ""
    path = unquote(re.split(r"[#?]", address, maxsplit=1)[0]).strip()
    if not path or len(path) > LONGEST_TARGET or not path.lower().endswith(tuple(DOCUMENT_SUFFIXES)):
        return ""
    return path.lstrip("/") if path.startswith(("/", ".")) else f"./{path}"


def _of_field(field: MetadataField) -> Iterator[Link]:
    if field.plain_name in _FIELDS:
        relation, strength, reverse = _FIELDS[field.plain_name]
        for value in _values(field.value):
            for target in list(islice(_references(value, bare=True), MOST_LINKS)) or [_link_target(value)]:
                if target:
                    yield Link(relation, target, strength, _cut(f"{field.name}: {value}"), reverse)
    elif field.plain_name in ("status", "state"):
        value = field.value[:_LONGEST_STATEMENT]
        for match in _STATEMENT.finditer(value):
            yield from _statement(match["verb"], value[match.end() :], f"{field.name}: {value}", bare=True)


def _values(value: str) -> list[str]:
    """Return the items of a JSON list, or the value itself."""
    if value.startswith("["):
        try:
            found = json.loads(value)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, list):
            return [
                str(each) for each in found[:MOST_LINKS] if isinstance(each, str | int) and not isinstance(each, bool)
            ]
    return [value]


def _link_target(value: str) -> str:
    """Return the link target for a key, path or file name, "" if it is none; for a folder, its README."""
    name = value.strip().strip("\"'`")
    if not name or len(name) > LONGEST_TARGET or re.search(r"\s|:", name) or name.casefold() in ("none", "null", "n/a"):
        return ""
    last = name.rstrip("/").rpartition("/")[2]
    if "/" in name and "." not in last.strip("."):
        name = f"{name.rstrip('/')}/README.md"
    return name.lstrip("/")


def _statement(verb: str, rest: str, told: str, *, bare: bool = False) -> Iterator[Link]:
    reverse = not verb.casefold().endswith("s")
    for target in _references(rest, bare=bare):
        yield Link(Relation.SUPERSEDES, target, 1.0, _cut(told), reverse)


def _references(text: str, *, bare: bool) -> Iterator[str]:
    """Yield the targets with which a text begins: links, paths and document numbers such as ADR-5. With `bare`, numbers
    without a prefix count too."""
    before = _BEFORE.match(text)
    at = before.end() if before else 0
    while match := _REFERENCE.match(text, at):
        target = ""
        if match["text"]:
            target = document_target(match["a"] or match["b"] or "") or next(_references(match["text"], bare=bare), "")
        elif match["path"]:
            target = match["path"].lstrip("/")
        elif match["kind"]:
            target = f"{match['kind'].casefold()}/#{match['number']}" if _KIND.fullmatch(match["kind"]) else ""
        elif bare:
            target = f"#{match['bare']}"
        if not target:
            return
        yield target
        between = _BETWEEN.match(text, match.end())
        if between is None:
            return
        at = between.end()


def _cut(text: str) -> str:
    return cut_at_word(" ".join(text[: 2 * _EVIDENCE].split()), _EVIDENCE)
