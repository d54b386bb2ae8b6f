"""Proxies for isolated components in a pipeline: one class per role, which forwards the method of the role."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

from speckit_memory.pipeline.isolation.descriptions import Description
from speckit_memory.pipeline.isolation.foreign_params import ForeignParams, params_class
from speckit_memory.pipeline.isolation.host import Host
from speckit_memory.pipeline.model.columns import Candidates, Plan, Pool, Query
from speckit_memory.pipeline.model.errors import IsolatedFailureError
from speckit_memory.pipeline.model.ranking import Ranking
from speckit_memory.pipeline.ports import Store
from speckit_memory.pipeline.roles.contracts import PipelineContext, Role
from speckit_memory.pipeline.roles.registry import RegisteredComponent


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
