"""Run seeds from the command line: one with its trace, or thousands with a verdict."""

import argparse
import sys
import time

from tests.simulation.campaign import Campaign, run_campaign
from tests.simulation.run import Verdict, simulate

LAST_STEPS = 60


def main() -> int:
    """Return 0 if every invariant held, and every kind of fault occurred."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play this seed alone")
    parser.add_argument("--trace", action="store_true", help="show every step of it")
    parser.add_argument("--only", default="", help="of the steps, those that name this")
    parser.add_argument("--seeds", type=int, default=600, help="how many to play")
    parser.add_argument("--first", type=int, default=0, help="the first of them")
    parser.add_argument("--jobs", type=int, default=2, help="in so many processes")
    options = parser.parse_args()
    if options.seed is not None:
        verdict = simulate(options.seed)
        show(verdict, steps=None if options.trace else LAST_STEPS, only=options.only)
        return int(bool(verdict.violations))
    return play_many(options.seeds, options.first, options.jobs)


def show(verdict: Verdict, *, steps: int | None, only: str = "") -> None:
    """Print the last steps of a run, or all, and its result."""
    lines = [line for line in verdict.trace if only in line[2] or line[1] in {"fault", "world"}]
    for time_, actor, what in lines[-steps if steps else 0 :]:
        print(f"{time_:9.3f}  {actor:14}  {what[:240]}")
    for key, reason in verdict.unended.items():
        print(f"{key} has not ended: {reason}")
    for harm, what in verdict.violations:
        print(f"{harm.upper()}: {what}")
    kept = "every promise kept" if not verdict.violations else f"{len(verdict.violations)} broken"
    print(f"seed {verdict.seed} ({verdict.profile}): {kept}")


def play_many(seeds: int, first: int, jobs: int) -> int:
    """Run many seeds with a progress line; then print what occurred, and every failure."""
    began = time.monotonic()

    def progress(campaign: Campaign) -> None:
        done = campaign.runs.total()
        line = f"{done:,} of {seeds:,} seeds, {len(campaign.failures)} failed"
        print(f"\r{line}, {time.monotonic() - began:.0f} s ", end="", file=sys.stderr, flush=True)

    campaign = run_campaign(seeds, first=first, jobs=jobs, progress=progress)
    print(file=sys.stderr)
    for name, times in sorted(campaign.seen.items()):
        print(f"{times:9,}  {name}")
    for failure in campaign.failures:
        print(failure)
    missing = campaign.never_seen()
    if missing:
        print(f"never happened: {', '.join(missing)}")
    if campaign.failures:
        show(simulate(campaign.failures[0].seed), steps=LAST_STEPS)
    return int(bool(campaign.failures or missing))


if __name__ == "__main__":
    sys.exit(main())
