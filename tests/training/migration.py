"""The tips of docs/from-pytorch.md, each shown by what the compiler or a run decides: migration.py [--long] [ROW...]

A row of the page ends in the name of its test, and each test has a row. What a row says that one gives
the tools, its test gives them; what it says of decisions, its test looks for. Flags and keys that the
page names are those that the tools have.
"""

import collections
import inspect
import os
import re
import sys
import tempfile

import harness
from training.tips import data, loop, ranks, speed
from training.tips.suite import Suite

PAGE = os.path.join(harness.ROOT, "docs/from-pytorch.md")
COMMANDS = ("run", "bench", "train", "eval", "export", "tune", "info", "checkpoints", "data")
KEY = re.compile(
    r"\b((?:loss|optimizer|schedule|precision|batch|params|batchnorm|memory|numerics|parallel|eval)"
    r"\.[a-z0-9_]+)\b(?!\()"
)
FLAG = re.compile(r"(?<![\w-])(--[a-z][a-z-]*)")
OTHERS = {"--no-python", "--logdir"}  # of torchrun, of tensorboard

Row = collections.namedtuple("Row", "tip who see test")


def read_text(name):
    with open(os.path.join(harness.ROOT, name), encoding="utf-8") as file:
        return file.read()


def list_spans(text):
    """What stands between backticks."""
    return re.findall(r"`([^`]*)`", text)


def list_rows(page):
    """Rows of four cells, of which the last is the name of a test."""
    cells = [line.strip("| \n").split(" | ") for line in page.splitlines() if line.startswith("| ")]
    found = [row for row in cells if len(row) == 4 and re.fullmatch(r"`[a-z0-9-]+`", row[3])]
    return [Row(*row[:3], row[3].strip("`")) for row in found]


def list_tests():
    """By the names of rows; those that take long apart."""
    short, long = {}, {}
    for module in (speed, loop, data, ranks):
        for name, test in inspect.getmembers(module, inspect.isfunction):
            for prefix, tests in (("row_", short), ("long_", long)):
                if name.startswith(prefix):
                    tests[name.removeprefix(prefix).replace("_", "-")] = test
    return short, long


def test_names(suite, page, names):
    suite.begin("page")
    rows = [row.test for row in list_rows(page)]
    suite.check("rows without a test", not set(rows) - names, sorted(set(rows) - names))
    suite.check("tests without a row", not names - set(rows), sorted(names - set(rows)))
    suite.check("no test has two rows", len(rows) == len(set(rows)), rows)


def test_flags(suite, page):
    """Each is one of the command that it stands with, or of any."""
    suite.begin("flags")
    helps = {("tcc",): harness.call("tcc", "--help")}
    helps |= {("tcc-run", each): harness.call("tcc-run", each, "--help") for each in COMMANDS}
    flags = {command: set(FLAG.findall(text)) for command, text in helps.items()}
    code = [line.strip() for line in page.splitlines() if line.startswith("    tcc")]
    unknown = []
    for span in list_spans(page) + code:
        command = [words for words in flags if tuple(span.split()[: len(words)]) == words]
        there = flags[command[0]] if command else set().union(*flags.values())
        unknown += [f"{flag} of {span}" for flag in FLAG.findall(span) if flag not in there | OTHERS]
    suite.check("all are there", len(code) == 3 and not unknown, unknown)


def test_keys(suite, page):
    suite.begin("keys")
    table = re.findall(r"^\| `([a-z]+\.[a-z0-9_.]+)` \|", read_text("docs/training.md"), re.MULTILINE)
    named = {key for span in list_spans(page) for key in KEY.findall(span)}
    unknown = [key for key in named if not any(f"{each}.".startswith(f"{key}.") for each in table)]
    suite.check("all are there", len(named) > 20 and not unknown, unknown)


def test_kinds(suite, page):
    """Those of a recipe have a name of PyTorch's."""
    suite.begin("kinds")
    named, text = set(list_spans(page.split("## Names that differ")[1])), read_text("docs/training.md")
    for table in ("loss", "optimizer", "schedule"):
        kinds = re.search(rf"^\| `{table}.kind` \| ([a-z_, ]+) \|", text, re.MULTILINE)[1].split(", ")
        suite.check(f"{table}: all are named", set(kinds) <= named, sorted(set(kinds) - named))


def test_row(suite, row):
    """The test has used what the row names."""
    used = "\n".join(suite.used)
    for span in list_spans(row.who):
        unused = [name for name in KEY.findall(span) + FLAG.findall(span) if name not in used]
        suite.check(f"uses `{span}`", not set(unused) - OTHERS, unused)
    if decided := re.match(r"decisions, `([a-z-]+)`: ([a-z ]+)", row.see):
        suite.check(f"looks at {row.see}", ": ".join(decided.groups()).strip() in suite.decided, suite.decided)


def main(arguments):
    tally = harness.Tally()
    short, long = list_tests()
    chosen = [each for each in arguments if each != "--long"]
    tests = short | long if "--long" in arguments or chosen else short
    page = read_text(PAGE)
    rows = {row.test: row for row in list_rows(page)}
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        test_names(suite, page, set(short | long))
        test_flags(suite, page)
        test_keys(suite, page)
        test_kinds(suite, page)
        for name in chosen or tests:
            suite.begin(name)
            try:
                tests[name](suite)
            except harness.Failure as failure:
                suite.check("runs", False, failure)
            suite.check("looks at something", suite.checks > 0)
            if name in rows:
                test_row(suite, rows[name])
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1:])
