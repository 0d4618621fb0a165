"""Which samples a killed run has trained on: ledger.py [KILLS [SEED]]

The model is a table with a number for each sample, and its loss adds one to the numbers of a
batch: after two epochs the table says how often each sample was taken. Runs that read records with
two workers are killed at random times, with a checkpoint after every update; at last each sample
was taken twice, but for those that an epoch leaves out since they fill no batch, which are said.
"""

import os
import random
import sys
import tempfile

import numpy as np
from onnx import TensorProto, helper, numpy_helper, save

import harness
from images import write_tar
from training import kills, records, run

MICRO = 8
RECIPE = f"""
seed = 3
[loss]
kind = "huber"
delta = 1
[optimizer]
kind = "sgd"
lr = {MICRO}
[batch]
micro = {MICRO}
"""
LEFT = 5  # samples that fill no batch


def save_table(path, samples):
    """y = table[x], far below all targets."""
    table = numpy_helper.from_array(np.zeros((samples, 1), "f4"), "table.weight")
    graph = helper.make_graph(
        [helper.make_node("Gather", ["table.weight", "x"], ["y"])], "model",
        [helper.make_tensor_value_info("x", TensorProto.INT64, ["N"])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["N", 1])], [table])  # fmt: skip
    save(helper.make_model(graph, ir_version=10), path)


def write_shards(folder, rows):
    """Of 100 samples."""
    for begin in range(0, len(rows), 100):
        write_tar(os.path.join(folder, f"shard-{begin // 100:03}.tar"), [
            (f"{x:06}", {"x": b"%d" % x, "labels": b"%d" % y})
            for x, y in rows[begin : begin + 100]])  # fmt: skip
    return f"webdataset:{folder}/shard-{{000..{(len(rows) - 1) // 100:03}}}.tar"


def write_csv(folder, rows):
    records.write_csv(os.path.join(folder, "data.csv"), ["x", "labels"], rows)
    return f"csv:{folder}/data.csv"


def write_lines(folder, rows):
    records.write_lines(os.path.join(folder, "data.jsonl"), [{"x": x, "labels": [y]} for x, y in rows])
    return f"jsonl:{folder}/data.jsonl"


def write_mds(folder, rows):
    columns = [("x", "int", 8), ("labels", "ndarray:float32:1", 4)]
    path = os.path.join(folder, "mds")
    records.MdsFolder(path, columns, 100).write([(np.int64(x).tobytes(), np.float32(y).tobytes())
                                                 for x, y in rows])  # fmt: skip
    return "mds:" + path


SOURCES = {"webdataset": write_shards, "csv": write_csv, "jsonl": write_lines, "mds": write_mds}


class Suite(kills.Suite):
    def __init__(self, tally, folder, name, count, chance):
        self.tally, self.name, self.kills, self.chance = tally, name, count, chance
        self.folder = os.path.join(folder, name)
        os.mkdir(self.folder)
        batches = count * kills.UPDATES_EACH
        self.updates, self.samples, self.flags = 2 * batches, batches * MICRO + LEFT, ()
        save_table(self.path("model.onnx"), self.samples)
        with open(self.path("recipe.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)
        harness.call("tcc", self.path("model.onnx"), "-q", "--train=" + self.path("recipe.toml"),
                     "-o", self.path("train.tcc"))  # fmt: skip
        self.data = SOURCES[name](self.folder, [(i, 1e6) for i in range(self.samples)])

    def list_arguments(self, folder, *flags):
        return ["train", self.path("train.tcc"), "--data", self.data, "--set", "data.workers=2",
                "--epochs", 2, "--threads", 1, "--checkpoint-dir", self.path(folder), *flags]  # fmt: skip

    def compare(self):
        for _ in range(self.kills):
            self.kill_once("killed")
        last = max(self.list_steps("killed"))
        self.check("was killed before its end", last < self.updates, last)
        table = self.path("table.safetensors")
        done = harness.run_tool("tcc-run", *self.list_arguments("killed", "--resume", "--export", table))
        told = f"{LEFT} samples do not fill a batch"
        self.check("says what is left out", done.code == 0 and told in done.err, done.err)
        counted = np.frombuffer(run.read_tensors(table)["table.weight"], "f4").astype(int)
        self.check("no sample more than twice", counted.max() <= 2, counted.max())
        self.check("as many as the batches have", counted.sum() == 2 * (self.samples - LEFT), counted.sum())
        # Those that one epoch leaves out the other has, unless it leaves them out as well.
        self.check("all others twice", 0 < (counted < 2).sum() <= 2 * LEFT, (counted < 2).sum())
        print(f"{self.name}: {self.kills} kills, {self.samples} samples, {last} of {self.updates} updates before the end")


def main(count=10, seed=None):
    seed = random.randrange(10**6) if seed is None else int(seed)
    print(f"seed {seed}")
    chance = random.Random(seed)
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        for name in SOURCES:
            Suite(tally, folder, name, int(count), chance).compare()
    tally.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
