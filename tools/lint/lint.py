#!/usr/bin/env python3
"""Keeps the budgets of the house.

  lint.py [FILE...]    all tracked files, or those named (as pre-commit does)

Prints 'file:line: what was found, what was expected' per finding and closes
with the number of rules that passed and failed.
"""

import ast
import os
import re
import subprocess
import sys

MAX_FILE, P95_FILE = 600, 400
MAX_FUNCTION, P95_FUNCTION = 80, 45
MAX_LIT = 120
MAX_BYTES = 64 << 10

CXX = (".cpp", ".h", ".hpp", ".c")
CODE = CXX + (".td", ".py", ".mlir", ".test", ".cmake", ".fbs", ".sh")
FOLDERS = r"(compiler|dialects|frontends|runtime|tools|tests|examples)/"


class File:
    """A tracked file: its path from the root and its lines, none of a binary."""

    def __init__(self, path, text, size=0):
        self.path = path
        self.size = size
        self.text = text
        self.lines = text.splitlines()
        self.is_cxx = path.endswith(CXX)
        self.is_code = path.endswith(CODE) or text.startswith("#!")
        self.is_lit = path.startswith("tests/") and path.endswith((".mlir", ".test"))


def percentile95(lengths):
    """The smallest length that 95 % of the lengths do not exceed."""
    ordered = sorted(lengths)
    return ordered[max(0, -(-len(ordered) * 95 // 100) - 1)] if ordered else 0


# Statements and declarations whose brace does not open a function.
NOT_A_FUNCTION = re.compile(
    r"\s*((if|for|while|switch|else|do|return|namespace|class|struct|enum|union"
    r"|extern|case|default|using)\b|#|//|\}|\[)"
)


def cxx_functions(lines):
    """Yields (first line, length) of each outermost function definition.

    Relies on the layout that clang-format gives: a body closes with '}' at
    the indentation of its header, which ends in ') {' or ') const {' etc.
    """
    index = 0
    while index < len(lines):
        start = function_header(lines, index)
        if start is None:
            index += 1
            continue
        indent = re.match(r"\s*", lines[start]).group()
        close = re.compile(re.escape(indent) + r"\}")
        end = next(
            (k for k in range(index + 1, len(lines)) if close.match(lines[k])), None
        )
        if end is None:
            return
        yield start, end - start + 1
        index = end + 1


def function_header(lines, last):
    """The first line of the function header that ends at `last`, or None."""
    if not re.search(r"\{$", lines[last]) or " = " in lines[last].split("(")[0]:
        return None
    start, depth, has_list = last, 0, False
    while True:
        line = re.sub(r"//.*", "", lines[start])
        depth += line.count(")") - line.count("(")
        has_list = has_list or "(" in line
        # Member initialisers and trailing return types continue a header.
        continued = re.match(r"\s*(:|->)", line) or (
            start > 0 and lines[start - 1].endswith(",")
        )
        if depth <= 0 and not continued:
            break
        start -= 1
        if start < 0 or last - start > 20:
            return None
    if not has_list or NOT_A_FUNCTION.match(lines[start]):
        return None
    return start


def python_functions(text):
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield node.lineno - 1, node.end_lineno - node.lineno + 1


def functions(file):
    if file.is_cxx:
        return cxx_functions(file.lines)
    if file.path.endswith(".py"):
        return python_functions(file.text)
    return ()


# Rules: each takes all files and yields (path, line or 0, message).


def check_file_length(files):
    code = [f for f in files if f.is_code]
    for f in code:
        if len(f.lines) > MAX_FILE:
            yield f.path, 0, f"{len(f.lines)} lines, at most {MAX_FILE}"
    p95 = percentile95([len(f.lines) for f in code])
    if p95 > P95_FILE:
        yield ".", 0, f"file length p95 is {p95}, at most {P95_FILE}"


def check_size(files):
    for f in files:
        if f.size > MAX_BYTES:
            yield f.path, 0, f"{f.size} bytes, at most {MAX_BYTES}"


def check_function_length(files):
    found = [(f, start, n) for f in files for start, n in functions(f)]
    for f, start, n in found:
        if n > MAX_FUNCTION:
            yield f.path, start + 1, f"function of {n} lines, at most {MAX_FUNCTION}"
    p95 = percentile95([n for _, _, n in found])
    if p95 > P95_FUNCTION:
        yield ".", 0, f"function length p95 is {p95}, at most {P95_FUNCTION}"


def check_lit_length(files):
    for f in files:
        if f.is_lit and len(f.lines) > MAX_LIT:
            yield f.path, 0, f"lit file of {len(f.lines)} lines, at most {MAX_LIT}"


# Written so that this file does not match itself.
FORBIDDEN = [
    (r"(?<![\w.$}/])/(work|root|home/\w+|tmp/\w+)/", "path of one machine"),
    (r"\b(TODO|FIXME|XXX)\b(?!\(#\d+\))", "TODO without an issue number, TODO(#N)"),
    (r"(pypi\.org|pythonhosted|deb\.debian)", "host of a package registry"),
    (r"[ \t]+$", "space at the end of the line"),
]


def check_words(files):
    for f in files:
        if f.path.startswith(("tools/lint/", "tests/tools/lint/")):
            continue
        for number, line in enumerate(f.lines, 1):
            for pattern, name in FORBIDDEN:
                if re.search(pattern, line):
                    yield f.path, number, name


def check_headers(files):
    for f in files:
        if not f.path.endswith((".h", ".hpp")):
            continue
        if not re.search(r"^#ifndef (\w+)\n#define \1$", f.text, re.MULTILINE):
            yield f.path, 1, "no include guard"
        for number, line in enumerate(f.lines, 1):
            if line.startswith("using namespace"):
                yield f.path, number, "using namespace in a header"


def check_comments(files):
    """A comment names what it is about."""
    begins = re.compile(r"^\s*(///<?|//) ?(Of|Those|Likewise)\b")
    for f in files:
        if not f.is_cxx or f.path.startswith("tests/"):
            continue
        for number, line in enumerate(f.lines, 1):
            goes_on = number > 1 and f.lines[number - 2].strip().startswith("//")
            if begins.match(line) and not goes_on:
                yield f.path, number, "the comment names no noun"


# What the compiler's folders include of the runtime, beside three headers for which
# README.md has the reasons.
COMPILER = ("compiler/", "dialects/", "frontends/")
SHARED = ("runtime/base/", "runtime/package/")
SHARED_HEADERS = {
    "runtime/data/ReadPlan.h",
    "runtime/data/ZipEntries.h",
    "runtime/executor/Prepare.h",
    "runtime/devices/emulated/EmulatedKernel.h",
}


def includes(file):
    """Yields (line, path as it is written) of the includes in quotes."""
    for number, line in enumerate(file.lines, 1):
        match = file.is_cxx and re.match(r'#include "([^"]+)"', line)
        if match:
            yield number, match[1]


def check_wall(files):
    for f in files:
        for number, path in includes(f) if f.path.startswith(COMPILER) else ():
            if not path.startswith("runtime/"):
                continue
            if not path.startswith(SHARED) and path not in SHARED_HEADERS:
                yield f.path, number, f"{path}: the compiler knows packages, not what runs them"


def layer(path):
    """The folder that includes are ordered by: of the runtime one of its own."""
    parts = path.split("/")
    return "/".join(parts[: 2 if parts[0] == "runtime" else 1])


def folder(path):
    """The folder of a file; a dialect's ops and interfaces are one header, and count as
    the dialect's."""
    return re.sub(r"/(ops|interfaces)$", "", path.rsplit("/", 1)[0])


def reachable(edges, start):
    found, rest = set(), [start]
    while rest:
        for next_layer in edges.get(rest.pop(), ()):
            if next_layer not in found:
                found.add(next_layer)
                rest.append(next_layer)
    return found


def find_cycles(code, public, unit):
    """Includes from one unit to another that includes it, over others or directly."""
    found, edges = [], {}
    for f in code:
        for number, path in includes(f):
            source, target = unit(f.path), unit(public.get(path, path))
            if "/" in path and source != target:
                found.append((f.path, number, source, target))
                edges.setdefault(source, set()).add(target)
    for path, number, source, target in found:
        if source in reachable(edges, target):
            yield path, number, f"{source} includes {target}, which includes it"


def check_layers(files):
    """No two layers include each other, and no two folders of the compiler."""
    code = [f for f in files if f.is_cxx and f.path.startswith((*COMPILER, "runtime/", "tools/"))]
    public = {f.path.split("/include/")[1]: f.path for f in code if "/include/" in f.path}
    yield from find_cycles(code, public, layer)
    inner = [f for f in code if f.path.startswith(("compiler/", "dialects/"))]
    yield from find_cycles(inner, public, folder)


def check_op_lists(files):
    """Three of our ops in an isa<> are a missing interface."""
    op = r"((graph|exec)::)?\w+Op"
    listed = re.compile(rf"\bisa< *{op}, *{op}, *{op}")
    for f in files:
        if not f.is_cxx or not f.path.startswith(("compiler/", "dialects/")):
            continue
        for match in listed.finditer(re.sub(r"\s+", " ", f.text)):
            yield f.path, 0, f"{match.group()}>: an interface or trait says it once"


# Who may know which targets there are.
# The last one is the contract with plugins, whose names of targets others take.
TARGETS = ("compiler/target/", "compiler/codegen/cuda/", "compiler/codegen/Targets.cpp",
           "frontends/include/tcc/op.h")  # fmt: skip


def check_targets(files):
    """Passes ask the target what it can, never which one it is or what it costs."""
    named = re.compile(r'\bcuda::|"cuda"|codegen/cuda/')
    host = re.compile(r'"cpu"|"emulated"')
    inner = ("compiler/passes/", "compiler/lowering/", "dialects/")
    priced = re.compile(r"(PerMicrosecond|launchMicroseconds|packingFactor)\s*([=!]=|[<>]=?\s*0\b)")
    for f in files:
        if not f.is_cxx or not f.path.startswith(("compiler/", "dialects/", "frontends/")):
            continue
        for number, line in enumerate(f.lines, 1):
            is_named = named.search(line) or (f.path.startswith(inner) and host.search(line))
            if is_named and not f.path.startswith(TARGETS):
                yield f.path, number, "names a target: ask Target (compiler/target)"
            if priced.search(line):
                yield f.path, number, "what a target is follows from no price"


# Who keeps the log of decisions, and who writes it out.
LOG_READERS = (
    "compiler/decisions/",
    "compiler/pipeline/Compile.cpp",
    "compiler/pipeline/Provenance.",
    "tests/",
    "tools/lint/",
)


def check_log_readers(files):
    """Nothing is decided by what the log of decisions says."""
    read = re.compile(r"\b(getDecisions|describeDecisions)\b|graph\.decisions\b")
    for f in files:
        if not f.is_cxx or f.path.startswith(LOG_READERS):
            continue
        for number, line in enumerate(f.lines, 1):
            if read.search(line):
                yield f.path, number, "reads the log: a result carries what is needed"


def check_command_switches(files):
    """A switch over commands lists all kinds, so that the compiler misses one."""
    for f in files:
        if not f.is_cxx:
            continue
        for start, line in enumerate(f.lines):
            opened = re.match(r"(\s*)switch \(", line)
            if not opened:
                continue
            indent = opened[1]
            rest = f.lines[start + 1 :]
            length = next((n for n, l in enumerate(rest) if l == indent + "}"), len(rest))
            own = [l for l in rest[:length] if re.match(indent + r"(case|default)\b", l)]
            if any("Action::" in l for l in own) and f"{indent}default:" in own:
                yield f.path, start + 1, "switch over commands with a default"


def kebab(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", name).lower()


NAMES = "runtime/package/Names.fbs"
# Where names are made, and where a literal is another thing's name: tables of a
# recipe, subcommands.
OTHER_NAMES = (
    "runtime/package/Names.h",
    "compiler/train/CheckRecipe.cpp",
    "compiler/train/KeyTable.cpp",
    "compiler/train/ReadRecipe.cpp",
    "tools/tcc-run/main.cpp",
)


def schema_names(text, enum):
    """The enumerators of an enum of a schema."""
    body = re.search(rf"enum {enum} [^{{]*\{{(.*?)\}}", text, re.DOTALL)
    names = re.sub(r"//.*", "", body[1]).replace("\n", " ").split(",") if body else []
    return [name.split("=")[0].strip() for name in names]


def check_names(files):
    """Names of entry points and of variables that hold fields of the step come
    from the schema."""
    schema = next((f.text for f in files if f.path == NAMES), "")
    names = schema_names(schema, "EntryKind")
    code = re.compile(r"(compiler|dialects|frontends|runtime|tools)/.*(\.td|\.h|\.cpp)$")
    for f in files:
        if not code.match(f.path) or f.path in OTHER_NAMES:
            continue
        for number, line in enumerate(f.lines, 1):
            for literal in re.findall(r'"([^"]*)"', re.sub(r"//.*", "", line)):
                if literal in names or literal.startswith("step/"):
                    yield f.path, number, f'"{literal}", expected the name from {NAMES}'


def check_mirrored_tests(files):
    """Every pass, op family and device has its test."""
    paths = {f.path for f in files}
    stems = {os.path.splitext(p)[0] for p in paths if p.startswith("tests/")}

    def is_tested(folder, name):
        """By folder/**/name or a part of it, folder/**/name-part."""
        names = (os.path.basename(s) for s in stems if s.startswith(folder))
        return any(n == name or n.startswith(name + "-") for n in names)

    for f in files:
        if re.match(r"compiler/.*Passes\.td$", f.path):
            for name in re.findall(r'Pass<\s*"tcc-([\w-]+)"', f.text):
                if not is_tested("tests/compiler/", name):
                    yield f.path, 0, f"pass {name} has no tests/compiler/**/{name}.mlir"
        family = re.match(r"dialects/(\w+)/ops/(\w+)\.td$", f.path)
        if family:
            folder, name = f"tests/dialects/{family[1]}/", kebab(family[2])
            if not is_tested(folder, name):
                yield f.path, 0, f"op family has no {folder}**/{name}.mlir"
    devices = {p.split("/")[2] for p in paths if re.match(r"runtime/devices/\w+/", p)}
    for device in sorted(devices):
        if not any(p.startswith(f"tests/runtime/devices/{device}/") for p in paths):
            yield f"runtime/devices/{device}", 0, "device has no mirrored tests"


def check_format(files):
    """Wants exactly what clang-format-19 writes."""
    names = [f.path for f in files if f.is_cxx]
    if not names:
        return
    run = subprocess.run(
        ["clang-format-19", "--dry-run", "--ferror-limit=1", *names],
        stderr=subprocess.PIPE,
        text=True,
    )
    for path in sorted(set(re.findall(r"^(\S+?):\d+:\d+: warning", run.stderr, re.M))):
        yield path, 0, "not formatted (clang-format-19 -i)"
    if run.returncode:
        yield ".", 0, f"clang-format-19 failed: {run.stderr[:200]}"


RULES = [
    check_file_length,
    check_size,
    check_function_length,
    check_lit_length,
    check_words,
    check_headers,
    check_wall,
    check_layers,
    check_op_lists,
    check_targets,
    check_comments,
    check_log_readers,
    check_command_switches,
    check_names,
    check_mirrored_tests,
    check_format,
]
# These look at the whole tree, so they say nothing about a few named files.
TREE_RULES = {check_layers, check_mirrored_tests, check_names}


def read_files(paths):
    files = []
    for path in paths:
        try:
            with open(path, "rb") as stream:
                data = stream.read()
        except FileNotFoundError:
            continue  # deleted but not yet committed
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = ""
        files.append(File(path, text, len(data)))
    return files


def main(arguments):
    os.chdir(os.path.join(os.path.dirname(os.path.abspath(__file__)), "../.."))
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    paths = arguments or subprocess.check_output(listed, text=True).split()
    files = read_files(paths)
    failed, rules = 0, [r for r in RULES if not arguments or r not in TREE_RULES]
    for rule in rules:
        findings = list(rule(files))
        failed += bool(findings)
        for path, line, message in findings:
            print(f"{path}:{line}: {message}" if line else f"{path}: {message}")
    print(f"{len(rules) - failed} passed, {failed} failed")
    return failed > 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
