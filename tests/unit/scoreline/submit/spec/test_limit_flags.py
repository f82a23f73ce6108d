"""Limits and budgets in a spec, in flags and in settings, and which targets are metered because of them."""

from decimal import Decimal

import pytest

from domain.batch_spec import Limits
from scoreline.settings import load_settings
from scoreline.submit.spec.builder import make_plan
from scoreline.submit.spec.limit_flags import split_limit_flags
from tests.unit.scoreline.submit.spec.limited_specs import planned, refused


def test_limits_are_taken_one_by_one_from_flags_then_the_file_then_settings(tmp_path):
    """A limit given in one place leaves the other limits to the next place."""
    made = load_settings({"EVAL_RATE_LIMIT_DELAY": "3", "EVAL_RATE_LIMIT_TPM": "7"}).limits
    plan = planned(
        tmp_path, "limits: {rpm: 60, tpm: 1e5}\n", made, limits={"rpm": 30, "max_concurrency": 4}
    )
    assert plan.spec.limits == Limits(rpm=30, tpm=100_000, max_concurrency=4, delay=3)
    assert planned(tmp_path, "limits: {delay: 0}\n", made).spec.limits == Limits(tpm=7, delay=0)
    assert planned(tmp_path).spec.limits == Limits()


def test_a_budget_is_money_or_tokens(tmp_path):
    """Money is exact to the last digit; without a budget there is no limit."""
    plan = planned(tmp_path, "max_cost: 0.10\nmax_tokens: 5000\nfail_fast_after: 0\n")
    assert (plan.batch.max_cost_usd, plan.batch.max_tokens, plan.spec.fail_fast_after) == (
        Decimal("0.1"),
        5_000,
        0,
    )
    assert planned(tmp_path, "max_cost: $5\n", max_cost="7.50").batch.max_cost_usd == Decimal("7.50")
    assert planned(tmp_path, "max_cost: $5\n").batch.max_cost_usd == 5
    bare = planned(tmp_path)
    assert (bare.batch.max_cost_usd, bare.batch.max_tokens, bare.spec.fail_fast_after) == (None, None, 20)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("limits: {rmp: 60}", "there is no key `rmp`; did you mean `rpm`?"),
        ("limits: 60", "`limits` must be a mapping of keys, this is a number"),
        ("limits: {rpm: 0}", "`limits.rpm` must be a number, more than nothing"),
        ("limits: {tpm: many}", "`limits.tpm` must be a number"),
        ("limits: {max_concurrency: 1.5}", "`limits.max_concurrency` must be a whole number"),
        ("limits: {delay: -1}", "`limits.delay` must be more than nothing and at most 1 days"),
        ("max_cost: 0", "`max_cost` must be an amount in dollars, such as 5 or 0.50; 0 is not"),
        ("max_cost: much", "`max_cost` must be an amount"),
        ("max_cost: .nan", "`max_cost` must be an amount"),
        ("max_cost: true", "`max_cost` must be an amount"),
        ("max_tokens: 0", "`max_tokens` must be a whole number from 1"),
        ("fail_fast_after: -1", "`fail_fast_after` must be a whole number from 0"),
        ("fail_fast: 3", "did you mean `fail_fast_after`?"),
    ],
)
def test_what_makes_no_sense_is_named_with_its_line(tmp_path, line, message):
    """Limits are checked like every other key."""
    complaint = refused(tmp_path, f"{line}\n")
    assert message in complaint
    assert "scoreline.yaml, line 4: " in complaint


@pytest.mark.parametrize(
    ("flags", "typed"),
    [
        ({"limits": {"rpm": -1.0}}, "--rpm-limit"),
        ({"limits": {"delay": "soon"}}, "--delay"),
        ({"limits": {"max_concurrency": 10**9}}, "--max-concurrency"),
        ({"max_cost": "x"}, "--max-cost"),
    ],
)
def test_a_wrong_flag_is_named_as_it_was_typed(tmp_path, flags, typed):
    """The error names the flag, not the key that it sets."""
    assert refused(tmp_path, **flags).startswith(f"{typed}: ")


LIMITED = """
evaluators:
  - {type: contains, value: x, name: judge, rate_limits: {max_concurrency: 3, delay: 2s}}
accounts: {openai: {rpm: 5}, "openai:team-a": {tpm: 7}}
max_concurrency: 9
"""


def test_a_target_a_judge_and_an_account_have_limits_of_their_own(tmp_path):
    """Limits are read from the spec or from flags with names; a target with a limit is metered."""
    path = tmp_path / "limited.yaml"
    path.write_text("dataset: a.jsonl\ntargets: [simulated, 'python:app:f']\n" + LIMITED)
    plain, named = split_limit_flags(
        {"rpm": ["1000", "simulated=30"], "delay": ["judge=0.5"], "tpm": None, "max_concurrency": []}
    )
    batch = make_plan(path, {"limits": plain, "named_limits": named}, folder=tmp_path).spec
    assert [each.rate_limits for each in batch.targets] == [Limits(rpm=30), None]
    assert [each.rate_limits for each in batch.evaluators] == [Limits(max_concurrency=3, delay=0.5)]
    assert batch.accounts == {"openai": Limits(rpm=5), "openai:team-a": Limits(tpm=7)}
    assert (batch.limits.rpm, batch.max_concurrency) == (1000, 9)
    assert all(each.is_metered for each in batch.targets)
    assert all(each.is_metered for each in batch.evaluators)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("accounts: {openai: {rmp: 5}}", "there is no key `rmp`; did you mean `rpm`?"),
        ("accounts: {openai: 5}", "`accounts.openai` must be a mapping of keys"),
        ("max_concurrency: 0", "`max_concurrency` must be a whole number from 1"),
    ],
)
def test_wrong_limits_of_an_account_are_named_with_their_line(tmp_path, line, message):
    """Limits of an account are checked like every other key."""
    complaint = refused(tmp_path, f"{line}\n")
    assert message in complaint
    assert "scoreline.yaml, line 4: " in complaint


def test_a_limit_typed_for_a_name_that_is_not_there_is_refused(tmp_path):
    """The error names the flag and lists the known names."""
    complaint = refused(tmp_path, named_limits={"gpt": {"rpm": 3}})
    assert complaint == (
        "--rpm-limit: no target or evaluator is named 'gpt'; there are: simulated, recorded:b.jsonl, exact"
    )
    assert "`rate_limits.rpm` must be a number" in refused(tmp_path, named_limits={"exact": {"rpm": "x"}})
