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
TAKEN = 48  # samples of 6 updates


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


def shuffle(count, seed, epoch):
    """The first version of the order of samples, which tcc-run has no more: Fisher-Yates by
    SplitMix64."""
    words = 2**64 - 1

    def draw():
        nonlocal state
        state = state + 0x9E3779B97F4A7C15 & words
        word = (state ^ state >> 30) * 0xBF58476D1CE4E5B9 & words
        word = (word ^ word >> 27) * 0x94D049BB133111EB & words
        return word ^ word >> 31

    state = seed
    state = draw() ^ epoch
    order = list(range(count))
    for i in range(count - 1, 0, -1):
        j = draw() * (i + 1) >> 64
        order[i], order[j] = order[j], order[i]
    return order


def lay_out(name, path, seed):
    """The samples of make.py's run as they lie in the order in which it took them: for
    version 2.0 it shuffled them."""
    kept = f"{FOLDER}/{name}-data.npz"
    if not name.startswith("2.0-"):
        shutil.copy(kept, path)
        return
    data = np.load(kept)
    count = len(data["labels"])
    order = [sample for epoch in range(2) for sample in shuffle(count, seed, epoch)]
    np.savez(path, **{key: data[key][order[:TAKEN]] for key in data})


def train(data, package, run, *flags):
    return run_tool("tcc-run", "train", package, "--data", f"npz:{data}", "--set", "accumulate=2",
                    "--checkpoint-dir", run, "-q", *flags)  # fmt: skip


def check_training(tally, name, package, folder):
    """As make.py trained it, but in two runs: the first one ends after two updates, or has left
    a checkpoint of an older version. --steps counts from the first update."""
    expected = load_file(f"{FOLDER}/{name}.safetensors")
    data = f"{folder}/data.npz"
    lay_out(name, data, int(expected["step/seed"].item()))
    first = train(data, package, f"{folder}/run", "--steps", 2, "--no-shuffle")
    tally.check(name, first.code == 0, first_line(first))
    older = glob.glob(f"{FOLDER}/{name}-checkpoint-*")
    for checkpoint in older:
        copy = f"{folder}/{os.path.basename(checkpoint)}"
        shutil.copytree(checkpoint, f"{copy}/step-2")
        shuffled = train(data, package, copy, "--steps", 6, "--resume")
        ok = shuffled.code == 2 and "order 1 of shuffled samples" in shuffled.err
        tally.check(f"{name}, shuffled otherwise", ok, first_line(shuffled))
    for run in ("run", *map(os.path.basename, older)):
        second = train(data, package, f"{folder}/{run}", "--steps", 6, "--resume",
                       "--no-shuffle")  # fmt: skip
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
