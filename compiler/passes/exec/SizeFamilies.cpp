#include "compiler/passes/exec/SizeFamilies.h"
#include "dialects/exec/KernelHash.h"

#include "llvm/ADT/StringMap.h"
#include <numeric>

using namespace mlir;
using namespace tcc::graph;

namespace tcc::exec {

/// Puts what `map` says of each size in its place.
static void mapSizes(KernelOp kernel,
                     llvm::function_ref<AffineExpr(AffineExpr)> map) {
  auto mapTensor = [&](Value value) {
    if (!isa<RankedTensorType>(value.getType()))
      return;
    Extents extents = getExtents(value);
    auto mapped = llvm::map_to_vector<6>(extents, map);
    if (mapped != extents)
      value.setType(makeTensorType(mapped, getElementTypeOrSelf(value)));
  };
  auto mapAttribute = [&](Operation &op, NamedAttribute attr) {
    auto sizes = dyn_cast<AffineMapAttr>(attr.getValue());
    if (!sizes || sizes.getValue().getNumDims() > 0)
      return;
    ArrayRef<AffineExpr> all = sizes.getValue().getResults();
    auto mapped = llvm::map_to_vector<6>(all, map);
    if (ArrayRef(mapped) != all)
      op.setAttr(attr.getName(),
                 AffineMapAttr::get(makeSizeMap(mapped, op.getContext())));
  };
  kernel.getBody().walk([&](Block *block) {
    llvm::for_each(block->getArguments(), mapTensor);
    for (Operation &op : *block) {
      llvm::for_each(op.getResults(), mapTensor);
      for (NamedAttribute attr : op.getAttrs())
        mapAttribute(op, attr);
    }
  });
}

static void putSizes(KernelOp kernel, ArrayRef<AffineExpr> sizes) {
  const AffineExpr *next = sizes.begin();
  mapSizes(kernel, [&](AffineExpr) { return *next++; });
}

static Extents makeConstants(ArrayRef<int64_t> sizes, MLIRContext *context) {
  return llvm::map_to_vector<6>(sizes, [&](int64_t size) {
    return getAffineConstantExpr(size, context);
  });
}

/// Whether an attribute has elements, whose type would not follow.
static bool hasElements(KernelOp kernel) {
  auto hasSeveral = [](NamedAttribute attr) {
    auto elements = dyn_cast<ElementsAttr>(attr.getValue());
    return elements && elements.getNumElements() > 1;
  };
  return kernel
      .walk([&](Operation *op) {
        return llvm::any_of(op->getAttrs(), hasSeveral)
                   ? WalkResult::interrupt()
                   : WalkResult::advance();
      })
      .wasInterrupted();
}

/// The sizes of a kernel; nullopt if one of them is no constant.
static std::optional<Sizes> listSizes(KernelOp kernel) {
  Sizes sizes;
  bool areConstants = true;
  mapSizes(kernel, [&](AffineExpr size) {
    std::optional<int64_t> known = getConstant(size);
    areConstants &= known.has_value();
    sizes.push_back(known.value_or(0));
    return size;
  });
  return areConstants ? std::optional(sizes) : std::nullopt;
}

SmallVector<SizeFamily> findSizeFamilies(
    ModuleOp module,
    llvm::function_ref<std::optional<int64_t>(KernelOp)> getFixedExtent) {
  MLIRContext *context = module.getContext();
  SmallVector<SizeFamily> families;
  llvm::StringMap<SmallVector<size_t, 1>> byHash;
  for (auto kernel : module.getOps<KernelOp>()) {
    std::optional<int64_t> fixed = getFixedExtent(kernel);
    if (!fixed || kernel.getSymbols() || hasElements(kernel))
      continue;
    std::optional<Sizes> sizes = listSizes(kernel);
    if (!sizes)
      continue;
    // While other sizes say no more than their power of four, the kernels of a
    // family are equal.
    mapSizes(kernel, [&](AffineExpr size) {
      int64_t value = *getConstant(size);
      return value <= *fixed
                 ? size
                 : getAffineConstantExpr(*fixed + 1 + llvm::Log2_64(value) / 2,
                                         context);
    });
    SmallVector<size_t, 1> &candidates = byHash[hashOf(kernel)];
    auto *found = llvm::find_if(candidates, [&](size_t i) {
      return isEqual(families[i].kernels.front(), kernel);
    });
    if (found == candidates.end()) {
      found = &candidates.emplace_back(families.size());
      families.emplace_back();
    }
    families[*found].kernels.push_back(kernel);
    families[*found].sizes.push_back(std::move(*sizes));
  }
  for (const SizeFamily &family : families)
    for (auto [kernel, sizes] : llvm::zip_equal(family.kernels, family.sizes))
      putSizes(kernel, makeConstants(sizes, context));
  return families;
}

namespace {

/// Sizes of all kernels of a family.
struct SharedSizes {
  SmallVector<AffineExpr> expressions; // in the order of SizeFamily's
  SmallVector<Sizes> symbols;          // the values of each in each kernel
};

} // namespace

/// Sizes that grow by one ratio from kernel to kernel have one symbol, each
/// with a factor of its own.
static SharedSizes express(const SizeFamily &family, MLIRContext *context) {
  SharedSizes shared;
  for (size_t i = 0; i < family.sizes.front().size(); ++i) {
    auto values = llvm::map_to_vector<6>(
        family.sizes, [&](const Sizes &sizes) { return sizes[i]; });
    if (llvm::all_equal(values)) {
      shared.expressions.push_back(
          getAffineConstantExpr(values.front(), context));
      continue;
    }
    int64_t factor = 0;
    for (int64_t value : values)
      factor = std::gcd(factor, value);
    for (int64_t &value : values)
      value /= factor;
    auto *symbol = llvm::find(shared.symbols, values);
    unsigned number = symbol - shared.symbols.begin();
    if (symbol == shared.symbols.end())
      shared.symbols.push_back(values);
    shared.expressions.push_back(getAffineSymbolExpr(number, context) * factor);
  }
  return shared;
}

/// Ranges end at powers of two: a wider layer seldom changes the text of a
/// kernel, by which its code is found in the cache.
static ArrayAttr makeSymbols(ArrayRef<Sizes> symbols, MLIRContext *context) {
  SmallVector<Attribute> made;
  for (auto [i, values] : llvm::enumerate(symbols)) {
    uint64_t most = *llvm::max_element(values);
    auto name = StringAttr::get(context, "size" + Twine(i));
    made.push_back(
        SymbolAttr::get(context, name, 1, llvm::bit_ceil(most), /*divisor=*/1));
  }
  return ArrayAttr::get(context, made);
}

SmallVector<Sizes> shareBody(const SizeFamily &family,
                             llvm::function_ref<bool(KernelOp)> isPossible) {
  KernelOp first = family.kernels.front();
  MLIRContext *context = first.getContext();
  SharedSizes shared = express(family, context);
  if (shared.symbols.empty())
    return {};
  ArrayAttr symbols = makeSymbols(shared.symbols, context);
  putSizes(first, shared.expressions);
  first.setSymbolsAttr(symbols);
  if (!isPossible(first)) {
    putSizes(first, makeConstants(family.sizes.front(), context));
    first.removeSymbolsAttr();
    return {};
  }
  for (KernelOp kernel : ArrayRef(family.kernels).drop_front()) {
    putSizes(kernel, shared.expressions);
    kernel.setSymbolsAttr(symbols);
  }
  return std::move(shared.symbols);
}

} // namespace tcc::exec
