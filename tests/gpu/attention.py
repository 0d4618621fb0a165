"""Attention on tensor cores and its gradients agree with a reference in f64: attention.py [long]

Each case is attention between products, with gradients with respect to what these
read; most sizes leave tiles that are not full. All kernels of attention multiply
narrow matrices; schedules of the emulated device give the same bits, without a race. So
does a causal mask that is computed of indices, of which kernels skip what is hidden. A
learned mask has a gradient, too; of windows every second one has another mask besides.
Every fourth case alone is also in f16; with `long` all are.
"""

import collections
import glob
import os
import sys
import tempfile

import numpy as np
from harness import SCHEDULES, Failure, Tally, call
from models.cases import write_data_set
from onnx import TensorProto, helper, numpy_helper

# Of an output's largest value: weights and their slopes are rounded.
BOUNDS = {"bf16": 0.03, "f16": 0.004}
WIDTH, HEADS, WINDOWS = 32, 2, 2
Case = collections.namedtuple("Case", "name queries keys depth columns mask batch", defaults=[2])
CASES = (
    Case("causal", 70, 70, 24, 40, "causal"),
    Case("cross", 33, 50, 64, 64, "none"),
    Case("rows of -inf", 40, 40, 21, 21, "guarded"),
    Case("self", 66, 66, 64, 64, "causal"),
    Case("skipping", 130, 130, 8, 8, "indices"),
    Case("skipping few", 40, 90, 24, 40, "indices"),
    Case("wide", 20, 45, 128, 128, "bias"),
    Case("few queries", 12, 160, 8, 24, "bias"),
    Case("learned", 49, 49, 32, 32, "learned", 3),
    Case("learned, sums of several", 70, 400, 8, 8, "learned", 20),
    Case("windows", 49, 49, 32, 32, "windows", 6),
)


def make_mask(case, random):
    bias = random.standard_normal((1, HEADS, case.queries, case.keys))
    if case.mask in ("learned", "windows"):
        return bias.astype(np.float32)
    if case.mask in ("causal", "guarded", "indices"):
        bias = np.triu(np.full((1, 1, case.queries, case.keys), -np.inf), 1)
    if case.mask == "guarded":
        bias[:, :, ::7] = -np.inf
    return None if case.mask == "none" else bias.astype(np.float32)


def make_data(case):
    random = np.random.RandomState(3)

    def normal(*shape, scale=1.0):
        return (scale * random.standard_normal(shape)).astype(np.float32)

    rows = {"x": case.queries, "z": case.keys}
    feed = {name: normal(case.batch, count, WIDTH) for name, count in rows.items()}
    columns = {"q": case.depth, "k": case.depth, "v": case.columns}
    weights = {
        name: normal(WIDTH, HEADS * count, scale=WIDTH**-0.5)
        for name, count in columns.items()
    }
    weights["o"] = normal(HEADS * case.columns, WIDTH, scale=WIDTH**-0.5)
    weights["factors"] = normal(case.batch, case.queries, WIDTH)
    mask = make_mask(case, random)
    if mask is not None:
        is_input = case.mask in ("learned", "windows")
        (feed if is_input else weights)["mask"] = mask
    if case.mask == "windows":
        apart = random.random_sample((1, WINDOWS, 1, case.queries, case.keys)) < 0.3
        weights["apart"] = np.where(apart, np.float32(-100), np.float32(0))
    return feed, weights


def write_model(path, case, feed, weights):
    nodes, tensors = [], dict(weights)

    def add(op, *inputs, **attributes):
        names = []
        for i, x in enumerate(inputs):
            if not isinstance(x, str):
                name = f"c{len(nodes)}_{i}"
                tensors[name] = np.asarray(x)
                x = name
            names.append(x)
        out = attributes.pop("out", f"t{len(nodes)}")
        nodes.append(helper.make_node(op, names, [out], **attributes))
        return out

    def heads(source, weight, order):
        flat = add("MatMul", source, weight)
        return add("Transpose", add("Reshape", flat, [case.batch, -1, HEADS,
            weights[weight].shape[1] // HEADS]), perm=order)  # fmt: skip

    q, v = heads("x", "q", (0, 2, 1, 3)), heads("z", "v", (0, 2, 1, 3))
    scores = add("MatMul", q, heads("z", "k", (0, 2, 3, 1)))
    scores = add("Mul", scores, np.float32(case.depth**-0.5))
    if case.mask == "indices":
        tensors.pop("mask")
        rows, columns = (
            add("Reshape", add("Range", np.int64(0), np.int64(count), np.int64(1)), shape)
            for count, shape in ((case.queries, [-1, 1]), (case.keys, [1, -1]))
        )
        visible = add("LessOrEqual", columns, rows)
        mask = add("Where", visible, np.float32(0), np.float32(-np.inf))
        scores = add("Add", scores, mask)
    elif case.mask != "none":
        scores = add("Add", scores, "mask")
    if case.mask == "windows":
        matrix = [HEADS, case.queries, case.keys]
        scores = add("Reshape", scores, [-1, WINDOWS, *matrix])
        scores = add("Reshape", add("Add", scores, "apart"), [-1, *matrix])
    parts = add("Softmax", scores, axis=-1)
    if case.mask == "guarded":
        parts = add("Where", add("IsNaN", parts), np.float32(0), parts)
    joined = add("Transpose", add("MatMul", parts, v), perm=(0, 2, 1, 3))
    flat = add("Reshape", joined, [case.batch, -1, HEADS * case.columns])
    add("MatMul", flat, "o", out="y")
    add("ReduceSum", add("Mul", "y", "factors"), keepdims=0, out="loss")

    def info(name, shape):
        return helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)

    graph = helper.make_graph(
        nodes, "attention", [info(name, x.shape) for name, x in feed.items()],
        [info("y", weights["factors"].shape), info("loss", [])],
        [numpy_helper.from_array(x, name) for name, x in tensors.items()],
    )  # fmt: skip
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)])
    with open(path, "wb") as stream:
        stream.write(model.SerializeToString())


def softmax(scores):
    """Rows whose scores are all -inf have neither a part in the result nor a slope."""
    most = scores.max(-1, keepdims=True)
    parts = np.exp(scores - np.where(np.isinf(most), 0, most))
    return parts / np.maximum(parts.sum(-1, keepdims=True), np.finfo(float).tiny)


def reference(case, feed, weights):
    """y and the gradients of x and z, and of the mask if it is learned, in f64."""
    t = {name: x.astype(np.float64) for name, x in (feed | weights).items()}

    def split(rows):
        return rows.reshape(case.batch, rows.shape[1], HEADS, -1).swapaxes(1, 2)

    def join(heads):
        return heads.swapaxes(1, 2).reshape(case.batch, heads.shape[2], -1)

    q, k, v = (split(t[x] @ t[w]) for x, w in (("x", "q"), ("z", "k"), ("z", "v")))
    scale = case.depth**-0.5
    masks = t.get("mask", 0)
    if case.mask == "windows":
        masks = masks + np.tile(t["apart"][0], (case.batch // WINDOWS, 1, 1, 1))
    parts = softmax(q @ k.swapaxes(2, 3) * scale + masks)
    y = join(parts @ v) @ t["o"]
    d_heads = split(t["factors"] @ t["o"].T)
    d_parts = d_heads @ v.swapaxes(2, 3)
    slopes = parts * (d_parts - (d_parts * parts).sum(-1, keepdims=True))
    d_scores = slopes * scale
    d_keys, d_values = d_scores.swapaxes(2, 3) @ q, parts.swapaxes(2, 3) @ d_heads
    dx = join(d_scores @ k) @ t["q"].T
    dz = join(d_keys) @ t["k"].T + join(d_values) @ t["v"].T
    return (y, dx, dz, slopes.sum(0, keepdims=True))[: 3 + ("mask" in feed)]


def expect_kernels(case):
    """attention with its normalizer, and all gradients in one if all are alike and
    registers have room, else one for each; another one for a learned mask."""
    is_one = case.queries == case.keys and case.depth == case.columns <= 64
    return (2 if is_one else 4) + (case.mask in ("learned", "windows"))


def count_kernels(model, *flags):
    """Those that multiply on tensor cores."""
    code = call("tcc", model, "--emit=kernels", *flags, target="cuda")
    return sum("llvm.nvvm.mma." in kernel for kernel in code.split("gpu.func @"))


def run_model(work, schedule):
    """y and the gradients."""
    out = tempfile.mkdtemp(dir=work)
    call("tcc-run", "run", f"{work}/m.tcc", "--inputs-dir", f"{work}/data",
         "--output-dir", out, target="cuda", schedule=schedule)  # fmt: skip
    outputs = range(len(glob.glob(f"{out}/output_*.npy")))
    return [np.load(f"{out}/output_{i}.npy") for i in outputs if i != 1]  # the loss


def run_case(case, precision, work):
    """The largest distance, and how many kernels are on tensor cores."""
    feed, weights = make_data(case)
    flags = ("--grad-of=loss", f"--wrt={','.join(feed)}", f"--precision={precision}")
    write_data_set(f"{work}/data", feed, {})
    first, forms = None, {case: SCHEDULES["cuda"]}
    if case.mask == "indices":
        forms = {case._replace(mask="causal"): SCHEDULES["cuda"][:1], **forms}
    for form, schedules in forms.items():
        write_model(f"{work}/m.onnx", form, feed, weights)
        call("tcc", f"{work}/m.onnx", "-q", "-o", f"{work}/m.tcc", *flags, target="cuda")
        for schedule in schedules:
            found = run_model(work, schedule)
            first = first or found
            if any(a.tobytes() != b.tobytes() for a, b in zip(first, found)):
                raise Failure(f"{form.mask}, {schedule}: other bits")
    distances = [
        np.max(np.abs(ours - expected)) / np.max(np.abs(expected))
        for ours, expected in zip(first, reference(case, feed, weights))
    ]
    # A NaN is no distance within the bound, either.
    return np.max(distances), count_kernels(f"{work}/m.onnx", *flags)


if __name__ == "__main__":
    tally = Tally()
    is_long = sys.argv[1:] == ["long"]
    for number, case in enumerate(CASES):
        for precision, bound in BOUNDS.items():
            if precision == "f16" and number % 4 and not is_long:
                continue
            name = f"{case.name} {precision}"
            with tempfile.TemporaryDirectory() as work:
                try:
                    worst, kernels = run_case(case, precision, work)
                except Failure as failure:
                    tally.check(name, False, failure)
                    continue
            print(f"{name}: {worst:.1e}")
            tally.check(name, worst <= bound, f"{worst:.1e} off")
            tally.check(f"kernels of {name}", kernels == expect_kernels(case), kernels)
    tally.close()
