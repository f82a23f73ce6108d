"""What the documents say of the code is true."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from eventlog.codec import QuarantineReason
from eventlog.diagram import redraw
from eventlog.events import EVENT_CLASSES
from eventlog.log import AppendResult
from eventlog.timeline import Disposition
from scoreline.observability.alert_settings import AlertSettings
from scoreline.settings import PREFIX, Settings

ROOT = Path(__file__).parents[2]


def test_the_state_diagram_is_the_one_the_tables_draw():
    """`make diagram` would change nothing."""
    text = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert "stateDiagram-v2" in text
    assert redraw(text) == text


def test_the_protocol_names_every_word_of_the_wire():
    """Event types, answers, verdicts and reasons are all explained to those who write their own client."""
    text = (ROOT / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")
    words = [*EVENT_CLASSES, *AppendResult, *Disposition, *QuarantineReason]
    assert [word for word in words if f"`{word}`" not in text] == []


SETTING = re.compile(r"EVAL_[A-Z_]+[A-Z0-9]+")


def test_the_readme_names_every_setting():
    """No setting is hidden, and none is invented; thresholds of alerts are in the runbook."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    wanted = {PREFIX + name.upper() for name in Settings.model_fields} - thresholds().keys()
    assert set(SETTING.findall(text)) == wanted


def thresholds() -> dict[str, float]:
    """List the settings of alert thresholds with their defaults."""
    return {PREFIX + name.upper(): field.default for name, field in AlertSettings.model_fields.items()}


def test_the_runbook_lists_every_threshold_with_its_default():
    """What an operator may set is what the table has."""
    text = (ROOT / "docs" / "how-to" / "operations.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(EVAL_ALERT_\w+)` \| ([\d.]+) \|", text, re.MULTILINE)
    assert {name: float(value) for name, value in rows} == thresholds()


LINK = re.compile(r"\]\((?!https?:|mailto:)([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
DOCUMENTS = [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("deploy/**/*.md")]


def anchors(document: Path) -> set[str]:
    """List the anchors that Markdown renderers derive from a document's headings."""
    text = FENCE.sub("", document.read_text(encoding="utf-8"))
    slugs = (re.sub(r"[^\w\- ]", "", heading.strip().lower()) for heading in HEADING.findall(text))
    return {slug.replace(" ", "-") for slug in slugs}


def broken_links(document: Path) -> Iterator[str]:
    """List the relative links of a document whose file or heading does not exist."""
    for link in LINK.findall(FENCE.sub("", document.read_text(encoding="utf-8"))):
        path, _, anchor = link.partition("#")
        target = (document.parent / path).resolve() if path else document
        if not target.exists() or (anchor and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_relative_link_resolves(document: Path):
    """A relative link names a file in the repository, and its anchor a heading of that file."""
    assert list(broken_links(document)) == []


def test_no_file_names_a_package_host_or_carries_a_lock_that_does():
    """Requirements are pinned and hashed, and installable from any mirror."""
    for path in (ROOT / "requirements").glob("*.txt"):
        text = path.read_text(encoding="utf-8")
        assert "://" not in text
        assert "--hash=sha256:" in text
    assert not (ROOT / "uv.lock").exists()
