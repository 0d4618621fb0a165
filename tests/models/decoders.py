"""A decoder that writes text until it ends, beside onnxruntime: decoders.py [--long]

The prompt's length is an input's, and how many tokens follow is what a loop finds out:
it stops at a token that ends the text, or after as many as another input allows. Keys and
values grow with it. Where two tokens are within MARGIN of each other either may be right:
such prompts are left out, and few.
"""

import os
import sys
import tempfile

import numpy as np
import onnx
import onnxruntime
from onnx import TensorProto, helper

from harness import Tally, first_line, run_tool
from models import graphs

onnxruntime.set_default_logger_severity(4)
LENGTHS = (1, 3, 8, 17, 32)  # of prompts
MOST = 48  # tokens that may follow
END = 0  # the token
MARGIN = 1e-4
LEFT_OUT = 0.05  # of the prompts, at most
INTEGER, FLOAT, BOOLEAN = TensorProto.INT64, TensorProto.FLOAT, TensorProto.BOOL


class Decoder(graphs.Graph):
    """Of two layers; the same weights read a prompt and, in a loop, one token more."""

    width, heads, vocabulary, layers = 32, 2, 96, 2

    def __init__(self):
        super().__init__(has_weights=True)
        self.count, self.shared = 0, {}

    def node(self, kind, *inputs, outputs=1, **attributes):
        names = [f"{kind}{self.count}_{i}" for i in range(outputs)]
        self.count += 1
        self.nodes.append(helper.make_node(kind, inputs, names, **attributes))
        return names[0] if outputs == 1 else names

    def table(self, name, *shape):
        """A weight, made when it is first read."""
        if name not in self.shared:
            self.shared[name] = self.weight(*shape)
        return self.shared[name]

    def integers(self, *values):
        return self.constant(list(values), np.int64)

    def project(self, x, name, columns, rows=None):
        return self.node("MatMul", x, self.table(name, rows or self.width, columns))

    def norm(self, x, name):
        one = self.shared.setdefault("ones", self.constant(np.ones(self.width)))
        return self.node("LayerNormalization", x, one, self.table(name, self.width))

    def split(self, x):
        shape = self.integers(1, -1, self.heads, self.width // self.heads)
        return self.node("Transpose", self.node("Reshape", x, shape), perm=[0, 2, 1, 3])

    def layer(self, x, number, past, mask):
        """The result, and keys and values with those of the past before them."""
        normed = self.norm(x, f"norm{number}")
        query, *own = (
            self.split(self.project(normed, f"{part}{number}", self.width))
            for part in ("query", "key", "value")
        )
        if past:
            own = [self.node("Concat", a, b, axis=2) for a, b in zip(past, own)]
        turned = self.node("Transpose", own[0], perm=[0, 1, 3, 2])
        scores = self.node("MatMul", query, turned)
        if mask:
            scores = self.node("Add", scores, mask)
        mixed = self.node("MatMul", self.node("Softmax", scores, axis=-1), own[1])
        mixed = self.node("Transpose", mixed, perm=[0, 2, 1, 3])
        mixed = self.node("Reshape", mixed, self.integers(1, -1, self.width))
        x = self.node("Add", x, self.project(mixed, f"out{number}", self.width))
        inner = self.project(self.norm(x, f"inner{number}"), f"up{number}", 2 * self.width)
        inner = self.node("Relu", inner)
        down = self.project(inner, f"down{number}", self.width, rows=2 * self.width)
        return self.node("Add", x, down), own

    def read(self, tokens, places, pasts, mask):
        """The next token, how much it was better than another, keys and values."""
        words = self.table("words", self.vocabulary, self.width)
        positions = self.table("positions", LENGTHS[-1] + MOST, self.width)
        words = self.node("Gather", words, tokens)
        places = self.node("Gather", positions, places)
        x = self.node("Mul", self.node("Add", words, places), self.constant(6))
        caches = []
        for number in range(self.layers):
            past = pasts and pasts[2 * number : 2 * number + 2]
            x, own = self.layer(x, number, past, mask)
            caches += own
        last = self.node("Gather", self.norm(x, "last"), self.integers(-1), axis=1)
        logits = self.project(last, "logits", self.vocabulary)
        best, token = self.node("TopK", logits, self.integers(2), outputs=2)
        first, second = (
            self.node("Slice", y, self.integers(i), self.integers(i + 1), self.integers(2))
            for y, i in ((token, 0), (best, 1))
        )
        ahead = self.node("Slice", best, *(self.integers(i) for i in (0, 1, 2)))
        margin = self.node("Squeeze", self.node("Sub", ahead, second))
        return self.node("Reshape", first, self.integers(1, 1)), margin, caches

    def is_going(self, token):
        end = self.constant(END, np.int64)
        return self.node("Not", self.node("Equal", self.node("Squeeze", token), end))

    def body(self, carried):
        """One token more: the graph of an iteration."""
        outer, self.nodes = self.nodes, []
        names = ["iteration", "is_going", *(f"in_{name}" for name in carried)]
        text, token, *pasts = names[2:]
        # The token is at the end of the text.
        place = self.node("Sub", self.node("Shape", text, start=1), self.integers(1))
        place = self.node("Reshape", place, self.integers(1, 1))
        token, margin, caches = self.read(token, place, pasts, None)
        more, text = self.is_going(token), self.node("Concat", text, token, axis=1)
        results = [more, text, token, *caches, margin]
        kinds = [BOOLEAN, INTEGER, INTEGER, *[FLOAT] * len(caches), FLOAT]
        ranks = [0, 2, 2, *[4] * len(caches), 0]
        inputs = zip(names, (INTEGER, *kinds), (0, *ranks))
        infos = [
            [
                helper.make_tensor_value_info(name, kind, [None] * rank)
                for name, kind, rank in values
            ]
            for values in (inputs, zip(results, kinds, ranks))
        ]
        body, self.nodes = helper.make_graph(self.nodes, "body", *infos), outer
        return body

    def write(self, path):
        length = self.node("Shape", "prompt", start=1)
        scalar = self.node("Squeeze", length)
        zero, one = self.constant(0, np.int64), self.constant(1, np.int64)
        places = self.node("Range", zero, scalar, one)
        column = self.node("Unsqueeze", places, self.integers(1))
        is_seen = self.node("LessOrEqual", places, column)
        mask = self.node("Where", is_seen, self.constant(0), self.constant(-1e9))
        row = self.node("Unsqueeze", places, self.integers(0))
        token, margin, caches = self.read("prompt", row, None, mask)
        text = self.node("Concat", "prompt", token, axis=1)
        carried = ["text", "token", *(f"cache{i}" for i in range(len(caches)))]
        ends = self.node(
            "Loop", "most", self.is_going(token), text, token, *caches,
            outputs=len(carried) + 1, body=self.body(carried),
        )  # fmt: skip
        self.nodes.append(helper.make_node("Identity", [ends[0]], ["tokens"]))
        first = self.node("Unsqueeze", margin, self.integers(0))
        margins = helper.make_node("Concat", [first, ends[-1]], ["margins"], axis=0)
        self.nodes.append(margins)
        infos = [
            [helper.make_tensor_value_info(*info) for info in part]
            for part in (
                [("prompt", INTEGER, [1, "length"]), ("most", INTEGER, [])],
                [("tokens", INTEGER, [1, "all"]), ("margins", FLOAT, ["new"])],
            )
        ]
        graph = helper.make_graph(self.nodes, "decoder", *infos, self.initializers)
        opset = [helper.make_opsetid("", 18)]
        onnx.save(helper.make_model(graph, opset_imports=opset, ir_version=9), path)


def make_inputs(number):
    random = np.random.default_rng(number)
    length = LENGTHS[number % len(LENGTHS)]
    prompt = random.integers(1, Decoder.vocabulary, (1, length))
    return {"prompt": prompt, "most": np.array(random.integers(0, MOST))}


def run_package(package, inputs, work):
    flags = []
    for name, value in inputs.items():
        path = os.path.join(work, name + ".npy")
        np.save(path, value)
        flags += ["--input", f"{name}={path}"]
    run = run_tool("tcc-run", "run", package, *flags, "--output-dir", work)
    if run.code != 0:
        return None, first_line(run)
    return [np.load(os.path.join(work, f"output_{i}.npy")) for i in range(2)], ""


def compare(found, expected):
    if not np.array_equal(found[0], expected[0]):
        return f"tokens {found[0].ravel()[:60]}, expected {expected[0].ravel()[:60]}"
    off = np.abs(found[1] - expected[1]).max()
    return f"margins are {off:.1e} off" if off > MARGIN else ""


def check(tally, count, work):
    path, package = os.path.join(work, "m.onnx"), os.path.join(work, "m.tcc")
    Decoder().write(path)
    lengths = ["--dim", f"length=1..{LENGTHS[-1]}"]
    run = run_tool("tcc", path, "-o", package, "-q", *lengths)
    if not tally.check("the decoder compiles", run.code == 0, first_line(run)):
        return
    session, left_out, news, ended = onnxruntime.InferenceSession(path), 0, set(), 0
    for number in range(count):
        inputs = make_inputs(number)
        expected = session.run(None, inputs)
        if expected[1].min() < MARGIN:
            left_out += 1
            continue
        new = expected[0].size - inputs["prompt"].size
        news.add(new)
        ended += int(expected[0][0, -1] == END)
        found, problem = run_package(package, inputs, work)
        problem = problem or compare(found, expected)
        tally.check(f"prompt {number}", not problem, problem)
    title = f"{min(news)} to {max(news)} new tokens, {ended} ended, {left_out} left out"
    print(f"{title}, compiled in {run.seconds:.1f} s", flush=True)
    tally.check("lengths vary", len(news) > 5 and 0 < ended < count, title)
    tally.check("few are left out", left_out <= LEFT_OUT * count, title)


def main():
    tally = Tally()
    with tempfile.TemporaryDirectory() as work:
        check(tally, 200 if "--long" in sys.argv else 20, work)
    tally.close()


if __name__ == "__main__":
    main()
