"""The generator of random numbers, written once more: Philox4x32-10 (Salmon et al., 2011)."""

import numpy as np


def philox(seed, counter):
    """Philox4x32-10 of counters [n, 4] (Salmon et al., 2011)."""
    x = [counter[:, i].astype(np.uint64) for i in range(4)]
    low, high = seed & 0xFFFFFFFF, seed >> 32
    word = np.uint64(0xFFFFFFFF)
    for _ in range(10):
        first, second = x[0] * np.uint64(0xD2511F53), x[2] * np.uint64(0xCD9E8D57)
        x = [
            (second >> np.uint64(32)) ^ x[1] ^ np.uint64(low),
            second & word,
            (first >> np.uint64(32)) ^ x[3] ^ np.uint64(high),
            first & word,
        ]
        low, high = (low + 0x9E3779B9) & 0xFFFFFFFF, (high + 0xBB67AE85) & 0xFFFFFFFF
    return x


def uniform(count, seed, step, key):
    """In [0, 1), of 24 bits: what graph.random gives for its first `count` elements."""
    counter = np.zeros((count, 4))
    counter[:, 0], counter[:, 2], counter[:, 3] = np.arange(count), step, key
    return (philox(seed, counter)[0] >> np.uint64(8)).astype("f4") * np.float32(2**-24)
