"""tcc-run's train and eval, on a hand-made package that fits a line, on the
CPU and the emulated device.

  training.py FOLDER_OF_WRITE_FIXTURE
"""

import json
import os
import random
import shutil
import struct
import subprocess
import sys
import tempfile
import zipfile

import harness

SAMPLES, BATCH = 12, 4


def write_npz(path, arrays):
    """Float arrays of one axis."""
    with zipfile.ZipFile(path, "w") as archive:
        for name, values in arrays.items():
            header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': ({len(values)},), }}\n"
            archive.writestr(
                f"{name}.npy",
                b"\x93NUMPY\1\0" + struct.pack("<H", len(header)) + header.encode()
                + struct.pack(f"<{len(values)}f", *values),
            )  # fmt: skip


def read_safetensors(path):
    """Floats by name."""
    with open(path, "rb") as file:
        data = file.read()
    size = struct.unpack_from("<Q", data)[0]
    header = json.loads(data[8 : 8 + size])
    values = {}
    for name, tensor in header.items():
        begin, end = (8 + size + at for at in tensor["data_offsets"])
        values[name] = data[begin:end]
    return values


def read_lines(path):
    with open(path) as file:
        return [json.loads(line) for line in file]


class Suite:
    def __init__(self, tally, folder, device):
        self.tally = tally
        self.folder = folder
        self.package = f"{folder}/line.tcc"
        self.device = device
        x = [0.25 * (i + 1) * (-1) ** i for i in range(SAMPLES)]
        write_npz(self.path("data.npz"), {"x": x, "y": [3 * v for v in x]})
        self.data = f"npz:{folder}/data.npz"

    def path(self, name):
        return f"{self.folder}/{name}"

    def expect(self, code, *arguments, says="", lines=1):
        """One run of the tool with this exit code and text on stderr."""
        command, *rest = arguments
        done = harness.run_tool("tcc-run", command, self.package, "--threads", 1,
                                "--device", self.device, *rest)  # fmt: skip
        ok = done.code == code and says in done.err and done.err.count("\n") <= lines
        self.tally.check(" ".join(map(str, arguments)), ok, f"{done.code}: {done.err}")
        return done

    def train(self, *arguments, code=0, says="", lines=1):
        return self.expect(code, "train", "--data", self.data, *arguments, says=says,
                           lines=lines)  # fmt: skip


def test_training(suite):
    done = suite.train("--steps", 60, "--log-dir", suite.path("log"), "--json",
                       "--export", suite.path("w.safetensors"),
                       "--set", "lr=0.05")  # fmt: skip
    row = json.loads(done.out)
    suite.tally.check("json", row["steps"] == 60 and row["loss"] < 1e-3, done.out)
    (w,) = struct.unpack("<f", read_safetensors(suite.path("w.safetensors"))["w"])
    suite.tally.check("learned", abs(w - 3) < 0.01, str(w))
    lines = read_lines(suite.path("log/metrics.jsonl"))
    ok = [line["step"] for line in lines] == list(range(1, 61))
    ok &= lines[59]["loss"] == row["loss"] and lines[0]["skipped"] is False
    suite.tally.check("metrics", ok and lines[0]["grad_norm"] is None, str(lines[0]))
    done = suite.expect(0, "eval", "--data", suite.data, "--json",
                        "--init", suite.path("w.safetensors"))  # fmt: skip
    row = json.loads(done.out)
    ok = row["samples"] == SAMPLES and row["accuracy"] is None and row["loss"] < 1e-3
    suite.tally.check("eval", ok, done.out)
    row = json.loads(suite.expect(0, "eval", "--data", suite.data, "--json").out)
    suite.tally.check("before", row["loss"] > 1, str(row))


def test_running(suite):
    """The model as it is before training."""
    done = suite.expect(0, "run", "--random-inputs", "--json")
    (row,) = json.loads(done.out)["outputs"]
    suite.tally.check("model", (row["name"], row["shape"]) == ("line", [4]), done.out)
    done = suite.expect(0, "bench", "--iterations", 3, "--warmup", 0, "--json")
    suite.tally.check("measured", json.loads(done.out)["entry"] == "predict", done.out)
    done = suite.expect(0, "bench", "--iterations", 3, "--warmup", 0)
    suite.tally.check("named", done.out.startswith("predict: min "), done.out)


def test_order(suite):
    def losses(name, *arguments):
        suite.train("--epochs", 3, "--log-dir", suite.path(name), *arguments)
        return [line["loss"] for line in read_lines(suite.path(name) + "/metrics.jsonl")]

    first = losses("a")
    suite.train("--steps", 1, says="warning: nothing of what is learned will be kept")
    for kept in (("--export", suite.path("kept")), ("--checkpoint-dir", suite.path("kept.d")),
                 ("-q",)):  # fmt: skip
        done = suite.train("--steps", 1, *kept)
        suite.tally.check(f"no warning {kept}", not done.err, done.err)
    suite.tally.check("epochs", len(first) == 3 * SAMPLES // BATCH, str(first))
    suite.tally.check("repeats", losses("b") == first)
    suite.tally.check("shuffles", losses("c", "--no-shuffle") != first)
    suite.tally.check("seed", losses("d", "--seed", 1) != first)


def test_resuming(suite):
    whole, half = suite.path("whole"), suite.path("half")
    suite.train("--steps", 8, "--checkpoint-dir", whole)
    suite.train("--steps", 5, "--checkpoint-dir", half, "--checkpoint-every", 2,
                "--log-dir", suite.path("resumed"))  # fmt: skip
    suite.tally.check("kept", sorted(os.listdir(half)) == ["step-2", "step-4", "step-5"])
    # What was not written to its end does not count.
    os.remove(f"{half}/step-5/state.safetensors")
    done = suite.train("--steps", 8, "--checkpoint-dir", half, "--resume",
                       "--log-dir", suite.path("resumed"), lines=2)  # fmt: skip
    notes = ("note: passing over a checkpoint: ", f"resuming from {half}/step-4\n")
    suite.tally.check("passed over", all(note in done.err for note in notes), done.err)
    states = [read_safetensors(f"{at}/step-8/state.safetensors") for at in (whole, half)]
    suite.tally.check("same bits", states[0] == states[1])
    lines = read_lines(suite.path("resumed/metrics.jsonl"))
    steps = [(line["step"], line.get("redone", False)) for line in lines]
    expected = [(step, again) for step, again in zip([*range(1, 6), *range(5, 9)],
                                                     [False] * 5 + [True] + [False] * 3)]  # fmt: skip
    suite.tally.check("log", steps == expected, str(steps))
    suite.tally.check("the same loss", lines[4]["loss"] == lines[5]["loss"], str(lines[4:6]))
    ok = all(line["stall_s"] >= 0 and line["resident_bytes"] > 1 << 20 for line in lines)
    # A save begins after the line of its update.
    stalls = [line["step"] for line in lines[:5] if line["stall_s"] > 0]
    suite.tally.check("stalls", ok and {3, 5} <= set(stalls) and 2 not in stalls, str(stalls))
    done = suite.train("--steps", 8, "--checkpoint-dir", half, "--resume")
    suite.tally.check("done", done.out.startswith("8 steps, nothing was left to do, "), done.out)
    done = suite.train("--steps", 8, "--checkpoint-dir", half, "--resume", "--json")
    suite.tally.check("no loss", json.loads(done.out)["loss"] is None, done.out)
    weights = suite.path("init.safetensors")
    suite.train("--steps", 9, "--checkpoint-dir", half, "--resume", "--init", weights,
                code=2, says="--init excludes --resume")  # fmt: skip
    suite.expect(2, "eval", "--data", suite.data, "--checkpoint-dir", half, "--init", weights,
                 says="--init excludes --checkpoint-dir")  # fmt: skip
    done = suite.expect(0, "eval", "--data", suite.data, "--checkpoint-dir", half)
    suite.tally.check("eval text", done.out.startswith("loss "), done.out)


def test_problems(suite):
    suite.train(code=2, says="--steps or --epochs")
    suite.train("--steps", 0, code=2, says="--steps: '0' must be a whole number, at least 1")
    suite.train("--epochs", 0, code=2, says="--epochs: '0' must be a whole number, at least 1")
    suite.train("--steps", 10**20, code=2, says="must be a whole number")
    suite.train("--epochs", 2**63 - 1, code=2, says="which is too many batches")
    suite.train("--steps", 1, "--set", "lt=1", code=2, says="did you mean 'lr'")
    suite.train("--steps", 1, "--set", "lr=fast", code=2, says="expected a number (f32)")
    suite.train("--steps", 1, "--resume", code=2, says="--checkpoint-dir")
    suite.train("--steps", 1, "--checkpoint-dir", suite.path("none"), "--resume",
                code=5, says="no complete checkpoint")  # fmt: skip
    # Why each was passed over is part of the error, also where nothing else is said.
    broken = suite.path("broken")
    os.makedirs(f"{broken}/step-3")
    suite.train("--steps", 1, "--checkpoint-dir", broken, "--resume", "-q",
                code=5, says="step-3")  # fmt: skip
    # A run that cannot begin leaves the log of an earlier one as it is.
    log = suite.path("resumed/metrics.jsonl")
    before = read_lines(log)
    suite.train("--steps", 9, "--checkpoint-dir", suite.path("half"), "--resume", "--log-dir",
                suite.path("resumed"), "--set", "lr=fast", code=2, says="lr=fast",
                lines=2)  # fmt: skip
    suite.tally.check("log as it was", before and read_lines(log) == before)
    suite.train("--steps", 1, "--init", suite.path("no.safetensors"), code=5)
    bad = suite.path("bad.npz")
    write_npz(bad, {"x": [1.0] * 8, "z": [1.0] * 8})
    suite.expect(2, "train", "--steps", "1", "--data", f"npz:{bad}",
                 says="there is no array 'y'; it has 'x', 'z'")  # fmt: skip
    # The only array is not the one that is missing.
    write_npz(bad, {"x": [1.0] * 8})
    suite.expect(2, "train", "--steps", "1", "--data", f"npz:{bad}",
                 says="there is no array 'y'; it has 'x'")  # fmt: skip
    write_npz(bad, {"x": [1.0] * 8, "y": [1.0] * 9})
    suite.expect(2, "train", "--steps", "1", "--data", f"npz:{bad}", says="'y' has 9")
    write_npz(bad, {"x": [1.0] * 3, "y": [1.0] * 3})
    suite.expect(2, "train", "--steps", "1", "--data", f"npz:{bad}", says="a batch takes 4")
    suite.expect(2, "eval", "--data", "xml:x", says="no known kind")


def test_faults(suite):
    """Stops at what is not finite, with the parameters before it."""
    bad, folder = suite.path("nan.npz"), suite.path("fault")
    write_npz(bad, {"x": [1.0] * 8, "y": [2.0] * 7 + [float("nan")]})
    done = suite.expect(6, "train", "--data", f"npz:{bad}", "--steps", 9, "--no-shuffle",
                        "--checkpoint-dir", folder, "--log-dir", folder,
                        says="not finite")  # fmt: skip
    suite.tally.check("stopped", done.out.startswith("2 steps"), done.out)
    last = read_lines(f"{folder}/metrics.jsonl")[-1]
    ok = last["loss"] is None and last["skipped"] and last["step"] == 2
    suite.tally.check("null", ok, str(last))
    state = read_safetensors(f"{folder}/step-2/state.safetensors")
    (w,) = struct.unpack("<f", state["w"])
    suite.tally.check("last good", abs(w - 0.8) < 1e-6, str(w))


def test_damage(suite):
    """Damaged checkpoints are refused or passed over."""
    generator = random.Random(1)
    whole = suite.path("whole/step-8")
    for number in range(40):
        folder = suite.path(f"damaged/{number}")
        shutil.copytree(whole, f"{folder}/step-8")
        path = f"{folder}/step-8/{generator.choice(sorted(os.listdir(whole)))}"
        with open(path, "rb") as file:
            data = bytearray(file.read())
        if number % 2:
            data[generator.randrange(len(data))] ^= 1 << generator.randrange(8)
        else:
            del data[generator.randrange(len(data)) :]
        with open(path, "wb") as file:
            file.write(data)
        done = harness.run_tool("tcc-run", "train", suite.package, "--data", suite.data,
                                "--steps", 9, "--checkpoint-dir", folder, "--resume",
                                "--threads", 1, "--device", suite.device)  # fmt: skip
        suite.tally.check(f"damage {number}", done.code in (0, 2, 3, 5), done.err)


def main(fixtures):
    tally = harness.Tally()
    for device, kind in (("cpu", "line"), ("emulated", "device_line")):
        with tempfile.TemporaryDirectory() as folder:
            subprocess.run([f"{fixtures}/tcc_write_fixture", kind, f"{folder}/line.tcc"],
                           check=True)  # fmt: skip
            suite = Suite(tally, folder, device)
            for test in (test_training, test_running, test_order, test_resuming,
                         test_problems, test_faults, test_damage):  # fmt: skip
                test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
