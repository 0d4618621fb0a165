#include "runtime/package/VerifyLibrary.h"

#include "runtime/package/Alignment.h"
#include "runtime/package/LibraryRules.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>
#include <limits>

using namespace tcc;
using namespace tcc::runtime;

/// The operands of `work`, those of its steps last.
static std::vector<const format::Operand *>
listOperands(const format::LibraryWork &work) {
  std::vector<const format::Operand *> operands{work.lhs(), work.rhs(),
                                                work.result()};
  if (work.steps())
    for (const format::Step *step : *work.steps())
      if (step->operand())
        operands.push_back(step->operand());
  return operands;
}

/// Whether the sizes of `work` are expressions of slots below `slots`.
static bool hasSizes(const format::LibraryWork &work, size_t slots) {
  for (const format::Operand *operand : listOperands(work))
    for (const format::SizeExpr *size : *operand->place())
      if (!isWellFormed(*size, slots))
        return false;
  return true;
}

/// Whether what is read of `work` may be: sizes, and lists where numbers lie.
static bool isReadable(const format::LibraryWork &work) {
  if (!hasSizes(work, std::numeric_limits<size_t>::max()))
    return false;
  const format::Window *window = work.window();
  return !window || (isAligned<int64_t>(*window->pad_low()) &&
                     isAligned<int64_t>(*window->pad_high()) &&
                     isAligned<int64_t>(*window->strides()) &&
                     isAligned<int64_t>(*window->dilations()));
}

/// The number that `size` is whatever the symbols are.
static std::optional<int64_t> readConstant(const format::SizeExpr &size) {
  const format::SizeInstruction *first = size.code()->Get(0);
  bool isConstant =
      size.code()->size() == 1 && first->op() == format::SizeOp::constant;
  return isConstant ? first->value() : kUnknownSize;
}

static bool isWork(const format::LibraryWork &source) {
  if (!isReadable(source))
    return false;
  auto work = readLibraryWork(source, readConstant);
  return work && isWellFormed(*work);
}

Status runtime::verifyForLibrary(const format::Kernel &kernel) {
  const format::LibraryWork *work = kernel.library();
  if (!work || !hasKnownKinds(*work) || isWork(*work))
    return Status();
  return makeError(Code::BadData, "kernel '", kernel.symbol()->string_view(),
                   "' describes no work of a library");
}

const char *runtime::findLackForLibrary(const format::Kernel &kernel,
                                        size_t buffers, size_t slots) {
  const format::LibraryWork *work = kernel.library();
  if (!work)
    return nullptr;
  auto hasBuffer = [&](const format::Operand *operand) {
    return operand->buffer() < buffers;
  };
  if (!std::ranges::all_of(listOperands(*work), hasBuffer))
    return "lacks a buffer that a library uses";
  return !hasKnownKinds(*work) || hasSizes(*work, slots)
             ? nullptr
             : "lacks a size that a library uses";
}
