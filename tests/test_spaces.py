import pickle

import numpy as np
import pytest
from gymnasium.vector.utils import batch_space, iterate

from setpo_envs.completion import Completion
from setpo_envs.spaces import Group, Unicode


def test_unicode_holds_any_text_up_to_its_length():
    space = Unicode(5)
    for text in ("", "abcde", "— ï\0", "\ud800", Completion("x", truncated=True)):
        assert text in space
    for other in ("abcdef", b"abc", None, 3, ["a"]):
        assert other not in space
    assert Unicode(5) == space != Unicode(6)
    assert repr(space) == "Unicode(5)"


def test_unicode_samples_are_members_and_follow_the_seed():
    space = Unicode(3, seed=1)
    texts = [space.sample() for _ in range(50)]
    assert all(text in space for text in texts)
    assert len(set(texts)) > 10
    space.seed(1)
    assert [space.sample() for _ in range(50)] == texts


def test_group_has_exactly_its_size():
    space = Group(Unicode(), 3)
    assert ("a", "b", "c") in space and ["a", "b", "c"] in space
    for other in (("a", "b"), ("a",) * 4, ("a", "b", 3), "abc", np.array(["a", "b", "c"]), None):
        assert other not in space
    assert len(space.sample()) == 3
    assert space == Group(Unicode(), 3) and space != Group(Unicode(), 4) and space != Group(Unicode(7), 3)
    assert repr(space) == "Group(Unicode(1000000), 3)"


def test_group_follows_the_seed_and_survives_pickle_and_json():
    space = Group(Unicode(), 4, seed=3)
    first = space.sample()
    space.seed(3)
    assert space.sample() == first
    assert pickle.loads(pickle.dumps(space)) == space
    assert space.from_jsonable(space.to_jsonable([first])) == [first]


def test_group_is_batched_environment_by_environment():
    # N = G: a transposed batch would go unnoticed by its shape
    batched = batch_space(Group(Unicode(), 2), 2)
    assert [tuple(item) for item in iterate(batched, (("a0", "a1"), ("b0", "b1")))] == [("a0", "a1"), ("b0", "b1")]


def test_sizes_and_masks_that_make_no_sense():
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Group(Unicode(), 0)
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Unicode(0)
    with pytest.raises(ValueError, match="neither mask"):
        Unicode().sample(mask=3)
