"""The table of what ONNX's backend cases give, by family of ops."""

import collections
import re

from node_cases.dump import MAX_OPSET
from operators import read_families

OUTCOMES = ("pass", "fixed", "unsupported", "wrong", "crash")
HEADINGS = ("pass", "pass, inputs fixed", "exit 4", "wrong", "crash")
MISSING = "not in the set"

INTRODUCTION = f"""# ONNX backend cases

All node and simple cases of opset {MAX_OPSET} and below, compiled, run and compared by
`tests/node_cases/run.py --all --table docs/onnx-cases.md`, with nothing fixed: what
shapes, axes and the like decide where they are inputs of the graph, each run computes.
Where tcc cannot do that yet, the case is compiled with those inputs fixed
(`--input-value`). A case counts for its op; `_expanded` ones, which spell an op out
by its function, count for that op too. Of Bernoulli's random numbers the shape is
compared, and that they lie between 0 and 1.

Floats of 8 and 4 bits and integers of 4 and 2 may be inputs, outputs and what Cast,
CastLike, QuantizeLinear and DequantizeLinear read and give. A package takes and gives
a byte for each: a float's bits as u8, an integer's value as i8 or u8; files of
TensorProtos are read as they are. Any other operator refuses them by name.

Sequences of tensors are their elements, `NAME[0]`, `NAME[1]`... to a package, and
optionals what they hold: `--input-length` says how many there are of inputs, here those
of the case's data. Where only a run would know how long a sequence is, it is refused.

Models may be of operator sets 1 to 28. An operator is taken from the first version on
whose schema means what that of 7 does (`tests/frontends/onnx/first-versions.test`): those
that broadcast by attributes before are refused by name.
"""


def family_of(result, families, ops_by_name):
    base = result.case.name.split("_expanded")[0]
    ops = ops_by_name.get(base, result.case.ops)
    found = {families.get(op, MISSING) for op in ops}
    if MISSING in found:
        return MISSING
    return found.pop() if len(found) == 1 else "several families"


def reason(line):
    """A problem line without the names of file and node."""
    line = re.sub(r"^.*?model\.onnx: |^.*?error: ", "", line)
    operator = re.search(r"\(([\w.:]+)\): operator is not supported", line)
    if operator:
        return f"operator {operator.group(1)}"
    return re.sub(r"(node|input|output|value) ['\"][^'\"]*['\"]:? ?", "", line)[:100]


def count_reasons(results):
    """How many cases each missing op or feature keeps from passing."""
    found = collections.Counter()
    for result in results:
        if result.outcome == "unsupported":
            lines = filter(str.strip, result.detail.splitlines())
            found.update(set(map(reason, lines)))
    return found


def table(heading, rows):
    yield from ("", "| " + " | ".join(heading) + " |", "|---" * len(heading) + "|")
    for row in rows:
        cells = [str(cell).replace("|", "\\|") for cell in row]
        yield "| " + " | ".join(cells) + " |"


def write_table(results, path):
    families = read_families()
    ops_by_name = {result.case.name: result.case.ops for result in results}
    counts = collections.defaultdict(collections.Counter)
    for result in results:
        counts[family_of(result, families, ops_by_name)][result.outcome] += 1
    counts["all"] = sum(counts.values(), collections.Counter())
    rows = [
        [family, *(counts[family][outcome] for outcome in OUTCOMES)]
        for family in sorted(counts, key=lambda name: (name.islower(), name))
    ]
    missing = sorted(count_reasons(results).items(), key=lambda r: (-r[1], r[0]))
    operators = [
        f"{text.split()[1]} {number}"
        for text, number in missing
        if text.startswith("operator ")
    ]
    features = [row for row in missing if not row[0].startswith("operator ")]
    with open(path, "w") as stream:
        stream.write(INTRODUCTION)
        stream.write("\n".join(table(("family", *HEADINGS), rows)) + "\n\n")
        stream.write("Operators that are missing, with their cases: ")
        stream.write(", ".join(operators) + ".\n\nWhat else the refused cases miss:\n")
        stream.write("\n".join(table(("missing", "cases"), features)) + "\n")
