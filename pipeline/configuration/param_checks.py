"""Checks, while a pipeline is built, of the component parameters that the frame itself reads."""

from __future__ import annotations

from pydantic import ValidationError

from speckit_memory.pipeline.model.describing import shape_of
from speckit_memory.pipeline.model.errors import InvalidComponentOutput
from speckit_memory.pipeline.roles.contracts import ChannelParams, Params, SignalParams


def check_params(params: Params) -> Params:
    """The parameters. Raises InvalidComponentOutput unless the frame can use them, and serialise them for the hash.

    A class may redeclare an inherited parameter, its validators may return anything, and a copy with changed values is
    not validated.
    """
    for kind in (ChannelParams, SignalParams):
        if isinstance(params, kind):
            _check(params, kind)
    params.model_dump(mode="json", warnings="error")
    return params


def _check(params: Params, kind: type[Params]) -> None:
    values = {name: getattr(params, name) for name in kind.model_fields}
    try:
        kind.model_validate(values)
    except ValidationError as error:
        name = str(error.errors(include_input=False, include_url=False)[0]["loc"][0])
        found = shape_of(values[name])
        raise InvalidComponentOutput(
            f"has {found} as '{name}'; accepted: the values that {kind.__name__} accepts"
        ) from None
