"""The names of link relations and directions; importing them does not load the store."""

from typing import Literal, get_args

Relation = Literal["caused", "enabled", "supersedes", "contradicts", "derived_from", "supports"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
Direction = Literal["outgoing", "incoming", "both"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
