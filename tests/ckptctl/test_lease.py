"""The lease, as pure state: the time is an argument."""

from ckptctl._server.lease import Lease


def test_it_runs_from_its_start_for_the_grace() -> None:
    lease = Lease(600)
    assert (lease.seconds_left(0), lease.expired(1e9)) == (None, False)
    lease.start(100)
    assert lease.seconds_left(100) == 600
    assert lease.seconds_left(699) == 1
    assert [lease.expired(now) for now in (699.9, 700, 5000)] == [False, True, True]
    assert lease.seconds_left(5000) == 0


def test_it_runs_from_the_end_of_a_call_and_not_during_one() -> None:
    lease = Lease(600)
    lease.start(0)
    lease.enter_call()
    lease.enter_call()
    assert (lease.expired(5000), lease.seconds_left(5000)) == (False, 600)
    lease.leave_call(5000)
    assert not lease.expired(9000)
    lease.leave_call(9000)
    assert [lease.expired(now) for now in (9599, 9600)] == [False, True]


def test_a_call_that_ends_after_the_lease_was_stopped_does_not_start_it() -> None:
    lease = Lease(600)
    lease.start(0)
    lease.enter_call()
    lease.stop()
    lease.leave_call(10)
    assert (lease.seconds_left(10), lease.expired(1e9)) == (None, False)
