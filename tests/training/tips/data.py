"""Tips on data: what reads them, what is done to them, and what a batch is."""

import io
import json
import os
import signal
import subprocess
import tarfile
import time

import numpy as np
from onnx import helper
from PIL import Image

import harness
from training import run
from training.tips.suite import DIGITS, LANGUAGE, SGD

SIDE, IMAGES = 8, 32  # pixels, samples


# --- Loading -----------------------------------------------------------------------------------


class Watched:
    """A run without end, which is killed."""

    def __init__(self, suite, *flags):
        self.folder = suite.new_path()
        suite.note(flags)
        command = [os.path.join(harness.BIN, "tcc-run"), "train", suite.compile("mlp", SGD), "--data",
                   DIGITS, "--threads", "1", "--steps", str(10**8), "--log-dir", self.folder, "-q",
                   *flags]  # fmt: skip
        self.process = subprocess.Popen(command, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()

    def wait_for(self, updates):
        end = time.monotonic() + 60
        path = f"{self.folder}/metrics.jsonl"
        while time.monotonic() < end:
            if os.path.exists(path):
                with open(path, "rb") as file:
                    if file.read().count(b"\n") >= updates:
                        return
            time.sleep(0.01)
        raise harness.Failure(f"no {updates} updates in a minute")

    def list_threads(self):
        return set(os.listdir(f"/proc/{self.process.pid}/task"))


def row_num_workers(suite):
    counts = []
    for workers in (0, 3):
        with Watched(suite, "--set", f"data.workers={workers}") as watched:
            watched.wait_for(2)
            counts.append(len(watched.list_threads()))
    suite.check("three threads more", counts[1] == counts[0] + 3, counts)


def row_persistent_workers(suite):
    with Watched(suite, "--set", "data.workers=2") as watched:
        watched.wait_for(2)
        before = watched.list_threads()
        watched.wait_for(70)  # of 32 an epoch
        suite.check("the same threads", watched.list_threads() == before, before)


def row_prefetch_factor(suite):
    """Batches of 1 MiB that are in memory, by what is resident."""
    model, data = suite.new_path(".onnx"), suite.new_path(".npz")
    run.save_mlp(model, inputs=1 << 14, hidden=64)
    np.savez(data, x=np.ones((64, 1 << 14), "f4"), labels=np.zeros(64, "i8"))
    package, found = suite.compile(model, SGD + "batch.micro = 16\n"), []
    for depth in (2, 64):
        done = suite.train(package, "--steps", 70, "--set", "data.workers=1", "--set",
                          f"data.depth={depth}", data="npz:" + data)  # fmt: skip
        found.append(max(done.column("resident_bytes")))
    suite.check("62 batches more", found[1] - found[0] > 40 << 20, found)


def row_memmap(suite):
    path = suite.new_path(".txt")
    with open(path, "w", encoding="ascii") as file:
        file.write("in the beginning " * 40)
    info = suite.call("tcc-run", "data", "info", f"text:{path}")
    suite.check("tokens", "680" in info, info)
    package = suite.compile(suite.find_tokens(), LANGUAGE, "--dim=batch=4", "--dim=seq=12")
    done = suite.train(package, "--steps", 2, data=f"text:{path}")
    suite.check("updates", len(done.log) == 2 and done.log[0]["loss"] > 0, done.log)


# --- Images ------------------------------------------------------------------------------------


def compile_images(suite, kind="cross_entropy"):
    path = suite.once("images", lambda: suite.new_path(".onnx"))
    nodes = [helper.make_node("Flatten", ["x"], ["flat"]),
             helper.make_node("MatMul", ["flat", "weight"], ["logits"])]  # fmt: skip
    if not os.path.exists(path):
        run.save_model(path, nodes, {"weight": run.normal(3 * SIDE * SIDE, run.CLASSES)}, [3, SIDE, SIDE])
    recipe = f'loss.kind = "{kind}"\noptimizer.kind = "sgd"\noptimizer.lr = 0.1\nbatch.micro = 8\n'
    return suite.compile(path, recipe)


def save_shard(suite):
    """PNGs of 12 x 16 pixels and their classes, as WebDataset has them."""

    def make():
        path, random = suite.new_path(".tar"), np.random.default_rng(2)
        with tarfile.open(path, "w") as shard:
            for i in range(IMAGES):
                stream = io.BytesIO()
                Image.fromarray(random.integers(0, 256, (12, 16, 3), dtype=np.uint8)).save(stream, "PNG")
                for name, data in (("png", stream.getvalue()), ("cls", b"%d" % (i % 2))):
                    member = tarfile.TarInfo(f"{i:04}.{name}")
                    member.size = len(data)
                    shard.addfile(member, io.BytesIO(data))
        return path

    return suite.once("shard", make)


def write_plan(suite, *lines, transforms=("resize 8 8",)):
    path = suite.new_path(".toml")
    both = [f"[data.{use}]\nx = {json.dumps(list(transforms))}" for use in ("train", "eval")]
    source = f'[data]\nsource = "webdataset:{save_shard(suite)}"'
    suite.note((*lines, *both))
    with open(path, "w", encoding="utf-8") as file:
        file.write("\n".join([source, *lines, *both]) + "\n")
    return path


def row_webdataset(suite):
    found = json.loads(suite.call("tcc-run", "data", "info", f"webdataset:{save_shard(suite)}", "--json"))
    suite.check("samples", f'"samples": {IMAGES}' in json.dumps(found), found)
    done = suite.train(compile_images(suite), "--epochs", 1, data=write_plan(suite))
    suite.check("an epoch", len(done.log) == IMAGES // 8, done.log)


def list_losses(suite, plan, *flags, kind="cross_entropy", epochs=1):
    package = compile_images(suite, kind)
    return suite.train(package, "--epochs", epochs, "--set", "lr=0", *flags, data=plan).column("loss")


def row_transforms(suite):
    plain, flipped = (list_losses(suite, write_plan(suite, transforms=each))
                      for each in (("resize 8 8",), ("resize 8 8", "flip 1")))  # fmt: skip
    suite.check("other images", plain != flipped)
    whole = suite.train(compile_images(suite), "--steps", 1, code=3, data=write_plan(suite, transforms=()))
    suite.check("an image as it is does not fit", "12 rows of 16 pixels" in whole.err, whole.err)


def row_mixup(suite):
    plan = write_plan(suite, 'mix = ["mixup 0.2", "cutmix 1"]')
    shares = ["--set", 'data.train.labels=["one_hot"]']
    mixed = list_losses(suite, plan, *shares, kind="soft_cross_entropy")
    plain = list_losses(suite, plan, *shares, "--set", "data.mix=none", kind="soft_cross_entropy")
    suite.check("other losses", len(mixed) == len(plain) and mixed != plain, (mixed, plain))
    refused = suite.train(compile_images(suite), "--epochs", 1, code=2, data=plan)
    suite.check("classes cannot be mixed", "needs a target of floats" in refused.err, refused.err)


def measure_classes(suite, labels, *flags):
    """The mean loss of an epoch of samples that all are zero, so that their class alone counts."""
    path = suite.new_path(".npz")
    np.savez(path, x=np.zeros((512, 64), "f4"), labels=labels)
    losses = suite.train(suite.compile("mlp", SGD), "--epochs", 1, "--set", "lr=0", *flags, data="npz:" + path)
    return np.mean(losses.column("loss"))


def row_balanced_sampler(suite):
    first, second = (measure_classes(suite, np.full(512, label)) for label in (0, 1))
    rare = np.arange(512) % 8 == 0
    for flags, share in (((), 1 / 8), (("--set", "data.balance=labels"), 1 / 2)):
        found = measure_classes(suite, rare.astype("i8"), *flags)
        expected = first * (1 - share) + second * share
        suite.check(f"a share of {share}", np.isclose(found, expected, rtol=1e-4), (found, expected))


def row_random_split(suite):
    package, counts = suite.compile("mlp", SGD), []
    for flags in ((), ("--set", "data.split=0.25")):
        done = suite.train(package, "--epochs", 1, *flags)
        counts.append(len(done.log))
        evaluated = sum("eval" in row for row in done.log)
        suite.check(f"{len(flags)} flags: evaluations", evaluated == bool(flags), done.log[-1])
    suite.check("a quarter is left out", 22 <= counts[1] <= 26 < counts[0] == 32, counts)


# --- Batches -----------------------------------------------------------------------------------


def row_shuffle(suite):
    package = suite.compile("mlp", SGD)
    still = ["--steps", 64, "--set", "lr=0"]
    for flags, is_same in (((), False), (("--no-shuffle",), True)):
        losses = suite.train(package, *still, *flags).column("loss")
        suite.check(f"epochs alike: {is_same}", (losses[:32] == losses[32:]) == is_same)


def row_drop_last(suite):
    model = suite.find_model("mlp")[0]
    for last, updates in (("drop", 10), ("pad", 11)):
        package = suite.compile(model, SGD + f'batch.micro = 48\nbatch.last = "{last}"\n')
        done = suite.train(package, "--epochs", 1)
        suite.check(f"{last}: updates of 512 samples", len(done.log) == updates, len(done.log))
        names = [each["name"] for each in suite.find_entry(package, "train_step")["inputs"]]
        suite.check(f"{last}: weights", ("sample_weight" in names) == (last == "pad"), names)


def row_length_buckets(suite):
    text, plan = suite.new_path(".jsonl"), suite.new_path(".toml")
    lengths = [4 + i % 13 for i in range(96)]
    with open(text, "w", encoding="utf-8") as file:
        for length in lengths:
            file.write(json.dumps({"text": "a" * length}) + "\n")
    with open(plan, "w", encoding="utf-8") as file:
        file.write(f'[data]\nsource = "jsonl:{text}"\nmap = {{x = "text"}}\n[data.train]\nx = ["bytes"]\n')
    out = suite.call("tcc-run", "data", "sizes", plan, "--input", "x", "--count", 2, "--numbers", 64,
                       "--json")  # fmt: skip
    found = [(each["size"], each["batch"]) for each in json.loads(out)["sizes"]]
    suite.check("two sizes", len(found) == 2 and found[-1] == (16, 4), found)
    dims = [f"--dim={name}={','.join(map(str, each))}" for name, each in zip(("seq", "batch"), zip(*found))]
    package = suite.compile(suite.find_tokens(), LANGUAGE, *dims)
    names = {entry["name"] for entry in suite.ask_info(package)["entries"]}
    suite.check("a step for each", {"train_step", "train_step.1"} <= names, names)
    padding = json.loads(suite.train(package, "--epochs", 1, "--json", data=plan).out)["padding"]
    fixed = 1 - np.mean([length / 16 for length in lengths])
    suite.check("less padding", padding < fixed - 0.1, (padding, fixed))
