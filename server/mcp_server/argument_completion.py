"""Completes arguments of prompts and of the URI template with stored keys and folders."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import PurePosixPath

from mcp_types import Completion, PromptReference, ResourceTemplateReference

from speckit_memory.errors import SpeckitError, nearest
from speckit_memory.errors.echo import abridge
from speckit_memory.server.prompts.catalogue import find_prompt
from speckit_memory.server.prompts.prompt import Completed
from speckit_memory.server.replies.answering import refuse
from speckit_memory.server.resources.uris import TEMPLATE
from speckit_memory.server.workspace.workspace import Workspace

MOST = 100
"""Values per answer, the maximum of the protocol."""
_NOTHING = Completion(values=[], total=0, has_more=False)


def complete_argument(
    workspace: Workspace, reference: PromptReference | ResourceTemplateReference, argument: str, begun: str
) -> Completion:
    """Completes the value of an argument: names that begin with the text, then names that contain it, each sorted.

    Args:
        workspace: The workspace whose keys and folders are offered; without a store none are.
        reference: The prompt or the URI template.
        argument: Name of the argument.
        begun: The text typed so far; case is ignored.

    Raises:
        MCPError: For an unknown prompt, template or argument, with the nearest name.
    """
    kind = _kind(reference, argument)
    if not kind:
        return _NOTHING
    try:
        keys = workspace.memory().keys()
    except SpeckitError as error:
        if error.code != "E010":
            raise
        return _NOTHING
    found = _matching(begun, keys if kind == "key" else folders(keys))
    return Completion(values=found[:MOST], total=len(found), has_more=len(found) > MOST)


def folders(keys: Iterable[str]) -> list[str]:
    """The folders that contain memories at any depth, sorted."""
    found = {str(folder) for key in keys for folder in PurePosixPath(key).parents}
    return sorted(found - {"."})


def _kind(reference: PromptReference | ResourceTemplateReference, argument: str) -> Completed:
    kinds: dict[str, Completed]
    if isinstance(reference, PromptReference):
        prompt = find_prompt(reference.name)
        owner, kinds = f"the prompt {prompt.name}", {one.name: one.completed for one in prompt.arguments}
    elif reference.uri == TEMPLATE:
        owner, kinds = TEMPLATE, {"key": "key"}
    else:
        told = abridge(reference.uri)
        refuse(f"there is no resource template '{told}'; {nearest(told, [TEMPLATE])}", uri=told)
    if argument not in kinds:
        told = abridge(argument)
        refuse(f"{owner} has no argument '{told}'; {nearest(told, kinds)}", argument=told)
    return kinds[argument]


def _matching(begun: str, names: Iterable[str]) -> list[str]:
    typed = begun.casefold()
    holding = [(name, name.casefold()) for name in names]
    return [name for name, plain in holding if plain.startswith(typed)] + [
        name for name, plain in holding if typed in plain and not plain.startswith(typed)
    ]
