"""What the benchmark of training steps trains, for all engines alike."""

import collections
import json
import os

import numpy as np
from training import cases

BATCHES = 4  # different ones, over and over
PIXELS = 3, 224, 224
CLASSES = 1000

# `optimizer` and `loss` are tables of a recipe; `batch` makes inputs and targets;
# `tolerance` is that of the first losses.
Workload = collections.namedtuple(
    "Workload", "optimizer loss batch tolerance", defaults=[1e-3]
)


def digits(random):
    data = np.load(os.path.join(cases.FIXTURES, "digits.npz"))
    chosen = random.permutation(len(data["x"]))[:128]
    return data["x"][chosen], data["labels"][chosen]


def pictures(random):
    pixels = random.standard_normal((16, *PIXELS), np.float32)
    return pixels, random.integers(0, CLASSES, 16)


def text(random):
    data = np.load(os.path.join(cases.FIXTURES, "text.npz"))["x"].ravel()
    starts = random.integers(0, len(data) - 128, 8)
    return next_tokens(np.stack([data[i : i + 129] for i in starts]))


def random_tokens(random):
    return next_tokens(random.integers(0, 50257, (2, 257)))


def next_tokens(rows):
    return rows[:, :-1].copy(), rows[:, 1:].copy()


CLASSIFIER = {"kind": "cross_entropy"}
LANGUAGE_MODEL = {"kind": "causal_lm", "shift": False}


def adamw(lr, **keys):
    return {"kind": "adamw", "lr": lr, **keys}


def sgd(lr, **keys):
    return {"kind": "sgd", "lr": lr, "momentum": 0.9, **keys}


# After 8 steps of resnet18 PyTorch in f32 is 1.4e-3 off from itself in f64.
LOOSE = 5e-3
LOOSE_NARROW = 3e-2  # of losses in bf16
DECAY = {"betas": [0.9, 0.95], "weight_decay": 0.1}
WORKLOADS = {
    "mlp_digits": Workload(sgd(0.1), CLASSIFIER, digits),
    "cnn_digits": Workload(adamw(1e-3), CLASSIFIER, digits),
    "gpt2_tiny": Workload(adamw(3e-4, **DECAY), LANGUAGE_MODEL, text),
    "resnet18": Workload(sgd(0.01, weight_decay=1e-4), CLASSIFIER, pictures, LOOSE),
    "gpt2": Workload(adamw(1e-4, **DECAY), LANGUAGE_MODEL, random_tokens),
}


def tolerance(name, precision):
    return WORKLOADS[name].tolerance if precision == "f32" else LOOSE_NARROW


def batches(name):
    """(inputs, targets) of each batch, the same in every process."""
    random = np.random.default_rng(0)
    return [WORKLOADS[name].batch(random) for _ in range(BATCHES)]


def recipe(name, precision="f32"):
    workload = WORKLOADS[name]
    return toml(
        {
            "loss": workload.loss,
            "optimizer": workload.optimizer,
            "precision": {"compute": precision},
        }
    )


def toml(tables):
    lines = []
    for table, keys in tables.items():
        lines.append(f"[{table}]")
        lines += [f"{key} = {json.dumps(value)}" for key, value in keys.items()]
    return "\n".join(lines) + "\n"
