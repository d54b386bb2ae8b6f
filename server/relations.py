"""The relations of links as people and agents write them, without loading a store."""

RELATIONS = ("caused", "enabled", "supersedes", "contradicts", "derived_from", "supports")
