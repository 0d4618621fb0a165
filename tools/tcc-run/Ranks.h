//===- Ranks.h - Processes that train together ------------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_RANKS_H
#define TCC_TOOLS_TCCRUN_RANKS_H

#include "runtime/ranks/OpenCommunicator.h"
#include "tools/tcc-run/Options.h"

namespace tcc::tools {

/// Which rank this process is, and its way to the others.
struct Ranks {
  runtime::Launch launch;
  std::unique_ptr<runtime::Communicator> communicator; ///< null for one rank
  int threads = 0; ///< of this rank; 0 for one rank without --threads
  int cpus = 1;    ///< that this rank may keep busy

  /// The rank that prints, and writes files.
  bool isFirst() const { return launch.rank == 0; }
};

/// Meets the ranks that the environment tells of, if it does, and shares cores
/// with those of this machine unless the flags say how many threads it has;
/// where that fails, `ranks` has what it says. The first one says so on stderr
/// where it is verbose.
runtime::Status joinRanks(const RunningOptions &options, Ranks &ranks);

/// Fails at all ranks where one has other `flags` than rank 0 has: those that
/// decide which calls they make in which order.
runtime::Status compareFlags(const Ranks &ranks, const std::string &flags);

/// With the threads of the rank; those but the first print errors alone.
RunningOptions ofRank(const Ranks &ranks, RunningOptions options);

/// Waits for the other ranks, if there are any, where what `status` says is so
/// at all of them: a rank that ends earlier is gone for the others. Returns
/// `status`, or why they do not come.
runtime::Status endTogether(const Ranks &ranks, runtime::Status status);

/// As `report`, with the number of the rank where there are several, whose
/// failure also goes to `logDir`, if that is not empty: its last collectives to
/// rank-N.jsonl, and of those but the first the line to rank-N.log.
int reportOfRank(const runtime::Status &status, const Ranks &ranks,
                 const std::string &logDir);
/// Removes these files, of another run, as far as they are this rank's.
void removeReports(const Ranks &ranks, const std::string &logDir);

/// Whether `launchRanks` of another process began this one.
bool isLaunched();
/// Runs this program as `count` ranks on this machine, with the arguments
/// `argv`, among which they find --ranks again. A rank that fails ends the
/// others, and none outlives this process. Returns the exit code of the first
/// rank that failed for a reason of its own; 9 (Code::Peer) if all that failed
/// only lost others.
int launchRanks(int count, char **argv);

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_RANKS_H
