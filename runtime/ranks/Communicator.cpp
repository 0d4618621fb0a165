#include "runtime/ranks/Communicator.h"

#include <algorithm>
#include <vector>

using namespace tcc;
using namespace tcc::runtime;

/// Every rank sees the same digests, and so the same difference.
Status Communicator::compare(const format::Digest &digest, const char *what) {
  std::vector<format::Digest> all(size());
  if (Status status = allGather(&digest, all.data(), sizeof(digest), DType::u8);
      !status.ok())
    return status;
  for (size_t rank = 1; rank < all.size(); ++rank)
    if (!std::ranges::equal(all[rank].bytes, all[0].bytes))
      return makeError(Code::Usage, "rank ", rank, " has ", what,
                       " than rank 0");
  return Status();
}
