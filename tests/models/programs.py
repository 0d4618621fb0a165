"""Whole models as PyTorch saves them, compared with PyTorch and with their ONNX files.

The modules of exports.py: what torch.export saves, of a fixed batch and an open one,
and TorchScript, traced, scripted and frozen. Packages of a fixed batch have the kernels
of the ONNX file's package: launch by launch the same flops and bytes.
"""

import inspect
import os
import tempfile

import numpy as np
import torch
from frontends.archives.run import get_entry, get_work
from harness import call, first_line, run_tool
from models import exports

TOLERANCE = 1e-4  # of the largest element
MAX_BATCH = 8
FORMS = ("pt2", "pt2.dyn", "traced", "scripted", "frozen")
# torch.jit.script does not take modules of transformers: 'Failed to get source for
# <function GPT2Config.__init__ ...> using inspect.getsource'. They are frozen as traced.
UNSCRIPTABLE = (exports.Bert, exports.LanguageModel)


def save_program(module, inputs, path, is_open):
    batch = torch.export.Dim("batch", min=1, max=64)
    shapes = tuple({0: batch} for _ in inputs) if is_open else None
    torch.export.save(torch.export.export(module, inputs, dynamic_shapes=shapes), path)


def save_script(module, inputs, path, form):
    if form == "traced" or isinstance(module, UNSCRIPTABLE):
        script = torch.jit.trace(module, inputs, check_trace=False)
    else:
        script = torch.jit.script(module)
    if form == "frozen":
        script = torch.jit.freeze(script)
    torch.jit.save(script, path)


def save(module, inputs, path, form):
    """The flags that compile it."""
    names = inspect.signature(module.forward).parameters
    with torch.no_grad():
        if form.startswith("pt2"):
            save_program(module, inputs, path, form == "pt2.dyn")
        else:
            save_script(module, inputs, path, form)
    if form == "pt2.dyn":
        return ["--dim", f"{next(iter(names))}.0=1..{MAX_BATCH}"]
    if form in ("scripted", "frozen"):
        shapes = ("x".join(map(str, x.shape)) for x in inputs)
        return [f"--input-shape={name}={shape}" for name, shape in zip(names, shapes)]
    return []


def distance(module, inputs, package, entry):
    """The largest difference from PyTorch's outputs, of their largest elements."""
    with torch.no_grad():
        expected = module(*inputs)
    expected = expected if isinstance(expected, tuple) else (expected,)
    dtypes = {"f32": np.float32, "i64": np.int64}
    with tempfile.TemporaryDirectory() as folder:
        for i, (x, declared) in enumerate(zip(inputs, entry["inputs"])):
            np.save(f"{folder}/input_{i}.npy", x.numpy().astype(dtypes[declared["dtype"]]))
        flags = ["--inputs-dir", folder, "--output-dir", folder, "-q"]
        call("tcc-run", "run", package, *flags)
        actual = [np.load(f"{folder}/output_{i}.npy") for i in range(len(expected))]
    pairs = [(x, y.numpy()) for x, y in zip(actual, expected)]
    return max(np.abs(x - y).max() / np.abs(y).max() for x, y in pairs)


def compile_model(tally, name, model, package, flags=()):
    compiled = run_tool("tcc", model, "-q", "-o", package, *flags, timeout=1200)
    return tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled))


def check_kernels(tally, name, package, usual):
    """Those of the ONNX file's package, where the inputs have the same types."""
    types, usual_types = (
        [each["dtype"] for each in get_entry(path)["inputs"]] for path in (package, usual)
    )
    if types != usual_types:
        return
    work, usual_work = get_work(package), get_work(usual)
    pairs = zip(work, usual_work)
    more = [(a[0] - b[0], a[1] - b[1]) for a, b in pairs if a != b]
    same = work == usual_work
    tally.check(f"{name} kernels", same, f"(flops, bytes) beside the ONNX file's: {more}")


def check_form(tally, architecture, form, work, usual):
    name = f"{architecture}.{form}"
    module, inputs = exports.build(architecture)
    if form == "scripted" and isinstance(module, UNSCRIPTABLE):
        return
    is_open = form == "pt2.dyn"
    batches = exports.BATCHES["dyn" if is_open else "b1"]
    model, package = f"{work}/m.pt2", f"{work}/m.tcc"
    flags = save(module, inputs(batches[0]), model, form)
    is_compiled = compile_model(tally, name, model, package, flags)
    os.remove(model)
    if not is_compiled:
        return
    entry = get_entry(package)
    errors = [distance(module, inputs(batch), package, entry) for batch in batches]
    print(f"{name}: {entry['launches']} launches, {max(errors):.1e}", flush=True)
    tally.check(name, max(errors) <= TOLERANCE, f"differs by {max(errors):.1e}")
    if not is_open:
        check_kernels(tally, name, package, usual)
    os.remove(package)


def check(tally, architecture, work):
    model = os.path.join(exports.make(f"{architecture}.b1", {}), "model.onnx")
    package = f"{work}/onnx.tcc"
    if not compile_model(tally, f"{architecture}.onnx", model, package):
        return
    for form in FORMS:
        check_form(tally, architecture, form, work, package)


def run(tally, names):
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as work:
        for architecture in names or exports.ARCHITECTURES:
            check(tally, architecture, work)
