"""What limits a run, where that is known: diagnosis.py SLOW [long]

Runs are made slow on purpose: by a disk (the library SLOW), another process, signals, one thread of
several, gradients that overflow, small or memory-bound models. `tcc-run train --diagnose` names
what it is. Others use the machine, too: what they cause at times is tried again. Runs that
nobody may disturb are those of `long`.
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

import harness
from processes import ENVIRONMENT
from training import run

TRIES = 4
ADAMW = """[loss]
kind = "cross_entropy"
[optimizer]
kind = "adamw"
lr = 0.001
[numerics]
on_nan = "skip"
[precision]
loss_scale = {scale}
[batch]
micro = {batch}
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

    def compile(self, name, batch, inputs, hidden, scale=1, size=1):
        """Two layers, or many without hidden numbers; samples are numbers of that size."""
        if hidden:
            run.save_mlp(self.path(name + ".onnx"), inputs, hidden)
        else:
            self.save_deep(self.path(name + ".onnx"), inputs)
        with open(self.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(ADAMW.format(batch=batch, scale=scale))
        harness.call("tcc", self.path(name + ".onnx"), "-q", f"--train={self.path(name)}.toml",
                     "-o", self.path(name + ".tcc"))  # fmt: skip
        samples = np.random.default_rng(3)
        arrays = {"x": size * samples.standard_normal((2048, inputs), "f4"),
                  "labels": samples.integers(0, run.CLASSES, 2048)}  # fmt: skip
        np.savez(self.path(name + ".npz"), **arrays)
        os.mkdir(self.path(name))
        for each, array in arrays.items():
            np.save(self.path(f"{name}/{each}.npy"), array)

    def begin(self, name, updates, *flags, threads=1, prefix=(), environment=None, data="npz:{}.npz"):
        command = [*prefix, os.path.join(harness.BIN, "tcc-run"), "train", self.path(name + ".tcc"),
                   "--data", data.format(self.path(name)), "--steps", updates, "--threads",
                   threads, "--diagnose", "--json", "-q", *flags]  # fmt: skip
        return subprocess.Popen(
            [*map(str, command)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env=ENVIRONMENT | (environment or {}),
        )  # fmt: skip

    def diagnose(self, *arguments, meanwhile=None, **options):
        training = self.begin(*arguments, **options)
        if meanwhile:
            meanwhile(training)
        try:
            out, error = training.communicate(timeout=120)
        finally:
            training.kill()
        if training.returncode:
            raise harness.Failure(f"{training.returncode}: {error}")
        return json.loads(out)["diagnosis"]

    def expect(self, what, bottleneck, *arguments, least=0.1, **options):
        for _ in range(TRIES):
            found = self.diagnose(*arguments, **options)
            if found["bottleneck"] == bottleneck and found["share"] >= least:
                break
        ok = found["bottleneck"] == bottleneck and found["share"] >= least
        self.tally.check(f"{what}: {bottleneck}", ok, str(found))
        return found

    def on_slow_disk(self, **microseconds):
        return {"LD_PRELOAD": self.slow} | {f"TCC_SLOW_{k.upper()}": str(v) for k, v in microseconds.items()}


def stop_half_of_the_time(training):
    """A duty cycle, as a container's quota has."""

    def cycle():
        while training.poll() is None:
            for each in (signal.SIGSTOP, signal.SIGCONT):
                training.send_signal(each)
                time.sleep(0.01)

    threading.Thread(target=cycle, daemon=True).start()


def check_disks(planted):
    slow = planted.on_slow_disk(pread=300)
    found = planted.expect("slow reads", "storage", "small", 60, environment=slow, data="npy:{}",
                           least=0.5)  # fmt: skip
    planted.tally.check("slow reads: the advice", "data.cache" in found["advice"], str(found))
    flags = ["--checkpoint-dir", planted.path("checkpoints"), "--checkpoint-every", 5]
    found = planted.expect("slow checkpoints", "checkpoints", "small", 60, *flags, "--sync-checkpoints",
                           environment=planted.on_slow_disk(fsync=5000), least=0.5)  # fmt: skip
    planted.tally.check("slow checkpoints: the advice", "--sync-checkpoints" in found["advice"], str(found))


def check_process(planted):
    cpu = str(min(os.sched_getaffinity(0)))
    with subprocess.Popen(["taskset", "-c", cpu, sys.executable, "-c", "while True: pass"]) as other:
        try:
            planted.expect("another process", "other processes", "large", 30,
                           prefix=["taskset", "-c", cpu], least=0.25)  # fmt: skip
        finally:
            other.kill()
    planted.expect("stopped", "CPU quota", "large", 60, meanwhile=stop_half_of_the_time, least=0.25)
    planted.expect("overflows", "skipped updates", "overflowing", 200, least=0.9)


def check_computing(planted):
    planted.compile("tiny", 4, 16, 0)
    planted.compile("wide", 1, 2048, 2048)
    planted.expect("tiny", "launches", "tiny", 3000)
    threads = planted.cpus
    if threads > 1:
        planted.expect("one thread", "threads", "large", 60, least=0.5)
    planted.expect("large products", "compute", "large", 60, threads=threads, least=0.5)
    planted.expect("a batch of one", "memory bandwidth", "wide", 60, threads=threads, least=0.3)


def main(slow, is_long):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        planted = Planted(tally, folder, slow)
        planted.compile("small", 16, 64, 64)
        planted.compile("overflowing", 16, 64, 64, scale=3e38, size=1e6)
        planted.compile("large", 256, 512, 1024)
        check_disks(planted)
        check_process(planted)
        if is_long:
            check_computing(planted)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:] == ["long"])
