"""The same architectures as other opsets and exporters write them.

An exporter's habits must not change the result: a variant is compared with the
base, the export of exports.py, in what it computes, the kernels that a run
launches and their CPU time on one thread. A variant's model is not kept.
"""

import contextlib
import fnmatch
import json
import os
import statistics
import tempfile
import time
import warnings

import onnx
from onnx import numpy_helper

from harness import BIN, first_line, run_tool
from models import cases, exports
from spine import capi

BASE = f"opset{exports.OPSET}"
VARIANTS = {
    "opset18": (exports.export, {"opset": 18}),
    "opset23": (exports.export, {"opset": 23}),
    "opset24": (exports.export, {"opset": 24}),
    "unoptimized": (exports.export, {"optimize": False}),
    "traced13": (exports.export_traced, {"opset": 13}),
    "traced17": (exports.export_traced, {"opset": 17}),
}
KERNEL_TOLERANCE = 2
ROUNDS = 7
ROUND_SECONDS = 0.02
COLUMNS = "{:36} {:9} {:>7} {:>8} {:>5}"


def print_row(name, result, kernels="", seconds="", ratio=""):
    print(COLUMNS.format(name, result, kernels, seconds, ratio), flush=True)


class Package:
    """A compiled model."""

    def __init__(self, model, path, flags):
        self.path = path
        run = run_tool("tcc", model, "-o", self.path, "-q", *flags)
        self.seconds = run.seconds
        self.error = first_line(run) if run.code != 0 else None

    def find_mistake(self, data):
        """How the outputs for a data set differ, None if they match."""
        options = ["--inputs-dir", data, "--expect-dir", data]
        ran = run_tool("tcc-run", "run", self.path, *options)
        return first_line(ran) if ran.code != 0 else None

    def count_launches(self):
        info = json.loads(run_tool("tcc-run", "info", self.path, "--json").out)
        return next(e["commands"] for e in info["entries"] if e["name"] == "main")


def read_feed(data):
    """The inputs of a data set by name."""
    names = sorted(n for n in os.listdir(data) if n.startswith("input_"))
    tensors = [onnx.load_tensor(os.path.join(data, name)) for name in names]
    return {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}


def measure_ratio(package, base, data):
    """CPU time of a run over that of the base: the median of rounds in turns."""
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    contexts = [capi.Context(library, library.open(p.path), 1) for p in (package, base)]
    feed = read_feed(data)
    for context in contexts:
        context.run(feed, [])

    def seconds_of_run(context):
        start, runs = time.thread_time(), 0
        while runs == 0 or time.thread_time() - start < ROUND_SECONDS:
            library.call("tcc_context_run", context.handle)
            runs += 1
        return (time.thread_time() - start) / runs

    rounds = [[seconds_of_run(c) for c in contexts] for _ in range(ROUNDS)]
    return statistics.median(own / other for own, other in rounds)


def check(tally, name, model, data_sets, flags, work, base=None):
    """Compiles, compares, prints the row; gives the package."""
    package = Package(model, os.path.join(work, name + ".tcc"), flags)
    if not tally.check(f"{name} compiles", not package.error, package.error):
        print_row(name, "error")
        return package
    mistakes = [package.find_mistake(data) for data in data_sets]
    for data, mistake in zip(data_sets, mistakes):
        tally.check(f"{name} {os.path.basename(data)}", not mistake, mistake)
    launches, ratio = package.count_launches(), 1.0
    if base and not base.error:
        ratio = measure_ratio(package, base, data_sets[0])
        more = launches - base.count_launches()
        tally.check(f"{name} kernels", abs(more) <= KERNEL_TOLERANCE, f"{more:+}")
    result = "differs" if any(mistakes) else "match"
    print_row(name, result, launches, f"{package.seconds:.1f} s", f"{ratio:.2f}")
    return package


@contextlib.contextmanager
def silence():
    """Exporters print much, also from C++."""
    kept = [os.dup(stream) for stream in (1, 2)]
    with open(os.devnull, "w") as sink, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for stream in (1, 2):
            os.dup2(sink.fileno(), stream)
        try:
            yield
        finally:
            for stream, old in zip((1, 2), kept):
                os.dup2(old, stream)
                os.close(old)


def export(name, variant, module, inputs, path):
    """Writes the model; gives the exporter's refusal or None."""
    architecture, size = name.split(".")
    exporter, options = VARIANTS[variant]
    batch = exports.BATCHES[size][0]
    try:
        with silence():
            exporter(architecture, module, inputs(batch), path, size == "dyn", **options)
    except Exception as error:  # whatever a tracer meets
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return None


def check_variants(tally, name, case, variants, flags, work):
    """The rows of one architecture at one size."""
    with silence():
        folder = exports.make(name, case)
    data_sets = cases.data_sets(folder)
    model = os.path.join(folder, "model.onnx")
    base = check(tally, f"{name}.{BASE}", model, data_sets, flags, work)
    with silence():
        module, inputs = exports.build(name.split(".")[0])
    for variant in variants:
        label = f"{name}.{variant}"
        with tempfile.TemporaryDirectory(dir=work) as place:
            model = os.path.join(place, "model.onnx")
            refusal = export(name, variant, module, inputs, model)
            if refusal:
                tally.skipped += 1
                print_row(label, "no export")
                print(f"  {refusal}", flush=True)
                continue
            check(tally, label, model, data_sets, flags, place, base)


def run(tally, patterns, flags_of):
    """All rows whose names match: MODEL.SIZE.VARIANT, with * and ?."""
    print_row("variant", "result", "kernels", "compiled", "time")
    for name, case in exports.models().items():
        wanted = [
            variant
            for variant in VARIANTS
            if not patterns
            or any(fnmatch.fnmatch(f"{name}.{variant}", p) for p in patterns)
        ]
        if wanted:
            with tempfile.TemporaryDirectory() as work:
                check_variants(tally, name, case, wanted, flags_of(case), work)
