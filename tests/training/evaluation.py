"""Evaluations while training, compared with PyTorch's: evaluation.py

Metrics of parameters and of their running means after every few updates, in f64; the
best one, patience, and the checkpoints that are kept; the same over an interruption,
by several ranks, and by `tcc-run eval`.
"""

import collections
import json
import os
import sys
import tempfile

import numpy as np
from safetensors.numpy import load_file

import harness
from training import cases

FIXTURE = os.path.join(cases.FIXTURES, "evaluations.json")
STEPS, EVERY, EMA = 60, 5, 0.9
TOLERANCE = 1e-8

Case = collections.namedtuple("Case", "model kind data batch lr k metrics")
CLASSES = ["accuracy", "top3", "perplexity", "precision", "recall", "f1", "confusion"]
TOKENS = ["accuracy", "top5", "perplexity", "f1"]
CASES = {
    "classes": Case("mlp_digits", "cross_entropy", "digits", 16, 0.2, 3, CLASSES),
    "tokens": Case("gpt2_tiny", "causal_lm", "text", 4, 0.05, 5, TOKENS),
    "values": Case("mlp_digits", "mse", "digits", 16, 0.05, 0, ["mae", "mse", "rmse"]),
    "truths": Case("mlp_digits", "bce", "digits", 16, 0.05, 0,
                   ["accuracy", "precision", "recall", "f1"]),  # fmt: skip
}


def make_data(case):
    """What is trained on, and what is evaluated, which fills no last batch."""
    with np.load(os.path.join(cases.FIXTURES, case.data + ".npz")) as file:
        x, labels = file["x"], file["labels"]
    number = np.arange(10)
    if case.kind == "mse":
        labels = np.cos(np.outer(labels, number)).astype("f4")
    if case.kind == "bce":
        labels = ((labels[:, None] + number) % 3 == 0).astype("f4")
    if case.kind == "causal_lm":  # its batch is fixed, and all of it is there
        return [{"x": x, "labels": labels}] * 2
    kept = labels[7:].copy()
    if case.kind == "cross_entropy":
        kept[::9] = -100  # that count for nothing
    return {"x": x, "labels": labels}, {"x": x[7:], "labels": kept}


def recipe(case):
    metrics = ", ".join(f'"{name}"' for name in case.metrics)
    last = "drop" if case.kind == "causal_lm" else "pad"
    return f"""
[loss]
kind = "{case.kind}"
[optimizer]
kind = "sgd"
lr = {case.lr}
momentum = 0.9
[precision]
compute = "f64"
[batch]
last = "{last}"
[params]
ema = {EMA}
[eval]
every = {EVERY}
metrics = [{metrics}]
"""


class Suite:
    def __init__(self, tally, folder, name):
        self.tally, self.name, self.case = tally, name, CASES[name]
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        with open(FIXTURE, encoding="utf-8") as file:
            self.expected = json.load(file)[name]
        for key, arrays in zip(("train", "eval"), make_data(self.case), strict=True):
            np.savez(self.path(key + ".npz"), **arrays)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(recipe(self.case))
        flags = ["--dim", "batch=16"] if self.case.model == "mlp_digits" else []
        model = os.path.join(cases.FIXTURES, self.case.model + ".onnx")
        harness.call("tcc", model, "--train=" + self.path("recipe.toml"), "-q", *flags,
                     "-o", self.path("package.tcc"))  # fmt: skip

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, name, ok, message=""):
        return self.tally.check(f"{self.name}: {name}", ok, message)

    def train(self, folder, *flags, settings=(), steps=STEPS, code=0):
        """What it printed as JSON."""
        options = ["--data", "npz:" + self.path("train.npz"), "--no-shuffle", "--threads", 1,
                   "--steps", steps, "--checkpoint-dir", self.path(folder), "--log-dir",
                   self.path(folder), "--json"]  # fmt: skip
        for setting in ("data=npz:" + self.path("eval.npz"), *settings):
            options += ["--set", "eval." + setting]
        run = harness.run_tool("tcc-run", "train", self.path("package.tcc"), *options, *flags)
        self.check(f"train {' '.join(map(str, flags))}", run.code == code, f"{run.code}: {run.err}")
        return (json.loads(run.out) if run.code == 0 else None), run.err

    def evaluate(self, folder, *flags):
        """The metrics of `tcc-run eval`."""
        out = harness.call("tcc-run", "eval", self.path("package.tcc"), "--data",
                           "npz:" + self.path("eval.npz"), "--checkpoint-dir",
                           self.path(folder), "--json", *flags)  # fmt: skip
        return json.loads(out)["metrics"]

    def read_log(self, folder):
        """The evaluations, by step."""
        with open(self.path(folder + "/metrics.jsonl"), encoding="utf-8") as file:
            rows = [json.loads(line) for line in file]
        return {row["step"]: row["eval"] for row in rows if "eval" in row}

    def list_checkpoints(self, folder):
        return sorted(int(name[5:]) for name in os.listdir(self.path(folder))
                      if name.startswith("step-"))  # fmt: skip


def distance(ours, expected):
    """The largest difference over the largest value."""
    ours, expected = np.asarray(ours, float), np.asarray(expected, float)
    if ours.shape != expected.shape:
        return np.inf
    return np.abs(ours - expected).max() / max(np.abs(expected).max(), 1e-300)


def check_metrics(suite, folder, what):
    measured, expected = suite.read_log(folder), suite.expected[what]
    suite.check("steps", sorted(measured) == sorted(map(int, expected)), sorted(measured))
    worst = 0
    for step, row in expected.items():
        own = measured.get(int(step), {})
        names = {"loss", *suite.case.metrics}
        if not suite.check(f"{what} at {step}", set(own) == names, sorted(own)):
            continue
        worst = max(worst, *(distance(own[name], row[name]) for name in names))
    suite.check(f"{what} as PyTorch's", worst <= TOLERANCE, f"differ by {worst:.1e}")
    print(f"{suite.name} {what}: {len(expected)} evaluations differ by {worst:.1e}", flush=True)


def find_best(rows, metric, rises, patience):
    """The best step, and the one at which a run ends."""
    best, waited = None, 0
    for step in sorted(map(int, rows)):
        value = rows[str(step)][metric]
        waited += 1
        if best is None or (value > best[1] if rises else value < best[1]):
            best, waited = (step, value), 0
        if patience and waited == patience:
            return best[0], step
    return best[0], STEPS


def check_best(suite, metric, rises):
    """Early stop, the checkpoints that are kept, and what the run says."""
    patience = 2
    best, end = find_best(suite.expected["parameters"], metric, rises, patience)
    folder = f"best-{metric}"
    done, err = suite.train(folder, "--keep-last", 1, "--keep-best", metric,
                            settings=[f"patience={patience}"])  # fmt: skip
    found = done["evaluation"]["best"]
    suite.check(f"best {metric}", (found["metric"], found["step"]) == (metric, best), found)
    suite.check(f"end by {metric}", done["steps"] == end, f"{done['steps']}, not {end}")
    suite.check("says why", ("eval.patience: stopped" in err) == (end < STEPS), err)
    kept = suite.list_checkpoints(folder)
    suite.check(f"kept by {metric}", kept == sorted({best, end}), kept)
    listed = json.loads(harness.call("tcc-run", "checkpoints", suite.path(folder), "--json"))
    (row,) = [row for row in listed["checkpoints"] if row["step"] == best]
    error = distance(row["evaluation"][metric], found["value"])
    suite.check(f"{metric} in the list", error == 0, row)
    measured = suite.evaluate(folder, "--checkpoint", "best")[metric]
    expected = suite.expected["parameters"][str(best)][metric]
    error = distance(measured, expected)
    suite.check(f"eval of the best {metric}", error <= TOLERANCE, f"differs by {error:.1e}")


def check_export(suite):
    """What the best checkpoint, and its running means, are exported as."""
    best, _ = find_best(suite.expected["parameters"], "loss", False, 2)
    package, folder = suite.path("package.tcc"), suite.path("best-loss")
    state = os.path.join(folder, f"step-{best}/state.safetensors")
    stored = load_file(state)
    for prefix, flags in (("", []), ("ema/", ["--ema"])):
        file = suite.path("best.safetensors")
        harness.call("tcc-run", "export", package, "--checkpoint-dir", folder, "--checkpoint",
                     "best", "-o", file, "-q", *flags)  # fmt: skip
        exported = load_file(file)
        same = all(np.array_equal(stored[prefix + name], data)
                   for name, data in exported.items())  # fmt: skip
        suite.check(f"export of {prefix}best", exported and same, sorted(stored))
    for which, code, says in (("7", 5, "no checkpoint of update 7 in"),
                              ("x", 2, "'x' must be newest, best or a number")):  # fmt: skip
        run = harness.run_tool("tcc-run", "export", package, "--checkpoint-dir", folder,
                               "--checkpoint", which, "-o", suite.path("none"))  # fmt: skip
        suite.check(f"refuses {which}", run.code == code and says in run.err, run.err)
    run = harness.run_tool("tcc-run", "export", package, "--checkpoint-dir",
                           suite.path("plain"), "--checkpoint", "best", "-o",
                           suite.path("none"))  # fmt: skip
    says = "had made no evaluation"
    suite.check("no best", run.code == 5 and says in run.err, run.err)


def check_resume(suite):
    """The same after an interruption, which patience counts over."""
    best, end = find_best(suite.expected["parameters"], "loss", False, 3)
    suite.train("twice", steps=13)
    done, _ = suite.train("twice", "--resume", settings=["patience=3"])
    suite.check("end after a resume", done["steps"] == end, f"{done['steps']}, not {end}")
    suite.check("best after a resume", done["evaluation"]["best"]["step"] == best, done)


def check_eval(suite, folder):
    """`tcc-run eval` of the last checkpoint says what the run said."""
    for what, flags in (("parameters", []), ("ema", ["--ema"])):
        expected = suite.expected[what][str(STEPS)]
        worst = max(distance(value, expected[name])
                    for name, value in suite.evaluate(folder, *flags).items())  # fmt: skip
        suite.check(f"eval of {what}", worst <= TOLERANCE, f"differs by {worst:.1e}")


def check_bits(suite):
    """Evaluations change nothing of what is trained."""
    states = []
    for folder, setting in (("ema", "ema=true"), ("never", "data=")):
        suite.train(folder, settings=[setting])
        with open(suite.path(f"{folder}/step-{STEPS}/state.safetensors"), "rb") as file:
            states.append(file.read())
    suite.check("the same bits without evaluations", states[0] == states[1])


def check_ranks(suite):
    done, _ = suite.train("ranks", "--ranks", 2, "--set", "accumulate=1", steps=4 * EVERY)
    alone, _ = suite.train("alone", "--set", "accumulate=2", steps=4 * EVERY)
    worst = max(distance(value, alone["evaluation"]["metrics"][name])
                for name, value in done["evaluation"]["metrics"].items())  # fmt: skip
    suite.check("two ranks", worst <= TOLERANCE, f"differ by {worst:.1e}")


def check_refusals(suite):
    for setting, says in (
        ("best=top9", "eval.best is 'top9', and the package's evaluations have loss, accuracy"),
        ("every=x", "eval.every is 'x', expected a number"),
        ("metrics=f1", "eval.metrics is compiled in"),
        ("evry=1", "unknown key 'eval.evry'"),
        ("data=npz:none.npz", "none.npz"),
    ):
        _, err = suite.train("refused", settings=[setting], code=5 if "none" in setting else 2)
        suite.check(f"refuses {setting}", says in err, err)
    _, err = suite.train("refused", "--keep-best", "loss", settings=["data="], code=2)
    suite.check("no best without data", "--keep-best needs evaluations" in err, err)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        for name in CASES:
            suite = Suite(tally, folder, name)
            suite.train("run")
            check_metrics(suite, "run", "parameters")
            check_eval(suite, "run")
            check_bits(suite)
            check_metrics(suite, "ema", "ema")
            if name == "classes":
                check_best(suite, "loss", rises=False)
                check_best(suite, "accuracy", rises=True)
                suite.train("plain", steps=1, settings=["data="])
                check_export(suite)
                check_resume(suite)
                check_refusals(suite)
                if sys.argv[1:] == ["--ranks"]:
                    check_ranks(suite)
    tally.close()


if __name__ == "__main__":
    main()
