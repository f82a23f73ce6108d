"""Formatting of numbers by the unit of their panel. Pure."""

from datetime import datetime


def figure(value: object, unit: str = "") -> str:
    """Write a value, with its unit if it is a number."""
    match value:
        case bool() | str():
            return str(value)
        case int() | float():
            return _number(float(value), unit)
        case datetime():
            return value.strftime("%H:%M:%S")
        case _:
            return str(value)


def _number(number: float, unit: str) -> str:
    match unit:
        case "percentunit":
            return f"{number:.1%}"
        case "currencyUSD":
            return f"${number:.4g}"
        case "ops":
            return f"{_plain(number)}/s"
        case "ms" | "s":
            return f"{_plain(number)} {unit}"
        case "bytes":
            return f"{number / 1e6:.3g} MB"
        case _:
            return _plain(number)


def _plain(number: float) -> str:
    return f"{number:,.0f}" if number == round(number) or abs(number) >= 1_000 else f"{number:.3g}"
