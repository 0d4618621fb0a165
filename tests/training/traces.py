"""Traces of runs: traces.py

`tcc-run train --trace` on the CPU and on the emulated device: a strict reader finds nothing wrong
in them; on the compute lane events and gaps add up to each update, and an update takes as long as
metrics.jsonl says; modules are nested as in the model; where many events are, a power of two of
updates is left out; traces of ranks become one with one clock.
"""

import json
import os
import statistics
import tempfile

import onnx

import harness
import trace_reader
from training import cases

MODEL = os.path.join(cases.FIXTURES, "gpt2_tiny.onnx")
DATA = "npz:" + os.path.join(cases.FIXTURES, "text.npz")
RECIPE = """
[loss]
kind = "causal_lm"
[optimizer]
kind = "adamw"
lr = 0.001
"""
STEPS = 100
MODULES = ("wte", "h.0.attn", "h.0.mlp", "h.1.attn", "h.1.mlp", "head")


class Suite:
    def __init__(self, tally, folder):
        self.tally, self.folder = tally, folder
        self.save_model()
        with open(self.path("r.toml"), "w", encoding="utf-8") as file:
            file.write(RECIPE)

    def path(self, name):
        return os.path.join(self.folder, name)

    def check(self, what, ok, found=""):
        self.tally.check(what, bool(ok), str(found)[:500])

    def save_model(self):
        """Whose nodes are in modules, in their order."""
        model = onnx.load(MODEL)
        for i, node in enumerate(model.graph.node):
            entry = node.metadata_props.add()
            entry.key = "pkg.torch.onnx.name_scopes"
            path = MODULES[i * len(MODULES) // len(model.graph.node)]
            entry.value = f"['', '{path}', '{node.name}']"
        onnx.save(model, self.path("net.onnx"))

    def compile(self, name, *flags):
        harness.call("tcc", self.path("net.onnx"), f"--train={self.path('r.toml')}", "-q", "-o", self.path(name),
                     *flags)  # fmt: skip

    def train(self, package, name, *flags, steps=STEPS):
        """Its trace, and its metrics."""
        trace, logs = self.path(name + ".json"), self.path(name)
        harness.call("tcc-run", "train", self.path(package), "--data", DATA, "--steps", steps,
                     "--threads", 1, "-q", "--trace", trace, "--log-dir", logs, *flags)  # fmt: skip
        with open(os.path.join(logs, "metrics.jsonl"), encoding="utf-8") as file:
            return trace_reader.Trace(trace), [json.loads(line) for line in file]

    def check_updates(self, name, trace, steps=STEPS):
        """One after the other, each with a value of the loss."""
        updates = trace.updates()
        names = [f"update {step + 1}" for step in range(steps)]
        self.check(f"{name}: updates", [row.name for row in updates] == names, len(updates))
        gaps = [b.begin - a.end for a, b in zip(updates, updates[1:], strict=False)]
        self.check(f"{name}: nothing between updates", not any(gaps), gaps[:5])
        self.check(f"{name}: losses", len(trace.counters[0, "loss"]) == steps)
        arena = trace.counters[0, "arena in use"]
        self.check(f"{name}: memory", len(arena) > steps, len(arena))
        self.check(f"{name}: all of it", trace.document["lost"] == 0
                   and trace.document["everyKthUpdate"] == 1)  # fmt: skip

    def check_time(self, name, trace, metrics):
        """From the wait for its batch to its end an update takes what metrics say."""
        track, samples = trace.track(trace_reader.UPDATES), 4
        begins = [row.begin for row in track.find("wait for batch")]
        ends = [row.end for row in track.find("wait for step")]
        ratios = [(end - begin) / (1e9 * samples / line["samples_per_s"])
                  for begin, end, line in zip(begins, ends, metrics, strict=True)]  # fmt: skip
        self.check(f"{name}: as long as metrics say", abs(statistics.median(ratios) - 1) <= 0.01,
                   statistics.median(ratios))  # fmt: skip

    def check_lane(self, name, trace, updates):
        """Events and gaps add up to updates, of which the lane has each command."""
        commands = trace.lanes()[0].commands()
        per_update, rest = divmod(len(commands), len(updates))
        self.check(f"{name}: commands of updates", rest == 0 and per_update > 50, len(commands))
        worst = 0
        for i, update in enumerate(updates):
            rows = commands[i * per_update : (i + 1) * per_update]
            time, gaps = update.begin, 0
            for row in rows:
                gaps += row.begin - time
                time = row.end
            total = sum(row.end - row.begin for row in rows) + gaps + max(update.end - time, 0)
            worst = max(worst, abs(total / (update.end - update.begin) - 1))
        self.check(f"{name}: events and gaps", worst <= 0.01, worst)

    def check_modules(self, name, trace):
        """A launch is within its phase, that in its run; modules are within those they are of."""
        slices = trace.lanes()[0].slices
        phases = {"forward", "backward", "optimizer"}
        found = {row.name for row in slices if row.depth == 1}
        self.check(f"{name}: phases", phases <= found, found)
        runs = {row.name for row in slices if row.depth == 0}
        self.check(f"{name}: runs", runs == {"train_step"}, runs)
        modules = [row for row in slices if row.depth > 1 and "command" not in row.args]
        wrong = [row.name for row in modules if row.parent.name not in phases
                 and not row.name.startswith(row.parent.name + ".")]  # fmt: skip
        self.check(f"{name}: modules", modules and not wrong, wrong[:5] or len(modules))
        deep = {row.name for row in modules}
        expected = {"h", "h.0", "h.1", *MODULES[2:]}
        self.check(f"{name}: nested modules", expected <= deep, deep)

    def check_flows(self, name, trace, steps=STEPS):
        self.check(f"{name}: flows", len(trace.flows) == steps, len(trace.flows))
        ends = {places[-1] for places in trace.flows.values()}
        self.check(f"{name}: flows end on the compute lane", ends == {(0, 0)}, ends)

    def test_cpu(self):
        self.compile("cpu.tcc")
        trace, metrics = self.train("cpu.tcc", "cpu")
        self.check_updates("cpu", trace)
        self.check_lane("cpu", trace, trace.updates())
        self.check_modules("cpu", trace)
        self.check_flows("cpu", trace)
        self.check_time("cpu", trace, metrics)

    def test_threads(self):
        """Workers and checkpoints have tracks of their own; batches come from workers."""
        with open(self.path("data.toml"), "w", encoding="utf-8") as file:
            file.write(f'[data]\nsource = "{DATA}"\nworkers = 1\n')
        trace = self.path("threads.json")
        harness.call("tcc-run", "train", self.path("cpu.tcc"), "--data", self.path("data.toml"),
                     "--steps", 20, "--threads", 1, "-q", "--trace", trace, "--checkpoint-dir",
                     self.path("saved"), "--checkpoint-every", 5)  # fmt: skip
        trace = trace_reader.Trace(trace)
        self.check_updates("threads", trace, 20)
        self.check_flows("threads", trace, 20)
        workers = trace.workers()
        read = sum(len(track.find("read samples")) for track in workers)
        self.check("threads: a worker reads", len(workers) == 1 and read > 0, read)
        saves = trace.track(trace_reader.UPDATES + 1)
        written = len(saves.find("write checkpoint")), len(saves.find("publish checkpoint"))
        self.check("threads: checkpoints are written beside", written[0] >= 1, written)
        waits = trace.track(trace_reader.UPDATES).find("wait for checkpoint")
        self.check("threads: what waits for them", waits, len(waits))

    def test_emulated(self):
        """Lanes have the clock of the simulated device; inputs are copied on a track."""
        self.compile("cuda.tcc", "--target=cuda", "--arch=none", "--emulate")
        trace, _ = self.train("cuda.tcc", "cuda", "--device", "emulated")
        self.check_updates("cuda", trace)
        runs = [row for row in trace.lanes()[0].slices if row.depth == 0]
        self.check("cuda: runs", len(runs) == STEPS, len(runs))
        self.check_lane("cuda", trace, runs)
        self.check_modules("cuda", trace)
        self.check_flows("cuda", trace)
        copies = trace.track(trace_reader.UPLOADS).slices
        self.check("cuda: copies", len(copies) == STEPS, len(copies))

    def check_apart(self, second):
        """The CPU's trace of one rank has no collective."""
        done = harness.run_tool("tcc-run", "trace", "merge", self.path("cpu.json"), second,
                                "-o", self.path("out.json"))  # fmt: skip
        ok = done.code == 3 and "have no collective of one update" in done.err
        self.check("ranks: traces of other runs", ok, f"{done.code} {done.err}")

    def test_ranks(self):
        files = [self.path(name) for name in ("ranks.json", "ranks.rank-1.json", "all.json")]
        first, _ = self.train("cpu.tcc", "ranks", "--ranks", 2, steps=20)
        second = trace_reader.Trace(files[1])
        self.check("ranks: files", [*first.processes.values(), *second.processes.values()]
                   == ["rank 0", "rank 1"])  # fmt: skip
        # A clock that is 2 s off.
        with open(files[1], encoding="utf-8") as file:
            lines = file.read().splitlines()
        with open(files[1], "w", encoding="utf-8") as file:
            for line in lines:
                if '"ts":' in line:
                    event = json.loads(line.rstrip(","))
                    event["ts"] += 2e6
                    line = json.dumps(event) + "," * line.endswith(",")
                file.write(line + "\n")
        harness.call("tcc-run", "trace", "merge", files[1], files[0], "-o", files[2])
        merged = trace_reader.Trace(files[2])
        self.check("ranks: one trace", merged.processes == {0: "rank 0", 1: "rank 1"})
        ends = [[row.end for track in merged.lanes(rank) for row in track.commands()
                 if "collective" in row.args] for rank in (0, 1)]  # fmt: skip
        self.check("ranks: collectives", len(ends[0]) == len(ends[1]) > 20, list(map(len, ends)))
        off = [abs(a - b) for a, b in zip(*ends, strict=True)]
        self.check("ranks: one clock", statistics.median(off) < 1e6, statistics.median(off))
        self.check_apart(files[1])
        for name, text, code in (("garbled", "{\n", 3), ("none", None, 5)):
            if text is not None:
                with open(self.path(name), "w", encoding="utf-8") as file:
                    file.write(text)
            done = harness.run_tool("tcc-run", "trace", "merge", files[0], self.path(name),
                               "-o", self.path("out.json"))  # fmt: skip
            ok = done.code == code and self.path(name) in done.err
            ok &= not os.path.exists(self.path("out.json"))
            self.check(f"ranks: a {name} file", ok, f"{done.code} {done.err}")
        done = harness.run_tool("tcc-run", "trace", "merge", files[0], files[0], "-o", files[2])
        self.check("ranks: a rank twice", done.code == 2 and "rank 0" in done.err, done.err)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        for test in (suite.test_cpu, suite.test_threads, suite.test_emulated, suite.test_ranks):
            test()
    tally.close()


if __name__ == "__main__":
    main()
