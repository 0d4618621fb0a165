"""Loss scaling: the events of torch.amp.GradScaler, and that a skip is one.

A linear classifier in f32 whose scores are multiplied by the last feature. That is
1 but for some samples, where it is so large, and the others so small, that scores and
gradients are as usual, but what is between them overflows while the scale is above
2^14. scaling.json has what make_scaling_fixture.py's GradScaler made of it.
"""

import collections
import json
import os
import sys
import tempfile

import harness
import numpy as np
from onnx import helper, numpy_helper
from training.run import read_tensors, save_model

FIXTURE = os.path.join(os.path.dirname(__file__), "fixtures", "scaling.json")
MICRO, FEATURES, CLASSES = 8, 6, 5
UPDATES = 2020
# The emulator takes its time: what comes before the scale grows again.
PREFIX = UPDATES if harness.TARGET == "cpu" else 12
OVERFLOWS = (3, 4, 6, 2010)  # updates, from 0
SKIPPED, APPLIED = 4, 7  # updates from 1: the first of them, one that is applied
LARGE = 1.6e35
TOLERANCE = 2e-4

Case = collections.namedtuple("Case", "optimizer accumulate on_skip")
CASES = [
    Case("momentum", 1, "advance"),
    Case("momentum", 1, "hold"),
    Case("adamw", 2, "advance"),
    Case("adamw", 2, "hold"),
]
OPTIMIZERS = {
    "momentum": {"kind": "sgd", "lr": 0.05, "momentum": 0.9},
    "adamw": {"kind": "adamw", "lr": 0.002},
}
END = 0.1  # of the rate, as a part
CLIP = 1.0
RECIPE = """
[loss]
kind = "cross_entropy"
[optimizer]
{optimizer}
[schedule]
kind = "linear"
total_steps = {updates}
eta_min = {end}
[precision]
loss_scale = "dynamic"
[batch]
micro = {micro}
clip_norm = {clip}
"""


def make_weights():
    random = np.random.RandomState(5)
    return (random.standard_normal((FEATURES, CLASSES)) / 4).astype("f4")


def make_data(accumulate):
    random = np.random.RandomState(6)
    x = random.standard_normal((UPDATES, accumulate, MICRO, FEATURES + 1)).astype("f4")
    labels = random.randint(0, CLASSES, x.shape[:3])
    x[..., -1] = 1
    for update in OVERFLOWS:
        x[update, -1, 2] /= LARGE
        x[update, -1, 2, -1] = LARGE
    return {"x": x.reshape(-1, FEATURES + 1), "labels": labels.reshape(-1)}


def name_of(case):
    return "-".join(map(str, case))


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        sizes = helper.make_node("Constant", [], ["sizes"], value=numpy_helper.from_array(
            np.array([FEATURES, 1])))  # fmt: skip
        nodes = [
            sizes,
            helper.make_node("Split", ["x", "sizes"], ["features", "factor"], axis=1),
            helper.make_node("MatMul", ["features", "weight"], ["scores"]),
            helper.make_node("Mul", ["scores", "factor"], ["logits"]),
        ]
        weights = {"weight": make_weights()}
        save_model(self.path("linear.onnx"), nodes, weights, [FEATURES + 1])
        for accumulate in (1, 2):
            np.savez(self.path(f"{accumulate}.npz"), **make_data(accumulate))

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, optimizer, model="linear"):
        keys = OPTIMIZERS[optimizer]
        lines = "\n".join(f"{key} = {json.dumps(value)}" for key, value in keys.items())
        with open(self.path("recipe.toml"), "w") as file:
            file.write(RECIPE.format(optimizer=lines, updates=UPDATES, micro=MICRO,
                                     end=END * keys["lr"], clip=CLIP))  # fmt: skip
        package = self.path(f"{model}.{optimizer}.tcc")
        done = harness.run_tool("tcc", self.path(f"{model}.onnx"), "-q", "-o", package,
                                f"--train={self.path('recipe.toml')}")  # fmt: skip
        self.tally.check(f"compile {optimizer}", done.code == 0, done.err)
        return package

    def train(self, package, steps, *flags, accumulate=1, code=0, folder=None):
        """The metrics of each update, and the variables."""
        folder = folder or tempfile.mkdtemp(dir=self.folder)
        data = "npz:" + self.path(f"{accumulate}.npz")
        settings = ("--set", f"accumulate={accumulate}")
        done = harness.run_tool("tcc-run", "train", package, "-q", "--data", data,
                                "--no-shuffle", "--threads", 1, "--steps", steps,
                                "--checkpoint-dir", folder, "--log-dir", folder, *settings,
                                *flags)  # fmt: skip
        self.tally.check(f"exit {flags}", done.code == code, f"{done.code}: {done.err}")
        with open(f"{folder}/metrics.jsonl") as stream:
            metrics = [json.loads(line) for line in stream]
        path = f"{folder}/step-{steps}/state.safetensors"
        return metrics, read_tensors(path) if os.path.exists(path) else {}


def check_case(suite, package, case, kept):
    """Scale, skip and rate of each update, and what was trained."""
    name = name_of(case)
    flags = ("--set", f"schedule.on_skip={case.on_skip}")
    metrics, state = suite.train(package, PREFIX, *flags, accumulate=case.accumulate)
    if not state:
        return
    skipped = [i for i, line in enumerate(metrics) if line["skipped"]]
    wanted = [i for i in kept["skipped"] if i < PREFIX]
    suite.tally.check(f"{name} skips", skipped == wanted, f"{skipped}, not {wanted}")
    scales, changes = [line["loss_scale"] for line in metrics], dict(kept["scales"])
    scale = None
    for update, found in enumerate(scales):
        scale = changes.get(update, scale)
        if found != scale:
            suite.tally.check(f"{name} scale", False, f"{found} at {update}, not {scale}")
            break
    rates = np.array([line["lr"] for line in metrics])
    wanted = np.interp(np.arange(PREFIX), *zip(*kept["rates"]))
    worst = np.abs(rates / wanted - 1).max()
    suite.tally.check(f"{name} rates", worst < 1e-9, f"differ by {worst:.1e}")
    if PREFIX < UPDATES:
        return
    count = int.from_bytes(state["step/growth_count"], "little")
    suite.tally.check(f"{name} growth", count == kept["growth"], f"{count}")
    for key, values in kept["tensors"].items():
        found = np.frombuffer(state[key], "f4")
        worst = np.abs(found - values).max() / np.abs(values).max()
        suite.tally.check(f"{name} {key}", worst < TOLERANCE, f"differs by {worst:.1e}")


def check_skip(suite, package):
    """A skipped update changes nothing but counts and scale; the next one does."""
    _, before = suite.train(package, SKIPPED - 1, accumulate=2)
    _, after = suite.train(package, SKIPPED, accumulate=2)
    changed = {name for name in before if before[name] != after[name]}
    suite.tally.check("skip", changed == {"step/iteration", "step/first",
                      "step/loss_scale", "step/growth_count"}, str(changed))  # fmt: skip
    _, applied = suite.train(package, APPLIED, accumulate=2)
    trained = {"weight", "exp_avg/weight", "exp_avg_sq/weight", "step/updates"}
    kept = {name for name in trained if after[name] == applied[name]}
    suite.tally.check("applied", not kept, str(kept))


def check_resume(suite, package):
    """A checkpoint between two overflows goes on with the same bits."""
    _, whole = suite.train(package, 12, accumulate=2)
    folder = suite.path("halves")
    suite.train(package, SKIPPED, accumulate=2, folder=folder)
    _, halves = suite.train(package, 12, "--resume", accumulate=2, folder=folder)
    suite.tally.check("bits in two halves", whole == halves)


def check_number(suite, package):
    """A power of two as scale changes no bit; what overflows then is a fault, or
    skipped where the recipe says so, and the scale stays."""
    first = OVERFLOWS[0]
    for scale in (1, 1024, 2.0**40):
        _, state = suite.train(package, first, "--set", f"loss_scale={scale}")
        plain = plain if scale != 1 else state
        suite.tally.check(f"scale {scale}", state["weight"] == plain["weight"])
    large = ("--set", f"loss_scale={2**17}")
    suite.train(package, UPDATES, *large, code=6)
    metrics, _ = suite.train(package, 12, *large, "--set", "on_nan=skip")
    skipped = [i for i, line in enumerate(metrics) if line["skipped"]]
    same = all(line["loss_scale"] == 2**17 for line in metrics)
    suite.tally.check("number", same and skipped == [3, 4, 6], str(skipped))
    for bad in ("0", "-1", "static", "nan"):
        suite.train(package, 1, "--set", f"loss_scale={bad}", code=2, folder=suite.path("halves"))
    again, _ = suite.train(package, 5, *large, "--set", "loss_scale=dynamic")
    suite.tally.check("dynamic again", again[3]["loss_scale"] == 65536, str(again[3]))


def check_end(suite):
    """A gradient that is not finite at any scale ends the run: no scale is so small.
    The derivative of a root is not finite at 0, where the root is."""
    nodes = [
        helper.make_node("MatMul", ["x", "weight"], ["scores"]),
        helper.make_node("MatMul", ["x", "zeros"], ["squares"]),
        helper.make_node("Sqrt", ["squares"], ["roots"]),
        helper.make_node("Add", ["scores", "roots"], ["logits"]),
    ]
    ones = np.ones((FEATURES + 1, CLASSES), "f4")
    weights = {"weight": ones, "zeros": 0 * ones}
    save_model(suite.path("roots.onnx"), nodes, weights, [FEATURES + 1])
    package = suite.compile("momentum", "roots")
    metrics, _ = suite.train(package, UPDATES, "--set", "on_nan=skip", code=6)
    scales = [line["loss_scale"] for line in metrics]
    suite.tally.check("last scale", scales == [2.0**i for i in range(16, -127, -1)], scales[-1])


def main():
    tally = harness.Tally()
    with open(FIXTURE) as stream:
        fixture = json.load(stream)
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        packages = {name: suite.compile(name) for name in OPTIMIZERS}
        for case in CASES:
            check_case(suite, packages[case.optimizer], case, fixture[name_of(case)])
        for check in (check_skip, check_resume, check_number):
            check(suite, packages["adamw"])
        if harness.TARGET == "cpu":
            check_end(suite)
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
