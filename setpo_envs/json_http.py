"""JSON over HTTP with servers that may be busy, restarting or wrong; the key is in the request and nowhere else."""

from __future__ import annotations

import http.client
import json
import os
import random
import time
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator
from typing import Any
from urllib.parse import urlsplit

RETRIED = {408, 409, 425, 429, 500, 502, 503, 504}
LONGEST_WAIT = 30.0  # seconds between two tries, whatever the server asks for
LARGEST_REPLY = 1 << 30  # bytes


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """A redirect would carry the key to another host."""

    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def check_base_url(base_url: str) -> None:
    """Raise ValueError where ``base_url`` is no plain http or https address; one with credentials in it is not repeated."""
    parts = urlsplit(base_url)
    if parts.username or parts.password or parts.query or parts.fragment:
        raise ValueError("expected base_url without user, password, query or fragment: a key belongs in the environment")
    if parts.scheme not in ("http", "https") or not parts.hostname or not base_url.isprintable() or " " in base_url:
        raise ValueError(f"expected base_url to name a host and start with http:// or https://, got {base_url!r}")


def request_json(url: str, body: Any, *, key_variable: str, timeout: float, waits: Iterable[float]) -> bytes:
    """What ``url`` answers to ``body`` (POST; None: GET), tried once more after each of ``waits`` where a later try may succeed.

    Such are a lost connection, a time-out and the statuses of ``RETRIED``, whose Retry-After is heeded up to ``LONGEST_WAIT``.

    Args:
        key_variable: Environment variable that holds the key; unset or empty means that no key is sent.
        timeout: Seconds for one try, from its beginning to the last byte of the reply.
        waits: Seconds before each further try; when they end, the last failure is raised.

    Raises:
        ConnectionError: The server could not be reached, or said "later", until ``waits`` ended.
        ValueError: It refused the request, or the key cannot be sent. No message holds the key.
    """
    key = _key(key_variable)
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
    # ASCII escapes also carry lone surrogates
    request = urllib.request.Request(url, None if body is None else json.dumps(body).encode("ascii"), headers)
    opener = urllib.request.build_opener(_NoRedirect)
    waits, tries = iter(waits), 0
    while True:
        asked = 0.0
        tries += 1
        try:
            return _reply(opener, request, timeout)
        except urllib.error.HTTPError as error:
            said = f"status {error.code}"
            with error:
                detail = without_key(_start_of(error), key_variable)[:500]
            if error.code not in RETRIED:
                raise ValueError(f"{url} refused the request with {said}: {detail}") from None
            after = (error.headers.get("Retry-After") or "").strip()
            asked = min(float(after), LONGEST_WAIT) if after.isdecimal() else 0.0
            said += f": {detail}" if detail else ""
        except (OSError, http.client.HTTPException) as error:
            said = without_key(f"{type(error).__name__}: {error}", key_variable)
        wait = next(waits, None)
        if wait is None:
            raise ConnectionError(f"no answer from {url} after {tries} tries, the last with {said}")
        time.sleep(max(wait, asked))


def patient(seconds: float) -> Iterator[float]:
    """Waits before further tries: doubling, at random between the half and the whole of it, for ``seconds`` after the first failure."""
    begin, longest = time.monotonic(), 0.5
    while (left := begin + seconds - time.monotonic()) > 0:
        yield min(random.uniform(longest / 2, longest), left)
        longest = min(2 * longest, LONGEST_WAIT)


def without_key(text: str, key_variable: str) -> str:
    """``text`` without the key: some servers repeat in a reply what they were sent."""
    key = os.environ.get(key_variable, "").strip()
    return text.replace(key, "[key]") if key else text


def _key(variable: str) -> str:
    key = os.environ.get(variable, "").strip()  # a key read from a file often ends in a line break
    if key and not (key.isascii() and key.isprintable() and " " not in key):
        raise ValueError(f"expected the environment variable {variable} to hold a key of printable ASCII characters without blanks")
    return key


def _reply(opener: urllib.request.OpenerDirector, request: urllib.request.Request, timeout: float) -> bytes:
    deadline = time.monotonic() + timeout
    with opener.open(request, timeout=timeout) as reply:  # a limit for each step, which a server that drips bytes never reaches
        parts, size = [], 0
        while part := reply.read1(1 << 20):
            parts.append(part)
            size += len(part)
            if size > LARGEST_REPLY:
                raise ValueError(f"expected a reply of at most {LARGEST_REPLY} bytes from {request.full_url}, got more")
            if time.monotonic() > deadline:
                raise TimeoutError(f"the reply did not end within {timeout} s")
        if reply.length:  # bytes that were announced and did not come
            raise http.client.IncompleteRead(b"", reply.length)
        return b"".join(parts)


def _start_of(error: urllib.error.HTTPError) -> str:
    try:
        return error.read(5000).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):  # it broke off
        return ""
