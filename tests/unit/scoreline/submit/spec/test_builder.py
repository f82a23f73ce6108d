"""A spec file and flags become a plan; what makes no sense is named with its line."""

from datetime import timedelta
from pathlib import Path

import pytest

from scoreline.submit.datasets.columns import Columns
from scoreline.submit.datasets.sources import FileSource, ImportedSource, SyntheticSource
from scoreline.submit.spec.builder import make_plan
from tests.unit.scoreline.submit.spec.spec_files import planned, refused

WHOLE = """\
name: nightly
project: maths
dataset: {path: cases.json, records: data.rows, id: key, input: q, expected: a}
prompts: ["{input}", "Think. {input}"]
targets: [simulated, {type: recorded, path: answers.jsonl, output: x.y, records: rows}]
evaluators:
  - exact
  - {type: numeric, name: close, tolerance: 0.5}
repetitions: 2
retries: 0
timeout: 90s
priority: 5
tags: [release]
tag: hard
limit: 10
cache: true
max_duration: 1h30m
min_pass_rate: 0.9
"""


def test_every_key_has_its_meaning(tmp_path):
    """A spec with every key becomes a plan with every field."""
    plan = planned(tmp_path, WHOLE)
    batch = plan.spec
    assert (batch.name, plan.batch.project, plan.batch.tags, plan.only_tagged) == (
        "nightly",
        "maths",
        ("release",),
        ("hard",),
    )
    assert plan.source == FileSource(tmp_path / "cases.json", Columns("data.rows", "key", "q", "a"))
    assert [target.label for target in batch.targets] == ["simulated", "recorded:answers.jsonl"]
    assert [evaluator.name for evaluator in batch.evaluators] == ["exact", "close"]
    assert (batch.prompts[1], batch.repetitions, batch.retries, batch.timeout) == (
        "Think. {input}",
        2,
        0,
        90.0,
    )
    assert (plan.batch.priority, plan.limit, plan.cache, plan.min_pass_rate) == (5, 10, True, 0.9)
    assert plan.batch.max_duration == timedelta(minutes=90)
    assert plan.repetitions_given
    recorded = plan.recorded[1]
    assert (recorded.path, recorded.output, recorded.columns.records) == (
        tmp_path / "answers.jsonl",
        "x.y",
        "rows",
    )


def test_flags_mean_the_same_as_keys(tmp_path):
    """Every key has an equivalent flag; paths in flags are relative to the working directory."""
    plan = planned(
        tmp_path,
        dataset="cases.jsonl",
        target=["simulated"],
        evaluator=["exact"],
        timeout="2m",
        input="q",
        tag=[],
    )
    assert plan.source == FileSource(Path("/elsewhere/cases.jsonl"), Columns(input="q"))
    assert (plan.spec.name, plan.spec.timeout, plan.spec.workdir) == ("cases", 120.0, "/elsewhere")
    assert not plan.repetitions_given


def test_flags_win(tmp_path):
    """A flag overrides the same key of the file."""
    plan = planned(
        tmp_path, WHOLE, target=["simulated"], limit=3, dataset="imported", evaluator=["contains"]
    )
    assert plan.source == ImportedSource("maths", "imported")
    assert (plan.limit, len(plan.spec.targets), plan.recorded) == (3, 1, {})
    assert [evaluator.name for evaluator in plan.spec.evaluators] == ["contains"]
    assert plan.spec.repetitions == 2


def test_a_simulated_batch_needs_nothing_else(tmp_path):
    """With the mode alone there are made-up cases, a simulated target and an exact evaluator."""
    plan = planned(tmp_path, mode="simulated")
    assert plan.source == SyntheticSource(1_000)
    assert (plan.spec.targets[0].type, plan.spec.evaluators[0].type) == ("simulated", "exact")
    assert planned(tmp_path, mode="simulated", limit=7).source == SyntheticSource(7)
    given = planned(tmp_path, mode="simulated", dataset="a.csv", evaluator=["contains"])
    assert isinstance(given.source, FileSource)
    assert given.spec.evaluators[0].type == "contains"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the file is empty"),
        ("- a\n", "a spec is a mapping"),
        ("name: [\n", "broken YAML"),
        ("name: !!python/name:os.getcwd\n", "broken YAML"),
        ("target: simulated\n", "which dataset?"),
        ("dataset: a.csv\n", "which target?"),
        ("dataset: {records: x}\ntarget: simulated\n", "either a `path` or the `name`"),
        ("dataset: {name: x, id: y}\ntarget: simulated\n", "an imported dataset has its columns"),
        ("dataset: a.csv\ntarget: simulatd\n", "there is no target type 'simulatd'"),
    ],
)
def test_an_invalid_spec_is_refused_whole(tmp_path, text, message):
    """A file that is not a spec, or lacks a required key, is an error with the reason."""
    assert message in refused(tmp_path, text)


def test_the_evaluators_of_a_spec_are_looked_for_beside_it(tmp_path):
    """Also where a flag names another target: code of a spec lies in the spec's folder."""
    folder = tmp_path / "sub"
    folder.mkdir()
    spec = folder / "s.yaml"
    spec.write_text("dataset: cases.jsonl\ntarget: recorded:a.jsonl\nevaluator: python:judges:good\n")
    plan = make_plan(spec, {"targets": ["simulated"]}, folder=tmp_path)
    assert plan.spec.workdir == str(folder.resolve())
