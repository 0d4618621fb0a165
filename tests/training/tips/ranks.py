"""Tips on several processes that train together."""

import os
import socket
import subprocess

import numpy as np

import harness
from training.tips.suite import ADAMW, DIGITS, SGD, Training, find_entry


def row_ddp(suite):
    package = suite.compile("mlp", ADAMW)
    ranks = suite.train(package, "--steps", 4, "--ranks", 2)
    alone = suite.train(package, "--steps", 4, "--set", "accumulate=2")
    waits = [all(wait is not None for wait in done.column("exposed_communication_s")) for done in (ranks, alone)]
    suite.check("waits of ranks alone are in the log", waits == [True, False], waits)
    same = np.allclose(ranks.column("loss"), alone.column("loss"), rtol=1e-5)
    suite.check("the losses of one process", same, (ranks.log, alone.log))


def row_no_sync(suite):
    graph = suite.print_stage("graph", "mlp", SGD)
    sums = ["graph.all_reduce" in find_entry(graph, name) for name in ("accumulate_step", "reduce_step")]
    suite.check("sums in the last batch's step alone", sums == [False, True], sums)


def row_gradient_buckets(suite):
    counts = []
    for size in ("1KiB", "1MiB"):
        rows = suite.find_decisions("buckets: summed together", "mlp", SGD + f'parallel.bucket = "{size}"\n')
        counts.append(len(rows))
    suite.check("more messages of smaller buckets", counts[0] > counts[1] > 0, counts)


def row_overlap(suite):
    recipe = SGD + 'parallel.bucket = "1KiB"\n'
    lanes = suite.find_decisions("assign-lanes: on a lane of its own", "mlp", recipe)
    suite.check("messages on a lane of their own", any("gradient/" in row["node"] for row in lanes), lanes)
    step = find_entry(suite.print_stage("exec", "mlp", recipe), "reduce_step")
    first = step.index("exec.start_all_reduce", step.index("gradient/4.bias") - 400)
    suite.check("kernels go on beside them", "exec.launch" in step[first : step.rindex("exec.start_all_reduce")])
    listed = suite.try_compile("mlp", recipe).out
    suite.check("what hides each", listed.count("us of work: gradient/") == 4, listed)
    alone = suite.list_decisions("mlp", recipe + "parallel.data = 1\n")
    suite.check("none for one rank", not any(row["pass"] == "buckets" for row in alone))


def row_zero(suite):
    package = suite.compile("mlp", ADAMW + "parallel.data = 2\nparallel.zero = 1\n")
    divided, whole = (sum(each["bytes"] for each in suite.find_variables(one, "slot").values())
                      for one in (package, suite.compile("mlp", ADAMW)))  # fmt: skip
    suite.check("half of the slots", whole / 2 <= divided < 0.6 * whole, (divided, whole))
    suite.check("two ranks train it", len(suite.train(package, "--steps", 2, "--ranks", 2).log) == 2)
    alone = suite.train(package, "--steps", 2, code=2)
    suite.check("one does not", "2 ranks" in alone.err, alone.err)


def row_sync_batchnorm(suite):
    for recipe, is_synced in ((SGD + "batchnorm.sync = true\n", True), (SGD, False)):
        step = find_entry(suite.print_stage("graph", "bn", recipe), "accumulate_step")
        suite.check(f"messages: {is_synced}", ("graph.all_reduce" in step) == is_synced)


def find_port():
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def row_torchrun(suite):
    """What torchrun tells the processes that it begins."""
    package, folder, port = suite.compile("mlp", ADAMW), suite.new_path(), find_port()
    command = [os.path.join(harness.BIN, "tcc-run"), "train", package, "--data", DIGITS, "--steps", "4",
               "--threads", "1", "-q", "--log-dir", folder, "--checkpoint-dir", folder]  # fmt: skip
    tells = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
    ranks = [subprocess.Popen(command, env=os.environ | tells | {"RANK": str(i), "LOCAL_RANK": str(i)},
                              stdout=subprocess.DEVNULL)
             for i in range(2)]  # fmt: skip
    codes = [rank.wait(timeout=60) for rank in ranks]
    suite.check("both end", codes == [0, 0], codes)
    found = Training(harness.Run(0, "", "", 0), folder)
    expected = suite.train(package, "--steps", 4, "--ranks", 2)
    suite.check("the bits of two ranks", found.read_bytes() == expected.read_bytes())


def row_elastic(suite):
    package = suite.compile("mlp", ADAMW + "batch.micro = 16\nbatch.global = 64\n")
    first = suite.train(package, "--steps", 2)
    both = suite.train(package, "--steps", 4, "--ranks", 2, "--resume-if-any", folder=first.folder)
    alone = suite.train(package, "--steps", 4)
    suite.check("the updates of one", np.allclose(both.column("loss"), alone.column("loss"), rtol=1e-5))
    refused = suite.train(package, "--steps", 1, "--ranks", 3, code=2)
    suite.check("three do not share 64", "these numbers of ranks can: 1, 2, 4" in refused.err, refused.err)
