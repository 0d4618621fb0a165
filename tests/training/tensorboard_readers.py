"""TensorBoard's own readers of the event files that event_files.py made: what its library
accumulates, and what its server answers to a browser, are what the strict reader finds."""

import json
import os
import random
import shutil
import subprocess
import sys
import urllib.parse
import urllib.request

import numpy as np
from tensorboard.backend.event_processing import event_accumulator, plugin_event_accumulator
from tensorboard.util import tensor_util

from event_reader import Run
from processes import die_with_parent, find_free_port, wait_until

ALL = 1 << 20  # more than there is
def accumulate(reader, folder):
    """Values by tag and step."""
    events = reader(folder, size_guidance={"tensors": 0})
    events.Reload()
    values = {}
    for tag in events.Tags()["tensors"]:
        steps = values.setdefault(tag, {})
        for event in events.Tensors(tag):
            value = tensor_util.make_ndarray(event.tensor_proto)
            steps[event.step] = value if value.ndim else value.item()
    return values


def make_plain(value):
    if isinstance(value, bytes):
        return value.decode()
    return value.tolist() if isinstance(value, np.ndarray) else value


def simplify(values):
    return {tag: {step: make_plain(value) for step, value in steps.items()}
            for tag, steps in values.items() if steps}  # fmt: skip


def compare(suite, what, folder):
    expected = simplify(Run(folder).values)
    found = simplify(accumulate(plugin_event_accumulator.EventAccumulator, folder))
    differing = [tag for tag in found.keys() | expected.keys()
                 if found.get(tag) != expected.get(tag)]  # fmt: skip
    suite.check(f"{what}: what pages show", not differing, differing)
    # Scripts use another one, which forgets no tensor where a session starts again.
    found = simplify(accumulate(event_accumulator.EventAccumulator, folder))
    differing = [tag for tag, values in expected.items()
                 if found.get(tag, {}) | values != found.get(tag)]  # fmt: skip
    suite.check(f"{what}: what scripts find", not differing, differing)


def test_cuts(suite, folder):
    """The first file of two and the last one, cut in their last records and anywhere."""
    names = Run(suite.path("tb")).names
    generator = random.Random(3)
    for name in names:
        size = os.path.getsize(suite.path(f"tb/{name}"))
        cuts = [*range(size - 1, size - 40, -1), *generator.choices(range(size), k=20)]
        for number, cut in enumerate(cuts):
            place = f"{folder}/cut-{names.index(name)}-{number}"
            shutil.copytree(suite.path("tb"), place)
            os.truncate(f"{place}/{name}", cut)
            compare(suite, f"cut at {cut} of {size}", place)


def test_server(suite, folder, fast):
    """What the pages of scalars, texts and histograms ask for."""
    port = find_free_port()
    server = subprocess.Popen([sys.executable, "-m", "tensorboard.main", "--logdir", folder, "--port",
                               str(port), "--host", "127.0.0.1", "--load_fast", fast,
                               "--samples_per_plugin", f"scalars={ALL},histograms={ALL},text={ALL}"],
                              stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                              preexec_fn=die_with_parent)  # fmt: skip

    def get(path, **parameters):
        query = urllib.parse.urlencode(parameters)
        try:
            with urllib.request.urlopen(f"http://127.0.0.1:{port}/data/{path}?{query}") as answer:
                return json.load(answer)
        except OSError:
            return None

    runs = {os.path.basename(path): Run(path) for path in suite.folders}
    try:
        for name, run in runs.items():
            tag = max(run.values, key=lambda tag: len(run.values[tag]))
            steps = sorted(run.values[tag])
            suite.check(f"{name}: served", wait_until(lambda: [row[1] for row in get(
                "plugin/scalars/scalars", run=name, tag=tag) or []] == steps), (tag, len(steps)))  # fmt: skip
            for tag, values in run.values.items():
                # The fast server forgets those of a tag alone that has others behind them.
                if values or fast == "false":
                    test_tag(suite, get, name, tag, values)
    finally:
        server.kill()
        server.wait()


def test_tag(suite, get, name, tag, values):
    kind = {"run": "text/text", "parameter": "histograms/histograms"}
    path = kind.get(tag.split("/")[0], "scalars/scalars")
    rows = get("plugin/" + path, run=name, tag=tag) or []
    if path == "text/text":
        found = [row["step"] for row in rows]
        ok = found == sorted(values) and all("<pre><code>" in row["text"] for row in rows)
    elif path == "scalars/scalars":
        found = {row[1]: row[2] for row in rows}
        ok = found == values
    else:
        found = {row[1]: row[2] for row in rows}
        ok = found == {step: table.tolist() for step, table in values.items()}
    suite.check(f"{name}: {tag} is served", ok, f"{len(rows)} of {len(values)}")


def test(suite, folder):
    for path in suite.folders:
        compare(suite, os.path.basename(path), path)
    test_cuts(suite, folder)
    shown = f"{folder}/shown"
    os.mkdir(shown)
    for path in suite.folders:
        shutil.copytree(path, f"{shown}/{os.path.basename(path)}")
    for fast in ("true", "false"):
        test_server(suite, shown, fast)
