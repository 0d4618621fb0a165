"""Whole models as torch.export saves them, compared with PyTorch.

The modules of exports.py with a fixed batch and an open one.
"""

import os
import tempfile

import numpy as np
import torch
from harness import first_line, run_tool
from models import exports

TOLERANCE = ["--rtol", "0", "--atol", "1e-4"]
MAX_BATCH = 8


def save(module, inputs, path, is_open):
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = tuple({0: batch} for _ in inputs) if is_open else None
    torch.export.save(torch.export.export(module, inputs, dynamic_shapes=shapes), path)


def write_arrays(folder, kind, arrays):
    for i, array in enumerate(arrays):
        np.save(f"{folder}/{kind}_{i}.npy", array.numpy())


def check_runs(tally, name, package, module, inputs, batches):
    for batch in batches:
        feed = inputs(batch)
        with torch.no_grad():
            outputs = module(*feed)
        with tempfile.TemporaryDirectory() as data:
            write_arrays(data, "input", feed)
            write_arrays(data, "output", outputs if isinstance(outputs, tuple) else (outputs,))
            options = ["--inputs-dir", data, "--expect-dir", data, *TOLERANCE, "-q"]
            ran = run_tool("tcc-run", "run", package, *options)
        tally.check(f"{name}, batch {batch}", ran.code == 0, first_line(ran))


def check(tally, architecture, size, work):
    name, is_open = f"{architecture}.{size}", size == "dyn"
    module, inputs = exports.build(architecture)
    batches = exports.BATCHES[size]
    model, package = f"{work}/{name}.pt2", f"{work}/{name}.tcc"
    save(module, inputs(batches[0]), model, is_open)
    # The first input's first axis is the batch; images are called x.
    first = "input_ids" if len(inputs(1)[0].shape) == 2 else "x"
    flags = ["--dim", f"{first}.0=1..{MAX_BATCH}"] if is_open else []
    compiled = run_tool("tcc", model, "-q", "-o", package, *flags)
    os.remove(model)
    if tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        check_runs(tally, name, package, module, inputs, batches)
        os.remove(package)


def run(tally, names):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        for architecture in names or exports.ARCHITECTURES:
            for size in ("b1", "dyn"):
                check(tally, architecture, size, work)
