"""What is computed again, beside a proven optimum: optimum.py [COUNT]

Programs of 20 to 40 launches, products of matrices of several sizes with long gaps
between their uses, as training steps have, are fitted into half of what they could save.
OR-Tools' CP-SAT finds the least time for the same budget in a model of its own (prove.py).
It shares nothing with the compiler but the predicted time of each launch. The compiler may
do better: it also runs launches late, when their results are wanted first.
"""

import json
import os
import random
import re
import struct
import subprocess
import sys
import tempfile

from harness import ROOT, Tally, run_tool

COUNT, LARGEST_GAP = 48, 0.05
SOLVER = os.path.join(ROOT, ".venv-solver/bin/python")
PROVE = os.path.join(ROOT, "tests/memory/prove.py")
ROWS = 64
ALIGNMENT = 64
NANO = 1000  # nanoseconds a microsecond


class Graph:
    """Launches: the shape of each result, what it reads, and whether it is returned."""

    def __init__(self, seed, count):
        self.random = random.Random(seed)
        self.shapes, self.reads, self.outputs = [], [], []
        forward = count * 2 // 5
        gradient = self.build_forward(forward)
        self.build_backward(forward, gradient, count)

    def add(self, shape, reads, is_output=False):
        self.shapes.append(shape)
        self.reads.append(reads)
        self.outputs.append(is_output)
        return len(self.shapes) - 1

    def width(self):
        return self.random.choice([32, 64, 128, 192, 256, 384])

    def build_forward(self, count):
        """Each reads the one before; some, two products late, an earlier one, too."""
        last = self.add([ROWS, self.width()], [None])
        while len(self.shapes) < count - 1:
            other = self.random.randrange(last + 1)
            is_batch = self.shapes[other][0] == ROWS
            if self.random.random() < 0.25 and other != last and is_batch:
                left, right = self.shapes[last], self.shapes[other]
                mix = self.add([left[1], right[1]], [last, other])
                last = self.add([ROWS, right[1]], [last, mix])
            else:
                last = self.add([ROWS, self.width()], [last])
        return self.add([ROWS, self.width()], [last])

    def build_backward(self, forward, gradient, count):
        """Products with what came forward, the latest first."""
        for i in reversed(range(forward - 1)):
            if self.shapes[i][0] != ROWS:
                continue
            if len(self.shapes) >= count - 1:
                break
            self.add([self.shapes[i][1], self.shapes[gradient][1]], [i, gradient], True)
            gradient = self.add([ROWS, self.shapes[i][1]], [gradient])
        self.outputs[gradient] = True

    def bytes(self, i):
        rows, columns = self.shapes[i]
        return 0 if self.outputs[i] else -(-4 * rows * columns // ALIGNMENT) * ALIGNMENT


def operands(graph, i):
    """The shapes of both operands, and what reads them: a value, the input or a weight."""
    rows, columns = graph.shapes[i]
    first, *second = graph.reads[i]
    if not second:
        inner = ROWS if first is None else graph.shapes[first][1]
        return ([rows, inner], "x" if first is None else first), ([inner, columns], "w")
    left, right = graph.shapes[first], graph.shapes[second[0]]
    return (left, first), (right, second[0])


def print_kernel(graph, i):
    (left, _), (right, _) = operands(graph, i)
    result = graph.shapes[i]
    type_of = lambda shape: f"tensor<{shape[0]}x{shape[1]}xf32>"
    types = f"({type_of(left)}, {type_of(right)}) -> {type_of(result)}"
    # The first of two values with one number of rows is transposed.
    flag = " {transpose_lhs}" if left[1] != right[0] else ""
    return f"""exec.kernel @k{i} {{
^bb0(%x: {type_of(left)}, %y: {type_of(right)}):
  %0 = graph.fused <contraction> (%x, %y) : {types} {{
  ^bb0(%a: {type_of(left)}, %b: {type_of(right)}):
    %1 = graph.matmul %a, %b{flag} : {types}
    graph.yield %1 : {type_of(result)}
  }}
}}"""


def print_program(graph):
    inputs, lines = ['#exec.tensor<"x", tensor<1xf32>>'], []
    outputs = []

    def declare(name, storage, size):
        lines.append(
            f"  %{name} = exec.buffer {storage} bytes affine_map<() -> ({size})> bound {size}"
            " : !exec.buffer<host>"
        )

    declare("x", "input 0", ROWS * ROWS * 4)
    for i, (rows, columns) in enumerate(graph.shapes):
        storage = f"output {len(outputs)}" if graph.outputs[i] else "scratch"
        if graph.outputs[i]:
            outputs.append(f'#exec.tensor<"y{i}", tensor<{rows}x{columns}xf32>>')
        declare(f"v{i}", storage, 4 * rows * columns)
    for i in range(len(graph.shapes)):
        names = []
        for shape, source in operands(graph, i):
            if source == "w":
                inputs.append(f'#exec.tensor<"w{i}", tensor<{shape[0]}x{shape[1]}xf32>>')
                declare(f"w{i}", f"input {len(inputs) - 1}", 4 * shape[0] * shape[1])
            names.append({"w": f"%w{i}", "x": "%x"}.get(source, f"%v{source}"))
        buffers = ", ".join(["!exec.buffer<host>"] * 2)
        lines.append(
            f'  exec.launch @k{i} ins({", ".join(names)}) outs(%v{i}) node "k{i}"'
            f" : ({buffers}) -> !exec.buffer<host>"
        )
    kernels = [print_kernel(graph, i) for i in range(len(graph.shapes))]
    entry = f"exec.entry @main inputs [{', '.join(inputs)}] outputs [{', '.join(outputs)}]"
    return "\n".join([*kernels, entry + " attributes {slots = 0 : i64} {", *lines, "}\n"])


def cost(graph, i):
    """Microseconds, by the rates that docs/memory.md gives."""
    (left, _), (right, _) = operands(graph, i)
    rows, columns = graph.shapes[i]
    inner = left[1] if left[1] == right[0] else left[0]
    moved = 4 * (left[0] * left[1] + right[0] * right[1] + rows * columns)
    return 0.5 + max(moved / 30e3, 2 * rows * columns * inner / 200e3)


def read_float(text):
    """As MLIR prints it: in hexadecimal where six digits do not say it all."""
    if text.startswith("0x"):
        return struct.unpack(">d", bytes.fromhex(text[2:]))[0]
    return float(text)


def fit(path, budget):
    """Of the compiler: the exit code and its decisions as (kind, numbers)."""
    run = run_tool("tcc-opt", path, f"--tcc-recompute-values=budget={budget}")
    row = r'\{decision = "(\w+)", (?:entry = "[^"]*", )?node = "[^"]*", numbers = \{(.*?)\}'
    rows = re.findall(row, run.out)
    decisions = []
    for kind, text in rows:
        numbers = re.findall(r"(\w+) = ([-+.\w]+) : f64", text)
        decisions.append((kind, {name: read_float(value) for name, value in numbers}))
    return run, decisions


def reorder(graph, path):
    """Makes the order of the launches that which the compiler schedules."""
    run = run_tool("tcc-opt", path, "--tcc-schedule-commands")
    order = [int(i) for i in re.findall(r"exec\.launch @k(\d+) ", run.out)]
    place = {old: new for new, old in enumerate(order)}
    assert sorted(order) == list(range(len(graph.shapes)))
    graph.reads = [
        [None if j is None else place[j] for j in graph.reads[old]] for old in order
    ]
    graph.shapes = [graph.shapes[old] for old in order]
    graph.outputs = [graph.outputs[old] for old in order]


def solve(graph, costs, budget):
    """The least nanoseconds that were found, what they are at least, and whether the
    two are proven to be one."""
    sizes = [graph.bytes(i) // ALIGNMENT for i in range(len(costs))]
    reads = [[j for j in row if j is not None] for row in graph.reads]
    problem = {"costs": costs, "sizes": sizes, "reads": reads, "budget": budget // ALIGNMENT}
    run = subprocess.run(
        [SOLVER, PROVE], input=json.dumps(problem), capture_output=True, text=True, check=True
    )
    answer = json.loads(run.stdout)
    return answer["best"], answer["bound"], answer["is_proven"]


def check(tally, work, seed):
    """The gap to what was proven, or None."""
    graph = Graph(seed, 20 + seed % 21)
    name, count = f"graph {seed}", len(graph.shapes)
    path = os.path.join(work, f"{seed}.mlir")
    with open(path, "w") as stream:
        stream.write(print_program(graph))
    reorder(graph, path)
    with open(path, "w") as stream:
        stream.write(print_program(graph))
    run, decisions = fit(path, 1 << 40)
    if not tally.check(f"{name}: fits", run.code == 0, run.err[:300]):
        return None
    points = [numbers for kind, numbers in decisions if kind == "possible"]
    costs = [cost(graph, i) for i in range(count)]
    whole = [numbers["microseconds"] for kind, numbers in decisions if kind == "fitted"][0]
    tally.check(f"{name}: costs", abs(sum(costs) - whole) < 1e-6 * whole, f"{sum(costs)}, {whole}")
    peaks = [point["bytes"] for point in points]
    budget = int(min(peaks) + max(peaks)) // 2
    run, decisions = fit(path, budget)
    if not tally.check(f"{name}: half fits", run.code == 0, run.err[:300]):
        return None
    taken = [numbers["microseconds"] for kind, numbers in decisions if kind == "fitted"][0]
    nanoseconds = [round(each * NANO) for each in costs]
    best, bound, is_proven = solve(graph, nanoseconds, budget)
    gap = taken * NANO / bound - 1
    print(
        f"{name}: {count} launches, {int(max(peaks))} -> {budget} bytes, {whole:.1f} us ->"
        f" {taken:.1f} us, optimum {(best or 0) / NANO:.1f} us,"
        f" {'proven' if is_proven else 'not proven'}: gap {gap:.2%}",
        flush=True,
    )
    tally.check(f"{name}: optimum", gap <= LARGEST_GAP, f"{gap:.2%}")
    return gap if is_proven else None


def main():
    tally = Tally()
    if not os.path.exists(SOLVER):
        print("not available: ortools (tools/setup --solver)")
        tally.skipped += 1
        tally.close()
    count = int(sys.argv[1]) if len(sys.argv) > 1 else COUNT
    with tempfile.TemporaryDirectory() as work:
        gaps = [check(tally, work, seed) for seed in range(count)]
    proven = sorted(gap for gap in gaps if gap is not None)
    tally.check("proven optima", len(proven) == count, str(len(proven)))
    if proven:
        middle = proven[len(proven) // 2]
        print(f"gaps of {len(proven)}: median {middle:.2%}, largest {proven[-1]:.2%}")
    tally.close()


if __name__ == "__main__":
    main()
