"""Compares training with PyTorch's: parity.py [MODEL...]

Each case of cases.py in f64, losses and final tensors; the first gradients and
the losses in f32; and that batches accumulated are one larger batch.
"""

import concurrent.futures
import json
import os
import sys
import tempfile

import numpy as np
from harness import Failure, Tally, call
from safetensors.numpy import load_file
from training import cases

TOLERANCE = 1e-8
GRADIENT_TOLERANCE = 1e-5
# PyTorch's own distance of f32 to f64, times:
CURVE_RATIO = 2


def fixture(name, suffix):
    return os.path.join(cases.FIXTURES, f"{name}.{suffix}")


def compile_model(folder, model, optimizer, compute="f64", batch=None, suffix="onnx"):
    """The package's path."""
    name = f"{folder}/{model}-{optimizer}-{compute}-{batch}-{suffix}"
    with open(name + ".toml", "w") as stream:
        stream.write(cases.recipe(model, optimizer, compute))
    flags = [f"--train={name}.toml", "-q", "-o", name + ".tcc"]
    if model == "mlp_digits":  # the only one with a batch to bind
        flags += ["--dim", f"batch={batch or cases.MODELS[model].batch}"]
    call("tcc", fixture(model, suffix), *flags)
    return name + ".tcc"


def train(package, case, flags=(), steps=None):
    """The losses of all updates, and the folder of what was written."""
    folder = tempfile.mkdtemp(dir=os.path.dirname(package))
    data = "npz:" + fixture(cases.MODELS[case.model].data, "npz")
    command = ["train", package, "--data", data, "--no-shuffle", "--threads", "1"]
    command += ["-q", "--steps", steps or cases.steps_of(case), "--log-dir", folder]
    command += ["--checkpoint-dir", folder, "--export", folder + "/export"]
    for setting in cases.settings(case):
        command += ["--set", setting]
    call("tcc-run", *command, *flags)
    with open(folder + "/metrics.jsonl") as stream:
        return [json.loads(line)["loss"] for line in stream], folder


def distance(ours, expected):
    """The largest difference over the largest value."""
    scale = np.abs(expected).max()
    return np.abs(ours - expected).max() / scale if scale else np.abs(ours).max()


def compare(tally, name, package, case, expected, flags=()):
    """Losses and tensors after a run, with what PyTorch made of them."""
    losses, folder = train(package, case, flags)
    parts = cases.summary(losses, load_file(folder + "/export"))
    ends = np.cumsum([len(part) for part in parts])
    if ends[-1] != len(expected):
        tally.check(name, False, f"{ends[-1]} values, not {len(expected)}")
        return 0
    wanted = np.split(expected, ends[:-1])
    losses = np.abs(parts[0] / wanted[0] - 1)
    worst = np.max([losses.max(), *map(distance, parts[1:], wanted[1:])])
    tally.check(name, worst <= TOLERANCE, f"differs by {worst:.1e}")
    return worst


def check_optimizer(tally, folder, model, optimizer):
    """All cases of a model and an optimizer; the largest difference."""
    kept = cases.load(model)
    package = compile_model(folder, model, optimizer)
    worst = 0
    for case in cases.cases():
        if (case.model, case.optimizer) == (model, optimizer):
            key = cases.name_of(case)
            worst = max(worst, compare(tally, f"{model} {key}", package, case, kept[key]))
    return f"f64 {worst:.1e}"


def check_accumulation(tally, folder, model, optimizer):
    """A batch of 64 makes what four of 16 do."""
    package = compile_model(folder, model, optimizer, batch=64)
    four = cases.Case(model, optimizer, "one_cycle", "both", 4)
    expected = cases.load(model)[cases.name_of(four)]
    name = f"{model} one batch for four"
    worst = compare(tally, name, package, four, expected, ["--set", "accumulate=1"])
    return f"one batch for four {worst:.1e}"


def check_single(tally, folder, model, optimizer):
    """Gradients and losses in f32."""
    kept = cases.load(model)
    case = cases.single(model)
    package = compile_model(folder, model, optimizer, "f32")
    _, first = train(package, case, steps=1)
    state = load_file(first + "/step-1/state.safetensors")
    worst = 0
    for key in kept:
        if key.startswith("gradient/"):
            ours = state["momentum_buffer/" + key.removeprefix("gradient/")]
            error = np.linalg.norm(ours - kept[key]) / np.linalg.norm(kept[key])
            worst = max(worst, error)
            message = f"differs by {error:.1e}"
            tally.check(f"{model} f32 {key}", error <= GRADIENT_TOLERANCE, message)
    losses, _ = train(package, case)
    ours, theirs = (
        np.linalg.norm(np.asarray(curve) - kept["f64"]) for curve in (losses, kept["f32"])
    )
    message = f"{ours:.1e} from the f64 curve, PyTorch {theirs:.1e}"
    tally.check(f"{model} f32 losses", ours <= CURVE_RATIO * theirs, message)
    return f"f32 gradients {worst:.1e}, losses {message}"


def checks(models):
    """One for each package."""
    for model in models or cases.MODELS:
        optimizers = {case.optimizer for case in cases.cases() if case.model == model}
        if model == "mlp_digits":
            yield check_accumulation, model, "adam"
        for optimizer in sorted(optimizers):
            yield check_optimizer, model, optimizer
        yield check_single, model, cases.single(model).optimizer


def main(models):
    tally = Tally()
    with tempfile.TemporaryDirectory() as root:

        def run(check, model, optimizer):
            folder = tempfile.mkdtemp(dir=root)
            try:
                found = check(tally, folder, model, optimizer)
                print(f"{model} {optimizer}: {found}", flush=True)
            except Failure as failure:
                tally.check(f"{model} {optimizer}", False, failure)

        with concurrent.futures.ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda job: run(*job), checks(models)))
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
