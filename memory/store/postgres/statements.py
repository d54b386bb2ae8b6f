"""Translates the SQLite statements of the product into PostgreSQL's dialect.

Statements name no workspace: row-level security selects it, and a default fills it in. So `ON CONFLICT` targets and the
keys of `INSERT OR REPLACE` get the column `workspace` here. Every statement is translated once per process.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Container, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from speckit_memory.memory.store.file.schema.declared import nullable_columns, text_columns

WORKSPACE = "workspace"
_TOKEN = re.compile(
    r"""\s+ | --[^\n]* | [xX]'[^']*' | '(?:[^']|'')*' | "(?:[^"]|"")*" | \?\d* | [:@$][A-Za-z_]\w*
    | \d+(?:\.\d+)?(?:[eE][+-]?\d+)? | [A-Za-z_]\w* | ->>|->|<>|<=|>=|!=|==|\|\||<<|>>|:: | .""",
    re.VERBOSE | re.DOTALL,
)
_RENAMED = {
    "INSTR": "strpos",
    "IFNULL": "coalesce",
    "RANDOM": "random_token",
    "OCTET_LENGTH": "octet_length",
    "BLOB": "bytea",
    "INTEGER": "bigint",
    "REAL": "double precision",
}
_JSON_PATH = re.compile(r"'\$\.\"?(\w+)\"?'")


@dataclass(frozen=True, slots=True)
class Table:
    """A table: its columns without the workspace, and its primary key without the workspace."""

    name: str
    columns: tuple[str, ...]
    key: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement of PostgreSQL, with the number or name of the binding for each of its placeholders."""

    sql: str
    parameters: tuple[int | str, ...]


def translate(sql: str, tables: Mapping[str, Table]) -> list[Statement]:
    """The statements of a text, in order.

    Args:
        sql: One or more statements of SQLite, separated by semicolons.
        tables: The tables by name, whose keys `INSERT OR REPLACE` needs.
    """
    return [_one(tokens, tables) for tokens in split_at(";", tokenise(sql)) if tokens]


def tokenise(sql: str) -> list[str]:
    """The tokens of a text without white space and comments."""
    return [token for token in _TOKEN.findall(sql) if not token.isspace() and not token.startswith("--")]


def split_at(separator: str, tokens: Sequence[str]) -> list[list[str]]:
    """The runs of tokens between the separators that are outside of parentheses; BEGIN … END is not a pair."""
    parts: list[list[str]] = [[]]
    depth = 0
    for token in tokens:
        depth += (token == "(") - (token == ")")
        if token == separator and not depth:
            parts.append([])
        else:
            parts[-1].append(token)
    return parts


def expression(tokens: Sequence[str]) -> list[str]:
    """Translates an expression, or any part of a statement that holds no placeholders."""
    return list(_rewritten(list(tokens)))


def _one(tokens: list[str], tables: Mapping[str, Table]) -> Statement:
    tokens = list(_rewritten(_ordered(list(_listing(_insert(list(_numbered(tokens)), tables), tables)))))
    parameters: list[int | str] = []
    numbers: dict[int | str, int] = {}
    for at, token in enumerate(tokens):
        if token[0] == "?":
            name: int | str = int(token[1:]) - 1
        elif token[0] in ":@$" and len(token) > 1 and token[:2] != "::":
            name = token[1:]
        else:
            continue
        if name not in numbers:
            parameters.append(name)
            numbers[name] = len(parameters)
        tokens[at] = f"${numbers[name]}"
    return Statement(join(tokens), tuple(parameters))


def _numbered(tokens: Sequence[str]) -> Iterator[str]:
    """Gives every placeholder its number, since the rules move and repeat what holds them."""
    last = 0
    for token in tokens:
        if token[0] == "?":
            last = int(token[1:] or last + 1)
            yield f"?{last}"
        else:
            yield token


def _listing(tokens: Sequence[str], tables: Mapping[str, Table]) -> Iterator[str]:
    """Lists the columns of a table that `SELECT *` means, to which the workspace does not belong."""
    for at, token in enumerate(tokens):
        named = None
        if token == "*" and tokens[at - 1].upper() == "SELECT":
            place = _end(tokens, at, ("FROM",))
            named = tables.get("".join(tokens[place + 1 : place + 2]).strip('"'))
        yield from _listed(named.columns) if named else (token,)


def _ordered(tokens: Sequence[str]) -> list[str]:
    """Says in ORDER BY where NULL goes if a term can be NULL: SQLite takes it for the least value."""
    upper = [token.upper() for token in tokens]
    made: list[str] = []
    at = 0
    while at < len(tokens):
        made.append(tokens[at])
        at += 1
        if upper[at - 2 : at] != ["ORDER", "BY"]:
            continue
        end = _end(tokens, at, _AFTER_ORDER)
        for term in split_at(",", tokens[at:end]):
            *_, column = [token.strip('"') for token in term if token.upper() not in ("ASC", "DESC")]
            plain = all(token == "." or token.strip('"').isidentifier() for token in term)
            known = plain and column not in nullable_columns() and not _is_alias(upper, column.upper())
            made += _ordered(term)
            if not known and "NULLS" not in [token.upper() for token in term]:
                made += ["NULLS", "LAST" if term[-1].upper() == "DESC" else "FIRST"]
            made.append(",")
        made.pop()
        at = end
    return made


def _is_alias(upper: Sequence[str], name: str) -> bool:
    return any(pair == ("AS", name) for pair in pairwise(upper))


def _end(tokens: Sequence[str], at: int, ends: Container[str]) -> int:
    """The place of the first of these words, or of the parenthesis that closes what surrounds this place."""
    depth = 0
    for place in range(at, len(tokens)):
        if not depth and (tokens[place] == ")" or tokens[place].upper() in ends):
            return place
        depth += (tokens[place] == "(") - (tokens[place] == ")")
    return len(tokens)


def join(tokens: Sequence[str]) -> str:
    """The text of tokens."""
    text = " ".join(tokens)
    return re.sub(r" ?(\.) ?", r"\1", text) if "'" not in text and '"' not in text else _joined(tokens)


def _joined(tokens: Sequence[str]) -> str:
    parts: list[str] = []
    for token in tokens:
        if parts and token != "." and parts[-1][-1:] != ".":
            parts.append(" ")
        parts.append(token)
    return "".join(parts)


def _insert(tokens: list[str], tables: Mapping[str, Table]) -> list[str]:
    """Puts the workspace into conflict targets, and writes OR IGNORE and OR REPLACE as `ON CONFLICT`."""
    upper = [token.upper() for token in tokens]
    at = next((at for at, word in enumerate(upper) if word in ("INSERT", "REPLACE") and _begins(upper, at)), None)
    if at is None:
        return tokens
    into = upper.index("INTO", at)
    table = tokens[into + 1].strip('"')
    how = "REPLACE" if upper[at] == "REPLACE" else (upper[at + 2] if upper[at + 1] == "OR" else "")
    tokens = [*tokens[:at], "INSERT", *tokens[into:]]
    upper = [token.upper() for token in tokens]
    for place in range(len(tokens) - 2):
        if upper[place : place + 2] == ["ON", "CONFLICT"]:
            if upper[place + 2] == "(":
                tokens[place + 3 : place + 3] = [WORKSPACE, ","]
            elif upper[place + 2 : place + 4] == ["DO", "UPDATE"]:
                tokens[place + 2 : place + 2] = ["(", *_listed((WORKSPACE, *tables[table].key)), ")"]
            tokens = [*tokens[:place], *_of_table(tokens[place:], tables[table])]
            break
    named = upper.index("INTO") + 2
    if tokens[named] != "(" and table in tables:
        # by name: a column that a migration added follows the workspace
        tokens = [*tokens[:named], "(", *_listed(tables[table].columns), ")", *tokens[named:]]
        upper = [token.upper() for token in tokens]
    if not how:
        return tokens
    end = upper.index("RETURNING") if "RETURNING" in upper else len(tokens)
    return [*tokens[:end], *_on_conflict(how, tables[table]), *tokens[end:]]


def _of_table(tokens: Sequence[str], table: Table) -> Iterator[str]:
    """Names the table of each column that DO UPDATE reads: PostgreSQL does not choose between it and `excluded`."""
    reads = False
    for before, token, after in zip(("", *tokens), tokens, (*tokens[1:], ""), strict=False):
        reads = (reads or before.upper() == "SET") and token.upper() != "RETURNING"
        assigned = before.upper() in ("SET", ",") and after == "="
        if reads and token.strip('"') in table.columns and "." not in (before, after) and not assigned:
            yield from (table.name, ".")
        yield token


def _begins(upper: Sequence[str], at: int) -> bool:
    """Whether the word at this place begins an INSERT, rather than being the function REPLACE or OR REPLACE."""
    return upper[at] == "INSERT" or (upper[at] == "REPLACE" and upper[at + 1 : at + 2] == ["INTO"])


def _on_conflict(how: str, table: Table) -> list[str]:
    if how == "IGNORE":
        return ["ON", "CONFLICT", "DO", "NOTHING"]
    # columns that the statement does not name get their defaults, as in a row that is new
    others = [column for column in table.columns if column not in table.key]
    target = ["ON", "CONFLICT", "(", *_listed((WORKSPACE, *table.key)), ")", "DO"]
    if not others:
        return [*target, "NOTHING"]
    sets: list[str] = []
    for column in others:
        sets += [",", f'"{column}"', "=", "excluded", ".", f'"{column}"']
    return [*target, "UPDATE", "SET", *sets[1:]]


def _listed(columns: Sequence[str]) -> list[str]:
    return [part for column in columns for part in (",", f'"{column}"')][1:]


def _rewritten(tokens: list[str]) -> Iterator[str]:
    at = 0
    between = False  # the AND of a BETWEEN is followed by its upper bound, not by a condition
    while at < len(tokens):
        token = tokens[at]
        upper = token.upper()
        between, bound = (upper == "BETWEEN" or (between and upper != "AND")), between and upper == "AND"
        following = tokens[at + 1] if at + 1 < len(tokens) else ""
        if following == "(" and upper in _CALLS and (not at or tokens[at - 1] != "."):
            end = closing(tokens, at + 1)
            if upper == "CARRAY":
                yield from ("unnest", "(", tokens[at + 2], f"::{_kind_of_list(tokens, at)}[]", ")")
                at = yield from _alias(tokens, end + 1, "value")
                continue
            arguments = [list(_rewritten(part)) for part in split_at(",", tokens[at + 2 : end])]
            made = _CALLS[upper](arguments)
            if made is not None:
                yield from made
                at = end + 1
                continue
        if upper == "IS":
            at = yield from _is(tokens, at)
            continue
        if upper == "CROSS" and following.upper() == "JOIN" and _has_condition(tokens, at + 2):
            at += 1
            continue
        if (
            upper in ("WHERE", "AND", "OR", "ON", "NOT")
            and following in ("0", "1")
            and not bound
            and (at + 2 == len(tokens) or tokens[at + 2].upper() in _AFTER_CONDITION)
        ):
            yield from (token, "true" if following == "1" else "false")
            at += 2
            continue
        if upper == "GLOB" or (upper == "NOT" and following.upper() == "GLOB"):
            pattern = at + 1 + (upper == "NOT")
            yield from ("!~" if upper == "NOT" else "~", _regular_expression(tokens[pattern]))
            at = pattern + 1
            continue
        if upper == "LIKE":
            end = _end(tokens, at + 1, _AFTER_OPERAND)
            yield from ("ILIKE", *_rewritten(tokens[at + 1 : end]))
            if tokens[end : end + 1] != ["ESCAPE"]:
                yield from ("ESCAPE", "''")  # a backslash is an ordinary character, as in SQLite
            at = end
            continue
        if token[:2] in ("x'", "X'"):
            yield f"'\\x{token[2:-1]}' :: bytea"
        elif token == "==":
            yield "="
        elif upper == "LIMIT" and following == "-" and tokens[at + 2 : at + 3] == ["1"]:
            at += 2
        elif upper == "LIMIT" and following[:1] in "?:":
            yield from ("LIMIT", "nullif", "(", "greatest", "(", following, ":: bigint", ",", "-1", ")", ",", "-1", ")")
            at += 1
        elif upper in _RENAMED and (upper not in ("INSTR", "IFNULL", "RANDOM") or following == "("):
            yield _RENAMED[upper]
        else:
            yield token
        at += 1


def closing(tokens: Sequence[str], opening: int) -> int:
    """The place of the parenthesis that closes the one at this place."""
    depth = 0
    for at in range(opening, len(tokens)):
        depth += (tokens[at] == "(") - (tokens[at] == ")")
        if not depth:
            return at
    raise ValueError("a parenthesis is not closed")


def _kind_of_list(tokens: Sequence[str], at: int) -> str:
    """The type of the elements of a list: that of the column which `IN (SELECT value FROM` compares with it."""
    before = [token.upper() for token in tokens[max(0, at - 5) : at]]
    if before == ["IN", "(", "SELECT", "VALUE", "FROM"]:
        column = tokens[at - 7 if tokens[at - 6].upper() == "NOT" else at - 6].strip('"')
        return "text" if column in text_columns() else "bigint"
    return "bigint"


def _alias(tokens: Sequence[str], at: int, column: str) -> Generator[str, None, int]:
    """Gives a function in FROM the column name that the statement uses; returns the place after its alias."""
    word = tokens[at].upper() if at < len(tokens) else ""
    if word == "AS":
        yield from ("AS", tokens[at + 1], "(", column, ")")
        return at + 2
    if word.isidentifier() and word not in _AFTER_TABLE:
        yield from ("AS", tokens[at], "(", column, ")")
        return at + 1
    yield from ("AS", "listed", "(", column, ")")
    return at


_AFTER_TABLE = {
    *("WHERE", "ON", "JOIN", "CROSS", "LEFT", "INNER", "GROUP", "ORDER", "LIMIT", "UNION", "EXCEPT", "HAVING", "SET"),
    *("INTERSECT", "RETURNING"),
}


_AFTER_CONDITION = {")", "AND", "OR", *_AFTER_TABLE}
_AFTER_OPERAND = {*_AFTER_CONDITION, ",", "ESCAPE", "THEN", "ELSE", "END", "WHEN", "AS"}
_AFTER_ORDER = {"LIMIT", "ROWS", "RANGE", "RETURNING"}


def _has_condition(tokens: Sequence[str], at: int) -> bool:
    """Whether a join that begins here has a condition, which only SQLite allows after CROSS JOIN."""
    words = [token.upper() for token in tokens[at : at + 8]]
    return "ON" in words


def _is(tokens: Sequence[str], at: int) -> Generator[str, None, int]:
    """IS between two values, which is IS NOT DISTINCT FROM; returns the place after it."""
    words = [token.upper() for token in tokens[at : at + 3]]
    rest = words[1:]
    negated = bool(rest) and rest[0] == "NOT"
    operand = rest[1] if negated and len(rest) > 1 else (rest[0] if rest else "")
    if operand in ("NULL", "TRUE", "FALSE", "DISTINCT", "JSON"):
        yield "IS"
        return at + 1
    yield "IS DISTINCT FROM" if negated else "IS NOT DISTINCT FROM"
    return at + 1 + negated


def _regular_expression(pattern: str) -> str:
    """A pattern of GLOB, which must be a literal, as a regular expression."""
    parts = re.findall(r"\[\^?\]?[^]]*\]|.", pattern[1:-1], re.DOTALL)
    signs = {"*": ".*", "?": "."}
    return "'^" + "".join(signs.get(part) or (part if len(part) > 1 else re.escape(part)) for part in parts) + "$'"


Arguments = list[list[str]]


def _commas(arguments: Arguments) -> list[str]:
    return [token for part in arguments for token in (",", *part)][1:]


def _extreme(name: str) -> Callable[[Arguments], list[str] | None]:
    """MAX or MIN of several values, which is NULL if one of them is."""

    def call(arguments: Arguments) -> list[str] | None:
        if len(arguments) == 1:
            return None
        listed = ["(", *_commas(arguments), ")"]
        return ["CASE", "WHEN", "num_nulls", *listed, "=", "0", "THEN", name, *listed, "END"]

    return call


def _iif(arguments: Arguments) -> list[str]:
    condition, then, *other = arguments
    rest = other[0] if other else ["NULL"]
    return ["CASE", "WHEN", *condition, "THEN", *then, "ELSE", *rest, "END"]


def _group_concat(arguments: Arguments) -> list[str]:
    if len(arguments) == 1:
        arguments = [*arguments, ["','"]]
    return ["string_agg", "(", *_commas(arguments), ")"]


def _json_extract(arguments: Arguments) -> list[str] | None:
    path = _JSON_PATH.fullmatch(arguments[1][0])
    return None if path is None else ["(", "(", *arguments[0], ")", ":: json ->>", f"'{path[1]}'", ")"]


def _json_type(arguments: Arguments) -> list[str]:
    """By the first character: Python's NaN is JSON to SQLite, but not to PostgreSQL."""
    first = ["left", "(", *arguments[0], ",", "1", ")"]
    return ["CASE", *first, *tokenise("WHEN '{' THEN 'object' WHEN '[' THEN 'array' ELSE"), *first, "END"]


_CALLS: dict[str, Callable[[Arguments], list[str] | None]] = {
    "CARRAY": lambda _arguments: None,
    "IIF": _iif,
    "MAX": _extreme("greatest"),
    "MIN": _extreme("least"),
    "GROUP_CONCAT": _group_concat,
    "TOTAL": lambda arguments: ["coalesce", "(", "sum", "(", *arguments[0], ")", ",", "0", ")"],
    "JSON_TYPE": _json_type,
    "JSON_GROUP_ARRAY": lambda arguments: ["json_agg", "(", *_commas(arguments), ")", "::text"],
    "JSON_VALID": lambda arguments: ["(", *arguments[0], "IS", "JSON", ")"],
    "JSON_EXTRACT": _json_extract,
    "SUBSTR": lambda arguments: [
        *("substr", "(", *arguments[0]),
        *(token for part in arguments[1:] for token in (",", "(", *part, ")", "::int")),
        ")",
    ],
    "CHAR": lambda arguments: ["chr", "(", *_commas(arguments), ")"],
    "UNIXEPOCH": lambda arguments: [
        "extract",
        "(",
        "epoch",
        "FROM",
        "(",
        *arguments[0],
        ") :: timestamptz ) :: bigint",
    ],
}
