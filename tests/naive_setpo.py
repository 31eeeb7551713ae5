"""SetPO written as the paper writes it (arXiv 2602.01062, equations 3 and 4), and kernels to try it on."""

import numpy as np

G_FUNCTIONS = {"softlog": lambda x: -np.log1p(x), "linear": lambda x: 1 - x}


def naive_diversity(kernel, members, g):
    def mass(i):
        return sum(kernel[i, j] for j in members if j != i) / (len(members) - 1)

    return sum(g(mass(i)) for i in members) / len(members)


def naive_credits(kernel, members, g):
    credits = np.zeros(len(kernel))
    if len(members) >= 3:
        whole = naive_diversity(kernel, members, g)
        for i in members:
            credits[i] = whole - naive_diversity(kernel, [j for j in members if j != i], g)
    return credits


def random_kernel(size, rng):
    upper = np.triu(rng.random((size, size)), 1)
    return upper + upper.T + np.eye(size)


def label_kernel(labels):
    labels = np.asarray(labels)
    return (labels[:, None] == labels).astype(float)
