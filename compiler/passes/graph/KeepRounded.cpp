//===- KeepRounded.cpp - Narrow copies of parameters that are trained -----===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "dialects/graph/GraphOps.h"
#include "dialects/graph/Variables.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/MapVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_KEEPROUNDEDPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

struct KeepRoundedPass : impl::KeepRoundedPassBase<KeepRoundedPass> {
  void runOnOperation() override;
};

/// The variable of the copy by the name of the parameter.
using Copies = llvm::MapVector<StringAttr, VariableAttr>;

} // namespace

/// The conversions of `argument` to a narrower float.
static SmallVector<CastOp> getRoundings(BlockArgument argument) {
  SmallVector<CastOp> roundings;
  auto from = dyn_cast<FloatType>(getElementTypeOrSelf(argument));
  for (Operation *user : argument.getUsers()) {
    auto rounding = dyn_cast<CastOp>(user);
    auto to = rounding ? dyn_cast<FloatType>(getElementTypeOrSelf(rounding))
                       : FloatType();
    if (from && to && to.getWidth() < from.getWidth())
      roundings.push_back(rounding);
  }
  return roundings;
}

/// Whether the copy alone is read, not what was put together of several: that
/// is stored anyway.
static bool isReadAlone(CastOp rounding) {
  return llvm::any_of(rounding->getUsers(), [](Operation *user) {
    auto precision = dyn_cast<PrecisionOpInterface>(user);
    return user->getNumOperands() == 1 || !precision ||
           precision.getPrecision() != Precision::follow;
  });
}

static Copies findCopies(ModuleOp module) {
  SmallVector<VariableAttr> variables = getVariables(module);
  Copies copies;
  auto find = [&](func::FuncOp function, BlockArgument argument) {
    StringAttr name = getArgVariable(function, argument.getArgNumber());
    if (!name || variables[findVariable(variables, name)].getKind() !=
                     VariableKind::parameter)
      return;
    for (CastOp rounding : getRoundings(argument)) {
      auto copy =
          StringAttr::get(module.getContext(), "rounded/" + name.getValue());
      if (isReadAlone(rounding) &&
          findVariable(variables, copy) == variables.size())
        copies.try_emplace(
            name,
            VariableAttr::get(module.getContext(), copy, VariableKind::rounded,
                              cast<RankedTensorType>(rounding.getType()), name,
                              std::nullopt, SliceAttr(), SettingAttr(),
                              IntegerAttr(), IntegerAttr(), ArrayAttr()));
    }
  };
  for (auto function : module.getOps<func::FuncOp>())
    for (BlockArgument argument : function.getArguments())
      find(function, argument);
  return copies;
}

static DictionaryAttr makeUse(VariableAttr variable) {
  Builder builder(variable.getContext());
  return builder.getDictionaryAttr(
      builder.getNamedAttr(GraphDialect::kVariableAttr, variable.getName()));
}

/// What rounds a parameter in `function` reads the copy.
static void readCopies(func::FuncOp function, const Copies &copies) {
  for (unsigned i = 0, count = function.getNumArguments(); i < count; ++i) {
    VariableAttr copy = copies.lookup(getArgVariable(function, i));
    if (!copy)
      continue;
    BlockArgument parameter = function.getArgument(i);
    Value argument;
    for (CastOp rounding : getRoundings(parameter)) {
      if (rounding.getType() != copy.getType())
        continue;
      if (!argument) {
        function.insertArgument(function.getNumArguments(), copy.getType(),
                                makeUse(copy), parameter.getLoc());
        argument = function.getArguments().back();
      }
      rounding.replaceAllUsesWith(argument);
      rounding.erase();
    }
  }
  for (unsigned i = function.getNumArguments(); i-- > 0;)
    if (copies.count(getArgVariable(function, i)) &&
        function.getArgument(i).use_empty())
      function.eraseArgument(i);
}

/// Gives `function` the copy of `parameter` as its last result.
static void addCopy(func::FuncOp function, Value parameter, VariableAttr copy) {
  Operation *end = function.front().getTerminator();
  OpBuilder builder(end);
  Value rounded =
      builder.create<CastOp>(parameter.getLoc(), copy.getType(), parameter);
  function.insertResult(function.getNumResults(), copy.getType(),
                        makeUse(copy));
  end->insertOperands(end->getNumOperands(), rounded);
}

/// Where `function` writes a parameter it writes the copy.
static void writeCopies(func::FuncOp function, const Copies &copies) {
  Operation *end = function.front().getTerminator();
  for (unsigned i = 0, count = function.getNumResults(); i < count; ++i)
    if (VariableAttr copy = copies.lookup(getResultVariable(function, i)))
      addCopy(function, end->getOperand(i), copy);
}

/// The function that makes all copies anew.
static void addRounding(ModuleOp module, const Copies &copies) {
  auto builder = OpBuilder::atBlockEnd(module.getBody());
  const char *name = format::nameOf(format::EntryKind::round_parameters);
  auto loc = NameLoc::get(builder.getStringAttr(name));
  auto function =
      builder.create<func::FuncOp>(loc, name, builder.getFunctionType({}, {}));
  builder.setInsertionPointToStart(function.addEntryBlock());
  builder.create<func::ReturnOp>(loc);
  SmallVector<VariableAttr> variables = getVariables(module);
  for (const auto &[name, copy] : copies) {
    VariableAttr parameter = variables[findVariable(variables, name)];
    function.insertArgument(function.getNumArguments(), parameter.getType(),
                            makeUse(parameter), loc);
    addCopy(function, function.getArguments().back(), copy);
  }
}

void KeepRoundedPass::runOnOperation() {
  ModuleOp module = getOperation();
  Copies copies = findCopies(module);
  if (copies.empty())
    return;
  DecisionLog log(module, "keep-rounded");
  SmallVector<Attribute> variables(
      module->getAttrOfType<ArrayAttr>(GraphDialect::kVariablesAttr)
          .getValue());
  for (const auto &[name, copy] : copies) {
    variables.push_back(copy);
    log.add(module, "kept",
            ("a copy of " + name.getValue() + ", rounded").str(),
            {{"elements", double(copy.getType().getNumElements())}});
  }
  module->setAttr(GraphDialect::kVariablesAttr,
                  ArrayAttr::get(&getContext(), variables));
  for (auto function : module.getOps<func::FuncOp>()) {
    readCopies(function, copies);
    writeCopies(function, copies);
  }
  addRounding(module, copies);
}

} // namespace tcc
