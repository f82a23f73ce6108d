"""Streamed replies, assembled into the reply that an unstreamed call would have returned.

A stream that ends before its end marker is broken: no part of it is an answer. Its text is bounded while it
is assembled, and only parsed fields are kept: many streams are in memory at the same time.
"""

from collections.abc import Mapping
from io import StringIO
from typing import Any, Protocol

from eventlog.payloads import MAX_TEXT
from providers.decompression import ReplyRefused
from providers.requests import InvalidReply
from providers.table import Sdk

MAX_BLOCKS = 1_000
"""Content blocks of a reply."""
_ENDS = frozenset({"stop_reason", "stop_sequence"})
_COUNTS = frozenset(
    {"input_tokens", "output_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"}
)


class AnswerTooLong(ReplyRefused):
    """A stream whose text is longer than an answer may be."""

    kind = "too_large"

    def __init__(self) -> None:
        super().__init__(f"the answer has more than {MAX_TEXT:,} characters")


class StreamAccumulator(Protocol):
    """Assembles one streamed reply."""

    @property
    def text(self) -> str:
        """The text received so far."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether the end marker has been received."""
        ...

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add the next piece; raises `InvalidReply` or `AnswerTooLong`."""
        ...

    def whole(self) -> dict[str, Any]:
        """Return the reply as if it had not been streamed."""
        ...


def gathering(sdk: Sdk) -> StreamAccumulator:
    """Begin to put a reply together."""
    return MessagesAccumulator() if sdk is Sdk.ANTHROPIC else ChatAccumulator()


class MessagesAccumulator:
    """A reply of the Messages API."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._texts: dict[int, StringIO] = {}
        self._size = 0
        self.is_whole = False

    @property
    def text(self) -> str:
        """The text received so far."""
        return "".join(self._texts[index].getvalue() for index in sorted(self._texts))

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add the next event."""
        try:
            self._add(piece)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise InvalidReply(f"a piece of the stream is none: {type(error).__name__}: {error}") from None

    def whole(self) -> dict[str, Any]:
        """Return the message."""
        content = [{"type": "text", "text": self.text}] if self._texts else []
        return {**self._message, "content": content, "usage": self._usage}

    def _add(self, piece: Mapping[str, Any]) -> None:
        match piece["type"]:
            case "message_start":
                self._message = _known(piece["message"], _ENDS)
                self._count(piece["message"].get("usage"))
            case "content_block_start" if piece["content_block"]["type"] == "text":
                self._texts[_index(piece["index"])] = StringIO()
                self._write(piece["index"], _text(piece["content_block"]["text"]))
            case "content_block_delta" if piece["delta"]["type"] == "text_delta":
                self._write(_index(piece["index"]), _text(piece["delta"]["text"]))
            case "message_delta":
                self._message |= _known(piece["delta"], _ENDS)
                self._count(piece.get("usage"))
            case "message_stop":
                self.is_whole = True
            case _:  # pings, reasoning, and future event types
                pass

    def _write(self, index: int, text: str) -> None:
        self._size = _bounded(self._size + len(text))
        self._texts[index].write(text)
        if len(self._texts) > MAX_BLOCKS:
            raise ValueError(f"the reply has more than {MAX_BLOCKS:,} content blocks")

    def _count(self, usage: object) -> None:
        """Update the token counts; the last ones are final, and omit what has not changed."""
        if isinstance(usage, Mapping):
            found = _known(usage, _COUNTS)
            self._usage |= {name: count for name, count in found.items() if count is not None}


class ChatAccumulator:
    """A reply of Chat Completions."""

    def __init__(self) -> None:
        self._parts: dict[str, StringIO | None] = {"content": None, "refusal": None}
        self._size = 0
        self._finish_reason: str | None = None
        self._usage: Any = None

    @property
    def text(self) -> str:
        """The text received so far."""
        return _value(self._parts["content"]) or ""

    @property
    def is_whole(self) -> bool:
        """Whether the finish reason has been received."""
        return self._finish_reason is not None

    def add(self, piece: Mapping[str, Any]) -> None:
        """Add the next chunk."""
        try:
            self._usage = piece.get("usage") or self._usage
            for choice in piece.get("choices") or ():
                self._add(choice)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidReply(f"a piece of the stream is none: {type(error).__name__}: {error}") from None

    def whole(self) -> dict[str, Any]:
        """Return the completion."""
        message = {name: _value(text) for name, text in self._parts.items()}
        choice = {"finish_reason": self._finish_reason, "message": {"role": "assistant", **message}}
        return {"choices": [choice], "usage": self._usage}

    def _add(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name, text in self._parts.items():
            if isinstance(delta.get(name), str):
                self._size = _bounded(self._size + len(delta[name]))
                self._parts[name] = kept = text or StringIO()
                kept.write(delta[name])
        self._finish_reason = choice.get("finish_reason") or self._finish_reason


def _known(found: Mapping[str, Any], names: frozenset[str]) -> dict[str, Any]:
    return {name: found[name] for name in names if name in found}


def _bounded(size: int) -> int:
    if size > MAX_TEXT:
        raise AnswerTooLong
    return size


def _value(text: StringIO | None) -> str | None:
    return None if text is None else text.getvalue()


def _index(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("the index of a content block is no number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("the text of a content block is no text")
    return value
