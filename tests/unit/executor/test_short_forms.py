"""Short forms of targets and evaluators, and the labels made of them."""

import pytest

from domain.batch_spec import TargetSpec
from executor.registry import parse_evaluator, parse_target


@pytest.mark.parametrize(
    ("text", "type_", "options", "label"),
    [
        ("simulated", "simulated", {}, "simulated"),
        ("recorded:a b.jsonl", "recorded", {"path": "a b.jsonl"}, "recorded:a b.jsonl"),
        ("python:pkg.mod:answer", "python", {"function": "pkg.mod:answer"}, "python:pkg.mod:answer"),
        ("command:sort -u", "command", {"command": "sort -u"}, "command:sort -u"),
        ("container:img:1", "container", {"image": "img:1"}, "container:img:1"),
        ("http://h:1/x", "http", {"url": "http://h:1/x"}, "http://h:1/x"),
        ({"type": "simulated", "seed": 3, "label": "S"}, "simulated", {"seed": 3}, "S"),
        ({"type": "recorded", "path": "x.jsonl"}, "recorded", {"path": "x.jsonl"}, "recorded:x.jsonl"),
    ],
)
def test_every_form_of_a_target_is_parsed(text, type_, options, label):
    """Short forms and mappings have a type, options and a label."""
    assert parse_target(text) == TargetSpec(type=type_, label=label, options=options)


def test_a_label_holds_no_password():
    """Labels are public: credentials of a URL are left out."""
    assert parse_target("https://me:secret@h/x?key=secret").label == "https://h/x"


def test_a_long_label_is_cut_and_stays_on_one_line():
    """A label must be a valid name."""
    label = parse_target({"type": "recorded", "path": "x\n" * 200}).label
    assert len(label) == 200
    assert "\n" not in label


@pytest.mark.parametrize(
    ("text", "options"),
    [
        ("exact", {}),
        ("contains:Paris", {"value": "Paris"}),
        ("regex:^a:b$", {"pattern": "^a:b$"}),
        ("python:judges:is_polite", {"function": "judges:is_polite"}),
    ],
)
def test_an_evaluator_has_a_short_form(text, options):
    """The main option follows the name."""
    assert parse_evaluator(text).options == options
