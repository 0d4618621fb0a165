#include "runtime/devices/nccl/Nccl.h"

#include "runtime/devices/libraries/Toolkit.h"

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

static constexpr const char *kNames[] = {"libnccl.so.2"};

std::string cuda::nameNcclVersion(int version) {
  return concat(version / 10000, ".", version / 100 % 100, ".", version % 100);
}

Status cuda::checkNcclVersion(const Nccl &table) {
  int version = 0;
  if (table.getVersion(&version) == kNcclSuccess && version >= kLeastNccl)
    return Status();
  return makeError(Code::Device, "NCCL is ", nameNcclVersion(version),
                   ", expected ", nameNcclVersion(kLeastNccl), " or later");
}

static Status load(Nccl &table, const char *places) {
  const EntryPoint entries[] = {
      {"ncclGetVersion", &table.getVersion},
      {"ncclGetUniqueId", &table.getUniqueId},
      {"ncclCommInitRankConfig", &table.commInitRankConfig},
      {"ncclCommFinalize", &table.commFinalize},
      {"ncclCommDestroy", &table.commDestroy},
      {"ncclCommAbort", &table.commAbort},
      {"ncclCommGetAsyncError", &table.commGetAsyncError},
      {"ncclGetErrorString", &table.getErrorString},
      {"ncclGetLastError", &table.getLastError},
      {"ncclAllReduce", &table.allReduce},
      {"ncclReduceScatter", &table.reduceScatter},
      {"ncclAllGather", &table.allGather},
      {"ncclBroadcast", &table.broadcast},
  };
  if (Status status = loadLibrary(kNames, places, entries); !status.ok())
    return status;
  return checkNcclVersion(table);
}

Result<const Nccl *> cuda::findNccl(const char *places) {
  return getTable(load, places);
}
