"""Beside sqrt(n) checkpointing: chain.py

A training step of n equal blocks, three products each with all results read again in the
backward pass. The peer (Chen et al., Training Deep Nets with Sublinear Memory Cost, 2016)
keeps the results of every sqrt(n)-th block, and makes those of each segment of blocks but
the last again, once, before its backward pass. What it takes is counted here, launch by
launch. In its bytes the compiler's plan must take no longer, and in its time no more bytes.
"""

import math
import os
import tempfile

from harness import Tally
from memory.optimum import ROWS, Graph, cost, fit, print_program

BLOCKS = (4, 9, 16, 25, 36)
WIDTHS = (192, 192, 64)  # of the results of a block
TOLERANCE = 1e-9


class Chain(Graph):
    """Launches of the forward pass, then of the backward pass, by blocks."""

    def __init__(self, blocks):
        self.shapes, self.reads, self.outputs = [], [], []
        last, self.forward, self.backward = None, [], []
        for _ in range(blocks):
            for width in WIDTHS:
                last = self.add([ROWS, width], [last])
            self.forward.append(list(range(last + 1 - len(WIDTHS), last + 1)))
        gradient = self.add([ROWS, WIDTHS[-1]], [last])
        for block in reversed(self.forward):
            first = len(self.shapes)
            for i in reversed(block):
                before = i - 1 if i else None
                rows = self.shapes[before][1] if i else ROWS
                if i:
                    self.add([rows, self.shapes[gradient][1]], [before, gradient], True)
                gradient = self.add([ROWS, rows], [gradient])
            self.backward.append(list(range(first, len(self.shapes))))
        self.outputs[gradient] = True


def checkpoint(graph, size):
    """The launches of the peer, in segments of `size` blocks."""
    blocks = len(graph.forward)
    order = [i for block in graph.forward for i in block]
    order.append(len(order))  # the first gradient
    for end in range(blocks, 0, -size):
        start = max(0, end - size)
        again = graph.forward[start:end] if end < blocks else []
        order += [i for block in again for i in block if i != block[-1] or block != again[-1]]
        for block in reversed(range(start, end)):
            order += graph.backward[blocks - 1 - block]
    return order


def count_bytes(graph, order):
    """The most that is live at once: what ran last is read, until it runs again."""
    spans, latest = [], {}
    for now, i in enumerate(order):
        for j in graph.reads[i]:
            if j is not None:
                latest[j][1] = now
        latest[i] = [now, now, graph.bytes(i)]
        spans.append(latest[i])
    return max(
        sum(size for begin, end, size in spans if begin <= now <= end)
        for now in range(len(order))
    )


def check(tally, work, blocks):
    graph = Chain(blocks)
    order = checkpoint(graph, math.isqrt(blocks))
    costs = [cost(graph, i) for i in range(len(graph.shapes))]
    size, time = count_bytes(graph, order), sum(costs[i] for i in order)
    kept = count_bytes(graph, range(len(costs)))
    path = os.path.join(work, f"{blocks}.mlir")
    with open(path, "w") as stream:
        stream.write(print_program(graph))
    name = f"{blocks} blocks"
    run, decisions = fit(path, size)
    if not tally.check(f"{name}: fits in the peer's bytes", run.code == 0, run.err[:300]):
        return
    points = [numbers for kind, numbers in decisions if kind == "possible"]
    fitted = [numbers for kind, numbers in decisions if kind == "fitted"][0]
    whole = fitted["microseconds_unbounded"]
    tally.check(f"{name}: costs", abs(sum(costs) - whole) < 1e-6 * whole, f"{sum(costs)}, {whole}")
    taken = fitted["microseconds"]
    tally.check(f"{name}: time", taken <= time * (1 + TOLERANCE), f"{taken}, {time}")
    least = min(p["bytes"] for p in points if p["microseconds"] <= time * (1 + TOLERANCE))
    tally.check(f"{name}: bytes", least <= size, f"{least}, {size}")
    print(
        f"{name}: {kept} bytes, {whole:.0f} us; peer {size} bytes ({size / kept - 1:+.0%}),"
        f" {time / whole - 1:+.1%} time; in its bytes {taken / whole - 1:+.1%} time, in its"
        f" time {least} bytes ({least / kept - 1:+.0%})",
        flush=True,
    )


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        for blocks in BLOCKS:
            check(tally, work, blocks)
    tally.close()


if __name__ == "__main__":
    main()
