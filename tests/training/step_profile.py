"""Where updates spend their time: step_profile.py

The parts of `tcc-run train --profile` add up to the update, launches to the phases that they are
of, and each launch says of which operator, module and phase it is: those of the model as the
file has them.
"""

import json
import os
import tempfile

import numpy as np
from onnx import helper

import harness
from training import run

RECIPE = """[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.001
"""
CLIPS = RECIPE + "[batch]\nmicro = 4\nclip_norm = 1.0\naccumulate = 2\n"
EVALUATES = RECIPE + "[batch]\nmicro = 4\n[eval]\nevery = 2\n"
TOLERANCE = 1e-6  # of sums of printed numbers


class Profiles:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder

    def path(self, name):
        return os.path.join(self.folder, name)

    def save_model(self):
        """Conv, relu, gemm, as a module's path says; the relu's node has none."""
        nodes = [
            helper.make_node("Conv", ["x", "filter"], ["a"], name="node_conv"),
            helper.make_node("Relu", ["a"], ["b"], name="node_relu"),
            helper.make_node("Flatten", ["b"], ["c"], name="node_flatten"),
            helper.make_node("Gemm", ["c", "weight"], ["logits"], name="node_head"),
        ]
        for node, scope in zip(nodes, ("body.0", "", "", "head"), strict=True):
            if scope:
                entry = node.metadata_props.add()
                entry.key = "pkg.torch.onnx.name_scopes"
                entry.value = f"['', '{scope}', '{node.name[5:]}']"
        weights = {"filter": run.normal(8, 1, 3, 3), "weight": run.normal(8 * 36, run.CLASSES)}
        run.save_graph(self.path("net.onnx"), nodes, weights, [1, 8, 8], "logits",
                       ["batch", run.CLASSES])  # fmt: skip
        samples = np.random.default_rng(7)
        np.savez(self.path("data.npz"), x=samples.standard_normal((64, 1, 8, 8), "f4"),
                 labels=samples.integers(0, run.CLASSES, 64))  # fmt: skip

    def compile(self, name, recipe, *flags):
        with open(self.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(recipe)
        harness.call("tcc", self.path("net.onnx"), "-q", f"--train={self.path(name)}.toml",
                     "-o", self.path(name + ".tcc"), *flags)  # fmt: skip

    def train(self, name, *flags):
        """What 12 updates print."""
        return harness.call(
            "tcc-run", "train", self.path(name + ".tcc"), "--data", "npz:" + self.path("data.npz"),
            "--steps", 12, "--threads", 1, "-q", "--profile", *flags,
        )  # fmt: skip

    def check(self, what, ok, found=""):
        self.tally.check(what, bool(ok), str(found))

    def check_sums(self, name, profile):
        parts, launches = profile["parts_ms"], profile["profile"]
        self.check(f"{name}: updates but two", profile["updates"] == 10, profile["updates"])
        total = profile["profile_ms"]
        self.check(f"{name}: parts add up", abs(sum(parts.values()) - total) <= TOLERANCE * total,
                   f"{parts} {total}")  # fmt: skip
        for phase in ("forward", "backward", "optimizer"):
            found = sum(row["ms"] for row in launches if row["phase"] == phase)
            ok = found > 0 and abs(found - parts[phase]) <= TOLERANCE * total
            self.check(f"{name}: {phase}", ok, f"{found} {parts[phase]}")
        self.check(f"{name}: nothing lost", profile["lost_events"] == 0)

    def check_predictions(self, name, launches):
        """By the figures of a typical core: a launch, bytes and flops of loops or of products."""
        for row in launches:
            bytes_us, expected = row["bytes"] / 30e3, []
            for rate in (90e3, 200e3):
                expected.append((0.5 * row["calls"] + max(bytes_us, row["flops"] / rate)) / 1e3)
            alike = [abs(row["predicted_ms"] / each - 1) < TOLERANCE for each in expected]
            self.check(f"{name}: predicted", any(alike), f"{row} {expected}")

    def check_launches(self, name, launches):
        found = {(row["op"], row["module"], row["phase"]) for row in launches}
        for row in [("Conv", "body.0", "forward"), ("Gemm", "head", "forward"),
                    ("Conv", "body.0", "backward"), ("Gemm", "head", "backward")]:  # fmt: skip
            self.check(f"{name}: {row}", row in found, found)
        own = [row for row in launches if row["phase"] == "optimizer" and not row["op"]]
        self.check(f"{name}: the update is the compiler's", own and own[0]["module"] == "")


def check_texts(profiles):
    out = profiles.train("clips")
    for text in ("  forward\n", "  data\n", "  operator\n", "  module\n", "Conv (backward)",
                 "head (backward)", "kernel: nodes"):  # fmt: skip
        profiles.check(f"text: {text.strip()}", text in out, out)


def check_host_parts(profiles):
    """What the host alone does in an update is not the launches'."""
    flags = ["--checkpoint-every", 1, "--sync-checkpoints", "--checkpoint-dir"]
    flags += [profiles.path("checkpoints"), "--set", "eval.data=npz:" + profiles.path("data.npz")]
    profile = json.loads(profiles.train("evaluates", "--json", *flags))["profile"]
    profiles.check_sums("evaluates", profile)
    parts = profile["parts_ms"]
    profiles.check("checkpoints", parts["checkpoints"] > 0, parts)
    profiles.check("evaluations", parts["evaluations"] > 0, parts)
    plain = json.loads(profiles.train("clips", "--json"))["profile"]["parts_ms"]
    profiles.check("none", plain["checkpoints"] == 0 == plain["evaluations"], plain)


def check_unwritable(profiles):
    """Said before the first update."""
    folder = profiles.path("unwritable")
    done = harness.run_tool(
        "tcc-run", "train", profiles.path("clips.tcc"), "--data", "npz:" + profiles.path("data.npz"),
        "--steps", 2, "--log-dir", folder, "--trace", "/proc/trace.json",
    )  # fmt: skip
    profiles.check("a trace that cannot be written", done.code == 5, done.err)
    profiles.check("no update was made", not os.path.exists(folder))


def check_nothing_left(profiles):
    folder = profiles.path("done")
    for _ in range(2):
        out = profiles.train("clips", "--checkpoint-dir", folder, "--resume-if-any")
    profiles.check("nothing was left to do", "no update was profiled" in out, out)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        profiles = Profiles(tally, folder)
        profiles.save_model()
        profiles.compile("clips", CLIPS)
        profiles.compile("evaluates", EVALUATES)
        profile = json.loads(profiles.train("clips", "--json"))["profile"]
        profiles.check_sums("clips", profile)
        profiles.check_launches("clips", profile["profile"])
        profiles.check_predictions("clips", profile["profile"])
        check_texts(profiles)
        check_host_parts(profiles)
        check_unwritable(profiles)
        check_nothing_left(profiles)
        # Its clock is not the host's: launches do not add up to updates.
        profiles.compile("emulated", CLIPS, "--target=cuda", "--arch=none", "--emulate")
        text = profiles.train("emulated", "--json", "--device", "emulated")
        profiles.check_launches("emulated", json.loads(text)["profile"]["profile"])
    tally.close()


if __name__ == "__main__":
    main()
