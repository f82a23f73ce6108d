"""Values of a spec are refused with their line."""

import pytest

from tests.unit.scoreline.submit.spec.spec_files import refused


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("evalutor: exact", "there is no key `evalutor`; did you mean `evaluator`?"),
        ("workers: 3", "it is a flag only, --workers"),
        ("limit: many", "`limit` must be a whole number from 1 to 1000000000; this is a text"),
        ("limit: 0", "0 is not"),
        ("repetitions: true", "this is true or false"),
        ("cache: 1", "`cache` must be true or false, this is a number"),
        ("timeout: soon", "`timeout` must be seconds, or a time such as 90s"),
        ("timeout: 8d", "at most 7 days"),
        ("min_pass_rate: 90", "`min_pass_rate` must be a number from 0 to 1"),
        ("mode: real", "`mode` must be simulated, not 'real'"),
        ("tags: [a, [b]]", "`tags` must be a text, this is a list"),
        ("prompts: []", "must not be an empty list"),
        ("prompt: [a]\nprompts: [b]", "are the same key"),
        ("name: a\nname: b", "'name' is there twice; first in line 3"),
        ("evaluator: exakt", "did you mean 'exact'?"),
        ("evaluator: {type: numeric, tolerence: 1}", "did you mean 'tolerance'?"),
        ("evaluators: [exact, exact]", "2 evaluators are called 'exact'"),
        ("evaluator: 3", "`evaluator` must be a text or a mapping with a `type`"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_line(tmp_path, line, message):
    """An unknown key, a wrong type and a value out of bounds are each one sentence with the line."""
    complaint = refused(tmp_path, f"dataset: a.jsonl\ntarget: simulated\n{line}\n")
    assert message in complaint
    assert f"scoreline.yaml, line {3 + line.count(chr(10))}: " in complaint
    assert complaint.count("\n") == 0
