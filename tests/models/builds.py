#!/usr/bin/env python3
"""Whether two builds make the same programs of all that the suites compile.

  builds.py BEFORE AFTER [CTEST OPTION...]     folders of two checkouts

runs the suites of AFTER that `ctest` selects with the options (those without the
label `long` unless told otherwise) with tools of its own in the place of tcc and
tcc-run. These run both builds' tool, with the same arguments, and compare: exit
codes; of packages the sections of code and weights byte by byte and of the program
kernels, launches with all their sizes, buffers with their offsets, arenas; of programs
that train the number of launches and the arenas, which may be less than before; of runs
the outputs, what is exported and the tensors of checkpoints, bit by bit. Text that the
tools print, options, decisions and parts of the program that one schema alone has are
not compared. Each build's tool reads what it wrote itself.
Prints what differs, and closes with the number of comparisons.
"""

import filecmp
import hashlib
import json
import os
import re
import struct
import subprocess
import sys
import tempfile

MAGIC = b"TCCPKG\r\n"
HEADER, SECTION = struct.Struct("<8sHHIQ16s24s"), struct.Struct("<IIQQ16s")
PROGRAM, CODE, WEIGHTS = 1, 2, 3

# What makes a program run as it does; the rest describes it.
PROGRAM_KEYS = ("symbols", "weights", "model_tensors", "kernels", "variants", "entries")
ENTRY_KEYS = (
    "buffers",
    "body",
    "states",
    "slot_count",
    "event_count",
    "lane_count",
    "scratch_bytes",
    "worker_scratch_bytes",
    "workspace_bytes",
)
VARIABLE_KEYS = ("dtype", "shape")


def read_sections(path):
    """The sections of a package as (kind, bytes); None if it is another file."""
    with open(path, "rb") as stream:
        data = stream.read()
    if not data.startswith(MAGIC):
        return None
    count = HEADER.unpack_from(data)[3]
    table = (SECTION.unpack_from(data, HEADER.size + i * SECTION.size) for i in range(count))
    return [(kind, data[offset : offset + size]) for kind, _, offset, size, _ in table]


def read_program(tree, sections):
    """The program as the schema of its build says it."""
    program = next(data for kind, data in sections if kind == PROGRAM)
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "program.bin"), "wb") as stream:
            stream.write(program)
        schema = os.path.join(tree, "runtime/package/Program.fbs")
        options = ["--json", "--strict-json", "--raw-binary", "--natural-utf8"]
        command = ["flatc", *options, "-o", folder, schema, "--", stream.name]
        subprocess.run(command, check=True, capture_output=True)
        with open(os.path.join(folder, "program.json")) as stream:
            # As JSON has no such numbers, each parser has names of its own.
            return json.loads(re.sub(r": (-?)inf\b", r": \1Infinity", stream.read()))


def digests(sections, kind):
    return [hashlib.sha256(data).hexdigest() for k, data in sections if k == kind]


def first_difference(before, after, path=""):
    """Where two values of JSON differ, or None."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in sorted(set(before) | set(after)):
            found = first_difference(before.get(key), after.get(key), f"{path}.{key}")
            if found:
                return found
        return None
    if isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for index, pair in enumerate(zip(before, after)):
            found = first_difference(*pair, f"{path}[{index}]")
            if found:
                return found
        return None
    if before == after:
        return None
    return f"{path}: {str(before)[:80]} became {str(after)[:80]}"


def pick(rows, keys):
    return [{key: row[key] for key in keys if key in row} for row in rows or []]


def essence(program):
    kept = {key: program.get(key) for key in PROGRAM_KEYS}
    kept["entries"] = pick(program["entries"], ENTRY_KEYS)
    kept["variables"] = pick(program.get("variables"), VARIABLE_KEYS)
    return kept


def count_launches(value):
    if isinstance(value, list):
        return sum(map(count_launches, value))
    if isinstance(value, dict):
        return (value.get("action_type") == "Launch") + sum(map(count_launches, value.values()))
    return 0


def compare_needs(before, after):
    """Yields the entries of a program that trains which need more than before: what a
    step counts is the build's own, and so is its code."""
    for old, new in zip(before["entries"], after["entries"], strict=True):
        name = new.get("kind", "main")
        launches, arenas = ([f(e) for e in (old, new)] for f in (
            lambda e: count_launches(e["body"]), lambda e: e.get("scratch_bytes", 0)))  # fmt: skip
        if launches[1] > launches[0]:
            yield f"{name}: {launches[0]} launches became {launches[1]}"
        if arenas[1] > arenas[0]:
            yield f"{name}: an arena of {arenas[0]} bytes became {arenas[1]}"


def compare_packages(trees, paths):
    """Yields what differs."""
    sections = [read_sections(path) for path in paths]
    if None in sections:
        if not filecmp.cmp(*paths, shallow=False):
            yield "the text differs"
        return
    programs = [read_program(t, s) for t, s in zip(trees, sections)]
    if programs[1].get("variables"):
        yield from compare_needs(*programs)
        return
    for kind, name in ((CODE, "code"), (WEIGHTS, "weights")):
        if len({tuple(digests(s, kind)) for s in sections}) > 1:
            yield f"{name} differs"
    if found := first_difference(*map(essence, programs)):
        yield f"program{found}"


# --- In the place of the tools -----------------------------------------------

# Options whose value is a file or folder that a tool writes. Logs have times, and are
# not compared.
WRITTEN = ("-o", "--output-dir", "--export", "--checkpoint-dir", "--log-dir")
COMPARED = ("-o", "--output-dir", "--export", "--checkpoint-dir")


def before_name(path):
    """Where the other build's file lies beside one."""
    return path + ".before"


def translate(path):
    """The same file of the other build, where it has one of its own."""
    head, tail = path, ""
    while head and head != os.path.dirname(head):
        if os.path.exists(before_name(head)):
            return before_name(head) + tail
        head = os.path.dirname(head)
        tail = path[len(head) :]
    return path


def translate_all(arguments):
    """The other tool's arguments: it writes to places of its own, and reads there."""
    names = [None, *arguments]
    other = []
    for name, argument in zip(names, arguments):
        key, equals, value = argument.partition("=")
        if name in WRITTEN and argument != "-":
            other.append(before_name(argument))
        elif key in WRITTEN and equals:
            other.append(f"{key}={before_name(value)}")
        elif key.startswith("--") and equals:
            other.append(f"{key}={translate(value)}")
        else:
            other.append(translate(argument))
    return other


def find_written(arguments):
    """(option, path) of what the tool writes and is compared."""
    pairs = [*zip(arguments, arguments[1:])]
    pairs += [tuple(a.split("=", 1)) for a in arguments if a.startswith("--") and "=" in a]
    return [(name, path) for name, path in pairs if name in COMPARED and path != "-"]


def note(row):
    with open(os.environ["TCC_BUILDS_LOG"], "a") as stream:
        stream.write(json.dumps(row) + "\n")


def compare_folders(folder):
    names = sorted(os.listdir(folder))
    if names != sorted(os.listdir(before_name(folder))):
        return ["other files"]
    pairs = ((os.path.join(f, n) for f in (folder, before_name(folder))) for n in names)
    return [n for n, pair in zip(names, pairs) if not filecmp.cmp(*pair, shallow=False)]


def read_tensors(path):
    """The bytes of each tensor of a safetensors file."""
    with open(path, "rb") as stream:
        data = stream.read()
    first = 8 + struct.unpack_from("<Q", data)[0]
    rows = json.loads(data[8:first])
    rows.pop("__metadata__", None)
    places = {name: row["data_offsets"] for name, row in rows.items()}
    return {name: data[first + a : first + b] for name, (a, b) in places.items()}


def compare_checkpoints(folder):
    """Yields the files of tensors with other bits; each build counts steps by variables
    of its own."""
    for place, _, names in os.walk(folder):
        for name in names:
            if not name.endswith(".safetensors"):
                continue
            path = os.path.join(place, name)
            other = before_name(folder) + path[len(folder) :]
            if not os.path.exists(other):
                yield f"{path} is new"
                continue
            before, after = read_tensors(other), read_tensors(path)
            names = {n for n in (*before, *after) if not n.startswith(("step/", "set/"))}
            differing = sorted(n for n in names if before.get(n) != after.get(n))
            if differing:
                yield f"{os.path.basename(place)}: {differing[0]} and {len(differing) - 1} more"


def compare_written(trees, option, path):
    """Yields what differs."""
    twins = [os.path.exists(p) for p in (before_name(path), path)]
    if twins[0] != twins[1]:
        yield f"{path} is there in one build alone"
    elif not twins[1]:
        return
    elif option == "--checkpoint-dir":
        yield from compare_checkpoints(path)
    elif os.path.isdir(path):
        yield from compare_folders(path)
    else:
        yield from compare_packages(trees, (before_name(path), path))


def run_tool(tree, tool, arguments, **options):
    command = [os.path.join(tree, "build/bin", tool), *arguments]
    return subprocess.run(command, **options).returncode


def stand_in(tool, arguments):
    """Runs both tools and compares; ends as the tool of AFTER does."""
    trees = [os.environ["TCC_BUILDS_BEFORE"], os.environ["TCC_BUILDS_AFTER"]]
    written = find_written(arguments)
    if written:
        quiet = {"capture_output": True, "stdin": subprocess.DEVNULL}
        ended = run_tool(trees[0], tool, translate_all(arguments), **quiet)
    code = run_tool(trees[1], tool, arguments)
    if written:
        found = [] if code == ended else [f"exit {ended} became {code}"]
        if code == 0 == ended:
            for option, path in written:
                found += compare_written(trees, option, path)
        note({"arguments": [tool, *arguments], "found": found})
    sys.exit(code if code >= 0 else 128 - code)


# --- All of it ----------------------------------------------------------------


def place_tools(after, folder):
    """Beside links to all else that the build has, as suites look for it."""
    build = os.path.join(after, "build")
    os.mkdir(folder)
    for name in os.listdir(build):
        if name != "bin":
            os.symlink(os.path.join(build, name), os.path.join(folder, name))
    tools = os.path.join(folder, "bin")
    os.mkdir(tools)
    for tool in os.listdir(os.path.join(build, "bin")):
        path = os.path.join(tools, tool)
        if tool not in ("tcc", "tcc-run"):
            os.symlink(os.path.join(build, "bin", tool), path)
            continue
        with open(path, "w") as stream:
            stream.write(f"#!/bin/sh\nexec {sys.executable} {os.path.abspath(__file__)} "
                         f'--as {tool} "$@"\n')  # fmt: skip
        os.chmod(path, 0o755)
    return tools


def run_suites(after, tools, options):
    """One after another: each script suite with `tools`."""
    listed = subprocess.run(
        ["ctest", "--test-dir", os.path.join(after, "build"), "--show-only=json-v1", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    for test in json.loads(listed.stdout)["tests"]:
        properties = {p["name"]: p["value"] for p in test["properties"]}
        variables = dict(v.split("=", 1) for v in properties.get("ENVIRONMENT", []))
        if "TCC_BIN" not in variables:
            continue
        ended = subprocess.run(
            test["command"],
            env=os.environ | variables | {"TCC_BIN": tools},
            cwd=properties.get("WORKING_DIRECTORY"),
            capture_output=True,
            text=True,
        )
        print(f"{test['name']}: {ended.stdout.strip().splitlines()[-1:]}", flush=True)


def main(before, after, *options):
    before, after = map(os.path.abspath, (before, after))
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(folder, "log")
        open(log, "w").close()
        os.environ |= {"TCC_BUILDS_LOG": log, "TCC_BUILDS_BEFORE": before,
                       "TCC_BUILDS_AFTER": after}  # fmt: skip
        tools = place_tools(after, os.path.join(folder, "build"))
        run_suites(after, tools, options or ("-LE", "long"))
        with open(log) as stream:
            rows = [json.loads(line) for line in stream]
    failed = [row for row in rows if row["found"]]
    for row in failed:
        print(f"FAIL {' '.join(row['arguments'])}: {'; '.join(row['found'])}")
    print(f"{len(rows) - len(failed)} passed, {len(failed)} failed")
    sys.exit(bool(failed) or not rows)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--as"]:
        stand_in(sys.argv[2], sys.argv[3:])
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
