//===- Nccl.h - NCCL as a table ---------------------------------*- C++ -*-===//
//
// The few entry points of NCCL that the runtime calls, and the values that they
// take, after nccl.h, which is not needed to build it: HeaderValuesTest
// compares both. The table is filled from the machine's library, or is
// simulated.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_RUNTIME_DEVICES_NCCL_NCCL_H
#define TCC_RUNTIME_DEVICES_NCCL_NCCL_H

#include "runtime/devices/cuda/Driver.h"

#include <cstddef>

namespace tcc::runtime::cuda {

/// ncclResult_t
using NcclError = int;
inline constexpr NcclError kNcclSuccess = 0;
inline constexpr NcclError kNcclSystemError = 2;
inline constexpr NcclError kNcclInvalidArgument = 4;
inline constexpr NcclError kNcclInvalidUsage = 5;
inline constexpr NcclError kNcclRemoteError = 6;
inline constexpr NcclError kNcclInProgress = 7;

/// ncclDataType_t; what is moved and not added up goes as bytes.
enum NcclType : int {
  kNcclU8 = 1,
  kNcclI32 = 2,
  kNcclI64 = 4,
  kNcclF32 = 7,
  kNcclF64 = 8
};
/// ncclRedOp_t
inline constexpr int kNcclSum = 0;

using NcclHandle = struct NcclObject *; ///< ncclComm_t
struct NcclId {                         ///< ncclUniqueId
  char bytes[128];
};

/// ncclConfig_t, as far as version 2.14 has it: libraries read as much of it as
/// `size` says.
struct NcclConfig {
  size_t size = sizeof(NcclConfig);
  unsigned magic = 0xcafebeef;
  unsigned version = 21400;
  int blocking = 0;
};

/// Each member is the entry point ncclNAME.
struct Nccl {
  NcclError (*getVersion)(int *version);
  NcclError (*getUniqueId)(NcclId *id);
  NcclError (*commInitRankConfig)(NcclHandle *comm, int size, NcclId id,
                                  int rank, NcclConfig *config);
  NcclError (*commFinalize)(NcclHandle comm);
  NcclError (*commDestroy)(NcclHandle comm);
  NcclError (*commAbort)(NcclHandle comm);
  NcclError (*commGetAsyncError)(NcclHandle comm, NcclError *error);
  const char *(*getErrorString)(NcclError error);
  const char *(*getLastError)(NcclHandle comm);
  NcclError (*allReduce)(const void *from, void *to, size_t count, int type,
                         int sum, NcclHandle comm, StreamHandle stream);
  NcclError (*reduceScatter)(const void *from, void *to, size_t count, int type,
                             int sum, NcclHandle comm, StreamHandle stream);
  NcclError (*allGather)(const void *from, void *to, size_t count, int type,
                         NcclHandle comm, StreamHandle stream);
  NcclError (*broadcast)(const void *from, void *to, size_t count, int type,
                         int root, NcclHandle comm, StreamHandle stream);
};

/// The library of this machine, opened once and never closed; `places` as of
/// loadLibrary. An error if it is older than kLeastNccl.
Result<const Nccl *> findNccl(const char *places);
/// 2.28: older ones wait in ncclCommAbort where communicators do not block.
inline constexpr int kLeastNccl = 22800;

/// Code::Device if the library is older than kLeastNccl.
Status checkNcclVersion(const Nccl &table);

/// "2.28.9" of 22809.
std::string nameNcclVersion(int version);

} // namespace tcc::runtime::cuda

#endif // TCC_RUNTIME_DEVICES_NCCL_NCCL_H
