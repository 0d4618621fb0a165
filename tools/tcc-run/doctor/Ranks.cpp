#include "tools/tcc-run/doctor/Check.h"
#include "tools/tcc-run/doctor/Groups.h"
#include "tools/tcc-run/doctor/Text.h"

#include <algorithm>
#include <sys/resource.h>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::tools;
using namespace tcc::tools::doctor;

static constexpr uint64_t kMiB = uint64_t(1) << 20;

static Finding examineShared(const Machine &machine) {
  constexpr char kFolder[] = "/dev/shm";
  auto space = machine.calls.space(kFolder);
  if (!space.ok())
    return unknown(space.takeStatus());
  std::string found = concat(nameBytes(space->free), " of ",
                             nameBytes(space->total), " free in ", kFolder);
  constexpr uint64_t kEnough = 256 * kMiB; // some 10 MiB a channel of NCCL
  if (space->free >= kEnough)
    return ok(found);
  if (space->total >= kEnough)
    return warning(found, "remove what ended programs left there",
                   concat("ls -l ", kFolder));
  return warning(found, "give the container more; without one, mount more",
                 "docker run --shm-size=1g IMAGE");
}

/// The largest of the three numbers by which TCP sizes a socket's buffer.
static Result<int64_t> readTcp(const Machine &machine, const char *name) {
  std::string path = concat("/proc/sys/net/ipv4/", name);
  auto text = machine.read(path);
  if (!text.ok())
    return text.takeStatus();
  auto numbers = parseIntegers(*text, 3);
  if (!numbers || numbers->size() != 3)
    return unexpected(path, *text, "three whole numbers");
  return numbers->back();
}

/// TCP sizes buffers by itself; those who ask for a size get no more than
/// rmem_max and wmem_max.
static Finding examineSockets(const Machine &machine) {
  auto received = readTcp(machine, "tcp_rmem");
  if (!received.ok())
    return unknown(received.takeStatus());
  auto sent = readTcp(machine, "tcp_wmem");
  if (!sent.ok())
    return unknown(sent.takeStatus());
  std::string found = concat("TCP receives into ", nameBytes(*received),
                             ", sends from ", nameBytes(*sent));
  // 25 Gbit/s for 1 ms are 3 MiB.
  constexpr int64_t kEnough = 4 * kMiB, kDefault = 212992;
  const std::string set = machine.asRoot(
      "sysctl -w net.ipv4.tcp_rmem='4096 131072 33554432' "
      "net.ipv4.tcp_wmem='4096 65536 33554432' net.core.rmem_max=33554432 "
      "net.core.wmem_max=33554432");
  const char *advice = "let buffers hold what is on the way between hosts";
  for (const char *name : {"rmem_max", "wmem_max"}) {
    auto most = machine.readInteger(concat("/proc/sys/net/core/", name));
    if (!most.ok())
      return unknown(most.takeStatus());
    found += concat(", ", name, " ", nameBytes(*most));
    if (*most < kDefault)
      return warning(found, advice, set);
  }
  if (*received < kEnough || *sent < kEnough)
    return warning(found, advice, set);
  return ok(found);
}

static Finding examineLocked(const Machine &machine) {
  auto limit = machine.calls.limit(RLIMIT_MEMLOCK);
  if (!limit.ok())
    return unknown(limit.takeStatus());
  std::string found = limit->soft == kUnlimited ? std::string("unlimited")
                                                : nameBytes(limit->soft);
  if (limit->soft == kUnlimited)
    return ok(found);
  std::vector<std::string> cards = machine.list("/sys/class/infiniband");
  if (cards.empty())
    return ok(found + "; the CUDA driver pins without it, and there is no "
                      "InfiniBand");
  return problem(concat(found, ", with ", cards.front()),
                 "allow all: NCCL and MPI register memory with InfiniBand; of "
                 "a container by docker run --ulimit memlock=-1",
                 "ulimit -l unlimited");
}

static Finding examineProcesses(const Machine &machine) {
  auto cpus = machine.countCpus();
  if (!cpus.ok())
    return unknown(cpus.takeStatus());
  auto limit = machine.calls.limit(RLIMIT_NPROC);
  if (!limit.ok())
    return unknown(limit.takeStatus());
  auto group = findLimit(machine, {"pids", "pids.max", "pids.max"});
  if (!group.ok())
    return unknown(group.takeStatus());
  auto all = machine.readInteger("/proc/sys/kernel/threads-max");
  if (!all.ok())
    return unknown(all.takeStatus());
  auto least = static_cast<uint64_t>(std::max<int64_t>(*all, 0));
  std::string by = "the system";
  if (*group && (*group)->most < least) {
    least = (*group)->most;
    by = concat("'", (*group)->group, "'");
  }
  if (limit->soft < least && !machine.calls.isRoot()) { // root has no limit
    least = limit->soft;
    by = "the user's limit";
  }
  std::string found = concat(least, " threads by ", by);
  // Ranks, loaders and their transports, each with a thread for a CPU.
  uint64_t enough = 256 + 8 * static_cast<uint64_t>(*cpus);
  if (least >= enough)
    return ok(found);
  return warning(
      found, concat("allow ", enough, " or more"),
      by == "the user's limit"
          ? concat("ulimit -u ", enough)
          : concat("docker run --pids-limit=", 4 * enough, " IMAGE"));
}

static Finding examineTime(const Machine &machine) {
  auto state = machine.calls.clock();
  if (!state.ok())
    return unknown(state.takeStatus());
  if (!state->isSynchronized)
    return warning("not synchronized by this kernel",
                   "have it follow a server, unless a host does that",
                   machine.asRoot("timedatectl set-ntp true"));
  std::string found =
      concat("synchronized, within ",
             nameNumber(static_cast<double>(state->maxErrorMicroseconds) / 1e3),
             " ms");
  constexpr int64_t kFar = 1000000;
  if (state->maxErrorMicroseconds <= kFar)
    return ok(found);
  return warning(found, "see whether its server answers", "timedatectl status");
}

static constexpr Check kChecks[] = {
    {"shared memory",
     "NCCL and MPI pass sums between ranks of a machine "
     "through it",
     examineShared},
    {"socket buffers", "small ones keep gradients from filling a fast network",
     examineSockets},
    {"locked memory", "InfiniBand moves only what is locked", examineLocked},
    {"threads allowed", "a run that gets no more threads is slower or ends",
     examineProcesses},
    {"system time",
     "logs and traces of several hosts are compared by it; "
     "ranks are not timed by it",
     examineTime},
};

std::span<const Check> doctor::rankChecks() { return kChecks; }
