"""The same package from the same model, the same bits from each run.

A package is compiled again with one job from another folder; runs take 1, 2 and
4 threads, RUNS times in all, each in a context of its own.
"""

import glob
import os
import shutil

import onnx
from onnx import numpy_helper

from harness import BIN, first_line, run_tool
from spine import capi

MODELS = ("ocr_cls", "magika")
RUNS = 100
THREADS = (1, 2, 4)


def contents(path):
    with open(path, "rb") as stream:
        return stream.read()


def check_package(tally, name, package, flags, folder, work):
    place = os.path.join(work, name)
    shutil.copytree(folder, place)
    model, again = (os.path.join(place, n) for n in ("model.onnx", "m.tcc"))
    run = run_tool("tcc", model, "-q", "-j", 1, "-o", again, *flags, cwd=place)
    if tally.check(f"{name} -j 1", run.code == 0, first_line(run)):
        same = contents(package) == contents(again)
        tally.check(f"{name}: same package", same, "bytes differ")


def check_runs(tally, name, package, folder):
    model = onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False)
    tensors = map(onnx.load_tensor, glob.glob(folder + "/test_data_set_0/input_*"))
    feed = {tensor.name: numpy_helper.to_array(tensor) for tensor in tensors}
    outputs = [output.name for output in model.graph.output]
    library = capi.Library(os.path.join(BIN, "../runtime/libtcc_runtime.so"))
    program = library.open(package)
    first, different = None, []
    for i in range(RUNS):
        threads = THREADS[i % len(THREADS)]
        values = capi.Context(library, program, threads).run(feed, outputs)
        result = [value.tobytes() for value in values]
        first = first or result
        if result != first:
            different.append(f"run {i} with {threads} threads")
    tally.check(f"{name}: same bits", not different, f"not in {different[:3]}")
