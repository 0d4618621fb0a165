"""Ranks on two hosts, namespaces that are joined by a cable: hosts.py

What torchrun, mpirun and scripts begin on both trains to the bits of two ranks on one
host.
"""

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile

import harness
import launchers
import ranks
import restarts
from network import ADDRESSES, NAMES, Network, find_lack

PORT = 29500  # of a host of its own


def finish_both(suite, name, begin):
    """What begin(host) began on each host."""
    with contextlib.ExitStack() as stack:
        jobs = [stack.enter_context(begin(index)) for index in range(2)]
        for index, job in enumerate(jobs):
            code, err = job.finish()
            suite.tally.check(f"{name} on {NAMES[index]}", code == 0, f"{code}: {err}")


def train_on_both(suite, hosts, name, launchers_of_hosts):
    """What rank 0 wrote."""
    log = tempfile.mkdtemp(dir=suite.folder)
    flags = ["--steps", launchers.STEPS, "--log-dir", log, "--checkpoint-dir", log, "--threads", 1]

    def begin(index):
        launcher, environment = launchers_of_hosts[index]
        return suite.begin([*hosts[index].enter, *launcher], *flags, environment=environment)

    finish_both(suite, name, begin)
    return ranks.read_run(log, launchers.STEPS)


def train_example(suite, hosts):
    folder = suite.make_example()
    script = os.path.join(launchers.EXAMPLES, "torchrun.sh")
    tools = os.pathsep.join((harness.BIN, os.path.dirname(restarts.TORCHRUN), os.environ["PATH"]))

    def begin(index):
        command = [*hosts[index].enter, script, folder, hosts[0].address]
        return launchers.Job(command, {**suite.environment, "PATH": tools})

    finish_both(suite, "torchrun.sh", begin)
    return ranks.read_run(f"{folder}/ranks", launchers.STEPS)


def list_launchers(hosts):
    """Of each host one."""
    yield "torchrun", [
        (restarts.torchrun("--nnodes", "2", "--node-rank", str(rank), "--master-addr",
                           hosts[0].address, "--master-port", str(PORT)), {})
        for rank in range(2)
    ]  # fmt: skip
    place = {"TCC_RENDEZVOUS": f"{hosts[0].address}:{PORT}", "WORLD_SIZE": "2"}
    yield "script", [([], {**place, "RANK": str(rank)}) for rank in range(2)]


def save_agent(suite, hosts):
    """What mpirun and mpiexec call in place of ssh: AGENT [-x] ADDRESS COMMAND."""
    path = f"{suite.folder}/agent"
    rows = [
        f"{host.address}) shift; exec {' '.join(host.enter)} sh -c \"$*\" ;;" for host in hosts
    ]
    with open(path, "w", encoding="utf-8") as file:
        file.write('#!/bin/sh\n[ "$1" = -x ] && shift\ncase $1 in\n')
        file.write("\n".join(rows) + "\nesac\nexit 1\n")
    os.chmod(path, 0o755)
    return path


def test_parity(suite, hosts):
    first = suite.train()
    for name, of_hosts in list_launchers(hosts):
        result = train_on_both(suite, hosts, name, of_hosts)
        suite.tally.check(f"the same bits by {name}", ranks.are_equal(result, first))
    result = train_example(suite, hosts)
    suite.tally.check("the same bits by torchrun.sh", ranks.are_equal(result, first))
    agent, places = save_agent(suite, hosts), ",".join(f"{host.address}:1" for host in hosts)
    for launcher in (
        ["mpirun.openmpi", "--allow-run-as-root", "--mca", "plm_rsh_agent", agent, "--host"],
        ["mpiexec.mpich", "-launcher", "ssh", "-launcher-exec", agent, "-hosts"],
    ):
        begin = [*hosts[0].enter, *launcher, places]
        names = subprocess.run([*begin, "hostname"], capture_output=True, text=True,
                               env=suite.environment)  # fmt: skip
        suite.tally.check(f"hosts of {launcher[0]}", sorted(names.stdout.split()) == ["a", "b"],
                          names.stdout + names.stderr)  # fmt: skip
        result = suite.train(begin)
        suite.tally.check(f"the same bits by {launcher[0]}", ranks.are_equal(result, first))


def test_cut(suite, hosts):
    """Nothing tells a rank that the cable is out but that nobody is heard of."""
    log = tempfile.mkdtemp(dir=suite.folder)
    place = {"TCC_RENDEZVOUS": f"{ADDRESSES[0]}:{PORT}", "WORLD_SIZE": "2", "TCC_HEARTBEAT": "1"}
    flags = ["--steps", 10**9, "-q", "--log-dir", log]
    with contextlib.ExitStack() as stack:
        jobs = [
            stack.enter_context(suite.begin(host.enter, *flags, environment={**place, "RANK": rank}))
            for rank, host in zip("01", hosts)
        ]
        launchers.wait_for_training(log)
        hosts[1].switch_cable("down")
        for host, job in zip(hosts, jobs):
            code, err = job.finish(seconds=20)
            other = NAMES[host is hosts[0]]
            ok = code == 9 and f"(host {other}) was lost: no word of it" in err
            suite.tally.check(f"cut from {host.name}", ok, f"{code}: {err}")
    hosts[1].switch_cable("up")


def main():
    tally = harness.Tally()
    lacks = find_lack() or ("" if shutil.which(restarts.TORCHRUN) else "torchrun")
    if lacks:
        print(f"skipped: there is no {lacks}, which two hosts need (tools/setup --ranks --exports)")
        tally.skipped += 1
        tally.close()
    with tempfile.TemporaryDirectory() as folder, Network(folder) as hosts:
        suite = launchers.Suite(tally, folder)
        test_parity(suite, hosts)
        test_cut(suite, hosts)
    tally.close()


if __name__ == "__main__":
    sys.exit(main())
