"""Runs the checks of a packed folder: check.py FOLDER DEVICE RESULTS

Needs Python's numpy alone; what also needs torch, onnxruntime or NVIDIA's tools is not
available without them. The report is written anew after each check.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import unknowns
from overlap import find_overlap

HERE = os.path.dirname(os.path.abspath(__file__))
RUNS = 20
# PyTorch's own distance of f32 to f64, times:
CURVE_RATIO = 3
TIMEOUT = 120
# Run side by side, before those whose time is taken.
UNTIMED = ("compare", "train", "repeats", "nccl", "ranks", "sanitizer")
MOST_AT_ONCE = 8
# Of all checks; those that are left then are not available.
SECONDS = 8 * 60
# What outputs may be off from f64, of the largest; or times what torch itself is.
TOLERANCES = {"f32": 1e-3, "bf16": 0.03, "f16": 0.01}
ORACLE_RATIO = 4


class Missing(Exception):
    """What a check needs is not on this machine."""


class Failed(Exception):
    pass


class Checker:
    def __init__(self, folder, device, results):
        self.folder, self.device, self.results = folder, device, results
        self.rows, self.answers, self.start = [], {}, time.monotonic()
        self.lock = threading.Lock()
        os.makedirs(results, exist_ok=True)

    def path(self, name):
        return os.path.join(self.folder, name)

    @property
    def torch_device(self):
        return "cpu" if self.device == "emulated" else "cuda"

    def call(self, *arguments, before=(), libraries=None):
        command = [*before, self.path("tcc-run"), *map(str, arguments)]
        command += ["--device", self.device]
        environment = {"TCC_CUDA_LIB": libraries} if libraries else {}
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, errors="replace",
            env=os.environ | environment,
        )  # fmt: skip
        if run.returncode != 0:
            lines = (run.stderr or run.stdout).strip().splitlines()
            raise Failed(f"exit {run.returncode}: {lines[0] if lines else ''}")
        return run.stdout

    # --- Kinds: each returns what it found

    def compare(self, check):
        data = self.path(check["data"])
        flags = ["--inputs-dir", data, "--expect-dir", data]
        libraries = check.get("libraries")
        self.call("run", self.path(check["package"]), *flags, libraries=libraries)
        return "within 1e-3"

    def tune(self, check):
        """Outputs are right in the ways that are fastest."""
        package, data = self.path(check["package"]), self.path(check["data"])
        libraries = check.get("libraries")
        with tempfile.TemporaryDirectory() as folder:
            cache = ["--tune-cache", f"{folder}/fastest"]
            out = self.call("tune", package, *cache, "--json", libraries=libraries)
            flags = ["--inputs-dir", data, "--expect-dir", data, *cache]
            self.call("run", package, *flags, libraries=libraries)
        works = json.loads(out)["works"]
        first = sum(row["first_us"] or row["kernel_us"] for row in works)
        fastest = sum(row["fastest_us"] for row in works)
        return f"{len(works)} works, {first:.1f} us -> {fastest:.1f} us"

    def repeats(self, check):
        data, first = self.path(check["data"]), None
        for _ in range(RUNS):
            with tempfile.TemporaryDirectory() as out:
                self.call(
                    "run", self.path(check["package"]), "--inputs-dir", data,
                    "--output-dir", out,
                )  # fmt: skip
                bits = [np.load(f"{out}/{name}").tobytes() for name in sorted(os.listdir(out))]
            if first is not None and bits != first:
                raise Failed("two runs differ")
            first = bits
        return f"{RUNS} runs with the same bits"

    def sanitizer(self, check):
        tool = shutil.which("compute-sanitizer")
        if not tool or self.device == "emulated":
            raise Missing("compute-sanitizer")
        data = self.path(check["data"])
        for name in ("memcheck", "racecheck"):
            before = [tool, "--tool", name, "--error-exitcode", "9"]
            flags = ["--inputs-dir", data]
            self.call("run", self.path(check["package"]), *flags, before=before)
        return "memcheck and racecheck find nothing"

    def train(self, check):
        steps = check["steps"]
        with tempfile.TemporaryDirectory() as out:
            flags = [flag for key in check["set"] for flag in ("--set", key)]
            self.call(
                "train", self.path(check["package"]), "-q", "--no-shuffle",
                "--data", "npz:" + self.path(check["data"]), "--steps", steps,
                "--log-dir", out, *flags,
            )  # fmt: skip
            with open(f"{out}/metrics.jsonl") as stream:
                losses = [json.loads(line)["loss"] for line in stream]
        exact = np.array(check["losses"][:steps])
        ours = np.linalg.norm(np.array(losses) - exact)
        theirs = np.linalg.norm(np.array(check["pytorch"][:steps]) - exact)
        text = f"{ours:.1e} from the f64 curve, PyTorch's f32 {theirs:.1e}"
        if not ours <= CURVE_RATIO * theirs + 1e-6:
            raise Failed(text)
        return text

    def nccl(self, check):
        """A group of one rank: calls, in graphs too, and its ends."""
        test = subprocess.run(
            [self.path("OneRankTest")], capture_output=True, text=True, timeout=TIMEOUT,
            env=os.environ | {"TCC_PLUGINS": self.folder, "TCC_CHECKED_DEVICE": self.device},
        )  # fmt: skip
        lines = test.stdout.splitlines()
        if test.returncode:
            wrong = [line for line in lines if "Failure" in line or "FAILED" in line]
            raise Failed("; ".join(wrong)[:200] or f"exit {test.returncode}")
        for line in lines:
            if "not available: " in line:
                raise Missing(line.split("not available: ")[1])
        return lines[-1].strip()

    def ranks(self, check):
        """Two ranks on one GPU, which NCCL allows from 2.30 on, are as one process."""
        losses = []
        place = self.device if ":" in self.device else self.device + ":0"
        for world in (1, 2):
            with tempfile.TemporaryDirectory() as out:
                command = [
                    self.path("tcc-run"), "train", self.path(check["package"]), "-q",
                    "--data", "npz:" + self.path(check["data"]), "--steps", check["steps"],
                    "--log-dir", out, "--set", f"accumulate={2 // world}",
                    "--ranks", world, "--device", place,
                ]  # fmt: skip
                done = subprocess.run(
                    list(map(str, command)), capture_output=True, text=True, timeout=TIMEOUT,
                    errors="replace", env=os.environ | {"NCCL_MULTI_RANK_GPU_ENABLE": "1"},
                )  # fmt: skip
                lacks = ("there is no libnccl", "NCCL is 2.", "Duplicate GPU", "libtcc_gloo")
                if done.returncode and any(text in done.stderr for text in lacks):
                    raise Missing("NCCL 2.30 and Gloo for two ranks on one GPU")
                if done.returncode:
                    raise Failed(f"exit {done.returncode}: {done.stderr.strip()[:200]}")
                with open(f"{out}/metrics.jsonl") as stream:
                    losses.append(np.array([json.loads(line)["loss"] for line in stream]))
        off = np.abs(losses[1] / losses[0] - 1).max()
        text = f"losses of two ranks are {off:.1e} from those of one process"
        if not off <= 1e-4:
            raise Failed(text)
        return text

    def profile(self, check):
        """Of the largest kernel: a launch and waiting for it."""
        package = self.path(check["package"])
        out = self.call("bench", package, "--random-inputs", "--profile", "--json",
                        "--duration", "0.5")  # fmt: skip
        microseconds = max(row["ms"] for row in json.loads(out)["profile"]) * 1e3
        return f"{microseconds:.1f} us, {check['bytes'] / microseconds / 1e3:.0f} GB/s"

    def unknown(self, check):
        torch = self.import_torch()
        try:
            found = unknowns.FUNCTIONS[check["name"]](torch, self.torch_device, check)
        except unknowns.Absent as absent:
            raise Missing(str(absent)) from absent
        self.answers[check["name"]] = found
        with open(f"{self.results}/unknowns.json", "w") as stream:
            json.dump(self.answers, stream, indent=1)
        return f"{len(found)} answers in unknowns.json"

    def import_torch(self):
        try:
            import torch
        except ImportError as problem:
            raise Missing("torch") from problem
        if self.device != "emulated" and not torch.cuda.is_available():
            raise Missing("a GPU for torch")
        return torch

    def ask(self, script, *arguments):
        """What oracle.py or steps.py prints."""
        self.import_torch()
        command = [sys.executable, os.path.join(HERE, script), *map(str, arguments)]
        run = subprocess.run(
            command, capture_output=True, text=True, timeout=TIMEOUT, errors="replace"
        )
        if "ModuleNotFoundError" in run.stderr:
            raise Missing(run.stderr.strip().splitlines()[-1])
        if run.returncode != 0:
            raise Failed(f"{script}: " + (run.stderr.strip().splitlines() or ["died"])[-1])
        return [json.loads(line) for line in run.stdout.splitlines() if line[:1] == "{"]

    def speed(self, check):
        """Weights that torch writes, the outputs that torch finds, and the time."""
        model, batch, kind = check["model"], check["batch"], check["type"]
        with tempfile.TemporaryDirectory() as folder:
            (found,) = self.ask("oracle.py", "write", model, batch, kind, folder)
            package = self.path(check["package"])
            flags = ["--weights", f"{folder}/weights.safetensors", "--inputs-dir", folder]
            start = time.monotonic()
            self.call("run", package, *flags, "--output-dir", f"{folder}/out")
            first = time.monotonic() - start
            ours = np.load(f"{folder}/out/output_0.npy").astype(np.float64)
            exact = np.load(f"{folder}/output_0.npy").astype(np.float64)
            cache = ["--tune-cache", f"{folder}/fastest"]
            self.call("tune", package, *flags, *cache)
            bench = ["bench", package, *flags, "--json", "--duration", "1"]
            out, tuned = self.call(*bench), self.call(*bench, *cache)
        apart = np.abs(ours - exact).max() / np.abs(exact).max()
        text = f"{apart:.1e} from f64, torch {found['apart']:.1e}; "
        text += f"{json.loads(out)['med_ms']:.3f} ms, tuned {json.loads(tuned)['med_ms']:.3f} ms"
        text += f", first result after {first:.2f} s"
        if not apart <= max(TOLERANCES[kind], ORACLE_RATIO * found["apart"]):
            raise Failed(text)
        return text

    def add_times(self, name, found):
        """The times of others, in a row of the report each."""
        for row in found:
            is_there = "ms" in row
            detail = f"{row['ms']:.3f} ms" if is_there else row["missing"]
            outcome = "pass" if is_there else "not available"
            self.add(f"{name} {row['engine']}", outcome, detail, 0)

    def peers(self, check):
        subject = check["model"], check["batch"], check["type"]
        modes = check["modes"]
        found = self.ask("oracle.py", "time", *subject, self.torch_device, *modes)
        self.add_times(check["name"], found)
        return "all asked"

    def steps(self, check):
        """From torch's parameters: its losses, and the time of a step beside its own."""
        name, package = check["name"], self.path(check["package"])
        with tempfile.TemporaryDirectory() as folder:
            (exact,) = self.ask("steps.py", "write", name, folder, self.torch_device)
            self.call(
                "train", package, "-q", "--no-shuffle", "--data", f"npz:{folder}/data.npz",
                "--weights", f"{folder}/weights.safetensors", "--steps", check["count"],
                "--log-dir", folder,
            )  # fmt: skip
            with open(f"{folder}/metrics.jsonl") as stream:
                rows = [json.loads(line) for line in stream]
        batch = int(name.rsplit(".b")[1])
        rate = np.median([row["samples_per_s"] for row in rows[len(rows) // 4 :]])
        pairs = zip(exact["losses"], (row["loss"] for row in rows))
        apart = max(abs(ours / theirs - 1) for theirs, ours in pairs)
        text = f"{1e3 * batch / rate:.3f} ms; losses {apart:.1e} from torch's"
        if not apart <= TOLERANCES["bf16"]:
            raise Failed(text)
        self.add_times(f"steps {name}", self.ask("steps.py", "time", name, self.torch_device))
        return text

    def overlap(self, check):
        """Uploads of the next batch while kernels run."""
        tool = shutil.which("nsys")
        if not tool or self.device == "emulated":
            raise Missing("nsys")
        with tempfile.TemporaryDirectory() as folder:
            before = [tool, "profile", "-t", "cuda", "-o", f"{folder}/run"]
            self.call(
                "train", self.path(check["package"]), "-q", "--data",
                "npz:" + self.path(check["data"]), "--steps", check["steps"], before=before,
            )  # fmt: skip
            command = [tool, "stats", "-r", "cuda_gpu_trace", "-f", "csv", "-q"]
            run = subprocess.run([*command, f"{folder}/run.nsys-rep"], capture_output=True,
                                 text=True, timeout=TIMEOUT, check=True)  # fmt: skip
        covered, total = find_overlap(run.stdout)
        text = f"{covered / 1e3:.1f} of {total / 1e3:.1f} us of uploads while kernels run"
        if not covered:
            raise Failed(text)
        return text

    # --- The report

    def run(self, check):
        start = time.monotonic()
        try:
            if start - self.start > SECONDS:
                raise Missing("time")
            outcome, detail = "pass", getattr(self, check["kind"])(check)
        except Missing as missing:
            outcome, detail = "not available", str(missing)
        except (Failed, OSError, ValueError, RuntimeError, subprocess.SubprocessError) as problem:
            outcome, detail = "fail", str(problem)
        name = f"{check['kind']} {check['name']}"
        self.add(name, outcome, detail, time.monotonic() - start)

    def add(self, name, outcome, detail, seconds):
        row = {"check": name, "outcome": outcome, "detail": detail}
        with self.lock:
            self.rows.append(row | {"seconds": round(seconds, 1)})
            self.write()
            print(f"{outcome:13} {name}: {detail}", flush=True)

    def write(self):
        with open(f"{self.results}/report.json", "w") as stream:
            json.dump(self.rows, stream, indent=1)
        with open(f"{self.results}/report.md", "w") as stream:
            stream.write("| check | outcome | | s |\n|---|---|---|---|\n")
            for row in self.rows:
                stream.write("| {check} | {outcome} | {detail} | {seconds} |\n".format(**row))


def main(folder, device, results):
    checker = Checker(folder, device, results)
    doctor = subprocess.run(
        [checker.path("tcc-run"), "doctor"], capture_output=True, text=True, timeout=TIMEOUT
    )
    print(doctor.stdout, end="")
    with open(f"{results}/doctor.txt", "w") as stream:
        stream.write(doctor.stdout)
    with open(checker.path("manifest.json")) as stream:
        checks = json.load(stream)
    with ThreadPoolExecutor(min(MOST_AT_ONCE, os.cpu_count())) as pool:
        list(pool.map(checker.run, [c for c in checks if c["kind"] in UNTIMED]))
    for check in checks:
        if check["kind"] not in UNTIMED:
            checker.run(check)
    counts = [
        sum(row["outcome"] == outcome for row in checker.rows)
        for outcome in ("pass", "fail", "not available")
    ]
    print("{} passed, {} failed, {} skipped".format(*counts))
    sys.exit(counts[1] > 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
