"""Tables of Parquet and Arrow as shards: tables.py

tools/import-parquet.py makes of them what trains to the same weights as an archive of the same
numbers, and as shards of the same pictures. Files that are no tables are refused with one line.
"""

import os
import subprocess
import sys
import tempfile

import numpy as np
import pyarrow as pa
import pyarrow.parquet

import harness
from training import sources, transforms

TOOL = os.path.join(harness.ROOT, "tools/import-parquet.py")


def convert(*arguments):
    return subprocess.run([sys.executable, TOOL, *arguments], capture_output=True, text=True)


def test_numbers(suite):
    with np.load(suite.path("data.npz")) as data:
        x, labels = data["x"], data["labels"]
    table = pa.table({"labels": labels, "note": [None, "n"] * (len(x) // 2), "x": x.tolist()})
    pa.parquet.write_table(table.slice(0, 60), suite.path("0.parquet"), row_group_size=7)
    pa.parquet.write_table(table.slice(60), suite.path("1.parquet"))
    with pa.OSFile(suite.path("all.arrow"), "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
        writer.write_table(table)
    suite.train(suite.specs["npz"], "npz", sources.STEPS)
    for kind, files in (("parquet", ["0.parquet", "1.parquet"]), ("arrow", ["all.arrow"])):
        done = convert(*map(suite.path, files), "-o", suite.path(kind), "--rows", "30")
        suite.tally.check(f"{kind}: four shards", done.stdout.endswith("{000000..000003}.tar\n"), done.stderr)
        suite.train(done.stdout.strip(), f"{kind} run", sources.STEPS)
        same = suite.read_state(f"{kind} run") == suite.read_state("npz")
        suite.tally.check(f"{kind}: the same weights", same)
    with open(suite.path("bad.parquet"), "wb") as file:
        file.write(b"x" * 100)
    for name, *arguments, said in (
        ("no table", suite.path("bad.parquet"), "Parquet"),
        ("no file", suite.path("none.parquet"), "none.parquet"),
        ("no column", suite.path("0.parquet"), "--columns", "y", "there is no column 'y'"),
    ):
        done = convert(*arguments, "-o", suite.path("none"))
        ok = done.returncode == 1 and said in done.stderr and "Traceback" not in done.stderr
        suite.tally.check(f"{name}: refused", ok, done.stderr)


def test_pictures(suite):
    """Bytes by themselves, and as Hugging Face's datasets has them."""
    lines, _ = transforms.CHAINS["imagenet"]
    expected = suite.state(suite.plan("plan", lines))
    for name, wrap in (("bytes", lambda data: data), ("image", lambda data: {"bytes": data, "path": "a"})):
        table = pa.table({"p": [wrap(data) for _, data in suite.files], "num": suite.labels})
        pa.parquet.write_table(table, suite.path(f"{name}.parquet"))
        source = convert(suite.path(f"{name}.parquet"), "-o", suite.path(name)).stdout.strip()
        found = suite.state(suite.plan("plan", lines), "--set", f"data.source={source}", "--set",
                            "data.map.x='p'")  # fmt: skip
        suite.tally.check(f"{name}: the same weights", found == expected)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        test_numbers(sources.Suite(tally, folder))
    with tempfile.TemporaryDirectory() as folder:
        test_pictures(transforms.Suite(tally, folder))
    tally.close()


if __name__ == "__main__":
    main()
