"""A verifier that does what its completion says: sleeps, hangs in C code, takes memory, dies. Importable by worker processes."""

import ctypes
import os
import signal
import sys
import time

from setpo_verifiers import Status, Verdict


def verify_odd(completion, gold, *, mode="lenient"):
    word, _, argument = completion.partition(" ")
    if word == "sleep":
        time.sleep(float(argument))
    elif word == "hang":
        10**10**9  # big-integer arithmetic in C: no signal handler and no other thread runs
    elif word == "memory":
        return verdict(len(bytearray(int(argument) * 2**20)) > 0)
    elif word == "kill":
        os.kill(os.getpid(), signal.SIGKILL)
    elif word == "crash":
        ctypes.string_at(0)
    elif word == "exit":
        sys.exit(3)
    elif word == "raise":
        kind, _, message = argument.partition(" ")
        raise {"ValueError": ValueError, "TypeError": TypeError}.get(kind, RuntimeError)(message or argument)
    elif word == "deep":
        return deep(0)
    elif word == "nothing":
        return None
    elif word == "pid":
        return Verdict(1.0, Status.CORRECT, str(os.getpid()), None, "correct")
    return verdict(completion == gold)


def verdict(right):
    return Verdict(float(right), Status(int(right)), "x", None, "correct" if right else "value")


def deep(n):
    return deep(n + 1)
