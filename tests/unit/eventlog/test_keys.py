"""Names of keys in Redis: the slot of a shard, and the order that `append.lua` expects."""

import pytest

from eventlog.keys import append_keys, append_state_key, epoch_key, events_key, shard_of, wake_key


@pytest.mark.parametrize("shards", [1, 4, 1_000])
def test_an_evaluation_has_the_same_shard_everywhere(shards):
    """CRC-32, whose published check value is that of these digits: a writer in another language agrees."""
    assert shard_of("123456789", shards) == 0xCBF43926 % shards


def test_all_keys_of_a_shard_have_one_hash_tag():
    """A script may use keys of one cluster slot only; two digits keep names in order."""
    names = [events_key(3, "e"), append_state_key(3, "e"), wake_key(3), epoch_key(3)]
    assert all(name.startswith("eval:{03}:") for name in names)
    assert len(set(names)) == 4
    assert wake_key(12) == "eval:{12}:wake"


def test_the_keys_of_the_shard_follow_those_of_the_first_evaluation():
    """They are named once, however many evaluations a call has."""
    first, second = ([events_key(0, key), append_state_key(0, key)] for key in ("a", "b"))
    shard = [wake_key(0), epoch_key(0)]
    assert append_keys(0, ["a"]) == [*first, *shard]
    assert append_keys(0, ["a", "b"]) == [*first, *shard, *second]
    assert append_keys(0, []) == []
