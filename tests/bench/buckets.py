"""Training on texts of many lengths by variants of several sizes: buckets.py
       [--count N] [--numbers N] [--rounds N] [--threads N] [--layers N] [--width N] [--json FILE]

The lengths are those of tests/training/fixtures/verse_lengths.json; sizes are what `tcc-run data
sizes` finds for batches of about as many numbers. Beside it the same texts, all filled up to the
largest size: tokens of texts a second, in turns. Then a step of each variant beside that of a
package of its size alone, in turns: what sharing a package costs.
"""

import argparse
import json
import os
import statistics
import tempfile
import time

import numpy as np
import onnx

import harness
from spine import capi
from spine.loaders import Loader, describe
from training import decoder

RECIPE = """[loss]
kind = "causal_lm"
target = "labels"

[optimizer]
kind = "adamw"
lr = 1e-3
"""
DATA = """[data]
source = "jsonl:texts.jsonl"
map = {tokens = "text"}
[data.train]
tokens = ["bytes"]
"""
LENGTHS = os.path.join(harness.ROOT, "tests/training/fixtures/verse_lengths.json")
IGNORED = -100


class Bench:
    def __init__(self, folder, options):
        self.folder, self.options = folder, options
        with open(LENGTHS, encoding="utf-8") as file:
            lengths = {int(length): count for length, count in json.load(file).items()}
        random = np.random.default_rng(0)
        with open(self.path("texts.jsonl"), "w", encoding="utf-8") as file:
            for length, count in lengths.items():
                for _ in range(count):
                    text = random.integers(97, 123, length, "u1").tobytes().decode()
                    file.write(json.dumps({"text": text}) + "\n")
        for name, text in ("recipe.toml", RECIPE), ("data.toml", DATA):
            with open(self.path(name), "w", encoding="utf-8") as file:
                file.write(text)
        model = decoder.make(options.layers, options.width, max(lengths))
        onnx.save(model, self.path("model.onnx"))
        self.library = capi.Library(os.path.join(harness.BIN, "../runtime/libtcc_runtime.so"))

    def path(self, name):
        return os.path.join(self.folder, name)

    def find_sizes(self, count):
        found = harness.call("tcc-run", "data", "sizes", self.path("data.toml"), "--input", "tokens",
                             "--count", count, "--numbers", self.options.numbers, "--json")  # fmt: skip
        return json.loads(found)

    def compile(self, name, variants):
        start = time.monotonic()
        batches, sizes = (",".join(map(str, each)) for each in zip(*variants))
        harness.call("tcc", self.path("model.onnx"), "--train=" + self.path("recipe.toml"), "-q",
                     "--threads", self.options.threads, f"--dim=batch={batches}", f"--dim=seq={sizes}", "-o",
                     self.path(name), timeout=3600)  # fmt: skip
        return time.monotonic() - start

    def open(self, name):
        program = self.library.open(self.path(name))
        return capi.Session(self.library, program, self.options.threads)


class Run:
    """Training with batches of the variants of a package."""

    def __init__(self, bench, name, variants):
        self.seconds = bench.compile(name, variants)
        self.session = bench.open(name)
        tensors = [describe("tokens", "int64", variants[0], False, 0, variants=variants),
                   describe("labels", "int64", variants[0], True, 1, IGNORED, variants=variants)]  # fmt: skip
        self.loader = Loader(bench.path("data.toml"), tensors, "workers=0")
        self.number = 0

    def read(self):
        self.loader.read(self.number)
        self.number += 1
        return [np.array(array) for array in self.loader.arrays()]

    def measure(self, batches):
        """Tokens of texts a second."""
        tokens, seconds = 0, 0
        for _ in range(batches):
            arrays = self.read()
            start = time.perf_counter()
            self.session.step(*arrays)
            seconds += time.perf_counter() - start
            tokens += int((arrays[1] != IGNORED).sum()) + len(arrays[1])
        return tokens / seconds


def compare_rates(bench, variants):
    """Runs of all sizes and of the largest alone, in turns."""
    longest = max(size for _, size in variants)
    runs = {
        "all sizes": Run(bench, "all.tcc", variants),
        "the largest": Run(bench, "padded.tcc", [(max(bench.options.numbers // longest, 1), longest)]),
    }
    for run in runs.values():
        run.measure(len(variants))
    rates = {name: [] for name in runs}
    for _ in range(bench.options.rounds):
        for name, run in runs.items():
            rates[name].append(run.measure(30))
    medians = {name: statistics.median(values) for name, values in rates.items()}
    ratio = statistics.median(a / b for a, b in zip(*rates.values()))
    print(f"tokens/s: {medians['all sizes']:.0f} with {len(variants)} sizes, {medians['the largest']:.0f} "
          f"with one, {ratio:.2f} times; compiled in {runs['all sizes'].seconds:.0f} s and "
          f"{runs['the largest'].seconds:.0f} s", flush=True)  # fmt: skip
    return runs["all sizes"].session, {"rates": medians, "ratio": ratio}


def compare_steps(bench, session, variants):
    """A step of each variant and of a package of its own, in turns."""
    rows = []
    random = np.random.default_rng(1)
    for batch, size in variants:
        bench.compile("static.tcc", [(batch, size)])
        alone = bench.open("static.tcc")
        arrays = [random.integers(0, 256, (batch, size)) for _ in range(2)]
        times = {"shared": [], "alone": []}
        for turn in range(3 + bench.options.rounds * 8):
            for name, each in ("shared", session), ("alone", alone):
                start = time.perf_counter()
                each.step(*arrays)
                if turn >= 3:
                    times[name].append(time.perf_counter() - start)
        shared, own = (statistics.median(each) for each in times.values())
        ratio = statistics.median(a / b for a, b in zip(*times.values()))
        rows.append({"batch": batch, "size": size, "shared_s": shared, "alone_s": own, "ratio": ratio})
        print(f"{batch} x {size}: {1e3 * shared:.2f} ms, alone {1e3 * own:.2f} ms, {ratio:.3f}", flush=True)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--count", type=int, default=12)
    parser.add_argument("--numbers", type=int, default=4096)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--layers", type=int, default=2)
    parser.add_argument("--width", type=int, default=128)
    parser.add_argument("--json", default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        bench = Bench(folder, options)
        found = bench.find_sizes(options.count)
        variants = [(row["batch"], row["size"]) for row in found["sizes"]]
        print(f"padding {100 * found['padding']:.1f} % with {len(variants)} sizes", flush=True)
        session, results = compare_rates(bench, variants)
        results.update(padding=found["padding"], steps=compare_steps(bench, session, variants))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump(results, file, indent=1)


if __name__ == "__main__":
    main()
