"""What limits a run, where that is known: diagnosis.py SLOW [long]

Runs are made slow on purpose: by a disk or a network (the library SLOW), pages that are not in
memory, images that are slow to decode, another process, signals, too few threads or too many,
copies, gradients that overflow, small or memory-bound models. `tcc-run train --diagnose` names
what it is, and a run that does what is advised gains as much as it says, within 1.5 times. Others
use the machine, too: what they cause at times is tried again. Runs that nobody may disturb are
those of `long`.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time

import numpy as np
from onnx import helper
from PIL import Image

import harness
from processes import ENVIRONMENT
from training import run

TRIES = 4
WITHIN = 1.5  # of the gain that is promised, either way
RECIPE = """[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.001
[numerics]
on_nan = "skip"
[precision]
{precision}
[batch]
micro = {batch}
{more}
"""


class Planted:
    def __init__(self, tally, folder, slow):
        self.tally, self.folder, self.slow = tally, folder, slow
        self.cpus = len(os.sched_getaffinity(0))

    def path(self, name):
        return os.path.join(self.folder, name)

    def save_deep(self, path, inputs, layers=48):
        """Many launches for few numbers."""
        nodes, weights = [], {}
        for i in range(layers):
            last = "logits" if i == layers - 1 else f"b{i}"
            nodes.append(helper.make_node("MatMul", [f"b{i - 1}" if i else "x", f"w{i}"], [f"a{i}"]))
            nodes.append(helper.make_node("Tanh", [f"a{i}"], [last]))
            weights[f"w{i}"] = run.normal(inputs, run.CLASSES if last == "logits" else inputs)
        run.save_model(path, nodes, weights, [inputs])

    def save_pooled(self, path, shape):
        """Few numbers are computed of large samples."""
        weights = {"w": run.normal(shape[0], run.CLASSES)}
        run.save_model(path, self.make_head("x"), weights, shape)

    def make_head(self, last):
        return [helper.make_node("GlobalAveragePool", [last], ["pooled"]),
                helper.make_node("Flatten", ["pooled"], ["flat"]),
                helper.make_node("MatMul", ["flat", "w"], ["logits"])]  # fmt: skip

    def save_convolutions(self, path, shape, channels=64):
        nodes, weights, last, before = [], {}, "x", shape[0]
        for i in range(3):
            weights[f"f{i}"] = run.normal(channels, before, 3, 3)
            nodes.append(helper.make_node("Conv", [last, f"f{i}"], [f"a{i}"], pads=[1, 1, 1, 1]))
            nodes.append(helper.make_node("Relu", [f"a{i}"], [f"b{i}"]))
            last, before = f"b{i}", channels
        weights["w"] = run.normal(channels, run.CLASSES)
        run.save_model(path, nodes + self.make_head(last), weights, shape)

    def compile(self, name, batch, of="", precision="", more="", flags=()):
        """A package of the model `of`, or its own, with batches of its data."""
        with open(self.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE.format(batch=batch, precision=precision, more=more))
        harness.call("tcc", self.path((of or name) + ".onnx"), "-q", f"--train={self.path(name)}.toml",
                     "-o", self.path(name + ".tcc"), *flags)  # fmt: skip

    def save_samples(self, name, shape, count=2048, size=1, dtype="f4"):
        samples = np.random.default_rng(3)
        arrays = {"x": (size * samples.standard_normal((count, *shape), "f4")).astype(dtype),
                  "labels": samples.integers(0, run.CLASSES, count)}  # fmt: skip
        np.savez(self.path(name + ".npz"), **arrays)
        os.mkdir(self.path(name))
        for each, array in arrays.items():
            np.save(self.path(f"{name}/{each}.npy"), array)

    def make(self, name, batch, inputs, hidden, size=1, **options):
        """Two layers, or many without hidden numbers; samples are numbers of that size."""
        if hidden:
            run.save_mlp(self.path(name + ".onnx"), inputs, hidden)
        else:
            self.save_deep(self.path(name + ".onnx"), inputs)
        self.compile(name, batch, **options)
        self.save_samples(name, [inputs], size=size)

    def begin(self, name, updates, *flags, threads=1, prefix=(), environment=None, data="npz:{}.npz",
              of=""):  # fmt: skip
        command = [*prefix, os.path.join(harness.BIN, "tcc-run"), "train", self.path(name + ".tcc"),
                   "--data", data.format(self.path(of or name)), "--steps", updates, "--threads",
                   threads, "--diagnose", "--profile", "--json", "-q", *flags]  # fmt: skip
        return subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT | (environment or {}),
        )  # fmt: skip

    def train(self, *arguments, meanwhile=None, samples=1, **options):
        """What is diagnosed, and how many times `samples` are taken in a second."""
        training = self.begin(*arguments, **options)
        if meanwhile:
            meanwhile(training)
        try:
            out, error = training.communicate(timeout=120)
        finally:
            training.kill()
        if training.returncode:
            raise harness.Failure(f"{training.returncode}: {error}")
        result = json.loads(out)
        return result["diagnosis"], 1e3 * samples / result["profile"]["profile_ms"]

    def expect(self, what, bottleneck, *arguments, least=0.1, helped=None, **options):
        """`helped`, a call, trains as is advised: it returns what `train` does."""
        gain = None
        for _ in range(TRIES):
            found, before = self.train(*arguments, **options)
            if ok := found["bottleneck"] == bottleneck and found["share"] >= least:
                if not helped:
                    break
                _, after = helped()
                gain = after / before
                if 1 / WITHIN <= gain / found["gain"] <= WITHIN:
                    break
        self.tally.check(f"{what}: {bottleneck}", ok, str(found))
        if helped and ok:
            text = f"{gain:.2f} of {found['gain']:.2f}"
            self.tally.check(f"{what}: the gain", 1 / WITHIN <= gain / found["gain"] <= WITHIN, text)
            print(f"{what}: gains {text} times that were promised")
        return found

    def on_slow(self, **microseconds):
        return {"LD_PRELOAD": self.slow} | {f"TCC_SLOW_{k.upper()}": str(v) for k, v in microseconds.items()}


def stop_half_of_the_time(training):
    """A duty cycle, as a container's quota has."""

    def cycle():
        while training.poll() is None:
            for each in (signal.SIGSTOP, signal.SIGCONT):
                training.send_signal(each)
                time.sleep(0.01)

    threading.Thread(target=cycle, daemon=True).start()


def forget_pages(path):
    """The file is never in memory for long."""

    def forget_until_the_end(training):
        def cycle():
            file = os.open(path, os.O_RDONLY)
            while training.poll() is None:
                os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
                time.sleep(0.002)
            os.close(file)

        threading.Thread(target=cycle, daemon=True).start()

    return forget_until_the_end


def check_disks(planted):
    slow = planted.on_slow(pread=30)
    found = planted.expect("slow reads", "storage", "large", 40, environment=slow, data="npy:{}",
                           least=0.5, helped=lambda: planted.train("large", 40, data="npy:{}"))  # fmt: skip
    planted.tally.check("slow reads: the advice", "data.cache" in found["advice"], str(found))
    flags = ["--checkpoint-dir", planted.path("checkpoints"), "--checkpoint-every", 5]
    slow = planted.on_slow(fsync=5000)
    found = planted.expect("slow checkpoints", "checkpoints", "small", 60, *flags, "--sync-checkpoints",
                           environment=slow, least=0.5)  # fmt: skip
    planted.tally.check("slow checkpoints: the advice", "--sync-checkpoints" in found["advice"], str(found))


def check_process(planted):
    cpu = str(min(os.sched_getaffinity(0)))
    alone = {"prefix": ["taskset", "-c", cpu], "least": 0.25}
    command = ["taskset", "-c", cpu, sys.executable, "-c", "while True: pass"]

    def begin_other(training):
        other = subprocess.Popen(command)

        def end():
            training.wait()
            other.kill()
            other.wait()

        threading.Thread(target=end, daemon=True).start()

    planted.expect("another process", "other processes", "large", 30, meanwhile=begin_other, **alone,
                   helped=lambda: planted.train("large", 30, prefix=alone["prefix"]))  # fmt: skip
    planted.expect("stopped", "CPU quota", "large", 60, meanwhile=stop_half_of_the_time, least=0.25,
                   helped=lambda: planted.train("large", 60))  # fmt: skip
    planted.expect("overflows", "skipped updates", "overflowing", 200, least=0.9)


def check_reading(planted):
    """Large samples: what a step computes of them takes no time."""
    shape = [3, 128, 128]
    planted.save_pooled(planted.path("pooled.onnx"), shape)
    planted.compile("pooled", 16)
    planted.save_samples("pooled", shape, count=512)
    file = planted.path("pooled/x.npy")
    if not is_on_disk(file):
        print("cold pages: not available, as the folder is in memory")
    else:
        planted.expect("cold pages", "storage", "pooled", 60, data="npy:{}", meanwhile=forget_pages(file),
                       helped=lambda: train_in_memory(planted, file))  # fmt: skip
    folder = planted.path("photos")
    pixels = np.random.default_rng(5)
    for number in range(64):
        os.makedirs(f"{folder}/{number % run.CLASSES}", exist_ok=True)
        picture = pixels.integers(0, 256, (512, 512, 3), "u1")
        Image.fromarray(picture).save(f"{folder}/{number % run.CLASSES}/{number}.jpg", quality=90)
    reading = ["--set", 'data.train.x=["resize 128 128"]', "--set", "data.workers=1"]
    data = {"of": "photos", "data": "images:{}"}
    planted.expect("slow decoder", "decode", "pooled", 40, *reading, **data, least=0.5,
                   helped=lambda: planted.train("pooled", 400, *reading, "--set",
                                                'data.cache="ram:1GiB"', **data))  # fmt: skip


def train_in_memory(planted, path):
    """No disk is faster."""
    with open(path, "rb") as file:
        file.read()
    return planted.train("pooled", 60, data="npy:{}")


def is_on_disk(path):
    """Whether its pages can leave memory."""
    with open("/proc/mounts", encoding="utf-8") as file:
        mounts = {line.split()[1]: line.split()[2] for line in file}
    folder = os.path.dirname(os.path.realpath(path))
    while folder not in mounts:
        folder = os.path.dirname(folder)
    return mounts[folder] not in ("tmpfs", "ramfs")


def check_copies(planted):
    """Of the emulated device, which is as slow as its clock says."""
    shape = [4, 128, 128]
    planted.save_pooled(planted.path("copied.onnx"), shape)
    planted.save_samples("copied", shape, count=64)
    planted.save_samples("bytes", shape, count=64, size=20, dtype="u1")
    emulated = ["--target=cuda", "--arch=none", "--emulate"]
    narrow = '[input.x]\ndtype = "u8"\nlayout = "nchw"\n'
    planted.compile("copied", 16, flags=emulated)
    planted.compile("bytes", 16, of="copied", more=narrow, flags=emulated)
    device, slow = ["--device", "emulated"], {"TCC_EMULATED_COPY": "64", "TCC_EMULATED_CLOCK": "real"}
    found = planted.expect("copies", "transfer", "copied", 12, *device, environment=slow, least=0.5,
                           helped=lambda: planted.train("bytes", 12, *device, environment=slow))  # fmt: skip
    planted.tally.check("copies: the advice", "u8" in found["advice"], str(found))


def check_ranks(planted):
    slow = planted.on_slow(writev=2000)
    options = {"environment": slow, "least": 0.3}
    more = ["--ranks", 2, "--set", "accumulate=4"]
    planted.expect("a slow network", "communication", "small", 60, "--ranks", 2, **options,
                   helped=lambda: planted.train("small", 60, *more, environment=slow, samples=4))  # fmt: skip


def check_computing(planted):
    planted.make("tiny", 4, 16, 0)
    planted.compile("twice", 8, of="tiny")
    planted.make("wide", 1, 2048, 2048)
    planted.compile("wide-twice", 2, of="wide")
    planted.expect("tiny", "launches", "tiny", 3000,
                   helped=lambda: planted.train("twice", 3000, of="tiny", samples=2))  # fmt: skip
    threads = planted.cpus
    if threads > 1:
        planted.expect("one thread", "threads", "large", 60, least=0.5,
                       helped=lambda: planted.train("large", 60, threads=threads))  # fmt: skip
    planted.expect("too many threads", "threads", "large", 60, threads=4 * threads,
                   helped=lambda: planted.train("large", 60, threads=threads))  # fmt: skip
    planted.expect("a batch of one", "memory bandwidth", "wide", 60, threads=threads, least=0.3,
                   helped=lambda: planted.train("wide-twice", 60, of="wide", threads=threads, samples=2))  # fmt: skip


def check_clean(planted):
    threads = planted.cpus
    planted.expect("large products", "compute", "large", 60, threads=threads, least=0.5)
    shape = [3, 32, 32]
    planted.save_convolutions(planted.path("convolutions.onnx"), shape)
    planted.compile("convolutions", 32)
    planted.save_samples("convolutions", shape)
    planted.expect("convolutions", "compute", "convolutions", 30, threads=threads, least=0.5)
    planted.make("deep", 256, 256, 0)
    planted.expect("many products", "compute", "deep", 30, threads=threads, least=0.5)


def main(slow, is_long):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        planted = Planted(tally, folder, slow)
        planted.make("small", 16, 64, 64)
        planted.make("overflowing", 16, 64, 64, precision="loss_scale = 3e38", size=1e6)
        planted.make("large", 256, 512, 1024)
        check_disks(planted)
        check_process(planted)
        if is_long:
            check_reading(planted)
            check_copies(planted)
            check_ranks(planted)
            check_computing(planted)
            check_clean(planted)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["long"])
