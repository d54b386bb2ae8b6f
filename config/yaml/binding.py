"""Binds positioned values to dataclasses: typed values, and all problems with their positions."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, is_dataclass, replace
from functools import cache
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

from pydantic import TypeAdapter, ValidationError

from speckit_memory.config.yaml.accepted import FORM, Accepted
from speckit_memory.config.yaml.reader import (
    AMBIGUOUS,
    MappingEntry,
    Node,
    Scalar,
    Sequence,
    YamlMapping,
    find,
    key_place,
    plain,
    plain_scalar,
    without,
)
from speckit_memory.errors import Problem, SpeckitError, Where, closest, nearest, refused
from speckit_memory.errors.echo import abridge

T = TypeVar("T")
Path = tuple[str | int, ...]
"""Keys and indexes from the root of a file to a value."""
NOWHERE = Where("", 1, 1)
UNKNOWN_KEY = "unknown_key"
"""The kind of a mistake whose last part is a key that is not accepted."""


class PlacedText(str):
    """A text that keeps its place, for fields whose values have one."""

    __slots__ = ("where",)
    where: Where


@dataclass(frozen=True, slots=True)
class Mistake:
    """A validation error at a path as written in the file."""

    path: Path
    kind: str
    message: str
    found: object


def mistakes_of(node: Node, error: ValidationError) -> list[Mistake]:
    """One mistake per place: of nested errors only the innermost is reported."""
    first: dict[Path, Mistake] = {}
    for detail in error.errors(include_url=False):
        parts = detail["loc"]
        path = _path_in_file(node, parts, missing=detail["type"] == "missing")
        kind = UNKNOWN_KEY if parts[-1:] == ("[key]",) or detail["type"] in _UNKNOWN else detail["type"]
        message = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Assertion failed, ")
        first.setdefault(path, Mistake(path, kind, message, detail.get("input")))
    # All proper prefixes of a path: an error at such a place is the echo of an inner one.
    above = {path[:end] for path in first for end in range(len(path))}
    return [mistake for path, mistake in first.items() if path not in above]


def _path_in_file(node: Node, parts: Path, *, missing: bool) -> Path:
    """The parts of a path that occur in the file; the others are pydantic's names for the forms of a value."""
    path: list[str | int] = []
    for at, part in enumerate(parts):
        if isinstance(node, YamlMapping) and isinstance(part, str) and (entry := node.get(part)):
            node = entry.value
        elif isinstance(node, Sequence) and isinstance(part, int) and part < len(node.items):
            node = node.items[part]
        elif not (missing and at == len(parts) - 1):
            continue
        path.append(part)
    return tuple(path)


def bind(kind: type[T], node: Node | None, owner: str, actions: tuple[str, ...]) -> tuple[T, list[Problem]]:
    """The values of a mapping, and all problems with it, by position.

    Empty values and invalid ones count as absent.

    Args:
        kind: A dataclass whose fields have defaults.
        node: The mapping; None or an empty value for the defaults.
        owner: What the mapping is, for messages: "the file".
        actions: Next steps for values of the wrong form.
    """
    if node is None or (isinstance(node, Scalar) and node.value is None):
        return kind(), []
    if not isinstance(node, YamlMapping):
        return kind(), [_misshapen(node, owner, Accepted(_in_words(kind)), actions)]
    problems: list[Problem] = []
    # Ends: every round removes what is wrong.
    while True:
        try:
            return _adapter(kind).validate_python(_values(node)), sorted(problems, key=lambda one: one.where or NOWHERE)
        except ValidationError as error:
            wrong = mistakes_of(node, error)
        problems += [_problem(kind, node, mistake, owner, actions) for mistake in wrong]
        # From the last item of a list to the first, so that the indexes of earlier ones stay valid.
        for mistake in reversed(wrong):
            node = without(node, mistake.path)


def bind_whole(
    kind: type[T], node: Node, owner: str, within: str = "", actions: tuple[str, ...] = ()
) -> tuple[T | None, list[Problem]]:
    """The values of a mapping that is used as a whole: None with any problem. Empty values count as absent.

    Args:
        kind: A dataclass.
        node: The mapping.
        owner: What the mapping is, for messages: "a criterion".
        within: Phrase after the name of a value in messages: " of 'NAME'".
        actions: Next steps for values of the wrong form; default: those of the code.
    """
    if not isinstance(node, YamlMapping):
        return None, [_misshapen(node, owner, Accepted(_in_words(kind)), actions)]
    try:
        found: T = _adapter(kind).validate_python(_values(node))
    except ValidationError as error:
        wrong = mistakes_of(node, error)
    else:
        return found, []
    # A misspelt key is the one that is missing.
    misspelt = any(mistake.kind == UNKNOWN_KEY for mistake in wrong)
    told = [mistake for mistake in wrong if mistake.kind != "missing" or not misspelt]
    return None, [_problem(kind, node, mistake, owner, actions, within) for mistake in told]


def setting_from_text(kind: type[Any], field: str, text: str, name: str) -> Any:
    """The value of one field given as a text. Raises E030.

    Args:
        kind: The dataclass.
        field: Name of the field.
        text: The text.
        name: What gives it, for messages: the name of an environment variable.
    """
    value = plain_scalar(text)
    entry = MappingEntry(field, NOWHERE, Scalar(text if value is None else value, NOWHERE))
    found, problems = bind(kind, YamlMapping((entry,), NOWHERE), "", ())
    if not problems:
        return getattr(found, field)
    inner, accepted = _field(kind, (field,))
    names = get_args(inner)
    step = f"a number such as {accepted.example}" if accepted.example else f"one of {', '.join(names)}"
    raise SpeckitError.of([refused(name, text, accepted.text or names, f"set {name} to {step}")])


_UNKNOWN = ("extra_forbidden", "unexpected_keyword_argument")


_adapter: Callable[[Any], TypeAdapter[Any]] = cache(TypeAdapter)


def _values(node: Node) -> object:
    """The node as plain data: tuples for lists, texts with their places, and mappings without empty values."""
    if isinstance(node, YamlMapping):
        given = ((entry.key, _values(entry.value)) for entry in node.entries)
        return {key: value for key, value in given if value is not None}
    if isinstance(node, Sequence):
        return tuple(_values(item) for item in node.items)
    if not isinstance(node.value, str):
        return node.value
    text = PlacedText(node.value)
    text.where = node.where
    return text


def _problem(
    kind: type[Any], node: Node, mistake: Mistake, owner: str, actions: tuple[str, ...], within: str = ""
) -> Problem:
    path, last = mistake.path, mistake.path[-1]
    found = find(node, path)
    if mistake.kind == UNKNOWN_KEY:
        inside = f"'{path[-2]}'" if len(path) > 1 else owner
        known = [field.name for field in fields(_field(kind, path[:-1])[0]) if field.init]
        message = f"{inside} has no key '{abridge(str(last))}'; {nearest(str(last), known)}"
        return Problem("E115", message, where=key_place(node, path))
    inner, accepted = _field(kind, path)
    if mistake.kind == "value_error" and mistake.message:
        return Problem("E114", mistake.message, accepted.hint, actions, found.where)
    names = accepted.names or (get_args(inner) if get_origin(inner) is Literal else ())
    words = accepted.text or (_list_names(names) if names else _in_words(inner))
    if mistake.kind == "missing":
        return Problem("E114", f"{owner} needs the key '{last}', {words}", FORM, actions, node.where)
    what = f"'{last}'{within}" if isinstance(last, str) else f"{accepted.item} of '{path[-2]}'"
    name = plain(found)
    close = closest(name, names) if isinstance(name, str) else ""
    if close:
        return Problem("E114", f"{what} is '{name}'; did you mean '{close}'?", accepted.hint, actions, found.where)
    return _misshapen(found, what, replace(accepted, text=words), actions)


def _misshapen(node: Node, what: str, accepted: Accepted, actions: tuple[str, ...]) -> Problem:
    """E114: a value does not have the expected form."""
    kinds = {Sequence: "a list", YamlMapping: "a mapping"}
    found = abridge(repr(node.value)) if isinstance(node, Scalar) else kinds[type(node)]
    return Problem("E114", f"{what} must be {accepted.text}; found {found}", accepted.hint, actions, node.where)


def _field(kind: Any, path: Path) -> tuple[Any, Accepted]:
    """The type of the value at a path of a dataclass, and what it accepts."""
    accepted = Accepted()
    for part in path:
        kind = get_args(kind)[0] if isinstance(part, int) else get_type_hints(kind, include_extras=True)[part]
        accepted = Accepted()
        if get_origin(kind) is Annotated:
            kind, *metadata = get_args(kind)
            accepted = next((one for one in metadata if isinstance(one, Accepted)), accepted)
    return kind, accepted


def _in_words(kind: Any) -> str:
    """What a type accepts: "one of a, b", or "a mapping with a, b"."""
    if is_dataclass(kind) and hasattr(kind, "EXAMPLE"):
        return f"a mapping such as {kind.EXAMPLE}"
    if is_dataclass(kind):
        return f"a mapping with {', '.join(field.name for field in fields(kind) if field.init)}"
    return _list_names(get_args(kind))


def _list_names(names: Iterable[str]) -> str:
    # Readers of YAML disagree on some words without quotes.
    quoted = (f'"{name}"' if name in AMBIGUOUS else name for name in names)
    return f"one of {', '.join(quoted)}"
