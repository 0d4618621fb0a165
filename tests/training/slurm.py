"""A Slurm cluster of this machine alone, for as long as a test needs it."""

import os
import pwd
import secrets
import shutil
import socket
import subprocess
import tempfile

import harness
from processes import die_with_parent, find_free_ports, wait_until

# Each is of a package that `tools/setup --ranks` installs.
PROGRAMS = ("munged", "slurmctld", "slurmd", "sinfo", "srun")

CONFIGURATION = """
ClusterName=tcc
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={controller_port}
SlurmdPort={node_port}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SwitchType=switch/none
MpiDefault=none
ReturnToService=2
KillWait=1
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
NodeName={host} NodeAddr=127.0.0.1 CPUs=2
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""

PATH = os.environ["PATH"] + ":/usr/sbin:/sbin"


def find_missing():
    return [name for name in PROGRAMS if not shutil.which(name, path=PATH)]


class Cluster:
    """Daemons, key, ports and state are its own. `environment` leads srun to it."""

    def __init__(self):
        self.folder = tempfile.mkdtemp(prefix="tcc-slurm-")
        self.daemons = []
        self.environment = {"SLURM_CONF": f"{self.folder}/slurm.conf", "PATH": PATH}

    def __enter__(self):
        try:
            self.configure()
            self.begin_munge()
            host = socket.gethostname().split(".")[0]
            self.begin("slurmctld", "-D")
            self.begin("slurmd", "-D", "-N", host)
            self.wait_for("a node", self.is_idle)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_):
        """The first one began last. A daemon waits for what it began itself."""
        for daemon in reversed(self.daemons):
            daemon.terminate()
            try:
                daemon.wait(10)
            except subprocess.TimeoutExpired:
                daemon.kill()
                daemon.wait()
        shutil.rmtree(self.folder, ignore_errors=True)  # a step may still write

    def configure(self):
        os.chmod(self.folder, 0o755)  # as munged asks of the folder of its socket
        for name in ("state", "spool"):
            os.mkdir(f"{self.folder}/{name}")
        key = os.open(f"{self.folder}/munge.key", os.O_CREAT | os.O_WRONLY, 0o600)
        os.write(key, secrets.token_bytes(128))
        os.close(key)
        controller_port, node_port = find_free_ports(2)
        values = {"host": socket.gethostname().split(".")[0], "user": pwd.getpwuid(os.getuid()).pw_name,
                  "controller_port": controller_port, "node_port": node_port}  # fmt: skip
        with open(f"{self.folder}/slurm.conf", "w", encoding="utf-8") as file:
            file.write(CONFIGURATION.format(folder=self.folder, **values))

    def begin(self, *command):
        with open(f"{self.folder}/{command[0]}.log", "wb") as log:
            self.daemons.append(
                subprocess.Popen(command, env={**os.environ, **self.environment}, stdout=log,
                                 stderr=log, preexec_fn=die_with_parent))  # fmt: skip

    def begin_munge(self):
        def option(name):
            return f"--{name}-file={self.folder}/munge.{name}"

        socket_path = f"{self.folder}/munge.socket"
        self.begin("munged", "--foreground", f"--socket={socket_path}", option("key"),
                   option("seed"), option("pid"))  # fmt: skip
        self.wait_for("munged", lambda: os.path.exists(socket_path))

    def is_idle(self):
        done = subprocess.run(["sinfo", "--noheader", "-o", "%T"], capture_output=True, text=True,
                              env={**os.environ, **self.environment})  # fmt: skip
        return done.stdout.strip() == "idle"

    def has_lost_daemon(self):
        return any(daemon.poll() is not None for daemon in self.daemons)

    def wait_for(self, what, condition):
        wait_until(lambda: self.has_lost_daemon() or condition())
        if self.has_lost_daemon() or not condition():
            raise harness.Failure(f"there is not {what} of Slurm:\n{self.read_logs()}")

    def read_logs(self):
        lines = []
        for name in ("munged", "slurmctld", "slurmd"):
            path = f"{self.folder}/{name}.log"
            if os.path.exists(path):
                with open(path, encoding="utf-8", errors="replace") as file:
                    lines += [f"{name}: {line}" for line in file.read().splitlines()[-10:]]
        return "\n".join(lines)
