"""Training steps on the CPU beside their peers.

  train.py [--models PATTERNS] [--peers ENGINES] [--threads N] [--rounds N]
           [--seconds S] [--json FILE] [--table FILE]

A step is forward, loss, backward and the optimizer's update, on one of a few
batches; all engines begin with the same parameters, and the losses of their first
steps must agree. Turns and ratios are those of peers.py; the share of the peak
counts the operations of products and convolutions, as torch does.

torch_fused and torch_compile have PyTorch's fused optimizer.
"""

import json
import os
import resource
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


def compile_step(name, folder):
    """Writes train.tcc; the CPU seconds that tcc takes."""
    torch_models.export(name, folder)
    recipe = os.path.join(folder, "recipe.toml")
    with open(recipe, "w") as stream:
        stream.write(workloads.recipe(name))
    model, package = (os.path.join(folder, file) for file in ("model.onnx", "train.tcc"))
    before = cpu_seconds(resource.RUSAGE_CHILDREN)
    compiled = run_tool("tcc", model, f"--train={recipe}", "-o", package, "-q")
    if compiled.code != 0:
        raise RuntimeError(first_line(compiled))
    return cpu_seconds(resource.RUSAGE_CHILDREN) - before


def planned_megabytes(folder, threads):
    """Of the arena, the workers' scratch and the variables."""
    run = run_tool("tcc-run", "info", os.path.join(folder, "train.tcc"), "--json")
    info = json.loads(run.out)
    arena = max(entry["arena_bytes"] for entry in info["entries"])
    scratch = max(entry["worker_scratch_bytes"] for entry in info["entries"])
    variables = sum(variable["bytes"] for variable in info["variables"])
    return (arena + threads * scratch + variables) / 1e6


def check_losses(row, engines):
    """Those of the first steps against tcc's."""
    tolerance = workloads.WORKLOADS[row["model"]].tolerance
    for engine in engines:
        pairs = zip(row["tcc_losses"], row.get(f"{engine}_losses", ()))
        differences = [abs(ours / theirs - 1) for ours, theirs in pairs]
        if not all(difference <= tolerance for difference in differences):
            raise RuntimeError(f"the losses of {engine} differ by {max(differences):.1e}")


def measure(name, options):
    """A JSON row for one workload."""
    with tempfile.TemporaryDirectory() as folder:
        compile_s = compile_step(name, folder)
        row = {"model": name, "gflop": torch_models.count_flops(name) * 1e-9}
        row["tcc_compile_s"] = compile_s
        row["tcc_plan_mb"] = planned_megabytes(folder, options.threads)
        workers = {
            engine: Worker("trainer.py", engine, name, folder, options.threads)
            for engine in ("tcc", *options.peers)
        }
        take_turns(row, workers, options)
    check_losses(row, options.peers)
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


def main():
    options = reports.read_options(TITLES, PACKAGES, 2.0)
    names = matching(workloads.WORKLOADS, options.models or "*")
    rows, failed = measure_all(
        dict.fromkeys(names, ()),
        lambda name: measure(name, options),
        lambda row: reports.times([row], TITLES, options.peers).splitlines()[-1],
    )
    tables = [reports.times(rows, TITLES, options.peers), costs(rows, options.peers)]
    print(tables[1], end="")
    reports.write(options, rows, "\n".join(tables))
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
