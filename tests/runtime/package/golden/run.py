"""Packages of each version of the format still give the bits that they gave.

  run.py                with $TCC_BIN; make.py made what is here

Those of a version that is no longer read are refused by name.
"""

import glob
import gzip
import os
import shutil
import tempfile

import numpy as np
from harness import Tally, first_line, run_tool
from safetensors.numpy import load_file

FOLDER = os.path.dirname(os.path.abspath(__file__))
REFUSED = ("1.0",)


def unpack(folder, file):
    path = os.path.join(folder, os.path.basename(file)[: -len(".gz")])
    with gzip.open(file) as stream, open(path, "wb") as to:
        to.write(stream.read())
    return path


def same_bits(found, expected):
    return found.dtype == expected.dtype and found.tobytes() == expected.tobytes()


def check_inference(tally, name, package, folder):
    expected = np.load(f"{FOLDER}/{name}.npz")
    np.savez(f"{folder}/in.npz", x=expected["x"])
    for threads in (1, 2):
        run = run_tool("tcc-run", "run", package, "--input", f"x={folder}/in.npz",
                       "--output-dir", f"{folder}/out", "--threads", threads)  # fmt: skip
        if not tally.check(name, run.code == 0, first_line(run)):
            return
        found = np.load(f"{folder}/out/output_0.npy")
        tally.check(f"{name} bits", same_bits(found, expected["shares"]), str(found))


def train(name, package, run, *flags):
    return run_tool("tcc-run", "train", package, "--data", f"npz:{FOLDER}/{name}-data.npz",
                    "--set", "accumulate=2", "--checkpoint-dir", run, "-q", *flags)  # fmt: skip


def check_training(tally, name, package, folder):
    """As make.py trained it, but in two runs: the first one ends after two updates, or has left
    a checkpoint of an older version. --steps counts from the first update."""
    expected = load_file(f"{FOLDER}/{name}.safetensors")
    first = train(name, package, f"{folder}/run", "--steps", 2)
    tally.check(name, first.code == 0, first_line(first))
    older = glob.glob(f"{FOLDER}/{name}-checkpoint-*")
    for checkpoint in older:
        copy = f"{folder}/{os.path.basename(checkpoint)}"
        shutil.copytree(checkpoint, f"{copy}/step-2")
    for run in ("run", *map(os.path.basename, older)):
        second = train(name, package, f"{folder}/{run}", "--steps", 6, "--resume")
        if not tally.check(f"{name} {run}", second.code == 0, first_line(second)):
            continue
        found = load_file(f"{folder}/{run}/step-6/state.safetensors")
        wrong = [k for k, v in expected.items() if k not in found or not same_bits(found[k], v)]
        tally.check(f"{name} {run} bits", not wrong, f"{wrong} differ")


def check(tally, file, folder):
    name = os.path.basename(file)[: -len(".tcc.gz")]
    package = unpack(folder, file)
    version = name.split("-")[0]
    if version in REFUSED:
        run = run_tool("tcc-run", "info", package)
        says = f"format version {version} is not readable"
        ok = run.code == 3 and run.err.count("\n") == 1 and says in run.err
        tally.check(f"{name} is refused", ok, first_line(run))
    elif name.endswith("-training"):
        check_training(tally, name, package, folder)
    else:
        check_inference(tally, name, package, folder)


def main():
    tally = Tally()
    for file in sorted(glob.glob(f"{FOLDER}/*.tcc.gz")):
        with tempfile.TemporaryDirectory() as folder:
            check(tally, file, folder)
    tally.close()


if __name__ == "__main__":
    main()
