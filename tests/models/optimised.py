"""Models that ONNX Runtime optimised, beside those that it read: optimised.py [--long]

Small ones, and with --long those of real sizes. ONNX Runtime's levels basic and
extended, and what onnxruntime.transformers makes of a BERT and its like, give the
results of the model as written, in about as many launches. Level all, whose layouts are
its own, is refused with what to do instead.
"""

import functools
import os
import re
import sys
import tempfile
import warnings

import numpy as np
import onnx
import onnxruntime
from onnxruntime.transformers import optimizer

from harness import Tally, call, first_line, run_tool
from models import cases, graphs

SIZES = {"width": 64, "heads": 4, "inner": 128, "tokens": 24, "batch": 2}
LAYERS = 2
# Launches that an optimised model may have more than the model as written.
MORE_LAUNCHES = 2
Levels = onnxruntime.GraphOptimizationLevel
LEVELS = {"basic": Levels.ORT_ENABLE_BASIC, "extended": Levels.ORT_ENABLE_EXTENDED}


class Bert(graphs.Transformer):
    """As PyTorch's exporter writes it, whose patterns the optimiser looks for."""

    def scaled(self, scores):
        return self.node("Div", scores, self.constant(self.depth**0.5))

    def embed(self, words, kinds):
        """Of words and kinds at the first places."""
        x = self.node("Gather", self.weight(50, self.width), words)
        x = self.node("Add", x, self.node("Gather", self.weight(2, self.width), kinds))
        zero, one = self.constant([0], np.int64), self.constant([1], np.int64)
        tokens = self.node("Gather", self.node("Shape", words), self.constant(1, np.int64))
        tokens = self.node("Unsqueeze", tokens, zero)
        places = self.constant(np.arange(2 * self.tokens)[None], np.int64)
        places = self.node("Slice", places, zero, tokens, one)
        table = self.weight(2 * self.tokens, self.width)
        return self.norm(self.node("Add", x, self.node("Gather", table, places)))


def write_transformer(layer, path):
    g = graphs.Transformer(has_weights=True, **SIZES)
    x = "x"
    for _ in range(LAYERS):
        x = graphs.LAYERS[layer](g, x)
    shape = [g.batch, g.tokens, g.width]
    g.save(path, {"x": shape}, {x: shape})
    return {"x": np.random.RandomState(1).normal(size=shape).astype(np.float32)}


def write_bert(path):
    """All of it but the pooling, with keys that are masked."""
    g = Bert(has_weights=True, **SIZES)
    x = g.embed("words", "kinds")
    mask = g.node("Unsqueeze", "mask", g.constant([1], np.int64))
    mask = g.node("Unsqueeze", mask, g.constant([2], np.int64))
    mask = g.node("Sub", g.constant(1), g.node("Cast", mask, to=onnx.TensorProto.FLOAT))
    mask = g.node("Mul", mask, g.constant(-1e4))
    for _ in range(LAYERS):
        x = graphs.encoder(g, x, mask)
    shape = [g.batch, g.tokens]
    names = ("words", "kinds", "mask")
    results = {x: [*shape, g.width]}
    g.save(path, dict.fromkeys(names, shape), results, onnx.TensorProto.INT64)
    random = np.random.RandomState(1)
    lengths = np.array([[g.tokens], [9]])
    return {
        "words": random.randint(0, 50, shape),
        "kinds": random.randint(0, 2, shape),
        "mask": (np.arange(g.tokens) < lengths).astype(np.int64),
    }


def write_resnet(path):
    g = graphs.Graph(has_weights=True)
    x = graphs.bottleneck(g, "x", 16, 8, stride=1)
    x = graphs.bottleneck(g, x, 32, 8, stride=1)
    g.save(path, {"x": [2, 16, 12, 12]}, {x: [2, 32, 12, 12]})
    return {"x": np.random.RandomState(1).normal(size=(2, 16, 12, 12)).astype(np.float32)}


# Architectures of exports.py, and what onnxruntime.transformers calls them.
REAL = {"bert_base": "bert", "minilm": "bert", "gpt2": "gpt2", "vit_b_16": "vit", "resnet50": ""}
WIDTHS = {"minilm": 384}
HEADS = 12
# What the optimiser is to write for them, by form.
SKIP = "SkipLayerNormalization"
FUSED = {
    "bert_base": {"extended": ["Gelu", SKIP], "fused": ["BiasGelu", SKIP]},
    "minilm": {"extended": ["Gelu", SKIP], "fused": ["BiasGelu", SKIP]},
    "gpt2": {"extended": ["FastGelu", SKIP], "fused": ["FastGelu", SKIP]},
    "vit_b_16": {"extended": ["Gelu", SKIP], "fused": ["BiasGelu"]},
    "resnet50": {"extended": ["FusedConv"]},
}


def write_real(name, path):
    """For a batch of one, by the exporter whose patterns the optimiser looks for; that
    one lacks an operator of GPT-2."""
    from models import exports

    export, opset = exports.export_traced, 17
    if name == "gpt2":
        export, opset = exports.export, exports.OPSET
    module, inputs = exports.build(name)
    feed = inputs(1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        export(name, module, feed, path, False, opset)
    names = exports.ARCHITECTURES[name][2]
    return {name: x.numpy() for name, x in zip(names, feed)}


def optimise(path, level):
    """The path of what ONNX Runtime writes at a level."""
    options = onnxruntime.SessionOptions()
    options.graph_optimization_level = level
    options.optimized_model_filepath = path + ".optimised"
    options.log_severity_level = 3
    onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return options.optimized_model_filepath


def fuse(path, kind="bert", heads=SIZES["heads"], width=SIZES["width"]):
    """The path of what onnxruntime.transformers writes for a BERT or its like."""
    model = optimizer.optimize_model(
        path, model_type=kind, num_heads=heads, hidden_size=width, opt_level=0
    )
    model.save_model_to_file(path + ".fused")
    return path + ".fused"


def fuse_real(name, path):
    return fuse(path, REAL[name], HEADS, WIDTHS.get(name, 768))


def fused_ops(path):
    nodes = onnx.load(path).graph.node
    return sorted({node.op_type for node in nodes if node.domain == "com.microsoft"})


def count_launches(tally, name, path, data):
    """Of the model compiled, whose results are checked; 0 if it is not."""
    package = path + ".tcc"
    compiled = run_tool("tcc", path, "-o", package, "-q")
    if not tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled)):
        return 0
    flags = ["--inputs-dir", data, "--expect-dir", data]
    ran = run_tool("tcc-run", "run", package, *flags)
    tally.check(f"{name} has the same results", ran.code == 0, first_line(ran))
    text = call("tcc-run", "info", package)
    return int(re.search(r"entry main: .* (\d+) launches", text)[1])


def check(tally, work, name, write, expected, fuse=fuse):
    """`expected` are operators that must be among the fused ones, by form."""
    path, data = os.path.join(work, f"{name}.onnx"), os.path.join(work, name)
    feed = write(path)
    cases.write_data_set(data, feed, cases.reference(path, feed))
    plain = count_launches(tally, name, path, data)
    for form, wanted in expected.items():
        title = f"{name} {form}"
        written = fuse(path) if form == "fused" else optimise(path, LEVELS[form])
        ops = fused_ops(written)
        tally.check(f"{title} has {wanted}", set(wanted) <= set(ops), f"only {ops}")
        found = count_launches(tally, title, written, data)
        print(f"{title}: {plain} launches as written, {found} with {', '.join(ops)}")
        message = f"{found} launches, {plain} as written"
        tally.check(f"{title} launches", 0 < found <= plain + MORE_LAUNCHES, message)


def check_refusal(tally, work):
    path = os.path.join(work, "blocked.onnx")
    write_resnet(path)
    compiled = run_tool("tcc", optimise(path, Levels.ORT_ENABLE_ALL), "-q", "-o", path + ".tcc")
    hint = "optimise the model with level 'extended' instead of 'all'"
    is_refused = compiled.code == 4 and hint in compiled.err
    tally.check("level all is refused", is_refused, first_line(compiled))


def check_small(tally, work):
    fused = ["Attention", "BiasGelu", "EmbedLayerNormalization", SKIP]
    check(tally, work, "bert", write_bert, {"basic": [], "extended": [SKIP], "fused": fused})
    for layer, wanted in (("decoder", ["FusedMatMul"]), ("llama", ["QuickGelu"])):
        write = functools.partial(write_transformer, layer)
        check(tally, work, layer, write, {"basic": [], "extended": wanted})
    check(tally, work, "resnet", write_resnet, {"basic": [], "extended": ["FusedConv"]})
    check_refusal(tally, work)


def check_real(tally, work):
    for name, forms in FUSED.items():
        write = functools.partial(write_real, name)
        fuse_it = functools.partial(fuse_real, name)
        check(tally, work, name, write, {"basic": []} | forms, fuse_it)


def main(small, real):
    """Checks the small models, or with --long the real ones."""
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        (real if "--long" in sys.argv else small)(tally, work)
    tally.close()


if __name__ == "__main__":
    main(check_small, check_real)
