#include "runtime/devices/cuda/DescribeLaunch.h"

#include "runtime/package/DType.h"
#include "runtime/package/LibraryRules.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::cuda;

/// No library asks for more.
static constexpr uint64_t kMaxAlignment = 256;

namespace {

/// Finds the operands of a work among the buffers of a launch.
class Placer {
public:
  Placer(const Dispatch &dispatch, std::span<const uint64_t> rooms,
         std::span<const int64_t> sizes)
      : dispatch(dispatch), rooms(rooms), slots(sizes) {}

  /// The address of an operand, whose alignment goes to `view`; null if it has
  /// no elements or is walked backwards. An error if it leaves its buffer.
  Result<void *> place(const format::Operand &operand, StridedView &view) const;

private:
  const Dispatch &dispatch;
  std::span<const uint64_t> rooms;
  std::span<const int64_t> slots;
};

} // namespace

static Status refuseSize() {
  return makeError(Code::BadData, "a size for a library overflows");
}

/// The position of the last of at least one element; nothing if it overflows.
static std::optional<uint64_t> lastElement(int64_t offset,
                                           const StridedView &view) {
  int64_t last = offset;
  for (uint32_t i = 0; i < view.rank; ++i) {
    int64_t step = 0;
    if (__builtin_mul_overflow(view.strides[i], view.extents[i] - 1, &step) ||
        __builtin_add_overflow(last, step, &last))
      return std::nullopt;
  }
  return static_cast<uint64_t>(last);
}

Result<void *> Placer::place(const format::Operand &operand,
                             StridedView &view) const {
  int64_t offset = 0;
  if (!evaluate(*operand.place()->Get(0), slots.data(), offset))
    return refuseSize();
  auto isBelow = [](std::span<const int64_t> values, int64_t least) {
    return std::ranges::any_of(values,
                               [&](int64_t value) { return value < least; });
  };
  if (offset < 0 || isBelow(view.extentSpan(), 1) ||
      isBelow(view.strideSpan(), 0))
    return nullptr;
  uint64_t bytes = traitsOf(view.dtype).bytes;
  auto last = lastElement(offset, view);
  if (!last || *last >= rooms[operand.buffer()] / bytes)
    return makeError(Code::BadData,
                     "what a library would read does not fit its buffer");
  auto *base = static_cast<std::byte *>(dispatch.buffers[operand.buffer()]);
  void *address = base + offset * bytes;
  uint64_t bits = reinterpret_cast<uint64_t>(address) | kMaxAlignment;
  view.alignment = static_cast<uint32_t>(bits & (~bits + 1));
  return address;
}

/// Whether each operand has an address, and what is written overlaps no other
/// operand: one that may be read in place lies as the result does.
static bool areApart(const LaunchDescription &launch) {
  const LibraryOperands &operands = launch.operands;
  if (!operands.lhs || !operands.rhs || !operands.result ||
      operands.lhs == operands.result || operands.rhs == operands.result)
    return false;
  for (size_t i = 0; i < operands.steps.size(); ++i) {
    const LibraryStep &step = launch.work.steps[i];
    if (step.operand.rank == 0)
      continue;
    const void *own = operands.steps[i];
    bool isInPlace = traitsOf(step.kind).readsInPlace &&
                     step.operand.strides == launch.work.result.strides;
    if (!own || (own == operands.result && !isInPlace))
      return false;
    if (!traitsOf(step.kind).isWritten)
      continue;
    if (own == operands.lhs || own == operands.rhs ||
        std::ranges::count(operands.steps, own) > 1)
      return false;
  }
  return true;
}

static Status placeAll(const Placer &placer, const format::LibraryWork &source,
                       LaunchDescription &launch) {
  Status status;
  auto place = [&](const format::Operand *operand,
                   StridedView &view) -> void * {
    if (!operand || !status.ok())
      return nullptr;
    auto address = placer.place(*operand, view);
    if (address.ok())
      return *address;
    status = address.takeStatus();
    return nullptr;
  };
  LibraryWork &work = launch.work;
  launch.operands.lhs = place(source.lhs(), work.lhs);
  launch.operands.rhs = place(source.rhs(), work.rhs);
  launch.operands.result = place(source.result(), work.result);
  for (size_t i = 0; i < work.steps.size(); ++i)
    launch.operands.steps.push_back(
        place(source.steps()->Get(static_cast<uint32_t>(i))->operand(),
              work.steps[i].operand));
  return status;
}

Result<std::optional<LaunchDescription>>
cuda::describeLaunch(const Dispatch &dispatch, std::span<const uint64_t> rooms,
                     std::span<const int64_t> sizes,
                     const format::Kernel &kernel) {
  std::optional<LaunchDescription> none;
  const format::LibraryWork *source = kernel.library();
  if (!source || !hasKnownKinds(*source))
    return none;
  auto work = readLibraryWork(
      *source, [&](const format::SizeExpr &size) -> std::optional<int64_t> {
        int64_t value = 0;
        if (!evaluate(size, sizes.data(), value))
          return std::nullopt;
        return value;
      });
  if (!work)
    return refuseSize();
  LaunchDescription launch{std::move(*work), {}};
  Status status = placeAll(Placer(dispatch, rooms, sizes), *source, launch);
  if (!status.ok())
    return status;
  if (!areApart(launch) || !isWellFormed(launch.work) ||
      !isOfLibrary(launch.work))
    return none;
  return std::optional(std::move(launch));
}
