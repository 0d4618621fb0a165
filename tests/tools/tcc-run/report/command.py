"""tcc-run report: the page of a run's folder, and folders that are none.

  command.py FOLDER_OF_WRITE_FIXTURE
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile

import harness
from processes import ENVIRONMENT, wait_until

sys.path.append(os.path.join(harness.ROOT, "tests/tools/tcc-run"))
import training  # noqa: E402  (of this tool)


class Suite(training.Suite):
    def train(self, name, *flags, steps=6, code=0):
        done = harness.run_tool("tcc-run", "train", self.package, "--data", self.data, "--run",
                                self.path(name), "--steps", steps, "--threads", 1, "-q", *flags)  # fmt: skip
        self.tally.check(f"train {name}", done.code == code, f"{done.code}: {done.err}")

    def report(self, name, *flags):
        """The document of the page."""
        done = harness.run_tool("tcc-run", "report", self.path(name), *flags)
        self.tally.check(f"report {name}", done.code == 0 and not done.err, f"{done.code}: {done.err}")
        with open(done.out.split(": ")[0], encoding="utf-8") as file:
            text = file.read()
        return json.loads(re.search(r'id="data">(.*?)</script>', text, re.S)[1])

    def refuse(self, name, code, *says):
        done = harness.run_tool("tcc-run", "report", self.path(name))
        ok = done.code == code and done.err.count("\n") == 1 and all(each in done.err for each in says)
        self.tally.check(f"{name}: {says}", ok, f"{done.code}: {done.err}")
        left = os.path.exists(self.path(f"{name}/report.html"))
        self.tally.check(f"{name}: no page", not left)

    def read(self, name):
        with open(self.path(name), encoding="utf-8") as file:
            return file.read()

    def write(self, name, text):
        with open(self.path(name), "w", encoding="utf-8") as file:
            file.write(text)

    def check(self, what, ok, found):
        self.tally.check(what, bool(ok), str(found)[:400])


def titles(page):
    return [section["title"] for section in page["sections"]]


def find(page, title):
    blocks = [block for section in page["sections"] for block in section["blocks"]]
    return next((block for block in blocks if block.get("title") == title), None)


def test_ended(suite):
    suite.train("ended", "--diagnose")
    page = suite.report("ended")
    suite.check("ended", page["verdict"]["text"] == "Ended after 6 of 6 updates", page["verdict"])
    suite.check("good", page["verdict"]["state"] == "good", page["verdict"])
    suite.check("title", page["title"] == "Run ended" and suite.package in page["subtitle"], page["title"])
    suite.check("limit", page["verdict"]["lines"][0]["label"] == "What limits it", page["verdict"])
    losses = [line["loss"] for line in training.read_lines(suite.path("ended/metrics.jsonl"))]
    loss = find(page, "Loss")["series"][0]
    near = all(abs(a - b) <= 1e-5 * abs(b) for a, b in zip(loss["y"], losses, strict=True))
    suite.check("losses", loss["x"] == [1, 2, 3, 4, 5, 6] and near, loss)
    parts = {part["name"]: part["value"] for part in find(page, "An update on average")["parts"]}
    result = json.loads(suite.read("ended/result.json"))
    whole = result["profile"]["profile_ms"] / 1e3
    suite.check("parts add up", abs(sum(parts.values()) / whole - 1) < 1e-6, parts)
    suite.check("questions", len(find(page, "Questions, as they were asked")["rows"]) > 3, titles(page))
    rows = find(page, "Recipe, settings and flags")["rows"]
    suite.check("flags", ["flags", "--steps", "6"] in rows, rows)
    page = suite.report("ended", "-o", suite.path("other.html"))
    suite.check("another file", os.path.exists(suite.path("other.html")), page["title"])


def test_times(suite):
    """The time split of the log is that of its lines."""
    suite.train("timed", "--checkpoint-every", 2, steps=8)
    lines = training.read_lines(suite.path("timed/metrics.jsonl"))
    page = suite.report("timed")
    parts = {part["name"]: part["value"] for part in find(page, "Where the time of all updates went")["parts"]}
    for part, key in (("waiting for data", "data_wait_s"), ("waiting for checkpoints", "stall_s")):
        expected = sum(line[key] for line in lines)
        suite.check(part, abs(parts[part] - expected) < 1e-9, (parts, expected))
    updates = sum(line["update_s"] - line["data_wait_s"] for line in lines)
    suite.check("the rest", abs(parts["computing, and the host"] - updates) < 1e-9, (parts, updates))
    suite.check("no profile", "There is no profile" in json.dumps(page), titles(page))


def test_killed(suite):
    """Of a run that is under way, or was killed, no end is known."""
    suite.train("killed", steps=3)
    command = [os.path.join(harness.BIN, "tcc-run"), "train", "--run", suite.path("killed"),
               "--resume", "--steps", "100000000", "-q"]  # fmt: skip
    with subprocess.Popen(command, env=ENVIRONMENT) as run:
        wait_until(lambda: suite.read("killed/metrics.jsonl").count("\n") > 50, 60)
        under_way = suite.report("killed")
        run.send_signal(signal.SIGKILL)
    for page in (under_way, suite.report("killed")):
        verdict = page["verdict"]
        suite.check("no end", verdict["text"].startswith("No end is recorded after "), verdict)
        suite.check("of all", " of 100000000 updates" in verdict["text"], verdict)
    with open(suite.path("killed/metrics.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"step":4,"lo')
    lines = suite.report("killed")["verdict"]["lines"]
    suite.check("half a line", "half written" in lines[-1]["text"], lines)


def test_stopped(suite):
    suite.train("stopped", "--max-time", "1s", steps=100000000)
    verdict = suite.report("stopped")["verdict"]
    ok = verdict["text"].startswith("Stopped by --max-time after ") and verdict["state"] == "warn"
    suite.check("stopped", ok, verdict)
    # What is done has nothing left to do, and keeps what is known of its end.
    suite.train("done", "--diagnose")
    suite.train("done", "--resume")
    suite.check("kept", suite.report("done")["verdict"]["text"].startswith("Ended after 6"), verdict)
    suite.check("diagnosis", "diagnosis" in json.loads(suite.read("done/result.json")), verdict)


def test_failed(suite):
    suite.train("failed", "--set", "lr=1e38", steps=20, code=6)
    verdict = suite.report("failed")["verdict"]
    suite.check("failed", verdict["state"] == "bad" and "exit code 6" in verdict["text"], verdict)
    suite.check("error", "finite" in verdict["lines"][0]["text"], verdict)


def test_package(suite):
    """A package that is gone, or another one, is no error."""
    suite.train("gone")
    suite.check("memory", find(suite.report("gone"), "Variables by kind"), "no package")
    text = suite.read("gone/run.json")
    suite.write("gone/run.json", text.replace(suite.package, suite.path("gone.tcc")))
    page = json.dumps(suite.report("gone"))
    suite.check("gone", "is not known: " in page and "gone.tcc" in page, page)
    digest = json.loads(text)["package"]["digest"]
    suite.write("gone/run.json", text.replace(digest, "0" * 32))
    page = json.dumps(suite.report("gone"))
    suite.check("another", "is another package by now" in page, page)


def test_problems(suite):
    suite.refuse("none", 5, "there is no '", "none/run.json'")
    suite.train("bad")
    whole = {name: suite.read(f"bad/{name}") for name in ("run.json", "metrics.jsonl", "result.json")}
    lines = whole["metrics.jsonl"].splitlines(keepends=True)
    for name, text, code, says in (
        ("run.json", "{", 3, ["bad/run.json' is no record of a run"]),
        ("run.json", whole["run.json"].replace('"recipe"', '"recipes"'), 3, ["'recipe'"]),
        ("metrics.jsonl", "".join([lines[0], "oops\n", *lines[1:]]), 3,
         ["bad/metrics.jsonl' line 2 has no JSON, expected an object"]),
        ("result.json", "[1]", 3, ["bad/result.json' is array, expected an object"]),
        ("result.json", whole["result.json"][:-9], 3, ["bad/result.json' is no JSON"]),
        ("result.json", '{"code": "six"}', 3, ["bad/result.json' is not what a run writes"]),
        ("result.json", "{}", 3, ["bad/result.json' is not what a run writes", "code"]),
    ):  # fmt: skip
        suite.write(f"bad/{name}", text)
        suite.refuse("bad", code, *says)
        suite.write(f"bad/{name}", whole[name])
    os.remove(suite.path("bad/metrics.jsonl"))
    suite.refuse("bad", 5, "there is no '", "bad/metrics.jsonl'")
    suite.write("bad/metrics.jsonl", whole["metrics.jsonl"])
    done = harness.run_tool("tcc-run", "report", suite.path("bad"), "-o", suite.path("no/page.html"))
    suite.check("no folder", done.code == 5 and done.err.count("\n") == 1, done)
    done = harness.run_tool("tcc-run", "report")
    suite.check("usage", done.code == 2, done)


def main(fixtures):
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([f"{fixtures}/tcc_write_fixture", "line", f"{folder}/line.tcc"], check=True)
        suite = Suite(tally, os.path.realpath(folder), "cpu")
        for test in (test_ended, test_times, test_killed, test_stopped, test_failed, test_package,
                     test_problems):  # fmt: skip
            test(suite)
    tally.close()


if __name__ == "__main__":
    main(sys.argv[1])
