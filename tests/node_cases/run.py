"""Compiles and runs ONNX's backend cases.

  run.py [--all] [--table FILE.md] [NAME...]

Without --all, the first case of each op. Each case passes, or tcc refuses it
with exit 4 and names what is missing; anything else fails. --table writes the
counts.
"""

import argparse
import collections
import concurrent.futures
import os
import re
import tempfile

from harness import Tally, first_line, run_tool
from models.cases import data_sets
from node_cases.dump import MAX_OPSET, dump

JOBS = 2
UNSUPPORTED = 4

# outcome: pass, unsupported, wrong (a result or exit code) or crash.
Result = collections.namedtuple("Result", "case outcome detail")


def outcome_of(run):
    if run.code is None or run.code < 0 or run.code == 70:
        return "crash"
    return "wrong"


def run_case(case, work):
    package = os.path.join(work, case.name + ".tcc")
    model = os.path.join(case.folder, "model.onnx")
    compiled = run_tool("tcc", model, "-o", package, "-q", timeout=60)
    if compiled.code == UNSUPPORTED and compiled.err.strip():
        return Result(case, "unsupported", compiled.err)
    if compiled.code != 0:
        return Result(case, outcome_of(compiled), "tcc " + first_line(compiled))
    for data in data_sets(case.folder):
        options = ["--inputs-dir", data, "--expect-dir", data]
        ran = run_tool("tcc-run", "run", package, *options, timeout=60)
        if ran.code != 0:
            return Result(case, outcome_of(ran), "tcc-run " + first_line(ran))
    os.remove(package)
    return Result(case, "pass", "")


def first_of_each_op(cases):
    """One plain case per op; `_expanded` ones repeat an op by its function."""
    chosen = {}
    for case in cases:
        if len(case.ops) == 1 and not case.name.endswith("_expanded"):
            chosen.setdefault(case.ops[0], case)
    return list(chosen.values())


def select(arguments):
    cases = dump()
    if arguments.names:
        return [case for case in cases if case.name in arguments.names]
    return cases if arguments.all else first_of_each_op(cases)


def reasons(results):
    """How many cases each missing op or feature keeps from passing."""
    found = collections.Counter()
    for result in results:
        if result.outcome == "unsupported":
            found.update(set(map(reason, problem_lines(result.detail))))
    return found


def problem_lines(text):
    return [line for line in text.splitlines() if line.strip()]


def reason(line):
    """A problem line without the names of file and node."""
    line = re.sub(r"^.*?error: ", "", line)
    return re.sub(r"(node|input|output|value) ['\"][^'\"]*['\"]:? ?", "", line)[:100]


def write_table(results, path):
    counts = collections.Counter(result.outcome for result in results)
    lines = [
        "# ONNX backend cases",
        "",
        f"All {len(results)} node and simple cases of opset {MAX_OPSET} and below,",
        "compiled and run by `tests/node_cases/run.py --all --table`.",
        "",
        "| outcome | cases |",
        "|---|---|",
    ]
    for outcome in ("pass", "unsupported", "wrong", "crash"):
        lines.append(f"| {outcome} | {counts[outcome]} |")
    lines += ["", "What the unsupported ones miss (exit 4):", ""]
    lines += ["| missing | cases |", "|---|---|"]
    for text, number in sorted(reasons(results).items(), key=lambda r: (-r[1], r[0])):
        lines.append(f"| {text.replace('|', chr(92) + '|')} | {number} |")
    with open(path, "w") as stream:
        stream.write("\n".join(lines) + "\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--table")
    parser.add_argument("names", nargs="*")
    arguments = parser.parse_args()
    selected, tally = select(arguments), Tally()
    with tempfile.TemporaryDirectory() as work:
        with concurrent.futures.ThreadPoolExecutor(JOBS) as pool:
            results = list(pool.map(lambda case: run_case(case, work), selected))
    for case, outcome, detail in results:
        if outcome == "unsupported":
            tally.skipped += 1
        else:
            tally.check(case.name, outcome == "pass", f"{outcome}: {detail}")
    if arguments.table:
        write_table(results, arguments.table)
    tally.close()


if __name__ == "__main__":
    main()
