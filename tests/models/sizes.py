"""Models whose sizes a run computes: one package, many shapes, beside onnxruntime.

Each model runs on inputs that give shapes of its own; those that make no sense end
the run with exit 2 and a message that names the node.
"""

import os
import tempfile

import numpy as np
import onnx
import onnxruntime

from harness import Tally, first_line, run_tool

F32 = np.float32

# A model in ONNX's text, and inputs that it runs on.
MODELS = {
    "reshape": (
        "g (float[2, 6] x, int64[3] s) => (float[a, b, c] y)"
        " { e = Exp (x) r = Reshape (e, s) y = Neg (r) }",
        [{"s": s} for s in ([3, 4, 1], [-1, 2, 3], [2, 0, 1], [1, 1, 12], [12, 1, -1])],
    ),
    "slice": (
        "g (float[8, 5] x, int64[2] b, int64[2] e) => (float[a, c] y)"
        " { s = Slice (x, b, e) y = Mul (s, s) }",
        [
            {"b": [0, 0], "e": [8, 5]},
            {"b": [-3, 1], "e": [100, -1]},
            {"b": [5, 2], "e": [2, 3]},
            {"b": [7, 4], "e": [8, 5]},
        ],
    ),
    "steps": (
        "g (float[9, 2] x, int64[1] b, int64[1] e, int64[1] axes, int64[1] s)"
        " => (float[a, c] y) { y = Slice (x, b, e, axes, s) }",
        [
            {"b": [0], "e": [9], "axes": [0], "s": [2**63 - 1]},
            {"b": [8], "e": [-100], "axes": [-2], "s": [-3]},
            {"b": [1], "e": [2], "axes": [1], "s": [1]},
        ],
    ),
    "joined": (
        "g (float[6, 8, 5] x, int64[2] a, int64[2] b) => (float[n, m, 10] y)"
        " <int64[2] zero = {0, 0}>"
        " { p = Slice (x, zero, a) q = Slice (x, zero, b)"
        "   c = Concat <axis = 2> (p, q) y = Neg (c) }",
        [{"a": n, "b": n} for n in ([6, 8], [2, 0], [3, 1])],
    ),
    "chosen of three": (
        "g (float[8] x, int64[1] a, int64[1] b, int64[1] c) => (float[n] y)"
        " <int64[1] zero = {0}> { p = Slice (x, zero, a) q = Slice (x, zero, b)"
        "   r = Slice (x, zero, c) m = Greater (r, r) y = Where (m, p, q) }",
        [{"a": [n], "b": [n], "c": [n]} for n in (0, 3, 8)],
    ),
    "softmax": (
        "g (float[64] x, int64[1] n, int64[1] zero) => (float[a] y)"
        " { s = Slice (x, zero, n) y = Softmax (s) }",
        [{"n": [n], "zero": [0]} for n in (1, 7, 33, 64)],
    ),
    "product": (
        "g (float[16, 8] x, float[8, 4] w, int64[1] n, int64[1] zero) => (float[a, 4] y)"
        " { s = Slice (x, zero, n) p = MatMul (s, w) y = Relu (p) }",
        [{"n": [n], "zero": [0]} for n in (0, 1, 5, 16)],
    ),
    "sum": (
        "g (float[3, 4, 5] x, int64[2] axes) => (float[a] y)"
        " { y = ReduceSum <keepdims = 0> (x, axes) }",
        [{"axes": a} for a in ([0, 1], [1, 2], [-1, 0])],
    ),
    "pad": (
        "g (float[3, 4] x, int64[4] p) => (float[a, b] y)"
        ' { y = Pad <mode = "reflect"> (x, p) }',
        [{"p": p} for p in ([0, 0, 0, 0], [1, 2, 2, 3], [0, 3, 2, 0])],
    ),
    "range": (
        "g (float[1] x, int64 n) => (float[a] y)"
        " <int64 zero = {0}, int64 one = {1}>"
        " { r = Range (zero, n, one) f = Cast <to = 1> (r) y = Add (f, x) }",
        [{"n": n} for n in (0, 1, 1000)],
    ),
    "crop": (
        "g (float[8, 9] x, int64[2] b, int64[2] e, int64[2] f) => (float[a, c] y)"
        " { s = Slice (x, b, e) y = Slice (s, b, f) }",
        [
            {"b": [0, 0], "e": [8, 9], "f": [8, 9]},
            {"b": [1, 2], "e": [-1, 9], "f": [4, 100]},
            {"b": [5, 1], "e": [7, 3], "f": [9, 9]},
        ],
    ),
    "sizes": (
        "g (float[2, 3, 5, 7] x, int64[4] s) => (float[a, b, c, d] y)"
        ' { e = Exp (x) r = Resize <mode = "linear"> (e, , , s) y = Neg (r) }',
        [{"s": s} for s in ([2, 3, 5, 7], [2, 3, 11, 4], [2, 3, 1, 1])],
    ),
    "images": (
        "g (float[1, 2, 6, 5] x, int64[2] s) => (float[1, 2, c, d] y)"
        " <int64[2] outer = {1, 2}> { all = Concat <axis = 0> (outer, s)"
        ' y = Resize <mode = "cubic", antialias = 1, exclude_outside = 1>'
        " (x, , , all) }",
        [{"s": s} for s in ([6, 5], [12, 9], [2, 4])],
    ),
    "cubic": (
        "g (float[1, 2, 6, 5] x, float[4] f) => (float[a, b, c, d] y)"
        ' { y = Resize <mode = "cubic",'
        ' coordinate_transformation_mode = "asymmetric"> (x, , f) }',
        [{"f": f} for f in ([1, 1, 1, 1], [1, 1, 2.5, 1.5], [1, 1, 0.5, 0.4])],
    ),
    "nearest": (
        "g (float[5, 6] x, float[2] f) => (float[a, b] y)"
        ' { y = Resize <mode = "nearest"> (x, , f) }',
        [{"f": f} for f in ([1, 1], [2, 3], [0.5, 1.7])],
    ),
    "kept ratio": (
        "g (float[6, 9] x, int64[2] s) => (float[a, b] y)"
        ' { y = Resize <mode = "nearest", keep_aspect_ratio_policy = "not_larger">'
        " (x, , , s) }",
        [{"s": s} for s in ([6, 9], [12, 30], [2, 9])],
    ),
    "region": (
        "g (float[1, 1, 6, 9] x, float[8] roi, int64[4] s) => (float[a, b, c, d] y)"
        ' { y = Resize <mode = "linear", extrapolation_value = 3.0,'
        ' coordinate_transformation_mode = "tf_crop_and_resize"> (x, roi, , s) }',
        [
            {"roi": [0, 0, *start, 1, 1, *end], "s": [1, 1, 3, 4]}
            for start, end in (([0, 0], [1, 1]), ([0.2, 0.1], [0.9, 0.7]))
        ],
    ),
    "cut and resized": (
        "g (float[8, 9] x, int64[2] b, int64[2] e) => (float[5, 4] y)"
        " <int64[2] s = {5, 4}> { part = Slice (x, b, e)"
        ' y = Resize <mode = "linear"> (part, , , s) }',
        [{"b": [0, 0], "e": [8, 9]}, {"b": [2, 3], "e": [4, 4]}],
    ),
    "largest": (
        "g (float[3, 6] x, int64[1] k) => (float[3, a] y)"
        " { v, i = TopK (x, k) f = Cast <to = 1> (i) y = Add (v, f) }",
        [{"k": [k]} for k in (0, 1, 6)],
    ),
    "best of some": (
        "g (float[6] x, float t) => (float[a] y, int64[a] i, float[b] few)"
        " <int64[1] back = {-1}, int64[1] zero = {0}, int64[1] three = {3}>"
        " { c = Greater (x, t) p = NonZero (c) f = Reshape (p, back)"
        "   some = Gather (x, f) n = Shape (some) both = Concat <axis = 0> (three, n)"
        "   k = ReduceMin (both) v, i = TopK (some, k) y = Exp (v)"
        "   s = Slice (some, zero, three) few = Neg (s) }",
        [{"x": [3, -1, 4, 1, 5, -9], "t": t} for t in (9, 3, 0, -10)],
    ),
    "chosen": (
        "g (float[6] x, int64[1] c, int64[1] k) => (float[1] y, float[a] v)"
        " <int64[1] back = {-1}, float zero = {0.0}>"
        " { m = Greater (x, zero) p = NonZero (m) f = Reshape (p, back)"
        "   some = Gather (x, f) y = Gather (some, c)"
        "   s, i = TopK <largest = 0> (some, k) v = Neg (s) }",
        [{"x": [3, -1, 4, 1, 5, -9], "c": [c], "k": [k]} for c, k in ((0, 2), (-4, 4), (3, 0))],
    ),
    "one hot": (
        "g (int64[4] i, int64 depth, float[2] v) => (float[4, a] y)"
        " { y = OneHot (i, depth, v) }",
        [{"i": [0, 3, -1, 7], "depth": d} for d in (1, 5, 8)],
    ),
    "dropout": (
        "g (float[4] x, float p, bool trains) => (float[4] y)"
        " { d = Dropout (x, p, trains) y = Neg (d) }",
        [{"p": 0.5, "trains": False}, {"p": 0, "trains": True}],
    ),
    "center": (
        "g (float[4, 7] x, int64[2] s) => (float[a, b] y) { y = CenterCropPad (x, s) }",
        [{"s": s} for s in ([4, 7], [7, 2], [1, 12], [0, 7])],
    ),
    "unpool": (
        "g (float[1, 1, 2, 2] x, int64[1, 1, 2, 2] i, int64[4] s)"
        " => (float[a, b, c, d] y)"
        " { y = MaxUnpool <kernel_shape = [2, 2], strides = [2, 2]> (x, i, s) }",
        [{"i": [[[[0, 3], [8, 13]]]], "s": [1, 1, 4, 4]}],
    ),
    "window": (
        "g (float[1] x, int64 n) => (float[a] y) { w = HannWindow (n) y = Mul (w, x) }",
        [{"n": n} for n in (1, 4, 100)],
    ),
    "blocks": (
        "g (float[1, 12, 9] x, int64[2] s, int64[2] b) => (float[1, a, c, d] y)"
        " { y = Col2Im (x, s, b) }",
        [
            {"s": s, "b": b}
            for s, b in (([4, 4], [2, 2]), ([3, 4], [1, 2]), ([5, 3], [3, 1]))
        ],
    ),
    "frames": (
        "g (float[2, 40, 1] x, int64 step, int64 n) => (float[2, a, b, 2] y)"
        " { y = STFT (x, step, , n) }",
        [{"step": s, "n": n} for s, n in ((1, 32), (7, 16), (16, 8))],
    ),
    "mel": (
        "g (int64 bins, int64 n, int64 rate, float low, float high) => (float[a, b] y)"
        " { y = MelWeightMatrix (bins, n, rate, low, high) }",
        [
            {"bins": 8, "n": 16, "rate": 8192, "low": 0, "high": 4096},
            {"bins": 20, "n": 512, "rate": 16000, "low": 20, "high": 7600},
        ],
    ),
    "branch": (
        "g (float[8] x, int64 n, int64[1] k) => (float[a] y)"
        " <int64 zero = {0}, int64[1] first = {0}>"
        " { c = Greater (n, zero)"
        "   b = If (c) <then_branch = t () => (float[d] p) { p = Slice (x, first, k) },"
        "               else_branch = f () => (float[16] q) { q = Concat <axis = 0> (x, x) }>"
        "   y = Exp (b) }",
        [{"n": n, "k": [k]} for n, k in ((0, 3), (1, 3), (1, 8), (1, 0), (-1, 0))],
    ),
    "stack": (
        "g (float[4] x, int64 n) => (float[a, 4] y, float[4] last)"
        " <bool yes = {1}, float limit = {100.0}>"
        " { last, s = Loop (n, yes, x) <body = b (int64 i, bool c, float[4] v)"
        "     => (bool more, float[4] next, float[4] slice)"
        "     { f = CastLike (i, v) next = Add (v, f) slice = Mul (v, next)"
        "       d = Mul (f, f) more = Less (d, limit) }>"
        "   y = Neg (s) }",
        [{"n": n} for n in (0, 1, 5, 50)],
    ),
    "grow": (
        "g (float[1, 2] x, int64 n) => (float[1, a] y, int64[2] size)"
        " <bool yes = {1}, int64[1] axis = {1}>"
        " { t = Loop (n, yes, x) <body = b (int64 i, bool c, float[1, d] v)"
        "     => (bool more, float[1, e] next)"
        "     { more = Identity (c) m = ReduceMax (v, axis) k = Neg (m)"
        "       next = Concat <axis = 1> (v, k) }>"
        "   y = Exp (t) size = Shape (y) }",
        [{"n": n} for n in (0, 1, 7, 100)],
    ),
    "shape": (
        "g (float[6, 4] x, int64[2] s) => (float y)"
        " { r = Reshape (x, s) t = Shape (r) f = Cast <to = 1> (t)"
        "   y = ReduceSum <keepdims = 0> (f) }",
        [{"s": s} for s in ([4, 6], [-1, 2])],
    ),
}

# A model, inputs that it refuses, and what the message says.
REFUSED = [
    ("reshape", {"s": [5, 1, 2]}, "has another number of elements than the input"),
    ("reshape", {"s": [-5, 1, 2]}, "node 'r'"),
    ("steps", {"b": [0], "e": [9], "axes": [0], "s": [0]}, "the step of a slice is 0"),
    ("chosen of three", {"a": [3], "b": [3], "c": [4]}, "are of different sizes"),
    ("chosen of three", {"a": [4], "b": [3], "c": [3]}, "are of different sizes"),
    ("joined", {"a": [3, 2], "b": [3, 1]}, "are of different sizes"),
    ("sum", {"axes": [0, 3]}, "an axis is out of range for rank 3"),
    ("range", {"n": 70000}, "size 'r' is 70000, compiled for 0..65536"),
    ("sizes", {"s": [2, 3, 0, 7]}, "an extent is out of range"),
    ("sizes", {"s": [2, 3, 2000, 2000]}, "node 'r'"),
    ("cubic", {"f": [1, 1, -1, 1]}, "node 'y'"),
    ("images", {"s": [6, 100000]}, "size 'y.3' is 100000, compiled for 0..65536"),
    ("cut and resized", {"b": [3, 3], "e": [3, 4]}, "an extent is out of range"),
    ("largest", {"k": [7]}, "size 'v' is 7, compiled for 0..6"),
    ("chosen", {"x": [0] * 6, "c": [0], "k": [0]}, "index 1 is out of range"),
    ("chosen", {"x": [1] * 6, "c": [6], "k": [0]}, "index 7 is out of range"),
    ("chosen", {"x": [1] * 6, "c": [-7], "k": [0]}, "is out of range"),
    ("chosen", {"x": [1, 0] * 3, "c": [0], "k": [4]}, "k is larger than the extent of axis 0"),
    ("one hot", {"i": [0, 0, 0, 0], "depth": -1}, "node 'y'"),
    ("dropout", {"p": 0.5, "trains": True}, "dropout in training mode is not supported"),
    ("center", {"s": [-1, 7]}, "node 'y'"),
    ("unpool", {"i": [[[[0, 3], [8, 13]]]], "s": [1, 1, 3, 4]}, "output_shape does not"),
    ("window", {"n": -1}, "size 'w' is -1, compiled for 0..65536"),
    ("blocks", {"s": [4, 4], "b": [3, 3]}, "node 'y'"),
    ("blocks", {"s": [4, 4], "b": [0, 2]}, "node 'y'"),
    ("frames", {"step": 0, "n": 16}, "frame_length and window do not fit"),
    ("frames", {"step": 1, "n": 41}, "node 'y'"),
    (
        "mel",
        {"bins": 8, "n": 16, "rate": 8192, "low": 0, "high": 9000},
        "the edges are outside of the spectrum",
    ),
]


def make_model(text, path):
    model = onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 18]> {text}')
    onnx.save(model, path)
    return model


def complete(model, given, random):
    """The inputs of a model: what is given, else random floats."""
    inputs = {}
    for info in model.graph.input:
        shape = [dim.dim_value for dim in info.type.tensor_type.shape.dim]
        value = given.get(info.name)
        kind = onnx.helper.tensor_dtype_to_np_dtype(info.type.tensor_type.elem_type)
        if value is None:
            value = random.standard_normal(shape)
        inputs[info.name] = np.array(value, kind)
    return inputs


def run_package(work, package, inputs):
    flags = []
    for name, value in inputs.items():
        path = os.path.join(work, name + ".npy")
        np.save(path, value)
        flags += ["--input", f"{name}={path}"]
    return run_tool("tcc-run", "run", package, *flags, "--output-dir", work)


def check_model(tally, work, name, random):
    text, cases = MODELS[name]
    path, package = os.path.join(work, "m.onnx"), os.path.join(work, name + ".tcc")
    model = make_model(text, path)
    run = run_tool("tcc", path, "-o", package, "-q")
    if not tally.check(f"{name} compiles", run.code == 0, first_line(run)):
        return
    session = onnxruntime.InferenceSession(path)
    for case in cases:
        inputs, title = complete(model, case, random), f"{name} {case}"
        expected = session.run(None, inputs)
        run = run_package(work, package, inputs)
        if not tally.check(title, run.code == 0, first_line(run)):
            continue
        for i, right in enumerate(expected):
            found = np.load(os.path.join(work, f"output_{i}.npy"))
            same = found.shape == right.shape and np.allclose(found, right, 1e-5, 1e-5)
            tally.check(f"{title}: numbers", same, f"{found.shape}, {right.shape}")
    for other, case, message in REFUSED:
        if other == name:
            run = run_package(work, package, complete(model, case, random))
            is_refused = run.code == 2 and message in run.err
            tally.check(f"{name} {case} is refused", is_refused, first_line(run))


def check_axes(tally, work):
    """More axes than there are is wrong whatever they are."""
    path = os.path.join(work, "m.onnx")
    text = "g (float[2] x, int64[3] a) => (float y) { y = ReduceSum <keepdims = 0> (x, a) }"
    make_model(text, path)
    run = run_tool("tcc", path, "-o", os.path.join(work, "axes.tcc"), "-q")
    found = run.code == 3 and "there are more axes than the input has" in run.err
    tally.check("too many axes", found, first_line(run))


def check_bounds(tally, work):
    path = os.path.join(work, "m.onnx")
    make_model(MODELS["range"][0], path)
    package = os.path.join(work, "bound.tcc")
    run = run_tool("tcc", path, "-o", package, "-q", "--bound", "r=10")
    tally.check("a bound", run.code == 0, first_line(run))
    inputs = {"x": np.ones(1, F32), "n": np.array(11)}
    run = run_package(work, package, inputs)
    found = run.code == 2 and "size 'r' is 11, compiled for 0..10" in run.err
    tally.check("a bound holds", found, first_line(run))
    make_model(MODELS["grow"][0], path)
    run = run_tool("tcc", path, "-o", package, "-q", "--bound", "t.1=10")
    tally.check("a bound of a loop", run.code == 0, first_line(run))
    run = run_package(work, package, {"x": np.ones((1, 2), F32), "n": np.array(9)})
    found = run.code == 2 and "size 't.1' is 11, compiled for 2..10" in run.err
    tally.check("a bound of a loop holds", found, first_line(run))
    run = run_tool("tcc", path, "-o", package, "-q", "--bound", "q=10")
    found = run.code == 2 and "--bound q: no size" in run.err
    tally.check("a bound of nothing", found, first_line(run))


def main():
    tally, random = Tally(), np.random.default_rng(5)
    with tempfile.TemporaryDirectory() as work:
        for name in MODELS:
            check_model(tally, work, name, random)
        check_axes(tally, work)
        check_bounds(tally, work)
    tally.close()


if __name__ == "__main__":
    main()
