"""Relations and directions of links as people and agents write them, without loading a store."""

from typing import Literal, get_args

Relation = Literal["caused", "enabled", "supersedes", "contradicts", "derived_from", "supports"]
RELATIONS: tuple[Relation, ...] = get_args(Relation)
Direction = Literal["outgoing", "incoming", "both"]
DIRECTIONS: tuple[Direction, ...] = get_args(Direction)
