"""Messages between ranks behind kernels, in what an emulated GPU is given: overlap.py

Two ranks train gpt2_tiny, with several buckets and with one that has all gradients. A
captured graph says which kernels may run beside a message, the trace of a replay, by the
emulated clock, how much of the messages was hidden. With one bucket nothing is.
"""

import collections
import functools
import glob
import json
import os
import sys
import tempfile

import harness
from training import ranks

Node = collections.namedtuple("Node", "branch kind of before")
Message = collections.namedtuple("Message", "name begin end")

# Of the time of backward all messages take so much, and so much of that is hidden at least.
SHARE, HIDDEN = 0.5, 0.9
STEPS = 6  # two are begun at a time: the last two are replays


def compile_buckets(folder, bucket):
    text = ranks.recipe(ranks.ADAMW, loss="causal_lm", bucket=bucket)
    flags = ["--target=cuda", "--arch=none", "--emulate"]
    case = ranks.Case(bucket, ranks.fixture("gpt2_tiny.onnx"), ranks.fixture("text.npz"), text,
                      flags, 1, 0)  # fmt: skip
    return case, ranks.compile_case(case, folder)


class Traced:
    """A run of two ranks: its graphs, the trace of its last update, and its metrics."""

    def __init__(self, case, package, folder, microseconds):
        folder = tempfile.mkdtemp(dir=folder)
        environment = {"TCC_EMULATED_LINK": f"{microseconds}:1e15", "TCC_EMULATED_GRAPHS": folder}
        harness.call(
            "tcc-run", "train", package, "--data", "npz:" + case.data, "-q", "--threads", "1",
            "--steps", STEPS, "--ranks", 2, "--log-dir", folder, "--trace", f"{folder}/trace.json",
            "--device", "emulated", env=os.environ | environment,
        )  # fmt: skip
        self.graphs = collections.defaultdict(list)
        for path in sorted(glob.glob(f"{folder}/*.graph")):
            process = os.path.basename(path).split("-")[0]
            with open(path, encoding="utf-8") as file:
                self.graphs[process].append(file.read().splitlines())
        with open(f"{folder}/metrics.jsonl", encoding="utf-8") as file:
            self.metrics = [json.loads(line) for line in file]
        with open(f"{folder}/trace.json", encoding="utf-8") as file:
            events = [event for event in json.load(file)["traceEvents"] if event["ph"] == "X"]
        begin = min(event["ts"] for event in events
                    if event.get("args", {}).get("step") == STEPS)  # fmt: skip
        events = [event for event in events
                  if event["ts"] >= begin and "command" in event.get("args", {})]  # fmt: skip
        for event in events:
            event["ts"] -= begin
        self.messages, self.waits = [], []
        for event in events:
            row = Message(event["name"], event["ts"], event["ts"] + event["dur"])
            if event["name"].startswith("AllReduce"):
                assert event["tid"] != 0, "a message on the lane of kernels"
                self.messages.append(row)
            elif event["tid"] == 0 and event["name"].startswith("WaitEvent"):
                self.waits.append(row)
        self.messages.sort(key=lambda message: message.begin)
        self.end = max(event["ts"] + event["dur"] for event in events)

    def gradients(self):
        return [message for message in self.messages if "gradient/" in message.name]


def total(rows):
    return sum(row.end - row.begin for row in rows)


def is_near(found, expected):
    """By the clock, whose times are rounded to nanoseconds, and copies of a microsecond."""
    return abs(found - expected) <= 0.01 * expected + 5


def read_nodes(lines):
    """Each with the nodes that come right before it."""
    nodes, last, records = [], {}, {}
    for line in lines:
        branch, kind, *rest = line.split(" ", 2)
        before = [last[branch]] if branch in last else []
        last[branch] = len(nodes)
        nodes.append(Node(int(branch), kind, " ".join(rest), before))
        if kind == "record":
            records[rest[0]] = len(nodes) - 1
    for node in nodes:
        if node.kind == "wait":
            node.before.append(records[node.of])
    return nodes


def find_beside(nodes):
    """Of each collective the launches that are neither before nor after it; the numbers of
    the collectives that the end of the first branch does not wait for."""

    @functools.cache
    def find_before(number):
        found = 1 << number
        for other in nodes[number].before:
            found |= find_before(other)
        return found

    launches = [i for i, node in enumerate(nodes) if node.kind == "launch"]
    calls = [i for i, node in enumerate(nodes) if node.kind == "call"]
    beside = [
        sum(not (find_before(call) >> i | find_before(i) >> call) & 1 for i in launches)
        for call in calls
    ]
    end = max(i for i, node in enumerate(nodes) if node.branch == 0)
    return beside, [call for call in calls if not find_before(end) >> call & 1]


def check_graphs(tally, name, run, messages):
    """Returns how many kernels each message may run beside."""
    texts = [
        [[line for line in graph if not line.endswith(" time")] for graph in graphs]
        for graphs in run.graphs.values()
    ]
    tally.check(f"{name}: two ranks capture", len(texts) == 2 and len(texts[0]) >= 1)
    tally.check(f"{name}: the same graphs", texts[0] == texts[1])
    nodes = read_nodes(texts[0][-1])
    of = collections.defaultdict(set)
    for node in nodes:
        of[node.kind].add(node.branch)
    forks = [next(node for node in nodes if node.branch == b).kind for b in of["call"]]
    tally.check(f"{name}: kernels on one stream, messages on another",
                of["launch"] == {0} and len(of["call"]) == 1 and 0 not in of["call"], str(of))
    tally.check(f"{name}: the other stream begins with an event", forks == ["wait"], str(forks))
    beside, lost = find_beside(nodes)
    tally.check(f"{name}: the first stream waits for all messages", not lost, str(lost))
    tally.check(f"{name}: each message once", len(beside) == messages, str(beside))
    return beside


def check_exposed(tally, name, run):
    """What lane 0 waits for is what the metrics say of each update."""
    said = [1e6 * row["exposed_communication_s"] for row in run.metrics]
    ok = all(is_near(value, total(run.waits)) for value in said)
    tally.check(f"{name}: exposed time of each update", ok, f"{said}, {total(run.waits)}")


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        several, one = (compile_buckets(folder, bucket) for bucket in ("4KiB", "1GiB"))
        free = Traced(*several, folder, 0)
        # The loss is known when backward begins, its last gradient when that ends.
        backward = free.messages[-1].begin - free.messages[0].end
        cost = SHARE * backward / len(free.messages)
        run = Traced(*several, folder, cost)
        count = len(run.messages)
        tally.check("several buckets", count > 10, str(run.messages))
        beside = check_graphs(tally, "several buckets", run, count)
        tally.check("kernels beside each message but the last", min(beside[:-1]) > 0, str(beside))
        is_half = is_near(total(run.messages), SHARE * backward)
        tally.check("messages take half of backward", is_half, str(run.messages))
        hidden = 1 - total(run.waits) / max(total(run.messages), 1)
        tally.check("most of it is hidden", hidden >= HIDDEN, f"{hidden:.3f}: {run.waits}")
        ok = is_near(run.end - free.end, total(run.waits) - total(free.waits))
        tally.check("an update is longer by the rest", ok, f"{run.end}, {free.end}")
        check_exposed(tally, "several buckets", run)

        cost = SHARE * backward  # the same time in one message
        late = Traced(*one, folder, cost)
        last = late.gradients()
        beside = check_graphs(tally, "one bucket", late, len(late.messages))
        tally.check("one bucket: no kernel beside it", len(last) == 1 and beside[-1] == 0,
                    f"{last}, {beside}")  # fmt: skip
        ok = is_near(total(late.waits), total(last))
        tally.check("one bucket: nothing is hidden", ok, f"{late.waits}, {last}")
        check_exposed(tally, "one bucket", late)
        saved = late.end - run.end
        tally.check("buckets save what they hide", is_near(saved, cost - total(run.waits)),
                    f"{late.end}, {run.end}")  # fmt: skip
    print(f"{hidden:.1%} of {count} messages is hidden, {saved / late.end:.1%} of an update saved")
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
