#include "tools/tcc-run/Ranks.h"

#include "runtime/package/Digest.h"
#include "runtime/ranks/Cores.h"
#include "runtime/ranks/FreePort.h"
#include "tools/tcc-run/Session.h"
#include "tools/tcc-run/Signals.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <optional>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;

static constexpr char kHost[] = "127.0.0.1";
/// The process of `tcc-run --ranks` that began a rank.
static constexpr char kLauncher[] = "TCC_LAUNCHER";
static constexpr int kPeer = static_cast<int>(Code::Peer);

// Several processes write to one stderr: a line is one write.

//===----------------------------------------------------------------------===//
// A rank
//===----------------------------------------------------------------------===//

Status tools::joinRanks(const RunningOptions &options, Ranks &ranks) {
  ranks.threads = options.threads;
  ranks.cpus = defaultThreadCount();
  Result<Launch> launch = readLaunch();
  if (!launch.ok())
    return launch.takeStatus();
  ranks.launch = std::move(*launch);
  if (ranks.launch.size == 1)
    return Status();
  Result<Patience> patience = readPatience();
  if (!patience.ok())
    return patience.takeStatus();
  auto communicator = openCommunicator(ranks.launch, *patience);
  if (!communicator.ok())
    return communicator.takeStatus();
  ranks.communicator = std::move(*communicator);
  Result<int> share = shareCores(*ranks.communicator);
  if (!share.ok())
    return share.takeStatus();
  ranks.cpus = *share;
  if (ranks.threads == 0)
    ranks.threads = *share;
  if (!ranks.isFirst())
    return Status();
  if (options.verbose)
    std::cerr << concat("tcc-run: ", ranks.launch.size, " ranks by ",
                        ranks.communicator->name(),
                        ", threads of this one: ", ranks.threads, "\n");
  if (std::string_view note = ranks.communicator->note(); !note.empty())
    std::cerr << concat("tcc-run: note: ", note, "\n");
  return Status();
}

Status tools::compareFlags(const Ranks &ranks, const std::string &flags) {
  if (!ranks.communicator)
    return Status();
  return ranks.communicator->compare(digestOf(std::as_bytes(std::span(flags))),
                                     "other flags");
}

RunningOptions tools::ofRank(const Ranks &ranks, RunningOptions options) {
  options.threads = ranks.threads;
  options.localRank = ranks.launch.localRank;
  options.silent = options.quiet;
  if (ranks.isFirst())
    return options;
  options.quiet = true;
  options.json = options.verbose = false;
  return options;
}

/// All ranks find the same numbers not finite.
Status tools::endTogether(const Ranks &ranks, Status status) {
  bool isOfAll = status.ok() || status.code() == Code::Numerics;
  if (!ranks.communicator || !isOfAll)
    return status;
  Status ended = ranks.communicator->close();
  return status.ok() ? std::move(ended) : std::move(status);
}

static std::string reportPath(const Ranks &ranks, const std::string &logDir,
                              const char *extension) {
  return concat(logDir, "/rank-", ranks.launch.rank, extension);
}

/// The flight recorder, a collective a line; seconds since ranks met.
static void writeCollectives(const Communicator &ranks,
                             const std::string &path) {
  constexpr auto kReplace = nlohmann::ordered_json::error_handler_t::replace;
  std::ofstream file(path);
  for (const CollectiveCall &call : ranks.collectives()) {
    nlohmann::ordered_json line = {{"number", call.number},
                                   {"step", call.step},
                                   {"kind", nameOf(call.kind)},
                                   {"of", call.of},
                                   {"count", call.count},
                                   {"dtype", traitsOf(call.dtype).name},
                                   {"begin", double(call.begin) * 1e-9}};
    if (call.end >= 0)
      line["end"] = double(call.end) * 1e-9;
    file << line.dump(-1, ' ', false, kReplace) << '\n';
  }
}

static void writeReports(const std::string &line, const Ranks &ranks,
                         const std::string &logDir) {
  std::error_code error;
  std::filesystem::create_directories(logDir, error);
  if (!ranks.isFirst())
    std::ofstream(reportPath(ranks, logDir, ".log")) << line;
  if (ranks.communicator)
    writeCollectives(*ranks.communicator, reportPath(ranks, logDir, ".jsonl"));
}

/// MPI's launchers end all once one ended, before they have said why; and Open
/// MPI's ends with the code of the first, which is to be none of those that
/// fail because of another rank.
static void awaitTheOther(const Status &status, const Ranks &ranks) {
  constexpr std::chrono::milliseconds kPause(500);
  if (status.code() == Code::Peer &&
      ranks.launch.transport != TransportKind::Gloo)
    std::this_thread::sleep_for(kPause);
}

int tools::reportOfRank(const Status &status, const Ranks &ranks,
                        const std::string &logDir) {
  if (status.ok() || ranks.launch.size == 1)
    return report(status);
  std::string line = concat("tcc-run: rank ", ranks.launch.rank,
                            ": error: ", status.message(), "\n");
  std::cerr << line;
  if (!logDir.empty())
    writeReports(line, ranks, logDir);
  awaitTheOther(status, ranks);
  return static_cast<int>(status.code());
}

void tools::removeReports(const Ranks &ranks, const std::string &logDir) {
  std::error_code error;
  if (logDir.empty() || ranks.launch.size == 1)
    return;
  for (const char *extension : {".log", ".jsonl"})
    std::filesystem::remove(reportPath(ranks, logDir, extension), error);
}

//===----------------------------------------------------------------------===//
// All ranks of this machine
//===----------------------------------------------------------------------===//

namespace {

/// The ranks that were begun, and how they ended.
class Children {
public:
  Status start(int count, char **argv);
  int wait();

private:
  using Clock = std::chrono::steady_clock;

  bool reap();
  void take();
  void note(int rank, int how);
  void send(int signal);

  std::vector<pid_t> running; ///< of each rank; 0 once it ended
  std::optional<int> ownFailure;
  bool haveFailed = false;
  bool areEnded = false; ///< by us
  int passedOn = 0;      ///< the signal to stop that they were sent
};

} // namespace

/// What the launcher waits for.
static sigset_t makeSignals() {
  sigset_t signals;
  sigemptyset(&signals);
  for (int signal : {SIGCHLD, SIGTERM, SIGINT, SIGUSR1})
    sigaddset(&signals, signal);
  return signals;
}

/// Ends with its parent, however that ends.
[[noreturn]] static void becomeRank(char *const *argv, pid_t parent) {
  sigset_t signals = makeSignals();
  sigprocmask(SIG_UNBLOCK, &signals, nullptr);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() == parent)
    execv("/proc/self/exe", argv);
  _exit(static_cast<int>(Code::Internal));
}

Status Children::start(int count, char **argv) {
  Result<uint16_t> port = findFreePort(kHost);
  if (!port.ok())
    return port.takeStatus();
  auto set = [](const char *name, const std::string &value) {
    setenv(name, value.c_str(), /*overwrite=*/1);
  };
  set("WORLD_SIZE", std::to_string(count));
  set("TCC_RENDEZVOUS", concat(kHost, ":", *port));
  set(kLauncher, std::to_string(getpid()));
  signal(SIGCHLD, SIG_DFL); // it may be ignored, and then nothing is told
  sigset_t signals = makeSignals();
  sigprocmask(SIG_BLOCK, &signals, nullptr);
  pid_t parent = getpid();
  for (int rank = 0; rank < count; ++rank) {
    set("RANK", std::to_string(rank));
    set("LOCAL_RANK", std::to_string(rank));
    pid_t child = fork();
    if (child == 0)
      becomeRank(argv, parent);
    if (child < 0) {
      Status status = makeError(Code::OutOfMemory, "cannot begin rank ", rank,
                                ": ", std::strerror(errno));
      send(SIGKILL);
      return status;
    }
    running.push_back(child);
  }
  return Status();
}

void Children::send(int signal) {
  for (pid_t child : running)
    if (child > 0)
      kill(child, signal);
}

void Children::note(int rank, int how) {
  if (WIFEXITED(how) && WEXITSTATUS(how) == 0)
    return;
  haveFailed = true;
  bool wasAsked = WIFSIGNALED(how) && WTERMSIG(how) == passedOn;
  if (WIFSIGNALED(how) && !areEnded && !wasAsked)
    std::cerr << concat("tcc-run: error: rank ", rank, " was ended by signal ",
                        WTERMSIG(how), " (", strsignal(WTERMSIG(how)), ")\n");
  bool isOwn = WIFEXITED(how) && WEXITSTATUS(how) != kPeer;
  if ((isOwn || wasAsked) && !ownFailure)
    ownFailure = isOwn ? WEXITSTATUS(how) : kSignalled + passedOn;
}

/// False if none has ended.
bool Children::reap() {
  int how = 0;
  pid_t ended = waitpid(-1, &how, WNOHANG);
  for (size_t rank = 0; rank < running.size(); ++rank)
    if (ended > 0 && running[rank] == ended) {
      running[rank] = 0;
      note(static_cast<int>(rank), how);
    }
  return ended > 0;
}

/// Waits until a rank ends or a signal comes. What a terminal sends the ranks
/// have, too.
void Children::take() {
  siginfo_t info = {};
  sigset_t signals = makeSignals();
  int signal = sigwaitinfo(&signals, &info);
  while (reap())
    continue;
  if (signal < 0 || signal == SIGCHLD)
    return;
  if (signal != SIGUSR1)
    passedOn = signal;
  if (info.si_code != SI_KERNEL)
    send(signal);
}

/// What others say of one that failed comes within the first pause.
int Children::wait() {
  constexpr std::chrono::seconds kPause(2);
  constexpr std::chrono::milliseconds kLook(10);
  auto areRunning = [&] {
    return std::ranges::any_of(running, [](pid_t child) { return child > 0; });
  };
  while (areRunning() && !haveFailed)
    take();
  for (int signal : {SIGTERM, SIGKILL}) {
    Clock::time_point end = Clock::now() + kPause;
    while (areRunning() && Clock::now() < end)
      if (!reap())
        std::this_thread::sleep_for(kLook);
    areEnded |= areRunning();
    send(signal);
    // One that is stopped takes it only then.
    if (signal == SIGTERM)
      send(SIGCONT);
  }
  while (areRunning())
    if (!reap())
      std::this_thread::sleep_for(kLook);
  return ownFailure.value_or(haveFailed ? kPeer : 0);
}

bool tools::isLaunched() {
  const char *launcher = getenv(kLauncher);
  return launcher && launcher == std::to_string(getppid());
}

int tools::launchRanks(int count, char **argv) {
  Result<Launch> launch = readLaunch();
  if (!launch.ok())
    return report(launch.takeStatus());
  if (launch->size > 1)
    return report(makeError(Code::Usage, "--ranks: this is rank ", launch->rank,
                            " of ", launch->size,
                            " already, as the environment says"));
  Children children;
  if (Status status = children.start(count, argv); !status.ok())
    return report(status);
  return children.wait();
}
