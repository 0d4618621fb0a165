#!/usr/bin/env python3
"""Times of two builds in turns: runs, training steps and what tcc itself takes.

  builds.py BEFORE AFTER [--rounds N] [--threads N]     folders of two checkouts

Five models out of wheels and five training steps, each compiled by both builds and run
by the build that compiled it. A ratio is the median over the rounds of the time after /
that before.
"""

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from bench.worker import cpu_seconds  # noqa: E402
from models import trainable, wheels  # noqa: E402
from models.run import compile_flags  # noqa: E402
from training import cases  # noqa: E402

INFERENCE = 5
STEPS = {"mlp_digits": 4000, "cnn_digits": 400, "bn_digits": 400, "gpt2_tiny": 100}
RESNET_STEPS = 8
RESNET_BATCH = 16


def call(build, tool, *arguments, **variables):
    command = [os.path.join(build, "build/bin", tool), *map(str, arguments)]
    environment = {**os.environ, **variables}
    return subprocess.run(command, check=True, capture_output=True, text=True, env=environment).stdout


def compile_model(build, model, package, *flags):
    """The CPU seconds that it takes with no code from a cache."""
    before = cpu_seconds(resource.RUSAGE_CHILDREN)
    with tempfile.TemporaryDirectory() as cache:
        call(build, "tcc", model, "-q", "-o", package, *flags, XDG_CACHE_HOME=cache)
    return cpu_seconds(resource.RUSAGE_CHILDREN) - before


def time_run(build, package, threads):
    """Milliseconds of a run, the median."""
    flags = ["--threads", threads, "--duration", 2, "--json"]
    return json.loads(call(build, "tcc-run", "bench", package, *flags))["med_ms"]


def time_step(build, package, threads, data, steps):
    """Seconds of a sample, the median over the later half of the steps."""
    with tempfile.TemporaryDirectory() as logs:
        call(build, "tcc-run", "train", package, "-q", "--no-shuffle", "--data", data,
             "--steps", steps, "--threads", threads, "--log-dir", logs)  # fmt: skip
        with open(os.path.join(logs, "metrics.jsonl")) as stream:
            rates = [json.loads(line)["samples_per_s"] for line in stream]
    return 1 / statistics.median(rates[len(rates) // 2 :])


def training_models(work):
    """(name, model, data, steps, flags) of each."""
    for name, steps in STEPS.items():
        recipe = os.path.join(work, f"{name}.toml")
        with open(recipe, "w") as stream:
            stream.write(cases.recipe(name, "adamw", "f32"))
        flags = [f"--train={recipe}"]
        if name == "mlp_digits":  # the only one with a batch to bind
            flags += ["--dim", f"batch={cases.MODELS[name].batch}"]
        data = os.path.join(cases.FIXTURES, f"{cases.MODELS[name].data}.npz")
        model = os.path.join(cases.FIXTURES, f"{name}.onnx")
        yield name, model, data, steps, flags
    model, data, recipe = (os.path.join(work, f) for f in ("r.onnx", "r.npz", "r.toml"))
    trainable.save_resnet18(model, RESNET_BATCH, extent=96)
    random = np.random.default_rng(0)
    pixels = random.standard_normal((RESNET_BATCH, 3, 96, 96), np.float32)
    np.savez(data, image=pixels, labels=random.integers(0, 1000, RESNET_BATCH))
    with open(recipe, "w") as stream:
        stream.write('[loss]\nkind = "cross_entropy"\n[optimizer]\nkind = "adamw"\n')
    yield "resnet18", model, data, RESNET_STEPS, [f"--train={recipe}"]


def report(name, rounds, unit):
    before, after = (statistics.median(times) for times in zip(*rounds))
    ratio = statistics.median(b / a for a, b in rounds)
    print(f"{name}: {before:.4g} {unit}, then {after:.4g}: {ratio:.3f}", flush=True)


def take_turns(rounds, builds, measure):
    """(before, after) of each round; the other build begins every second one."""
    rows = []
    for number in range(rounds):
        order = (0, 1) if number % 2 == 0 else (1, 0)
        times = {i: measure(builds[i], i) for i in order}
        rows.append((times[0], times[1]))
    return rows


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("before")
    parser.add_argument("after")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    builds = [os.path.abspath(options.before), os.path.abspath(options.after)]
    with tempfile.TemporaryDirectory() as work:
        package = lambda i: os.path.join(work, f"{i}.tcc")  # noqa: E731
        for name, case in list(wheels.models(long=False).items())[:INFERENCE]:
            model = os.path.join(wheels.make(name, case), "model.onnx")
            for i in (0, 1):
                compile_model(builds[i], model, package(i), *compile_flags(case))
            rows = take_turns(options.rounds, builds,
                              lambda b, i: time_run(b, package(i), options.threads))  # fmt: skip
            report(f"{name} run", rows, "ms")
        for name, model, data, steps, flags in training_models(work):
            rows = take_turns(options.rounds, builds,
                              lambda b, i: compile_model(b, model, package(i), *flags))  # fmt: skip
            report(f"{name} compiled", rows, "CPU s")
            rows = take_turns(options.rounds, builds,
                              lambda b, i: time_step(b, package(i), options.threads,
                                                     f"npz:{data}", steps))  # fmt: skip
            report(f"{name} step", rows, "s a sample")


if __name__ == "__main__":
    main()
