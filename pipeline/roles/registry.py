"""The components a pipeline may use: an object, one table per role, frozen before building.

Registration is explicit; importing a module registers nothing. The name of a component is the name of its file.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import Lock
from types import FrameType
from typing import Any, Literal, Protocol, overload

from speckit_memory.config.flags.flag_files import FlagFile, said_in_code
from speckit_memory.config.flags.flags import extension_flag_problems
from speckit_memory.errors import SpeckitError, Where, nearest
from speckit_memory.pipeline.model.describing import describe, shape_of
from speckit_memory.pipeline.process.interrupts import call_guarded
from speckit_memory.pipeline.roles.component_facts import examine_component
from speckit_memory.pipeline.roles.contracts import (
    About,
    Annotator,
    Channel,
    Fuser,
    Params,
    Recoverer,
    Reranker,
    Role,
    Signal,
    Understander,
)

# Quick test whether any installed distribution may have entry points of a group, before the slow full search.
#
# `importlib.metadata` reads and sorts the entry points of everything that is installed. Most environments have no
# extension, which a look at the files of plain folders is enough to see.

INFORMATION = (".dist-info", ".egg-info")
"""Suffixes of the metadata folders of distributions."""
FILE = "entry_points.txt"


def may_be_offered(group: str) -> bool:
    """False only if no distribution can have such entry points; imports nothing."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    if not all(isinstance(folder, str) for folder in sys.path):  # imports ignore such entries, the full search does not
        return True
    wanted = group.encode()
    return any(_holds(folder or ".", wanted) for folder in dict.fromkeys(sys.path))


def _holds(folder: str, wanted: bytes) -> bool:
    if folder.lower().endswith(".egg"):
        return True
    try:
        with os.scandir(folder) as entries:
            found = [entry.path for entry in entries if entry.name.lower().endswith(INFORMATION)]
        return any(wanted in _message(information) for information in found)
    except (FileNotFoundError, ValueError):
        return False
    except OSError:  # for example an archive, which may hold distributions
        return True


def _message(information: str) -> bytes:
    # most have no such file: for a hundred of them, creating path objects took longer than the reads
    try:
        with open(f"{information}/{FILE}", "rb", buffering=0) as file:  # noqa: PTH123
            return file.read()
    except (FileNotFoundError, NotADirectoryError):
        return b""  # no entry points


ENTRY_POINTS = "speckit_memory.components"
"""The entry-point group under which extensions offer a function that takes the registry."""


@dataclass(frozen=True, slots=True)
class RegisteredComponent:
    """One component: its name, role, class and the extension that offers it, "" for a built-in one."""

    name: str
    role: Role
    component: Callable[[Any], Any]
    params: type[Params]
    about: About
    extension: str = ""

    @property
    def summary(self) -> str:
        """The first line of the class's docstring."""
        return (self.component.__doc__ or "").strip().partition("\n")[0]

    @property
    def origin(self) -> str:
        """The module that defines the class."""
        return self.component.__module__


@dataclass(frozen=True, slots=True)
class Extension:
    """An installed extension: its name, its components, and the reason if they cannot be used, else ""."""

    name: str
    components: tuple[str, ...]
    failure: str = ""

    @staticmethod
    def name_of(entry_point: EntryPoint) -> str:
        """The name of the distribution, as for pip; the entry point's if the distribution is unknown."""
        return entry_point.dist.name if entry_point.dist is not None else entry_point.name


class Extensions(Protocol):
    """Extensions whose components run in another process."""

    def load(self, taken: Collection[str]) -> Sequence[RegisteredComponent]:
        """The components of extensions that are not loaded yet; `taken` are names already in use."""

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The extensions that have been loaded so far, or failed to load."""

    @property
    def flags(self) -> Sequence[FlagFile]:
        """The flags of the extensions loaded so far."""


def installed_extensions() -> Sequence[EntryPoint]:
    """The entry points of installed extensions. Imports none of them."""
    return entry_points(group=ENTRY_POINTS) if may_be_offered(ENTRY_POINTS) else ()


class Registry:
    """Collects components, then is frozen."""

    def __init__(self) -> None:
        self._by_name: dict[str, RegisteredComponent] = {}
        self._frozen = False
        self._extension = ""
        self._elsewhere: Extensions | None = None
        self._loading = Lock()
        self._left_out: tuple[str, ...] = ()
        self._failed: list[Extension] = []
        self._flags: list[FlagFile] = []

    @overload
    def add(
        self, role: Literal[Role.UNDERSTANDER], component: Callable[[Any], Understander], name: str = ""
    ) -> None: ...

    @overload
    def add(self, role: Literal[Role.CHANNEL], component: Callable[[Any], Channel], name: str = "") -> None: ...

    @overload
    def add(self, role: Literal[Role.RECOVERER], component: Callable[[Any], Recoverer], name: str = "") -> None: ...

    @overload
    def add(self, role: Literal[Role.FUSER], component: Callable[[Any], Fuser], name: str = "") -> None: ...

    @overload
    def add(self, role: Literal[Role.SIGNAL], component: Callable[[Any], Signal], name: str = "") -> None: ...

    @overload
    def add(self, role: Literal[Role.RERANKER], component: Callable[[Any], Reranker], name: str = "") -> None: ...

    @overload
    def add(self, role: Literal[Role.ANNOTATOR], component: Callable[[Any], Annotator], name: str = "") -> None: ...

    def add(self, role: Role, component: Callable[[Any], object], name: str = "") -> None:
        """Registers a class under the name of its file; the type checker rejects it if it does not have the role.

        Raises SpeckitError for duplicates and for classes that do not fit the role.
        """
        self.admit(role, component, name)

    def admit(self, role: Role, component: Callable[[Any], object], name: str = "", *, proven: bool = False) -> None:
        """Registers a class whose role is only known at run time.

        Args:
            role: The role of the class.
            component: The class.
            name: Its name in pipeline files, by default that of its module.
            proven: Skip the check of its method signatures.

        Raises:
            SpeckitError: E133 for duplicates and for classes that do not fit the role.
        """
        role = _role(role)
        if not isinstance(component, type):
            raise SpeckitError("E133", f"{shape_of(component)} was registered as {role}; accepted: a class")
        name = name or component.__module__.rpartition(".")[2]
        if self._frozen:
            raise SpeckitError("E199", f"the registry is frozen; '{name}' came too late")
        if name in self._by_name:
            first = self._by_name[name].origin
            raise SpeckitError("E133", f"two components are called '{name}': {first} and {component.__module__}")
        params, about = examine_component(role, component, name, proven=proven)
        self._by_name[name] = RegisteredComponent(name, role, component, params, about, self._extension)

    def add_flag(
        self,
        name: str,
        *,
        owner: str,
        since: str,
        expires: str,
        evidence: str = "",
        criterion: str = "",
        state: str = "off",
        group: str = "",
    ) -> None:
        """Declares a flag of an extension, by which steps of pipeline files may be enabled.

        The facts are those of a flag in `flags.yaml`.

        Args:
            name: The name of the flag.
            owner: The responsible person or team.
            since: Date of the declaration, YYYY-MM-DD.
            expires: Date by which it must be removed or promoted, YYYY-MM-DD.
            evidence: The measurements that justify its state.
            criterion: What must be measured before its state may advance, as YAML text
                (`{metric: nDCG@10, direction: not_worse, margin: 0.005}`).
            state: The state it is declared with.
            group: A group of flags, private to the extension.

        Raises:
            SpeckitError: For a name that is already in use or invalid facts.
        """
        if self._frozen:
            raise SpeckitError("E199", f"the registry is frozen; the flag '{name}' came too late")
        where = _place(sys._getframe(1))
        facts = {"state": state, "group": group, "owner": owner, "since": since, "expires": expires}
        facts |= {key: text for key, text in (("evidence", evidence), ("criterion", criterion)) if text}
        offers = self._extension or where.file
        entry = said_in_code(name, facts, where)
        if problems := extension_flag_problems(self._flags, FlagFile(offers, (entry,), extension=offers)):
            raise SpeckitError.of(problems)
        self._flags.append(FlagFile(offers, (entry,), extension=offers))

    def flag_files(self) -> Sequence[FlagFile]:
        """The flags that extensions declare."""
        self._load()
        return [*self._flags, *(self._elsewhere.flags if self._elsewhere is not None else ())]

    def add_entry_points(self) -> None:
        """Lets every installed distribution of the entry-point group add its components.

        A failing extension adds none, and does not affect the others.
        """
        for entry_point in installed_extensions():
            known, declared = dict(self._by_name), list(self._flags)
            self._extension = Extension.name_of(entry_point)
            _, error = call_guarded(partial(self._let, entry_point))
            self._frozen = False  # an extension must not freeze the registry
            if error:
                self._by_name, self._flags = known, declared
                self._failed.append(Extension(self._extension, (), describe(error)))
        self._extension = ""

    def _let(self, entry_point: EntryPoint) -> None:
        entry_point.load()(self)

    def add_elsewhere(self, extensions: Extensions) -> None:
        """Offers components of extensions that another process runs: loaded on the first unknown name."""
        self._elsewhere = extensions

    def leave_out(self) -> None:
        """Offers nothing of the installed extensions; messages about unknown names mention them."""
        self._left_out = tuple(dict.fromkeys(map(Extension.name_of, installed_extensions())))

    def freeze(self) -> Registry:
        """Prevents further registrations."""
        self._frozen = True
        return self

    def find(self, name: str) -> RegisteredComponent | None:
        """The component with this name, None if there is none."""
        if name not in self._by_name:
            self._load()
        return self._by_name.get(name)

    def names(self, *roles: Role) -> list[str]:
        """All names of these roles, sorted; of all roles if none is given."""
        self._load()
        return sorted(name for name, entry in self._by_name.items() if not roles or entry.role in roles)

    def extensions(self) -> tuple[Extension, ...]:
        """The installed extensions, including those that failed to load or are left out."""
        self._load()
        if self._elsewhere is not None:
            return self._elsewhere.extensions
        offered: dict[str, list[str]] = {}
        for entry in self._by_name.values():
            if entry.extension:
                offered.setdefault(entry.extension, []).append(entry.name)
        here = tuple(Extension(name, tuple(names)) for name, names in offered.items())
        return here + tuple(self._failed) + tuple(Extension(name, (), "it is not loaded") for name in self._left_out)

    @property
    def remark(self) -> str:
        """The extensions that an unknown name may belong to, as the end of a sentence; empty if all are loaded."""
        if self._left_out:
            return f"; not loaded: the components of {', '.join(self._left_out)}"
        failed = [one for one in self.extensions() if one.failure]
        return "".join(f"; the extension '{one.name}' could not be loaded: {one.failure}" for one in failed)

    def _load(self) -> None:
        if self._elsewhere is None:
            return
        with self._loading:
            self._by_name |= {entry.name: entry for entry in self._elsewhere.load(self._by_name)}

    def __iter__(self) -> Iterator[RegisteredComponent]:
        self._load()
        return iter(sorted(self._by_name.values(), key=lambda entry: (entry.role, entry.name)))


def _place(frame: FrameType) -> Where:
    """The position of running code, with the path of its import: the same on every machine."""
    depth = str(frame.f_globals.get("__name__", "")).count(".")
    depth += Path(frame.f_code.co_filename).name == "__init__.py"
    return Where("/".join(Path(frame.f_code.co_filename).parts[-depth - 1 :]), frame.f_lineno, 1)


def _role(found: str) -> Role:
    try:
        return Role(found)
    except ValueError:
        raise SpeckitError("E133", f"there is no role {found!r}; {nearest(str(found), Role)}") from None
