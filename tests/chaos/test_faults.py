"""Every row of the fault matrix once, on servers that all rows share, and every run that ever went wrong.

`python -m tests.chaos` runs the same rows many times; a failure here names the command that repeats it.
"""

from collections.abc import AsyncIterator

import pytest
import pytest_asyncio

from tests.chaos.faults import FAULTS, Fault
from tests.chaos.matrix import REGRESSIONS, Regression, regressions, run_once
from tests.chaos.world import World, world

on_one_loop = pytest.mark.asyncio(loop_scope="module")
SEED = 1


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def here(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """Servers and links for all rows."""
    async with world(tmp_path_factory.mktemp("chaos")) as shared:
        yield shared


@on_one_loop
@pytest.mark.parametrize("row", FAULTS.values(), ids=FAULTS.keys())
async def test_fault(here: World, row: Fault) -> None:
    """After the fault all has ended, and the tables show no trace of it."""
    if reason := row.impossible():
        pytest.skip(reason)
    await must_be_clean(here, row, SEED)


@on_one_loop
@pytest.mark.parametrize("kept", regressions(), ids=lambda kept: f"{kept.fault}-{kept.seed}")
async def test_regression(here: World, kept: Regression) -> None:
    """What once went wrong goes well."""
    await must_be_clean(here, FAULTS[kept.fault], kept.seed)


async def must_be_clean(here: World, row: Fault, seed: int) -> None:
    """Run a row; nothing may be found."""
    again = f"python -m tests.chaos --fault {row.name} --seed {seed} --runs 1"
    print(again)
    found = (await run_once(here, row, seed)).brief()
    assert not found, f"{found}. Again: {again}. Once fixed, add it to {REGRESSIONS.name}."
