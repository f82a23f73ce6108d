"""The forms in which a secret may come back: each takes a source of random choices, and draws from it."""

import base64
import json
from collections.abc import Callable
from random import Random
from urllib.parse import quote

Encode = Callable[[str, Random], str]


def some(encode: Callable[[str, Random], str], *, lead: str) -> Encode:
    """Encode any subset of the characters, at least one, and the lead of the encoding itself."""

    def encoded(secret: str, random: Random) -> str:
        share = random.choice((0.1, 0.5, 1.0))
        must = random.randrange(len(secret))
        return "".join(
            encode(char, random) if char == lead or index == must or random.random() < share else char
            for index, char in enumerate(secret)
        )

    return encoded


def either_case(text: str, random: Random) -> str:
    """Write hexadecimal digits in mixed case."""
    return "".join(random.choice((char.lower(), char.upper())) for char in text)


def _percent(char: str, random: Random) -> str:
    return "".join(f"%{either_case(f'{byte:02x}', random)}" for byte in char.encode())


def _percent_twice(char: str, random: Random) -> str:
    return _percent(char, random).replace("%", "%25")


def _unicode_escape(char: str, random: Random) -> str:
    return f"\\u{either_case(f'{ord(char):04x}', random)}"


def _hex_escape(char: str, random: Random) -> str:
    return f"\\x{either_case(f'{ord(char):02x}', random)}"


def _entity(char: str, random: Random) -> str:
    forms = (f"&#{ord(char)};", f"&#x{either_case(f'{ord(char):x}', random)};", f"&#0{ord(char)};")
    return random.choice(forms)


def _in_base64(secret: str, random: Random, encode: Callable[[bytes], bytes]) -> str:
    """Encode a secret as part of something longer, as in the credentials of a Basic header."""
    before, after = ("x:." * 3)[: random.randrange(8)], ("~;y" * 3)[: random.randrange(8)]
    return encode(f"{before}{secret}{after}".encode()).decode()


def _json(secret: str, _random: Random) -> str:
    return json.dumps(secret)[1:-1].replace("/", "\\/")


def _json_in_json(secret: str, random: Random) -> str:
    return json.dumps(_json(secret, random))[1:-1]


_html = some(_entity, lead="&")


def _html_in_json(secret: str, random: Random) -> str:
    return json.dumps(_html(secret, random))[1:-1]


ENCODINGS: dict[str, Encode] = {
    "plain": lambda secret, _: secret,
    "json": _json,
    "json in json": _json_in_json,
    "json \\uXXXX": some(_unicode_escape, lead="\\"),
    "percent": some(_percent, lead="%"),
    "percent twice": some(_percent_twice, lead="%"),
    "percent of json": lambda secret, random: quote(_json(secret, random), safe=""),
    "html": _html,
    "html in json": _html_in_json,
    "repr": lambda secret, _: repr(secret)[1:-1],
    "\\xXX": some(_hex_escape, lead="\\"),
    "base64": lambda secret, random: _in_base64(secret, random, base64.b64encode),
    "base64url": lambda secret, random: _in_base64(secret, random, base64.urlsafe_b64encode),
    "base64 in json": lambda s, r: _in_base64(s, r, base64.b64encode).replace("/", "\\/"),
    "base64 in percent": lambda s, r: quote(_in_base64(s, r, base64.b64encode), safe=""),
    "hexadecimal": lambda secret, random: random.choice((str.lower, str.upper))(secret.encode().hex()),
}
