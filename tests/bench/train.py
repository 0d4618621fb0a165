"""Training steps on the CPU beside their peers.

  train.py [--models PATTERNS] [--peers ENGINES] [--precisions f32,bf16]
           [--threads N] [--rounds N] [--seconds S] [--json FILE] [--table FILE]

A step is forward, loss, backward and the optimizer's update, on one of a few
batches; all engines begin with the same parameters, and the losses of their first
steps must agree. Turns and ratios are those of peers.py; the share of the peak
counts the operations of products and convolutions, as torch does.

torch_fused and torch_compile have PyTorch's fused optimizer and channels last; in
bf16 PyTorch has autocast. With --threads 1, tcc's time on two threads, by the clock,
stands beside. The summary compares each workload with the peer that is fastest there,
its peak of memory with the least of theirs, and its first step with a later one.
"""

import json
import os
import resource
import statistics
import sys
import tempfile

from bench import reports, torch_models, workloads
from bench.subjects import matching, measure_all
from bench.turns import Worker, take_turns
from bench.worker import cpu_seconds
from harness import first_line, run_tool

TITLES = {
    "tcc": "tcc",
    "torch": "torch",
    "torch_fused": "fused",
    "torch_compile": "torch.compile",
    "jax": "jax",
}
PACKAGES = {"torch_fused": "torch", "torch_compile": "torch"}
F32_ONLY = {"jax"}
TWO_THREADS = "tcc_on_two"


def compile_step(name, folder, precision):
    """Writes PRECISION.tcc; the CPU seconds that tcc takes."""
    recipe = os.path.join(folder, "recipe.toml")
    with open(recipe, "w") as stream:
        stream.write(workloads.recipe(name, precision))
    files = "model.onnx", f"{precision}.tcc"
    model, package = (os.path.join(folder, file) for file in files)
    before = cpu_seconds(resource.RUSAGE_CHILDREN)
    compiled = run_tool("tcc", model, f"--train={recipe}", "-o", package, "-q")
    if compiled.code != 0:
        raise RuntimeError(first_line(compiled))
    return cpu_seconds(resource.RUSAGE_CHILDREN) - before


def planned_megabytes(package, threads):
    """Of the arena, the workers' scratch and the variables; sums of gradients take
    no memory with one batch an update."""
    info = json.loads(run_tool("tcc-run", "info", package, "--json").out)
    arena = max(entry["arena_bytes"] for entry in info["entries"])
    scratch = max(entry["worker_scratch_bytes"] for entry in info["entries"])
    kept = [v for v in info["variables"] if not v["name"].startswith("gradient/")]
    variables = sum(variable["bytes"] for variable in kept)
    return (arena + threads * scratch + variables) / 1e6


def check_losses(row, engines):
    """Those of the first steps against tcc's."""
    tolerance = workloads.tolerance(row["workload"], row["precision"])
    for engine in engines:
        pairs = zip(row["tcc_losses"], row.get(f"{engine}_losses", ()))
        differences = [abs(ours / theirs - 1) for ours, theirs in pairs]
        if not all(difference <= tolerance for difference in differences):
            raise RuntimeError(f"the losses of {engine} differ by {max(differences):.1e}")


def label(name, precision):
    return name if precision == "f32" else f"{name}.{precision}"


def measure(name, precision, options):
    """A JSON row for one workload."""
    peers = [p for p in options.peers if precision == "f32" or p not in F32_ONLY]
    with tempfile.TemporaryDirectory() as folder:
        torch_models.export(name, folder)
        compile_s = compile_step(name, folder, precision)
        row = {"model": label(name, precision), "workload": name}
        row |= {"precision": precision, "tcc_compile_s": compile_s}
        row["gflop"] = torch_models.count_flops(name) * 1e-9
        package = os.path.join(folder, f"{precision}.tcc")
        row["tcc_plan_mb"] = planned_megabytes(package, options.threads)

        def start(engine, threads):
            worker = Worker("trainer.py", engine, name, folder, threads, precision)
            worker.run(0.1)  # no other one disturbs its first step
            return worker

        workers = {engine: start(engine, options.threads) for engine in ("tcc", *peers)}
        if options.threads == 1 and os.cpu_count() > 1:
            workers[TWO_THREADS] = start("tcc", 2)
        take_turns(row, workers, options)
    check_losses(row, peers)
    return row


def costs(rows, peers):
    """Markdown: memory, and the CPU seconds until a first step is done."""
    header = ["model", "threads", "plan MB", "tcc MB"]
    header += [f"{TITLES[peer]} MB" for peer in peers]
    header += ["compile s", *(f"{TITLES[engine]} first s" for engine in ("tcc", *peers))]
    lines = []
    for row in rows:
        keys = ["tcc_plan_mb", *(f"{engine}_peak_mb" for engine in ("tcc", *peers))]
        keys += ["tcc_compile_s", *(f"{engine}_first_s" for engine in ("tcc", *peers))]
        forms = [(key, "{:.2f}" if key.endswith("_s") else "{:.0f}") for key in keys]
        fields = [form.format(row[key]) if key in row else "-" for key, form in forms]
        lines.append([row["model"], str(row["threads"]), *fields])
    return reports.markdown(header, lines)


def best_peer(row, peers):
    """The ratio to the fastest one, and which it is."""
    return min((row[f"{peer}_ratio"], peer) for peer in peers if peer in row)


def beside(rows, peers):
    """Phrases: the peak of memory, and what the first step takes beyond a later one
    from opening the package on: CPU seconds, and two threads by the clock."""
    memory, first, clock = [], [], []
    for row in rows:
        least = min(row[f"{peer}_peak_mb"] for peer in peers if peer in row)
        memory.append(f"{row['model']} {row['tcc_peak_mb'] / least:.2f}")
        first.append(f"{row['model']} {row['tcc_first_s'] - row['tcc'] * 1e-3:.2f}")
        if TWO_THREADS in row:
            beyond = row[f"{TWO_THREADS}_first_clock_s"] - row[TWO_THREADS] * 1e-3
            clock.append(f"{row['model']} {beyond:.2f}")
    yield "peak memory of tcc / of the best peer " + ", ".join(memory)
    yield "CPU seconds of the first step beyond a later one " + ", ".join(first)
    if clock:
        yield "by the clock, on two threads " + ", ".join(clock)


def summary(rows, peers):
    """Lines: the fastest peer of each workload, and their geometric mean."""
    lines = []
    for precision in dict.fromkeys(row["precision"] for row in rows):
        chosen = [row for row in rows if row["precision"] == precision]
        best = {row["model"]: best_peer(row, peers) for row in chosen}
        mean = statistics.geometric_mean(ratio for ratio, _ in best.values())
        each = ", ".join(
            f"{model} {ratio:.2f} ({TITLES[peer]})" for model, (ratio, peer) in best.items()
        )
        lines.append(f"{precision}: best peer / tcc {each}; geometric mean {mean:.2f}")
        lines += [f"{precision}: {phrase}" for phrase in beside(chosen, peers)]
        if all(TWO_THREADS in row for row in chosen):
            lines.append(
                f"{precision}: time on two threads / on one "
                + ", ".join(f"{row['model']} {row[TWO_THREADS + '_ratio']:.2f}" for row in chosen)
            )
    return "\n".join(lines) + "\n"


def main():
    options = reports.read_options(TITLES, PACKAGES, 2.0, precisions="f32")
    names = matching(workloads.WORKLOADS, options.models or "*")
    subjects = {
        label(name, precision): (name, precision)
        for precision in options.precisions.split(",")
        for name in names
    }
    rows, failed = measure_all(
        subjects,
        lambda _, *subject: measure(*subject, options),
        lambda row: reports.times([row], TITLES, options.peers).splitlines()[-1],
    )
    tables = [reports.times(rows, TITLES, options.peers), costs(rows, options.peers)]
    if rows and options.peers:
        tables.append(summary(rows, options.peers))
    print("\n".join(tables[1:]), end="")
    reports.write(options, rows, "\n".join(tables))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
