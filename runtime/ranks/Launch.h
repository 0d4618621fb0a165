//===- Launch.h - Which rank a process is -----------------------*- C++ -*-===//
#ifndef TCC_RUNTIME_RANKS_LAUNCH_H
#define TCC_RUNTIME_RANKS_LAUNCH_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <functional>

namespace tcc::runtime {

/// What moves bytes between ranks: the MPI whose launcher started them, else
/// Gloo.
enum class TransportKind { Gloo, OpenMpi, Mpich };

/// Which of the processes that train together this one is, and where they meet.
struct Launch {
  int rank = 0, size = 1;
  int localRank = 0;     ///< among those of this machine
  std::string host = {}; ///< of rank 0; empty if there is one rank, or with MPI
  uint16_t port = 0;     ///< likewise
  TransportKind transport = TransportKind::Gloo;
};

/// The value of a variable of the environment; null if it is not set.
using Environment = std::function<const char *(const char *name)>;

/// What launchers say:
///   RANK, WORLD_SIZE, LOCAL_RANK      torchrun and `tcc-run --ranks`
///   SLURM_PROCID, SLURM_NTASKS,       srun, only with TCC_RENDEZVOUS: without
///   SLURM_LOCALID                       it srun began something else
///   OMPI_COMM_WORLD_RANK, _SIZE,      mpirun of Open MPI
///   _LOCAL_RANK
///   PMI_RANK, PMI_SIZE,               mpiexec of MPICH
///   MPI_LOCALRANKID
/// the first of these that is there; and but for MPI where rank 0 is:
/// TCC_RENDEZVOUS=HOST:PORT, else MASTER_ADDR and the port after MASTER_PORT,
/// which the launcher itself listens at. One rank if nothing is set; an error
/// (Code::Usage) if only a part is, or parts contradict.
Result<Launch> readLaunch(const Environment &environment);
/// Of this process.
Result<Launch> readLaunch();

} // namespace tcc::runtime

#endif // TCC_RUNTIME_RANKS_LAUNCH_H
