//===- SplitPrepare.cpp - What depends on no input ------------------------===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/fusion/Cost.h"
#include "compiler/passes/graph/match/Matchers.h"
#include "dialects/graph/Strides.h"
#include "runtime/package/Names.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/Dominance.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"
#include "mlir/Transforms/CSE.h"
#include "mlir/Transforms/RegionUtils.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/ADT/StringSet.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_SPLITPREPAREPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

/// True if a weight is among what `value`, a parameter, is computed from.
bool dependsOnWeight(Value value, llvm::DenseMap<Value, bool> &known) {
  auto [entry, isNew] = known.try_emplace(value, false);
  if (!isNew)
    return entry->second;
  Operation *op = value.getDefiningOp();
  bool depends = isa<WeightOp>(op);
  for (Value operand : op->getOperands())
    depends |= dependsOnWeight(operand, known);
  return known[value] = depends;
}

/// True if `value`, a parameter without weights, costs more to compute in each
/// run than to load. Small ones have been folded.
bool isWorthStoring(Value value, fusion::CostModel &model) {
  double flops = 0;
  llvm::SetVector<Operation *> ops;
  ops.insert(value.getDefiningOp());
  for (size_t i = 0; i < ops.size(); ++i) {
    if (isa<KernelOpInterface>(ops[i]))
      return true;
    flops += model.getElementFlops(ops[i]);
    for (Value operand : ops[i]->getOperands())
      ops.insert(operand.getDefiningOp());
  }
  return flops > model.getMachine().cheapFlops;
}

class PrepareSplitter {
public:
  PrepareSplitter(ModuleOp module, DecisionLog &log)
      : log(log), model(module, getTarget(module)) {
    // The entry @init runs once: what it computes need not be stored.
    for (auto function : module.getOps<func::FuncOp>())
      if (!function.isExternal() &&
          function.getSymName() != format::nameOf(format::EntryKind::init))
        functions.push_back(function);
  }

  void run() {
    collect();
    if (stored.empty())
      return;
    func::FuncOp prepare = buildPrepare();
    shareResults(prepare);
    nameResults(prepare);
    replaceStored();
    eraseUnused();
  }

private:
  void walk(llvm::function_ref<void(Operation *)> visit) {
    for (func::FuncOp function : functions)
      function.walk<WalkOrder::PreOrder>(visit);
  }

  /// True if `op` computes tensors of constant shapes from parameters alone.
  bool computesParameters(Operation *op) {
    if (op->getNumRegions() != 0 || !isPure(op) ||
        !llvm::all_of(op->getResultTypes(), [](Type type) {
          auto tensor = dyn_cast<RankedTensorType>(type);
          return tensor && tensor.hasStaticShape();
        }))
      return false;
    if (op->getNumOperands() == 0)
      return isParameter(op->getResult(0));
    return llvm::all_of(op->getOperands(), [&](Value operand) {
      return parameters.contains(operand);
    });
  }

  /// Finds the values to store: computed from weights or with much work, read
  /// by other ops.
  void collect() {
    walk([&](Operation *op) {
      if (computesParameters(op))
        parameters.insert(op->result_begin(), op->result_end());
    });
    // Ops that read by index take what others have stored.
    SmallVector<OpOperand *> uses, sparseUses;
    walk([&](Operation *op) {
      if (op->getNumResults() && parameters.contains(op->getResult(0)))
        return;
      for (OpOperand &use : op->getOpOperands())
        if (parameters.contains(use.get()))
          (gathers(op) ? sparseUses : uses).push_back(&use);
    });
    uses.append(sparseUses);
    llvm::DenseMap<Value, bool> known;
    for (OpOperand *use : uses) {
      Value value = getStored(*use);
      if (!isa<WeightOp>(value.getDefiningOp()) &&
          (dependsOnWeight(value, known) || isWorthStoring(value, model)))
        stored.insert(value);
    }
  }

  /// What is stored of a parameter that a function reads. Reshapes cost a
  /// kernel nothing and stay there, as does a broadcast with what moves or
  /// widens its elements behind it; any movement does so where few elements are
  /// read, by index.
  Value getStored(OpOperand &use) {
    bool isSparse = gathers(use.getOwner());
    Value value = use.get();
    for (Value next = value; !stored.contains(next);) {
      Operation *op = next.getDefiningOp();
      bool isMovement =
          isa<ElementOpInterface>(op) && op->getNumOperands() == 1;
      if (!isMovement && !isWidening(op))
        break;
      bool stays = isa<BroadcastOp>(op) || (isSparse && isMovement) ||
                   (isa<ReshapeOp>(op) && next == value);
      next = op->getOperand(0);
      if (stays)
        value = next;
    }
    return value;
  }

  /// The ops that compute the stored values, and these, in order.
  SmallVector<Operation *> getSlice() {
    llvm::SetVector<Operation *> needed;
    SmallVector<Value> worklist(stored.begin(), stored.end());
    while (!worklist.empty()) {
      Operation *op = worklist.pop_back_val().getDefiningOp();
      if (needed.insert(op))
        llvm::append_range(worklist, op->getOperands());
    }
    SmallVector<Operation *> slice;
    walk([&](Operation *op) {
      if (needed.contains(op))
        slice.push_back(op);
    });
    return slice;
  }

  func::FuncOp buildPrepare() {
    SmallVector<Operation *> slice = getSlice();
    func::FuncOp last = functions.back();
    OpBuilder builder(last);
    builder.setInsertionPointAfter(last);
    auto prepare = builder.create<func::FuncOp>(
        last.getLoc(), format::nameOf(format::EntryKind::prepare),
        builder.getFunctionType({}, {}));
    Block *body = prepare.addEntryBlock();
    builder.setInsertionPointToEnd(body);
    IRMapping mapping;
    llvm::StringMap<Value> arguments;
    SmallVector<Attribute> names;
    for (Operation *op : slice) {
      auto weight = dyn_cast<WeightOp>(op);
      if (!weight) {
        builder.clone(*op, mapping);
        continue;
      }
      Value &argument = arguments[weight.getName()];
      if (!argument) {
        argument =
            body->addArgument(weight.getResult().getType(), op->getLoc());
        names.push_back(weight.getNameAttr());
      }
      mapping.map(weight.getResult(), argument);
    }
    SmallVector<Value> results;
    for (Value value : stored)
      results.push_back(mapping.lookup(value));
    builder.create<func::ReturnOp>(last.getLoc(), results);
    prepare.setFunctionType(
        builder.getFunctionType(body->getArgumentTypes(), {}));
    for (auto [i, name] : llvm::enumerate(names))
      prepare.setArgAttr(i, GraphDialect::kNameAttr, name);
    return prepare;
  }

  /// What several functions compute alike is computed and returned once.
  void shareResults(func::FuncOp prepare) {
    IRRewriter rewriter(prepare.getContext());
    DominanceInfo dominance(prepare);
    eliminateCommonSubExpressions(rewriter, dominance, prepare);
    Operation *yield = prepare.getBody().front().getTerminator();
    llvm::SetVector<Value> results;
    for (Value result : yield->getOperands()) {
      results.insert(result);
      auto position = llvm::find(results, result);
      positions.push_back(std::distance(results.begin(), position));
    }
    yield->setOperands(results.getArrayRef());
    prepare.setFunctionType(rewriter.getFunctionType(prepare.getArgumentTypes(),
                                                     yield->getOperandTypes()));
  }

  /// Names that no tensor of the model has.
  void nameResults(func::FuncOp prepare) {
    llvm::StringSet<> taken;
    prepare->getParentOfType<ModuleOp>().walk(
        [&](WeightOp op) { taken.insert(op.getName()); });
    Builder builder(prepare.getContext());
    for (size_t i = 0, number = 0; i < prepare.getNumResults(); ++number) {
      std::string name = "prepare." + std::to_string(number);
      if (taken.contains(name))
        continue;
      resultNames.push_back(builder.getStringAttr(name));
      prepare.setResultAttr(i++, GraphDialect::kNameAttr, resultNames.back());
    }
  }

  void replaceStored() {
    for (auto [stored, position] : llvm::zip_equal(this->stored, positions)) {
      Value value = stored;
      StringAttr name = resultNames[position];
      OpBuilder builder(value.getDefiningOp());
      auto weight =
          builder.create<WeightOp>(value.getLoc(), value.getType(), name);
      log.add(value.getDefiningOp(), "prepared",
              "depends on no input; stored as " + name.str(),
              {{"bytes", double(getBytes(getTensorType(value)))}});
      value.replaceAllUsesWith(weight);
    }
  }

  void eraseUnused() {
    llvm::SetVector<Operation *> ops;
    for (Value value : parameters)
      ops.insert(value.getDefiningOp());
    for (Operation *op : llvm::reverse(ops))
      if (op->use_empty())
        op->erase();
  }

  SmallVector<func::FuncOp> functions;
  DecisionLog &log;
  fusion::CostModel model;
  llvm::SetVector<Value> parameters;
  llvm::SetVector<Value> stored;
  SmallVector<size_t> positions; ///< of the result for each value
  SmallVector<StringAttr> resultNames;
};

struct SplitPreparePass : impl::SplitPreparePassBase<SplitPreparePass> {
  void runOnOperation() override {
    DecisionLog log(getOperation(), "split-prepare");
    if (getOperation().lookupSymbol(
            format::nameOf(format::EntryKind::prepare))) {
      getOperation().emitError("@prepare exists already");
      return signalPassFailure();
    }
    // What nobody reads must not count as a reader of what is stored.
    IRRewriter rewriter(&getContext());
    for (auto function : getOperation().getOps<func::FuncOp>())
      (void)runRegionDCE(rewriter, function->getRegions());
    PrepareSplitter(getOperation(), log).run();
  }
};

} // namespace
} // namespace tcc
