"""Archives of PyTorch, compiled and run: run.py [NAME...]

Each fixture's outputs are PyTorch's (make.py).
"""

import glob
import os
import sys
import tempfile

import numpy as np
from harness import Tally, first_line, run_tool

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
# Of the largest element, as whole models are compared.
TOLERANCE = ["--rtol", "0", "--atol", "1e-5"]


def check(tally, path, folder):
    name = os.path.basename(path)
    for key, array in np.load(os.path.splitext(path)[0] + ".npz").items():
        np.save(f"{folder}/{key}.npy", array)
    package = f"{folder}/m.tcc"
    compiled = run_tool("tcc", path, "-q", "-o", package)
    if not tally.check(f"{name} compiles", compiled.code == 0, compiled.err):
        return
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
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
