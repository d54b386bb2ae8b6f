from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from speckit_memory import errors
from speckit_memory.errors import Problem, SpeckitError, Where
from speckit_memory.errors.codes import CODES
from speckit_memory.errors.kinds import CLASSES
from speckit_memory.memory.store.file.guarding.identity import ReplacedError
from speckit_memory.pipeline.model.errors import ContractError, IsolatedFailureError, StageInvariantError

KNOWN = {
    "E001": errors.ModelUnavailableError,
    "E010": errors.NotFoundError,
    "E012": errors.DocumentError,
    "E014": errors.InvalidRequestError,
    "E020": errors.StoreError,
    "E022": errors.StoreBusyError,
    "E027": errors.StoreClosedError,
    "E030": errors.InvalidRequestError,
    "E040": errors.SearchFailedError,
    "E043": errors.InvalidRequestError,
    "E080": errors.NotFoundError,
    "E081": errors.StoreError,
    "E092": errors.DocumentError,
    "E116": errors.ConfigurationError,
    "E121": errors.ConfigurationError,
    "E131": errors.InternalError,
    "E201": SpeckitError,
}


def of(*codes: str) -> SpeckitError:
    return SpeckitError.of(Problem(code, "what was found") for code in codes)


@pytest.mark.requirement("T26")
@pytest.mark.parametrize("code", sorted(CODES))
def test_an_error_is_of_the_class_that_its_code_stands_for_alone_and_among_its_like(code: str) -> None:
    kind = CLASSES[CODES[code].kind]

    assert type(SpeckitError(code, "what was found")) is kind
    assert type(of(code)) is type(of(code, code)) is kind
    assert KNOWN.get(code, kind) is kind


def test_every_class_is_that_of_some_code() -> None:
    assert {CLASSES[code.kind] for code in CODES.values()} == set(CLASSES.values()) == set(KNOWN.values())


@pytest.mark.parametrize(
    ("codes", "kind"),
    [
        (("E111", "E116"), errors.ConfigurationError),
        (("E030", "E043"), errors.InvalidRequestError),
        (("E022", "E021"), errors.StoreError),
        (("E022", "E027"), errors.StoreError),
        (("E010", "E012"), SpeckitError),
    ],
)
def test_many_problems_are_an_error_of_the_class_that_is_true_of_each(
    codes: tuple[str, ...], kind: type[SpeckitError]
) -> None:
    error = of(*codes)

    assert type(error) is kind
    assert [problem.code for problem in error.problems] == sorted(codes)


@pytest.mark.parametrize(
    "error",
    [
        SpeckitError("E080", "no memory", hint="look", actions=("search",), where=Where("a.md", 1, 2)),
        of("E111", "E116"),
        ReplacedError(Path("m.db"), "was deleted", in_place=True),
        StageInvariantError("mark", "changed scores"),
        ContractError("mark", "returned nothing"),
        IsolatedFailureError("the process ended"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_copy_of_an_error_and_one_from_another_process_are_what_it_is(error: SpeckitError) -> None:
    error.add_note("met on the way")
    for same in (copy.copy(error), copy.deepcopy(error), pickle.loads(pickle.dumps(error))):
        assert type(same) is type(error)
        assert (same.args, vars(same), str(same)) == (error.args, vars(error), str(error))
        assert same.as_json() == error.as_json()


def test_what_is_caught_by_its_class_needs_no_code() -> None:
    with pytest.raises(errors.StoreError):
        raise SpeckitError("E022", "locked")
    with pytest.raises(errors.StoreError):
        raise ReplacedError(Path("m.db"), "was deleted")
