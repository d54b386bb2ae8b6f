"""The installed extensions, isolated: their components and flags, and why some cannot be used."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib.metadata import EntryPoint

from speckit_memory.config.flags.flag_files import FlagFile
from speckit_memory.config.flags.flags import extension_flag_problems
from speckit_memory.errors import SpeckitError
from speckit_memory.pipeline.isolation.descriptions import Description, FlagDescription
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.isolation.proxies import registered
from speckit_memory.pipeline.model.errors import IsolatedFailureError, NotStartedError
from speckit_memory.pipeline.roles.registry import Extension, RegisteredComponent, installed_extensions


class IsolatedExtensions:
    """Loads every installed extension in the process of `host`, on the first request for an unknown component or flag.

    An extension that fails to load does not affect the others, and built-in components work without any.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._waiting: list[EntryPoint] = list(installed_extensions())
        self._extensions: dict[tuple[str, str], Extension] = {}
        self._flags: list[FlagFile] = []

    def load(self, taken: Collection[str]) -> list[RegisteredComponent]:
        """The components of the extensions that have not been loaded yet; `taken` are names already in use.

        An extension that fails is not tried again, unless the process could not be started. Not thread-safe.
        """
        names = set(taken)
        found: list[RegisteredComponent] = []
        waiting, self._waiting = self._waiting, []
        for entry_point in waiting:
            name = Extension.name_of(entry_point)
            try:
                added, declared = self._of(entry_point, name, names)
            except Exception as error:  # a defect of one extension must not affect the others
                if isinstance(error, NotStartedError):
                    self._waiting.append(entry_point)
                why = str(error) if isinstance(error, IsolatedFailureError) else "its description is not valid"
                self._extensions[name, entry_point.name] = Extension(name, (), why)
                continue
            self._flags.append(declared)
            names |= {entry.name for entry in added}
            found += added
            self._extensions[name, entry_point.name] = Extension(name, tuple(entry.name for entry in added))
        return found

    def _of(
        self, entry_point: EntryPoint, extension: str, taken: Collection[str]
    ) -> tuple[list[RegisteredComponent], FlagFile]:
        described, declared = self.host.load(entry_point.name, entry_point.value)
        descriptions = [Description.model_validate_json(text) for text in described]
        if clash := next((one.name for one in descriptions if one.name in taken), None):
            raise IsolatedFailureError(f"it offers a component '{clash}', but that name is already in use")
        flags = tuple(FlagDescription.model_validate_json(text).entry() for text in declared)
        file = FlagFile(extension, flags, extension=extension)
        if problems := extension_flag_problems(self._flags, file):
            raise IsolatedFailureError(str(SpeckitError.of(problems)))
        return [registered(description, self.host, extension) for description in descriptions], file

    @property
    def flags(self) -> Sequence[FlagFile]:
        """The flags of the extensions loaded so far."""
        return self._flags

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """The extensions that have been loaded so far, or failed to load."""
        return tuple(self._extensions.values())
