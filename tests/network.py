"""Two hosts, which are namespaces of this machine that are joined by a cable. Needs root."""

import shutil
import subprocess

import harness
from processes import die_with_parent

NAMES = ("a", "b")
ADDRESSES = ("10.77.0.1", "10.77.0.2")
SPACES = ("--net", "--uts", "--mount")
BEGIN = 'hostname "$0" && mount --bind "$1" /etc/hosts && ip link set lo up && echo ready && read _'


def find_lack():
    """What there is not that hosts need, or nothing."""
    for program in ("ip", "nsenter", "unshare"):
        if not shutil.which(program):
            return program
    done = subprocess.run(["unshare", *SPACES, "true"], capture_output=True)
    return "right to make namespaces" if done.returncode else ""


class Host:
    """It has a name, which the other knows, an address and a loopback of its own."""

    def __init__(self, name, address, table):
        self.name, self.address = name, address
        self.holder = subprocess.Popen(["unshare", *SPACES, "sh", "-c", BEGIN, name, table],
                                       stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
                                       preexec_fn=die_with_parent)  # fmt: skip
        if self.holder.stdout.readline() != "ready\n":
            raise harness.Failure(f"host {self.name} does not begin")
        self.enter = ["nsenter", "--target", str(self.holder.pid), *SPACES]

    def call(self, *command):
        subprocess.run([*self.enter, *command], check=True)

    def switch_cable(self, state):
        self.call("ip", "link", "set", "cable", state)

    def close(self):
        self.holder.stdin.close()
        self.holder.wait()


class Network:
    """Its hosts, as long as it is entered."""

    def __init__(self, folder):
        self.table, self.hosts = f"{folder}/hosts", []
        with open(self.table, "w", encoding="utf-8") as file:
            file.write("127.0.0.1 localhost\n")
            file.writelines(f"{place} {name}\n" for name, place in zip(NAMES, ADDRESSES))

    def __enter__(self):
        try:
            for name, address in zip(NAMES, ADDRESSES):
                self.hosts.append(Host(name, address, self.table))
            self.connect()
        except BaseException:
            self.__exit__()
            raise
        return self.hosts

    def connect(self):
        """Both ends are made where they belong: the machine itself has none of it."""
        here, there = (str(host.holder.pid) for host in self.hosts)
        subprocess.run(["ip", "link", "add", "cable", "netns", here, "type", "veth", "peer",
                        "name", "cable", "netns", there], check=True)  # fmt: skip
        for host in self.hosts:
            host.call("ip", "address", "add", f"{host.address}/24", "dev", "cable")
            host.switch_cable("up")

    def __exit__(self, *_):
        for host in self.hosts:
            host.close()
