"""Redaction: secrets are replaced in every text before it is stored, logged, exported or cut.

A secret is searched for as it is, in base64 and base64url at each of the three alignments, in hexadecimal,
and beneath percent-encoding, JSON, JavaScript and Python escapes, octal escapes and HTML references, of any
subset of its characters, in either case, nested up to three deep. Multiple-pattern search in linear time:

    text ──find every form──► spans ──► replaced
      └─decode escapes (offsets kept)─► text ──find─► … at most LAYERS times

At the edges of a text a fragment counts, too: the beginning of a secret at its end, the end of one at its
beginning, as a cut leaves them. Texts of our own are cut after redaction (`redact_head`, `redact_tail`).

The rule by length: from 8 characters on a secret is found in every form; with 6 or 7 only as it is and as a
whole word; a shorter one is not searched for, since it would destroy the answers it is found in.
"""

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from html.entities import html5
from urllib.parse import quote

MARK = "***"
SHORTEST = 6
"""Characters below which a value is not searched for."""
SHORTEST_ENCODED = 8
"""Characters from which a value is searched for in every form."""
FRAGMENT = 8
"""Characters of a secret that are redacted at the edge of a text; half of a shorter one."""
SHORTEST_FRAGMENT = 5
LAYERS = 3
"""How deep encodings may be nested."""
LONGEST_TOKEN = 7
"""Characters of an escape that a cut at the beginning may have left over."""
CUT_TOKEN_WINDOW = 64
"""Characters at the end of a text in which half an escape is looked for."""

_NAMED = {name[:-1]: char for name, char in html5.items() if name[-1] == ";" and char.isascii()}
_CONTROLS = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "0": "\0"}
_BACKSLASH = (
    r"\\+(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2})"
    r"|\\+[0-3][0-7]{2}|\\+(?:[abfnrtv0]|[^\w\\])|\\{2,}"
)
_ONE_BACKSLASH = (
    r"\\(?:u[0-9a-fA-F]{4}|u\{[0-9a-fA-F]{1,6}\}|U[0-9a-fA-F]{8}|x[0-9a-fA-F]{2}"
    r"|[0-3][0-7]{2}|[abfnrtv0]|[^\w])"
)
"""One level of escapes: two backslashes are one, and what follows them is an escape of its own."""
_PERCENT = r"%(?:25)*[0-9a-fA-F]{2}"
_REFERENCE = r"&(?:amp;)*(?:#(?:[xX][0-9a-fA-F]{1,6}|[0-9]{1,7})(?:;|(?![0-9a-zA-Z;]|\Z))|[a-zA-Z]{2,8};)"
_ANY = re.compile(f"({_BACKSLASH}|{_PERCENT}|{_REFERENCE})")
_ONE_LEVEL = re.compile(f"({_ONE_BACKSLASH}|{_PERCENT}|{_REFERENCE})")
_EACH = (*(re.compile(f"({kind})") for kind in (_BACKSLASH, _PERCENT, _REFERENCE)), _ONE_LEVEL)
"""Escapes of one kind, or of one level: `_ANY` misreads a secret with the lead of another kind in it."""
_LEADS = frozenset("\\%&")
_CUT_REST = re.compile(r"[uUxX]?\{?[0-9a-fA-F]{0,8}\}?|#?[a-zA-Z0-9]{0,7};")
_IN_TOKENS = frozenset("0123456789abcdefABCDEFuUxX#;mp{}")
"""Characters that a text may begin with that was cut in the middle of an escape."""
_AMPERSANDS = re.compile(r"&(?:amp;)*")
_CUT_TOKEN = re.compile(
    r"(?:\\+(?:[uU]\{?[0-9a-fA-F]{0,7}|x[0-9a-fA-F]?|[0-3][0-7]?)?|%(?:25)*[0-9a-fA-F]?"
    r"|&(?:amp;)*#?[a-zA-Z0-9]{0,7})\Z"
)
Span = tuple[int, int]


@dataclass(frozen=True)
class Form:
    """One way in which a secret can be written."""

    text: str
    fragment: int
    """Characters of it that are redacted at the edge of a text."""

    @cached_property
    def core(self) -> Span:
        """What is left where an escape before or behind it has swallowed some of its characters."""
        start = 6 if len(self.text) >= 2 * SHORTEST_ENCODED else 2
        end = _without_cut_token(self.text)
        return start, end if end - start >= SHORTEST else len(self.text)

    @property
    def core_text(self) -> str:
        """The characters of the core."""
        return self.text[slice(*self.core)]


@dataclass(frozen=True, slots=True)
class Layer:
    """A text with its escapes decoded, and where each character of it came from."""

    text: str
    at: list[int]
    """Where decoded escapes are in the text."""
    origin: list[Span]
    """Where they were before."""

    def span(self, start: int, end: int) -> Span:
        """Return where a span was before it was decoded."""
        return self._place(start)[0], self._place(end - 1)[1]

    def _place(self, index: int) -> Span:
        number = bisect_right(self.at, index) - 1
        if number < 0:
            return index, index + 1
        if self.at[number] == index:
            return self.origin[number]
        place = self.origin[number][1] + index - self.at[number] - 1
        return place, place + 1


@dataclass(frozen=True)
class Redactor:
    """Replaces a set of secrets in texts."""

    secrets: frozenset[str] = frozenset()

    def redact(self, text: str) -> str:
        """Replace every secret in a text."""
        if not self.secrets or len(text) < SHORTEST_FRAGMENT or not self._may_hold_one(text):
            return text
        return _replaced(text, self._spans(text))

    def redact_head(self, text: str, limit: int) -> str:
        """Replace every secret, then cut a text to its first characters."""
        return self.redact(text[: self._window(limit)])[:limit]

    def redact_tail(self, text: str, limit: int) -> str:
        """Replace every secret, then cut a text to its last characters."""
        return self.redact(text[-self._window(limit) :])[-limit:]

    @cached_property
    def _forms(self) -> tuple[Form, ...]:
        long = (each for each in self.secrets if len(each) >= SHORTEST_ENCODED)
        return tuple({form: None for each in long for form in _forms(each)})

    @cached_property
    def _texts(self) -> tuple[str, ...]:
        return tuple({form.text: None for form in self._forms})

    @cached_property
    def _cores(self) -> tuple[str, ...]:
        return tuple({form.core_text: None for form in self._forms})

    @cached_property
    def _words(self) -> tuple[str, ...]:
        return tuple(each for each in self.secrets if SHORTEST <= len(each) < SHORTEST_ENCODED)

    @cached_property
    def _joined(self) -> str:
        return "\0".join(self._texts)

    @cached_property
    def _fragment(self) -> int:
        return min((form.fragment for form in self._forms), default=0)

    @cached_property
    def _kinds(self) -> tuple[re.Pattern[str], ...]:
        return (_ANY, *_EACH) if any(_LEADS & set(each) for each in self.secrets) else (_ANY,)

    @cached_property
    def _escapes(self) -> re.Pattern[str]:
        return _escapes_of({char for text in self._texts for char in text})

    def _window(self, limit: int) -> int:
        return 4 * limit + 16 * max(map(len, self._texts), default=0)

    def _may_hold_one(self, text: str) -> bool:
        """Decide in a few searches whether a text has to be searched more closely."""
        return (
            any(map(text.__contains__, self._texts))
            or any(map(text.__contains__, self._words))
            or self._has_edge(text)
            or self._has_encoded(text)
        )

    def _has_encoded(self, text: str) -> bool:
        if not ("\\" in text or "%" in text or "&" in text) or not self._escapes.search(text):
            return False
        return any(
            map(self._has_in_layer, (each for kind in self._kinds for each in _texts_of(text, kind)))
        )

    def _has_in_layer(self, text: str) -> bool:
        return any(map(text.__contains__, self._cores)) or self._has_edge(text)

    def _has_edge(self, text: str) -> bool:
        """Decide whether a text may begin or end with a fragment, apart from half an escape."""
        size, joined = self._fragment, self._joined
        if len(text) < size or not joined:
            return False
        starts = range(LONGEST_TOKEN + 1) if text[0] in _IN_TOKENS else (0,)
        end = _without_cut_token(text)
        return (
            any(text[start : start + size] in joined for start in starts)
            or text[-size:] in joined
            or (end < len(text) and text[max(0, end - size + 1) : end] in joined)
        )

    def _spans(self, text: str) -> list[Span]:
        spans = [*self._whole_words(text), *self._literal(text), *self._edges(text, [], cut=text)]
        for kind in self._kinds:
            layers: list[Layer] = []
            for layer in _layers_of(text, kind):
                layers.append(layer)
                spans += [_original(layers, *found) for found in self._encoded(layer.text)]
                spans += self._edges(layer.text, layers, cut=text)
        return spans

    def _whole_words(self, text: str) -> Iterator[Span]:
        for word in self._words:
            if word in text:
                pattern = rf"(?<![A-Za-z0-9]){re.escape(word)}(?![A-Za-z0-9])"
                yield from (match.span() for match in re.finditer(pattern, text))

    def _literal(self, text: str) -> Iterator[Span]:
        for form in self._texts:
            yield from ((start, start + len(form)) for start in _places(text, form))

    def _encoded(self, text: str) -> Iterator[Span]:
        for form in self._forms:
            for start in _places(text, form.core_text):
                yield _extended(text, start, form)

    def _edges(self, text: str, layers: list[Layer], *, cut: str) -> Iterator[Span]:
        """Find fragments at both edges; half an escape may be left outside of them."""
        if not self._has_edge(text):
            return
        ends = {len(text), _without_cut_token(text)}
        for form in self._forms:
            if (end := _leading(text, form)) is not None:
                yield 0, _original(layers, 0, end)[1]
            for end in ends:
                # Half an escape counts as one character of the fragment.
                least = form.fragment - (end < len(text))
                if (start := _trailing(text[:end], form, least)) is not None:
                    yield _original(layers, start, end)[0], len(cut)


def fragment_of(secret: str) -> int:
    """Return how many characters of a secret are redacted at the edge of a text."""
    return min(FRAGMENT, max(SHORTEST_FRAGMENT, (len(secret) + 1) // 2))


def _forms(secret: str) -> Iterator[Form]:
    """List the ways in which a secret can be written, but for escapes of single characters."""
    fragment = fragment_of(secret)
    for plain in _spellings(secret):
        yield Form(plain, fragment)
        decoded = (each for kind in (_ANY, *_EACH) for each in _texts_of(plain, kind))
        for each in decoded:
            if len(each) >= SHORTEST_ENCODED:  # what its own escapes have lost counts as found
                yield Form(each, max(SHORTEST_FRAGMENT, fragment - (len(plain) - len(each))))
        for encoded in _base64(_bytes_of(plain)):
            yield Form(encoded, (8 * fragment - 10) // 6)  # without the bits shared with neighbours
    digits = _bytes_of(secret).hex()
    yield Form(digits, 2 * fragment)
    yield Form(digits.upper(), 2 * fragment)


def _spellings(secret: str) -> set[str]:
    """List the texts that stand for a secret where it is sent or stored whole."""
    escaped = secret.replace("\\", "\\\\").replace('"', '\\"')
    data = _bytes_of(secret)
    found = {secret, escaped, escaped.replace("/", "\\/"), quote(data, safe=""), quote(data)}
    found.add(secret.replace(" ", "+"))
    if not secret.isascii():
        found.add(data.decode("latin-1"))  # as percent-encoding has it, byte by byte
        found.add(data.decode(errors="replace"))  # as a reply is decoded
        found.add(_surrogate_pairs(secret))
        found.add(json.dumps(secret)[1:-1])  # whose escapes behind a backslash are decoded together with it
    return found


def _bytes_of(text: str) -> bytes:
    """Encode a text; variables of an environment may hold bytes that are not UTF-8."""
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def _surrogate_pairs(text: str) -> str:
    """Write characters beyond 16 bits as JSON escapes them: each as two."""
    units = memoryview(text.encode("utf-16", "surrogatepass")).cast("H")
    return "".join(map(chr, units[1:]))  # without the byte order mark


def _base64(data: bytes) -> Iterator[str]:
    """Encode data as it looks inside longer data: without the characters it shares with its neighbours."""
    for offset in range(3):
        encoded = base64.b64encode(bytes(offset) + data).decode()
        inner = encoded[-(-offset * 8 // 6) : (offset + len(data)) * 8 // 6]
        yield inner
        yield inner.replace("+", "-").replace("/", "_")


def _layers_of(text: str, kind: re.Pattern[str]) -> Iterator[Layer]:
    """Decode the escapes of a text, then those that came to light by it; offsets are kept."""
    for _ in range(LAYERS):
        pieces, at, origin, length, end = list[str](), list[int](), list[Span](), 0, 0
        decoded = _Characters()
        for match in kind.finditer(text):
            start = match.start()
            if (char := decoded[match[0]]) is match[0]:
                continue
            pieces += (text[end:start], char)
            at.append(length + start - end)
            origin.append(match.span())
            length, end = at[-1] + 1, match.end()
        if not at:
            return
        text = "".join((*pieces, text[end:]))
        yield Layer(text, at, origin)


def _texts_of(text: str, kind: re.Pattern[str]) -> Iterator[str]:
    """Decode like `_layers_of`, without offsets: several times as fast."""
    for _ in range(LAYERS):
        pieces = kind.split(text)
        if len(pieces) == 1:
            return
        decoded = _Characters()
        pieces[1::2] = [decoded[token] for token in pieces[1::2]]
        text = "".join(pieces)
        yield text


class _Characters(dict[str, str]):
    """What escapes stand for; one that stands for nothing is left as it is."""

    def __missing__(self, token: str) -> str:
        char = self[token] = _character(token) or token
        return char


def _character(token: str) -> str | None:
    match token[0]:
        case "%":
            return chr(int(token[-2:], 16))
        case "\\":
            return _escaped(token.lstrip("\\"))
        case _:
            return _referenced(_AMPERSANDS.sub("", token, count=1).rstrip(";"))


def _escaped(name: str) -> str | None:
    if not name:
        return "\\"
    if len(name) > 1:
        return _code(name.strip("uUx{}"), 8 if name[0].isdigit() else 16)
    return _CONTROLS.get(name, name)


def _referenced(name: str) -> str | None:
    if name.startswith("#"):
        return _code(name[2:], 16) if name[1] in "xX" else _code(name[1:], 10)
    return _NAMED.get(name) if name else "&"


def _code(digits: str, base: int) -> str | None:
    code = int(digits, base)
    return chr(code) if code <= 0x10FFFF else None


def _escapes_of(alphabet: set[str]) -> re.Pattern[str]:
    """Match an escape that may stand for a character of a secret, or for the lead of another escape."""
    punctuation = "".join(re.escape(char) for char in sorted(alphabet) if not char.isalnum())
    controls = "".join(name for name, char in _CONTROLS.items() if char in alphabet)
    named = "|".join(name for name, char in _NAMED.items() if char in alphabet | set("\\%#;"))
    high = "0-9a-fA-F" if any(ord(char) < 0x20 or ord(char) > 0x7E for char in alphabet) else "2-7"
    literal = f"[{punctuation}{controls}]" if punctuation + controls else "(?!)"
    return re.compile(
        rf"\\(?:[uU][0-9a-fA-F{{]|x[0-9a-fA-F]{{2}}|[0-3][0-7]{{2}}|{literal})"
        rf"|%(?:25)*[{high}][0-9a-fA-F]|&(?:amp;)*(?:#|(?:{named});)"
    )


def _places(text: str, form: str) -> Iterator[int]:
    start = text.find(form)
    while start >= 0:
        yield start
        start = text.find(form, start + 1)


def _extended(text: str, at: int, form: Form) -> Span:
    """Extend the core of a form to its whole, and over escapes that have swallowed some of it."""
    first, last = form.core
    start, end = at, at + last - first
    while first and start and text[start - 1] == form.text[first - 1]:
        start, first = start - 1, first - 1
    while last < len(form.text) and end < len(text) and text[end] == form.text[last]:
        end, last = end + 1, last + 1
    return (start - 1 if first and start else start), min(end + (last < len(form.text)), len(text))


def _without_cut_token(text: str) -> int:
    """Return where a text ends if half an escape at its end is left out."""
    window = max(0, len(text) - CUT_TOKEN_WINDOW)
    if not any(lead in text[window:] for lead in _LEADS):
        return len(text)
    match = _CUT_TOKEN.search(text, window)
    return match.start() if match else len(text)


def _leading(text: str, form: Form) -> int | None:
    """Return where the end of a form, which a text begins with, is over."""
    for whole in {form.text, form.text[: form.core[1]]}:
        for size in range(min(len(whole) - 1, len(text)), form.fragment - 1, -1):
            offset = text[: size + LONGEST_TOKEN].find(whole[-size:])
            if offset == 0 or (offset > 0 and _CUT_REST.fullmatch(text[:offset])):
                return offset + size
    return None


def _trailing(text: str, form: Form, least: int) -> int | None:
    """Return where the beginning of a form, which a text ends with, starts."""
    for size in range(min(len(form.text) - 1, len(text)), least - 1, -1):
        if text.endswith(form.text[:size]):
            return len(text) - size
    return None


def _original(layers: list[Layer], start: int, end: int) -> Span:
    for layer in reversed(layers):
        start, end = layer.span(start, end)
    return start, end


def _replaced(text: str, spans: list[Span]) -> str:
    pieces, done = list[str](), 0
    for start, end in sorted(spans):
        if start >= done:
            pieces += (text[done:start], MARK)
        done = max(done, end)
    return "".join((*pieces, text[done:]))


class SecretRegistry:
    """The secrets that a process knows; it only grows."""

    def __init__(self) -> None:
        self._redactor = Redactor()

    @property
    def redactor(self) -> Redactor:
        """The redactor for all that is known now."""
        return self._redactor

    def add(self, secrets: Iterable[str]) -> None:
        """Have further secrets redacted from now on."""
        new = {each for each in secrets if len(each) >= SHORTEST} - self._redactor.secrets
        if new:
            self._redactor = Redactor(self._redactor.secrets | new)


KNOWN = SecretRegistry()
"""The secrets of this process: whichever component reads one adds it before it is used."""


def redact(text: str) -> str:
    """Replace every secret that this process knows."""
    return KNOWN.redactor.redact(text)


def redact_head(text: str, limit: int) -> str:
    """Replace every secret that this process knows, then cut to the first characters."""
    return KNOWN.redactor.redact_head(text, limit)


def redact_tail(text: str, limit: int) -> str:
    """Replace every secret that this process knows, then cut to the last characters."""
    return KNOWN.redactor.redact_tail(text, limit)
