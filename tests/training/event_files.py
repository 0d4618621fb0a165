"""Event files for TensorBoard: event_files.py [--tensorboard]

They are read strictly (event_reader.py) and compared with metrics.jsonl, number by number,
and with the parameters: of a run that is left alone, one that makes updates again, one that
is killed, one whose disk is full, and one of two ranks. With --tensorboard TensorBoard's own
readers must find the same in them, also behind a file that is cut anywhere.
"""

import json
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file

import harness
from event_reader import Run
from processes import ENVIRONMENT, die_with_parent, wait_until
from training import cases

RECIPE = """
seed = 3
[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.001
[batch]
micro = 16
[eval]
metrics = ["accuracy", "confusion"]
"""
FIXTURES = cases.FIXTURES
DATA = "npz:" + os.path.join(FIXTURES, "digits.npz")
# The group of each key of metrics.jsonl.
GROUPS = {
    "loss": "train", "lr": "train", "grad_norm": "train", "loss_scale": "train",
    "skipped": "train", "spike": "train", "samples_per_s": "speed", "update_s": "speed", "stall_s": "speed",
    "data_wait_s": "speed", "tokens_per_s": "speed", "mfu": "speed", "exposed_communication_s": "speed",
    "resident_bytes": "memory",
}  # fmt: skip


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        self.folders = []  # of event files
        self.compile("train", RECIPE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, what, ok, found=""):
        self.tally.check(what, bool(ok), str(found))

    def compile(self, name, recipe, code=0, says=""):
        with open(self.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(recipe)
        done = harness.run_tool("tcc", os.path.join(FIXTURES, "mlp_digits.onnx"), "-q",
                                f"--train={self.path(name)}.toml", "-o", self.path(name + ".tcc"))  # fmt: skip
        self.check(f"compiling {name}", done.code == code and says in done.err, f"{done.code}: {done.err}")

    def list_words(self, *words, package="train.tcc"):
        data = () if "--data" in words else ("--data", DATA)
        return ["train", self.path(package), *data, "--threads", 1, *words]

    def train(self, *words, code=0, package="train.tcc", **options):
        words = self.list_words(*words, package=package)
        done = harness.run_tool("tcc-run", *words, env=ENVIRONMENT, **options)
        self.check(" ".join(map(str, words)), done.code == code, f"{done.code}: {done.err}")
        return done

    def read_lines(self, name):
        """Of each update what the log said of it last."""
        rows = {}
        with open(self.path(name), encoding="utf-8") as file:
            for line in file:
                row = json.loads(line)
                if "loss" in row:
                    rows[row["step"]] = row
                else:
                    rows[row["step"]] |= row
        return rows

    def read(self, name):
        folder = self.path(name)
        if folder not in self.folders:
            self.folders.append(folder)
        return Run(folder)

    def compare(self, what, run, rows):
        """Each number of the log is a value of its update, and no other is."""
        expected = {}
        for step, row in rows.items():
            numbers = {f"{GROUPS[key]}/{key}": value for key, value in row.items() if key in GROUPS}
            numbers |= {f"eval/{key}": value for key, value in row.get("eval", {}).items()
                        if not isinstance(value, list)}  # fmt: skip
            for tag, value in numbers.items():
                expected.setdefault(tag, {})[step] = np.float32(value)
        kinds = {group + "/" for group in (*GROUPS.values(), "eval")}
        found = {tag: values for tag, values in run.values.items()
                 if values and tag[: tag.find("/") + 1] in kinds}  # fmt: skip
        self.check(f"{what}: tags", found.keys() == expected.keys(), (sorted(found), sorted(expected)))
        for tag, values in expected.items():
            self.check(f"{what}: {tag}", found.get(tag) == values, (found.get(tag), values))


def test_run(suite):
    """One that is left alone, and then goes on from an earlier checkpoint."""
    begin = ("--run", "run", "--steps", 20, "--checkpoint-every", 5, "--tensorboard", "tb",
             "--tensorboard-histograms", 10, "--set", "eval.data=" + DATA, "--set",
             "eval.every=4")  # fmt: skip
    suite.train(*begin, cwd=suite.folder)
    run = suite.read("tb")
    rows = suite.read_lines("run/metrics.jsonl")
    suite.check("updates", run.updates == list(range(1, 21)), run.updates)
    suite.check("whole", run.torn == 0 and len(run.names) == 1, run.names)
    suite.compare("run", run, rows)
    suite.check("evaluations", sorted(run.values["eval/accuracy"]) == [4, 8, 12, 16, 20])
    texts = {tag: run.values[f"run/{tag}"].get(0, "") for tag in ("command", "recipe", "package")}
    suite.check("command", "train.tcc --data npz:" in texts["command"], texts)
    ok = "optimizer.kind = adamw\n" in texts["recipe"] and "lr = 0.001\n" in texts["recipe"]
    suite.check("recipe", ok, texts)
    info = harness.call("tcc-run", "info", suite.path("train.tcc")).splitlines()
    lines = texts["package"].splitlines()
    suite.check("package", lines[1:3] == info[:2] and set(lines[1:-1]) <= set(info), texts)
    test_parameters(suite, run)
    # The flags are taken from the record, and files are where they were.
    shutil.rmtree(suite.path("run/checkpoints/step-20"))
    suite.train("--run", suite.path("run"), "--resume", "--steps", 25, cwd="/")
    run = suite.read("tb")
    suite.check("made again", run.updates == [*range(1, 21), *range(16, 26)], run.updates)
    suite.check("two files", len(run.names) == 2, run.names)
    suite.compare("resumed", run, suite.read_lines("run/metrics.jsonl"))
    suite.check("texts", sorted(run.values["run/command"]) == [0, 15])


def test_parameters(suite, run):
    tensors = load_file(suite.path("run/checkpoints/step-20/state.safetensors"))
    names = [tag.split("/", 1)[1] for tag in run.values if tag.startswith("parameter/")]
    suite.check("parameters", len(names) == 6 and set(names) <= set(tensors), names)
    for name in names:
        values = tensors[name].astype("f8").ravel()
        steps = sorted(run.values[f"parameter/{name}"])
        suite.check(f"{name}: steps", steps == [10, 20] == sorted(run.values[f"norm/{name}"]), steps)
        norm = run.values[f"norm/{name}"][20]
        suite.check(f"{name}: norm", abs(norm / np.linalg.norm(values) - 1) < 1e-6, norm)
        counts, edges = np.histogram(values, 30, (values.min(), values.max()))
        table = run.values[f"parameter/{name}"][20]
        ok = np.allclose(table[:, 0], edges[:-1]) and np.allclose(table[:, 1], edges[1:])
        # An element at an edge may be on either side of it.
        off = np.abs(np.cumsum(table[:, 2]) - np.cumsum(counts)).max()
        suite.check(f"{name}: buckets", ok and off <= 1, (table, counts))
        suite.check(f"{name}: count", table[:, 2].sum() == values.size, table[:, 2].sum())


def test_gradient_norms(suite):
    """With a rate of 1 the gradient is what a parameter has less after an update."""
    clip, steps = 0.01, range(2, 5)
    recipe = (
        'loss.kind = "cross_entropy"\noptimizer = {kind = "sgd", lr = 1.0}\n'
        f"batch = {{micro = 16, accumulate = 2, clip_norm = {clip}}}\nnumerics.grad_norms = true\n"
    )
    suite.compile("norms", recipe)
    folder = suite.path("norms")
    suite.train("--run", folder, "--steps", steps[-1], "--checkpoint-every", 1, "--tensorboard",
                folder + "-tb", "--tensorboard-histograms", 1, package="norms.tcc")  # fmt: skip
    run = suite.read("norms-tb")
    states = {step: load_file(f"{folder}/checkpoints/step-{step}/state.safetensors")
              for step in (steps[0] - 1, *steps)}  # fmt: skip
    names = [tag.removeprefix("parameter/") for tag in run.values if tag.startswith("parameter/")]
    found = {tag.removeprefix("grad_norm/") for tag in run.values if tag.startswith("grad_norm/")}
    suite.check("norms of gradients", found == set(names) and len(names) == 6, (found, names))
    for step in steps:
        norm = run.values["train/grad_norm"][step]
        parts = [run.values[f"grad_norm/{name}"][step] for name in names]
        suite.check("all together", abs(np.linalg.norm(parts) / norm - 1) < 1e-5, (parts, norm))
        for name, part in zip(names, parts, strict=True):
            change = states[step - 1][name].astype("f8") - states[step][name]
            whole = np.linalg.norm(change) * (norm + 1e-6) / clip
            suite.check(f"{name}: norm of the gradient", abs(part / whole - 1) < 1e-3, (part, whole))
    suite.compile("parts", recipe + "parallel = {data = 2, zero = 1}\n", code=4,
                  says="numerics.grad_norms with parallel.zero = 1")  # fmt: skip


def test_anew(suite):
    """What a folder has of another run is void."""
    suite.train("--steps", 9, "--log-dir", suite.path("log1"), "--tensorboard", suite.path("anew"))
    suite.train("--steps", 3, "--log-dir", suite.path("log2"), "--tensorboard", suite.path("anew"))
    run = suite.read("anew")
    suite.compare("anew", run, suite.read_lines("log2/metrics.jsonl"))
    suite.check("one text", len(run.values["run/recipe"]) == 1)


def test_spike(suite):
    """What is made again in one process, from the copy of the state after update 30."""
    with np.load(os.path.join(FIXTURES, "digits.npz")) as file:
        arrays = dict(file)
    arrays["x"][16 * 29 : 16 * 30] *= 1e4
    np.savez(suite.path("spike.npz"), **arrays)
    done = suite.train("--steps", 36, "--no-shuffle", "--data", "npz:" + suite.path("spike.npz"), "--set",
                       "spike_z=6", "--set", "rollback_every=20", "--log-dir",
                       suite.path("spike-log"), "--tensorboard", suite.path("spike"))  # fmt: skip
    run = suite.read("spike")
    expected = [*range(1, 31), *range(21, 37)]
    suite.check("a spike", run.updates == expected, (run.updates, done.err))
    suite.compare("spike", run, suite.read_lines("spike-log/metrics.jsonl"))


def test_kills(suite):
    """SIGKILL loses no update that was written before it, and what it tears no reader sees."""
    folder, generator = suite.path("killed"), random.Random(5)
    updates = lines = 0
    for number in range(4):
        words = suite.list_words("--run", folder, "--tensorboard", folder + "-tb", "--steps", 10**9, "-q",
                                 "--checkpoint-every", 50, "--resume-if-any")  # fmt: skip
        log = f"{folder}/metrics.jsonl"
        size = os.path.getsize(log) if number else 0
        process = subprocess.Popen([os.path.join(harness.BIN, "tcc-run"), *map(str, words)],
                                   env=ENVIRONMENT, preexec_fn=die_with_parent,
                                   stderr=subprocess.DEVNULL)  # fmt: skip
        more = size + generator.randrange(1000, 100000)
        wait_until(lambda: os.path.exists(log) and os.path.getsize(log) > more)
        process.send_signal(signal.SIGKILL)
        suite.check("killed", process.wait(timeout=20) == -signal.SIGKILL, process.returncode)
        run = suite.read("killed-tb")
        with open(log, encoding="utf-8") as file:
            logged = [json.loads(line)["step"] for line in file if line.endswith("\n")]
        # The update that the process was killed in may have a line, and no event yet.
        ours, theirs = run.updates[updates:], logged[lines:]
        ok = ours in (theirs, theirs[:-1]) and len(theirs) > 2
        suite.check("updates", ok, (ours[-3:], theirs[-3:]))
        suite.check("one file each", len(run.names) == number + 1, run.names)
        updates, lines = len(run.updates), len(logged)


def test_full_disk(suite):
    """Training goes on; it is said once, and at the end what is lost."""

    def limit():
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))

    done = suite.train("--steps", 100, "--tensorboard", suite.path("full"), preexec_fn=limit)
    warnings = [line for line in done.err.splitlines() if "full/events" in line]
    suite.check("said once", len(warnings) == 2, done.err)
    suite.check("said", "cannot write" in warnings[0] and "records: " in warnings[1], done.err)
    run = suite.read("full")
    ok = run.updates == list(range(1, len(run.updates) + 1)) and 5 < len(run.updates) < 100
    suite.check("what there was room for", ok, run.updates)
    lost = int(warnings[1].split(" lacks ")[1].split()[0])
    suite.check("what is lost", lost == 100 - len(run.updates), (lost, len(run.updates)))


def test_ranks(suite):
    """Rank 0 writes; all pause for the histograms."""
    suite.train("--steps", 12, "--ranks", 2, "--tensorboard", suite.path("ranks"),
                "--tensorboard-histograms", 3, "--log-dir", suite.path("ranks-log"))  # fmt: skip
    run = suite.read("ranks")
    suite.check("one file", len(run.names) == 1, run.names)
    suite.compare("ranks", run, suite.read_lines("ranks-log/metrics.jsonl"))
    suite.check("exposed", len(run.values["speed/exposed_communication_s"]) == 12)
    suite.check("histograms", sorted(run.values["norm/0.weight"]) == [3, 6, 9, 12])


def test_problems(suite):
    for words, says in (
        (("--tensorboard-histograms", 3), "--tensorboard-histograms requires --tensorboard"),
        (("--tensorboard", "t", "--tensorboard-histograms", 0), "must be a whole number, at least 1"),
        (("--tensorboard", "t", "--find-lr"), "excludes"),
        (("--tensorboard", ""), "--tensorboard: is '', expected a value"),
        (("--trace", ""), "--trace: is '', expected a value"),
    ):
        done = suite.train("--steps", 2, *words, code=2, cwd=suite.folder)
        suite.check("says", says in done.err, done.err)
    done = suite.train("--steps", 2, "--tensorboard", suite.path("train.tcc/tb"), code=5)
    suite.check("no folder", "train.tcc/tb" in done.err, done.err)


def main(*arguments):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        for test in (test_run, test_gradient_norms, test_anew, test_spike, test_kills, test_full_disk, test_ranks,
                     test_problems):  # fmt: skip
            test(suite)
        if "--tensorboard" in arguments:
            import tensorboard_readers

            tensorboard_readers.test(suite, folder)
    tally.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
