"""Bytes and launches of CUDA's training steps, beside the ideal: traffic.py

What tcc counts of a step, each launch's inputs and results once, is compared with a
count made here from the model's sizes alone. The ideal reads each tensor once
and writes it once in each of these regions, and stores nothing else:

- each product and convolution, forward, for the gradient of its data and for that of
  its weights, with bias, activation and residual sum where they are behind it;
- each norm, forward, and one for all of its gradients; a batch norm reads what it
  normalises twice, for the statistics and for the result, forward and backward;
- attention, one region forward and one backward, scores never stored; another one
  for the gradient of a bias that it learns, which is summed over all windows;
- the update, which reads a parameter, its gradient and its slots, and writes the
  parameter, its slots and its rounded copy.

Activations and their gradients have 2 bytes, parameters, gradients and slots 4, and so
has the residual stream of a transformer, as with torch.autocast: in 2 bytes it would be
too inexact. What has one value a row or channel is not counted. Models are compiled for CUDA, without
weights; nothing is run.
"""

import json
import os
import tempfile

from harness import Tally, first_line, run_tool
from models import graphs
from onnx import TensorProto

WIDTH, HEADS, INNER, TOKENS, BATCH, VOCABULARY = 768, 12, 3072, 1024, 4, 4096
IMAGES, PIXELS, CONVOLUTIONS, CLASSES = 16, 224, 53, 1000
RECIPE = """
[loss]
kind = "{loss}"
{extra}
[optimizer]
kind = "{optimizer}"
lr = 1e-3
{momentum}
[batch]
micro = {batch}
[precision]
compute = "bf16"
"""
# Times the ideal, and launches, at most.
LIMITS = {
    "a layer": (1.07, 36),
    "all but layers": (1.08, 28),
    "resnet50": (1.09, 825),
    "mobilenet_v2": (1.09, 805),
    "swin_t": (1.10, 695),
}

NARROW, WIDE = 2, 4


def update_bytes(parameters, slots):
    """The gradient's store, and the update."""
    return parameters * (WIDE + WIDE * (2 + slots) + WIDE * (1 + slots) + NARROW)


def product_bytes(rows, depth, columns, addends=0, extra=0, result=NARROW):
    """Forward, dx and dw, without the gradient's store. `addends` are further tensors
    of the result's size and type forward, `extra` of its size that dx reads or writes,
    `result` the bytes of its element."""
    x, w, y = rows * depth, depth * columns, rows * columns
    return NARROW * (x + w + y + w + x + x + y + extra) + result * y * (1 + addends)


def attention_bytes(row):
    """q, k, v in, sums out; then all of these and the sums' gradient, three out."""
    return NARROW * (3 * row + row + 3 * row + row + row + 3 * row)


def layer_ideal(rows, width, inner):
    """Of a layer of a transformer; norms are before products."""
    row = rows * width
    # x, y; x, dy, the residual's gradient, dx. What it normalises is the stream.
    norm = WIDE * row + NARROW * row + WIDE * row + NARROW * 3 * row
    products = (
        product_bytes(rows, width, 3 * width)
        + product_bytes(rows, width, width, addends=1, result=WIDE)
        # The sum before gelu is stored for its gradient, which is behind the product.
        + product_bytes(rows, width, inner, addends=1)
        + product_bytes(
            rows, inner, width, addends=1, extra=rows * inner, result=WIDE
        )
    )
    parameters = 4 * width * width + 2 * width * inner
    return 2 * norm + products + attention_bytes(row) + update_bytes(parameters, slots=2)


def ends_ideal():
    """Embeddings, the last norm, the head and its loss."""
    rows = BATCH * TOKENS
    row, logits = rows * WIDTH, rows * VOCABULARY
    embeddings = NARROW * row * 3 + WIDE * row * 2 + WIDE * VOCABULARY * WIDTH
    head = product_bytes(rows, WIDTH, VOCABULARY) + NARROW * 2 * logits
    parameters = 2 * VOCABULARY * WIDTH
    return embeddings + NARROW * 5 * row + head + update_bytes(parameters, slots=2)


def convolution_bytes(x, weight, y, has_residual, needs_dx=True):
    """Of a convolution with its batch norm and relu."""
    forward = x + weight + y + y + 2 * y + (y if has_residual else 0)
    # The residual's gradient is added where that of x is made.
    norm = 2 * y + 2 * y + y + (y if has_residual else 0)
    data = y + weight + x if needs_dx else 0
    return NARROW * (forward + norm + data + x + y)


class Convolutions:
    """Bytes and parameters of those of a model with batch norms."""

    def __init__(self):
        self.bytes, self.parameters = 0, 0

    def add(self, channels, filters, extent, pixels, stride=1, groups=1, **how):
        """Of `pixels` squared; the pixels after it."""
        weight, after = channels // groups * filters * extent**2, pixels // stride
        x, y = IMAGES * channels * pixels**2, IMAGES * filters * after**2
        how.setdefault("has_residual", False)
        self.bytes += convolution_bytes(x, weight, y, **how)
        self.parameters += weight
        return after

    def step_bytes(self, channels, pixels, slots):
        """Of all, the mean of the pixels, a classifier and the update."""
        parameters = self.parameters + channels * CLASSES
        pool = NARROW * 2 * IMAGES * channels * pixels**2
        return self.bytes + pool + update_bytes(parameters, slots)


def resnet50_ideal():
    of = Convolutions()
    pixels = of.add(3, 64, 7, PIXELS, 2, needs_dx=False)
    pool = IMAGES * 64 * pixels**2
    of.bytes += NARROW * (pool + pool // 4) * 2
    pixels, channels = pixels // 2, 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        for i in range(depth):
            stride, inner = 2 if stage and i == 0 else 1, 64 << stage
            if i == 0:
                of.add(channels, 4 * inner, 1, pixels, stride)
            of.add(channels, inner, 1, pixels)
            pixels = of.add(inner, inner, 3, pixels, stride)
            of.add(inner, 4 * inner, 1, pixels, has_residual=True)
            channels = 4 * inner
    return of.step_bytes(channels, pixels, slots=1)


def mobilenet_v2_ideal():
    of = Convolutions()
    pixels, channels = of.add(3, 32, 3, PIXELS, 2, needs_dx=False), 32
    for expansion, filters, blocks, first_stride in graphs.MOBILE_STAGES:
        for i in range(blocks):
            stride, inner = 1 if i else first_stride, channels * expansion
            if expansion != 1:
                of.add(channels, inner, 1, pixels)
            pixels = of.add(inner, inner, 3, pixels, stride, groups=inner)
            of.add(inner, filters, 1, pixels, has_residual=i > 0)
            channels = filters
    of.add(channels, 1280, 1, pixels)
    return of.step_bytes(1280, pixels, slots=1)


def swin_ideal():
    extent, width, total = PIXELS // 4, None, 0
    for stage, (filters, _, blocks) in enumerate(graphs.WindowedTransformer.STAGES):
        row = IMAGES * extent**2 * (width or filters)
        if stage:
            # The norm's x, y; x, dy, dx; and the product behind it.
            total += WIDE * row * 2 + NARROW * row * 3
            extent //= 2
            rows, depth = IMAGES * extent**2, 4 * width
            total += product_bytes(rows, depth, filters, result=WIDE)
            total += update_bytes(depth * filters, slots=2)
        else:
            # Patches' product, forward and for its weights; the norm, as above.
            patch, images = 3 * 4**2, IMAGES * 3 * PIXELS**2
            total += NARROW * (2 * images + patch * filters + 2 * row)
            total += NARROW * row + WIDE * row + NARROW * row * 3
            total += update_bytes(patch * filters, slots=2)
        width, rows = filters, IMAGES * extent**2
        # q, k, v and the sums' gradient once more for that of the bias.
        bias = NARROW * 4 * rows * width
        total += blocks * (layer_ideal(rows, width, 4 * width) + bias)
    # The last norm's x; x, dx. Its result's mean is small.
    total += (2 * WIDE + NARROW) * rows * width
    return total + update_bytes(width * CLASSES, slots=2)


def write_transformer(path, layers):
    sizes = {"width": WIDTH, "heads": HEADS, "inner": INNER, "tokens": TOKENS}
    g = graphs.Transformer(False, batch=BATCH, **sizes)
    logits = graphs.language_model(g, "ids", "decoder", layers, VOCABULARY)
    shape = [BATCH, TOKENS]
    g.save(path, {"ids": shape}, {logits: [*shape, VOCABULARY]}, TensorProto.INT64)


def write_image_model(path, g, make_logits):
    logits = make_logits(g)
    g.save(path, {"x": [IMAGES, 3, PIXELS, PIXELS]}, {logits: [IMAGES, CLASSES]})


class Counter:
    def __init__(self, tally, work):
        self.tally, self.work = tally, work

    def count(self, name, model, **recipe):
        """Bytes and launches of the step."""
        path = os.path.join(self.work, "recipe.toml")
        with open(path, "w") as stream:
            stream.write(RECIPE.format(**recipe))
        done = run_tool("tcc", model, "--weights=none", "--target=cuda", f"--train={path}",
                        "--stop-after=plan", "--json", target="cpu")  # fmt: skip
        self.tally.check(f"{name} compiles", done.code == 0, first_line(done))
        step = json.loads(done.out)
        self.library_calls = step["library_calls"]
        return step["bytes"], step["launches"]

    def check(self, name, bytes_, launches, ideal):
        ratio, limits = bytes_ / ideal, LIMITS[name]
        print(f"{name}: {bytes_ / 1e6:.0f} MB, {ratio:.2f} of the ideal, {launches} launches")
        self.tally.check(f"bytes of {name}", 1 <= ratio <= limits[0], f"{ratio:.3f}")
        self.tally.check(f"launches of {name}", launches <= limits[1], f"{launches}")


def check_transformer(counter, model):
    text = {"loss": "causal_lm", "extra": "shift = false", "optimizer": "adamw", "momentum": ""}
    counts = []
    for layers in (1, 2):
        write_transformer(model, layers)
        counts.append(counter.count(f"{layers} layers", model, batch=BATCH, **text))
    (one, launches), (two, more) = counts
    layer = two - one
    counter.check("a layer", layer, more - launches, layer_ideal(BATCH * TOKENS, WIDTH, INNER))
    counter.check("all but layers", one - layer, 2 * launches - more, ends_ideal())


IMAGE_RECIPE = {"loss": "cross_entropy", "extra": "", "batch": IMAGES}
SGD = IMAGE_RECIPE | {"optimizer": "sgd", "momentum": "momentum = 0.9"}
ADAMW = IMAGE_RECIPE | {"optimizer": "adamw", "momentum": ""}


def write_resnet50(path):
    write_image_model(path, graphs.Graph(False), lambda g: graphs.resnet50(g, "x"))


def write_mobilenet_v2(path):
    write_image_model(path, graphs.Graph(False), lambda g: graphs.mobilenet_v2(g, "x"))


def write_swin(path):
    g = graphs.WindowedTransformer(False, IMAGES)
    write_image_model(path, g, lambda g: g.logits("x", PIXELS))


# How they are written and trained.
IMAGE_MODELS = {
    "resnet50": (write_resnet50, SGD),
    "mobilenet_v2": (write_mobilenet_v2, SGD),
    "swin_t": (write_swin, ADAMW),
}
IDEALS = {"resnet50": resnet50_ideal, "mobilenet_v2": mobilenet_v2_ideal, "swin_t": swin_ideal}


def check_image_model(counter, name, model):
    write, recipe = IMAGE_MODELS[name]
    write(model)
    counter.check(name, *counter.count(name, model, **recipe), IDEALS[name]())
    if name == "resnet50":
        # Each convolution, the gradients of its data, but for the images, and filter.
        expected, found = 3 * CONVOLUTIONS - 1, counter.library_calls
        message = f"{found}, expected {expected} at least"
        counter.tally.check("library calls of resnet50", found >= expected, message)


if __name__ == "__main__":
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "m.onnx")
        check_transformer(Counter(tally, work), model)
        for name in IMAGE_MODELS:
            check_image_model(Counter(tally, work), name, model)
    tally.close()
