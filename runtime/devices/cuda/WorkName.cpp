#include "runtime/devices/cuda/WorkName.h"

#include "runtime/base/Status.h"
#include "runtime/package/DType.h"
#include "runtime/package/Names.h"

using namespace tcc;
using namespace tcc::runtime;

/// "2x3x4"
static std::string join(std::span<const int64_t> values) {
  std::string text;
  for (int64_t value : values)
    text += concat(text.empty() ? "" : "x", value);
  return text;
}

/// Type, extents, strides and alignment.
static std::string name(const StridedView &view) {
  return concat(traitsOf(view.dtype).name, "[", join(view.extentSpan()), ":",
                join(view.strideSpan()), "]@", view.alignment);
}

static std::string name(const LibraryStep &step) {
  std::string text = concat(", ", format::nameOf(step.kind));
  if (step.kind == format::StepKind::scale) {
    char factor[32];
    std::snprintf(factor, sizeof(factor), " %.17g", step.factor);
    text += factor;
  }
  return step.operand.rank ? concat(text, " ", name(step.operand)) : text;
}

std::string cuda::nameWork(const LibraryWork &work) {
  std::string text = concat(format::nameOf(work.kind), ": ", name(work.lhs),
                            " * ", name(work.rhs), work.tf32 ? " tf32" : "");
  const LibraryWindow &window = work.window;
  if (!window.strides.empty())
    text += concat(" strides ", join(window.strides), " dilations ",
                   join(window.dilations), " pads ", join(window.padLow), ":",
                   join(window.padHigh));
  for (const LibraryStep &step : work.steps)
    text += name(step);
  return concat(text, " -> ", name(work.result));
}
