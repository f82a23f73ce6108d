"""Between a writer and the log: records what was sent and what the log returned, past a writer's death."""

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import BinaryIO

from eventlog import payloads as p
from eventlog.codec import decode_body
from eventlog.log import Append, AppendResponse, AppendResult
from eventlog.redis_streams import RedisEventLog

EventName = tuple[str, int, int]
"""Evaluation, attempt and sequence."""


class Witness:
    """What some writers have sent, and what came of it."""

    def __init__(self, journal: Path | None = None) -> None:
        self.sent: dict[EventName, bytes] = {}
        self.acknowledged: dict[EventName, bytes] = {}
        self.answers: Counter[AppendResult] = Counter()
        self._journal: BinaryIO | None = journal.open("ab", buffering=0) if journal else None

    def before(self, bodies: Iterable[bytes]) -> None:
        """Record what is about to be sent."""
        self._take(b"sent", bodies)

    def after(self, answer: AppendResult, body: bytes) -> None:
        """Record what the log returned."""
        self._take(answer.encode(), [body])

    def _take(self, word: bytes, bodies: Iterable[bytes]) -> None:
        for body in bodies:
            if self._journal:
                self._journal.write(word + b" " + body + b"\n")
            self._learn(word.decode(), body)

    def _learn(self, word: str, body: bytes) -> None:
        event = decode_body(body)
        name = (event.evaluation_id, *event.key)
        if word == "sent":
            self.sent.setdefault(name, body)
            return
        self.answers[AppendResult(word)] += 1
        if AppendResult(word).acknowledged:
            self.acknowledged.setdefault(name, body)

    def absorb(self, journal: Path) -> None:
        """Learn from the journal of another process, which may have died in the middle of a line."""
        for line in journal.read_bytes().split(b"\n")[:-1]:
            word, _, body = line.partition(b" ")
            self._learn(word.decode(), body)


class WitnessedLog(RedisEventLog):
    """The log on Redis, which lets a witness see all that passes."""

    witness: Witness

    @classmethod
    def seen_by(cls, witness: Witness, redis_url: str) -> "WitnessedLog":
        """Connect to a server under the eyes of a witness."""
        log = cls.from_url(redis_url)
        log.witness = witness
        return log

    async def append(self, calls: Sequence[Append]) -> list[AppendResponse]:
        """Append, between two looks of the witness."""
        for call in calls:
            self.witness.before(record.body for record in call.records)
        replies = await super().append(calls)
        for call, reply in zip(calls, replies, strict=True):
            for record, answer in zip(call.records, reply.results, strict=True):
                self.witness.after(answer, record.body)
        return replies


def tokens_in(bodies: Iterable[bytes]) -> int:
    """Add up what was paid for the answers and scores of these events."""
    results = (decode_body(body).data for body in bodies)
    return sum(data.usage.total for data in results if isinstance(data, p.Responded | p.Scored))
