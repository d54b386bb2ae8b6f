"""Isolated components in a pipeline: proxies that forward the method of a role, and parameters held as JSON values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any, ClassVar, Self, cast

from pydantic import Field, PrivateAttr, ValidationError, create_model
from pydantic_core import InitErrorDetails, PydanticCustomError

from speckit_memory.pipeline.isolation.codec import pack
from speckit_memory.pipeline.isolation.descriptions import Description
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.model.columns import Candidates, Plan, Pool, Query
from speckit_memory.pipeline.model.errors import IsolatedFailureError
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import ChannelParams, Params, PipelineContext, Role, SignalParams
from speckit_memory.pipeline.roles.registry import RegisteredComponent

_BASES: dict[Role, type[Params]] = {Role.CHANNEL: ChannelParams, Role.SIGNAL: SignalParams}


class ForeignParams(Params):
    """Base of the classes created by `params_class`. `recipe` lets the process recreate the parameters."""

    host: ClassVar[Host]
    description: ClassVar[Description]
    own: ClassVar[type[Params]]
    """The base class of the fields that the frame reads; these are validated here as well."""

    _recipe: str = PrivateAttr("")
    _given: Any = PrivateAttr(None)
    _by_name: dict[str, Any] = PrivateAttr(default_factory=dict)
    _by_key: dict[str, Any] = PrivateAttr(default_factory=dict)

    @property
    def recipe(self) -> str:
        """The parameters as written, and the pipeline context in which they were settled, as JSON."""
        return self._recipe

    @classmethod
    def model_validate(cls, obj: Any, *args: Any, **kwargs: Any) -> Self:  # noqa: ARG003 -- pydantic's signature
        """The validated parameters. Raises ValidationError, also if the process cannot be reached."""
        return cls._made(obj, None)

    def settled(self, context: PipelineContext) -> Self:
        """The same parameters, with open ones filled in from the rest of the pipeline."""
        return self._made(self._given, context)

    @classmethod
    def _made(cls, given: Any, context: PipelineContext | None) -> Self:
        recipe = pack((given, context))[0].decode()
        try:
            # Validators are code of the extension, so they run in its process.
            state, found = cls.host.ask("validate", cls.description.name, recipe)
        except IsolatedFailureError as error:
            state, found = "error", str(error)
        if state == "value":
            return cls._of(given, recipe, *found)
        mistakes = found if state == "invalid" else [((), "value_error", str(found), ())]
        raise ValidationError.from_exception_data(cls.__name__, [_detail(*mistake) for mistake in mistakes])

    @classmethod
    def _of(cls, given: Any, recipe: str, by_name: dict[str, Any], by_key: dict[str, Any]) -> Self:
        known = cls.own.model_validate({name: by_name[name] for name in cls.own.model_fields if name in by_name})
        fields = by_name | {name: getattr(known, name) for name in cls.own.model_fields}
        made = cast("Self", cls.model_construct(**fields))
        made._recipe, made._given, made._by_name, made._by_key = recipe, given, by_name, by_key
        return made

    def model_dump(self, *args: Any, by_alias: bool | None = None, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG002
        """The parameters as JSON values, as their own class dumps them."""
        return deepcopy(self._by_key if by_alias else self._by_name)

    def model_dump_json(self, *args: Any, **kwargs: Any) -> str:  # noqa: ARG002
        """A text that identifies these parameters; two equal texts mean equal parameters."""
        return self._recipe

    @classmethod
    def model_json_schema(cls, *args: Any, **kwargs: Any) -> dict[str, Any]:  # noqa: ARG003
        """The JSON Schema of the parameters' own class."""
        return deepcopy(dict(cls.description.json_schema))


def _detail(path: tuple[str | int, ...], kind: str, message: str, found: Any) -> InitErrorDetails:
    error = PydanticCustomError(kind, "{message}", {"message": message})
    return InitErrorDetails(type=error, loc=path, input=found)


def params_class(description: Description, host: Host) -> type[ForeignParams]:
    """The class of a component's parameters, with the same fields as its class in the process."""
    own = _BASES.get(description.role, Params)
    extra: dict[str, Any] = {
        one.name: (Any, Field(... if one.required else one.default, alias=one.key if one.key != one.name else None))
        for one in description.parameters
        if one.name not in own.model_fields
    }
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about names that shadow pydantic's: the own class has already warned
        base = type("Base", (ForeignParams, own), {}) if own is not Params else ForeignParams
        return _asking(host, description, own, create_model(f"{description.name}_params", __base__=base, **extra))


def _asking(host: Host, description: Description, own: type[Params], made: type[ForeignParams]) -> type[ForeignParams]:
    made.host, made.description, made.own = host, description, own
    return made


class _Proxy:
    """The component lives in the process, under a number. Its answers are checked by the frame like any others."""

    host: ClassVar[Host]
    use: ClassVar[str]

    def __init__(self, params: ForeignParams) -> None:
        self._recipe = params.recipe
        self._number = self.host.number()

    def _passed(self, method: str, *arguments: Any, store: Store | None = None) -> Any:
        return self.host.call(self.use, self._recipe, self._number, method, arguments, store)


class _Understander(_Proxy):
    def understand(self, query: Query, plan: Plan, store: Store) -> Any:
        return self._passed("understand", query, plan, store=store)


class _Channel(_Proxy):
    def search(self, query: Query, limit: int, store: Store) -> Any:
        return self._passed("search", query, limit, store=store)


class _JudgingChannel(_Channel):
    def about_concept(self, concept: str, query: Query, store: Store) -> Any:
        return self._passed("about_concept", concept, query, store=store)


class _Recoverer(_Proxy):
    def recover(self, query: Query, plan: Plan, store: Store) -> Any:
        return self._passed("recover", query, plan, store=store)


class _Fuser(_Proxy):
    def fuse(self, query: Query, candidates: Candidates) -> Any:
        return self._passed("fuse", query, candidates)


class _Signal(_Proxy):
    def evidence(self, query: Query, pool: Pool, store: Store) -> Any:
        return self._passed("evidence", query, pool, store=store)


class _Reranker(_Proxy):
    def rerank(self, query: Query, pool: Pool, store: Store) -> Any:
        return self._passed("rerank", query, pool, store=store)


class _Annotator(_Proxy):
    def annotate(self, query: Query, ranking: Ranking, store: Store) -> Any:
        return self._passed("annotate", query, ranking, store=store)


_CLASSES: dict[Role, type[_Proxy]] = {
    Role.UNDERSTANDER: _Understander,
    Role.CHANNEL: _Channel,
    Role.RECOVERER: _Recoverer,
    Role.FUSER: _Fuser,
    Role.SIGNAL: _Signal,
    Role.RERANKER: _Reranker,
    Role.ANNOTATOR: _Annotator,
}


def registered(description: Description, host: Host, extension: str) -> RegisteredComponent:
    """The registry entry of a described component; its class forwards calls to the process of `host`."""
    base = _JudgingChannel if "about_concept" in description.offers else _CLASSES[description.role]
    members: dict[str, Any] = {
        "__doc__": description.doc,
        "__module__": description.origin,
        "host": host,
        "use": description.name,
        **({"combine": description.combine} if description.combine else {}),
        **{offer: staticmethod(made) for offer, made in _OFFERED.items() if offer in description.offers},
    }
    component = type(description.name, (base,), members)
    return RegisteredComponent(
        description.name, description.role, component, params_class(description, host), description.about, extension
    )


def _offered(offer: str, params: ForeignParams, context: PipelineContext | None = None) -> Any:
    state, value = params.host.ask("offered", params.description.name, offer, params.recipe, context)
    if state != "value":
        raise IsolatedFailureError(f"{params.description.name}: {offer}() failed: {value}")
    return value


def _check(params: ForeignParams, context: PipelineContext) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """The objections of the component; a failure of its process is reported as an objection."""
    try:
        found = _offered("check", params, context)
    except IsolatedFailureError as error:
        found = [((), str(error))]
    yield from found


def _settled(params: ForeignParams, context: PipelineContext) -> ForeignParams:
    return params.settled(context)


def _scale(params: ForeignParams) -> Any:
    return _offered("scale", params)


def _weighs_intent(params: ForeignParams) -> Any:
    return _offered("weighs_intent", params)


_OFFERED: dict[str, Callable[..., Any]] = {
    "check": _check,
    "settled": _settled,
    "scale": _scale,
    "weighs_intent": _weighs_intent,
}
