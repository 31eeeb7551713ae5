"""Exhaustive enumeration of expression trees, for tests of modes."""

import itertools

from setpo_verifiers.expressions import normal_form, render


def all_trees(leaves):
    """Every binary tree over + - * / with the leaves in every order (1, 8, 192, 7680 trees for 1 to 4 distinct leaves)."""

    def over(leaves):
        if len(leaves) == 1:
            yield leaves[0]
        for cut in range(1, len(leaves)):
            for left, right in itertools.product(list(over(leaves[:cut])), list(over(leaves[cut:]))):
                for op in "+-*/":
                    yield (op, left, right)

    for order in itertools.permutations(leaves):
        yield from over(order)


def tree_key(tree):
    """The mode key of a tree."""
    return render(*normal_form(tree))
