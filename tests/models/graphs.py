"""Models as graphs of ONNX nodes, at any size, with weights or without."""

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper


class Graph:
    """A graph under construction; values are names."""

    def __init__(self, has_weights):
        self.has_weights = has_weights
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

    def weight(self, *shape, is_positive=False):
        if self.has_weights:
            value = self.random.normal(0, shape[0] ** -0.5, shape)
            return self.constant(0.1 + np.abs(value) if is_positive else value)
        tensor = TensorProto(name=f"c{len(self.initializers)}", dims=shape)
        tensor.data_type = TensorProto.FLOAT
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="none")
        self.initializers.append(tensor)
        return tensor.name

    def linear(self, x, rows, columns, bias=True):
        y = self.node("MatMul", x, self.weight(rows, columns))
        return self.node("Add", y, self.weight(columns)) if bias else y

    def normalized_conv(self, x, channels, filters, extent, stride=1):
        """A convolution that keeps the image's extents but for `stride`, and a batch
        norm."""
        weight = self.weight(filters, channels, extent, extent)
        pads = [extent // 2] * 4
        y = self.node("Conv", x, weight, strides=[stride] * 2, pads=pads)
        scale, shift, mean = (self.weight(filters) for _ in range(3))
        variance = self.weight(filters, is_positive=True)
        return self.node("BatchNormalization", y, scale, shift, mean, variance)

    def save(self, path, inputs, outputs, input_type=TensorProto.FLOAT):
        """`inputs` and `outputs` are the shapes by name."""
        infos = [
            [
                helper.make_tensor_value_info(name, kind, shape)
                for name, shape in values.items()
            ]
            for kind, values in ((input_type, inputs), (TensorProto.FLOAT, outputs))
        ]
        graph = helper.make_graph(self.nodes, "graph", *infos, self.initializers)
        opset = [helper.make_opsetid("", 20)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


class Transformer(Graph):
    """`tokens` may be a symbol."""

    def __init__(self, has_weights, width, heads, inner, tokens, batch=1):
        super().__init__(has_weights)
        self.width, self.heads, self.inner, self.tokens = width, heads, inner, tokens
        self.batch = batch
        self.rows = -1 if isinstance(tokens, str) else tokens
        self.depth = width // heads

    def norm(self, x):
        scale, shift = self.weight(self.width), self.weight(self.width)
        return self.node("LayerNormalization", x, scale, shift, axis=-1)

    def rms_norm(self, x):
        square = self.node("Mul", x, x)
        mean = self.node("ReduceMean", square, self.constant([-1], np.int64))
        root = self.node("Sqrt", self.node("Add", mean, self.constant(1e-6)))
        return self.node("Mul", self.node("Div", x, root), self.weight(self.width))

    def split_heads(self, x, heads):
        shape = self.constant([self.batch, self.rows, heads, self.depth], np.int64)
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def join_heads(self, x):
        shape = self.constant([self.batch, self.rows, self.width], np.int64)
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
        shape = [self.batch, heads, self.heads // heads, self.tokens, self.depth]
        x = self.node("Unsqueeze", x, self.constant([2], np.int64))
        x = self.node("Expand", x, self.constant(shape, np.int64))
        shape = [self.batch, self.heads, self.tokens, self.depth]
        return self.node("Reshape", x, self.constant(shape, np.int64))


def encoder(g, x):
    """As in BERT: norms behind, q, k and v by products of their own."""
    query, key, value = (
        g.split_heads(g.linear(x, g.width, g.width), g.heads) for _ in range(3)
    )
    y = g.linear(g.attention(query, key, value), g.width, g.width)
    x = g.norm(g.node("Add", y, x))
    y = g.node("Gelu", g.linear(x, g.width, g.inner))
    return g.norm(g.node("Add", g.linear(y, g.inner, g.width), x))


def decoder(g, x):
    """As in GPT-2: norms before, q, k and v by one product."""
    qkv = g.linear(g.norm(x), g.width, 3 * g.width)
    parts = g.node("Split", qkv, axis=-1, num_outputs=3, outputs=3)
    query, key, value = (g.split_heads(part, g.heads) for part in parts)
    y = g.attention(query, key, value, g.causal_mask())
    x = g.node("Add", g.linear(y, g.width, g.width), x)
    y = g.linear(g.norm(x), g.width, g.inner)
    y = g.node("Gelu", y, approximate="tanh")
    return g.node("Add", g.linear(y, g.inner, g.width), x)


def llama(g, x):
    """Rotary positions, keys that heads share, a gate, no biases."""
    shared = g.heads // 2
    y = g.rms_norm(x)
    heads = (g.heads, shared, shared)
    query, key, value = (
        g.split_heads(g.linear(y, g.width, n * g.depth, bias=False), n) for n in heads
    )
    query, key = g.rotate(query), g.repeat_heads(g.rotate(key), shared)
    y = g.attention(query, key, g.repeat_heads(value, shared), g.causal_mask())
    x = g.node("Add", g.linear(y, g.width, g.width, bias=False), x)
    y = g.rms_norm(x)
    gate = g.linear(y, g.width, g.inner, bias=False)
    gate = g.node("Mul", gate, g.node("Sigmoid", gate))
    y = g.node("Mul", gate, g.linear(y, g.width, g.inner, bias=False))
    return g.node("Add", g.linear(y, g.inner, g.width, bias=False), x)


LAYERS = {"encoder": encoder, "decoder": decoder, "llama": llama}


def language_model(g, ids, layer, layers, vocabulary):
    """Logits of the next tokens: embeddings of tokens and places, layers, a norm."""
    x = g.node("Gather", g.weight(vocabulary, g.width), ids)
    x = g.node("Add", x, g.weight(g.tokens, g.width))
    for _ in range(layers):
        x = LAYERS[layer](g, x)
    return g.linear(g.norm(x), g.width, vocabulary, bias=False)


def bottleneck(g, x, channels, inner, stride):
    y = g.node("Relu", g.normalized_conv(x, channels, inner, 1))
    y = g.node("Relu", g.normalized_conv(y, inner, inner, 3, stride))
    y = g.normalized_conv(y, inner, 4 * inner, 1)
    if channels != 4 * inner or stride != 1:
        x = g.normalized_conv(x, channels, 4 * inner, 1, stride)
    return g.node("Relu", g.node("Add", y, x))


def resnet50(g, x):
    """1000 logits of images of 3 channels."""
    y = g.node("Relu", g.normalized_conv(x, 3, 64, 7, stride=2))
    y = g.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    channels = 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        for i in range(depth):
            stride = 2 if stage and i == 0 else 1
            y = bottleneck(g, y, channels, 64 << stage, stride)
            channels = 256 << stage
    y = g.node("Flatten", g.node("GlobalAveragePool", y))
    return g.linear(y, channels, 1000)
