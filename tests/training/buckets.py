"""Variants of several sizes, and batches of each: buckets.py PROGRAM

Sizes that tcc-run finds for real lengths pad no more than the optimum of a program of its own. An
update from batches of all variants changes the parameters as one does of the same samples filled up
to the largest size, alone and as two ranks; a run that is interrupted goes on to the bit. Every
sample of an epoch comes once, in the smallest variant that it fits, and a model runs at each size as
it does compiled for that alone. What does not go together is refused.
"""

import collections
import json
import os
import subprocess
import sys
import tempfile

import numpy as np
import onnx
from safetensors.numpy import load_file

import harness
from images import write_tar
from spine.loaders import Loader, describe
from training import decoder, ranks, records

FIXTURES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "fixtures")
SIZES, BATCHES = (8, 16, 32), (8, 4, 2)
RECIPE = """[loss]
kind = "causal_lm"
target = "labels"

[optimizer]
kind = "sgd"
lr = 0.5

[precision]
compute = "f64"

[batch]
accumulate = 1
"""
DATA = """[data]
source = "jsonl:{name}.jsonl"
map = {{tokens = "text"}}
[data.train]
tokens = ["bytes"]
[data.eval]
tokens = ["bytes"]
"""


def find_optimum(lengths, count):
    """The least share of padding with so many sizes, by all ways to divide the lengths."""
    sizes = np.array(sorted(lengths))
    before = np.cumsum([0, *(lengths[size] for size in sizes)])
    least = sizes * before[1:]  # of the first lengths, with one size
    for _ in range(count - 1):
        more = least.copy()
        for last in range(1, len(sizes)):
            ways = least[:last] + sizes[last] * (before[last + 1] - before[1 : last + 1])
            more[last] = min(more[last], ways.min())
        least = more
    return 1 - sum(size * count for size, count in lengths.items()) / least[-1]


class Suite:
    def __init__(self, tally, folder, program):
        self.tally, self.folder, self.program = tally, folder, program
        onnx.save(decoder.make(width=16, longest=max(SIZES)), self.path("decoder.onnx"))
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        self.compile("all", BATCHES, SIZES)
        self.compile("padded", [sum(BATCHES)], [max(SIZES)])
        self.random = np.random.default_rng(5)

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, batches, sizes, *flags):
        harness.call("tcc", self.path("decoder.onnx"), "--train=" + self.path("recipe.toml"), "-q", "-o",
                     self.path(name + ".tcc"), *self.dims(batches, sizes), *flags)  # fmt: skip

    @staticmethod
    def dims(batches, sizes):
        lists = {"batch": batches, "seq": sizes}
        return [f"--dim={name}={','.join(map(str, each))}" for name, each in lists.items()]

    def write(self, name, lengths):
        """Random texts of these lengths, and a plan that reads them."""
        with open(self.path(name + ".jsonl"), "w", encoding="utf-8") as file:
            for length in lengths:
                text = self.random.integers(97, 123, length, 'u1').tobytes().decode()
                file.write(json.dumps({"text": text}) + "\n")
        with open(self.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(DATA.format(name=name))
        return self.path(name + ".toml")

    def train(self, package, data, *flags):
        out = self.path("out.safetensors")
        done = harness.run_tool("tcc-run", "train", self.path(package + ".tcc"), "--data", data,
                                "--export", out, *flags)  # fmt: skip
        assert done.code == 0, done.err
        return load_file(out)

    def refuse(self, name, code, said, *command):
        done = harness.run_tool(*command)
        self.tally.check(f"{name}: refused", done.code == code and said in done.err, f"{done.code}: {done.err}")


def test_sizes(suite):
    with open(f"{FIXTURES}/verse_lengths.json", encoding="utf-8") as file:
        lengths = {int(length): count for length, count in json.load(file).items()}
    suite.random = np.random.default_rng(5)
    name = suite.write("verses", [length for length, count in lengths.items() for _ in range(count)])
    for count in (1, 4, 6, 8, 12):
        found = json.loads(harness.call("tcc-run", "data", "sizes", name, "--input", "tokens", "--count",
                                        count, "--numbers", 4096, "--json"))  # fmt: skip
        best = find_optimum(lengths, count)
        is_least = len(found["sizes"]) == count and abs(found["padding"] - best) < 1e-9
        suite.tally.check(f"{count} sizes pad least", is_least, f"{found['padding']}, {best}")
    suite.tally.check("12 sizes pad 8 % or less", found["padding"] <= 0.08, found["padding"])
    rows = found["sizes"]
    suite.tally.check("all samples have a size", sum(row["samples"] for row in rows) == sum(lengths.values()))
    fit = all(row["batch"] == max(4096 // row["size"], 1) for row in rows)
    suite.tally.check("batches of as many numbers", fit, rows)
    found = json.loads(harness.call("tcc-run", "data", "sizes", name, "--input", "tokens", "--count", 4,
                                    "--multiple", 64, "--json"))  # fmt: skip
    suite.tally.check("multiples", all(row["size"] % 64 == 0 for row in found["sizes"]), found)


def list_lengths(random, *, most=max(SIZES)):
    """A batch for each variant."""
    lengths, low = [], 1
    for size, batch in zip(SIZES, BATCHES):
        lengths += list(random.integers(low, min(size, most) + 1, batch))
        low = size + 1
    return lengths


def test_gradients(suite):
    lengths = list_lengths(suite.random)
    mixed = suite.write("mixed", lengths)
    ours = suite.train("all", mixed, "--steps", 1, "--set", f"accumulate={len(SIZES)}")
    whole = suite.train("padded", mixed, "--steps", 1)
    off = max(ranks.distance(ours[name], value) for name, value in whole.items())
    suite.tally.check("an update from all sizes", off < 1e-10, off)


def test_runs(suite):
    """Over an interruption, by threads that read ahead, and by two ranks."""
    data = suite.write("many", [length for _ in range(6) for length in list_lengths(suite.random)])
    whole = suite.train("all", data, "--steps", 30, "--set", "data.workers=0")
    place = suite.path("runs")
    suite.train("all", data, "--steps", 13, "--checkpoint-dir", place)
    resumed = suite.train("all", data, "--steps", 30, "--checkpoint-dir", place, "--resume", "--set",
                          "data.workers=2")  # fmt: skip
    same = all(np.array_equal(resumed[name], value) for name, value in whole.items())
    suite.tally.check("goes on to the bit", same)
    with open(suite.path("many.jsonl"), encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    write_tar(suite.path("many.tar"), [(f"{i:04}", {"text": text.encode()}) for i, text in enumerate(texts)])
    with open(suite.path("many.csv"), "w", encoding="utf-8") as file:
        file.write("\n".join(["text", *texts]) + "\n")
    records.MdsFolder(suite.path("mds"), [("text", "str", None)], 40).write([(text.encode(),) for text in texts])
    for source in ("webdataset:" + suite.path("many.tar"), "csv:" + suite.path("many.csv"),
                   "mds:" + suite.path("mds")):  # fmt: skip
        ours = suite.train("all", data, "--steps", 30, "--set", "data.source=" + source)
        same = all(np.array_equal(ours[name], value) for name, value in whole.items())
        suite.tally.check(f"{source.partition(':')[0]}: the same weights", same)
    if os.path.exists(f"{harness.BIN}/libtcc_gloo.so"):
        alone = suite.train("all", data, "--steps", 8, "--set", "accumulate=2")
        both = suite.train("all", data, "--steps", 8, "--ranks", 2)
        off = max(ranks.distance(both[name], value) for name, value in alone.items())
        suite.tally.check("two ranks of other sizes", off < 1e-12, off)
    else:
        suite.tally.skipped += 1
    evaluated = json.loads(harness.call("tcc-run", "eval", suite.path("all.tcc"), "--data", data, "--json"))
    single = json.loads(harness.call("tcc-run", "eval", suite.path("padded.tcc"), "--data", data, "--json"))
    same = evaluated["samples"] == single["samples"] and abs(evaluated["loss"] - single["loss"]) < 1e-12
    suite.tally.check("an evaluation", same, (evaluated, single))


def test_batches(suite):
    """By the C API: an epoch has each sample once, what no sample has is padding."""
    lengths = [*suite.random.integers(1, max(SIZES) + 1, 97)]
    data = suite.write("ledger", lengths)
    with open(suite.path("ledger.jsonl"), encoding="utf-8") as file:
        texts = [json.loads(line)["text"] for line in file]
    variants = list(zip(BATCHES, SIZES))
    tensors = [describe("tokens", "int64", variants[0], False, 0, variants=variants),
               describe("labels", "int64", variants[0], True, 1, -100, variants=variants),
               describe("mask", "float32", variants[0], variants=variants)]  # fmt: skip
    loader = Loader(data, tensors, "workers=1", "pad={tokens=7}", "train.mask=['mask tokens']")
    count = loader.library.lib.tcc_loader_batches_per_epoch(loader.handle)
    orders, seen = [], collections.Counter()
    for number in range(2 * count):
        loader.read(number)
        tokens, labels, masks = loader.arrays()
        orders.append(tokens.shape)
        is_right = tokens.shape in variants and labels.shape == tokens.shape
        for row, target, mask in zip(tokens, labels, masks):
            length = len(row) - list(row[::-1] != 7).index(True)
            text = bytes(row[:length].astype("u1")).decode()
            seen[text] += 1
            wanted = [*row[1:length], *[-100] * (len(row) - length + 1)]
            is_right = is_right and (row[length:] == 7).all() and list(target) == wanted
            is_right = is_right and list(mask) == [1] * length + [0] * (len(row) - length)
        suite.tally.check(f"batch {number}", is_right, (tokens, labels))
    expected = collections.Counter(texts)
    left_out = sum(expected.values()) - sum(seen.values()) / 2
    suite.tally.check("no sample is twice in an epoch", all(seen[text] <= 2 * expected[text] for text in seen))
    suite.tally.check("few are left out", 0 <= left_out < BATCHES[-1], left_out)
    suite.tally.check("batches of all sizes are mixed", len(set(orders[:8])) > 1, orders)
    suite.tally.check("epochs differ", orders[:count] != orders[count:], orders)
    loader.close()


def test_programs(suite):
    """The C++ API gives the parameters of tcc-run, also of samples of its own."""
    if harness.TARGET != "cpu":
        return
    with open(suite.path("own.jsonl"), "w", encoding="utf-8") as file:
        for number in range(60):
            file.write(json.dumps({"text": [number] * (number % max(SIZES) + 1)}) + "\n")
    own = suite.path("own.toml")
    with open(own, "w", encoding="utf-8") as file:
        file.write('[data]\nsource = "jsonl:own.jsonl"\nmap = {tokens = "text"}\n')
    for data, given in (suite.path("many.toml"), suite.path("many.toml")), (own, "texts"):
        expected = suite.train("all", data, "--steps", 9, "--seed", 3)
        done = subprocess.run([suite.program, suite.path("all.tcc"), given, "9", "3", suite.path("api.safetensors")],
                              capture_output=True, text=True)  # fmt: skip
        ours = load_file(suite.path("api.safetensors")) if done.returncode == 0 else {}
        same = ours.keys() == expected.keys() and all(np.array_equal(ours[name], expected[name]) for name in ours)
        suite.tally.check(f"{os.path.basename(given)} by the API", same, done.stderr)


def test_models(suite):
    """Inference at each size, to the bits of a package of that size alone."""
    harness.call("tcc", suite.path("decoder.onnx"), "-q", "-o", suite.path("model.tcc"),
                 *suite.dims(BATCHES, SIZES))  # fmt: skip
    for batch, size in zip(BATCHES, SIZES):
        harness.call("tcc", suite.path("decoder.onnx"), "-q", "-o", suite.path("alone.tcc"),
                     *suite.dims([batch], [size]))  # fmt: skip
        np.save(suite.path("tokens.npy"), suite.random.integers(0, 256, (batch, size)))
        results = []
        for package in "model", "alone":
            harness.call("tcc-run", "run", suite.path(package + ".tcc"), "--input",
                         "tokens=" + suite.path("tokens.npy"), "--output-dir", suite.path(package))  # fmt: skip
            results.append(np.load(suite.path(f"{package}/output_0.npy")))
        suite.tally.check(f"the model at size {size}", np.array_equal(*results))
    # Of the last size.
    schedule = harness.SCHEDULES[harness.TARGET][0]
    done = harness.run_tool("tcc-run", "compare", suite.path("model.tcc"), "--model", suite.path("decoder.onnx"),
                            "--input", "tokens=" + suite.path("tokens.npy"),
                            *(["--device", schedule] if schedule else []))  # fmt: skip
    suite.tally.check("compare", done.code == 0 and "1 outputs agree" in done.out, done.err + done.out)


def test_refusals(suite):
    model, package = suite.path("decoder.onnx"), suite.path("all.tcc")
    out = ["-o", suite.path("no.tcc")]
    suite.refuse("lists of other lengths", 2, "'batch' has 2 sizes and 'seq' 3: lists are paired by place",
                 "tcc", model, *suite.dims([2, 1], SIZES), *out)  # fmt: skip
    suite.refuse("sizes twice", 2, "two variants of the program have the same sizes",
                 "tcc", model, *suite.dims([2, 1, 2], [8, 8, 8]), *out)  # fmt: skip
    suite.refuse("no size", 2, "expected NAME=N", "tcc", model, *suite.dims([2, 1], ["8", ""]), *out)
    long = suite.write("long", [3] * 20 + [max(SIZES) + 1])
    train = ["tcc-run", "train", package, "--steps", "2", "--data"]
    suite.refuse("a sample that is too long", 3, "sample 20: it has 33 numbers for 'tokens'", *train, long)
    skipped = harness.run_tool(*train, long, "--set", "data.on_bad=skip", "--json")
    is_right = skipped.code == 0 and json.loads(skipped.out)["skipped_samples"] == 1
    suite.tally.check("a sample that is skipped", is_right, skipped.err)
    cut = harness.run_tool(*train, long, "--set", "data.train.tokens=['bytes', 'truncate']")
    suite.tally.check("a sample that is cut", cut.code == 0, cut.err)
    np.savez(suite.path("data.npz"), tokens=np.zeros((9, 32), "i8"), labels=np.zeros((9, 32), "i8"))
    suite.refuse("arrays", 2, "samples of these data are all of one", *train, "npz:" + suite.path("data.npz"))
    weights = ["--set", f"data.source=['jsonl:{suite.path('many.jsonl')}', 'jsonl:{suite.path('long.jsonl')}']",
               "--set", "data.weights=[1, 2]"]  # fmt: skip
    suite.refuse("weights of sources", 2, "data.weights and data.balance", *train, long, *weights)
    bad = ["--set", "data.train.tokens=['bytes', 'flip']"]
    suite.refuse("another transform", 2, "'flip' is no transform of numbers", *train, long, *bad)
    damaged = suite.write("damaged", [3] * 20)
    with open(suite.path("damaged.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"text": 1\n')
    suite.refuse("a mask of nothing", 2, "'labels' is a mask of 'text', which is no other input of numbers", *train,
                 damaged, "--set", "data.train.labels=mask text")  # fmt: skip
    suite.refuse("a damaged sample", 3, "sample 20: it is no object of JSON", *train, damaged)
    np.save(suite.path("odd.npy"), np.zeros((3, 8), "i8"))
    suite.refuse("a batch of no size", 2, "is 3x8, expected 8x8", "tcc-run", "run", suite.path("model.tcc"),
                 "--input", "tokens=" + suite.path("odd.npy"))  # fmt: skip
    suite.refuse("no variant", 2, "no entry 'main.3'", "tcc-run", "bench", suite.path("model.tcc"), "--variant",
                 "3")  # fmt: skip


def main(program):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder, program)
        for test in (test_sizes, test_gradients, test_runs, test_batches, test_programs, test_models,
                     test_refusals):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
