"""Changes the links of front matter in place: every other character of the document is kept (features I3 and M7)."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, YamlMapping, plain
from speckit_memory.config.yaml.reader import Sequence as List
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.front_matter_edit import (
    EditedBlock,
    block_of,
    comment_of,
    edit_front_matter,
    exact,
    last_line,
    scalar_or_list,
)
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.declarations.causal_links import VOCABULARY, declared_links
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.store.records import Link

_KEYS = ("causalLinks", "causal_links")
_ASIDE = re.compile(r"[ \t]*(?:#|[\r\n]*\Z)")
_IN_LINES = re.compile(r"[ \t]*-[ \t]")


class _Item(NamedTuple):
    """A link of front matter, as YAML on one line."""

    yaml: str
    link: Link


_Items = dict[str, list[_Item]]
"""Items by word of `VOCABULARY`."""


def declared_link(link: Link) -> tuple[str, str]:
    """The word of `VOCABULARY` that declares a link, and the link's target as YAML on one line."""
    word = link.evidence.partition(": ")[0]
    usual = VOCABULARY.get(word)
    if usual is None or (usual.relation, usual.reverse) != (link.relation, link.reverse):
        word = str(link.relation)
        if link.reverse:
            word = next(name for name, each in VOCABULARY.items() if each.reverse and each.relation == link.relation)
    parts = [f"target: {exact(link.target)}"]
    if link.strength != VOCABULARY[word].strength:
        parts.append(f"strength: {scalar_or_list(link.strength)}")
    if link.evidence not in ("", f"{word}: {link.target}"):
        parts.append(f"evidence: {exact(link.evidence)}")
    return word, f"{{{', '.join(parts)}}}" if len(parts) > 1 else exact(link.target)


def edit_links(text: str, gone: Callable[[Link], bool], added: Sequence[Link], file: str) -> str:
    """The text of a document with changed links in its front matter.

    Lines of other links are kept. Front matter is added if there is none, and removed if it becomes empty.

    Args:
        text: The document.
        gone: Whether a declared link is to be removed.
        added: Links to add.
        file: Name of the document, for messages.

    Raises:
        SpeckitError: E101 if something else would have to change, as in broken front matter.
    """
    declared = front_matter.parse(clean(text), file)[0].links
    wanted = {link for link in declared if not gone(link)} | set(added)
    # Nothing to do: do not touch the file.
    if wanted == declared.keys():
        return text
    whole, block = text, block_of(text, file)
    if block is None:
        whole = edit_front_matter(text, {}, file)
        block = block_of(whole, file)
    if block is None or block.form == "toml":
        raise SpeckitError("E101", f"{file}: links cannot be declared in its front matter")
    entry = next((each for each in block.entries if each.key in _KEYS), None)
    before = _items(entry, file)
    after = {word: [item for item in items if not gone(item.link)] for word, items in before.items()}
    for link in added:
        word, item = declared_link(link)
        if link not in declared:
            after.setdefault(word, []).append(_Item(item, link))
    after = {word: items for word, items in after.items() if items or not before.get(word, (0,))}
    lines = _Lines(list(block.lines), "\r\n" if whole.partition("\n")[0].endswith("\r") else "\n")
    if entry is None:
        lines.lines.insert(block.end, "".join([f"{_KEYS[0]}:{lines.newline}", *lines.new(after, "  ")]))
    elif any(after.values()):
        lines.put(block, entry, before, after)
    else:
        lines.remove(block, entry)
    changed = "".join(lines.lines)
    _require_only(text, changed, wanted, file)
    return changed


class _Lines(NamedTuple):
    """The lines of a document being changed, and its line ending."""

    lines: list[str]
    newline: str

    def new(self, items: _Items, indent: str) -> list[str]:
        """Lines that declare these items."""
        return [f"{indent}{word}: {_list(each)}{self.newline}" for word, each in items.items() if each]

    def remove(self, block: EditedBlock, entry: MappingEntry) -> None:
        """Remove an entry, and front matter that contains nothing else."""
        first, last = entry.where.line - 1, last_line(block, entry)
        others = [*self.lines[block.start : first], *self.lines[last + 1 : block.end]]
        self.lines[first : last + 1] = []
        if not "".join(others).strip():
            self.lines[block.start - 1 : block.start + 1 + len(others)] = []

    def put(self, block: EditedBlock, entry: MappingEntry, before: _Items, after: _Items) -> None:
        """Make an entry declare other items; of a multi-line entry, only lines of words with changed items change.

        Args:
            block: The front matter.
            entry: The entry of the links.
            before: Items by word, as declared.
            after: Items by word, as wanted.
        """
        first, last = entry.where.line - 1, last_line(block, entry)
        words = entry.value.entries if isinstance(entry.value, YamlMapping) else ()
        # Line-wise editing needs one line per word; else the entry is rewritten on one line.
        rows = [word.where.line - 1 for word in words]
        if not rows or first in rows or len(set(rows)) < len(rows):
            every = ", ".join(f"{word}: {_list(items)}" for word, items in after.items() if items)
            self._rewrite(first, last, f"{entry.key}: {{{every}}}", entry)
            return
        indent = self.lines[rows[0]][: words[0].where.column - 1]
        for word, row, end in zip(words, rows, [*(row - 1 for row in rows[1:]), last], strict=True):
            items, bottom = after.get(word.key, []), end
            while bottom > row and _ASIDE.match(self.lines[bottom]):
                bottom -= 1
            if not items and before[word.key]:
                self.lines[row : bottom + 1] = [""] * (bottom + 1 - row)
            elif items != before[word.key] and not self._listed_in_lines(word, bottom, before[word.key], items):
                self._rewrite(row, bottom, f"{indent}{word.key}: {_list(items)}", word)
        self.lines[last] += "".join(
            self.new({word: each for word, each in after.items() if word not in before}, indent)
        )

    def _listed_in_lines(self, word: MappingEntry, bottom: int, before: list[_Item], after: list[_Item]) -> bool:
        """Change a list with one line per item, keeping comments between them; False for any other list."""
        row = word.where.line - 1
        nodes = word.value.items if isinstance(word.value, List) else ()
        places = {node.where.line - 1: item for node, item in zip(nodes, before, strict=False)}
        lines = {at: self.lines[at] for at in range(row + 1, bottom + 1)}
        if not places or len(places) < max(len(nodes), len(before)) or not places.keys() <= lines.keys():
            return False
        if any(not (_IN_LINES if at in places else _ASIDE).match(line) for at, line in lines.items()):
            return False
        dash = self.lines[next(iter(places))].partition("-")[0]
        self.lines[bottom] += "".join(f"{dash}- {item.yaml}{self.newline}" for item in after if item not in before)
        for at, item in places.items():
            if item not in after:
                # Keeps new items that were appended to this line above.
                self.lines[at] = self.lines[at][len(lines[at]) :]
        return True

    def _rewrite(self, first: int, last: int, line: str, entry: MappingEntry) -> None:
        comment = comment_of(self.lines[first].rstrip("\r\n"), entry)
        self.lines[first : last + 1] = [f"{line}{comment}{self.newline}", *[""] * (last - first)]


def _items(entry: MappingEntry | None, file: str) -> _Items:
    """The links that an entry declares. Raises E101 if something in it is not a link."""
    if entry is None or (isinstance(entry.value, Scalar) and entry.value.value is None):
        return {}
    broken = SpeckitError("E101", f"{file}: its causalLinks are invalid; `index` lists the problems")
    if not isinstance(entry.value, YamlMapping):
        raise broken
    found: _Items = {}
    for word in entry.value.entries:
        nodes = word.value.items if isinstance(word.value, List) else (word.value,)
        found[word.key] = []
        for node in nodes:
            links, problems = declared_links(YamlMapping((replace(word, value=node),), node.where))
            if problems or (not links and len(nodes) > 1):
                raise broken
            found[word.key] += [_Item(_yaml(node), link) for link in links]
    return found


def _yaml(node: Node) -> str:
    """A target as YAML on one line."""
    if isinstance(node, YamlMapping):
        return f"{{{', '.join(f'{each.key}: {_yaml(each.value)}' for each in node.entries)}}}"
    value = plain(node)
    return exact(value) if isinstance(value, str) else scalar_or_list(float(str(value)))


def _list(items: Sequence[_Item]) -> str:
    return f"[{', '.join(item.yaml for item in items)}]"


def _require_only(text: str, after: str, wanted: Collection[Link], file: str) -> None:
    """Check the result: the document must declare the wanted links, and nothing else may have changed."""
    (before, problems), (found, wrong) = (front_matter.parse(clean(each), file) for each in (text, after))
    moved = replace(before, body_start=found.body_start, body_line=found.body_line, links=found.links)
    same = moved == found and found.links.keys() == wanted
    if not same or clean(after)[found.body_start :] != clean(text)[before.body_start :] or len(wrong) > len(problems):
        raise SpeckitError("E101", f"{file}: its front matter cannot be changed without changing something else")
