"""Tips on precision, kernels, memory and deployment, each by the decision that it comes to."""

import collections
import json
import os
import re
import subprocess

import numpy as np
from onnx import helper

import harness
from training import run
from training.tips.suite import ADAMW, CUDA, LANGUAGE, SGD, find_entry

BF16 = SGD + 'precision.compute = "bf16"\n'
F16 = SGD + 'precision.compute = "f16"\n'
STEPS = 6  # of a run on the emulated GPU


# --- Precision ---------------------------------------------------------------------------------


def row_autocast_bf16(suite):
    suite.check("products", suite.find_decisions("mix-precision: narrowed", "mlp", BF16))
    suite.check("none in f32", not suite.find_decisions("mix-precision: narrowed", "mlp", SGD))


def row_autocast_off(suite):
    kept = suite.find_decisions("mix-precision: kept wide", "mlp", BF16 + 'precision.keep_f32 = ["4.*"]\n')
    suite.check("the layer", {row["node"] for row in kept} == {"node_linear_2"}, kept)
    suite.check("none without", not suite.find_decisions("mix-precision: kept wide", "mlp", BF16))


def row_grad_scaler(suite):
    dynamic = SGD + 'precision.loss_scale = "dynamic"\n'
    for recipe, expected in ((F16, 65536.0), (dynamic, 65536.0), (SGD, 1.0)):
        scales = suite.train(suite.compile("mlp", recipe), "--steps", 2).column("loss_scale")
        suite.check(f"{expected}", scales == [expected] * 2, scales)
    fields = {each["field"] for each in suite.find_variables(suite.compile("mlp", F16)).values()}
    suite.check("it is part of checkpoints", {"loss_scale", "growth_count"} <= fields, fields)


def row_tf32(suite):
    recipe = SGD + 'precision.compute = "tf32"\n'
    step = find_entry(suite.print_stage("graph", "mlp", recipe, "--target=cuda"), "train_step")
    suite.check("products", "tf32" in step)
    step = find_entry(suite.print_stage("graph", "mlp", SGD, "--target=cuda"), "train_step")
    suite.check("none by default", "tf32" not in step)
    refused = suite.try_compile("mlp", recipe)
    suite.check("no CPU has it", refused.code and "needs --target=cuda" in refused.err, refused.err)


def row_pure_bf16(suite):
    narrow = BF16 + 'precision.master_weights = false\nprecision.rounding = "stochastic"\n'
    for recipe, dtype in ((narrow, "bf16"), (BF16, "f32")):
        variables = suite.find_variables(suite.compile("mlp", recipe))
        found = [variables[name]["dtype"] for name in ("0.weight", "0.bias")]
        suite.check(f"weights are {dtype}", found == [dtype, "f32"], found)


# --- Kernels -----------------------------------------------------------------------------------


def row_torch_compile(suite):
    fused = [row["reason"] for row in suite.find_decisions("fuse-ops: fused", "mlp")]
    suite.check("a relu in the layer's kernel", any("node_linear, node_relu" in text for text in fused), fused)
    launches = suite.find_entry(suite.compile("mlp"), "main")["launches"]
    suite.check("a launch a layer", launches == 3, launches)


def row_channels_last(suite):
    rows = suite.find_decisions("channels-last: converted", "cnn")
    suite.check("both convolutions", len(rows) == 2, rows)
    suite.check("no other layer", not suite.find_decisions("channels-last: converted", "mlp"))


def row_fused_optimizer(suite):
    package = suite.compile("mlp", ADAMW)
    launches = suite.find_entry(package, "train_step")["launch_list"]
    kernel, count = collections.Counter(each["kernel"] for each in launches).most_common(1)[0]
    suite.check("one kernel for the six parameters", count == 6, (kernel, count))
    in_place = suite.find_decisions("update-variables: in place", "mlp", ADAMW)
    written = {row["reason"] for row in in_place if row["node"] == "train_step"}
    for name in ("0.weight", "exp_avg/0.weight", "exp_avg_sq/0.weight"):
        suite.check(f"{name} where it lies", f"the new value of {name}" in written)


def row_zero_grad(suite):
    graph = suite.print_stage("graph", "mlp", SGD)
    suite.check("a step has none", '"gradient/' not in find_entry(graph, "train_step").split("{\n")[0])
    suite.check("sums of several batches", '"gradient/' in find_entry(graph, "accumulate_step"))


def save_norm(suite, with_bias):
    path = suite.new_path(".onnx")
    inputs = ["x", "conv.weight"] + ["conv.bias"] * with_bias
    nodes = [
        helper.make_node("Conv", inputs, ["c"], pads=[1, 1, 1, 1]),
        helper.make_node("BatchNormalization", ["c", "scale", "shift", "mean", "variance"], ["n"]),
        helper.make_node("Relu", ["n"], ["r"]),
        helper.make_node("GlobalAveragePool", ["r"], ["p"]),
        helper.make_node("Flatten", ["p"], ["f"]),
        helper.make_node("MatMul", ["f", "head"], ["logits"]),
    ]
    weights = {"conv.weight": run.normal(6, 2, 3, 3), "head": run.normal(6, run.CLASSES)}
    weights |= {name: np.ones(6, "f4") for name in ("scale", "variance")}
    weights |= {name: np.zeros(6, "f4") for name in ("shift", "mean")}
    if with_bias:
        weights["conv.bias"] = run.normal(6)
    run.save_model(path, nodes, weights, [2, 6, 5])
    return path


def count_launches(suite, entry, *arguments):
    return suite.find_entry(suite.compile(*arguments), entry)["launches"]


def row_bias_before_norm(suite):
    biased, plain = save_norm(suite, True), save_norm(suite, False)
    found = [count_launches(suite, "main", model, "", "--dim=batch=8") for model in (biased, plain)]
    suite.check("inference: it costs nothing", found[0] == found[1], found)
    small = SGD + "batch.micro = 8\n"
    frozen = small + 'params.freeze = ["conv.bias"]\n'
    steps = [count_launches(suite, "train_step", *each)
             for each in ((biased, small), (biased, frozen), (plain, small))]  # fmt: skip
    suite.check("training: frozen it costs nothing", steps[0] > steps[1] == steps[2], steps)


def row_fold_norms(suite):
    folded = suite.find_decisions("fold-batch-norm: folded", "bn")
    suite.check("both norms", len(folded) == 2, folded)
    graphs = [suite.print_stage("graph", "bn", recipe)
              for recipe in (SGD, SGD + 'batchnorm.mode = "frozen"\n')]  # fmt: skip
    sums = [len(re.findall(r"graph\.reduce <sum> .*tensor<16x4x4x16xf32>", find_entry(each, "train_step")))
            for each in graphs]  # fmt: skip
    suite.check("a step has the statistics of its batch", sums[0] > sums[1], sums)
    suite.check("predict has none", "graph.reduce" not in find_entry(graphs[0], "predict"))
    suite.check("nothing to fold", not suite.find_decisions("fold-batch-norm: folded", "cnn"))


def row_attention(suite):
    found = suite.find_decisions("recognize-attention: recognised", "gpt2")
    suite.check("both layers", len(found) == 2, found)
    suite.check("one op", "graph.attention " in suite.print_stage("graph", "gpt2"))
    suite.check("no other model", not suite.find_decisions("recognize-attention: recognised", "mlp"))


def row_attention_gradient(suite):
    narrow = LANGUAGE + 'precision.compute = "bf16"\n'
    for recipe, is_one in ((narrow, True), (LANGUAGE, False)):
        step = find_entry(suite.print_stage("graph", "gpt2", recipe, "--target=cuda"), "train_step")
        suite.check(f"one op: {is_one}", ("graph.attention_gradient" in step) == is_one)


def row_autotune(suite):
    added = suite.find_decisions("add-candidates: added", "mlp", "", "--candidates=4")
    suite.check("plans", added and all(row["numbers"]["plans"] > 1 for row in added), added)
    suite.check("none by default", not suite.find_decisions("add-candidates: added", "mlp"))
    cache = suite.new_path(".tune")
    suite.call("tcc-run", "tune", suite.compile("mlp", "", "--candidates=4"), "--tune-cache", cache)
    with open(cache, encoding="utf-8") as file:
        suite.check("what was measured", "blocking = " in file.read())


def row_num_threads(suite):
    for count in (1, 2):
        out = suite.call("tcc-run", "bench", suite.compile("mlp"), "--random-inputs", "--threads", count,
                           "--iterations", 1, "--warmup", 0)  # fmt: skip
        suite.check(f"{count}", f"{count} threads" in out, out)


def row_deterministic(suite):
    package = suite.compile("mlp", ADAMW)
    states = [suite.train(package, "--steps", 20, "--seed", seed, threads=count).read_bytes()
              for count, seed in ((1, 0), (2, 0), (1, 1))]  # fmt: skip
    suite.check("the same bits by two threads", states[0] == states[1])
    suite.check("another seed, other bits", states[0] != states[2])


def row_dynamic_shapes(suite):
    package = suite.compile(suite.find_model("mlp")[0], "", "--dim=batch=1..8")
    dims = suite.ask_info(package)["dims"]
    suite.check("a range", [(each["min"], each["max"]) for each in dims] == [(1, 8)], dims)
    for size, code in ((3, 0), (8, 0), (9, 2)):
        done = suite.run("tcc-run", "run", package, "--random-inputs", "--dim", f"batch={size}")
        suite.check(f"{size} samples", done.code == code, done.err)


# --- Memory ------------------------------------------------------------------------------------


def row_checkpointing(suite):
    model, one = suite.find_model("mlp")[0], ("--dim=batch=256", "--threads=1")
    again = suite.find_decisions("recompute-values: recomputed", model, SGD, *one, "--memory-budget=250KiB")
    suite.check("values are computed again", again)
    asked = suite.find_decisions("recompute-values: recomputed", model, SGD + 'memory.budget = "250KiB"\n', *one)
    suite.check("by the recipe, too", asked == again, asked)
    none = suite.find_decisions("recompute-values: recomputed", model, SGD, *one)
    suite.check("none without a budget", not none, none)
    refused = suite.try_compile(model, SGD, *one, "--memory-budget=1KiB")
    suite.check("a promise", refused.code == 7 and "the smallest budget is" in refused.err, refused.err)


def long_batch_finder(suite):
    model = suite.find_model("mlp")[0]
    done = suite.try_compile(model, SGD + 'batch.micro = "auto"\n', "--memory-budget=128KiB", "--threads=1")
    suite.check("the most", "batch.micro is" in done.err and "do not fit" in done.err, done.err)


def long_fastest_batch(suite):
    model = suite.find_model("mlp")[0]
    packages = [suite.compile(model, SGD + f"batch.micro = {size}\n") for size in (2, 64)]
    found = json.loads(suite.call("tcc-run", "tune", *packages, "--json", "--threads", 1))
    suite.check("both are timed", [each["samples"] for each in found["packages"]] == [2, 64], found)
    suite.check("the larger one", found["fastest"] == packages[1], found)


# --- On a GPU ----------------------------------------------------------------------------------


def train_emulated(suite):
    """What an emulated GPU was given: the graphs, and kind, bytes, begin and end of each command."""

    def make():
        folder, times = suite.new_path(), suite.new_path(".times")
        os.mkdir(folder)
        watched = os.environ | {"TCC_EMULATED_GRAPHS": folder, "TCC_EMULATED_TIMES": times}
        suite.train(suite.compile("mlp", F16, *CUDA), "--steps", STEPS, "--device", "emulated", env=watched)
        graphs = []
        for name in os.listdir(folder):
            with open(f"{folder}/{name}", encoding="utf-8") as file:
                graphs.append([line.split()[1:] for line in file])
        with open(times, encoding="utf-8") as file:
            return graphs, [line.split() for line in file]

    return suite.once("emulated", make)


def row_cuda_graphs(suite):
    graphs, _ = train_emulated(suite)
    count = suite.find_entry(suite.compile("mlp", F16, *CUDA), "train_step")["launches"]
    launches = [sum(kind == "launch" for kind, _ in graph) for graph in graphs]
    suite.check("the whole step", launches and set(launches) == {count}, (launches, count))


def row_item_sync(suite):
    """The host reads nothing within a step, though its loss scale is dynamic."""
    graphs, _ = train_emulated(suite)
    for graph in graphs:
        copies = [i for i, (kind, _) in enumerate(graph) if kind == "copy"]
        is_last = copies == list(range(len(graph) - len(copies), len(graph)))
        suite.check("what is read is read at the end", copies and is_last, graph)
        suite.check("metrics alone", all(int(graph[i][1]) <= 16 for i in copies), graph)


def list_copies(times, size):
    return [(float(begin), float(end)) for kind, what, begin, end in times
            if (kind, what) == ("copy", str(size))]  # fmt: skip


def row_device_copies(suite):
    _, times = train_emulated(suite)
    inputs, weights = len(list_copies(times, 16 * 64 * 4)), len(list_copies(times, 32 * 64 * 4))
    suite.check("a batch for each update", inputs == STEPS, inputs)
    suite.check("parameters at both ends of a run alone", 0 < weights < STEPS, weights)


def row_pin_memory(suite):
    """The emulated driver makes a copy of memory that is not pinned wait for all before it."""
    _, times = train_emulated(suite)
    copies = list_copies(times, 16 * 64 * 4)
    last = times[[row[0] for row in times].index("launch") :]
    kernel = [row[1] for row in times if row[0] == "launch"][-1]
    ends = [float(end) for kind, what, _, end in last if (kind, what) == ("launch", kernel)][-STEPS:]
    under = [copies[i][0] < ends[i - 1] for i in range(2, STEPS)]
    suite.check("a batch is copied under the update before", all(under), (copies, ends))


def row_u8_inputs(suite):
    small = SGD + '[input.x]\ndtype = "u8"\nmean = 0.5\nstd = 0.5\n'
    for recipe, dtype in ((small, "u8"), (SGD, "f32")):
        entry = suite.find_entry(suite.compile("mlp", recipe), "train_step")
        found = {each["name"]: each["dtype"] for each in entry["inputs"]}
        suite.check(f"{dtype}", found["x"] == dtype, found)


# --- Without gradients, and deployed -----------------------------------------------------------


def row_no_grad(suite):
    package = suite.compile("mlp", ADAMW)
    launches = [suite.find_entry(package, name)["launches"] for name in ("predict", "train_step")]
    suite.check("predict is the forward pass", launches[0] == 3 < launches[1], launches)
    graph = find_entry(suite.print_stage("graph", "mlp", ADAMW), "predict")
    suite.check("it has no slots", "exp_avg" not in graph.split("{\n")[0])


def row_deploy(suite):
    """A package runs by a program that links with no compiler and no Python."""
    package = suite.compile("mlp")
    tool = os.path.join(harness.BIN, "tcc-run")
    done = subprocess.run([tool, "run", package, "--random-inputs"], env={}, capture_output=True, text=True)
    suite.check("without an environment", done.returncode == 0 and "logits: f32 16x10" in done.stdout, done)
    libraries = subprocess.run(["ldd", tool], capture_output=True, text=True, check=True).stdout
    found = [name for name in ("python", "LLVM", "MLIR", "torch") if name in libraries]
    suite.check("few libraries", "libstdc++" in libraries and not found, libraries)


def list_parameters(suite, model):
    done = suite.try_compile(model, SGD)
    return sorted(line.split()[1] for line in done.err.splitlines() if line.startswith("parameter "))


def row_torch_export(suite):
    expected = list_parameters(suite, "cnn")
    suite.check("parameters", "1.weight:" in expected, expected)
    for model in ("traced", "exported"):
        found = list_parameters(suite, model)
        suite.check(f"{model}: the same names", found == expected, found)


def row_profiler(suite):
    package, trace = suite.compile("cnn", SGD), suite.new_path(".json")
    table = suite.call("tcc-run", "bench", package, "--random-inputs", "--iterations", 1, "--profile")
    suite.check("a table of nodes", "node_conv2d_1, node_relu_1" in table, table)
    trained = suite.train(package, "--steps", 4, "--profile", "--trace", trace)
    parts = ("forward", "backward", "optimizer", "data", "Conv (backward)")
    suite.check("the parts of an update", all(f"  {part}\n" in trained.out for part in parts), trained.out)
    with open(trace, encoding="utf-8") as file:
        events = [each for each in json.load(file)["traceEvents"] if each["ph"] == "X"]
    runs = [each for each in events if each["name"] == "train_step"]
    launches = [each for each in events if "command" in each.get("args", {})]
    count = 4 * suite.find_entry(package, "train_step")["launches"]
    suite.check("each launch of 4 steps", len(runs) == 4 and len(launches) == count, len(launches))


def row_replace_weights(suite):
    package, file = suite.compile("cnn", SGD), suite.new_path(".safetensors")
    suite.train(package, "--steps", 30, "--export", file)
    outs = []
    for flags in ((), (f"--weights={file}",)):
        inference, folder = suite.compile("cnn", "", *flags), suite.new_path()
        suite.call("tcc-run", "run", inference, "--random-inputs", "--output-dir", folder)
        outs.append(np.load(f"{folder}/output_0.npy"))
    suite.check("other outputs", not np.array_equal(*outs))


