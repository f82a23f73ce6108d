"""The state of a lane, as read from its hash."""

from executor.lanes.state import LaneState, LimitInForce, PermitLease, read_state


def test_an_empty_hash_is_a_new_lane():
    """A lane that was lost starts again."""
    assert read_state({}) == LaneState()


def test_each_field_is_read_by_its_type():
    """Lua writes whole numbers with a point or an exponent, too."""
    state = read_state(
        {b"learnt_rpm": b"60", b"failures": b"3.0", b"answered": b"1e3", b"blocked_by": b"rpm"}
    )
    assert state == LaneState(learnt_rpm=60.0, failures=3, answered=1_000, blocked_by="rpm")
    assert isinstance(state.failures, int)


def test_leases_and_limits_are_read_by_their_prefixes():
    """The rest of the name is the executor, or the origin of the limit, with any characters."""
    state = read_state({b"held:a:1": b"2 17.5", b"held:b": b"3 18", b"limit:batch:x": b"60 0 4.0 0.5 20"})
    assert state.held == {"a:1": PermitLease(2, 17.5), "b": PermitLease(3, 18.0)}
    assert state.limits == {"batch:x": LimitInForce(60.0, 0.0, 4, 0.5, 20.0)}
    assert state.in_flight == 5


def test_an_unknown_field_is_ignored():
    """A newer version may have written it."""
    assert read_state({b"not_known_here": b"x", b"overloads": b"1"}) == LaneState(overloads=1)
