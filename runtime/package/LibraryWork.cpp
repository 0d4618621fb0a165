#include "runtime/package/LibraryWork.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

bool runtime::hasKnownKinds(const format::LibraryWork &source) {
  return source.kind() <= format::WorkKind::MAX &&
         (!source.steps() ||
          std::ranges::all_of(*source.steps(), [](const format::Step *step) {
            return step->kind() <= format::StepKind::MAX;
          }));
}

/// False if `source` has no place or a size of it no number.
static bool readView(const format::Operand &source, const ReadSize &readSize,
                     StridedView &view) {
  size_t sizes = source.place()->size();
  if (sizes < 3 || sizes % 2 == 0 || sizes > 1 + 2 * kMaxLibraryAxes)
    return false;
  view.dtype = source.dtype();
  view.rank = static_cast<uint32_t>(sizes / 2);
  for (uint32_t i = 0; i < view.rank; ++i) {
    auto extent = readSize(*source.place()->Get(1 + i));
    auto stride = readSize(*source.place()->Get(1 + view.rank + i));
    if (!extent || !stride)
      return false;
    view.extents[i] = *extent;
    view.strides[i] = *stride;
  }
  return true;
}

static std::vector<int64_t> listOf(const flatbuffers::Vector<int64_t> &values) {
  return {values.begin(), values.end()};
}

std::optional<LibraryWork>
runtime::readLibraryWork(const format::LibraryWork &source,
                         const ReadSize &readSize) {
  LibraryWork work{.kind = source.kind(), .tf32 = source.tf32()};
  if (!readView(*source.lhs(), readSize, work.lhs) ||
      !readView(*source.rhs(), readSize, work.rhs) ||
      !readView(*source.result(), readSize, work.result))
    return std::nullopt;
  if (source.steps())
    for (const format::Step *step : *source.steps()) {
      LibraryStep &read = work.steps.emplace_back(
          LibraryStep{.kind = step->kind(), .factor = step->factor()});
      if (step->operand() &&
          !readView(*step->operand(), readSize, read.operand))
        return std::nullopt;
    }
  if (const format::Window *window = source.window())
    work.window = {listOf(*window->pad_low()), listOf(*window->pad_high()),
                   listOf(*window->strides()), listOf(*window->dilations())};
  return work;
}
