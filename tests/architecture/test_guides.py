"""The user guide is whole and true: every option, key and flag is in it, and its examples are taken."""

import inspect
import json
import re
import shlex
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import cache
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import typer.main
from pydantic import TypeAdapter
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined, to_jsonable_python

from eventlog.payloads import Case
from executor.contract import ExecutionEnvironment, ScoringRequest, TargetRequest
from executor.options import OptionModel
from executor.registry import EVALUATORS, TARGETS, PluginGroup
from executor.sandbox.job import SandboxLimits
from projections.queries.batches import BatchSnapshot
from providers.table import PROVIDERS
from scoreline.cli.main import app
from scoreline.reports.batch_status import STATUSES, ExitCode
from scoreline.reports.batch_view import BatchView
from scoreline.reports.export_writers import COLUMNS
from scoreline.reports.status import view_document
from scoreline.startup_interrupt import INTERRUPTED
from scoreline.submit.group_fields import GROUP_FIELDS
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.keys import DATASET_KEYS, KEYS, SINGULAR

DOCS = Path(__file__).parents[2] / "docs"
GUIDES = tuple(
    str(path.relative_to(DOCS))
    for folder in ("tutorials", "how-to", "reference")
    for path in sorted((DOCS / folder).glob("*.md"))
)
SHARED = {"extract", "expected_extract"}
"""Options that several evaluators have, explained once."""

BLOCK = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"[\w./-]+\.(?:jsonl|json|csv|py)\b")
SHOWN = re.compile(r"(?:^|^\$ |`|: )(scoreline [^`\n]+)", re.MULTILINE)
"""A command line: in a block, in the text, or in what a command printed."""
TABLE_ROW = re.compile(r"^\| (`[^|]+) \|", re.MULTILINE)
OPTION_ROW = re.compile(r"^\| `(\w+)` \| (.+?) \|", re.MULTILINE)


def guide(name: str) -> str:
    return (DOCS / name).read_text(encoding="utf-8")


def section(text: str, heading: str) -> str:
    """Cut out what stands under a heading, up to the next one."""
    found = re.search(
        rf"^(#+) {re.escape(heading)}\n(.*?)(?=^#{{1,3}} |\Z)", text, re.DOTALL | re.MULTILINE
    )
    assert found, f"there is no heading {heading!r}"
    return found[2]


def blocks(language: str) -> Iterator[tuple[str, str]]:
    """List the code blocks of a language, each with its place, but for those marked as fragments."""
    for name in GUIDES:
        text = guide(name)
        for found in BLOCK.finditer(text):
            if found[1] == language and "fragment" not in found[2]:
                yield f"{name}:{text[: found.start()].count(chr(10)) + 1}", found[3]


def option_models(kind: PluginGroup) -> Iterator[tuple[str, type[OptionModel]]]:
    """Find the model of each built-in type: the one that its module defines."""
    for name, address in kind.builtin.items():
        module = import_module(address.partition(":")[0])
        own = [
            each
            for _, each in inspect.getmembers(module, inspect.isclass)
            if issubclass(each, OptionModel) and each.__module__ == module.__name__
        ]
        assert len(own) == 1, f"{name} has {len(own)} models of options"
        yield name, own[0]


def shown(default: Any) -> str:
    """Write a default as the tables have it."""
    match default:
        case _ if default is PydanticUndefined:
            return "required"
        case None:
            return "none"
        case SandboxLimits():
            return "[below](#the-sandbox)"
        case _:
            return f"`{json.dumps(to_jsonable_python(default))}`"


def default_of(field: FieldInfo) -> str:
    return shown(field.default_factory() if field.default_factory else field.default)  # type: ignore[call-arg]


HEADINGS = {("evaluator", name): f"{name} evaluator" for name in ("python", "simulated")}
HEADINGS |= {("target", name): "Models of providers" for name in PROVIDERS}
TYPES = [
    pytest.param(kind, name, model, id=f"{kind.noun}-{name}")
    for kind in (TARGETS, EVALUATORS)
    for name, model in option_models(kind)
]


@pytest.mark.parametrize(("kind", "name", "model"), TYPES)
def test_every_option_of_a_type_is_in_its_table_with_its_default(kind, name, model):
    """The table of a type has all of its options, and what happens without them."""
    text = section(guide("reference/targets.md"), HEADINGS.get((kind.noun, name), name))
    rows = dict(OPTION_ROW.findall(text))
    for attribute, field in model.model_fields.items():
        option = field.alias or attribute
        if kind is EVALUATORS and option in SHARED and option not in rows:
            assert f"`{option}`" in text, f"{name}.{option} is not named"
            continue
        assert rows.get(option) == default_of(field), f"{name}.{option}"


def test_no_table_has_an_option_that_does_not_exist():
    """What a table promises can be written."""
    read_before = {("recorded", "records"), ("json_schema", "path")}
    for kind in (TARGETS, EVALUATORS):
        for name, model in option_models(kind):
            text = section(guide("reference/targets.md"), HEADINGS.get((kind.noun, name), name))
            known = {field.alias or option for option, field in model.model_fields.items()}
            invented = {option for option, _ in OPTION_ROW.findall(text)} - known
            assert {(name, option) for option in invented} <= read_before


def test_the_limits_of_the_sandbox_are_in_their_table():
    """Every limit has its default there, and no other is promised."""
    rows = dict(OPTION_ROW.findall(section(guide("reference/targets.md"), "The sandbox")))
    limits = TypeAdapter(dict[str, int]).validate_python(to_jsonable_python(SandboxLimits()))
    assert rows == {name: f"`{value}`" for name, value in limits.items()}


def test_every_type_is_in_the_overview():
    """The two tables at the top name all built-in types."""
    overview = guide("reference/targets.md").partition("\n## Targets")[0]
    wanted = [*TARGETS.builtin, *EVALUATORS.builtin]
    assert [name for name in wanted if f"[`{name}`](#" not in overview] == []


def test_every_key_of_a_spec_is_explained():
    """Keys of a batch, keys of its dataset, and the marks of rows are each where one would look."""
    spec = guide("reference/spec.md")
    assert {key for key in [*KEYS, *SINGULAR] if f"`{key}`" not in spec} == set()
    columns = section(guide("how-to/datasets.md"), "Column mapping")
    assert {key for key in DATASET_KEYS if f"`{key}`" not in columns} == set()
    ties = section(guide("how-to/datasets.md"), "Serial groups and conversations")
    assert {mark for mark in GROUP_FIELDS if f"`{mark}: " not in ties} == set()


def test_exit_codes_states_and_columns_are_listed():
    """Scripts can rely on the tables."""
    codes = re.findall(r"^\| (\d+) \|", guide("reference/exit-codes.md"), re.MULTILINE)
    assert {int(code) for code in codes} == {1, 2, *ExitCode, INTERRUPTED}
    assert [state for state in STATUSES if f"`{state}`" not in guide("reference/results.md")] == []
    assert [column for column in COLUMNS if f"`{column}`" not in guide("reference/exports.md")] == []


def test_the_keys_of_a_batch_in_json_are_those_of_the_table():
    """Scripts find every key explained, and the example has exactly these."""
    now = datetime(2026, 11, 16, tzinfo=UTC)
    snapshot = BatchSnapshot("b", "submitted", "", "p", "d", "running", "", None, now, None, None, now)
    keys = view_document(BatchView(snapshot)).keys()
    text = section(guide("reference/results.md"), "JSON output")
    table = text.partition("```")[0]
    assert {key for row in TABLE_ROW.findall(table) for key in re.findall(r"`(\w+)`", row)} == set(keys)
    [example] = re.findall(r"^\{.*\}$", text, re.MULTILINE)
    assert json.loads(example).keys() == keys


@cache
def commands() -> dict[tuple[str, ...], set[str]]:
    """List every command with its flags."""

    def walk(command: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], set[str]]]:
        for name, below in getattr(command, "commands", {}).items():
            yield from walk(below, (*path, name))
        options = [each for each in command.params if each.param_type_name == "option"]
        flags = {flag for each in options if not each.hidden for flag in (*each.opts, *each.secondary_opts)}
        yield path, flags

    return dict(walk(typer.main.get_command(app), ()))


GROUPS = {path[:-1] for path in commands()}
LEAVES = [path for path in commands() if path not in GROUPS]


@pytest.mark.parametrize("path", LEAVES, ids=" ".join)
def test_every_flag_of_a_command_is_in_its_section(path):
    """The reference has a section for every command; no flag is missing, and none is invented."""
    text = section(guide("reference/commands.md"), f"scoreline {' '.join(path)}")
    named = set(re.findall(r"`(--?[a-z][a-z0-9-]*)`", text))
    flags = commands()[path] - {"--help"}
    assert flags - named == set()
    assert named - flags - {"--distributed"} == set()


def command_lines() -> Iterator[tuple[str, str]]:
    """List every command line that is shown: in blocks, and in the running text."""
    for name in GUIDES:
        text = guide(name)
        for found in SHOWN.finditer(text):
            yield f"{name}:{text[: found.start(1)].count(chr(10)) + 1}", found[1].strip()


@pytest.mark.parametrize("line", [pytest.param(line, id=place) for place, line in command_lines()])
def test_every_command_that_is_shown_exists(line):
    """A line copied from the guide has neither an unknown command nor an unknown flag."""
    words = shlex.split(line.removesuffix("&").replace("…", ""), comments=True)[1:]
    if not words:
        return
    path = next(tuple(words[:length]) for length in (2, 1) if tuple(words[:length]) in commands())
    flags = {word.partition("=")[0] for word in words[len(path) :] if re.match(r"--?[a-z]", word)}
    assert flags - commands()[path] == set()


@pytest.mark.parametrize("text", [pytest.param(text, id=place) for place, text in blocks("yaml")])
def test_every_spec_that_is_shown_makes_a_plan(text, tmp_path):
    """Examples are taken as they stand, with the files they name beside them."""
    for name in FILE.findall(text):
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("{}", encoding="utf-8")
    spec = tmp_path / "scoreline.yaml"
    spec.write_text(text, encoding="utf-8")
    assert make_plan(spec, {}, folder=tmp_path).spec.targets


async def test_the_types_of_ones_own_work_as_they_are_shown():
    """The target answers and the evaluator judges, and both refuse options they do not have."""
    code = "\n".join(text for _, text in blocks("python") if "class Shout" in text or "class Loud" in text)
    shown_there: dict[str, Any] = {"__name__": "shouting"}
    exec(compile(code, "targets.md", "exec"), shown_there)
    shout, loud = shown_there["SHOUT"], shown_there["LOUD"]
    case = Case("1", "hey")
    reply = await shout.make({"ending": "?"}, ExecutionEnvironment()).call(
        TargetRequest("e", "hey", case, {})
    )
    assert reply.answer.output == "HEY?"
    judge = loud.make("loud", {}, ExecutionEnvironment())
    score = await judge.score(ScoringRequest(case, "hey", {}))
    assert (score.passed, score.reason) == (False, "too quiet")
    for each in (shout, loud):
        with pytest.raises(ValueError, match="option"):
            each.check({"volume": 11})
