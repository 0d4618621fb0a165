"""Two ranks as launchers begin them: launchers.py

What mpirun, mpiexec and srun begin trains as one process does on the same batches, and
to the same bits, whatever begins it and by whatever the ranks meet. A rank that fails
alone or is killed ends the job at once, with its code, and nobody is left. Slurm is a
cluster of this machine, which the test begins and ends.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

import numpy as np

import harness
import ranks
import slurm
from processes import ENVIRONMENT, die_with_parent, find_free_port, find_with, wait_until

STEPS, WORLD = 8, 2
TOOL = os.path.join(harness.BIN, "tcc-run")
OPEN_MPI, MPICH = ranks.LAUNCHERS["openmpi"], ranks.LAUNCHERS["mpich"]
EXAMPLES = os.path.join(harness.ROOT, "examples/two-ranks")
SRUN = ["srun", "-n", "WORLD", "--overcommit"]

def rendezvous():
    return {"TCC_RENDEZVOUS": f"127.0.0.1:{find_free_port()}"}


class Suite:
    def __init__(self, tally, folder):
        self.tally = tally
        self.folder = folder
        self.environment = {**ENVIRONMENT, "TMPDIR": folder}
        text = f"steps = {STEPS}\n" + ranks.recipe(ranks.ADAMW, "[batch]\nclip_norm = 0.5\n")
        self.case = ranks.Case("mlp", ranks.fixture("mlp_digits.onnx"),
                               ranks.fixture("digits.npz"), text, ["--dim", "batch=16"], 1,
                               1e-12)  # fmt: skip
        self.package = ranks.compile_case(self.case, folder)

    def train(self, launcher=(), world=WORLD, environment=None):
        return ranks.train(self.package, self.case, self.folder, world, WORLD // world, launcher,
                           STEPS, env={**self.environment, **(environment or {})})  # fmt: skip

    def make_example(self):
        """A folder as examples/two-ranks asks for, of this package and its data."""
        folder = tempfile.mkdtemp(dir=self.folder)
        shutil.copy(self.package, f"{folder}/digits.tcc")
        shutil.copy(self.case.data, f"{folder}/train.npz")
        return folder

    def begin(self, launcher, *arguments, data=None, environment=None):
        prefix = [str(WORLD) if word == "WORLD" else word for word in launcher]
        command = [*prefix, TOOL, "train", self.package, "--data",
                   f"npz:{data or self.case.data}", *map(str, arguments)]  # fmt: skip
        return Job(command, {**self.environment, **(environment or {})})


class Job:
    """A launcher, and all that it began, which the environment has the name of."""

    def __init__(self, command, environment):
        self.mark = f"TCC_TEST_JOB={time.monotonic_ns()}"
        environment = {**environment, **dict([self.mark.split("=")])}
        self.run = subprocess.Popen(command, env=environment, text=True, stdin=subprocess.DEVNULL,
                                    stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                    preexec_fn=die_with_parent)  # fmt: skip

    def __enter__(self):
        return self

    def __exit__(self, *_):
        """A launcher that ends itself takes its job along, as srun does."""
        self.run.terminate()
        wait_until(lambda: self.run.poll() is not None, seconds=5)
        for process in self.find():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.run.communicate()

    def find(self, *variables):
        """Its processes that have these variables; those that ended have none."""
        return find_with(self.mark, *variables)

    def finish(self, seconds=60):
        """Code and errors. What is left then is there by mistake."""
        try:
            err = self.run.communicate(timeout=seconds)[1]
        except subprocess.TimeoutExpired:
            return None, f"no end after {seconds} s"
        return self.run.returncode, err


def test_parity(suite, cluster):
    alone = suite.train(world=1)
    first = suite.train()
    ranks.compare(suite.tally, suite.case, first, alone)
    rows = [("mpirun", OPEN_MPI, {}), ("mpiexec", MPICH, {}),
            ("mpirun to an address", OPEN_MPI, rendezvous())]  # fmt: skip
    if cluster:
        rows += [
            ("srun", SRUN, rendezvous()),
            ("srun of Open MPI", [*SRUN, "--mpi=pmix"], {}),
            ("srun of MPICH", [*SRUN, "--mpi=pmi2"], {}),
            ("srun of MPICH to an address", [*SRUN, "--mpi=pmi2"], rendezvous()),
            ("mpiexec in a job", ["salloc", "-n", "WORLD", *MPICH], rendezvous()),
        ]
    for name, launcher, environment in rows:
        if cluster:
            environment = {**cluster.environment, **environment}
        result = suite.train(launcher, environment=environment)
        suite.tally.check(f"the same bits by {name}", ranks.are_equal(result, first))


def test_example(suite, cluster):
    """On one node, as this cluster has no two."""
    folder = suite.make_example()
    script = os.path.join(EXAMPLES, "job.sbatch")
    command = ["sbatch", "--wait", "--nodes", "1", "--ntasks-per-node", "2", "--overcommit",
               "--output", f"{folder}/log", script, folder]  # fmt: skip
    path = {"PATH": harness.BIN + os.pathsep + cluster.environment["PATH"]}
    with Job(command, {**suite.environment, **cluster.environment, **path}) as job:
        code, err = job.finish()
        with open(f"{folder}/log", encoding="utf-8") as file:
            suite.tally.check("job.sbatch", code == 0, f"{code}: {err}{file.read()}")
    result = ranks.read_run(f"{folder}/ranks", STEPS)
    suite.tally.check("the same bits by job.sbatch", ranks.are_equal(result, suite.train()))


def test_tasks_without_a_way(suite, cluster):
    """Each would write the same checkpoints."""
    with suite.begin(SRUN, "--steps", 1, environment=cluster.environment) as job:
        code, err = job.finish()
        says = "SLURM_STEP_NUM_TASKS is '2', but nothing says how these tasks of srun meet"
        suite.tally.check("srun alone", code == 2 and err.count(says) == WORLD, f"{code}: {err}")
    alone = [*SRUN, "env", "RANK=0", "WORLD_SIZE=1"]
    with suite.begin(alone, "--steps", 1, "-q", environment=cluster.environment) as job:
        code, err = job.finish()
        suite.tally.check("srun of single ranks", code == 0, f"{code}: {err}")


def wait_for_training(log):
    metrics = f"{log}/metrics.jsonl"
    wait_until(lambda: os.path.exists(metrics) and os.path.getsize(metrics))


def save_damaged(suite):
    """Rank 1 alone meets a label that there is not, at its update 6."""
    path = f"{suite.folder}/damaged.npz"
    arrays = dict(np.load(suite.case.data))
    arrays["labels"][16 * (5 * WORLD + 1) + 3] = 77
    np.savez(path, **arrays)
    return path


def check_end(suite, job, name):
    left = not wait_until(lambda: not job.find(), seconds=5)
    suite.tally.check(f"nobody left by {name}", not left, str(job.find()))


def test_failure(suite, cluster):
    """With the code of the rank, unless the launcher also counts those that it ended.

    MPICH's own is 1 where its proxy ends before it has said how ranks did.
    """
    data = save_damaged(suite)
    by_signals = {128 + signal.SIGTERM, 128 + signal.SIGKILL}
    rows = [("mpirun", OPEN_MPI, {2}, {}), ("mpiexec", MPICH, {1, 2, 9, 2 | 9}, {})]
    if cluster:
        ending = [*SRUN, "--kill-on-bad-exit"]
        rows += [
            ("srun", ending, {9, *by_signals}, rendezvous()),
            ("srun of Open MPI", [*ending, "--mpi=pmix"], by_signals, {}),
            ("srun of MPICH", [*ending, "--mpi=pmi2"], by_signals, {}),
        ]
    for name, launcher, codes, environment in rows:
        if cluster:
            environment = {**cluster.environment, **environment}
        with suite.begin(launcher, "--steps", 10**9, "-q", "--no-shuffle", data=data,
                         environment=environment) as job:  # fmt: skip
            code, err = job.finish()
            ok = code in codes and "rank 1: error: " in err and "index 77 is out of range" in err
            suite.tally.check(f"failure by {name}", ok, f"{code}: {err}")
            check_end(suite, job, name)


def test_death(suite):
    """Of either rank; with the codes that docs/ranks.md says."""
    for name, launcher, variable, wanted in (
        ("mpirun", OPEN_MPI, "OMPI_COMM_WORLD_RANK", 128 + signal.SIGKILL),
        ("mpiexec", MPICH, "PMI_RANK", signal.SIGKILL),
    ):
        for victim in range(WORLD):
            log = tempfile.mkdtemp(dir=suite.folder)
            with suite.begin(launcher, "--steps", 10**9, "-q", "--log-dir", log) as job:
                wait_for_training(log)
                (process,) = job.find(f"{variable}={victim}")
                began = time.monotonic()
                os.kill(process, signal.SIGKILL)
                code, err = job.finish()
                took = time.monotonic() - began
                suite.tally.check(f"death of {victim} by {name}", code == wanted and took < 5,
                                  f"{code} in {took:.1f} s: {err}")  # fmt: skip
                check_end(suite, job, name)


def test_threads(suite):
    """Cores are shared, unless the launcher binds ranks to cores or flags say how many."""
    cores = len(os.sched_getaffinity(0))
    free = [*OPEN_MPI[:-2], "--bind-to", "none", *OPEN_MPI[-2:]]
    for launcher, flags, threads in ((free, (), max(1, cores // WORLD)),
                                     (free, ("--threads", 3), 3)):  # fmt: skip
        with suite.begin(launcher, "--steps", 1, "-v", *flags) as job:
            code, err = job.finish()
            says = f"2 ranks by mpi, threads of this one: {threads}\n"
            suite.tally.check(f"threads {flags}", code == 0 and says in err, f"{code}: {err}")


def run_all(suite, cluster):
    test_parity(suite, cluster)
    if cluster:
        test_example(suite, cluster)
        test_tasks_without_a_way(suite, cluster)
    else:
        suite.tally.skipped += 1
    test_failure(suite, cluster)
    test_death(suite)
    test_threads(suite)


def main():
    tally = harness.Tally()
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(tally, folder)
        missing = slurm.find_missing()
        if not missing:
            with slurm.Cluster() as cluster:
                run_all(suite, cluster)
        else:
            print(f"skipped: srun, as there is no {', '.join(missing)} (tools/setup --ranks)")
            run_all(suite, None)
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
