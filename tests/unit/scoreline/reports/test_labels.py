"""The labels of variants."""

from domain.batch_spec import BatchSpec, EvaluatorSpec, TargetSpec, pack
from scoreline.reports.labels import variant_labels


def spec(*targets: str, prompts: tuple[str, ...] = ("{input}",)) -> str:
    named = tuple(TargetSpec("simulated", label) for label in targets)
    return pack(BatchSpec("b", named, prompts, (EvaluatorSpec("exact", "exact"),))).decode()


def test_each_target_and_prompt_has_a_label_with_its_number() -> None:
    """The numbers are those of the variants in the spec."""
    labels = variant_labels(spec("a", "b", prompts=("{input}", "Q: {input}")))
    assert [label.number for label in labels] == [0, 1, 2, 3]
    assert {(label.target, label.prompt) for label in labels} == {
        (target, prompt) for target in "ab" for prompt in ("{input}", "Q: {input}")
    }
    assert str(labels[0]) == "a · {input}"


def test_a_password_in_the_url_of_a_target_is_redacted() -> None:
    """Reports and exports are passed on."""
    [label] = variant_labels(spec("https://me:hunter2@model"))
    assert label.target == "https://me:***@model"


def test_an_external_batch_has_no_labels() -> None:
    """It has no spec."""
    assert variant_labels(None) == ()
