"""Dropout in training packages.

With a rate of 1 an update subtracts the gradient, and the gradient of
sum(dropout(x w)) is the mask over 1 - p where x is 1: what was dropped can be read
off the parameters, and is compared with the generator, written once more in philox.py.
So are the numbers that random operators of a model draw, by the gradient of what they
are multiplied by.
"""

import json
import sys
import tempfile

import numpy as np
import onnx
from onnx import helper

import harness
import run
from philox import uniform

COUNT, SAMPLES, SEED = 6000, 4, 7
P = {"a": 0.25, "b": 0.5}

RECIPE = f"""
seed = {SEED}
[loss]
kind = "output"
[optimizer]
kind = "sgd"
lr = 1.0
[dropout]
"b" = {P["b"]}
"""


def expected_gradient(seed, batch, site, p):
    """The mask over 1 - p of a pass, for all elements."""
    numbers = uniform(COUNT, seed, batch, site)
    return np.where(numbers >= np.float32(p), np.float32(1 / (1 - p)), np.float32(0))


def save_sums(path):
    """sum(dropout(x a)) + sum(dropout(x b)), the second site in another module."""
    nodes = []
    for name in P:
        nodes += [
            helper.make_node("Mul", ["x", f"w{name}"], [f"m{name}"]),
            helper.make_node("Dropout", [f"m{name}", "ratio", "yes"], [f"d{name}"],
                             name="a"),  # fmt: skip
            helper.make_node("ReduceSum", [f"d{name}"], [f"s{name}"], keepdims=0),
        ]
    nodes[4].metadata_props.add(key="pkg.torch.onnx.name_scopes", value="['', 'b', 'dropout']")
    nodes.append(helper.make_node("Add", ["sa", "sb"], ["loss"]))
    weights = {f"w{name}": np.arange(COUNT, dtype="f4") / COUNT for name in P}
    constants = {"ratio": np.float32(P["a"]), "yes": np.array(True)}
    run.save_graph(path, nodes, weights | constants, [COUNT], "loss", [])


def train(suite, package, steps, *arguments, threads=1):
    """Variables, and the metrics of each update."""
    log = tempfile.mkdtemp(dir=suite.folder)
    state = suite.train(package, "ones.npz", steps, "--log-dir", log, *arguments, threads=threads)
    with open(f"{log}/metrics.jsonl", encoding="utf-8") as file:
        return state, [json.loads(line) for line in file]


def weight(state, name):
    return np.frombuffer(state[f"w{name}"], "f4")


def test_masks(suite, package):
    """Gradients and losses are those of the masks of their step and site."""
    before, _ = train(suite, package, 1, "--set", "lr=0")
    states = [train(suite, package, steps) for steps in (1, 2, 3)]
    for site, (name, p) in enumerate(P.items()):
        start = weight(before, name)
        for batch, (state, _) in enumerate(states):
            gradient = expected_gradient(SEED, batch, site, p)
            suite.tally.check(
                f"mask of {name} at {batch}", np.array_equal(weight(state, name), start - gradient)
            )
            start = weight(state, name)
            kept = np.count_nonzero(gradient)
            deviation = abs(kept - COUNT * (1 - p)) / (COUNT * p * (1 - p)) ** 0.5
            suite.tally.check(f"share of {name} at {batch}", deviation < 5, str(deviation))
    loss = sum(
        float(np.dot(weight(before, name).astype("f8"), expected_gradient(SEED, 0, site, p)))
        for site, (name, p) in enumerate(P.items())
    )
    found = states[0][1][0]["loss"]
    suite.tally.check("loss", abs(found - loss) < 1e-4 * loss, f"{found}, not {loss}")


def test_batches(suite, package):
    """Each of several batches of an update has its mask; the seed changes all."""
    before, _ = train(suite, package, 1, "--set", "lr=0")
    state, _ = train(suite, package, 1, "--set", "accumulate=2", "--seed", 9)
    for site, (name, p) in enumerate(P.items()):
        gradient = sum(expected_gradient(9, batch, site, p) for batch in (0, 1)) / 2
        distance = np.abs(weight(state, name) - (weight(before, name) - gradient)).max()
        suite.tally.check(f"two batches of {name}", distance < 1e-6, str(distance))


def test_probabilities(suite, package):
    """p is a setting, from 0 to 1; where all is dropped nothing changes."""
    for bad in ("dropout.a=1.1", "dropout.a=nan", "dropout.c=0"):
        suite.train(package, "ones.npz", 1, "--set", bad, code=2)
    before, _ = train(suite, package, 1, "--set", "lr=0")
    state, _ = train(suite, package, 1, "--set", "dropout.a=1", "--set", "dropout.b=0")
    suite.tally.check("p = 1", np.array_equal(weight(state, "a"), weight(before, "a")))
    state, _ = train(suite, package, 1, "--set", "dropout.*=1", "--set", "dropout.b=0")
    suite.tally.check("p = 1 by a pattern", np.array_equal(weight(state, "a"), weight(before, "a")))
    suite.tally.check("p = 0", np.array_equal(weight(state, "b"), weight(before, "b") - 1))


def test_bits(suite, package):
    """The same masks at any number of threads and after an interruption."""
    whole, _ = train(suite, package, 4)
    again, _ = train(suite, package, 4, threads=3)
    suite.tally.check("bits at 3 threads", whole == again)
    folder = suite.path("resumed")
    for steps, extra in ((2, []), (4, ["--resume"])):
        suite.run("tcc-run", "train", package, "--data", f"npz:{suite.path('ones.npz')}",
                  "--steps", steps, "--checkpoint-dir", folder, *extra)  # fmt: skip
    resumed = run.read_tensors(f"{folder}/step-4/state.safetensors")
    suite.tally.check("bits after an interruption", whole == resumed)


def test_without(suite):
    """With p = 0 a model is one that has no dropout; evaluation always is."""
    model = onnx.load(suite.path("mlp.onnx"))
    model.graph.node[1].output[0] = "kept"
    model.graph.node.insert(2, helper.make_node("Dropout", ["kept"], ["r"], name="drop"))
    onnx.save(model, suite.path("dropped.onnx"))
    data = f"npz:{suite.path('mlp.npz')}"
    plain, dropped = suite.compile("mlp"), suite.compile("dropped")
    evaluations = [suite.run("tcc-run", "eval", package, "--data", data, "--json").out
                   for package in (plain, dropped)]  # fmt: skip
    suite.tally.check("evaluation", evaluations[0] == evaluations[1])
    before = suite.train(plain, "mlp.npz", 12)
    after = suite.train(dropped, "mlp.npz", 12, "--set", "dropout.drop=0")
    changed = [name for name in before if before[name] != after[name]]
    suite.tally.check("bits at p = 0", not changed, str(changed))
    other = suite.train(dropped, "mlp.npz", 12)
    suite.tally.check("p = 0.5", other["fc1.weight"] != after["fc1.weight"])


def test_draws(suite):
    """sum(x w u) of uniform u: the gradient of w is u, other numbers in each batch."""
    nodes = [
        helper.make_node("RandomUniformLike", ["w"], ["u"], name="u"),
        helper.make_node("Mul", ["w", "u"], ["wu"]),
        helper.make_node("Mul", ["x", "wu"], ["m"]),
        helper.make_node("Bernoulli", ["half"], ["b"], name="b"),
        helper.make_node("Mul", ["b", "v"], ["bv"]),
        helper.make_node("Mul", ["x", "bv"], ["n"]),
        helper.make_node("Add", ["m", "n"], ["both"]),
        helper.make_node("ReduceSum", ["both"], ["loss"], keepdims=0),
    ]
    zeros = np.zeros(COUNT, "f4")
    weights = {"w": zeros, "v": zeros, "half": np.full(COUNT, 0.5, "f4")}
    run.save_graph(suite.path("draws.onnx"), nodes, weights, [COUNT], "loss", [])
    recipe = RECIPE.split("[dropout]", maxsplit=1)[0] + '[params]\nfreeze = ["half"]\n'
    package = suite.compile("draws", 1, recipe)
    before = {"w": zeros, "v": zeros}
    for batch in range(2):
        state, _ = train(suite, package, batch + 1)
        after = {name: np.frombuffer(state[name], "f4") for name in before}
        drawn = uniform(COUNT, SEED, batch, 0)
        ones = (uniform(COUNT, SEED, batch, 1) < 0.5).astype("f4")
        for name, expected in (("w", drawn), ("v", ones)):
            is_same = np.array_equal(after[name], before[name] - expected)
            suite.tally.check(f"draws of {name} at {batch}", is_same)
        before = after


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = run.Suite(tally, folder)
        save_sums(suite.path("sums.onnx"))
        np.savez(suite.path("ones.npz"), x=np.ones((SAMPLES, COUNT), "f4"))
        package = suite.compile("sums", 1, RECIPE)
        for test in (test_masks, test_batches, test_probabilities, test_bits):
            test(suite, package)
        test_without(suite)
        test_draws(suite)
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
