"""Times of profiles, by other clocks: profile_times.py

Of five models the parts of `tcc-run train --profile` are as long together as the updates are by
metrics.jsonl, which does not count itself, and kernels take the shares of each other that perf
finds by sampling. What looking at a run costs it is said. The machine is used by others, too: what differs is tried again.
"""

import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import tempfile

import harness
from processes import ENVIRONMENT
from training import cases

TRIES = 4
WITHIN = 0.03  # of an update
SECONDS = 4  # of a run
WARMUP = 2  # updates that are in no profile
# Samples of perf in a second, and how much of all time may be in other kernels than it says.
FREQUENCY, ELSEWHERE = 5000, 0.05


class Workload:
    def __init__(self, tally, folder, name):
        self.tally, self.folder, self.name = tally, folder, name
        self.model = cases.MODELS[name]
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(cases.recipe(name, "adamw", "f32") + f"[batch]\nmicro = {self.model.batch}\n")
        harness.call("tcc", f"{cases.FIXTURES}/{name}.onnx", "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip
        _, first = self.train(100)
        self.updates = max(100, int(SECONDS / statistics.median(first)))

    def path(self, name):
        return os.path.join(self.folder, name)

    def list_words(self, updates, *flags):
        return ["train", self.path("train.tcc"), "--data", f"npz:{cases.FIXTURES}/{self.model.data}.npz",
                "--steps", updates, "--threads", 1, "-q", "--json", *flags]  # fmt: skip

    def train(self, updates, *flags):
        """The result, and the seconds of each update."""
        words = self.list_words(updates, "--log-dir", self.path("log"), *flags)
        result = json.loads(harness.call("tcc-run", *words))
        with open(self.path("log/metrics.jsonl"), encoding="utf-8") as file:
            return result, [json.loads(line)["update_s"] for line in file]

    def compare(self, what, measure):
        """`measure` returns what is off by more than it may be, or ''."""
        for _ in range(TRIES):
            problem = measure()
            if not problem:
                break
        self.tally.check(f"{self.name}: {what}", not problem, problem)

    def measure_sum(self):
        result, seconds = self.train(self.updates, "--profile")
        seconds = seconds[WARMUP:]
        parts = result["profile"]["parts_ms"]
        total = (sum(parts.values()) - parts["logs"]) / 1e3
        mean = statistics.fmean(seconds)
        if abs(total / mean - 1) > WITHIN:
            return f"parts {total}, updates {mean}"
        _, alone = self.train(self.updates)
        ratio = statistics.median(seconds) / statistics.median(alone)
        print(f"{self.name}: parts / updates {total / mean:.3f}, with the profile / without {ratio:.3f}")
        return ""

    def sample(self):
        """The share of all kernels' time in each, by perf and by the profile."""
        data = self.path("perf.data")
        words = self.list_words(self.updates, "--symbols", "--profile")
        out = subprocess.run(
            ["perf", "record", "-q", "-e", "cpu-clock", "-F", str(FREQUENCY), "-o", data, "--",
             os.path.join(harness.BIN, "tcc-run"), *map(str, words)],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=ENVIRONMENT, check=True,
        )  # fmt: skip
        times = collections.Counter()
        for row in json.loads(out.stdout)["profile"]["profile"]:
            times[row["kernel"]] += row["ms"]
        report = subprocess.run(
            ["perf", "report", "-i", data, "--stdio", "--sort", "symbol", "-F", "sample,symbol"],
            stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, check=True,
        )  # fmt: skip
        process = re.search(r"/tmp/tcc-(\d+)\.so", out.stderr)[1]
        for symbols in (f"/tmp/tcc-{process}.so", f"/tmp/perf-{process}.map"):
            os.remove(symbols)
        samples = collections.Counter()
        for line in report.stdout.splitlines():
            row = re.match(r"\s*(\d+)\s+\[\.\]\s+(\S+)", line)
            if row and row[2] in times:
                samples[row[2]] += int(row[1])
        return normalize(samples), normalize(times)

    def measure_shares(self):
        by_perf, by_profile = self.sample()
        off = {name: by_perf[name] - by_profile[name] for name in by_perf | by_profile}
        elsewhere = sum(map(abs, off.values())) / 2
        print(f"{self.name}: {elsewhere:.4f} of the time is in other kernels by perf")
        return str(off) if elsewhere > ELSEWHERE else ""


def normalize(counts):
    total = sum(counts.values()) or 1
    return collections.Counter({name: count / total for name, count in counts.items()})


def has_perf():
    """Whether it is there, and may sample processes of this user."""
    if not shutil.which("perf"):
        return False
    with tempfile.NamedTemporaryFile() as file:
        tried = subprocess.run(["perf", "record", "-q", "-e", "cpu-clock", "-o", file.name, "true"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)  # fmt: skip
        return tried.returncode == 0


def main():
    tally, samples = harness.Tally(), has_perf()
    for name in cases.MODELS:
        with tempfile.TemporaryDirectory() as folder:
            workload = Workload(tally, folder, name)
            workload.compare("the parts are the update", workload.measure_sum)
            if samples:
                workload.compare("shares as perf finds them", workload.measure_shares)
    if not samples:
        print("perf: not available")
    tally.close()


if __name__ == "__main__":
    main()
