#include "runtime/executor/Variants.h"

#include "runtime/package/Names.h"
#include "runtime/package/SizeExpr.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;

std::vector<const format::Entry *>
runtime::listVariants(const format::Program &program, format::EntryKind kind) {
  std::vector<const format::Entry *> variants;
  for (const format::Entry *entry : *program.entries())
    if (entry->kind() == kind)
      variants.push_back(entry);
  std::ranges::sort(variants, {}, &format::Entry::variant);
  return variants;
}

bool runtime::takes(const format::TensorSpec &input,
                    std::span<const int64_t> shape) {
  if (input.shape()->size() != shape.size())
    return false;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    const format::SizeExpr &expr = *input.shape()->Get(axis);
    int64_t extent = 0;
    if (readsOnlySlotsBelow(expr, 0) &&
        (!evaluate(expr, nullptr, extent) || extent != shape[axis]))
      return false;
  }
  return true;
}

static bool takesAll(const format::Entry &entry,
                     std::span<const TensorView> tensors) {
  if (entry.inputs()->size() != tensors.size())
    return false;
  for (size_t i = 0; i < tensors.size(); ++i)
    if (!takes(*entry.inputs()->Get(i), tensors[i].shape))
      return false;
  return true;
}

/// The shapes of an input in each variant, as part of a sentence.
static std::string describeInput(std::span<const format::Entry *const> variants,
                                 size_t index) {
  std::string text;
  for (const format::Entry *entry : variants) {
    auto shape = staticShape(*entry->inputs()->Get(index));
    text += concat(text.empty() ? "" : ", ", shape ? formatShape(*shape) : "?");
  }
  return text;
}

Result<const format::Entry *>
runtime::chooseVariant(std::span<const format::Entry *const> variants,
                       std::span<const TensorView> tensors) {
  const format::Entry &first = *variants[0];
  if (variants.size() == 1 || first.inputs()->size() != tensors.size())
    return &first;
  for (const format::Entry *entry : variants)
    if (takesAll(*entry, tensors))
      return entry;
  std::string found;
  for (size_t i = 0; i < tensors.size(); ++i)
    found += concat(i ? "; " : "", "input '",
                    first.inputs()->Get(i)->name()->string_view(), "' is ",
                    formatShape(tensors[i].shape), ", expected one of ",
                    describeInput(variants, i));
  return makeError(Code::Usage, "no variant of entry '",
                   format::nameOf(first.kind()), "' has such sizes: ", found);
}
