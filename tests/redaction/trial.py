"""One trial: a random secret, in a random encoding, at a random position, perhaps cut, through a place.

What is left is decoded by the standard library, not by the code under test, until nothing changes; no piece
of the secret as long as a fragment may be in it.
"""

import base64
import html
import logging
import re
import string
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from random import Random
from urllib.parse import unquote

from eventlog import payloads as p
from eventlog.codec import encode, make_event
from eventlog.events import Event
from eventlog.redaction import KNOWN, SHORTEST_ENCODED, Redactor, fragment_of, redact
from eventlog.tracing import _present
from executor.outcome import close_after
from executor.targets.http_replies import fault_of
from scoreline.observability.logs import JsonFormatter, TextFormatter
from tests.redaction.encodings import ENCODINGS

ALPHABETS = {
    "key": string.ascii_letters + string.digits + "-_",
    "base64": string.ascii_letters + string.digits + "+/=",
    "password": string.ascii_letters + string.digits + string.punctuation,
}
WORDS = (
    "the",
    "answer",
    "is",
    "42.",
    '{"a":',
    "100%",
    "C:\\",
    "&",
    "key=",
    "\\n",
    "\n",
    "50%2",
    "\\u00",
    "é",
    "…",
)
POSITIONS = ("alone", "beginning", "middle", "end")
CUTS = ("whole", "its beginning", "its end")
NOW = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Trial:
    """What was tried."""

    secret: str
    encoding: str
    position: str
    cut: str
    place: str
    text: str

    @property
    def fragment(self) -> int:
        """Characters of the secret that must not be left."""
        return fragment_of(self.secret)


def draw(random: Random) -> Trial:
    """Draw a trial."""
    alphabet = ALPHABETS[random.choice(list(ALPHABETS))]
    secret = "".join(random.choices(alphabet, k=random.randint(SHORTEST_ENCODED, 64)))
    encoding = random.choice(list(ENCODINGS))
    encoded = ENCODINGS[encoding](secret, random)
    cut = random.choice(CUTS)
    position = random.choice(POSITIONS)
    size = random.randint(1, max(1, len(encoded) - 1))
    if cut == "its beginning":
        encoded, position = encoded[:size], random.choice(("alone", "end"))
    elif cut == "its end":
        encoded, position = encoded[-size:], random.choice(("alone", "beginning"))
    before = _context(random) if position in ("middle", "end") else ""
    after = _context(random) if position in ("middle", "beginning") else ""
    place = random.choice([name for name in PLACES if cut == "whole" or name in WHOLE])
    return Trial(secret, encoding, position, cut, place, before + encoded + after)


def _context(random: Random) -> str:
    words = random.choices(WORDS, k=random.randint(1, 30))
    return " ".join(words) + " "


def leak(trial: Trial) -> str | None:
    """Return what is left of the secret where its place has written it; None where nothing is."""
    with knowing(trial.secret):
        written = PLACES[trial.place](trial.text)
    for decoded in _decodings(written):
        if trial.cut == "whole" and trial.secret in decoded:
            return decoded
        if trial.cut == "its beginning" and decoded.endswith(_pieces(trial, -1)):
            return decoded
        if trial.cut == "its end" and decoded.startswith(_pieces(trial, 1)):
            return decoded
    return None


@contextmanager
def knowing(*secrets: str) -> Iterator[None]:
    """Have this process know some secrets and no others."""
    before = KNOWN._redactor
    KNOWN._redactor = Redactor(frozenset(secrets))
    try:
        yield
    finally:
        KNOWN._redactor = before


def _pieces(trial: Trial, side: int) -> tuple[str, ...]:
    sizes = range(trial.fragment, len(trial.secret) + 1)
    return tuple(trial.secret[-size:] if side > 0 else trial.secret[:size] for size in sizes)


def _decodings(text: str) -> Iterator[str]:
    """Decode a text with the standard library, every way and twice over."""
    seen, waiting = set[str](), [text]
    for _ in range(3):
        found = [each for one in waiting for each in _decoded_once(one)]
        waiting = [each for each in dict.fromkeys(found) if each not in seen]
        seen.update(waiting)
        yield from waiting


def _decoded_once(text: str) -> Iterator[str]:
    yield text
    yield unquote(text)
    yield html.unescape(text)
    yield re.sub(r"\\(?:u([0-9a-fA-F]{4})|x([0-9a-fA-F]{2}))", lambda m: chr(int(m[1] or m[2], 16)), text)
    yield re.sub(r"\\([^\w\s])", r"\1", text)
    for run in re.findall(r"[A-Za-z0-9+/_-]{11,}", text):
        yield from _from_base64(run)
        if len(run) % 2 == 0 and re.fullmatch("[0-9a-fA-F]+", run):
            yield bytes.fromhex(run).decode(errors="replace")


def _from_base64(run: str) -> Iterator[str]:
    run = run.replace("-", "+").replace("_", "/")
    for offset in range(4):
        part = run[offset:]
        yield base64.b64decode(part[: len(part) // 4 * 4]).decode(errors="replace")


def _event(text: str) -> str:
    """An answer, as it is appended to the log and stored."""
    return encode(_made(p.Responded(output=text))).decode()


def _reason(text: str) -> str:
    score = p.Score("judge", 1.0, reason=text)
    return encode(_made(p.Completed("passed", scores=(score,)))).decode()


def _exception(text: str) -> str:
    """What a target raised, as it is recorded: redacted, then cut."""
    filler = "x" * 3_990  # so that the cut falls into what follows
    closing = close_after(RuntimeError(filler + text), retries=0, attempt=1, now=NOW, jitter=0.0)
    return encode(_made(closing)).decode().replace(filler, "")


def _refusal(text: str) -> str:
    """The body of an HTTP error, quoted."""
    return str(fault_of(500, {}, "x" * 290 + text, now=NOW)).replace("x" * 290, "")


def _log_line(text: str) -> str:
    record = logging.makeLogRecord(
        {"msg": "failed: %s", "args": (text,), "error": text, "levelname": "ERROR"}
    )
    return JsonFormatter().format(record) + "\n" + TextFormatter().format(record)


def _span(text: str) -> str:
    return str(_present({"target": text})["target"])


def _made(payload: p.AnyPayload) -> Event:
    return make_event(
        payload, evaluation_id="e", batch_id="b", attempt=1, sequence=1, occurred_at=NOW, source="s"
    )


PLACES: dict[str, Callable[[str], str]] = {
    "text": redact,
    "event": _event,
    "reason of a score": _reason,
    "exception, cut": _exception,
    "HTTP error, cut": _refusal,
    "log line": _log_line,
    "span attribute": _span,
}
WHOLE = ("text", "span attribute")
"""Places that write a text as it is: its edges are theirs."""
