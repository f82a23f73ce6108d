"""Which targets are metered."""

from domain.batch_spec import Options
from executor import registry
from executor.contract import ExecutionEnvironment, Metered
from tests.unit.scoreline.submit.spec.limited_specs import planned


def test_with_a_limit_every_called_target_is_metered(tmp_path):
    """Recorded answers need no call, so they are not metered; without a limit no target is."""
    assert [each.is_metered for each in planned(tmp_path).spec.targets] == [False, False]
    for limits in ("{rpm: 60}", "{tpm: 60}", "{max_concurrency: 2}", "{delay: 1}"):
        batch = planned(tmp_path, f"limits: {limits}\n").spec
        assert [each.is_metered for each in batch.targets] == [True, False]
        assert [each.is_metered for each in batch.evaluators] == [False]


class _Counted:
    """A type of targets and of evaluators that is always metered."""

    needs_expected = False

    def check(self, options: Options) -> None:
        pass

    def lane(self, _options: Options, _surroundings: ExecutionEnvironment) -> str | None:
        return "provider"

    def tokens(self, _options: Options) -> float:
        return 1.0


def test_a_metered_type_is_metered_without_a_limit(tmp_path, monkeypatch):
    """This holds for targets and for judges."""
    for kind in (registry.TARGETS, registry.EVALUATORS):
        monkeypatch.setitem(kind.builtin, "counted", f"{__name__}:COUNTED")
    assert isinstance(COUNTED, Metered)
    batch = planned(tmp_path, target=["counted", "simulated"], evaluator=["counted", "exact"]).spec
    assert [each.is_metered for each in batch.targets] == [True, False]
    assert [each.is_metered for each in batch.evaluators] == [True, False]


COUNTED = _Counted()
