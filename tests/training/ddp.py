"""Two ranks beside PyTorch's DistributedDataParallel: ddp.py (needs torch, transformers)

Both train the same module on the same batches over Gloo, in f32 and in f64. In f64 they
agree; in f32 two ranks of tcc are not further from PyTorch in f64 than PyTorch in f32 is.
"""

import collections
import os
import subprocess
import sys
import tempfile
import warnings

import numpy as np
import torch
from harness import Tally, call
from processes import find_free_port
from torch import nn
from training import cases

WORLD, STEPS = 2, 50
NOISE = 1.25  # what the order of sums may add to a distance

OPTIMIZERS = {
    "sgd": (torch.optim.SGD, {"lr": 0.05, "momentum": 0.9}),
    "adamw": (torch.optim.AdamW, {"lr": 0.004, "weight_decay": 0.1}),
}


def mlp():
    return nn.Sequential(nn.Linear(64, 96), nn.ReLU(), nn.Linear(96, 10))


def cnn():
    return nn.Sequential(
        nn.Unflatten(1, (1, 8, 8)),
        nn.Conv2d(1, 8, 3, padding=1),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(128, 10),
    )


def gpt2_tiny():
    from training import make_parity_fixtures as fixtures

    return fixtures.GPT(*fixtures.GPTS["gpt2_tiny"])


def cross_entropy(logits, labels):
    return nn.functional.cross_entropy(logits, labels)


def causal_lm(logits, labels):
    return cross_entropy(logits[:, :-1].flatten(0, 1), labels[:, 1:].flatten())


# `agreement` is that in f64: AdamW divides by roots of gradients, of which some are noise.
Subject = collections.namedtuple("Subject", "make data batch loss optimizer agreement")
SUBJECTS = {
    "mlp": Subject(mlp, "digits", 16, cross_entropy, "adamw", 1e-10),
    "cnn": Subject(cnn, "digits", 16, cross_entropy, "sgd", 1e-10),
    "gpt2_tiny": Subject(gpt2_tiny, "text", 4, causal_lm, "adamw", 1e-8),
}
DTYPES = {"f32": torch.float32, "f64": torch.float64}


def build(subject):
    torch.manual_seed(3)
    return subject.make()


def find_data(subject):
    return os.path.join(cases.FIXTURES, subject.data + ".npz")


def read_batch(data, number, size):
    """Without shuffling, and what is left at the end of an epoch dropped."""
    first = number % (len(data["x"]) // size) * size
    chosen = slice(first, first + size)
    return data["x"][chosen], data["labels"][chosen]


def work(name, dtype, rank, port, out):
    """One rank of PyTorch's."""
    torch.set_num_threads(1)
    place = f"tcp://127.0.0.1:{port}"
    torch.distributed.init_process_group(
        "gloo", init_method=place, rank=rank, world_size=WORLD
    )
    subject = SUBJECTS[name]
    module = nn.parallel.DistributedDataParallel(build(subject).to(DTYPES[dtype]))
    make, options = OPTIMIZERS[subject.optimizer]
    optimizer = make(module.parameters(), **options)
    data = np.load(find_data(subject))
    for step in range(STEPS):
        batch = read_batch(data, step * WORLD + rank, subject.batch)
        x, labels = map(torch.from_numpy, batch)
        optimizer.zero_grad()
        y = module(x.to(DTYPES[dtype]) if x.is_floating_point() else x)
        subject.loss(y, labels).backward()
        optimizer.step()
    if rank == 0:
        np.savez(out, **{n: p.detach().numpy() for n, p in module.module.named_parameters()})
    torch.distributed.barrier()
    # torch's threads may outlive the interpreter, which then ends the process by SIGABRT.
    os._exit(0)


def train_torch(name, dtype, folder):
    port = find_free_port()
    out = f"{folder}/torch-{dtype}.npz"
    command = [sys.executable, __file__, name, dtype]
    ranks = [
        subprocess.Popen([*command, str(rank), str(port), out]) for rank in range(WORLD)
    ]
    if any([rank.wait(timeout=300) for rank in ranks]):
        raise RuntimeError(f"{name} {dtype}: a rank of torch failed")
    # The exporter keeps the other name of the tied tensor.
    return {key.replace("transformer.wte", "lm_head"): x for key, x in np.load(out).items()}


def train_tcc(subject, dtype, folder):
    kind, loss = subject.optimizer, subject.loss.__name__
    options = "\n".join(f"{key} = {value}" for key, value in OPTIMIZERS[kind][1].items())
    with open(f"{folder}/recipe.toml", "w", encoding="utf-8") as stream:
        stream.write(f'[loss]\nkind = "{loss}"\n[precision]\ncompute = "{dtype}"\n')
        stream.write(f'[parallel]\nbucket = "8KiB"\n[optimizer]\nkind = "{kind}"\n{options}\n')
    package, out = f"{folder}/{dtype}.tcc", f"{folder}/{dtype}.safetensors"
    call("tcc", f"{folder}/{dtype}.onnx", f"--train={folder}/recipe.toml", "-q", "-o", package)
    call("tcc-run", "train", package, "--data", "npz:" + find_data(subject), "--ranks", WORLD,
         "--threads", 1, "--steps", STEPS, "--no-shuffle", "--export", out, "-q")  # fmt: skip
    from safetensors.numpy import load_file

    return load_file(out)


def export(subject, dtype, folder):
    """In its type: constants of a module in f32 are rounded, those of torch in f64 are not."""
    example = np.load(find_data(subject))["x"][: subject.batch]
    x = torch.from_numpy(example)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        program = torch.onnx.export(
            build(subject).to(DTYPES[dtype]).eval(),
            (x.to(DTYPES[dtype]) if x.is_floating_point() else x,), input_names=["x"],
            optimize=False, verbose=False,
        )  # fmt: skip
    program.save(f"{folder}/{dtype}.onnx")


def distance(tensors, expected):
    """Of all tensors together."""
    pairs = [(tensors[name].astype("f8"), value) for name, value in expected.items()]
    off = sum(np.sum((ours - theirs) ** 2) for ours, theirs in pairs)
    return np.sqrt(off / sum(np.sum(theirs**2) for _, theirs in pairs))


def main():
    tally = Tally()
    for name, subject in SUBJECTS.items():
        with tempfile.TemporaryDirectory() as folder:
            for dtype in DTYPES:
                export(subject, dtype, folder)
            exact = train_torch(name, "f64", folder)
            off = distance(train_tcc(subject, "f64", folder), exact)
            tally.check(f"{name}: f64", off <= subject.agreement, f"{off:.1e}")
            ours = distance(train_tcc(subject, "f32", folder), exact)
            theirs = distance(train_torch(name, "f32", folder), exact)
            ok = ours <= NOISE * theirs
            tally.check(f"{name}: f32", ok, f"tcc {ours:.2e}, torch {theirs:.2e}")
            print(f"{name}: from f64, tcc {off:.1e} in f64; in f32 {ours:.2e}, torch {theirs:.2e}")
    tally.close()


if len(sys.argv) > 1:
    work(*sys.argv[1:3], *map(int, sys.argv[3:5]), sys.argv[5])
else:
    main()
