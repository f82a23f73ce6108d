"""Characters that JSON can escape and UTF-8 can't encode."""


def without_half_characters(text: str) -> str:
    """Replace halves of surrogate pairs: an event, a log line and a database can't hold them."""
    return text if text.isascii() else text.encode("utf-8", "replace").decode()
