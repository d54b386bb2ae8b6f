"""The components a pipeline may use: an object, one table per role, frozen before building.

Registration is explicit; importing a module registers nothing. The name of a component is the name of its file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any

from config.errors import SpeckitError
from pipeline.contracts import About, ChannelParams, NoParams, Params, Role, SignalParams

ENTRY_POINTS = "speckit_memory.components"
"""Third parties offer a function that takes the registry under this entry-point group."""

_METHODS = {
    Role.UNDERSTANDER: "understand",
    Role.CHANNEL: "search",
    Role.RECOVERER: "recover",
    Role.FUSER: "fuse",
    Role.SIGNAL: "evidence",
    Role.RERANKER: "rerank",
    Role.ANNOTATOR: "annotate",
}
_SCORES = (Role.CHANNEL, Role.FUSER)
"""Whose scores come from nothing that has a scale already."""
_PARAMS: dict[Role, type[Params]] = {Role.CHANNEL: ChannelParams, Role.SIGNAL: SignalParams}


@dataclass(frozen=True, slots=True)
class Registered:
    """One component: its name, its role and its class."""

    name: str
    role: Role
    component: Callable[[Any], Any]
    params: type[Params]
    about: About

    @property
    def summary(self) -> str:
        """The first line of the class's docstring."""
        return (self.component.__doc__ or "").strip().partition("\n")[0]

    @property
    def origin(self) -> str:
        """The module that defines it."""
        return self.component.__module__


class Registry:
    """Collects components, then is frozen."""

    def __init__(self) -> None:
        self._by_name: dict[str, Registered] = {}
        self._frozen = False

    def add(self, role: Role, component: type[Any], name: str = "") -> None:
        """Registers a class under the name of its file; refuses duplicates and classes that do not fit the role."""
        name = name or component.__module__.rpartition(".")[2]
        if self._frozen:
            raise SpeckitError("E199", f"the registry is frozen; '{name}' came too late")
        if name in self._by_name:
            first = self._by_name[name].origin
            raise SpeckitError("E199", f"two components are called '{name}': {first} and {component.__module__}")
        params = getattr(component, "Params", NoParams)
        expected = _PARAMS.get(role, Params)
        about = getattr(component, "about", None)
        if not callable(getattr(component, _METHODS[role], None)):
            raise SpeckitError("E199", f"'{name}' is no {role}: it has no method '{_METHODS[role]}'")
        if not issubclass(params, expected):
            raise SpeckitError("E199", f"the parameters of the {role} '{name}' must derive from {expected.__name__}")
        if not isinstance(about, About):
            raise SpeckitError("E199", f"'{name}' must describe itself in a class attribute 'about'")
        if role in _SCORES and about.gives is None and not hasattr(component, "scale"):
            raise SpeckitError("E199", f"the {role} '{name}' must declare the scale of its scores: 'gives' or 'scale'")
        self._by_name[name] = Registered(name, role, component, params, about)

    def add_entry_points(self) -> None:
        """Lets every installed distribution of the entry-point group add its components."""
        for entry_point in entry_points(group=ENTRY_POINTS):
            entry_point.load()(self)

    def freeze(self) -> Registry:
        """No more components after this."""
        self._frozen = True
        return self

    def find(self, name: str) -> Registered | None:
        """The component of this name, None when there is none."""
        return self._by_name.get(name)

    def names(self, *roles: Role) -> list[str]:
        """All names of these roles, sorted; of all roles when none is given."""
        return sorted(name for name, entry in self._by_name.items() if not roles or entry.role in roles)

    def __iter__(self) -> Iterator[Registered]:
        return iter(sorted(self._by_name.values(), key=lambda entry: (entry.role, entry.name)))
