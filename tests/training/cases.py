"""The runs that are compared with PyTorch: recipes, settings, what is kept.

A case is a model, an optimizer, a schedule, a clip and a number of batches an
update. The optimizer is compiled in, the rest is set at run time.
"""

import collections
import glob
import itertools
import os

import numpy as np

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
SAMPLES = 64
PART_BYTES = 56 << 10

OPTIMIZERS = {
    "sgd": {"kind": "sgd", "lr": 0.1, "weight_decay": 0.01},
    "momentum": {"kind": "sgd", "lr": 0.05, "momentum": 0.9},
    "nesterov": {"kind": "sgd", "lr": 0.05, "momentum": 0.8, "nesterov": True},
    "adam": {"kind": "adam", "lr": 0.004, "weight_decay": 0.01},
    "adamw": {"kind": "adamw", "lr": 0.004, "betas": [0.9, 0.95]},
    "lion": {"kind": "lion", "lr": 0.0008, "weight_decay": 0.1},
}
SCHEDULES = ("constant", "one_cycle", "cosine", "linear", "step")
CLIPS = {
    "free": {},
    "norm": {"clip_norm": 0.5},
    "value": {"clip_value": 0.02},
    "both": {"clip_norm": 0.7, "clip_value": 0.03},
}

Case = collections.namedtuple("Case", "model optimizer schedule clip accumulate")
# Batches of `batch` samples in order, over and over.
Model = collections.namedtuple("Model", "batch batches loss data")
MODELS = {
    "mlp_digits": Model(16, 100, "cross_entropy", "digits"),
    "cnn_digits": Model(16, 100, "cross_entropy", "digits"),
    "bn_digits": Model(16, 100, "cross_entropy", "digits"),
    "gn_digits": Model(16, 100, "cross_entropy", "digits"),
    "gpt2_tiny": Model(4, 20, "causal_lm", "text"),
}
# Those that torch.export and torch.jit have saved, too.
PROGRAMS = ("cnn_digits", "bn_digits", "gpt2_tiny")
TIED = {"gpt2_tiny": ("model.lm_head.weight", "model.transformer.wte.weight")}


def save(model, arrays):
    """Writes a model's arrays to files of at most PART_BYTES each."""
    for path in glob.glob(f"{FIXTURES}/{model}.*.npz"):
        os.remove(path)
    parts, size = [{}], 0
    for key, array in arrays.items():
        if size + array.nbytes > PART_BYTES:
            parts.append({})
            size = 0
        parts[-1][key] = array
        size += array.nbytes
    for number, part in enumerate(parts):
        np.savez_compressed(f"{FIXTURES}/{model}.{number}.npz", **part)


def load(model):
    """The arrays that `save` wrote."""
    arrays = {}
    for path in glob.glob(f"{FIXTURES}/{model}.*.npz"):
        arrays |= np.load(path)
    return arrays


def cases():
    """All cases of the fixtures."""
    matrix = itertools.product(OPTIMIZERS, SCHEDULES, CLIPS, (1, 4))
    for optimizer, schedule, clip, accumulate in matrix:
        yield Case("mlp_digits", optimizer, schedule, clip, accumulate)
    for model, optimizer in itertools.product(("cnn_digits", "bn_digits"), OPTIMIZERS):
        yield Case(model, optimizer, "constant", "free", 1)
    yield Case("gn_digits", "adamw", "constant", "free", 1)
    yield Case("gpt2_tiny", "adamw", "one_cycle", "norm", 1)


def single(model):
    """The case that is run in f32, too: its slots are the first gradients."""
    return Case(model, "momentum", "constant", "free", 1)


def name_of(case):
    return "-".join(map(str, case[1:]))


def steps_of(case):
    return MODELS[case.model].batches // case.accumulate


def schedule_keys(case):
    """The keys of [schedule] but for the kind."""
    lr, steps = OPTIMIZERS[case.optimizer]["lr"], steps_of(case)
    return {
        "constant": {},
        "one_cycle": {"total_steps": steps, "max_lr": 2 * lr},
        "cosine": {"total_steps": steps, "warmup_steps": 5, "eta_min": lr / 9},
        "linear": {"total_steps": steps, "eta_min": lr / 7},
        "step": {"step_size": 9, "gamma": 0.7, "warmup_steps": 3},
    }[case.schedule]


def settings(case):
    """KEY=VALUE for --set."""
    values = {"schedule.kind": case.schedule}
    values |= {f"schedule.{k}": v for k, v in schedule_keys(case).items()}
    values |= CLIPS[case.clip] | {"accumulate": case.accumulate}
    return [f"{key}={value}" for key, value in values.items()]


def recipe(model, optimizer, compute):
    lines = ["[loss]", f'kind = "{MODELS[model].loss}"', "[optimizer]"]
    for key, value in OPTIMIZERS[optimizer].items():
        text = str(value).lower() if isinstance(value, bool) else value
        lines.append(f'{key} = "{text}"' if isinstance(value, str) else f"{key} = {text}")
    return "\n".join([*lines, "[precision]", f'compute = "{compute}"\n'])


def sample(tensor):
    """What is kept of a tensor: its norm and some elements."""
    flat = np.asarray(tensor, np.float64).reshape(-1)
    places = np.linspace(0, flat.size - 1, min(SAMPLES, flat.size)).astype(int)
    return np.concatenate([[np.linalg.norm(flat)], flat[places]])


def summary(losses, tensors):
    """The losses, then samples of the tensors of floats in order of their names."""
    floats = sorted(name for name, x in tensors.items() if x.dtype.kind == "f")
    return [np.asarray(losses)] + [sample(tensors[name]) for name in floats]
