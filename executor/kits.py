"""What a batch needs in this process: its spec, its targets and its evaluators, made once.

What can't be made is kept as the fault it is: the evaluations that need it fail, and say why.
"""

import asyncio
import logging
from collections.abc import Callable, Collection
from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import ValidationError

from executor.contract import Evaluator, Permanent, Surroundings, Target
from taskqueue.board import BatchBoard
from taskqueue.spec import BatchSpec, EvaluatorSpec, TargetSpec, Variant, unpack

logger = logging.getLogger(__name__)

CLOSING_SECONDS = 10.0

S = TypeVar("S", TargetSpec, EvaluatorSpec)
M = TypeVar("M")


@dataclass(frozen=True, slots=True)
class Makers:
    """How targets and evaluators are made."""

    target: Callable[[TargetSpec, Surroundings], Target]
    evaluator: Callable[[EvaluatorSpec, Surroundings], Evaluator]


@dataclass(frozen=True, slots=True)
class Judge:
    """An evaluator and what the batch says of it."""

    spec: EvaluatorSpec
    evaluator: Evaluator


@dataclass(frozen=True, slots=True)
class Kit:
    """All that is needed to work on a batch."""

    spec: BatchSpec
    variants: tuple[Variant, ...]
    targets: tuple[Target | Permanent, ...]
    judges: tuple[Judge | Permanent, ...]

    def variant(self, number: int) -> Variant:
        """Find a variant; raises `Permanent` where there is none of that number."""
        if number >= len(self.variants):
            raise invalid(f"the batch has {len(self.variants)} variants, and none of number {number}")
        return self.variants[number]

    def target(self, number: int) -> Target:
        """Find the target of a variant; raises `Permanent` where it could not be made."""
        return _made(self.targets[number % len(self.targets)])

    def all_judges(self) -> list[Judge]:
        """List the evaluators; raises `Permanent` where one of them could not be made."""
        return [_made(judge) for judge in self.judges]

    async def aclose(self) -> None:
        """Close what was made; one that fails does not keep the others open."""
        made: list[Target | Evaluator] = [each for each in self.targets if not isinstance(each, Permanent)]
        made += [judge.evaluator for judge in self.judges if isinstance(judge, Judge)]
        await asyncio.gather(*map(_close, made))


class Kits:
    """The kits of this process, one a batch."""

    def __init__(self, board: BatchBoard, makers: Makers, surroundings: Surroundings) -> None:
        self._board = board
        self._makers = makers
        self._surroundings = surroundings
        self._kits: dict[str, Kit | Permanent] = {}
        self._making = asyncio.Lock()

    async def of(self, batch_id: str) -> Kit | Permanent:
        """Return a batch's kit, or why there is none."""
        if batch_id in self._kits:
            return self._kits[batch_id]
        async with self._making:
            if batch_id not in self._kits:
                body = await self._board.spec(batch_id)
                if body is None:
                    return invalid("the batch's spec is not on the board")
                self._kits[batch_id] = self._make(body)
            return self._kits[batch_id]

    async def keep_only(self, batch_ids: Collection[str]) -> None:
        """Close the kits of batches that are gone."""
        for batch_id in self._kits.keys() - set(batch_ids):
            kit = self._kits.pop(batch_id)
            if isinstance(kit, Kit):
                await kit.aclose()

    async def aclose(self) -> None:
        """Close them all."""
        await self.keep_only(())

    def _make(self, body: bytes) -> Kit | Permanent:
        try:
            spec = unpack(body)
        except ValidationError as error:
            return invalid(f"the batch's spec can't be read: {error}")
        here = replace(self._surroundings, workdir=spec.workdir)
        targets = tuple(_attempt("target", self._makers.target, each, here) for each in spec.targets)
        return Kit(spec, spec.variants, targets, tuple(self._judge(each, here) for each in spec.evaluators))

    def _judge(self, spec: EvaluatorSpec, here: Surroundings) -> Judge | Permanent:
        made = _attempt("evaluator", self._makers.evaluator, spec, here)
        return made if isinstance(made, Permanent) else Judge(spec, made)


def invalid(message: str) -> Permanent:
    """Say that a batch or a case can't be worked on as it is."""
    return Permanent("invalid", message)


async def _close(made: Target | Evaluator) -> None:
    try:
        async with asyncio.timeout(CLOSING_SECONDS):
            await made.aclose()
    except Exception as error:  # noqa: BLE001 - it may be anybody's code
        logger.warning("could not close", extra={"what": repr(made), "error": repr(error)})


def _made(thing: M | Permanent) -> M:
    if isinstance(thing, Permanent):
        # A new one: a fault that is raised many times would gather the tracebacks of all of them.
        raise Permanent(thing.kind, thing.message)
    return thing


def _attempt(what: str, make: Callable[[S, Surroundings], M], spec: S, here: Surroundings) -> M | Permanent:
    """Make something; it may be anybody's code, so anything may go wrong."""
    try:
        return make(spec, here)
    except (Exception, SystemExit) as error:  # noqa: BLE001 - as above, anybody's
        logger.warning("could not make", extra={"what": what, "type": spec.type, "error": repr(error)})
        return invalid(f"{what} {spec.type}: {type(error).__name__}: {error}")
