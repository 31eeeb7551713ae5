"""Whatever the text, a verifier answers: fuzzing in small (benchmarks/fuzz.py does it for as long as you like)."""

import random
import signal

import odd_texts
import pytest

from setpo_verifiers import Status, extract, verify


@pytest.fixture
def guard():
    """Ends a verifier that hangs (an exponential regular expression, say) instead of the whole run; no test of speed."""

    def stop(*_):
        raise TimeoutError("60 s for what takes one")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(60)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize("seed", range(4))
def test_no_text_makes_a_verifier_raise(seed, guard):
    rng = random.Random(seed)
    judged = dict.fromkeys(odd_texts.TASKS, 0)
    for _ in range(1_000):
        data = rng.randbytes(rng.choice([16, 64, 256]))
        task, text, gold = odd_texts.draw(data)
        print(data.hex())  # which text it was, should it hang
        lenient, strict = extract(text), extract(text, mode="strict")
        assert strict in (None, lenient), data.hex()
        for mode in ("lenient", "strict"):
            try:
                verdict = verify(task, text, gold, mode=mode)
            except ValueError as error:
                assert " gold" in str(error), data.hex()  # refused, as it should be; no other error
                continue
            assert verdict.valid and verdict.reward == float(verdict.status is Status.CORRECT), data.hex()
            assert len(verdict.answer or "") + len(verdict.mode_key or "") < 10_000, data.hex()
            judged[task] += 1
    assert min(judged.values()) > 100


def test_the_bytes_decide():
    data = random.Random(0).randbytes(200)
    assert odd_texts.draw(data) == odd_texts.draw(data)
    assert len({odd_texts.draw(data[:n]) for n in range(200) if isinstance(odd_texts.draw(data[:n]).gold, str)}) > 1
