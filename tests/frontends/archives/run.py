"""Archives of PyTorch, compiled and run: run.py [NAME...]

Each fixture's outputs are PyTorch's (make.py). Models that are also there as ONNX
files have the same kernels: launch by launch the same flops and bytes.
"""

import glob
import json
import os
import sys
import tempfile

import numpy as np
from harness import BIN, Tally, call, first_line, run_tool
from spine import capi
from training import cases

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
LIBRARY = os.path.join(BIN, "../runtime/libtcc_runtime.so")
# Of the largest element, as whole models are compared.
TOLERANCE = ["--rtol", "0", "--atol", "1e-5"]
# Loops amplify rounding.
SEQUENCE_TOLERANCE = 1e-4


def get_entry(package):
    return json.loads(call("tcc-run", "info", package, "--json"))["entries"][0]


def get_work(package):
    """Flops and bytes of each launch."""
    return [(each["flops"], each["bytes"]) for each in get_entry(package)["launch_list"]]


def check_kernels(tally, model, folder):
    works = []
    for suffix in ("onnx", "pt2", "pt"):
        package = f"{folder}/m.tcc"
        call("tcc", f"{cases.FIXTURES}/{model}.{suffix}", "-q", "-o", package)
        works.append(get_work(package))
        message = f"{len(works[-1])} launches, not those of the ONNX file"
        tally.check(f"{model}.{suffix} kernels", works[-1] == works[0], message)


def check_sequence(tally, name, package, kept):
    """Calls one after the other in one context, which keeps states."""
    library = capi.Library(LIBRARY)
    context = capi.Context(library, library.open(package))
    names = [output["name"] for output in get_entry(package)["outputs"]]
    names = [name for name in names if not name.endswith(".next")]
    worst = 0
    for step, x in enumerate(kept["inputs"]):
        results = context.run({"x": x}, names)
        for i, result in enumerate(results):
            expected = kept[f"outputs_{i}"][step]
            worst = max(worst, np.abs(result - expected).max() / np.abs(expected).max())
    tally.check(name, worst <= SEQUENCE_TOLERANCE, f"differs by {worst:.1e}")


def check(tally, path, folder):
    name = os.path.basename(path)
    kept = np.load(os.path.join(FIXTURES, name.split(".")[0] + ".npz"))
    package = f"{folder}/m.tcc"
    compiled = run_tool("tcc", path, "-q", "-o", package, *kept["flags"])
    if not tally.check(f"{name} compiles", compiled.code == 0, compiled.err):
        return
    if ".sequence." in name:
        return check_sequence(tally, name, package, kept)
    for key, array in kept.items():
        np.save(f"{folder}/{key}.npy", array)
    options = ["--inputs-dir", folder, "--expect-dir", folder, *TOLERANCE]
    ran = run_tool("tcc-run", "run", package, *options)
    tally.check(name, ran.code == 0, first_line(ran))


def main(names):
    tally = Tally()
    for path in sorted(glob.glob(f"{FIXTURES}/*.pt*")):
        if names and os.path.basename(path).split(".")[0] not in names:
            continue
        with tempfile.TemporaryDirectory() as folder:
            check(tally, path, folder)
    for model in () if names else cases.PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            check_kernels(tally, model, folder)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
