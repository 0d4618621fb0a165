"""Architectures that nobody tuned for, each right and beside its peers.

  zoo.py [infer|train|all] [--models PATTERNS] [--sizes b1,b8,dyn] [--peers ENGINES]
         [--precisions f32,bf16] [--threads N] [--rounds N] [--seconds S] [--again]
         [--json FILE] [--table FILE]

The nets of tests/bench/nets, with random weights: inference of static batches of 1 and
8 and, of a third of the nets, of 8 in a range of batches, with outputs compared with
PyTorch's; steps of AdamW with the losses of the first three compared with PyTorch's.
Then all take turns as in peers.py. PyTorch has its fused optimizer and channels last;
in bf16 it has autocast. A row is kept in the cache folder under the digests of compiler,
runtime, nets and scripts, the peers' versions and the CPU: what was measured is not measured
again, unless --again.
"""

import argparse
import contextlib
import glob
import hashlib
import importlib.metadata
import io
import json
import os
import statistics
import sys
import tempfile
import time
import warnings

import numpy as np
import onnx
import torch
from bench import nets, reports, workloads, zoo_worker
from bench.nets import net as common
from bench.subjects import matching, measure_all
from bench.turns import Worker, take_turns
from harness import BIN, ROOT, cache_folder, call
from models.cases import write_data_set
from training.exports import tool as exporter

TITLES = {
    "tcc": "tcc",
    "torch": "PyTorch",
    "torch_compile": "torch.compile",
    "onnxruntime": "ONNX Runtime",
    "openvino": "OpenVINO",
}
PEERS = {
    "infer": ["torch", "torch_compile", "onnxruntime", "openvino"],
    "train": ["torch", "torch_compile"],
}
F32_ONLY = {"onnxruntime"}
BATCHES = {"b1": 1, "b8": 8, "dyn": 8}
# Of outputs as part of the largest, and of the first loss.
TOLERANCES = {"f32": 1e-3, "bf16": 5e-2}
# Outputs in bf16 may also be so much farther off f32 than PyTorch's autocast: with
# random weights some deep nets make much of roundings.
AUTOCAST_RATIO = 1.5


def quietly(export, *arguments, **options):
    """PyTorch's exporter prints and raises what it likes."""
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            return export(*arguments, **options)
        except Exception as error:
            line = (str(error).splitlines() or [type(error).__name__])[0]
            raise RuntimeError(f"PyTorch does not export it: {line[:200]}") from error


def compile_package(folder, file, *flags):
    """What is known of the compilation, by the clock; writes model.tcc."""
    model, package = (os.path.join(folder, name) for name in (file, "model.tcc"))
    start = time.monotonic()
    cold = (model, "-o", package, "--json", "--cache-dir=none")
    report = json.loads(call("tcc", *cold, *flags, timeout=900))
    facts = {key: report[key] for key in ("kernels", "arena_bytes")}
    return facts | {"gflop": report["flops"] * 1e-9, "compile_s": time.monotonic() - start}


def distance(result, output):
    return float(abs(result - output).max() / abs(output).max())


def autocast_distance(module, inputs, output):
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        return distance(module(*inputs).float().numpy(), output)


def prepare_inference(name, size, precision, folder):
    """Exports, compiles and compares one net's outputs; the begun row."""
    net, batch = nets.ALL[name], BATCHES[size]
    module, inputs = common.build(net, is_training=False), net.feed(batch)
    names = [f"input_{i}" for i in range(len(inputs))]
    shapes = None
    if size == "dyn":
        shapes = tuple({0: torch.export.Dim("batch", min=1, max=64)} for _ in inputs)
        if isinstance(module, nets.language.Field):  # its inputs are one *argument
            shapes = (shapes,)
    program = quietly(
        torch.onnx.export, module, inputs, dynamo=True, input_names=names,
        dynamic_shapes=shapes, verbose=False,
    )  # fmt: skip
    path = os.path.join(folder, "model.onnx")
    program.save(path, external_data=True)
    with torch.no_grad():
        output = module(*inputs).numpy()
    data = os.path.join(folder, "test_data_set_0")
    named = [value.name for value in onnx.load(path, load_external_data=False).graph.input]
    feed = dict(zip(named, (x.numpy() for x in inputs), strict=True))
    write_data_set(data, feed, {"output": output})
    flags = ["--dim", "batch=1..8"] if size == "dyn" else []
    row = compile_package(folder, "model.onnx", "--precision", precision, *flags)
    made = os.path.join(folder, "made")
    package = os.path.join(folder, "model.tcc")
    call("tcc-run", "run", package, "--inputs-dir", data, "--output-dir", made)
    result = np.load(os.path.join(made, "output_0.npy"))
    if result.shape != output.shape:
        raise RuntimeError(f"outputs have shape {result.shape}, PyTorch's {output.shape}")
    row["difference"] = distance(result, output)
    tolerance = TOLERANCES[precision]
    if precision == "bf16":
        row["torch_difference"] = autocast_distance(module, inputs, output)
        tolerance = max(tolerance, AUTOCAST_RATIO * row["torch_difference"])
    if not row["difference"] <= tolerance:
        raise RuntimeError(f"outputs differ from PyTorch's by {row['difference']:.1e}")
    return row


def prepare_training(name, precision, folder):
    """Exports and compiles one net's step; the begun row."""
    net = nets.ALL[name]
    module, inputs = common.build(net, is_training=True), net.feed(net.batch, True)
    path = os.path.join(folder, net.training_file)
    quietly(exporter.export_training, module, inputs, path)
    module = common.build(net, is_training=True)
    arrays = {}
    for b in range(zoo_worker.BATCHES):
        batch = list(net.feed(net.batch, is_training=True, seed=100 + b))
        generator = torch.Generator().manual_seed(200 + b)
        with torch.no_grad():
            batch.append(common.make_target(net, module(*batch), generator))
        arrays |= {f"{b}.{i}": x.numpy() for i, x in enumerate(batch)}
    np.savez(os.path.join(folder, "batches.npz"), **arrays)
    recipe = os.path.join(folder, "recipe.toml")
    tables = {
        "loss": common.LOSS_TABLES[net.loss],
        "optimizer": {"kind": "adamw", "lr": common.RATE, "weight_decay": common.DECAY},
        "precision": {"compute": precision},
    }
    frozen = [n for n, p in module.named_parameters() if not p.requires_grad]
    if frozen:
        tables["params"] = {"freeze": frozen}
    with open(recipe, "w") as stream:
        stream.write(workloads.toml(tables))
    return compile_package(folder, net.training_file, f"--train={recipe}")


def check_losses(row):
    """Those of the first steps against PyTorch's. The first is that of a forward pass;
    later ones show what rounding became in an update or two."""
    ours, theirs = (np.array(row[f"{engine}_losses"]) for engine in ("tcc", "torch"))
    parts = abs(ours / theirs - 1)
    row["difference"] = float(parts.max())  # NaN where one has a NaN
    tolerance = TOLERANCES[row["precision"]]
    if not (parts[0] <= tolerance and parts.max() <= 10 * tolerance):
        raise RuntimeError(f"losses differ from PyTorch's by {parts[0]:.1e} to {parts.max():.1e}")


def engines_for(name, mode, precision, options):
    wanted = [peer for peer in PEERS[mode] if peer in options.peers]
    return ["tcc"] + [
        peer
        for peer in wanted
        if not (precision != "f32" and peer in F32_ONLY)
        and not (peer == "torch_compile" and name not in nets.COMPILED)
    ]


def measure(label, name, mode, size, precision, options):
    """The row of one net."""
    row = {"model": label, "mode": mode, "precision": precision}
    row |= {"cpu": options.cpu, "date": time.strftime("%Y-%m-%d")}
    with tempfile.TemporaryDirectory() as folder:
        if mode == "infer":
            row |= prepare_inference(name, size, precision, folder)
        else:
            row |= prepare_training(name, precision, folder)
        workers = {}
        for engine in engines_for(name, mode, precision, options):
            arguments = mode, engine, name, folder, options.threads, precision
            workers[engine] = Worker("zoo_worker.py", *arguments)
            workers[engine].run(0.01)  # no other one disturbs its first run
        row = take_turns(row, workers, options)
    if mode == "train":
        check_losses(row)
    return row


def digest_of(options):
    """What rows depend on besides the net."""
    digest = hashlib.sha256()
    files = [os.path.join(BIN, "tcc"), os.path.join(BIN, "../runtime/libtcc_runtime.so")]
    folder = os.path.join(ROOT, "tests/bench")
    files += [os.path.join(folder, name) for name in ("zoo.py", "zoo_worker.py", "turns.py")]
    files += sorted(glob.glob(os.path.join(folder, "nets/*.py")))
    for path in files:
        with open(path, "rb") as stream:
            digest.update(hashlib.file_digest(stream, "sha256").digest())
    for package in ("torch", "torchvision", "transformers", "onnxruntime", "openvino"):
        try:
            digest.update(f"{package} {importlib.metadata.version(package)}".encode())
        except importlib.metadata.PackageNotFoundError:
            continue
    facts = options.cpu, options.threads, options.rounds, options.seconds, options.peers
    digest.update(json.dumps(facts).encode())
    return digest.hexdigest()[:16]


def kept(label, options, measure_row):
    """The row of an earlier run, or a new one."""
    folder = cache_folder("zoo", options.digest)
    path = os.path.join(folder, label.replace(" ", ".") + ".json")
    if os.path.exists(path) and not options.again:
        with open(path) as stream:
            return json.load(stream)
    row = measure_row()
    with open(path + ".new", "w") as stream:
        json.dump(row, stream)
    os.rename(path + ".new", path)
    return row


def cpu_name():
    with open("/proc/cpuinfo") as stream:
        fields = dict(line.split(":", 1) for line in stream if ":" in line)
    values = {key.strip(): value.strip() for key, value in fields.items()}
    return f"{values['model name']} family {values['cpu family']} model {values['model']}"


def best(row):
    """The ratio to the fastest peer, and which it is."""
    peers = [peer for peer in TITLES if peer != "tcc" and peer in row]
    return min((row[f"{peer}_ratio"], peer) for peer in peers)


def line_of(row):
    ratio, peer = best(row)
    memory = "-"
    if row["mode"] == "train":
        memory = f"{row['tcc_peak_mb'] / row['torch_peak_mb']:.2f}"
    share = row["gflop"] / row["tcc"] * 1e3 / row["peak_gflops"]
    mark = " (disturbed)" if row["disturbed"] else ""
    return [
        row["model"] + mark, f"{row['tcc']:.3g}", f"{share:.0%}", f"{ratio:.2f}", TITLES[peer],
        f"{row['difference']:.0e}", memory, f"{row['compile_s']:.1f}", str(row["kernels"]),
        row["date"],
    ]  # fmt: skip


HEADER = ["net", "tcc ms", "of peak", "best peer / tcc", "which", "difference"]
HEADER += ["memory / PyTorch's", "compile s", "kernels", "date"]


def summary(rows):
    """A line for each kind of run."""
    for mode, precision in dict.fromkeys((row["mode"], row["precision"]) for row in rows):
        chosen = [r for r in rows if (r["mode"], r["precision"]) == (mode, precision)]
        ratios = sorted((best(row)[0], row["model"]) for row in chosen)
        mean = statistics.geometric_mean(ratio for ratio, _ in ratios)
        behind = ", ".join(f"{model} {ratio:.2f}" for ratio, model in ratios if ratio < 0.97)
        yield f"{mode} {precision}: {len(chosen)} runs, geometric mean {mean:.2f}"
        yield f"  behind: {behind or 'none'}"
        if mode == "train":
            memory = [row["tcc_peak_mb"] / row["torch_peak_mb"] for row in chosen]
            mean = statistics.geometric_mean(memory)
            yield f"  memory / PyTorch's: geometric mean {mean:.2f}, most {max(memory):.2f}"


def read_options():
    parser = argparse.ArgumentParser(parents=[reports.make_parser()], add_help=False)
    parser.add_argument("mode", nargs="?", default="all", choices=["infer", "train", "all"])
    parser.add_argument("--sizes", default=",".join(BATCHES))
    parser.add_argument("--peers", default=",".join(TITLES))
    parser.add_argument("--precisions", default="f32")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=0.5)
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    options.peers = [
        peer
        for peer in options.peers.split(",")
        if peer != "tcc" and reports.is_installed(peer.split("_")[0], TITLES[peer])
    ]
    options.cpu, options.digest = cpu_name(), ""
    options.digest = digest_of(options)
    return options


def choose(options):
    """label: (name, mode, size, precision)."""
    chosen = {}
    for precision in options.precisions.split(","):
        suffix = "" if precision == "f32" else f" {precision}"
        for name in matching(nets.ALL, options.models or "*"):
            if options.mode != "train":
                for size in options.sizes.split(","):
                    if size != "dyn" or name in nets.DYNAMIC:
                        chosen[f"{name}.{size}{suffix}"] = name, "infer", size, precision
            if options.mode != "infer":
                chosen[f"{name} step{suffix}"] = name, "train", None, precision
    return chosen


def main():
    options = read_options()
    print(f"{options.cpu}, {options.threads} threads")
    rows, failed = measure_all(
        choose(options),
        lambda label, *subject: kept(label, options, lambda: measure(label, *subject, options)),
        lambda row: " | ".join(line_of(row)),
    )
    table = reports.markdown(HEADER, [line_of(row) for row in rows])
    lines = [*summary(rows), *(f"  not measured: {line}" for line in failed)]
    text = table + "\n" + "\n".join(lines) + "\n"
    print("\n" + text, end="")
    reports.write(options, rows, text, cpu=options.cpu)
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
