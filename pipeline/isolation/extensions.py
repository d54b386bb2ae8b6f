"""The installed extensions, isolated: which there are, what they offer, and why some cannot be used."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from importlib.metadata import EntryPoint

from speckit_memory.pipeline.errors import IsolatedFailureError, NotStartedError
from speckit_memory.pipeline.isolation.descriptions import Description
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.isolation.proxies import registered
from speckit_memory.pipeline.registry import Extension, Registered, installed


class IsolatedExtensions:
    """Loads every installed extension in the process of `host`, when somebody first asks for what is none of ours.

    An extension that cannot be loaded keeps no other from being used, and ours work without any.
    """

    def __init__(self, host: Host) -> None:
        self.host = host
        self._waiting: list[EntryPoint] = list(installed())
        self._extensions: dict[tuple[str, str], Extension] = {}

    def load(self, taken: Collection[str]) -> list[Registered]:
        """The components of the extensions that have not been loaded yet; `taken` are names that are in use.

        What fails has failed for good, unless there was no process to ask. Called by one thread at a time.
        """
        names = set(taken)
        found: list[Registered] = []
        waiting, self._waiting = self._waiting, []
        for entry_point in waiting:
            name = Extension.name_of(entry_point)
            try:
                added = list(self._of(entry_point, name, names))
            except Exception as error:  # whatever is wrong with an extension stays its own affair
                if isinstance(error, NotStartedError):
                    self._waiting.append(entry_point)
                why = str(error) if isinstance(error, IsolatedFailureError) else "what it says of itself is not valid"
                self._extensions[name, entry_point.name] = Extension(name, (), why)
                continue
            names |= {entry.name for entry in added}
            found += added
            self._extensions[name, entry_point.name] = Extension(name, tuple(entry.name for entry in added))
        return found

    def _of(self, entry_point: EntryPoint, extension: str, taken: Collection[str]) -> Iterator[Registered]:
        for text in self.host.load(entry_point.name, entry_point.value):
            description = Description.model_validate_json(text)
            if description.name in taken:
                raise IsolatedFailureError(f"it offers a component '{description.name}', and there is one of that name")
            yield registered(description, self.host, extension)

    @property
    def extensions(self) -> tuple[Extension, ...]:
        """What has been loaded so far, or could not be."""
        return tuple(self._extensions.values())
