"""Truncated and bit-flipped models and packages.

  malformed.py [--count N]    N of each of the six kinds, seeded

Whatever the bytes are, a tool ends with a documented exit code; when that is
not 0, it says why in plain lines and leaves no file. A damaged package is either
refused or gives the very outputs of the whole one.
"""

import argparse
import concurrent.futures
import functools
import os
import random
import tempfile

from harness import Tally, first_line, run_tool
from spine import spine_model

JOBS = 2
SEED = 20
INPUTS = ["--random-inputs", "--dim", "batch=2"]
# What makes a package for a device, by its name.
DEVICES = {"cpu": [], "emulated": ["--target=cuda", "--arch=none", "--emulate"]}
# Every exit that bad model bytes may end in: a flip can also leave a valid
# model, one with an unknown op or shape, or one that names another file.
MODEL_CODES = {0, 2, 3, 4, 5, 7}
PACKAGE_CODES = {0, 3}
CRASH_SIGNS = ("Assertion", "Stack dump", "LLVM ERROR", "Sanitizer")


def truncated(data, generator):
    return data[: generator.randrange(len(data))]


def flipped(data, generator):
    changed = bytearray(data)
    for _ in range(generator.choice((1, 1, 1, 4))):
        changed[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
    return bytes(changed)


def complaint(run, codes):
    """What is wrong with how a tool ended, or None."""
    if run.code not in codes:
        return first_line(run)
    if run.code == 0:
        return None
    if not run.err.strip() or any(sign in run.err for sign in CRASH_SIGNS):
        return f"exit {run.code} without a plain message: {run.err[:200]!r}"
    return None


def check_model(data, folder, codes=MODEL_CODES, name="model.onnx", flags=(), compiles=True):
    """Compiles the bytes alone in `folder`, or only imports them."""
    model = os.path.join(folder, name)
    with open(model, "wb") as stream:
        stream.write(data)
    if compiles:
        run = run_tool("tcc", model, "-q", "-o", os.path.join(folder, "out.tcc"), *flags)
    else:
        run = run_tool("tcc-import", model, "--quiet", *flags)
    left = sorted(os.listdir(folder))
    expected = [name, "out.tcc"] if compiles and run.code == 0 else [name]
    return complaint(run, codes) or (
        None if left == expected else f"exit {run.code} left {left}"
    )


def check_package(data, folder, whole, device):
    """Runs the bytes as a package; `whole` has the undamaged one's outputs."""
    package = os.path.join(folder, "model.tcc")
    with open(package, "wb") as stream:
        stream.write(data)
    exact = ["--expect-dir", whole, "--rtol", "0", "--atol", "0"]
    run = run_tool("tcc-run", "run", package, "--device", device, *INPUTS, *exact)
    return complaint(run, PACKAGE_CODES)


def check_all(tally, name, check, mutations):
    def check_one(numbered):
        number, data = numbered
        with tempfile.TemporaryDirectory() as folder:
            return number, check(data, folder)

    with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
        for number, message in pool.map(check_one, enumerate(mutations)):
            tally.check(f"{name} {number}", message is None, message)


def mutations(data, mutate, count):
    generator = random.Random(SEED)
    return (mutate(data, generator) for _ in range(count))


def make_package(tally, model, device, work):
    """The bytes of the model's package, and the folder of its outputs."""
    package = os.path.join(work, f"{device}.tcc")
    outputs = os.path.join(work, f"{device}-outputs")
    options = ["--dim", "batch=1..8", "-q", "-o", package]
    inputs = ["--device", device, *INPUTS]
    for run in (
        run_tool("tcc", model, *options, *DEVICES[device]),
        run_tool("tcc-run", "run", package, *inputs, "--output-dir", outputs),
    ):
        if not tally.check(f"the whole model, {device}", run.code == 0, first_line(run)):
            tally.close()
    with open(package, "rb") as stream:
        return stream.read(), outputs


def main(count):
    tally = Tally()
    whole = spine_model.build().SerializeToString()
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "m.onnx")
        with open(model, "wb") as stream:
            stream.write(whole)
        for mutate in (truncated, flipped):
            damaged = mutations(whole, mutate, count)
            check_all(tally, f"{mutate.__name__} model", check_model, damaged)
        for device in DEVICES:
            package, outputs = make_package(tally, model, device, work)
            check = functools.partial(check_package, whole=outputs, device=device)
            for mutate in (truncated, flipped):
                damaged = mutations(package, mutate, count)
                check_all(tally, f"{mutate.__name__} package, {device}", check, damaged)
    tally.close()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=500)
    main(parser.parse_args().count)
