"""Training by two ranks beside PyTorch's DistributedDataParallel, both over Gloo.

  ranks.py [--models gpt2_tiny,resnet18] [--rounds N] [--seconds S]

Every job is of processes with one thread on one core each, which make as many steps at
the same time; jobs take turns:

  tcc, torch      one process
  tcc_2, torch_2  two ranks
  apart           two processes of tcc that know nothing of each other
  free            two processes of tcc that each believe in another rank: what lanes and
                  buckets cost by themselves

Steps a second of each, and medians over the rounds: two ranks of tcc over two of torch,
the same over what one process of each does, and `free` over `apart`. Then messages of
other costs: the sleeping transport's latency and time of a byte are such that all
messages of a step take half as long as the step, and what of it is not hidden is said;
and that one bucket at the end is not faster, for some random costs.
"""

import argparse
import contextlib
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile

import numpy as np
from bench import torch_models, workloads
from harness import BIN, ROOT, call
from processes import find_free_port

SLEEPING = os.path.join(BIN, "../tests/bench/ranks")
WARM_UP = 3


class Job:
    """Processes that begin and end steps together. `worlds` says of each of how many
    ranks it is one."""

    def __init__(self, engine, name, package, worlds, **environment):
        port = find_free_port()
        script = os.path.join(ROOT, "tests/bench/rank_worker.py")
        self.workers = []
        for core, world in enumerate(worlds):
            rank = core if world > 1 else 0
            command = [sys.executable, script, engine, name, package, rank, world, port, core]
            self.workers.append(
                subprocess.Popen(
                    list(map(str, command)),
                    env={**os.environ, "TCC_PLUGINS": BIN, **environment},
                    stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE,
                    text=True,
                )
            )
        self.losses = self.run(WARM_UP)[1]

    def run(self, steps):
        """The seconds of the slowest, and the losses of each."""
        for worker in self.workers:
            print(steps, file=worker.stdin, flush=True)
        rows = [json.loads(worker.stdout.readline()) for worker in self.workers]
        return max(row["seconds"] for row in rows), [row["losses"] for row in rows]

    def close(self):
        for worker in self.workers:
            with contextlib.suppress(BrokenPipeError):
                worker.stdin.close()
            worker.wait()


def compile_step(name, folder, label, more=""):
    recipe, package = f"{folder}/{label}.toml", f"{folder}/{label}.tcc"
    with open(recipe, "w") as stream:
        stream.write(workloads.recipe(name, "f32") + more)
    call("tcc", f"{folder}/model.onnx", f"--train={recipe}", "-o", package, "-q")
    return package


def save_data(name, package, path):
    info = json.loads(call("tcc-run", "info", package, "--json"))
    inputs = next(e["inputs"] for e in info["entries"] if e["name"] == "train_step")
    arrays = map(np.concatenate, zip(*workloads.batches(name)))
    np.savez(path, **{row["name"]: array for row, array in zip(inputs, arrays)})


def take_turns(jobs, rounds, seconds):
    """Steps a second of each job, for each round."""
    alone, _ = next(iter(jobs.values())).run(1)
    steps = max(2, round(seconds / alone))
    rates = {label: [] for label in jobs}
    for _ in range(rounds):
        for label, job in jobs.items():
            rates[label].append(steps / job.run(steps)[0])
    return rates


def median_ratio(rates, *labels):
    """Of products of rates: those at odd places divide."""
    ratios = []
    for values in zip(*(rates[label] for label in labels)):
        ratio = 1.0
        for i, value in enumerate(values):
            ratio = ratio / value if i % 2 else ratio * value
        ratios.append(ratio)
    return statistics.median(ratios)


def check_losses(name, jobs):
    """Each rank of tcc has the loss of all, a rank of torch that of its own batch."""
    ours = jobs["tcc_2"].losses[0]
    theirs = [statistics.mean(pair) for pair in zip(*jobs["torch_2"].losses)]
    differences = [abs(a / b - 1) for a, b in zip(ours, theirs)]
    if max(differences) > workloads.tolerance(name, "f32"):
        raise RuntimeError(f"{name}: the losses differ by {max(differences):.1e}")


def compare(name, folder, package, options):
    sleeping = {"TCC_PLUGINS": SLEEPING}
    jobs = {
        "tcc": Job("tcc", name, package, [1]),
        "torch": Job("torch", name, package, [1]),
        "tcc_2": Job("tcc", name, package, [2, 2]),
        "torch_2": Job("torch", name, package, [2, 2]),
        "apart": Job("tcc", name, package, [1, 1]),
        "free": Job("tcc", name, package, [2, 2], **sleeping),
    }
    check_losses(name, jobs)
    rates = take_turns(jobs, options.rounds, options.seconds)
    for job in jobs.values():
        job.close()
    each = ", ".join(f"{label} {statistics.median(r):.2f}" for label, r in rates.items())
    print(f"{name}: steps/s {each}")
    print(
        f"{name}: two ranks, tcc / torch {median_ratio(rates, 'tcc_2', 'torch_2'):.2f}; over "
        f"one process each {median_ratio(rates, 'tcc_2', 'torch_2', 'torch', 'tcc'):.2f}; a "
        f"free transport / apart {median_ratio(rates, 'free', 'apart'):.2f}"
    )


def traced(name, package, folder, latency, byte_time):
    """Nanoseconds of the last update of a rank whose messages cost so much: of lane 0,
    of all messages, and what it waited for them; how many messages, and their bytes."""
    environment = {"TCC_PLUGINS": SLEEPING, "RANK": "0", "WORLD_SIZE": "2",
                   "TCC_RENDEZVOUS": "127.0.0.1:1", "TCC_LATENCY": str(latency),
                   "TCC_BYTE_TIME": str(byte_time)}  # fmt: skip
    call("tcc-run", "train", package, "--data", f"npz:{folder}/data.npz", "--threads", "1",
         "--steps", "8", "-q", "--trace", f"{folder}/trace.json",
         env=os.environ | environment)  # fmt: skip
    with open(f"{folder}/trace.json") as stream:
        events = [e for e in json.load(stream)["traceEvents"] if e["ph"] == "X"]
    sums = [e for e in events if e["name"].startswith("AllReduce")]
    waits = [e for e in events if e["tid"] == 0 and "cause" in e["args"]]
    begin, end = min(e["ts"] for e in events), max(e["ts"] + e["dur"] for e in events)
    total = [1e3 * sum(e["dur"] for e in rows) for rows in (sums, waits)]
    return 1e3 * (end - begin), *total, len(sums), sum(e["args"]["bytes"] for e in sums)


def hide(name, folder, package, options):
    """Messages that take half as long as the step without them."""
    step, _, _, count, size = traced(name, package, folder, 0, 0)
    latency = 0.05 * step / count
    byte_time = 0.45 * step / size
    shares = []
    for _ in range(options.rounds):
        _, messages, exposed, _, _ = traced(name, package, folder, latency, byte_time)
        shares.append(1 - exposed / messages)
    print(f"{name}: {count} messages of {size / 1e6:.1f} MB in half of the step's "
          f"{step / 1e6:.1f} ms: {statistics.median(shares):.3f} of it is hidden")  # fmt: skip
    return step, size


def beside_one(name, folder, package, options, step, size):
    """Buckets beside one at the end, over random costs of messages."""
    last = compile_step(name, folder, "last", '\n[parallel]\nbucket = "1TiB"\n')
    generator, worst = random.Random(5), math.inf
    for _ in range(options.costs):
        latency = 10 ** generator.uniform(3, 5.5)
        byte_time = generator.uniform(0, 1.5) * step / size
        costs = {"TCC_PLUGINS": SLEEPING, "TCC_LATENCY": str(latency),
                 "TCC_BYTE_TIME": str(byte_time)}  # fmt: skip
        jobs = {label: Job("tcc", name, path, [2], **costs)
                for label, path in (("buckets", package), ("last", last))}  # fmt: skip
        rates = take_turns(jobs, options.rounds, options.seconds / 2)
        for job in jobs.values():
            job.close()
        ratio = median_ratio(rates, "buckets", "last")
        worst = min(worst, ratio)
        print(f"{name}: {latency / 1e3:.0f} us and {byte_time:.3f} ns a byte: buckets / one "
              f"at the end {ratio:.3f}")  # fmt: skip
    print(f"{name}: the worst of {options.costs} costs {worst:.3f}")


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="gpt2_tiny,resnet18")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2)
    parser.add_argument("--costs", type=int, default=20, help="random costs of messages")
    options = parser.parse_args()
    for name in options.models.split(","):
        with tempfile.TemporaryDirectory() as folder:
            torch_models.export(name, folder)
            package = compile_step(name, folder, "step")
            save_data(name, package, f"{folder}/data.npz")
            compare(name, folder, package, options)
            step, size = hide(name, folder, package, options)
            beside_one(name, folder, package, options, step, size)


main()
