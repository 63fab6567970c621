"""Retired attempts, as pure state."""

import pytest

from ckptctl._errors import ControlError
from ckptctl._retired import RetiredAttempts
from ckptfmt import EpisodeId


def test_a_mark_refuses_up_to_its_attempt_and_never_goes_down() -> None:
    marks = RetiredAttempts()
    marks.retire("r", 3)
    marks.retire("r", 1)
    assert [marks.is_retired(EpisodeId("r", attempt)) for attempt in range(6)] == [True] * 4 + [False] * 2
    assert not marks.is_retired(EpisodeId("other"))
    with pytest.raises(ControlError) as caught:
        marks.check(EpisodeId("r", 3))
    assert (caught.value.code, caught.value.details) == ("stale_attempt", {"episode": "r-a3"})


def test_only_forget_ends_a_mark() -> None:
    marks = RetiredAttempts({"b": 2, "a": 0})
    assert (marks.as_dict(), len(marks)) == ({"a": 0, "b": 2}, 2)
    marks.forget("b")
    marks.forget("never seen")
    assert (marks.as_dict(), marks.is_retired(EpisodeId("b"))) == ({"a": 0}, False)
