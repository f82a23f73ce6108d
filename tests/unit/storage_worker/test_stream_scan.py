"""The scan of keys: which are streams in their shard, and which are misplaced."""

import hypothesis.strategies as st
from hypothesis import given

from eventlog.keys import append_state_key, events_key, shard_of
from storage_worker.stream_scan import sort_page

IDS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=30)


@given(ids=st.lists(IDS, unique=True), shards=st.integers(1, 64), off=st.integers(1, 99))
def test_a_stream_is_in_its_shard_or_misplaced(ids: list[str], shards: int, off: int) -> None:
    """Every id is found in its own shard; in any other the key is misplaced, whatever the id contains."""
    right = [events_key(shard_of(key, shards), key).encode() for key in ids]
    wrong = [events_key(shard_of(key, shards) + off, key).encode() for key in ids]
    found = sort_page([*right, *wrong], shards=shards)
    assert list(found.evaluation_ids) == ids
    assert list(found.misplaced) == wrong


def test_keys_that_are_no_streams_are_ignored() -> None:
    """Fences and other prefixes are ignored; an id that no envelope can carry is misplaced."""
    odd = [b"eval:{00}:events:\xff", b"eval:{00}:events:", b"eval:{0}:events:e", b"eval:{x}:events:e"]
    found = sort_page([append_state_key(0, "e").encode(), b"other", *odd], shards=1)
    assert (list(found.evaluation_ids), list(found.misplaced)) == ([], odd)
