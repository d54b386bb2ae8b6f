"""What goes wrong, told as one kind of failure by every room and every door; below all of them."""

from speckit_memory.errors.problems import Problem, SpeckitError, Where, closest, nearest

__all__ = ["Problem", "SpeckitError", "Where", "closest", "nearest"]
