"""Which batches an executor may serve, and which texts are labels."""

import pytest

from domain.eligibility import MAX_LENGTH, Eligibility, is_label
from domain.ids import FLEET


@pytest.mark.parametrize("text", ["gpu", "region=eu", "a", "team/gpu-1.2_x=v/1", "x" * MAX_LENGTH])
def test_a_name_or_a_name_with_a_value_is_a_label(text):
    """The limit is inclusive."""
    assert is_label(text)


@pytest.mark.parametrize(
    "text", ["", "-gpu", "=eu", "region=", "a=b=c", "two words", "gpu\n", "größe", "x" * (MAX_LENGTH + 1)]
)
def test_other_texts_are_no_labels(text):
    """A label has no empty part, one value at most, and no characters that a shell would split."""
    assert not is_label(text)


def test_an_executor_without_a_project_serves_all_projects():
    """An executor with one serves no other."""
    every, own = Eligibility(), Eligibility(project="search")
    for project, may in {"search": True, "ads": False}.items():
        assert every.covers(run_id=FLEET, project=project, requires=())
        assert own.covers(run_id=FLEET, project=project, requires=()) == may


@pytest.mark.parametrize(
    ("requires", "may"),
    [
        ((), True),
        (("gpu",), True),
        (("gpu", "region=eu"), True),
        (("region=us",), False),
        (("gpu", "x"), False),
    ],
)
def test_an_executor_declares_every_label_that_a_batch_requires(requires, may):
    """Further labels of the executor do not matter."""
    executor = Eligibility(labels=frozenset({"gpu", "region=eu"}))
    assert executor.covers(run_id=FLEET, project="any", requires=requires) == may


def test_an_executor_of_a_local_run_serves_that_run_only():
    """The fleet does not serve a local run, and a local run does not serve the fleet."""
    local, fleet = Eligibility(run_id="run-1"), Eligibility()
    runs = ("run-1", "run-2", FLEET)
    assert [local.covers(run_id=run, project="p", requires=()) for run in runs] == [True, False, False]
    assert [fleet.covers(run_id=run, project="p", requires=()) for run in runs] == [False, False, True]
