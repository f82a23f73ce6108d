"""Replies that come in pieces, put together into what they would have been in one piece.

A stream that ends before it says that it is at its end has broken off: nothing of it is an answer.
"""

from collections.abc import Mapping
from typing import Any, Protocol

from providers.requests import InvalidReply
from providers.table import Sdk


class Gathering(Protocol):
    """A reply on its way."""

    @property
    def text(self) -> str:
        """What has come of the text."""
        ...

    @property
    def is_whole(self) -> bool:
        """Whether it has said that it is at its end."""
        ...

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take the next piece; raises `InvalidReply` for one that is none."""
        ...

    def whole(self) -> dict[str, Any]:
        """Return the reply as it would have come in one piece."""
        ...


def gathering(sdk: Sdk) -> Gathering:
    """Begin to put a reply together."""
    return MessageGathering() if sdk is Sdk.ANTHROPIC else ChatGathering()


class MessageGathering:
    """A reply of the Messages API."""

    def __init__(self) -> None:
        self._message: dict[str, Any] = {}
        self._usage: dict[str, Any] = {}
        self._texts: dict[int, str] = {}
        self.is_whole = False

    @property
    def text(self) -> str:
        """What has come of the text."""
        return "".join(self._texts[index] for index in sorted(self._texts))

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take the next event."""
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
                self._message = dict(piece["message"])
                self._count(self._message.get("usage"))
            case "content_block_start" if piece["content_block"]["type"] == "text":
                self._texts[_index(piece["index"])] = _text(piece["content_block"]["text"])
            case "content_block_delta" if piece["delta"]["type"] == "text_delta":
                self._texts[_index(piece["index"])] += _text(piece["delta"]["text"])
            case "message_delta":
                self._message.update(piece["delta"])
                self._count(piece.get("usage"))
            case "message_stop":
                self.is_whole = True
            case _:  # pings, thoughts, and whatever the API will say one day
                pass

    def _count(self, usage: object) -> None:
        """Take counts over; those of the end are final, and may leave out what has not changed."""
        if isinstance(usage, Mapping):
            self._usage |= {name: count for name, count in usage.items() if count is not None}


class ChatGathering:
    """A reply of Chat Completions."""

    def __init__(self) -> None:
        self._parts: dict[str, list[str]] = {"content": [], "refusal": []}
        self._finish_reason: str | None = None
        self._usage: Any = None

    @property
    def text(self) -> str:
        """What has come of the text."""
        return "".join(self._parts["content"])

    @property
    def is_whole(self) -> bool:
        """Whether it has said why it ends."""
        return self._finish_reason is not None

    def add(self, piece: Mapping[str, Any]) -> None:
        """Take the next chunk."""
        try:
            self._usage = piece.get("usage") or self._usage
            for choice in piece.get("choices") or ():
                self._add(choice)
        except (KeyError, TypeError, AttributeError) as error:
            raise InvalidReply(f"a piece of the stream is none: {type(error).__name__}: {error}") from None

    def whole(self) -> dict[str, Any]:
        """Return the completion."""
        said = {name: "".join(parts) if parts else None for name, parts in self._parts.items()}
        choice = {"finish_reason": self._finish_reason, "message": {"role": "assistant", **said}}
        return {"choices": [choice], "usage": self._usage}

    def _add(self, choice: Mapping[str, Any]) -> None:
        delta = choice.get("delta") or {}
        for name, parts in self._parts.items():
            if isinstance(delta.get(name), str):
                parts.append(delta[name])
        self._finish_reason = choice.get("finish_reason") or self._finish_reason


def _index(value: object) -> int:
    if not isinstance(value, int):
        raise TypeError("the index of a content block is no number")
    return value


def _text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError("the text of a content block is no text")
    return value
