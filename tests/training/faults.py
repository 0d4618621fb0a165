"""Faults of each kind at each phase of a run by three ranks: faults.py LIBRARY [CELL...]

  faults.py LIBRARY            the default cells
  faults.py LIBRARY --long     all of them
  faults.py LIBRARY kill stop/backward

A cell is KIND/PHASE. One rank, the victim, has the fault when it comes to the place of the
phase, which the library knows that is loaded before its own (fault.cpp). Then every rank
must end in time, with the documented code and a line that names the victim, its host, the
update and the collective; nobody is left, nor shared memory, nor any file. Ranks are
processes of the test's own, as launchers would end those that do not see a loss
themselves. A cell that makes no sense says why.
"""

import concurrent.futures
import os
import re
import signal
import subprocess
import sys
import tempfile
import time

import harness
from faulty_run import Cell, Outcome, Setting
from network import ADDRESSES, Network, find_lack
from processes import wait_until

PHASES = ("rendezvous", "first", "backward", "collective", "update", "evaluation")
DEFAULT = ("kill/rendezvous", "kill/collective", "stop/backward", "segfault/update",
           "exit/collective", "hang/first", "slow/backward", "memory/evaluation",
           "package/rendezvous", "data/first", "double/rendezvous")  # fmt: skip
FAKETIME = "/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1"

ENDED, LEFT = "its process ended", "it left after an error, or without close"
MEETING = 30  # seconds until ranks must have met
AT_MEETING = Outcome(why="no word in time", least=MEETING - 3, most=MEETING + 2)


def end_alone(action, *codes, why=ENDED):
    """The victim's process ends, however."""

    def perform(cell):
        said = why
        if cell.phase == "rendezvous":
            said = "no word from rank 0" if cell.victim == 0 else "ended before all ranks had met"
        cell.check_loss(cell.begin(action), Outcome(victim=codes, why=said))

    return perform


def stop(cell):
    """Given up after the time of the heartbeat; it finds so when it goes on."""
    seconds = 10 if cell.is_long else 1
    cell.environment["TCC_HEARTBEAT"] = str(seconds)
    why = f"no word of it for {seconds} s"
    silent = Outcome(why=why, least=seconds - 0.3, most=seconds + 1)
    cell.check_loss(cell.begin("stop"), AT_MEETING if cell.phase == "rendezvous" else silent)
    victim = cell.ranks[cell.victim]
    os.kill(victim.run.pid, signal.SIGCONT)
    ended = victim.await_end(time.monotonic() + 5)
    cell.check("code of the victim", ended and victim.code == 9, f"{victim.code}: {victim.err}")


def slow(cell):
    """For longer than the time of the heartbeat, and nobody is lost."""
    cell.environment["TCC_HEARTBEAT"] = "1"
    cell.keep_all()
    cell.check_done(cell.begin("slow"))


def hang(cell):
    """It says that it is there, and never comes."""
    cell.environment["TCC_COLLECTIVE_TIMEOUT"] = "1"
    since, within = cell.begin("hang"), Outcome(least=5.9, most=8)
    behind = Outcome(why="others waited for it for 1 s .*", least=0.9, most=2.5)
    if cell.phase == "collective":  # it looks like one that waits for the others
        cell.check_ends(since, within)
    else:
        cell.check_loss(since, AT_MEETING if cell.phase == "rendezvous" else behind)
    cell.ranks[cell.victim].kill()


def fill(path):
    with open(path, "wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(4096))
        except OSError:
            pass


def disk(cell):
    """Of rank 0, which alone writes: from the checkpoint of the update under way on all fail, and
    with the third one in a row the run ends at all ranks."""
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", cell.run], check=True)
    try:
        cell.keep("--checkpoint-every", "1")
        since = cell.begin("wait")
        fill(f"{cell.run}/full")
        cell.release()
        update = cell.setting.find_update(max(cell.sum, 1) - (cell.phase == "update")) + 2
        cell.check_ends(since, Outcome(victim=(5,), others=5, most=2))
        # One that is full before the run begins has no room for its lock. The save of the
        # update before may still be under way; saves that take longer than updates are fewer.
        named = "(lock)()" if cell.phase == "rendezvous" else r"(step-(\d+))"
        for rank in cell.ranks:
            found = re.search(f"{re.escape(cell.run)}/{named}", rank.err)
            said = found and int(found[2] or update) >= update - 1 and "No space left" in rank.err
            cell.check("line of a rank", said, rank.err)
        os.remove(f"{cell.run}/full")
        cell.check_remains()
    finally:
        subprocess.run(["umount", cell.run], check=True)


def network(cell):
    """The victim is on a host of its own, whose cable is cut: each side gives up the other."""
    meets = cell.phase == "rendezvous"
    silent = Outcome(victim=(9,), why="no word of it for 10 s", least=9.5, most=11.5)
    with Network(cell.folder) as hosts:
        cell.enter = {rank: hosts[rank == cell.victim].enter for rank in range(3)}
        cell.address = f"{ADDRESSES[0]}:29555"
        since = cell.begin("wait")
        hosts[0].switch_cable("down")
        cell.release()
        outcome = AT_MEETING._replace(victim=(9,)) if meets else silent
        cell.check_ends(since, outcome)
        for rank in cell.others():
            cell.check_blame(rank, cell.victim, outcome.why, host="b")
        if not meets:
            cell.check_blame(cell.victim, 0, silent.why, host="a")


def check_refusal(cell, says):
    """All ranks say it at once."""
    cell.check_ends(cell.begin(), Outcome(victim=(2,), others=2, most=2))
    for rank, process in enumerate(cell.ranks):
        ok = process.err == f"tcc-run: rank {rank}: error: {says}\n"
        cell.check(f"line of rank {rank}", ok, process.err)


def package(cell):
    cell.package = {cell.victim: cell.setting.other_package}
    check_refusal(cell, f"rank {cell.victim or 1} has another package than rank 0")


def data(cell):
    """Another number of samples, or a wrong label in the first batch."""
    if cell.phase == "rendezvous":
        cell.data = {cell.victim: cell.setting.short}
        says = f"rank {cell.victim or 1} has another number of samples or steps than rank 0"
        return check_refusal(cell, says)
    cell.data = {cell.victim: cell.setting.damaged[cell.victim]}
    cell.check_loss(cell.begin(), Outcome(victim=(2,), why=LEFT, most=2))
    said = cell.ranks[cell.victim].err
    cell.check("line of the victim", "index 77 is out of range" in said, said)
    return None


def clock(cell):
    """The victim's clock of the day jumps by an hour."""
    file, hour = f"{cell.folder}/clock", 3600 * (-1) ** cell.victim
    with open(file, "w", encoding="utf-8") as words:
        words.write("+0\n")
    cell.own = {"LD_PRELOAD": f"{cell.setting.library} {FAKETIME}", "FAKETIME_NO_CACHE": "1",
                "FAKETIME_DONT_FAKE_MONOTONIC": "1", "FAKETIME_TIMESTAMP_FILE": file}  # fmt: skip
    cell.keep_all()
    since = cell.begin("wait")
    with open(file, "w", encoding="utf-8") as words:
        words.write(f"{hour:+}\n")
    cell.release()
    cell.check_done(since)
    with open(f"{cell.reached}.day", encoding="utf-8") as words:
        jumped = int(words.read()) - time.time()
    cell.check("the clock jumped", abs(jumped - hour) < 60, str(jumped))


def double(cell):
    """Another process is the victim, too; the run goes on."""
    cell.keep_all()
    since = cell.begin("wait")
    twin = cell.begin_rank(cell.victim)
    if cell.phase == "rendezvous":
        wait_until(lambda: twin.end)
    cell.release()
    cell.check_done(since)
    cell.ranks.append(twin)
    ended = twin.await_end(since + MEETING + 5)
    taken = "cannot listen" if cell.victim == 0 else f"another process is rank {cell.victim}, too"
    late = "rank 1 of 3 did not come" if cell.victim == 0 else "there is no rank 0 at"
    code, says, most = (9, late, MEETING + 2)
    if cell.phase == "rendezvous":
        code, says, most = (2, taken, 1)
    took = (twin.end or time.monotonic()) - since
    ok = ended and twin.code == code and says in twin.err and took < most
    cell.check("the twin", ok, f"{twin.code} after {took:.1f} s: {twin.err}")


KINDS = {
    "kill": end_alone("kill", -signal.SIGKILL),
    "stop": stop,
    "segfault": end_alone("segfault", -signal.SIGSEGV),
    "exit": end_alone("exit", 3),
    "slow": slow,
    "hang": hang,
    "disk": disk,
    "network": network,
    "package": package,
    "data": data,
    "clock": clock,
    "memory": end_alone("memory", 7, 9, -signal.SIGABRT, why=f"({ENDED}|{LEFT})"),
    "double": double,
}
COMPARED = "ranks compare packages before the first step"
READ = "a batch is read, and its labels are looked up, before anything else of a step"
REFUSED = {
    "disk/evaluation": "an evaluation writes no file",
    **{f"package/{phase}": COMPARED for phase in PHASES[1:5]},
    **{f"data/{phase}": READ for phase in PHASES[2:5]},
}
VICTIMS = {"disk": 0, "network": 2}  # which rank writes, and is on a host of its own


def is_waiting(name):
    """Such cells wait for most of their time, and several at a time disturb nobody."""
    kind, phase = name.split("/")
    return kind in ("stop", "network", "double") or name == "hang/rendezvous"


def run_cell(setting, name, is_long):
    kind, phase = name.split("/")
    if kind == "network" and find_lack():
        setting.tally.skipped += 1
        return print(f"{name}: skipped, as there is no {find_lack()}")
    if kind == "clock" and not os.path.exists(FAKETIME):
        setting.tally.skipped += 1
        return print(f"{name}: skipped, as there is no faketime (tools/setup --ranks)")
    victim = VICTIMS.get(kind, (list(KINDS).index(kind) + PHASES.index(phase)) % 3)
    cell = Cell(setting, name, victim, is_long)
    began = time.monotonic()
    try:
        KINDS[kind](cell)
        cell.check_remains()
    except harness.Failure as failure:
        cell.check("runs", False, str(failure))
    finally:
        cell.close()
    return print(f"{name}: victim {victim}, {time.monotonic() - began:.1f} s, ranks ended after "
                 f"{cell.longest:.2f} s", flush=True)  # fmt: skip


def choose(words):
    """Names of cells, and of those that are refused."""
    every = [f"{kind}/{phase}" for kind in KINDS for phase in PHASES]
    if "--long" in words:
        return every
    chosen = [name for name in every if name in words or name.split("/")[0] in words]
    return chosen or list(DEFAULT)


def main(library, *words):
    tally, is_long, names = harness.Tally(), "--long" in words, choose(words)
    with tempfile.TemporaryDirectory() as folder:
        setting = Setting(folder, os.path.abspath(library), tally)
        for name in names:
            if name in REFUSED:
                print(f"{name}: refused: {REFUSED[name]}")
        cells = [name for name in names if name not in REFUSED]
        with concurrent.futures.ThreadPoolExecutor(4 if is_long else 1) as pool:
            waiting = [name for name in cells if is_waiting(name)]
            for done in [pool.submit(run_cell, setting, name, is_long) for name in waiting]:
                done.result()
        for name in cells:
            if not is_waiting(name):
                run_cell(setting, name, is_long)
    tally.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
