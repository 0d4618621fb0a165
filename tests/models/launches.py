"""Kernel launches of resnet50 and of a layer of transformers: launches.py

Models of the usual sizes are compiled for CUDA without weights. Transformers have
one and two layers: the launches that they differ in are those of a layer. Small ones
run on the emulated device and are compared with ONNX Runtime. The default models are
compiled: memory is as planned, and the log of decisions changes nothing.
"""

import os
import tempfile

import onnx
from harness import Tally, first_line, run_tool
from models import cases, graphs, planned, unrecorded, wheels
from models.run import compile_flags

# Launches at most: of a layer, and of all of resnet50.
LIMITS = {"encoder": 8, "decoder": 7, "llama": 10, "resnet50": 60}
USUAL = {"width": 768, "heads": 12, "inner": 3072, "tokens": 128}
SMALL = {"width": 64, "heads": 4, "inner": 96}


def write_transformer(path, layer, layers, sizes, has_weights):
    g = graphs.Transformer(has_weights, **sizes)
    x = "x"
    for _ in range(layers):
        x = graphs.LAYERS[layer](g, x)
    shape = [1, g.tokens, g.width]
    g.save(path, {"x": shape}, {x: shape})


def write_resnet50(path):
    g = graphs.Graph(has_weights=False)
    logits = graphs.resnet50(g, "x")
    g.save(path, {"x": [1, 3, 224, 224]}, {logits: [1, 1000]})


def count_launches(tally, name, model, precision):
    compiled = run_tool(
        "tcc", model, "--weights=none", f"--precision={precision}", "--emit=exec",
        "-o", "-",
    )  # fmt: skip
    tally.check(f"{name} in {precision} compiles", compiled.code == 0, first_line(compiled))
    main = compiled.out.split("exec.entry @main", 1)[-1].split("exec.entry", 1)[0]
    return main.count("exec.launch")


def check_count(tally, title, found, limit):
    print(f"{title}: {found} launches")
    tally.check(title, 0 < found <= limit, f"{found}, expected {limit} at most")


def check_layer(tally, work, layer, precision):
    counts = []
    for layers in (1, 2):
        model = os.path.join(work, "m.onnx")
        write_transformer(model, layer, layers, USUAL, has_weights=False)
        name = f"{layer} of {layers} layers"
        counts.append(count_launches(tally, name, model, precision))
    title = f"a layer of {layer} in {precision}"
    check_count(tally, title, counts[1] - counts[0], LIMITS[layer])


def check_resnet50(tally, work, precision):
    model = os.path.join(work, "m.onnx")
    write_resnet50(model)
    found = count_launches(tally, "resnet50", model, precision)
    check_count(tally, f"resnet50 in {precision}", found, LIMITS["resnet50"])


def check_results(tally, work, layer, tokens, sizes):
    """Of a small model, at some `sizes` of tokens."""
    name = f"small {layer} of {tokens} tokens"
    model, package = os.path.join(work, "m.onnx"), os.path.join(work, "m.tcc")
    write_transformer(model, layer, 2, {**SMALL, "tokens": tokens}, has_weights=True)
    dims = [] if tokens in sizes else ["--dim", f"{tokens}=1..{max(sizes)}"]
    compiled = run_tool("tcc", model, "-o", package, "-q", *planned.FLAGS, *dims)
    if tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        planned.check(tally, name, package, compiled.out)
    for size in sizes:
        data = os.path.join(work, "data")
        inputs = cases.inputs_of(onnx.load(model))
        feed = cases.feed_for(inputs, {"dims": {tokens: size}})
        cases.write_data_set(data, feed, cases.reference(model, feed))
        flags = ["--inputs-dir", data, "--expect-dir", data]
        ran = run_tool("tcc-run", "run", package, *flags)
        tally.check(f"{name} at {size}", ran.code == 0, first_line(ran))


def check_packages(tally, work):
    """Of the default models, which are not run here."""
    for name, case in wheels.models(long=False).items():
        model = os.path.join(wheels.make(name, case), "model.onnx")
        package = os.path.join(work, name + ".tcc")
        flags = compile_flags(case)
        compiled = run_tool("tcc", model, "-o", package, "-q", *planned.FLAGS, *flags)
        if tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
            unrecorded.check(tally, name, model, package, flags, work)
            planned.check(tally, name, package, compiled.out)
    planned.check_steps(tally, work)


if __name__ == "__main__":
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        for precision in ("f32", "bf16", "f16"):
            for layer in graphs.LAYERS:
                check_layer(tally, work, layer, precision)
            check_resnet50(tally, work, precision)
        for layer in graphs.LAYERS:
            check_results(tally, work, layer, 24, [24])
        check_results(tally, work, "encoder", "n", [1, 5, 40])
        check_packages(tally, work)
    tally.close()
