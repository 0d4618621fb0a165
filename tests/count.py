"""Adds up the tests inside each ctest entry: count.py CTEST_JUNIT.xml

An entry is a GoogleTest binary, a lit run or a script that closes with
'N passed, N failed'; one that says none of this counts as one test.
"""

import re
import sys
import xml.etree.ElementTree as xml

# Each pattern's group is a count; all matches of a row are added.
PASSED = [r"^\[  PASSED  \] (\d+) tests?", r"^ +Passed *: +(\d+) ", r"^(\d+) passed, "]
FAILED = [r"^ *(\d+) FAILED TESTS?$", r"^ +Failed *: +(\d+) ", r"^\d+ passed, (\d+) failed"]
SKIPPED = [
    r"^\[  SKIPPED \] (\d+) tests?",
    r"^ +Unsupported *: +(\d+) ",
    r"^\d+ passed, \d+ failed, (\d+) skipped",
]


def count(patterns, output):
    return sum(
        int(n) for p in patterns for n in re.findall(p, output, flags=re.MULTILINE)
    )


def count_entry(entry):
    output = entry.findtext("system-out") or ""
    passed, failed, skipped = (count(p, output) for p in (PASSED, FAILED, SKIPPED))
    ok = entry.find("failure") is None and entry.get("status") != "fail"
    if ok and passed + failed == 0:
        passed = 1
    # A crash or time-out may come before any count is printed.
    if not ok and failed == 0:
        failed = 1
    return passed, failed, skipped


def main(path):
    entries = xml.parse(path).getroot().iter("testcase")
    passed, failed, skipped = (
        sum(column) for column in zip((0, 0, 0), *map(count_entry, entries))
    )
    tail = f", {skipped} skipped" if skipped else ""
    print(f"{passed} passed, {failed} failed{tail}")
    return failed > 0 or passed == 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
