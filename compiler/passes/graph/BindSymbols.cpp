//===- BindSymbols.cpp - Give symbols their values ------------------------===//
#include "compiler/passes/graph/BindSymbols.h"

#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/Shape.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/AttrTypeSubElements.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_BINDSYMBOLSPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct BindSymbolsPass : impl::BindSymbolsPassBase<BindSymbolsPass> {
  using BindSymbolsPassBase::BindSymbolsPassBase;
  void runOnOperation() override;
};

/// What stands for each symbol of a module, and the symbols that are left.
struct Binding {
  MLIRContext *context;
  SmallVector<AffineExpr> expressions;
  SmallVector<SymbolAttr> left;
};

} // namespace

static LogicalResult checkNames(ModuleOp module,
                                const llvm::StringMap<int64_t> &values) {
  SmallVector<SymbolAttr> symbols = getSymbols(module);
  for (const auto &value : values)
    if (llvm::none_of(symbols, [&](SymbolAttr symbol) {
          return symbol.getName() == value.first();
        }))
      return module.emitError("no symbol is named '") << value.first() << "'";
  return success();
}

static FailureOr<Binding> collect(ModuleOp module,
                                  const llvm::StringMap<int64_t> &values) {
  MLIRContext *context = module.getContext();
  Binding binding{context, {}, {}};
  for (SymbolAttr symbol : getSymbols(module)) {
    auto value = values.find(symbol.getName());
    if (value == values.end()) {
      binding.expressions.push_back(
          getAffineSymbolExpr(binding.left.size(), context));
      binding.left.push_back(symbol);
      continue;
    }
    if (value->second < symbol.getMin() || value->second > symbol.getMax())
      return module.emitError("symbol '")
             << symbol.getName().getValue() << "' cannot be " << value->second
             << ": it is in " << symbol.getMin() << ".." << symbol.getMax();
    binding.expressions.push_back(
        getAffineConstantExpr(value->second, context));
  }
  return binding;
}

static Extents bindSizes(ArrayRef<AffineExpr> sizes, const Binding &binding) {
  Extents bound;
  for (AffineExpr size : sizes)
    bound.push_back(size.replaceSymbols(binding.expressions));
  return bound;
}

static AttrTypeReplacer makeReplacer(const Binding &binding) {
  AttrTypeReplacer replacer;
  MLIRContext *context = binding.context;
  // What is bound must not be bound again, as symbols have other numbers then.
  using BoundType = std::pair<Type, WalkResult>;
  replacer.addReplacement(
      [&](RankedTensorType type) -> std::optional<BoundType> {
        if (!isa_and_present<AffineMapAttr>(type.getEncoding()))
          return std::nullopt;
        return BoundType{makeTensorType(bindSizes(getExtents(type), binding),
                                        type.getElementType()),
                         WalkResult::skip()};
      });
  replacer.addReplacement(
      [&, context](AffineMapAttr sizes) -> std::optional<Attribute> {
        AffineMap map = sizes.getValue();
        if (map.getNumSymbols() == 0)
          return std::nullopt;
        return AffineMapAttr::get(
            makeSizeMap(bindSizes(map.getResults(), binding), context));
      });
  return replacer;
}

/// The symbols that are left, each with the new numbers in what it says of
/// others.
static void setLeft(ModuleOp module, const Binding &binding) {
  AttrTypeReplacer replacer = makeReplacer(binding);
  SmallVector<SymbolAttr> symbols;
  for (SymbolAttr symbol : binding.left)
    symbols.push_back(cast<SymbolAttr>(replacer.replace(symbol)));
  setSymbols(module, symbols);
}

static void rewrite(Operation *scope, const Binding &binding) {
  AttrTypeReplacer replacer = makeReplacer(binding);
  replacer.recursivelyReplaceElementsIn(scope, /*replaceAttrs=*/true,
                                        /*replaceLocs=*/false,
                                        /*replaceTypes=*/true);
}

LogicalResult bindSymbols(ModuleOp module,
                          const llvm::StringMap<int64_t> &values) {
  if (failed(checkNames(module, values)))
    return failure();
  FailureOr<Binding> binding = collect(module, values);
  if (failed(binding))
    return failure();
  rewrite(module, *binding);
  setLeft(module, *binding);
  return success();
}

LogicalResult bindVariants(ModuleOp module,
                           ArrayRef<llvm::StringMap<int64_t>> variants) {
  auto kind = format::EntryKind::main;
  auto main = module.lookupSymbol<func::FuncOp>(format::nameOf(kind));
  SmallVector<Binding> bindings;
  for (const llvm::StringMap<int64_t> &values : variants) {
    if (failed(checkNames(module, values)))
      return failure();
    FailureOr<Binding> binding = collect(module, values);
    if (failed(binding))
      return failure();
    bindings.push_back(std::move(*binding));
  }
  OpBuilder builder(main);
  builder.setInsertionPointAfter(main);
  for (size_t number = bindings.size(); --number > 0;) {
    auto variant = cast<func::FuncOp>(builder.clone(*main));
    builder.setInsertionPoint(variant);
    variant.setSymName(format::nameOf(kind, uint16_t(number)));
    rewrite(variant, bindings[number]);
  }
  rewrite(main, bindings[0]);
  setLeft(module, bindings[0]);
  return success();
}

void BindSymbolsPass::runOnOperation() {
  llvm::StringMap<int64_t> bound;
  for (const std::string &text : values) {
    auto [name, value] = StringRef(text).rsplit('=');
    if (value.getAsInteger(10, bound[name])) {
      getOperation().emitError("expected NAME=N, found '") << text << "'";
      return signalPassFailure();
    }
  }
  if (failed(bindSymbols(getOperation(), bound)))
    signalPassFailure();
}

} // namespace tcc
