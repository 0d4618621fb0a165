"""Random operators of models that are not trained: draws.py

Uniform numbers are those of the generator written once more in philox.py, to the last
bit, for each key, whatever their number; of the others mean, variance and shares are
what they should be. Each run draws the same, iterations of a loop do not.
"""

import glob
import tempfile

import numpy as np
import onnx
from harness import Tally, call
from onnx import TensorProto, helper
from philox import uniform

ROWS, COUNT = 300, 3000
PROBABILITIES = np.float32([[0.1, 0.2, 0.3, 0.4], [0.7, 0.1, 0.1, 0.1]])
FEED = {
    "x": np.zeros((ROWS, 5), "f4"),
    "p": np.full(COUNT, 0.3, "f4"),
    "s": np.log(PROBABILITIES),
}


def make_nodes():
    """In the order of their keys."""
    body = helper.make_graph(
        [
            helper.make_node("RandomUniform", [], ["one"], shape=[COUNT], name="one"),
            helper.make_node("Identity", ["go"], ["next"]),
        ],
        "body",
        [helper.make_tensor_value_info("i", TensorProto.INT64, []),
         helper.make_tensor_value_info("go", TensorProto.BOOL, [])],
        [helper.make_tensor_value_info("next", TensorProto.BOOL, []),
         helper.make_tensor_value_info("one", TensorProto.FLOAT, [COUNT])],
    )  # fmt: skip
    double = TensorProto.DOUBLE
    return [
        helper.make_node("RandomUniform", [], ["uniform"], shape=[COUNT]),
        helper.make_node("RandomNormal", [], ["normal"], shape=[60, 50], mean=2.0, scale=3.0),
        helper.make_node("RandomNormalLike", ["x"], ["like"], dtype=double),
        helper.make_node("RandomUniformLike", ["x"], ["between"], low=-1.0, high=3.0),
        helper.make_node("Bernoulli", ["p"], ["ones"], dtype=TensorProto.BOOL),
        helper.make_node("Multinomial", ["s"], ["classes"], sample_size=COUNT),
        helper.make_node("Loop", ["trips", ""], ["loop"], body=body),
    ]


def save(path):
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT,
              ["N", 5] if name == "x" else array.shape) for name, array in FEED.items()]  # fmt: skip
    types = {"like": TensorProto.DOUBLE, "ones": TensorProto.BOOL, "classes": TensorProto.INT32}
    nodes = make_nodes()
    names = [node.output[0] for node in nodes]
    outputs = [helper.make_tensor_value_info(n, types.get(n, TensorProto.FLOAT), None) for n in names]
    trips = helper.make_tensor("trips", TensorProto.INT64, [], [3])
    graph = helper.make_graph(nodes, "draws", inputs, outputs, [trips])
    opsets = [helper.make_opsetid("", 22)]
    onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)
    return names


def check_uniform(tally, found):
    def is_drawn(values, key, step=0):
        return np.array_equal(values.ravel(), uniform(values.size, 0, step, key))

    tally.check("uniform", is_drawn(found["uniform"], 0))
    moved = uniform(5 * ROWS, 0, 0, 3) * np.float32(4) - np.float32(1)
    tally.check("between", np.abs(found["between"].ravel() - moved).max() < 1e-6)
    tally.check("ones", np.array_equal(found["ones"], uniform(COUNT, 0, 0, 4) < np.float32(0.3)))
    tally.check("shape of the loop", found["loop"].shape == (3, COUNT))
    for step, values in enumerate(found["loop"]):
        tally.check(f"iteration {step}", is_drawn(values, 6, step))


def check_others(tally, found):
    for name, mean, deviation in (("normal", 2, 3), ("like", 0, 1)):
        x = (found[name] - mean) / deviation
        error = x.size**-0.5
        tally.check(f"mean of {name}", abs(x.mean()) < 5 * error, x.mean())
        tally.check(f"variance of {name}", abs(x.var() - 1) < 7 * error, x.var())
        within = (np.abs(x) < 1).mean()
        tally.check(f"shape of {name}", abs(within - 0.6827) < 3 * error, within)
    tally.check("type of like", found["like"].dtype == np.float64 and found["like"].shape == (ROWS, 5))
    for row, expected in zip(found["classes"], PROBABILITIES):
        shares = np.bincount(row, minlength=4) / COUNT
        worst = np.abs(shares - expected).max()
        tally.check("classes", worst < 5 * (0.25 / COUNT) ** 0.5, str(shares))


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as folder:
        model, package = f"{folder}/m.onnx", f"{folder}/m.tcc"
        names = save(model)
        call("tcc", model, "--dim", "N=1..500", "-o", package)
        arguments = []
        for name, array in FEED.items():
            np.save(f"{folder}/{name}.npy", array)
            arguments += ["--input", f"{name}={folder}/{name}.npy"]
        runs = []
        for _ in range(2):
            out = tempfile.mkdtemp(dir=folder)
            call("tcc-run", "run", package, *arguments, "--output-dir", out)
            files = range(len(glob.glob(f"{out}/output_*.npy")))
            runs.append([np.load(f"{out}/output_{i}.npy") for i in files])
        same = all(a.tobytes() == b.tobytes() for a, b in zip(*runs))
        tally.check("each run draws the same", same)
        found = dict(zip(names, runs[0]))
        check_uniform(tally, found)
        check_others(tally, found)
    tally.close()


if __name__ == "__main__":
    main()
