"""Statements of the documents about the code are true."""

import re
import tomllib
from collections.abc import Iterator
from dataclasses import MISSING, fields
from datetime import timedelta
from enum import StrEnum
from pathlib import Path
from typing import get_type_hints

import pytest

from coordinator.settings import CoordinatorSettings
from domain.retry_policy import LONGEST_BACKOFF, LONGEST_RETRY_AFTER
from eventlog.codec import QuarantineReason
from eventlog.diagram import redraw
from eventlog.event_queue import QueueSettings
from eventlog.events import EVENT_CLASSES, SCHEMA_VERSION
from eventlog.log import AppendResult
from eventlog.timeline import Disposition
from executor.settings import Timings
from scoreline.settings import PREFIX, Settings
from storage_worker.gaps import BreakerLimits
from storage_worker.settings import StorageSettings
from taskqueue.executor_registry import INSTANCE_TTL
from tests.escapes.corpus import CORPUS
from tests.proof.document import PAGE, rewrite

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


PAYLOAD_ROW = re.compile(r"^\| `(\w+)` \| (.*\*\*.*) \|$", re.MULTILINE)


def test_the_protocol_lists_every_field_of_every_payload():
    """Required fields are bold; no field is missing, and the schema version is the current one."""
    text = (ROOT / "docs" / "reference" / "protocol.md").read_text(encoding="utf-8")
    rows = dict(PAYLOAD_ROW.findall(text))
    assert rows.keys() == EVENT_CLASSES.keys()
    for name, event in EVENT_CLASSES.items():
        for field in fields(get_type_hints(event)["data"]):
            is_required = field.default is MISSING and field.default_factory is MISSING
            word = f"**`{field.name}`**" if is_required else f"`{field.name}`"
            assert word in rows[name], f"{name}.{field.name}"
    assert f"`schema_version` is {SCHEMA_VERSION}." in text


SETTING_ROW = re.compile(r"^\| `(EVAL_\w+)` \| (.+?) \|", re.MULTILINE)


def settings_table() -> dict[str, str]:
    """Derive the name and default of every setting from the settings classes."""
    return {PREFIX + name.upper(): _default(field.default) for name, field in Settings.model_fields.items()}


def _default(value: object) -> str:
    if value is None or value == "":
        return "none"
    if isinstance(value, bool | StrEnum):
        return f"`{str(value).lower()}`"
    return f"`{value:g}`" if isinstance(value, float) else f"`{value}`"


def test_the_configuration_reference_lists_every_setting_with_its_default():
    """No setting is missing, none is invented, and each default is the one in force."""
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    assert dict(SETTING_ROW.findall(text)) == settings_table()


LIMIT_ROW = re.compile(r"^\| [^|`]+ \| ([^|]+) \| `([^|]+)` \|$", re.MULTILINE)


def test_the_configuration_reference_has_the_fixed_limits_in_force():
    """Each row of the section has the value of the constant that it names."""
    text = (ROOT / "docs" / "reference" / "configuration.md").read_text(encoding="utf-8")
    section = text.partition("## Fixed limits")[2].partition("\n## ")[0]
    coordinator, breaker = CoordinatorSettings(), BreakerLimits()
    shown = (breaker.rate, breaker.minimum, breaker.window, breaker.cooldown)
    assert {name: value for value, name in LIMIT_ROW.findall(section)} == {
        "QueueSettings.max_bytes": f"{QueueSettings().max_bytes / 1024**2:g} MiB",
        "CoordinatorSettings.window": f"{coordinator.window:,}",
        "CoordinatorSettings": f"{_s(coordinator.cycle_interval)}; {_s(coordinator.reconcile_interval)}",
        "CoordinatorSettings.grace": _s(coordinator.grace),
        "INSTANCE_TTL": _s(INSTANCE_TTL),
        "Timings.stalled_after": _s(Timings().stalled_after),
        "StorageSettings.batch_size": f"{StorageSettings('', '', '').batch_size:,}",
        "BreakerLimits": "{:.0%}, {}, {:g} s, {:g} s".format(*shown).replace("%", " %"),
        "domain/retry_policy.py": f"{_s(LONGEST_BACKOFF)}; {LONGEST_RETRY_AFTER.days} day",
    }


def _s(duration: timedelta) -> str:
    return f"{duration.total_seconds():g} s"


def test_no_document_names_an_unknown_setting():
    """Every EVAL_ name in a document is a setting, or one that only the tests read."""
    for document in DOCUMENTS:
        text = document.read_text(encoding="utf-8")
        names = set(re.findall(r"EVAL_[A-Z0-9]+(?:_[A-Z0-9]+)*\b(?!_)", text))
        unknown = {name for name in names - settings_table().keys() if not name.startswith("EVAL_TEST_")}
        assert not unknown, f"{document.name}: {unknown}"


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


def test_the_readme_is_a_landing_page():
    """It has at most 100 lines, names extras that exist, and counts the escape programs right."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
        "optional-dependencies"
    ]
    assert len(text.splitlines()) <= 100
    assert {"providers", "otel", "parquet"} <= extras.keys()
    assert f"{len(CORPUS)} escape programs" in text


def test_the_tables_of_faults_and_mutants_are_those_of_the_code():
    """`python -m tests.proof.document` would change nothing."""
    text = PAGE.read_text(encoding="utf-8")
    assert rewrite(text) == text, "run: python -m tests.proof.document"


CODE_PATH = re.compile(r"`((?:[\w-]+/)+[\w-]+\.(?:py|lua|sql|md|json|yml|yaml|sh|acl))`")
TOP = {path.name for path in ROOT.iterdir() if path.is_dir() and not path.name.startswith(".")}


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_path_of_the_repository_that_is_named_exists(document: Path):
    """A path in backticks whose first folder is one of the repository's names a file."""
    if document.name == "CHANGELOG.md":
        return  # history: names of their time
    named = CODE_PATH.findall(document.read_text(encoding="utf-8"))
    missing = [path for path in named if path.split("/")[0] in TOP and not (ROOT / path).exists()]
    assert missing == []


def test_every_test_of_the_checklists_exists():
    """The tables of edge cases and scheduling name test functions, wherever their files lie."""
    section = PAGE.read_text(encoding="utf-8").partition("\n## Checklists\n")[2].partition("\n## ")[0]
    named = set(re.findall(r"`(test_\w+)`", section))
    defined = {
        name
        for path in (ROOT / "tests").rglob("test_*.py")
        for name in re.findall(
            r"^(?:async )?def (test_\w+)", path.read_text(encoding="utf-8"), re.MULTILINE
        )
    }
    assert len(named) == 27
    assert named - defined == set()


GLOSSARY_ROW = re.compile(r"^\| ([^|]+) \| [^|]+ \| [^|]+ \|$", re.MULTILINE)
MISSION = {
    *("evaluation", "attempt", "event", "sequence", "executor", "storage worker", "coordinator", "lane"),
    *(
        "scorecard",
        "batch",
        "batch progress",
        "gap",
        "degraded mode",
        "dead letter",
        "quarantine",
        "replay",
    ),
}


def test_the_glossary_defines_every_term_once_and_all_words_of_the_mission():
    """A term has one row; rows may define several terms, separated by commas."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    terms = [term for row in GLOSSARY_ROW.findall(text) for term in row.split(", ") if term != "term"]
    assert sorted(terms) == sorted(set(terms))
    assert MISSION - set(terms) == set()
