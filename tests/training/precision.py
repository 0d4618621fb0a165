"""Training in bf16 and f16: precision.py [long]

First gradients are as near to f32's as those of torch.autocast, in fixtures/
precision.json by make_precision_fixture.py; bits are the same at any number of threads
and over an interruption; what keep_f32 names computes in f32. With `long`, losses and
accuracy after whole runs.
"""

import json
import os
import sys
import tempfile

import numpy as np
from harness import TARGET, Failure, Tally, call
from safetensors.numpy import load_file
from training import cases

FIXTURE = os.path.join(cases.FIXTURES, "precision.json")
MODELS = ("cnn_digits", "gpt2_tiny")
TYPES = ("bf16", "f16")
# Our distance to f32 over torch.autocast's.
GRADIENT_RATIO = 1.2
# Of the mean of the last losses, as a part of f32's; or so much of autocast's.
STEPS, LAST, LOSS_BOUND, LOSS_RATIO = 300, 50, 0.02, 1.2
CURVE = "gpt2_tiny", "adamw"
# Of the largest value: on cuda attention that might have been narrow sums in another order.
KEPT_BOUNDS = {"cpu": 0, "cuda": 1e-5}
SEEDS, EPOCHS, TRAINED, POINTS = (1, 2, 3), 10, 1280, 0.01
DIGITS = os.path.join(cases.FIXTURES, *[os.pardir] * 3, "examples", "train-digits")
OPTIMIZER = "momentum"


def find_data(model):
    return "npz:" + os.path.join(cases.FIXTURES, f"{cases.MODELS[model].data}.npz")


def compile_model(folder, model, optimizer, compute, keys="", flags=(), head=""):
    package = os.path.join(folder, f"{model}.{compute}.tcc")
    with open(package + ".toml", "w") as stream:
        stream.write(head + cases.recipe(model, optimizer, compute) + keys)
    path = os.path.join(cases.FIXTURES, f"{model}.onnx")
    call("tcc", path, "-q", f"--train={package}.toml", "-o", package, *flags)
    return package


def train(package, data, steps, *flags, threads=1, folder=None):
    """The folder of the logs, and the variables."""
    folder = folder or tempfile.mkdtemp(dir=os.path.dirname(package))
    call("tcc-run", "train", package, "-q", "--data", data, "--steps", steps, "--threads",
         threads, "--checkpoint-dir", folder, "--log-dir", folder, *flags)  # fmt: skip
    return folder, load_file(f"{folder}/step-{steps}/state.safetensors")


def root_mean_square(errors):
    return float(np.sqrt(np.mean(np.square(errors))))


def measure(gradients, expected):
    """The distances of the parameters' gradients, as one number."""
    return root_mean_square(
        [np.linalg.norm(gradients[k] - v) / np.linalg.norm(v) for k, v in expected.items()]
    )


def load_gradients(model):
    """The first ones, of PyTorch in f64."""
    prefix = "gradient/"
    return {k.removeprefix(prefix): v for k, v in cases.load(model).items() if prefix in k}


def check_gradients(tally, package, model, compute, theirs):
    _, state = train(package, find_data(model), 1, "--no-shuffle")
    slots = {k.removeprefix("momentum_buffer/"): v for k, v in state.items()}
    ours = measure(slots, load_gradients(model))
    print(f"{model} {compute}: gradients off by {ours:.1e}, torch.autocast's {theirs:.1e}")
    tally.check(f"{model} {compute} gradients", 0 < ours <= GRADIENT_RATIO * theirs)


def equal(a, b):
    return a.keys() == b.keys() and all(a[k].tobytes() == b[k].tobytes() for k in a)


def check_bits(tally, package, model, compute):
    name, data = f"{model} {compute}", find_data(model)
    _, first = train(package, data, 6)
    for threads in (2, 3):
        _, again = train(package, data, 6, threads=threads)
        tally.check(f"{name} bits at {threads} threads", equal(first, again))
    folder, _ = train(package, data, 3)
    _, halves = train(package, data, 6, "--resume", folder=folder)
    tally.check(f"{name} bits in two halves", equal(first, halves))
    types = {str(value.dtype) for value in first.values()}
    tally.check(f"{name} masters", types <= {"float32", "float64", "int64"}, str(types))


def distance(kept, expected):
    """The largest difference over the largest value; equal are settings without a bound."""
    differs = kept != expected
    if not differs.any():
        return 0
    return np.max(np.abs(kept[differs] - expected[differs])) / np.max(np.abs(expected))


def check_keep(tally, folder):
    """All products in f32 are f32; one of them is said."""
    model, data = "gpt2_tiny", find_data("gpt2_tiny")
    states = [
        train(compile_model(tempfile.mkdtemp(dir=folder), model, OPTIMIZER, *options), data, 2)[1]
        for options in (("f32",), ("bf16", 'keep_f32 = "*"\n'))
    ]
    worst = max(distance(kept, expected) for kept, expected in
                zip(*([state[key] for key in sorted(state)] for state in states)))  # fmt: skip
    tally.check("keep_f32 = '*' is f32", worst <= KEPT_BOUNDS[TARGET], f"{worst:.1e}")
    out = os.path.join(folder, "decisions")
    compile_model(folder, model, OPTIMIZER, "bf16", 'keep_f32 = "*.h.1.mlp.*"\n',
                  [f"--dump-decisions={out}"])  # fmt: skip
    with open(out) as stream:
        text = stream.read()
    # Forward and two gradients of two products, in each of three steps; forward in
    # eval and predict.
    kept = text.count("kept wide")
    tally.check("kept are said", kept == 2 * (3 * 3 + 2), f"{kept}")
    try:
        compile_model(folder, model, OPTIMIZER, "bf16", 'keep_f32 = "h.9*"\n')
        tally.check("a pattern without a match", False)
    except Failure as failure:
        tally.check("a pattern without a match", "no parameter or node" in str(failure), failure)


def read_losses(folder):
    with open(f"{folder}/metrics.jsonl") as stream:
        return [json.loads(line)["loss"] for line in stream]


def check_curve(tally, folder, theirs):
    """The last losses of a run."""
    model, optimizer = CURVE
    means = {}
    for compute in ("f32", "bf16"):
        package = compile_model(folder, model, optimizer, compute)
        logs, _ = train(package, find_data(model), STEPS, "--no-shuffle")
        means[compute] = np.mean(read_losses(logs)[-LAST:])
    gaps = [abs(mean["bf16"] / mean["f32"] - 1) for mean in (means, theirs)]
    message = f"{gaps[0]:.2%} from f32, torch.autocast {gaps[1]:.2%}"
    print(f"{model}: {message}")
    tally.check(f"{model} losses", gaps[0] <= max(LOSS_BOUND, LOSS_RATIO * gaps[1]), message)


def check_accuracy(tally, folder):
    """Most of all digits, from other starts in other orders, tell the rest: 517, so
    that a point is more than what chance makes of three runs."""
    sys.path.append(DIGITS)
    from prepare import read_digits

    pictures, labels = read_digits()
    pictures = pictures.reshape(len(labels), -1)
    parts = [f"{folder}/{name}.npz" for name in ("train", "test")]
    for path, part in zip(parts, (slice(TRAINED), slice(TRAINED, None)), strict=True):
        np.savez(path, x=pictures[part], labels=labels[part])
    steps = EPOCHS * TRAINED // cases.MODELS["cnn_digits"].batch
    means = {}
    for compute in ("f32", *TYPES):
        found = []
        for seed in SEEDS:
            package = compile_model(folder, "cnn_digits", "adamw", compute,
                                    '[params]\nreinit = "*"\n', head=f"seed = {seed}\n")  # fmt: skip
            logs, _ = train(package, f"npz:{parts[0]}", steps, "--seed", seed)
            result = call("tcc-run", "eval", package, "--data", f"npz:{parts[1]}",
                          "--checkpoint-dir", logs, "--json")  # fmt: skip
            found.append(json.loads(result)["accuracy"])
        means[compute] = np.mean(found)
    print("cnn_digits: " + ", ".join(f"{k} {v:.2%}" for k, v in means.items()))
    for compute in TYPES:
        gap = abs(means[compute] - means["f32"])
        tally.check(f"accuracy in {compute}", gap <= POINTS, f"{means}")
    tally.check("accuracy", means["f32"] > 0.9, f"{means}")


def main(subjects):
    tally = Tally()
    with open(FIXTURE) as stream:
        fixture = json.load(stream)
    with tempfile.TemporaryDirectory() as folder:
        if subjects == ["long"]:
            check_curve(tally, folder, fixture["losses"])
            check_accuracy(tally, folder)
        else:
            check_keep(tally, folder)
            for model, compute in ((model, compute) for model in MODELS for compute in TYPES):
                package = compile_model(folder, model, OPTIMIZER, compute)
                check_gradients(tally, package, model, compute, fixture[model][compute])
                check_bits(tally, package, model, compute)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
