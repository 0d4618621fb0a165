"""Training packages of small models, from ONNX to the trained weights.

What a run must keep: its bits, whatever the threads and the interruptions; its
parameters, whatever the data; and its meaning, whatever the size of a batch.
"""

import json
import math
import os
import sys
import tempfile
import xml.etree.ElementTree

import numpy
import onnx
from onnx import TensorProto, helper, numpy_helper

import harness

RANDOM = numpy.random.default_rng(0)
SAMPLES, CLASSES, MICRO = 48, 5, 8

RECIPE = """
seed = 3
[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.01
[batch]
micro = {micro}
clip_norm = 1.0
[batchnorm]
mode = "train"
[schedule]
kind = "linear"
warmup_steps = 4
total_steps = 40
"""


def normal(*shape):
    return (RANDOM.standard_normal(shape) / math.sqrt(shape[-1])).astype("f4")


def save_graph(path, nodes, weights, input_shape, output, output_shape):
    """A model from 'x', of a symbolic batch."""
    graph = helper.make_graph(
        nodes,
        "model",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", *input_shape])],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, output_shape)],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)


def save_model(path, nodes, weights, input_shape):
    save_graph(path, nodes, weights, input_shape, "logits", ["batch", CLASSES])


def save_cnn(path):
    """Convolution, batch norm, relu, mean over the picture, linear."""
    nodes = [
        helper.make_node("Conv", ["x", "conv.weight"], ["c"], pads=[1, 1, 1, 1]),
        helper.make_node(
            "BatchNormalization",
            ["c", "norm.weight", "norm.bias", "norm.mean", "norm.variance"],
            ["n"],
        ),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("Gemm", ["f", "head.weight", "head.bias"], ["logits"], transB=1),
    ]
    weights = {
        "conv.weight": normal(6, 2, 3, 3),
        "norm.weight": numpy.ones(6, "f4"),
        "norm.bias": numpy.zeros(6, "f4"),
        "norm.mean": numpy.zeros(6, "f4"),
        "norm.variance": numpy.ones(6, "f4"),
        "head.weight": normal(CLASSES, 6),
        "head.bias": numpy.zeros(CLASSES, "f4"),
    }
    save_model(path, nodes, weights, [2, 6, 5])


def save_mlp(path, inputs=7, hidden=12):
    nodes = [
        helper.make_node("Gemm", ["x", "fc1.weight", "fc1.bias"], ["h"], transB=1),
        helper.make_node("Relu", ["h"], ["r"]),
        helper.make_node("Gemm", ["r", "fc2.weight", "fc2.bias"], ["logits"], transB=1),
    ]
    weights = {
        "fc1.weight": normal(hidden, inputs),
        "fc1.bias": normal(hidden),
        "fc2.weight": normal(CLASSES, hidden),
        "fc2.bias": normal(CLASSES),
    }
    save_model(path, nodes, weights, [inputs])


def read_tensors(path):
    """Bytes by name."""
    with open(path, "rb") as file:
        data = file.read()
    size = int.from_bytes(data[:8], "little")
    return {
        name: data[8 + size + tensor["data_offsets"][0] : 8 + size + tensor["data_offsets"][1]]
        for name, tensor in json.loads(data[8 : 8 + size]).items()
    }


class Suite:
    def __init__(self, tally, folder):
        self.tally = tally
        self.folder = folder
        save_cnn(self.path("cnn.onnx"))
        save_mlp(self.path("mlp.onnx"))
        for name, shape in (("cnn", (2, 6, 5)), ("mlp", (7,))):
            x = RANDOM.standard_normal((SAMPLES, *shape)).astype("f4")
            labels = (x.reshape(SAMPLES, -1) @ normal(x[0].size, CLASSES)).argmax(1)
            numpy.savez(self.path(f"{name}.npz"), x=x, labels=labels)
            if name == "cnn":
                x[-1, 0, 0, 0] = numpy.nan
                numpy.savez(self.path("nan.npz"), x=x, labels=labels)

    def path(self, name):
        return os.path.join(self.folder, name)

    def run(self, tool, *arguments, code=0, schedule=None):
        done = harness.run_tool(tool, *arguments, schedule=schedule)
        self.tally.check(f"{tool} {arguments[0]}", done.code == code, f"{done.code}: {done.err}")
        return done

    def compile(self, name, micro=MICRO, text=None):
        recipe, package = self.path(f"{name}.{micro}.toml"), self.path(f"{name}.{micro}.tcc")
        with open(recipe, "w") as file:
            file.write(text or RECIPE.format(micro=micro))
        self.run("tcc", self.path(f"{name}.onnx"), f"--train={recipe}", "-o", package, "-q")
        return package

    def train(self, package, data, steps, *arguments, threads=1, code=0, schedule=None):
        """The variables after `steps` updates."""
        folder = tempfile.mkdtemp(dir=self.folder)
        self.run("tcc-run", "train", package, "--data", f"npz:{self.path(data)}", "--steps",
                 steps, "--threads", threads, "--checkpoint-dir", folder, *arguments,
                 code=code, schedule=schedule)  # fmt: skip
        path = f"{folder}/step-{steps}/state.safetensors"
        return read_tensors(path) if os.path.exists(path) else {}


def test_bits(suite, package):
    """The same bits at any number of threads, in any order of a device's, and after
    an interruption."""
    first = suite.train(package, "cnn.npz", 20)
    suite.tally.check("variables", "exp_avg/conv.weight" in first and "norm.mean" in first)
    schedules = harness.SCHEDULES[harness.TARGET]
    for turn in range(20):
        threads, schedule = (1, 2, 4)[turn % 3], schedules[turn % len(schedules)]
        again = suite.train(package, "cnn.npz", 20, threads=threads, schedule=schedule)
        name = f"bits of run {turn} at {threads} threads {schedule}"
        suite.tally.check(name, again == first)
    folder = suite.path("halves")
    for steps, extra in ((10, []), (20, ["--resume"])):
        suite.run("tcc-run", "train", package, "--data", f"npz:{suite.path('cnn.npz')}",
                  "--steps", steps, "--checkpoint-dir", folder, "--threads", 2,
                  *extra)  # fmt: skip
    halves = read_tensors(f"{folder}/step-20/state.safetensors")
    suite.tally.check("bits in two halves", halves == first)


def test_fault(suite, package):
    """A loss that is not finite leaves the parameters before it."""
    before = suite.train(package, "nan.npz", SAMPLES // MICRO - 1, "--no-shuffle")
    folder = suite.path("fault")
    suite.run("tcc-run", "train", package, "--data", f"npz:{suite.path('nan.npz')}", "--steps",
              40, "--no-shuffle", "--checkpoint-dir", folder, code=6)  # fmt: skip
    after = read_tensors(f"{folder}/step-{SAMPLES // MICRO}/state.safetensors")
    kept = {
        name
        for name in before
        if not name.startswith("step/") and before[name] == after[name]
    }
    lost = [n for n in before if n not in kept and not n.startswith(("step/", "norm."))]
    suite.tally.check("parameters before the fault", not lost, str(lost))
    changed = [n for n in ("norm.mean", "norm.variance") if n not in kept]
    suite.tally.check("statistics before the fault", not changed, str(changed))


def test_accumulation(suite):
    """Several small batches are one large batch."""
    package = suite.compile("mlp")
    parts = suite.train(package, "mlp.npz", 6, "--set", "accumulate=3", "--no-shuffle")
    whole = suite.train(suite.compile("mlp", 3 * MICRO), "mlp.npz", 6, "--no-shuffle")
    for name in ("fc1.weight", "fc2.bias", "exp_avg/fc1.weight"):
        a, b = (numpy.frombuffer(v[name], "f4") for v in (parts, whole))
        distance = numpy.linalg.norm(a - b) / numpy.linalg.norm(b)
        suite.tally.check(f"accumulated {name}", distance < 1e-5, str(distance))


def test_padding(suite):
    """Samples that fill up the last batch of an epoch weigh nothing."""
    recipe = RECIPE.format(micro=10).replace("[batch]", "[batch]\nlast = 'pad'")
    padded, whole = suite.compile("mlp", 10, recipe), suite.compile("mlp", SAMPLES)
    parts = suite.train(padded, "mlp.npz", 1, "--set", "accumulate=5", "--no-shuffle")
    once = suite.train(whole, "mlp.npz", 1, "--no-shuffle")
    for name in ("fc1.weight", "fc2.bias", "exp_avg/fc1.weight"):
        a, b = (numpy.frombuffer(v[name], "f4") for v in (parts, once))
        distance = numpy.linalg.norm(a - b) / numpy.linalg.norm(b)
        suite.tally.check(f"padded {name}", distance < 1e-5, str(distance))
    evaluations = [
        json.loads(suite.run("tcc-run", "eval", package, "--data",
                             f"npz:{suite.path('mlp.npz')}", "--json").out)
        for package in (padded, whole)
    ]  # fmt: skip
    found, expected = evaluations
    close = math.isclose(found["loss"], expected["loss"], rel_tol=1e-5)
    same = all(found[key] == expected[key] for key in ("accuracy", "samples"))
    suite.tally.check("padded evaluation", close and same, str(evaluations))


def test_export(suite, package):
    """The trained model as an inference package gives the same accuracy."""
    file, inference = suite.path("trained.safetensors"), suite.path("cnn.tcc")
    data = f"npz:{suite.path('cnn.npz')}"
    suite.run("tcc-run", "train", package, "--data", data, "--steps", 30, "--export", file)
    done = suite.run("tcc-run", "eval", package, "--data", data, "--init", file, "--json")
    accuracy = json.loads(done.out)["accuracy"]
    suite.run("tcc", suite.path("cnn.onnx"), f"--weights={file}", "--dim", f"batch={SAMPLES}",
              "-o", inference, "-q")  # fmt: skip
    suite.run("tcc-run", "run", inference, "--input", f"x={suite.path('cnn.npz')}",
              "--output-dir", suite.path("out"))  # fmt: skip
    logits = numpy.load(suite.path("out/output_0.npy"))
    labels = numpy.load(suite.path("cnn.npz"))["labels"]
    suite.tally.check("accuracy", (logits.argmax(1) == labels).mean() == accuracy)


def test_recipes(suite, package):
    """A checkpoint goes on only with what was compiled in."""
    folder = suite.path("other")
    arguments = ("--data", f"npz:{suite.path('cnn.npz')}", "--checkpoint-dir", folder)
    suite.run("tcc-run", "train", package, "--steps", 1, *arguments)
    other = "steps = 9\n" + RECIPE.format(micro=MICRO).replace("adamw", "adam")
    package = suite.compile("cnn", MICRO, other)
    done = suite.run("tcc-run", "train", package, "--steps", 2, *arguments, "--resume", code=2)
    suite.tally.check("another optimizer", done.err.count(", was ") == 1
                      and 'optimizer.kind = "adam", was "adamw"' in done.err, done.err)  # fmt: skip
    # What changes the order of sums at most may be another.
    other = RECIPE.format(micro=MICRO) + "[memory]\nbudget = '1GiB'\n"
    package = suite.compile("cnn", text=other)
    suite.run("tcc-run", "train", package, "--steps", 2, *arguments, "--resume")
    package = suite.compile("cnn", 2 * MICRO)
    done = suite.run("tcc-run", "train", package, "--steps", 3, *arguments, "--resume", code=2)
    suite.tally.check("another batch", "batch.micro" in done.err, done.err)


def test_settings(suite, package):
    """Settings are numbers, lists and words; without a rate nothing is learned."""
    suite.train(package, "cnn.npz", 1, "--set", "betas=0.8,0.9", "--set", "seed=4", "--set",
                "clip_*=inf", "--set",
                "schedule.kind=cosine", "--set", "schedule.three_phase=true")  # fmt: skip
    for bad in ("schedule.kind=steep", "betas=0.8", "betas=0.8,1", "accumulate=0", "lr=-1",
                "lr=nan", "clip_norm=0", "on_nan=", "optimizer.kind=sgd", "*.nothing=1",
                "schedule.*=cosine", "schedule.kind=step", "schedule.kind=one_cycle",
                "schedule.warmup_steps=40"):  # fmt: skip
        suite.train(package, "cnn.npz", 1, "--set", bad, code=2)
    suite.train(package, "cnn.npz", 1, "--set", "schedule.max_lr=0.1", "--set",
                "schedule.kind=one_cycle")  # fmt: skip
    skipped = suite.train(package, "nan.npz", 6, "--no-shuffle", "--set", "on_nan=skip")
    suite.tally.check("skipped", skipped["step/updates"][0] == 5, str(skipped["step/updates"]))
    still = suite.train(package, "cnn.npz", 3, "--set", "lr=0")
    start = suite.train(package, "cnn.npz", 1, "--set", "lr=0")
    names = ("conv.weight", "norm.weight", "head.bias")
    suite.tally.check("lr=0", all(still[n] == start[n] for n in names))


def test_labels(suite, package):
    """Targets are classes or ignored; what else is there is named with its sample."""
    data = numpy.load(suite.path("cnn.npz"))
    x, path = data["x"], suite.path("labels.npz")
    flags = ("--data", f"npz:{path}", "--threads", 1)
    for label, code in ((-100, 0), (-1, 2), (CLASSES, 2), (-CLASSES, 2)):
        labels = data["labels"].copy()
        labels[MICRO + 3] = label
        numpy.savez(path, x=x, labels=labels)
        says = (f"index {label} is out of range: sample {MICRO + 3} of array 'labels' "
                f"has it, expected 0 to {CLASSES - 1}\n")  # fmt: skip
        for command in (("train", package, "--epochs", 1, "--log-dir", suite.folder),
                        ("eval", package)):  # fmt: skip
            done = suite.run("tcc-run", *command, *flags, code=code)
            found = code == 0 or done.err.endswith(says)
            suite.tally.check(f"label {label} of {command[0]}", found, done.err)


def slope_of(points, smooth, center):
    """Of the line through the points around `center`, over log(rate)."""
    near = slice(center - 5, center + 6)
    return numpy.polyfit(numpy.log([p["lr"] for p in points[near]]), smooth[near], 1)[0]


def test_find_rate(suite, package):
    """Rates grow by one factor until the loss is lost; what is found is where it falls
    fastest, by numpy, too, and training at that rate is better than at a hundredth."""
    folder = suite.path("rates")
    data = ("--data", f"npz:{suite.path('cnn.npz')}")
    done = suite.run("tcc-run", "train", package, *data, "--find-lr", "--log-dir", folder, "--json")
    found = json.loads(done.out)
    points = found["points"]
    rates = 1e-7 * 1e8 ** (numpy.arange(len(points)) / 99)
    suite.tally.check("rates", numpy.allclose([p["lr"] for p in points], rates))
    losses = numpy.array([p["loss"] for p in points], "f8")
    weights = 0.9 ** numpy.arange(len(losses))
    smooth = [(losses[: i + 1] * weights[i::-1]).sum() / weights[: i + 1].sum()
              for i in range(len(losses))]  # fmt: skip
    lowest = int(numpy.argmin(smooth))
    centers = range(10, min(lowest + 1, len(points) - 5))
    steepest = min(centers, key=lambda i: slope_of(points, smooth, i))
    suite.tally.check("a usual rate", 1e-4 < found["steepest"] < 1, str(found["steepest"]))
    suite.tally.check("steepest", found["steepest"] == points[steepest]["lr"], str(found["steepest"]))
    suite.tally.check("tenth", found["tenth_of_lowest"] == points[lowest]["lr"] / 10)
    again = suite.run("tcc-run", "train", package, *data, "--find-lr", "--log-dir", folder, "--json")
    suite.tally.check("same rates", again.out == done.out)
    picture = xml.etree.ElementTree.parse(f"{folder}/find-lr.svg").getroot()
    lines = picture.findall("{http://www.w3.org/2000/svg}polyline")
    suite.tally.check("picture", [len(line.get("points").split()) for line in lines]
                      == [len(points)] * 2)  # fmt: skip
    ends = []
    for rate in (found["steepest"], found["steepest"] / 100):
        done = suite.run("tcc-run", "train", package, *data, "--steps", 40, "--json",
                         "--set", f"lr={rate}", "--set", "schedule.kind=constant")  # fmt: skip
        ends.append(json.loads(done.out)["loss"])
    suite.tally.check("good rate", ends[0] < ends[1], str(ends))
    suite.run("tcc-run", "train", package, *data, "--find-lr", "--export", folder, code=2)
    said = suite.run("tcc-run", "train", package, *data, "--find-lr", "--log-dir", folder).out
    sentence = (f"the loss falls fastest at lr = {found['steepest']:.2g} and is lowest at "
                f"ten times lr = {found['tenth_of_lowest']:.2g}; {folder}/find-lr.svg\n")  # fmt: skip
    suite.tally.check("sentence", said == sentence, said)


def test_batch_sizes(suite):
    """What tune says of packages for batches of several sizes."""
    small = suite.compile("mlp")
    recipe = RECIPE.format(micro=2).replace("[batch]", "[batch]\nglobal = 48")
    packages = [small, suite.compile("mlp", SAMPLES), suite.compile("mlp", 2, recipe)]
    found = json.loads(suite.run("tcc-run", "tune", *packages, "--json", "--threads", 1).out)
    rows = found["packages"]
    suite.tally.check("packages", [row["package"] for row in rows] == packages, str(rows))
    samples = [row["samples"] for row in rows]
    suite.tally.check("samples", samples == [MICRO, SAMPLES, SAMPLES], str(samples))
    fastest = min(rows, key=lambda row: row["update_ms"] / row["samples"])
    suite.tally.check("fastest", found["fastest"] == fastest["package"], str(found))
    suite.tally.check("times", all(row["update_ms"] > 0 for row in rows), str(rows))
    done = suite.run("tcc-run", "tune", small, suite.compile("cnn"), code=2)
    suite.tally.check("other model", "has other parameters" in done.err, done.err)
    model = suite.path("mlp.tcc")
    suite.run("tcc", suite.path("mlp.onnx"), "-o", model, "-q")
    done = suite.run("tcc-run", "tune", small, model, code=2)
    suite.tally.check("no training", "does not train" in done.err, done.err)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        package = suite.compile("cnn")
        for test in (test_bits, test_fault, test_export, test_settings, test_labels,
                     test_recipes, test_find_rate):  # fmt: skip
            test(suite, package)
        test_accumulation(suite)
        test_padding(suite)
        test_batch_sizes(suite)
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
