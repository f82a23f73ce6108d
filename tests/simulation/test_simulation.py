"""The bounded share of the simulator: some seeds, every seed that once failed, and one seed twice."""

import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path

import pytest

from tests.simulation.campaign import Campaign, outcomes, run_seeds
from tests.simulation.profiles import GENERATION, Profile, profile_of
from tests.simulation.run import Verdict, simulate
from tests.simulation.world import Harm, Violation

SEEDS = 210
REGRESSIONS = [
    line for line in (Path(__file__).parent / "regressions.txt").read_text().splitlines() if line[0] != "#"
]


@pytest.fixture(scope="module")
def campaign() -> Campaign:
    return run_seeds(0, SEEDS)


def test_every_invariant_holds(campaign):
    """Whatever fails, crashes, is lost, duplicated or late: the final tables do not show it."""
    assert list(map(str, campaign.failures)) == []


def test_every_kind_of_fault_occurred(campaign):
    """A simulator in which some fault never occurs proves nothing about that fault."""
    assert campaign.never_seen() == []


@pytest.mark.parametrize("line", REGRESSIONS)
def test_a_seed_that_failed_once_fails_no_more(line):
    """Each found a bug, which its line in the file names."""
    place, _, what = line.partition(":")
    generation, seed = map(int, place.split())
    assert generation <= GENERATION
    assert simulate(seed).violations == [], what


@pytest.mark.parametrize("profile", Profile)
def test_the_same_seed_gives_the_same_trace(profile):
    """The traces agree step by step and to the millisecond, so that a failure can be reproduced."""
    seed = list(Profile).index(profile)
    assert profile_of(seed) is profile
    assert fingerprint(simulate(seed)) == fingerprint(simulate(seed))


def test_another_process_runs_the_same_seed_alike():
    """Neither the order of hashes nor the wall clock matters."""
    seed = 11
    code = f"import {__name__} as t; print(t.fingerprint(t.simulate({seed})))"
    process = subprocess.run(
        [sys.executable, "-c", code],
        env={**os.environ, "PYTHONHASHSEED": "12345"},
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        check=True,
    )
    assert process.stdout.strip() == fingerprint(simulate(seed))


def fingerprint(verdict: Verdict) -> str:
    """Make a trace comparable."""
    return sha256(repr((verdict.trace, sorted(verdict.seen.items()))).encode()).hexdigest()


def test_a_failure_prints_the_command_that_repeats_it():
    """Its row names the seed, what went wrong, and the command."""
    harmed = [Violation(Harm.LOST, "e0 1/2"), Violation(Harm.STUCK, "e1"), Violation(Harm.LOST, "e0 1/3")]
    failing = Campaign()
    failing.add(Verdict(7, Profile.PORTS, harmed, failing.seen, []))
    [row] = [row for row in outcomes(failing) if row.fault == "simulated: flaky ports"]
    assert (row.runs, row.lost, row.doubled, row.stuck, row.violations) == (1, 2, 0, 1, 0)
    assert "seed 7" in row.failures[0]
    assert "python -m tests.simulation --seed 7 --trace" in row.failures[0]
    assert not row.is_clean
