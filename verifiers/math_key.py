"""``mode_key`` of an answer: one text for one value, however it is written."""

from __future__ import annotations

import hashlib

from .math_equal import difference, states_value, words
from .math_forms import Answer, Base, Equation, Group, Matrix, Ratio, Relation, Sets, Value
from .math_number import TooLarge, Undefined
from .math_sets import key as set_key
from .math_value import key_of, ratio_key


def key(answer: Answer) -> str | None:
    """The canonical key, or None for a number too large to compare."""
    try:
        text = _key(answer)
    except (TooLarge, Undefined):
        return None
    return text if len(text) <= 200 else "#" + hashlib.sha1(text.encode("utf-8", "replace")).hexdigest()


def _key(answer: Answer) -> str:
    if isinstance(answer, Value):
        return key_of(answer.tree)
    if isinstance(answer, Group):
        return _group(answer)
    if isinstance(answer, Equation):
        left = difference(answer)
        return _key(answer.right) if states_value(answer) or left is None else f"{ratio_key(left)}=0"
    if isinstance(answer, Relation | Sets):
        found = set_key(answer)
        if found is not None:
            return found
        if isinstance(answer, Relation) and len(answer.signs) == 1:
            return _inequality(answer)
        if isinstance(answer, Relation):
            return " ".join(f"{key_of(side)}{sign}" for side, sign in zip(answer.sides, (*answer.signs, "")))
        return answer.sign.join(_key(part) for part in answer.parts)
    if isinstance(answer, Matrix):
        return "[" + ";".join(",".join(_key(cell) for cell in row) for row in answer.rows) + "]"
    if isinstance(answer, Base):
        return f"{answer.digits}_{answer.base}"
    if isinstance(answer, Ratio):
        if len(answer.parts) == 2 and not answer.clock:
            return key_of(("/", *answer.parts))
        return ":".join(key_of(part) for part in answer.parts)
    return words(answer.text)


def _inequality(relation: Relation) -> str:
    """``y > 2x`` and ``2x - y < 0`` have one key."""
    (left, right), sign = relation.sides, relation.signs[0]
    if sign[0] == ">":
        left, right, sign = right, left, sign.replace(">", "<")
    return f"{ratio_key(('+', left, ('-', right)), signed=True)}{sign}0"


def _group(group: Group) -> str:
    if len(group.items) == 2 and group.opening in ("(", "["):
        interval = set_key(group)
        if interval is not None:
            return interval
    if not group.opening and all(isinstance(item, Equation) and item.name for item in group.items):
        named = sorted(((item.name, item) for item in group.items if isinstance(item, Equation)), key=lambda pair: pair[0])
        if len({name for name, _ in named}) == len(named) > 1:  # x = 3, y = -2
            return "(" + ",".join(_key(item.right) for _, item in named) + ")"
    keys = [_key(item) for item in group.items]
    if group.opening in ("", "{"):
        keys = sorted(set(keys))
        return keys[0] if len(keys) == 1 else "{" + ",".join(keys) + "}"
    return group.opening + ",".join(keys) + group.closing
