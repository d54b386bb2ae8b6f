"""Changes the links of front matter in place: every other character of the document is kept (features I3 and M7)."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from typing import NamedTuple

from speckit_memory.config.yaml.editor import YamlEditor
from speckit_memory.config.yaml.reader import MappingEntry, Node, Scalar, YamlMapping, plain
from speckit_memory.config.yaml.reader import Sequence as List
from speckit_memory.errors import SpeckitError
from speckit_memory.memory.editing.front_matter_edit import (
    EditedBlock,
    block_of,
    edit_front_matter,
    exact,
    scalar_or_list,
)
from speckit_memory.memory.parsing.declarations import front_matter
from speckit_memory.memory.parsing.declarations.causal_links import VOCABULARY, declared_links
from speckit_memory.memory.parsing.encoding import clean
from speckit_memory.memory.store.records import Link

_KEYS = ("causalLinks", "causal_links")


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
    entry = block.entry(_KEYS)
    before = _items(entry, file)
    after = {word: [item for item in items if not gone(item.link)] for word, items in before.items()}
    for link in added:
        word, item = declared_link(link)
        if link not in declared:
            after.setdefault(word, []).append(_Item(item, link))
    after = {word: items for word, items in after.items() if items or not before.get(word, (0,))}
    changed = _with_links(block, entry, before, after)
    _require_only(text, changed, wanted, file)
    return changed


def _with_links(block: EditedBlock, entry: MappingEntry | None, before: _Items, after: _Items) -> str:
    """The document with other links; of an entry on several lines, only those of words with changed items change.

    Args:
        block: The front matter.
        entry: Its entry of links, None if there is none.
        before: Items by word, as declared.
        after: Items by word, as wanted.
    """
    editor = block.editor()
    lists = {word: _list(items) for word, items in after.items() if items}
    if entry is None:
        editor.add_at_end("".join([f"{_KEYS[0]}:\n", *(f"  {word}: {items}\n" for word, items in lists.items())]))
    elif not lists:
        editor.remove_lines(entry)
        # Front matter that contains nothing else goes with its delimiters.
        if not editor.result().strip():
            return block.removed()
    elif not isinstance(entry.value, YamlMapping) or entry.value.flow:
        editor.replace(entry, f"{{{', '.join(f'{word}: {items}' for word, items in lists.items())}}}")
    else:
        for word in entry.value.entries:
            items = after.get(word.key, [])
            if not items and before[word.key]:
                editor.remove_lines(word)
            elif items != before[word.key] and not _edit_list(editor, word.value, before[word.key], items):
                editor.replace(word, _list(items))
        new = {word: [f"{word}: {items}"] for word, items in lists.items() if word not in before}
        if new:
            editor.insert(entry.value, new)
    return block.with_text(editor.result())


def _edit_list(editor: YamlEditor, node: Node, before: list[_Item], after: list[_Item]) -> bool:
    """Change a list with each item on its own line; False for any other value."""
    if not isinstance(node, List) or len(node.items) != len(before):
        return False
    staying = [place for place, item in enumerate(before) if item in after]
    return editor.list_items(node, staying, [item.yaml for item in after if item not in before])


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
