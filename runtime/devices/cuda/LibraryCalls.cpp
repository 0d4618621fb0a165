#include "runtime/devices/cuda/LibraryCalls.h"

#include "runtime/package/DType.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// Sizes change from run to run: plans of old ones are dropped some time.
static constexpr size_t kMaxPlans = 4096;
/// No library asks for more.
static constexpr uint64_t kMaxAlignment = 256;

namespace {

/// A product of the program at the sizes and addresses of a launch.
class Reader {
public:
  Reader(const KernelLaunch &launch, const format::Entry &entry,
         const format::Product &product)
      : launch(launch), entry(entry), source(product) {}

  /// False where an extent is 0.
  Result<bool> read();

  MatrixProduct product = {};
  LibraryOperands operands = {};

private:
  Status evaluateAll(
      const flatbuffers::Vector<flatbuffers::Offset<format::SizeExpr>> &sizes,
      int64_t (&values)[4]) const;
  Status readMatrix(const format::Matrix &matrix, int64_t rows, int64_t columns,
                    StridedMatrix &view, const void *&address) const;

  const KernelLaunch &launch;
  const format::Entry &entry;
  const format::Product &source;
};

} // namespace

Status Reader::evaluateAll(
    const flatbuffers::Vector<flatbuffers::Offset<format::SizeExpr>> &sizes,
    int64_t (&values)[4]) const {
  for (uint32_t i = 0; i < 4; ++i)
    if (!evaluate(*sizes.Get(i), launch.slots.data(), values[i]) ||
        values[i] < 0)
      return makeError(Code::BadData, "node '", nameNode(launch.command.node()),
                       "': a size of its product overflows");
  return Status();
}

/// The last element of a matrix; nothing if that overflows.
static std::optional<uint64_t> lastElement(const int64_t (&place)[4],
                                           const int64_t (&extents)[3]) {
  int64_t last = place[0];
  for (int i = 0; i < 3; ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(place[i + 1], extents[i] - 1, &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return static_cast<uint64_t>(last);
}

Status Reader::readMatrix(const format::Matrix &matrix, int64_t rows,
                          int64_t columns, StridedMatrix &view,
                          const void *&address) const {
  int64_t place[4];
  if (Status status = evaluateAll(*matrix.place(), place); !status.ok())
    return status;
  uint64_t bytes = traitsOf(matrix.dtype()).bytes;
  uint32_t buffer = launch.command.buffers()->Get(matrix.buffer());
  uint64_t room = entry.buffers()->Get(buffer)->max_bytes() / bytes;
  auto last = lastElement(place, {product.batch, rows, columns});
  if (!last || *last >= room)
    return makeError(Code::BadData, "node '", nameNode(launch.command.node()),
                     "': a matrix of its product does not fit its buffer");
  auto *base = static_cast<const std::byte *>(launch.buffers[matrix.buffer()]);
  address = base + place[0] * bytes;
  uint64_t bits = reinterpret_cast<uint64_t>(address) | kMaxAlignment;
  view = {matrix.dtype(), place[1], place[2], place[3],
          static_cast<uint32_t>(bits & (~bits + 1))};
  return Status();
}

Result<bool> Reader::read() {
  int64_t extents[4];
  if (Status status = evaluateAll(*source.extents(), extents); !status.ok())
    return status;
  auto &[batch, m, n, k] = extents;
  product.batch = batch, product.m = m, product.n = n, product.k = k;
  if (std::min({batch, m, n, k}) < 1)
    return false;
  const void *result = nullptr;
  Status status = readMatrix(*source.lhs(), m, k, product.lhs, operands.lhs);
  if (status.ok())
    status = readMatrix(*source.rhs(), k, n, product.rhs, operands.rhs);
  if (status.ok())
    status = readMatrix(*source.result(), m, n, product.result, result);
  if (status.ok() && source.addend())
    status = readMatrix(*source.addend(), m, n, product.addend.emplace(),
                        operands.addend);
  StridedMatrix bias;
  if (status.ok() && source.bias())
    status = readMatrix(*source.bias(), m, n, bias, operands.bias);
  if (!status.ok())
    return status;
  operands.result = const_cast<void *>(result);
  product.hasBias = source.bias() != nullptr;
  product.scale = source.scale();
  product.activation = source.activation();
  return true;
}

Result<bool> LibraryCalls::launch(const KernelLaunch &launch,
                                  const format::Entry &entry,
                                  StreamHandle stream) {
  uint32_t kernel = launch.command.kernel();
  const format::Product *source = program.kernels()->Get(kernel)->product();
  if (!library || !source)
    return false;
  Reader reader(launch, entry, *source);
  Result<bool> isThere = reader.read();
  if (!isThere.ok() || !*isThere)
    return isThere;
  auto [found, isNew] = plans.try_emplace({kernel, reader.product});
  if (isNew) {
    auto plan = library->plan(reader.product, workspace, workspaceBytes);
    if (!plan.ok()) {
      plans.erase(found);
      return plan.takeStatus();
    }
    found->second = std::move(*plan);
  }
  LibraryPlan *plan = found->second.get();
  Status status = plan ? plan->enqueue(reader.operands, stream) : Status();
  bool isDone = plan != nullptr;
  if (plans.size() > kMaxPlans)
    plans.clear();
  if (!status.ok())
    return status;
  return isDone;
}
