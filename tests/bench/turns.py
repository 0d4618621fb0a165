"""Engines in turns, each in a process of its own on the first cores.

A round counts if others took little of those cores while it ran; a ratio is the
median over the rounds of the peer's time / tcc's.
"""

import contextlib
import json
import os
import statistics
import subprocess
import sys
import time

from harness import BIN, ROOT

MAX_DISTURBANCE = 0.1  # of the cores' time
MAX_ATTEMPTS = 4  # for each round that is wanted


class Worker:
    """A script of this folder that ends in worker.serve."""

    def __init__(self, script, *arguments, root=None):
        """Of the checkout `root` and its build, or of this one."""
        environment = dict(os.environ)
        if root:
            environment["TCC_BIN"] = os.path.join(root, "build/bin")
            environment["PYTHONPATH"] = os.path.join(root, "tests")
        command = [sys.executable, os.path.join(root or ROOT, "tests/bench", script)]
        self.process = subprocess.Popen(
            [*command, *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )

    def run(self, seconds):
        """What serve prints; None if it ended."""
        try:
            print(seconds, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def busy_seconds(threads):
    """What all processes used of the first cores so far."""
    ticks = 0
    with open("/proc/stat") as stream:
        for line in stream:
            name, *fields = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) < threads:
                user, nice, system, _, _, irq, soft, steal, *_ = map(int, fields)
                ticks += user + nice + system + irq + soft + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_gflops(threads):
    """Of the first cores together."""
    command = os.path.join(BIN, "fma-peak")
    loops = [
        subprocess.Popen(
            [command, "30"],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda core=core: os.sched_setaffinity(0, [core]),
        )
        for core in range(threads)
    ]
    return sum(float(loop.communicate()[0]) for loop in loops)


def measure_round(workers, seconds, threads):
    """What each worker prints, and the share that others took."""
    before, start, replies = busy_seconds(threads), time.monotonic(), {}
    for engine, worker in workers.items():
        replies[engine] = worker.run(seconds)
        if replies[engine] is None:
            raise RuntimeError(f"{engine} ended")
    elapsed = time.monotonic() - start
    own = sum(reply["cpu"] for reply in replies.values())
    others = busy_seconds(threads) - before - own
    return replies, max(0.0, others) / (elapsed * threads)


def take_turns(row, workers, options):
    """The row with the medians of all that run: ENGINE, ENGINE_ratio; and what else
    a worker prints: ENGINE_KEY. Every second round goes the other way."""
    row |= {"threads": options.threads, "dropped": 0, "disturbed": False}
    rounds, peaks = [], []
    try:
        for engine in [e for e, w in workers.items() if w.run(0.1) is None]:
            print(f"{row['model']}: {engine} does not run it", file=sys.stderr)
            workers.pop(engine).close()
        if "tcc" not in workers:
            raise RuntimeError("tcc ended")
        while len(rounds) < options.rounds:
            turns = dict(reversed(workers.items())) if len(peaks) % 2 else workers
            replies, others = measure_round(turns, options.seconds, options.threads)
            peaks.append(peak_gflops(options.threads))
            if others > MAX_DISTURBANCE and row["dropped"] < MAX_ATTEMPTS * options.rounds:
                row["dropped"] += 1
                continue
            row["disturbed"] |= others > MAX_DISTURBANCE
            rounds.append({e: statistics.median(reply["ms"]) for e, reply in replies.items()})
    finally:
        for worker in workers.values():
            worker.close()
    for engine, reply in replies.items():
        row[engine] = statistics.median(r[engine] for r in rounds)
        row[f"{engine}_ratio"] = statistics.median(r[engine] / r["tcc"] for r in rounds)
        facts = {key: reply[key] for key in reply.keys() - {"ms", "cpu"}}
        row |= {f"{engine}_{key}": value for key, value in facts.items()}
    row["peak_gflops"] = statistics.median(peaks)
    return row
