"""Kernel launches of a layer of transformers: launches.py

Models of one and two layers of the usual sizes are compiled for CUDA without
weights; the launches that they differ in are those of a layer. Small ones run on
the emulated device and are compared with ONNX Runtime.
"""

import os
import tempfile

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

from harness import Tally, first_line, run_tool
from models import cases

# Name: launches of a layer at most.
LIMITS = {"encoder": 8, "decoder": 7, "llama": 10}
USUAL = {"width": 768, "heads": 12, "inner": 3072, "tokens": 128}
SMALL = {"width": 64, "heads": 4, "inner": 96}


class Builder:
    """A graph under construction; values are names. `tokens` may be a symbol."""

    def __init__(self, width, heads, inner, tokens, has_weights):
        self.width, self.heads, self.inner, self.tokens = width, heads, inner, tokens
        self.rows = -1 if isinstance(tokens, str) else tokens
        self.has_weights = has_weights
        self.depth = width // heads
        self.random = np.random.default_rng(0)
        self.nodes, self.initializers = [], []

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"v{len(self.nodes)}_{i}" for i in range(outputs)]
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def constant(self, value, dtype=np.float32):
        name = f"c{len(self.initializers)}"
        array = np.asarray(value, dtype)
        self.initializers.append(numpy_helper.from_array(array, name))
        return name

    def weight(self, *shape):
        if self.has_weights:
            return self.constant(self.random.normal(0, shape[0] ** -0.5, shape))
        tensor = TensorProto(name=f"c{len(self.initializers)}", dims=shape)
        tensor.data_type = TensorProto.FLOAT
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="none")
        self.initializers.append(tensor)
        return tensor.name

    def linear(self, x, rows, columns, bias=True):
        y = self.node("MatMul", x, self.weight(rows, columns))
        return self.node("Add", y, self.weight(columns)) if bias else y

    def norm(self, x):
        scale, shift = self.weight(self.width), self.weight(self.width)
        return self.node("LayerNormalization", x, scale, shift, axis=-1)

    def rms_norm(self, x):
        square = self.node("Mul", x, x)
        mean = self.node("ReduceMean", square, self.constant([-1], np.int64))
        root = self.node("Sqrt", self.node("Add", mean, self.constant(1e-6)))
        return self.node("Mul", self.node("Div", x, root), self.weight(self.width))

    def split_heads(self, x, heads):
        shape = self.constant([1, self.rows, heads, self.depth], np.int64)
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def join_heads(self, x):
        shape = self.constant([1, self.rows, self.width], np.int64)
        return self.node("Reshape", self.node("Transpose", x, perm=[0, 2, 1, 3]), shape)

    def attention(self, query, key, value, mask=None):
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.node("Mul", scores, self.constant(self.depth**-0.5))
        if mask:
            scores = self.node("Add", scores, mask)
        weights = self.node("Softmax", scores, axis=-1)
        return self.join_heads(self.node("MatMul", weights, value))

    def causal_mask(self):
        future = np.triu(np.full((self.tokens, self.tokens), -1e9), 1)
        return self.constant(future[None, None])

    def rotate(self, x):
        """Rotary position embedding."""
        half = self.depth // 2
        angles = np.outer(np.arange(self.tokens), 1e4 ** -(np.arange(half) / half))
        angles = np.concatenate([angles, angles], -1)[None, None]
        low, high = self.node("Split", x, axis=-1, num_outputs=2, outputs=2)
        turned = self.node("Concat", self.node("Neg", high), low, axis=-1)
        straight = self.node("Mul", x, self.constant(np.cos(angles)))
        return self.node(
            "Add", straight, self.node("Mul", turned, self.constant(np.sin(angles)))
        )

    def repeat_heads(self, x, heads):
        shape = [1, heads, self.heads // heads, self.tokens, self.depth]
        x = self.node("Unsqueeze", x, self.constant([2], np.int64))
        x = self.node("Expand", x, self.constant(shape, np.int64))
        shape = [1, self.heads, self.tokens, self.depth]
        return self.node("Reshape", x, self.constant(shape, np.int64))


def encoder(b, x):
    """As in BERT: norms behind, q, k and v by products of their own."""
    query, key, value = (
        b.split_heads(b.linear(x, b.width, b.width), b.heads) for _ in range(3)
    )
    y = b.linear(b.attention(query, key, value), b.width, b.width)
    x = b.norm(b.node("Add", y, x))
    y = b.node("Gelu", b.linear(x, b.width, b.inner))
    return b.norm(b.node("Add", b.linear(y, b.inner, b.width), x))


def decoder(b, x):
    """As in GPT-2: norms before, q, k and v by one product."""
    qkv = b.linear(b.norm(x), b.width, 3 * b.width)
    parts = b.node("Split", qkv, axis=-1, num_outputs=3, outputs=3)
    query, key, value = (b.split_heads(part, b.heads) for part in parts)
    y = b.attention(query, key, value, b.causal_mask())
    x = b.node("Add", b.linear(y, b.width, b.width), x)
    y = b.linear(b.norm(x), b.width, b.inner)
    y = b.node("Gelu", y, approximate="tanh")
    return b.node("Add", b.linear(y, b.inner, b.width), x)


def llama(b, x):
    """Rotary positions, keys that heads share, a gate, no biases."""
    shared = b.heads // 2
    y = b.rms_norm(x)
    heads = (b.heads, shared, shared)
    query, key, value = (
        b.split_heads(b.linear(y, b.width, n * b.depth, bias=False), n) for n in heads
    )
    query, key = b.rotate(query), b.repeat_heads(b.rotate(key), shared)
    y = b.attention(query, key, b.repeat_heads(value, shared), b.causal_mask())
    x = b.node("Add", b.linear(y, b.width, b.width, bias=False), x)
    y = b.rms_norm(x)
    gate = b.linear(y, b.width, b.inner, bias=False)
    gate = b.node("Mul", gate, b.node("Sigmoid", gate))
    y = b.node("Mul", gate, b.linear(y, b.width, b.inner, bias=False))
    return b.node("Add", b.linear(y, b.inner, b.width, bias=False), x)


LAYERS = {"encoder": encoder, "decoder": decoder, "llama": llama}


def write_model(path, layer, layers, sizes, has_weights):
    b = Builder(**sizes, has_weights=has_weights)
    x = "x"
    for _ in range(layers):
        x = LAYERS[layer](b, x)
    shape = [1, b.tokens, b.width]
    graph = helper.make_graph(
        b.nodes,
        layer,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(x, TensorProto.FLOAT, shape)],
        b.initializers,
    )
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def count_launches(tally, work, layer, layers, precision):
    model = os.path.join(work, f"{layer}{layers}.onnx")
    write_model(model, layer, layers, USUAL, has_weights=False)
    compiled = run_tool(
        "tcc", model, "--weights=none", f"--precision={precision}", "--emit=exec",
        "-o", "-",
    )  # fmt: skip
    name = f"{layer} of {layers} layers in {precision} compiles"
    tally.check(name, compiled.code == 0, first_line(compiled))
    main = compiled.out.split("exec.entry @main", 1)[-1].split("exec.entry", 1)[0]
    return main.count("exec.launch")


def check_launches(tally, work, layer, precision):
    one, two = (count_launches(tally, work, layer, n, precision) for n in (1, 2))
    found, limit = two - one, LIMITS[layer]
    print(f"{layer} in {precision}: {found} launches a layer")
    tally.check(
        f"{layer} in {precision}", 0 < found <= limit, f"{found}, expected {limit} at most"
    )


def check_results(tally, work, layer, tokens, sizes):
    """Of a small model, at some `sizes` of tokens."""
    name = f"small {layer} of {tokens} tokens"
    model, package = os.path.join(work, "m.onnx"), os.path.join(work, "m.tcc")
    write_model(model, layer, 2, {**SMALL, "tokens": tokens}, has_weights=True)
    dims = [] if tokens in sizes else ["--dim", f"{tokens}=1..{max(sizes)}"]
    compiled = run_tool("tcc", model, "-o", package, "-q", *dims)
    tally.check(f"{name} compiles", compiled.code == 0, first_line(compiled))
    for size in sizes:
        data = os.path.join(work, "data")
        inputs = cases.inputs_of(onnx.load(model))
        feed = cases.feed_for(inputs, {"dims": {tokens: size}})
        cases.write_data_set(data, feed, cases.reference(model, feed))
        flags = ["--inputs-dir", data, "--expect-dir", data]
        ran = run_tool("tcc-run", "run", package, *flags)
        tally.check(f"{name} at {size}", ran.code == 0, first_line(ran))


if __name__ == "__main__":
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        for layer in LAYERS:
            for precision in ("f32", "bf16"):
                check_launches(tally, work, layer, precision)
            check_results(tally, work, layer, 24, [24])
        check_results(tally, work, "encoder", "n", [1, 5, 40])
    tally.close()
