"""What the tests of tips share: packages that are compiled once, what is said of them, and runs."""

import json
import os
import re

import onnx
from onnx import TensorProto, helper, numpy_helper
from safetensors.numpy import load_file

import harness
from training import cases, run

# Fixtures, with what they need to be compiled.
MODELS = {
    "mlp": ("mlp_digits.onnx", "--dim=batch=16"),
    "cnn": ("cnn_digits.onnx",),
    "bn": ("bn_digits.onnx",),
    "gpt2": ("gpt2_tiny.onnx",),
    "traced": ("cnn_digits.pt",),
    "exported": ("cnn_digits.pt2",),
}
DIGITS = "npz:" + os.path.join(cases.FIXTURES, "digits.npz")
LOSS = 'loss.kind = "cross_entropy"\n'
SGD = LOSS + 'optimizer.kind = "sgd"\noptimizer.lr = 0.1\n'
ADAMW = LOSS + 'optimizer.kind = "adamw"\noptimizer.lr = 0.01\n'
LANGUAGE = 'loss.kind = "causal_lm"\noptimizer.kind = "adamw"\n'
CUDA = ("--target=cuda", "--arch=none", "--emulate")


def read_lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding="utf-8") as file:
        return [json.loads(line) for line in file if line.endswith("\n")]


def find_entry(text, name):
    """The text of an entry point in what --emit=graph or --emit=exec prints."""
    parts = re.split(r"(?:func\.func|exec\.entry) @", text)
    return next(part for part in parts if re.match(rf"{name}\b(?!\.)", part))


def save_tokens(path, vocabulary=128):
    """A model that predicts from each token alone: logits of [batch, seq, token]."""
    nodes = [helper.make_node("Gather", ["table", "x"], ["hidden"]),
             helper.make_node("MatMul", ["hidden", "head"], ["logits"])]  # fmt: skip
    weights = {"table": run.normal(vocabulary, 8), "head": run.normal(8, vocabulary)}
    graph = helper.make_graph(
        nodes, "tokens",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["batch", "seq"])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, ["batch", "seq", vocabulary])],
        [numpy_helper.from_array(value, name) for name, value in weights.items()],
    )  # fmt: skip
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)]), path)


class Training:
    """A run, and what it left in its folder."""

    def __init__(self, done, folder):
        self.code, self.out, self.err, self.folder = done.code, done.out, done.err, folder
        self.log = read_lines(f"{folder}/metrics.jsonl")

    def column(self, key):
        return [row.get(key) for row in self.log]

    def list_steps(self):
        return sorted(int(name[5:]) for name in os.listdir(self.folder) if name[:5] == "step-")

    def read_bytes(self):
        with open(f"{self.folder}/step-{self.list_steps()[-1]}/state.safetensors", "rb") as file:
            return file.read()

    def tensors(self):
        """Those of the last checkpoint."""
        return load_file(f"{self.folder}/step-{self.list_steps()[-1]}/state.safetensors")


class Suite:
    """What a row has asked for is noted: the page may name nothing else."""

    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        self.made, self.count = {}, 0
        self.begin("")

    def begin(self, row):
        self.row, self.checks = row, 0
        self.used = []  # recipes and flags
        self.decided = set()  # as in `fuse-ops: fused`

    def check(self, what, ok, found=""):
        self.checks += 1
        self.tally.check(f"{self.row}: {what}", bool(ok), str(found)[:600])

    def note(self, words):
        self.used += map(str, words)

    def call(self, *command):
        self.note(command)
        return harness.call(*command)

    def run(self, *command):
        self.note(command)
        return harness.run_tool(*command)

    def path(self, name):
        return os.path.join(self.folder, name)

    def new_path(self, ending=""):
        self.count += 1
        return self.path(f"{self.count}{ending}")

    def find_tokens(self):
        """The path of the model of tokens."""
        path = self.path("tokens.onnx")
        if not os.path.exists(path):
            save_tokens(path)
        return path

    def once(self, key, make):
        if key not in self.made:
            self.made[key] = make()
        return self.made[key]

    def find_model(self, model):
        """Its file and the flags that it needs; a path is a model without flags."""
        if model not in MODELS:
            return [model]
        name, *flags = MODELS[model]
        return [os.path.join(cases.FIXTURES, name), *flags]

    def list_arguments(self, model, recipe, flags):
        self.note((recipe, *flags))
        arguments = [*self.find_model(model), *flags]
        if not recipe:
            return arguments
        path = self.once(("recipe", recipe), lambda: self.new_path(".toml"))
        with open(path, "w", encoding="utf-8") as file:
            file.write(recipe)
        return [*arguments, f"--train={path}"]

    def try_compile(self, model, recipe="", *flags):
        """What the compiler says, whether it refuses the model or not; nothing is generated."""
        return self.run("tcc", *self.list_arguments(model, recipe, flags), "--check")

    def compile(self, model, recipe="", *flags):
        """The package of a model, for inference if there is no recipe."""
        arguments, package = self.list_arguments(model, recipe, flags), self.new_path(".tcc")

        def make():
            harness.call("tcc", *arguments, "-q", "-o", package)
            return package

        return self.once(("package", model, recipe, flags), make)

    def list_decisions(self, model, recipe="", *flags):
        arguments, path = self.list_arguments(model, recipe, flags), self.new_path(".json")

        def make():
            harness.call("tcc", *arguments, "-q", "--check", "--dump-decisions", path)
            with open(path, encoding="utf-8") as file:
                return json.load(file)

        return self.once(("decisions", model, recipe, flags), make)

    def find_decisions(self, decided, model, recipe="", *flags):
        """Those of a pass, as in `fuse-ops: fused`."""
        self.decided.add(decided)
        name, decision = decided.split(": ")
        rows = self.list_decisions(model, recipe, *flags)
        return [row for row in rows if row["pass"] == name and row["decision"] == decision]

    def print_stage(self, stage, model, recipe="", *flags):
        arguments = self.list_arguments(model, recipe, flags)
        return self.once((stage, model, recipe, flags),
                         lambda: harness.call("tcc", *arguments, "-q", f"--emit={stage}"))  # fmt: skip

    def ask_info(self, package):
        return self.once(("info", package),
                         lambda: json.loads(harness.call("tcc-run", "info", package, "--json")))  # fmt: skip

    def find_entry(self, package, name):
        entries = self.ask_info(package)["entries"]
        return next((entry for entry in entries if entry["name"] == name), None)

    def find_variables(self, package, kind=None):
        variables = self.ask_info(package)["variables"]
        return {each["name"]: each for each in variables if kind in (None, each["kind"])}

    def find_settings(self, package):
        return {each["key"]: each for each in self.ask_info(package)["settings"]}

    def train(self, package, *flags, data=DIGITS, code=0, folder=None, threads=1, **options):
        folder = folder or self.new_path()
        command = ["tcc-run", "train", package, "--data", data, "--threads", threads, "--log-dir", folder,
                   "--checkpoint-dir", folder, *flags]  # fmt: skip
        self.note(command)
        done = harness.run_tool(*command, **options)
        if done.code != code:
            raise harness.Failure(f"tcc-run train: {harness.first_line(done)}")
        return Training(done, folder)
