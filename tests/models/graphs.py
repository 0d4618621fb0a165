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

    def normalized_conv(self, x, channels, filters, extent, stride=1, groups=1):
        """A convolution that keeps the image's extents but for `stride`, and a batch
        norm."""
        weight = self.weight(filters, channels // groups, extent, extent)
        window = {"strides": [stride] * 2, "pads": [extent // 2] * 4, "group": groups}
        y = self.node("Conv", x, weight, **window)
        scale, shift, mean = (self.weight(filters) for _ in range(3))
        variance = self.weight(filters, is_positive=True)
        return self.node("BatchNormalization", y, scale, shift, mean, variance)

    def relu6(self, x):
        return self.node("Clip", x, self.constant(0), self.constant(6))

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

    def scaled(self, scores):
        return self.node("Mul", scores, self.constant(self.depth**-0.5))

    def attention(self, query, key, value, mask=None):
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.scaled(scores)
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


def encoder(g, x, mask=None):
    """As in BERT: norms behind, q, k and v by products of their own."""
    query, key, value = (
        g.split_heads(g.linear(x, g.width, g.width), g.heads) for _ in range(3)
    )
    y = g.linear(g.attention(query, key, value, mask), g.width, g.width)
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


def inverted_residual(g, x, channels, filters, expansion, stride):
    """As in MobileNetV2: wider, a window in each channel, narrower."""
    inner, y = channels * expansion, x
    if expansion != 1:
        y = g.relu6(g.normalized_conv(y, channels, inner, 1))
    y = g.relu6(g.normalized_conv(y, inner, inner, 3, stride, groups=inner))
    y = g.normalized_conv(y, inner, filters, 1)
    return g.node("Add", y, x) if channels == filters and stride == 1 else y


# Expansion, filters, blocks, stride of the first one.
MOBILE_STAGES = (
    (1, 16, 1, 1), (6, 24, 2, 2), (6, 32, 3, 2), (6, 64, 4, 2), (6, 96, 3, 1),
    (6, 160, 3, 2), (6, 320, 1, 1),
)  # fmt: skip


def mobilenet_v2(g, x):
    """1000 logits of images of 3 channels."""
    y, channels = g.relu6(g.normalized_conv(x, 3, 32, 3, stride=2)), 32
    for expansion, filters, blocks, stride in MOBILE_STAGES:
        for i in range(blocks):
            y = inverted_residual(g, y, channels, filters, expansion, 1 if i else stride)
            channels = filters
    y = g.relu6(g.normalized_conv(y, channels, 1280, 1))
    y = g.node("Flatten", g.node("GlobalAveragePool", y))
    return g.linear(y, 1280, 1000)


class WindowedTransformer(Graph):
    """As Swin: attention in windows of 7 x 7, of which every second block's lie
    askew."""

    WINDOW = 7
    STAGES = ((96, 3, 2), (192, 6, 2), (384, 12, 6), (768, 24, 2))  # width, heads, blocks

    def __init__(self, has_weights, batch):
        super().__init__(has_weights)
        self.batch = batch

    def reshape(self, x, *shape):
        return self.node("Reshape", x, self.constant(shape, np.int64))

    def norm(self, x, width):
        scale, shift = self.weight(width), self.weight(width)
        return self.node("LayerNormalization", x, scale, shift, axis=-1)

    def roll(self, x, distance, extent):
        """The first `distance` rows and columns come last; all but as many if it is
        negative."""
        for axis in (1, 2):
            first, last = (
                self.node("Slice", x, *(self.constant([v], np.int64) for v in (*ends, axis)))
                for ends in ((0, distance % extent), (distance % extent, extent))
            )
            x = self.node("Concat", last, first, axis=axis)
        return x

    def bias(self, heads):
        """Of pairs of places in a window, from a table of their distances."""
        window, places = self.WINDOW, self.WINDOW**2
        y, x = np.divmod(np.arange(places), window)
        rows, columns = y[:, None] - y + window - 1, x[:, None] - x + window - 1
        table = self.weight((2 * window - 1) ** 2, heads)
        index = self.constant((rows * (2 * window - 1) + columns).ravel(), np.int64)
        bias = self.reshape(self.node("Gather", table, index), places, places, heads)
        transposed = self.node("Transpose", bias, perm=[2, 0, 1])
        return self.node("Unsqueeze", transposed, self.constant([0], np.int64))

    def mask(self, extent):
        """Keeps places that were not neighbours before the roll apart."""
        window, across = self.WINDOW, extent // self.WINDOW
        part = np.digitize(np.arange(extent), (extent - window, extent - window // 2))
        parts = (3 * part[:, None] + part).reshape(across, window, across, window)
        parts = parts.transpose(0, 2, 1, 3).reshape(across**2, window**2)
        apart = np.where(parts[:, :, None] != parts[:, None, :], -100.0, 0.0)
        return self.constant(apart[None, :, None])

    def attention(self, x, width, heads, extent, is_askew):
        """Of `x` [batch, extent, extent, width]."""
        window, across = self.WINDOW, extent // self.WINDOW
        places, windows, depth = window**2, self.batch * across**2, width // heads
        if is_askew:
            x = self.roll(x, window // 2, extent)
        x = self.reshape(x, self.batch, across, window, across, window, width)
        x = self.node("Transpose", x, perm=[0, 1, 3, 2, 4, 5])
        qkv = self.linear(self.reshape(x, windows, places, width), width, 3 * width)
        qkv = self.reshape(qkv, windows, places, 3, heads, depth)
        qkv = self.node("Transpose", qkv, perm=[2, 0, 3, 1, 4])
        parts = self.node("Split", qkv, axis=0, num_outputs=3, outputs=3)
        squeezed = self.constant([0], np.int64)
        query, key, value = (self.node("Squeeze", part, squeezed) for part in parts)
        query = self.node("Mul", query, self.constant(depth**-0.5))
        scores = self.node("MatMul", query, self.node("Transpose", key, perm=[0, 1, 3, 2]))
        scores = self.node("Add", scores, self.bias(heads))
        if is_askew:
            scores = self.reshape(scores, self.batch, across**2, heads, places, places)
            scores = self.node("Add", scores, self.mask(extent))
            scores = self.reshape(scores, windows, heads, places, places)
        weights = self.node("Softmax", scores, axis=-1)
        sums = self.node("Transpose", self.node("MatMul", weights, value), perm=[0, 2, 1, 3])
        y = self.linear(self.reshape(sums, windows, places, width), width, width)
        y = self.reshape(y, self.batch, across, across, window, window, width)
        y = self.node("Transpose", y, perm=[0, 1, 3, 2, 4, 5])
        y = self.reshape(y, self.batch, extent, extent, width)
        return self.roll(y, -(window // 2), extent) if is_askew else y

    def block(self, x, width, heads, extent, is_askew):
        y = self.attention(self.norm(x, width), width, heads, extent, is_askew)
        x = self.node("Add", x, y)
        y = self.linear(self.norm(x, width), width, 4 * width)
        y = self.node("Gelu", y, approximate="tanh")
        return self.node("Add", x, self.linear(y, 4 * width, width))

    def merge(self, x, width, extent):
        """Neighbours of 2 x 2 as channels, of which half remain."""
        half = extent // 2
        x = self.reshape(x, self.batch, half, 2, half, 2, width)
        x = self.node("Transpose", x, perm=[0, 1, 3, 4, 2, 5])
        x = self.norm(self.reshape(x, self.batch, half, half, 4 * width), 4 * width)
        return self.linear(x, 4 * width, 2 * width, bias=False)

    def logits(self, images, pixels):
        """1000 of images [batch, 3, pixels, pixels]."""
        width, extent = self.STAGES[0][0], pixels // 4
        x = self.node(
            "Conv", images, self.weight(width, 3, 4, 4), self.weight(width), strides=[4, 4]
        )
        x = self.norm(self.node("Transpose", x, perm=[0, 2, 3, 1]), width)
        for stage, (width, heads, blocks) in enumerate(self.STAGES):
            if stage:
                x, extent = self.merge(x, width // 2, extent), extent // 2
            for i in range(blocks):
                is_askew = i % 2 == 1 and extent > self.WINDOW
                x = self.block(x, width, heads, extent, is_askew)
        axes = self.constant([1, 2], np.int64)
        return self.linear(self.node("ReduceMean", self.norm(x, width), axes, keepdims=0), width, 1000)
