"""Bytes and launches of CUDA's training steps, beside the ideal: traffic.py

What tcc counts of a step, each launch's inputs and results once, is compared with a
count made here from the model's sizes alone. The ideal reads each tensor once
and writes it once in each of these regions, and stores nothing else:

- each product and convolution, forward, for the gradient of its data and for that of
  its weights, with bias, activation and residual sum where they are behind it;
- each norm, forward, and one for all of its gradients; a batch norm reads what it
  normalises twice, for the statistics and for the result, forward and backward;
- attention, one region forward and one backward, scores never stored;
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
IMAGES, PIXELS, CONVOLUTIONS = 16, 224, 53
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


def attention_bytes():
    """q, k, v in, sums out; then all of these and the sums' gradient, three out."""
    row = BATCH * TOKENS * WIDTH
    return NARROW * (3 * row + row + 3 * row + row + row + 3 * row)


def layer_ideal():
    rows = BATCH * TOKENS
    row = rows * WIDTH
    # x, y; x, dy, the residual's gradient, dx. What it normalises is the stream.
    norm = WIDE * row + NARROW * row + WIDE * row + NARROW * 3 * row
    products = (
        product_bytes(rows, WIDTH, 3 * WIDTH)
        + product_bytes(rows, WIDTH, WIDTH, addends=1, result=WIDE)
        # The sum before gelu is stored for its gradient, which is behind the product.
        + product_bytes(rows, WIDTH, INNER, addends=1)
        + product_bytes(
            rows, INNER, WIDTH, addends=1, extra=rows * INNER, result=WIDE
        )
    )
    parameters = 12 * WIDTH * WIDTH
    return 2 * norm + products + attention_bytes() + update_bytes(parameters, slots=2)


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


def resnet50_ideal():
    bytes_, parameters = 0, 0

    def convolve(channels, filters, extent, pixels, stride=1, **how):
        nonlocal bytes_, parameters
        weight, after = channels * filters * extent**2, pixels // stride
        x, y = IMAGES * channels * pixels**2, IMAGES * filters * after**2
        how.setdefault("has_residual", False)
        bytes_ += convolution_bytes(x, weight, y, **how)
        parameters += weight
        return after

    pixels = convolve(3, 64, 7, PIXELS, 2, needs_dx=False)
    pool = IMAGES * 64 * pixels**2
    bytes_ += NARROW * (pool + pool // 4) * 2
    pixels, channels = pixels // 2, 64
    for stage, depth in enumerate((3, 4, 6, 3)):
        for i in range(depth):
            stride, inner = 2 if stage and i == 0 else 1, 64 << stage
            if i == 0:
                convolve(channels, 4 * inner, 1, pixels, stride)
            convolve(channels, inner, 1, pixels)
            pixels = convolve(inner, inner, 3, pixels, stride)
            convolve(inner, 4 * inner, 1, pixels, has_residual=True)
            channels = 4 * inner
    bytes_ += NARROW * 2 * IMAGES * channels * pixels**2
    parameters += channels * 1000
    return bytes_ + update_bytes(parameters, slots=1)


def write_transformer(path, layers):
    sizes = {"width": WIDTH, "heads": HEADS, "inner": INNER, "tokens": TOKENS}
    g = graphs.Transformer(False, batch=BATCH, **sizes)
    logits = graphs.language_model(g, "ids", "decoder", layers, VOCABULARY)
    shape = [BATCH, TOKENS]
    g.save(path, {"ids": shape}, {logits: [*shape, VOCABULARY]}, TensorProto.INT64)


def write_resnet50(path):
    g = graphs.Graph(has_weights=False)
    logits = graphs.resnet50(g, "x")
    g.save(path, {"x": [IMAGES, 3, PIXELS, PIXELS]}, {logits: [IMAGES, 1000]})


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
    counter.check("a layer", layer, more - launches, layer_ideal())
    counter.check("all but layers", one - layer, 2 * launches - more, ends_ideal())


def check_resnet50(counter, model):
    write_resnet50(model)
    bytes_, launches = counter.count(
        "resnet50", model, loss="cross_entropy", extra="", optimizer="sgd",
        momentum="momentum = 0.9", batch=IMAGES,
    )  # fmt: skip
    counter.check("resnet50", bytes_, launches, resnet50_ideal())
    # Each convolution, the gradients of its data, but for the images, and filter.
    expected, found = 3 * CONVOLUTIONS - 1, counter.library_calls
    message = f"{found}, expected {expected} at least"
    counter.tally.check("library calls of resnet50", found >= expected, message)


if __name__ == "__main__":
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        model = os.path.join(work, "m.onnx")
        check_transformer(Counter(tally, work), model)
        check_resnet50(Counter(tally, work), model)
    tally.close()
