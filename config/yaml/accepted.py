"""What a value of a configuration file may be: metadata of the fields of the classes to which files are bound.

Imports neither YAML nor pydantic, since the classes also hold the defaults of processes that read no file.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

FORM = "The value does not have the expected form."


@dataclass(frozen=True, slots=True)
class Accepted:
    """The metadata of one field; without it, names are accepted as `Literal` lists them.

    Attributes:
        text: What is accepted, for messages: "a whole number from 1 to 1,000".
        read: Makes the field's value of a YAML value. Raises ValueError, whose text is the message unless it is empty.
        item: For lists, what one item is called: "a pattern".
        hint: Hint of the problem.
        names: The accepted names of a text.
        example: A value that would be accepted; "" for one of the listed names.
    """

    text: str = ""
    read: Callable[[Any], object] | None = None
    item: str = ""
    hint: str = FORM
    names: tuple[str, ...] = ()
    example: str = ""

    def __get_pydantic_core_schema__(self, source: Any, handler: Callable[[Any], Any]) -> Any:
        """The schema of the field: numbers and texts are not converted from one another."""
        from pydantic_core.core_schema import literal_schema, no_info_plain_validator_function

        if self.names:
            return literal_schema(list(self.names))
        return no_info_plain_validator_function(self.read) if self.read else _strict(handler(source))


def _strict(schema: Any) -> Any:
    inner = schema.get("schema")
    return {**schema, "schema": _strict(inner)} if inner else {**schema, "strict": True}
