"""Measured against predicted slowdown of budgets: budgets.py [MODEL...]

A workload of workloads.py is compiled with all values kept and for arenas between that
and the least. The sessions take turns, step by step, on one thread, so that what else
runs slows both; the measured slowdown is the median of the ratios of neighbouring steps.
"""

import os
import statistics
import sys
import tempfile
import time

from bench import torch_models, workloads
from memory.resident import compile_for
from memory.session import Session

SHARES = (0.25, 0.5, 0.75, 1)  # of what can be saved
STEPS, SECONDS = 9, 20
MODELS = "resnet18", "gpt2_tiny"


def time_step(session):
    start = time.perf_counter()
    session.step()
    return time.perf_counter() - start


def measure(plain, bounded):
    """The ratio of one step's time to the other's."""
    for session in (plain, bounded):
        session.step()
    ratios, end = [], time.monotonic() + SECONDS
    while len(ratios) < STEPS or (time.monotonic() < end and len(ratios) < 2000):
        before = time_step(plain)
        ratios.append(2 * time_step(bounded) / (before + time_step(plain)))
    return statistics.median(ratios)


def run(work, name):
    torch_models.export(name, work)
    model, recipe = os.path.join(work, "model.onnx"), workloads.recipe(name)
    path, plan = compile_for(work, model, recipe, "--memory-budget=1TiB")
    plain = Session(path)
    fixed = plan["memory_bytes"]["total"] - plan["memory_bytes"]["arena"]
    step = [p["bytes"] for p in plan["memory"]["curve"] if p["entry"] == "train_step"]
    for share in SHARES:
        budget = fixed + int(max(step) - share * (max(step) - min(step)))
        path, plan = compile_for(work, model, recipe, f"--memory-budget={budget}")
        fitted = [p for p in plan["memory"]["fitted"] if p["entry"] == "train_step"][0]
        predicted = fitted["microseconds"] / fitted["microseconds_unbounded"]
        bounded = Session(path)
        measured = measure(plain, bounded)
        bounded.close()
        saved = 1 - plan["memory_bytes"]["arena"] / max(step)
        print(
            f"{name}: arena -{saved:.0%}: predicted {predicted - 1:+.1%}, measured"
            f" {measured - 1:+.1%}, measured / predicted {measured / predicted:.2f}",
            flush=True,
        )
    plain.close()


def main():
    with tempfile.TemporaryDirectory() as work:
        for name in sys.argv[1:] or MODELS:
            run(work, name)


if __name__ == "__main__":
    main()
