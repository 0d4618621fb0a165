//===- Launch.h - Which rank a process is -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_LAUNCH_H
#define TCC_RUNTIME_RANKS_LAUNCH_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>

namespace tcc::runtime {

/// What moves bytes between ranks: the MPI whose launcher started them, else,
/// or where an address is given, Gloo.
enum class TransportKind { Gloo, OpenMpi, Mpich };

/// Which of the processes that train together this one is, and where they meet.
struct Launch {
  int rank = 0, size = 1;
  int localRank = 0;     ///< among those of this machine
  std::string host = {}; ///< rank 0's name; empty for one rank, or with MPI
  uint16_t port = 0;     ///< at which rank 0 listens; 0 likewise
  TransportKind transport = TransportKind::Gloo;
};

/// The value of a variable of the environment; null if it is not set.
using Environment = std::function<const char *(const char *name)>;

/// What launchers say:
///   RANK, WORLD_SIZE, LOCAL_RANK      torchrun and `tcc-run --ranks`
///   OMPI_COMM_WORLD_RANK, _SIZE,      mpirun of Open MPI
///   _LOCAL_RANK
///   PMI_RANK, PMI_SIZE,               mpiexec of MPICH; without the last one
///   MPI_LOCALRANKID                     `srun --mpi=pmi2`
///   SLURM_PROCID,                     srun: with PMIX_RANK `--mpi=pmix`, of
///   SLURM_STEP_NUM_TASKS,               Open MPI, else with TCC_RENDEZVOUS
///   SLURM_LOCALID
/// the first of these that is there. Ranks meet at TCC_RENDEZVOUS=HOST:PORT,
/// else as MPI says, else at MASTER_ADDR and the port after MASTER_PORT, which
/// the launcher itself listens at. One rank if nothing is set; an error
/// (Code::Usage) if only a part is, or parts contradict, or if srun began
/// several tasks that have no way to each other.
Result<Launch> readLaunch(const Environment &environment);
/// The launch of this process.
Result<Launch> readLaunch();

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_LAUNCH_H
