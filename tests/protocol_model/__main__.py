"""python -m tests.protocol_model: search deeply, a line a scenario, and the stories of what went wrong."""

import argparse
import sys

from tests.protocol_model.proof import outcome_of
from tests.protocol_model.rules import EVERY_RULE, Rule
from tests.protocol_model.scenarios import BY_NAME, SCENARIOS
from tests.protocol_model.verdict import Verdict, examine, printed


def main() -> int:
    """Search what was asked for; 1 if anything broke."""
    asked = _arguments()
    chosen = [BY_NAME[asked.scenario]] if asked.scenario else SCENARIOS
    rules = EVERY_RULE - {Rule[name] for name in asked.without}
    verdicts: list[Verdict] = []
    for scenario in chosen:
        verdict = examine(scenario, rules=rules, limit=asked.limit)
        verdicts.append(verdict)
        print(verdict, flush=True)
        if verdict.stories:
            print(printed(verdict.stories), flush=True)
    seconds = sum(verdict.seconds for verdict in verdicts)
    print(f"{sum(verdict.worlds for verdict in verdicts):,} states in {seconds:.0f} s of processor time")
    return 0 if outcome_of(verdicts).is_clean else 1


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.protocol_model", description=__doc__)
    parser.add_argument("--limit", type=int, default=400_000, help="states a scenario at most")
    parser.add_argument("--scenario", choices=BY_NAME, metavar="NAME", help="one scenario only")
    rules = [rule.name for rule in Rule]
    parser.add_argument(
        "--without", choices=rules, nargs="+", default=[], metavar="RULE", help=f"of: {', '.join(rules)}"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
