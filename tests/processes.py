"""What suites that begin several processes share: ports, waiting, who is left."""

import ctypes
import os
import signal
import socket
import time

# What a launcher or a job may have set around the tests.
LAUNCHED = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT", "TCC_RENDEZVOUS",
            "TCC_HEARTBEAT", "TCC_COLLECTIVE_TIMEOUT")  # fmt: skip
PREFIXES = ("OMPI_", "PMI_", "PMIX_", "MPI_", "SLURM_")
ENVIRONMENT = {
    key: value
    for key, value in os.environ.items()
    if key not in LAUNCHED and not key.startswith(PREFIXES)
}


def find_free_ports(count):
    """Of this machine, different ones that nobody listens at now."""
    probes = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [probe.getsockname()[1] for probe in probes]
    for probe in probes:
        probe.close()
    return ports


def find_free_port():
    return find_free_ports(1)[0]


def wait_until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def die_with_parent():
    """However the test ends, what it began ends with it."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def is_running(process):
    """A zombie has ended: whoever began it is slow to ask."""
    try:
        with open(f"/proc/{process}/stat") as file:
            return file.read().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


def find_descendants(process):
    """Also those of launchers that begin processes of their own."""
    try:
        with open(f"/proc/{process}/task/{process}/children") as file:
            children = [int(child) for child in file.read().split()]
    except OSError:
        return []
    return children + [one for child in children for one in find_descendants(child)]


def read_environment(process):
    """Its variables, as "NAME=value"; those of one that ended are none."""
    try:
        with open(f"/proc/{process}/environ", "rb") as file:
            return set(file.read().decode(errors="replace").split("\0"))
    except OSError:
        return set()


def find_with(*variables):
    """All processes of this machine that have these variables, as "NAME=value"."""
    return [int(process) for process in filter(str.isdigit, os.listdir("/proc"))
            if set(variables) <= read_environment(process)]  # fmt: skip
