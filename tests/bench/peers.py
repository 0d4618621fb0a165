"""Whole models on the CPU beside their peers.

  peers.py [--models PATTERNS] [--peers ENGINES] [--threads N] [--rounds N]
            [--seconds S] [--json FILE] [--table FILE]

Engines take turns in processes pinned to the first N cores, all in f32 on static
shapes; on a CPU with AVX512-BF16 also in bf16, beside tcc's own f32. On one
thread the time is what the process itself used. A round counts if others took
little of those cores while it ran; a ratio is the median over the rounds of
peer's time / tcc's. The share of the peak relates the model's operations, as the
compiler counts them, to an FMA loop that runs in each round.

torch.compile runs the modules that exports were made from. IREE (the packages
iree-base-compiler and iree-base-runtime) is measured on one thread.
"""

import argparse
import contextlib
import importlib.util
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time

from bench.subjects import compile_subject, measure_all, select_subjects
from harness import BIN, ROOT, run_tool

MAX_DISTURBANCE = 0.1  # of the cores' time
MAX_ATTEMPTS = 4  # for each round that is wanted
TITLES = {
    "tcc": "tcc",
    "tcc_f32": "tcc in f32",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
    "torch": "torch.compile",
    "iree": "IREE",
}
# What is measured in bf16 too, and beside what.
BF16_SUBJECTS = ("vit_b_16", "bert_base")
BF16_PEERS = ("tcc_f32", "openvino")


class Worker:
    def __init__(self, engine, model, package, data_set, threads, precision="f32"):
        command = [sys.executable, os.path.join(ROOT, "tests/bench/worker.py")]
        command += [engine, model, package, data_set, str(threads), precision]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self, seconds):
        """Milliseconds of each run, CPU seconds used; None if it ended."""
        try:
            print(seconds, file=self.process.stdin, flush=True)
        except BrokenPipeError:
            return None
        line = self.process.stdout.readline()
        return json.loads(line) if line else None

    def close(self):
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.close()
        self.process.wait()


def busy_seconds(threads):
    """What all processes used of the first cores so far."""
    ticks = 0
    with open("/proc/stat") as stream:
        for line in stream:
            name, *fields = line.split()
            if name.startswith("cpu") and name[3:].isdigit() and int(name[3:]) < threads:
                user, nice, system, _, _, irq, soft, steal, *_ = map(int, fields)
                ticks += user + nice + system + irq + soft + steal
    return ticks / os.sysconf("SC_CLK_TCK")


def peak_gflops(threads):
    """Of the first cores together."""
    command = os.path.join(BIN, "fma-peak")
    loops = [
        subprocess.Popen(
            [command, "30"],
            stdout=subprocess.PIPE,
            text=True,
            preexec_fn=lambda core=core: os.sched_setaffinity(0, [core]),
        )
        for core in range(threads)
    ]
    return sum(float(loop.communicate()[0]) for loop in loops)


def count_flops(package, data_set):
    run = run_tool(
        "tcc-run", "bench", package, "--inputs-dir", data_set, "--iterations", 1,
        "--threads", 1, "--profile", "--json",
    )  # fmt: skip
    rows = json.loads(run.out)["profile"]
    return sum(row["flops"] for row in rows)


def measure_round(workers, seconds, threads):
    """Median milliseconds by engine, and the share that others took."""
    before, start, own, medians = busy_seconds(threads), time.monotonic(), 0, {}
    for engine, worker in workers.items():
        done = worker.run(seconds)
        if done is None:
            raise RuntimeError(f"{engine} ended")
        own += done["cpu"]
        medians[engine] = statistics.median(done["ms"])
    elapsed = time.monotonic() - start
    others = busy_seconds(threads) - before - own
    return medians, max(0.0, others) / (elapsed * threads)


def measure(name, maker, case, options, work):
    """A JSON row for one model."""
    model, package, data_set = compile_subject(name, maker, case, work)
    workers = {
        engine: Worker(engine, model, package, data_set, options.threads)
        for engine in ("tcc", *options.peers)
    }
    flops = count_flops(package, data_set)
    row = take_turns({"model": name, "gflop": flops * 1e-9}, workers, options)
    os.remove(package)
    return row


def measure_bf16(name, maker, case, options, work):
    """Its row in bf16."""
    narrow = {**case, "precision": "bf16"}
    model, package, data_set = compile_subject(name, maker, narrow, work)
    os.rename(package, package + ".bf16")
    _, wide, _ = compile_subject(name, maker, case, work)
    packages = {"tcc": ("tcc", package + ".bf16"), "tcc_f32": ("tcc", wide)}
    workers = {}
    for engine in ("tcc", *BF16_PEERS):
        kind, path = packages.get(engine, (engine, wide))
        arguments = (kind, model, path, data_set, options.threads, "bf16")
        workers[engine] = Worker(*arguments)
    flops = count_flops(wide, data_set)
    row = {"model": name + " bf16", "gflop": flops * 1e-9}
    row = take_turns(row, workers, options)
    for path in (wide, package + ".bf16"):
        os.remove(path)
    return row


def has_bf16():
    with open("/proc/cpuinfo") as stream:
        return "avx512_bf16" in stream.read()


def take_turns(row, workers, options):
    """The row with the medians of all that run."""
    row |= {"threads": options.threads, "dropped": 0}
    name, rounds, peaks = row["model"], [], []
    try:
        for engine in [e for e, w in workers.items() if w.run(0.1) is None]:
            print(f"{name}: {TITLES[engine]} does not run it", file=sys.stderr)
            workers.pop(engine).close()
        if "tcc" not in workers:
            raise RuntimeError("tcc ended")
        while len(rounds) < options.rounds:
            medians, others = measure_round(workers, options.seconds, options.threads)
            peaks.append(peak_gflops(options.threads))
            if others > MAX_DISTURBANCE and row["dropped"] < MAX_ATTEMPTS * options.rounds:
                row["dropped"] += 1
                continue
            row["disturbed"] = row.get("disturbed", False) or others > MAX_DISTURBANCE
            rounds.append(medians)
    finally:
        for worker in workers.values():
            worker.close()
    for engine in workers:
        row[engine] = statistics.median(r[engine] for r in rounds)
        row[f"{engine}_ratio"] = statistics.median(r[engine] / r["tcc"] for r in rounds)
    row["peak_gflops"] = statistics.median(peaks)
    return row


def table(rows, peers):
    """Markdown; a ratio above 1 says that tcc is faster."""
    header = ["model", "threads", "tcc ms", "of peak"]
    for peer in peers:
        header += [f"{TITLES[peer]} ms", "/ tcc"]
    lines = ["| " + " | ".join(header) + " |", "|---" * len(header) + "|"]
    for row in rows:
        share = row["gflop"] / row["tcc"] * 1e3 / row["peak_gflops"]
        mark = " (disturbed)" if row["disturbed"] else ""
        fields = [row["model"] + mark, str(row["threads"]), f"{row['tcc']:.2f}"]
        fields.append(f"{share:.0%}")
        for peer in peers:
            runs = peer in row
            fields += [f"{row[peer]:.2f}", f"{row[peer + '_ratio']:.2f}"] if runs else ["-", "-"]
        lines.append("| " + " | ".join(fields) + " |")
    return "\n".join(lines) + "\n"


def read_options():
    parser = argparse.ArgumentParser()
    parser.add_argument("--models", default="")
    parser.add_argument("--peers", default="onnxruntime,openvino,torch,iree")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--json")
    parser.add_argument("--table")
    options = parser.parse_args()
    peers = [peer for peer in options.peers.split(",") if peer]
    options.peers = [peer for peer in peers if is_installed(peer)]
    return options


def is_installed(peer):
    """An engine has the name of its Python package."""
    found = importlib.util.find_spec(peer) is not None
    if not found:
        print(f"{TITLES[peer]}: not available: the package {peer} is not installed")
    return found


def main():
    options = read_options()
    subjects = select_subjects(options.models)
    with tempfile.TemporaryDirectory() as work:
        rows, failed = measure_all(
            subjects,
            lambda *subject: measure(*subject, options, work),
            lambda row: table([row], options.peers).splitlines()[-1],
        )
        narrow = {name: subjects[name] for name in BF16_SUBJECTS if name in subjects}
        if narrow and not has_bf16():
            print("bf16: not available: this CPU lacks AVX512-BF16")
            narrow = {}
        failed += measure_all(
            narrow,
            lambda *subject: measure_bf16(*subject, options, work),
            lambda row: table([row], BF16_PEERS),
        )[1]
    if options.json:
        with open(options.json, "w") as stream:
            json.dump({"schema_version": 1, "rows": rows}, stream, indent=1)
    if options.table:
        with open(options.table, "w") as stream:
            stream.write(table(rows, options.peers))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
