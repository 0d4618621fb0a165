"""Stochastic rounding of parameters that have no f32 master.

The loss is sum(x w), so that an update with a rate of 1 subtracts x: what f32 has
before it is rounded is known, and the rounding is compared with numpy and the
generator of dropout.py.
"""

import json
import struct
import sys
import tempfile

import harness
import numpy as np
import run
from onnx import helper
from philox import philox

ROWS, COLUMNS, SEED = 60, 100, 7
# The low half of XXH3 of "round/w", as llvm::xxh3_64bits has it.
KEY = 0xDC2CA878
# The bits behind the mantissa of f32's, and the format's in safetensors.
DROPPED = {"bf16": 16, "f16": 13}
NAMES = {"bf16": "BF16", "f16": "F16"}
STEPS, SMALL = 64, 2.0**-12

RECIPE = """
seed = {seed}
[loss]
kind = "output"
[optimizer]
kind = "sgd"
lr = 1.0
[precision]
compute = "{compute}"
loss_scale = 1
master_weights = false
rounding = "{rounding}"
[params]
train = ["w"]
"""


def save_sum(path):
    nodes = [
        helper.make_node("Mul", ["x", "w"], ["products"]),
        helper.make_node("ReduceSum", ["products"], ["loss"], keepdims=0),
    ]
    weights = {"w": np.ones((ROWS, COLUMNS), "f4")}
    run.save_graph(path, nodes, weights, [ROWS, COLUMNS], "loss", [])


def random_numbers(step):
    counter = np.zeros((ROWS * COLUMNS, 4))
    counter[:, 0], counter[:, 2], counter[:, 3] = np.arange(len(counter)), step, KEY
    numbers = (philox(SEED, counter)[0] >> np.uint64(8)).astype("f4") * np.float32(2**-24)
    return numbers.reshape(ROWS, COLUMNS)


def round_randomly(values, random, compute):
    """The value next to the nearest one where `random` is below the distance from that
    as a part of q, the distance of the two; in f64. Halves are no test."""
    wide = np.abs(values.astype("f8"))
    exponents = np.floor(np.log2(wide, where=wide > 0, out=np.full_like(wide, -200)))
    least = -14 if compute == "f16" else -126
    q = 2.0 ** (np.maximum(exponents, least) - (23 - DROPPED[compute]))
    nearest = np.rint(wide / q)
    rest = wide / q - nearest
    count = nearest + np.where(random < np.abs(rest), np.sign(rest), 0)
    return np.copysign(np.where(np.abs(rest) == 0.5, wide, count * q), values)


def widen(data, compute):
    if compute == "f16":
        return np.frombuffer(data, "f2").astype("f8").reshape(ROWS, COLUMNS)
    bits = np.frombuffer(data, "u2").astype("u4") << 16
    return bits.view("f4").astype("f8").reshape(ROWS, COLUMNS)


def read_type(path, name):
    with open(path, "rb") as file:
        (size,) = struct.unpack("<Q", file.read(8))
        return json.loads(file.read(size))[name]["dtype"]


class Rounding(run.Suite):
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        save_sum(self.path("sum.onnx"))
        values = np.random.default_rng(1).standard_normal((ROWS, COLUMNS)).astype("f4")
        # Some of them in f16's range below normal.
        values[:8] = 1 - np.float32(2.0**-17) * values[:8]
        np.savez(self.path("some.npz"), x=values[None])
        np.savez(self.path("small.npz"), x=np.full((1, ROWS, COLUMNS), -SMALL, "f4"))
        self.values = values

    def package(self, compute, rounding):
        text = RECIPE.format(seed=SEED, compute=compute, rounding=rounding)
        name = self.path(f"{compute}-{rounding}")
        with open(f"{name}.toml", "w") as file:
            file.write(text)
        self.run("tcc", self.path("sum.onnx"), f"--train={name}.toml", "-o", f"{name}.tcc", "-q")
        return f"{name}.tcc"


def check_bits(suite, package, compute):
    state = suite.train(package, "some.npz", 1)
    found = widen(state["w"], compute)
    expected = round_randomly(np.float32(1) - suite.values, random_numbers(0), compute)
    exact = np.float32(1) - suite.values
    ours = np.where(expected == exact, expected, found)  # halves, or nothing to round
    worst = np.max(np.abs(ours - expected))
    suite.tally.check(f"{compute} as numpy", worst == 0, f"{worst}")
    moved = np.count_nonzero(found != round_randomly(exact, np.ones_like(exact), compute))
    suite.tally.check(f"{compute} not to nearest", moved > exact.size / 5, f"{moved}")


def check_mean(suite, package, nearest):
    """Steps far below the distance of values are lost by rounding to nearest, and
    counted in the mean by random rounding."""
    still = widen(suite.train(nearest, "small.npz", STEPS)["w"], "bf16")
    suite.tally.check("nearest", (still == 1).all(), str(still.max()))
    moved = widen(suite.train(package, "small.npz", STEPS)["w"], "bf16") - 1
    # The distance of values above 1; a step goes one up in SMALL / distance cases.
    distance, wanted = 2.0**-7, STEPS * SMALL
    sigma = distance * np.sqrt(STEPS * SMALL / distance / moved.size)
    error = abs(moved.mean() - wanted)
    suite.tally.check("mean", error < 5 * sigma, f"off by {error / sigma:.1f} sigma")
    spread = moved.std() / (sigma * np.sqrt(moved.size))
    suite.tally.check("spread", 0.9 < spread < 1.1, f"{spread}")


def check_same(suite, package):
    """The same bits at any number of threads and over an interruption."""
    first = suite.train(package, "some.npz", 6)
    for threads in (2, 4):
        again = suite.train(package, "some.npz", 6, threads=threads)
        suite.tally.check(f"bits at {threads} threads", again == first)
    folder = suite.path("halves")
    for steps, extra in ((2, []), (6, ["--resume"])):
        suite.run("tcc-run", "train", package, "--data", f"npz:{suite.path('some.npz')}",
                  "--steps", steps, "--checkpoint-dir", folder, *extra)  # fmt: skip
    halves = run.read_tensors(f"{folder}/step-6/state.safetensors")
    suite.tally.check("bits in two halves", halves == first)


def check_files(suite, package, compute):
    """Exports have the narrow type; values that come in are rounded to nearest."""
    out, data = suite.path("out.safetensors"), f"npz:{suite.path('some.npz')}"
    values = np.float32(1) + np.arange(ROWS * COLUMNS, dtype="f4").reshape(ROWS, COLUMNS) / 999
    given = suite.path("given.safetensors")
    header = json.dumps({"w": {"dtype": "F32", "shape": [ROWS, COLUMNS],
                               "data_offsets": [0, values.nbytes]}}).encode()  # fmt: skip
    with open(given, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header + values.tobytes())
    suite.run("tcc-run", "train", package, "--data", data, "--steps", 1, "--set", "lr=0",
              "--init", given, "--export", out)  # fmt: skip
    suite.tally.check("type", read_type(out, "w") == NAMES[compute])
    expected = round_randomly(values, np.ones(values.shape), compute)
    found = widen(run.read_tensors(out)["w"], compute)
    suite.tally.check("init", ((found == expected) | (expected == values)).all())


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Rounding(tally, folder)
        packages = {c: suite.package(c, "stochastic") for c in DROPPED}
        for compute, package in packages.items():
            check_bits(suite, package, compute)
            check_files(suite, package, compute)
        check_mean(suite, packages["bf16"], suite.package("bf16", "nearest"))
        check_same(suite, packages["bf16"])
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
