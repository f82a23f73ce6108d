"""Targets and evaluators of a spec: options, names and secrets are checked with their place."""

from pathlib import Path

import pytest

from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.errors import SpecError
from tests.unit.scoreline.submit.spec.spec_files import planned, refused


def test_the_dataset_itself_may_hold_the_answers(tmp_path):
    """A recorded target on the dataset's own file finds the records where the dataset has them."""
    text = "dataset: {path: a.json, records: outputs}\ntarget: recorded:a.json\n"
    assert planned(tmp_path, text).recorded[0].columns.records == "outputs"


@pytest.mark.parametrize(
    "options",
    [
        "headers: {Authorization: Bearer abcdef123456}",
        "headers: {x-api-key: 0123456789}",
        "body: {key: [sk-proj-abcdefghij]}",
    ],
)
def test_a_secret_that_is_written_out_is_refused(tmp_path, options):
    """Specs are stored and shown, so keys must stay in the environment; the error has the remedy."""
    text = f"dataset: a.csv\ntarget: {{type: http, url: https://example.org, {options}}}\n"
    complaint = refused(tmp_path, text)
    assert "write $NAME" in complaint
    assert "line 2" in complaint
    assert "abcdef" not in complaint
    assert "0123" not in complaint


def test_an_evaluators_time_out_is_written_like_a_batchs(tmp_path):
    """A time-out accepts units such as `5m`."""
    judge = {"type": "exact", "timeout": "5m"}
    plan = make_plan(None, {"mode": "simulated", "evaluators": [judge]}, folder=tmp_path)
    assert plan.spec.evaluators[0].timeout == 300.0


@pytest.mark.parametrize(
    "line",
    [
        "prompts: ['{{input}} {key}']",
        "prompt: '{key} {{input}}'",
        "name: {key}",
        "tags: [{key}]",
        "targets: [{{type: simulated, label: {key}}}]",
        "evaluators: [{{type: exact, name: {key}}}]",
    ],
)
def test_a_key_in_a_prompt_or_name_is_refused(line: str, tmp_path: Path):
    """It would be stored and sent; the error does not repeat the key."""
    key = "sk-ant-api03-Q7abc0123456789"
    base = "dataset: cases.jsonl\n" + ("" if line.startswith("targets") else "targets: [simulated]\n")
    with pytest.raises(SpecError, match="looks like a secret") as refused:
        planned(tmp_path, base + line.format(key=key) + "\n")
    assert key not in str(refused.value)


def test_a_key_in_a_flag_is_refused(tmp_path: Path):
    """`--prompt` is checked like the spec; hyphenated words are not taken for keys."""
    text = "dataset: cases.jsonl\ntargets: [simulated]\n"
    with pytest.raises(SpecError, match="looks like a secret"):
        planned(tmp_path, text, prompts=["{input} sk-ant-api03-Q7abc0123456789"])
    planned(tmp_path, text, prompts=["Explain basic arithmetic and sk-learn-pipelines: {input}"])


def test_two_targets_of_one_label_are_refused(tmp_path: Path):
    """Results are reported by label; a label of its own makes the second one acceptable."""
    text = "dataset: a.csv\ntargets:\n- simulated\n- {type: simulated}\n"
    assert "2 targets are called 'simulated': give each a `label` of its own" in refused(tmp_path, text)
    named = planned(tmp_path, text.replace("{type: simulated}", "{type: simulated, label: other}"))
    assert [target.label for target in named.spec.targets] == ["simulated", "other"]


def test_the_records_of_answers_are_a_path_and_stay_out_of_the_stored_spec(tmp_path: Path):
    """Submission uses them; executors get the answers with their tasks."""
    text = "dataset: a.csv\ntarget: {type: recorded, path: b.json, records: RECORDS}\n"
    plan = planned(tmp_path, text.replace("RECORDS", "data.rows"))
    assert plan.recorded[0].columns.records == "data.rows"
    assert "records" not in plan.spec.targets[0].options
    assert "line 2: `records` must be a dotted path" in refused(tmp_path, text.replace("RECORDS", "[a]"))
