"""The names of the queue's keys."""

import pytest
from redis.crc import key_slot

from taskqueue import keys

OF_A_BATCH = (
    keys.tasks_key,
    keys.legacy_dead_letters_key,
    keys.spec_key,
    keys.contexts_key,
)


@pytest.mark.parametrize("batch_id", ["b1", "a:b", "{odd}", "o}d"])
def test_all_keys_of_a_batch_share_a_slot(batch_id):
    """In a cluster, a script can access several of them."""
    assert len({key_slot(name(batch_id).encode()) for name in OF_A_BATCH}) == 1
    assert len({name(batch_id) for name in OF_A_BATCH}) == len(OF_A_BATCH)


def test_different_batches_have_different_keys():
    """No name of a batch leads to a key of another batch."""
    names = [name(batch_id) for name in OF_A_BATCH for batch_id in ("b", "b1", "{b}", "dlq:{b}")]
    assert len(set(names)) == len(names)
