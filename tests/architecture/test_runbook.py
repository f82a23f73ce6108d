"""Runbook and troubleshooting guide have every alert, command and message, as they are."""

import re
import shlex
from collections.abc import Iterator
from functools import cache

import pytest

from domain.retry_policy import UNCHARGED_KINDS
from scoreline.observability.alerts.definition import RUNBOOK
from scoreline.observability.alerts.table import ALERTS
from tests.architecture.test_deployment import ROOT, SERVICES
from tests.architecture.test_guides import SHOWN, commands, guide

GUIDES = ("how-to/operations.md", "how-to/troubleshooting.md")
HEADING = re.compile(r"^### (\w+)$", re.MULTILINE)
COMPOSE = re.compile(r"docker compose (?:--profile \w+ )?(?:ps|logs|up|restart|exec) ([^`\n|;]*)")
SEEN = re.compile(r"^\| ([^|]*`[^|]+) \|", re.MULTILINE)


def test_every_alert_has_its_section_and_no_other_has_one():
    """Where `runbook_url` leads there is something to read."""
    assert set(HEADING.findall(guide("how-to/operations.md"))) == set(ALERTS)
    links = {alert.runbook() for alert in ALERTS.values()}
    assert links == {f"{RUNBOOK}#{name.lower()}" for name in ALERTS}
    assert (ROOT / RUNBOOK).exists()


def test_every_alert_names_an_action_that_its_section_has():
    """The runbook has the commands that the alert names."""
    text = guide("how-to/operations.md")
    for name, alert in ALERTS.items():
        section = text.partition(f"\n### {name}\n")[2].partition("\n###")[0]
        for line in alert.action.split("; "):
            assert line.replace("{batch_id}", "BATCH") in section, name


def command_lines() -> Iterator[tuple[str, str]]:
    for name in GUIDES:
        for number, text in enumerate(guide(name).splitlines(), 1):
            yield from ((f"{name}:{number}", found[1].strip()) for found in SHOWN.finditer(text))
    for alert in ALERTS.values():
        polled = (alert.polled.action, alert.polled.local_action) if alert.polled else ()
        for action in {alert.action, *polled}:
            if action.startswith("scoreline "):
                yield alert.name, re.sub(r"\{\w+\}", "ID", action)


@pytest.mark.parametrize("line", [pytest.param(line, id=place) for place, line in command_lines()])
def test_every_command_exists(line: str):
    """Every command of the runbook exists."""
    words = shlex.split(line.replace("…", ""), comments=True)[1:]
    if not words:
        return
    path = next(tuple(words[:length]) for length in (2, 1) if tuple(words[:length]) in commands())
    flags = {word.partition("=")[0] for word in words[len(path) :] if re.match(r"--?[a-z]", word)}
    assert flags - commands()[path] == set()


def test_every_service_that_is_named_exists():
    """In the runbook, and in the texts of alerts."""
    texts = [*map(guide, GUIDES), *(alert.action for alert in ALERTS.values())]
    for found in COMPOSE.finditer("\n".join(texts)):
        words = re.sub(r"--(?:scale (\S+?)=\d+|tail \d+|since \w+|detach)", r"\1", found[1]).split()
        assert words[0] in SERVICES, found[0]


@cache
def source() -> str:
    """Put all code together, with texts that go over several lines made one."""
    packages = ("scoreline", "executor", "coordinator", "providers")
    files = [file for package in packages for file in (ROOT / package).rglob("*.py")]
    text = "\n".join(file.read_text(encoding="utf-8") for file in files)
    return re.sub(r'"\s*\n\s*f?"', "", text)


def messages() -> Iterator[str]:
    for row in SEEN.findall(guide("how-to/troubleshooting.md")):
        for quoted in re.findall(r"`([^`]+)`", row):
            if " " in quoted and not quoted.startswith("--"):
                yield from (part.strip(" ,:") for part in quoted.split("…") if len(part.strip(" ,:")) > 5)


@pytest.mark.parametrize("words", sorted(set(messages())))
def test_every_message_that_is_explained_is_one_of_ours(words: str):
    """A search for a message as it was printed finds its section."""
    assert words in source()


def test_no_fault_that_uses_up_no_retry_is_described_as_a_dead_letter():
    """A rate-limited or unreachable attempt is always followed by another one."""
    text = guide("how-to/troubleshooting.md")
    assert [kind for kind in UNCHARGED_KINDS if f"`{kind}` dead letter" in text] == []
