"""Models of usual sizes to be trained, as graphs without weights."""

import onnx
from onnx import TensorProto, helper

from models import graphs


class TextModel(graphs.Transformer):
    """Reshapes keep the batch, which may be a name."""

    def __init__(self, width, heads, tokens, batch):
        super().__init__(False, width, heads, 4 * width, tokens)
        self.batch = batch if isinstance(batch, int) else 0  # as it was

    def split_heads(self, x, heads):
        shape = self.constant([self.batch, self.rows, heads, self.depth], "int64")
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def join_heads(self, x):
        shape = self.constant([self.batch, self.rows, self.width], "int64")
        return self.node("Reshape", self.node("Transpose", x, perm=[0, 2, 1, 3]), shape)

    def causal_mask(self):
        """Computed, not stored."""
        if not hasattr(self, "mask"):
            shape = self.constant([1, 1, self.tokens, self.tokens], "int64")
            ones = self.node("Expand", self.constant([1.0]), shape)
            future = self.node("Trilu", ones, self.constant(1, "int64"), upper=1)
            self.mask = self.node("Mul", future, self.constant(-1e9))
        return self.mask


def save(g, path, inputs, output, shape):
    """`inputs` are pairs of a type and a shape by name."""
    infos = [helper.make_tensor_value_info(name, *spec) for name, spec in inputs.items()]
    result = helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)
    graph = helper.make_graph(g.nodes, "graph", infos, [result], g.initializers)
    opset = [helper.make_opsetid("", 20)]
    onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def save_gpt(path, batch, layers=12, width=768, heads=12, tokens=1024, words=50304):
    g = TextModel(width, heads, tokens, batch)
    x = g.node("Gather", g.weight(words, width), "tokens")
    x = g.node("Add", x, g.weight(tokens, width))
    for _ in range(layers):
        x = graphs.decoder(g, x)
    logits = g.linear(g.norm(x), width, words, bias=False)
    inputs = {"tokens": (TensorProto.INT64, [batch, tokens])}
    save(g, path, inputs, logits, [batch, tokens, words])


def encoder(g, x):
    """As in vit: norms before, q, k and v by products of their own."""
    y = g.norm(x)
    heads = [g.split_heads(g.linear(y, g.width, g.width), g.heads) for _ in range(3)]
    x = g.node("Add", g.linear(g.attention(*heads), g.width, g.width), x)
    y = g.node("Gelu", g.linear(g.norm(x), g.width, g.inner))
    return g.node("Add", g.linear(y, g.inner, g.width), x)


def save_vit(path, batch, layers=12, width=768, heads=12, extent=224, patch=16):
    side = extent // patch
    g = TextModel(width, heads, side * side, batch)
    weight = g.weight(width, 3, patch, patch)
    x = g.node("Conv", "image", weight, strides=[patch] * 2)
    x = g.node("Reshape", x, g.constant([batch, width, side * side], "int64"))
    x = g.node("Add", g.node("Transpose", x, perm=[0, 2, 1]), g.weight(side * side, width))
    for _ in range(layers):
        x = encoder(g, x)
    x = g.node("ReduceMean", g.norm(x), g.constant([1], "int64"), keepdims=0)
    inputs = {"image": (TensorProto.FLOAT, [batch, 3, extent, extent])}
    save(g, path, inputs, g.linear(x, width, 1000), [batch, 1000])


def save_resnet50(path, batch, extent=224):
    g = graphs.Graph(False)
    logits = graphs.resnet50(g, "image")
    inputs = {"image": (TensorProto.FLOAT, [batch, 3, extent, extent])}
    save(g, path, inputs, logits, [batch, 1000])


def save_unet(path, batch, extent=128, width=32, depth=4):
    """Each level of the way up reads what the way down left there."""
    g = graphs.Graph(False)

    def convolve_twice(x, channels, filters):
        x = g.node("Relu", g.normalized_conv(x, channels, filters, 3))
        return g.node("Relu", g.normalized_conv(x, filters, filters, 3))

    x, channels, skips = "image", 3, []
    for level in range(depth):
        x = convolve_twice(x, channels, width << level)
        channels = width << level
        skips.append(x)
        x = g.node("MaxPool", x, kernel_shape=[2, 2], strides=[2, 2])
    x = convolve_twice(x, channels, 2 * channels)
    channels *= 2
    for skip in reversed(skips):
        weight = g.weight(channels, channels // 2, 2, 2)
        x = g.node("ConvTranspose", x, weight, strides=[2, 2])
        x = g.node("Concat", skip, x, axis=1)
        x = convolve_twice(x, channels, channels // 2)
        channels //= 2
    classes = g.node("Conv", x, g.weight(8, channels, 1, 1))
    inputs = {"image": (TensorProto.FLOAT, [batch, 3, extent, extent])}
    shape = [batch, 8, extent, extent]
    save(g, path, inputs, classes, shape)


def save_resnet18(path, batch, extent=224):
    """With random weights."""
    g = graphs.Graph(True)

    def block(x, channels, filters, stride):
        y = g.node("Relu", g.normalized_conv(x, channels, filters, 3, stride))
        y = g.normalized_conv(y, filters, filters, 3)
        if stride != 1:
            x = g.normalized_conv(x, channels, filters, 1, stride)
        return g.node("Relu", g.node("Add", y, x))

    y = g.node("Relu", g.normalized_conv("image", 3, 64, 7, stride=2))
    y = g.node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1, 1, 1, 1])
    for stage in range(4):
        filters = 64 << stage
        y = block(y, max(64, filters // 2), filters, 2 if stage else 1)
        y = block(y, filters, filters, 1)
    logits = g.linear(g.node("Flatten", g.node("GlobalAveragePool", y)), 512, 1000)
    inputs = {"image": (TensorProto.FLOAT, [batch, 3, extent, extent])}
    save(g, path, inputs, logits, [batch, 1000])
