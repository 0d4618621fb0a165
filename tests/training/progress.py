"""What a run says of its speed while it goes on: progress.py

Flops of updates are those of their launches, one by one and as the package has them; `mfu` is of them
and of a peak that the roofline agrees with; tokens are counted by hand. The line of a terminal fits
it, plain lines come at growing intervals by a clock that runs fast, and stdout has the result alone.
"""

import fcntl
import json
import os
import pty
import re
import struct
import subprocess
import tempfile
import termios
import time

import numpy as np
import onnx

import harness
from processes import ENVIRONMENT
from training import cases, decoder

FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"
SPEED = 300  # seconds of that clock in one
CAUSAL, CLASSES = 'kind = "causal_lm"\ntarget = "labels"', 'kind = "cross_entropy"'
RECIPE = """[loss]
{loss}
[optimizer]
kind = "adamw"
lr = 0.001
[precision]
compute = "{compute}"
[batch]
accumulate = {accumulate}
"""
SIZES, BATCHES = (8, 16, 32), (8, 4, 2)
BATCH, LENGTH = 4, 12  # of gpt2_tiny
DIGITS = "npz:" + os.path.join(cases.FIXTURES, "digits.npz")
EXACT = 1e-9
ALIKE = 2  # factor between two measurements of a peak beside other processes


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        onnx.save(decoder.make(width=16, longest=max(SIZES)), self.path("decoder.onnx"))
        random = np.random.default_rng(3)
        with open(self.path("text"), "wb") as file:
            file.write(random.integers(0, 128, 9000, "u1").tobytes())
        self.text = "text:" + self.path("text")

    def path(self, name):
        return os.path.join(self.folder, name)

    def compile(self, name, model, loss, *flags, compute="f32", accumulate=1):
        with open(self.path(name + ".toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE.format(loss=loss, compute=compute, accumulate=accumulate))
        harness.call("tcc", model, "--train=" + self.path(name + ".toml"), "-q", "-o",
                     self.path(name + ".tcc"), *flags)  # fmt: skip

    def check(self, what, ok, found=""):
        self.tally.check(what, bool(ok), str(found))

    def command(self, name, data, *flags):
        return ["train", self.path(name + ".tcc"), "--data", data, "--threads", "1", *map(str, flags)]

    def train(self, name, data, *flags):
        """The result, and the lines of the log."""
        log = self.path(name + "-log")
        out = harness.call("tcc-run", *self.command(name, data, "-q", "--json", "--log-dir", log, *flags))
        with open(log + "/metrics.jsonl", encoding="utf-8") as file:
            return json.loads(out), [json.loads(line) for line in file]

    def count_flops(self, name):
        """Of each entry, as the package has them."""
        info = json.loads(harness.call("tcc-run", "info", self.path(name + ".tcc"), "--json"))
        return {entry["name"]: entry["flops"] for entry in info["entries"]}

    def check_mfu(self, name, result, lines, flops):
        self.check(f"{name}: flops", result["flops_per_update"] == flops, f"{result} {flops}")
        peak = result["peak_flops_per_s"]
        took = sum(line["update_s"] for line in lines) / len(lines)
        for line in (*lines, result | {"update_s": took}):
            found = line["mfu"] * line["update_s"] * peak
            self.check(f"{name}: mfu", abs(found - flops) <= EXACT * flops, f"{line} {found}")

    def check_tokens(self, name, lines, tokens):
        """So many in each update."""
        for line, expected in zip(lines, tokens, strict=True):
            found = line["tokens_per_s"] * line["update_s"]
            self.check(f"{name}: tokens", abs(found - expected) <= EXACT * expected, line)


def test_sequences(suite):
    """Two batches an update, of 4 samples of 12 tokens."""
    model = os.path.join(cases.FIXTURES, "gpt2_tiny.onnx")
    suite.compile("gpt", model, CAUSAL, accumulate=2)
    result, lines = suite.train("gpt", suite.text, "--steps", 12, "--profile")
    entries = suite.count_flops("gpt")
    suite.check_mfu("gpt", result, lines, 2 * entries["accumulate_step"] + entries["apply"])
    launches = sum(row["flops"] for row in result["profile"]["profile"])
    suite.check("flops of launches", launches == result["flops_per_update"], launches)
    ratio = result["peak_flops_per_s"] / (1e9 * result["profile"]["roofline_gflops"])
    suite.check("peak", 1 / ALIKE < ratio < ALIKE, ratio)
    suite.check_tokens("gpt", lines, 12 * [2 * BATCH * LENGTH])
    tokens = result["tokens_per_s"] / result["samples_per_s"]
    suite.check("tokens of a sample", abs(tokens - LENGTH) <= EXACT, tokens)


def test_images(suite):
    """No sequences, and one batch an update."""
    model = os.path.join(cases.FIXTURES, "cnn_digits.onnx")
    for compute in ("f32", "f64"):
        suite.compile(compute, model, CLASSES, compute=compute)
        result, lines = suite.train(compute, DIGITS, "--steps", 5)
        suite.check_mfu(compute, result, lines, suite.count_flops(compute)["train_step"])
        suite.check("no tokens", "tokens_per_s" not in lines[0] and "tokens_per_s" not in result, lines[0])
        if compute == "f32":
            peak = result["peak_flops_per_s"]
    ratio = 2 * result["peak_flops_per_s"] / peak
    suite.check("peak of f64", 1 / ALIKE < ratio < ALIKE, ratio)


def test_variants(suite):
    """Batches of several sizes."""
    dims = [f"--dim={name}={','.join(map(str, each))}" for name, each in (("batch", BATCHES), ("seq", SIZES))]
    suite.compile("variants", suite.path("decoder.onnx"), CAUSAL, *dims)
    random = np.random.default_rng(5)
    with open(suite.path("texts.jsonl"), "w", encoding="utf-8") as file:
        for size, batch in zip(SIZES, BATCHES, strict=True):
            for _ in range(2 * batch):  # two batches of each
                text = random.integers(97, 123, size - 1, "u1").tobytes().decode()
                file.write(json.dumps({"text": text}) + "\n")
    with open(suite.path("texts.toml"), "w", encoding="utf-8") as file:
        file.write('[data]\nsource = "jsonl:texts.jsonl"\nmap = {tokens = "text"}\n'
                   '[data.train]\ntokens = ["bytes"]\n')  # fmt: skip
    result, lines = suite.train("variants", suite.path("texts.toml"), "--epochs", 1)
    found = [(round(line["samples_per_s"] * line["update_s"]),
              round(line["tokens_per_s"] * line["update_s"])) for line in lines]  # fmt: skip
    expected = [(batch, batch * size) for size, batch in zip(SIZES, BATCHES, strict=True)]
    suite.check("sizes", sorted(found) == sorted(2 * expected), found)
    entries = [flops for name, flops in suite.count_flops("variants").items() if "train_step" in name]
    mean = sum(entries) / len(SIZES)
    ok = len(entries) == len(SIZES) and abs(result["flops_per_update"] - mean) <= EXACT * mean
    suite.check("flops of variants", ok, f"{entries} {result}")
    peak = result["peak_flops_per_s"]
    flops = sorted(round(line["mfu"] * line["update_s"] * peak) for line in lines)
    suite.check("flops of updates", flops == sorted(2 * entries), f"{flops} {entries}")


def test_ranks(suite):
    """Tokens are those of both, flops of one."""
    if not os.path.exists(os.path.join(harness.BIN, "libtcc_gloo.so")):
        suite.tally.skipped += 1
        return
    result, lines = suite.train("gpt", suite.text, "--steps", 5, "--ranks", 2)
    suite.check_tokens("ranks", lines[-5:], 5 * [2 * 2 * BATCH * LENGTH])
    entries = suite.count_flops("gpt")
    suite.check_mfu("ranks", result, lines[-5:], entries["accumulate_step"] + entries["reduce_step"])


def test_device(suite):
    """Graphs that are replayed have flops, too; what a device could do is not known."""
    model = os.path.join(cases.FIXTURES, "gpt2_tiny.onnx")
    suite.compile("device", model, CAUSAL, "--target=cuda", "--arch=none", "--emulate")
    result, lines = suite.train("device", suite.text, "--steps", 6, "--profile", "--device", "emulated")
    launches = sum(row["flops"] for row in result["profile"]["profile"])
    ok = result["flops_per_update"] == launches == suite.count_flops("device")["train_step"]
    suite.check("device: flops", ok, f"{result['flops_per_update']} {launches}")
    suite.check("device: no mfu", "mfu" not in result and "mfu" not in lines[-1], lines[-1])
    suite.check_tokens("device", lines, 6 * [BATCH * LENGTH])


def run_in_terminal(suite, columns, *flags):
    """Its exit code, stdout, and what a terminal of that width got as stderr."""
    controller, terminal = pty.openpty()
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    command = [os.path.join(harness.BIN, "tcc-run"), *suite.command("gpt", suite.text, *flags)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=terminal, env=ENVIRONMENT) as process:
        os.close(terminal)
        written = b""
        while True:
            try:
                part = os.read(controller, 65536)
            except OSError:  # the terminal is closed
                break
            if not part:
                break
            written += part
        out = process.stdout.read().decode()
    os.close(controller)
    return process.returncode, out, written.decode()


def test_terminals(suite):
    keep = ("--steps", 1500, "--export", suite.path("out.safetensors"), "--json")
    for columns, figures in (
        (200, ("step", "loss", "lr", "samples/s", "tokens/s", "MFU", "iB", "ETA")),
        (80, ("step", "loss", "tokens/s", "MFU", "ETA")),
        (45, ("step", "loss", "ETA")),
        (9, ("step",)),
    ):
        code, out, written = run_in_terminal(suite, columns, *keep)
        suite.check(f"{columns}: stdout", code == 0 and json.loads(out)["steps"] == 1500, out)
        _, *lines = re.split("\r(?!\n)", written)
        *lines, cleared = [line.partition("\x1b[K") for line in lines]
        ok = len(lines) > 1 and cleared == ("", "\x1b[K", "")
        suite.check(f"{columns}: lines", ok, repr(written))
        for line, _, rest in lines:
            ok = len(line) < columns and not rest and all(figure in line for figure in figures)
            suite.check(f"{columns}: figures", ok, f"{line!r} {rest!r}")
    _, _, written = run_in_terminal(suite, 200, "-q", *keep)
    suite.check("quiet", written == "", repr(written))


def test_pipes(suite):
    """Nothing in a run of less than 10 s, then lines whose intervals grow."""
    flags = ("--steps", 200, "--export", suite.path("out.safetensors"))
    done = harness.run_tool("tcc-run", *suite.command("gpt", suite.text, *flags))
    suite.check("short", done.code == 0 and "step " not in done.err, done.err)
    if not os.path.exists(FAKETIME):
        suite.tally.skipped += 1
        return
    clock = ENVIRONMENT | {"LD_PRELOAD": FAKETIME, "FAKETIME": f"+0 x{SPEED}"}
    flags = ("--steps", 10000, "--export", suite.path("out.safetensors"), "--json")
    begin = time.monotonic()
    done = harness.run_tool("tcc-run", *suite.command("gpt", suite.text, *flags), env=clock)
    elapsed = SPEED * (time.monotonic() - begin)
    suite.check("fast clock", done.code == 0 and json.loads(done.out)["steps"] == 10000, done.err)
    lines = [line for line in done.err.splitlines() if line.startswith("step ")]
    pattern = r"step \d+/10000  loss \S+  lr \S+  \S+ samples/s  \S+ tokens/s  .*ETA [\d:]+"
    for line in lines:
        suite.check("plain", re.fullmatch(pattern, line), repr(line))
    suite.check("no escapes", not {"\r", "\x1b"} & set(done.err), repr(done.err))
    steps = [int(re.match(r"step (\d+)", line)[1]) for line in lines]
    suite.check("steps", steps == sorted(set(steps)), steps)
    most = 10 + np.log(max(elapsed, 100) / 100) / np.log(1.1) + 1
    suite.check("intervals", 5 <= len(lines) <= most, f"{len(lines)} lines in {elapsed} s")
    done = harness.run_tool("tcc-run", *suite.command("gpt", suite.text, "-q", *flags), env=clock)
    suite.check("quiet, by a fast clock", done.err == "", done.err)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        for test in (test_sequences, test_images, test_variants, test_ranks, test_device,
                     test_terminals, test_pipes):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    main()
