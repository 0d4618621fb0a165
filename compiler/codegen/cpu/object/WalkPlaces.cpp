#include "compiler/codegen/cpu/object/LoopCut.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;
using namespace tcc::cpu;

namespace {

/// Fewer places have loops of their own, which need no pointer at run time.
constexpr size_t kManyPlaces = 5;

/// Branches that end in loads. A leaf has a load and no cut.
struct PlaceTree {
  std::optional<LoopCut> cut;
  std::unique_ptr<PlaceTree> low, high; // where the condition holds or does not
  LLVM::LoadOp load;
  Value place; // where the condition changes

  static std::unique_ptr<PlaceTree> find(Value read, Block *block,
                                         scf::ForOp loop);
  void collectLoads(SmallVectorImpl<LLVM::LoadOp> &loads) const;
  void emitPlaces(OpBuilder &builder, scf::ForOp loop);
};

struct Root {
  scf::IfOp branch;
  std::unique_ptr<PlaceTree> tree;
  SmallVector<LLVM::LoadOp> loads;
};

/// A part of the loop that reads from one place of each tree.
struct Part {
  SmallVector<Value> pointers; // of the first element, by tree
  Value end;
};

class PlaceWalker {
public:
  PlaceWalker(scf::ForOp loop, MutableArrayRef<Root> roots)
      : loop(loop), roots(roots), loc(loop.getLoc()) {}
  void run();

private:
  scf::ForOp loop;
  MutableArrayRef<Root> roots;
  Location loc;

  Part emitPart(OpBuilder &builder, Value position);
  std::pair<Value, Value> emitPointer(OpBuilder &builder, PlaceTree &tree,
                                      Value position, Value end);
  SmallVector<Value> emitElements(OpBuilder &builder, Value position,
                                  const Part &part, ValueRange carried);
  void readFrom(Root &root, Value pointer, Value position, scf::ForOp elements,
                const IRMapping &map);
};

} // namespace

/// By how much `index` grows with the loop's variable; nullopt if not evenly.
static std::optional<int64_t> getGrowth(Value index, scf::ForOp loop) {
  if (index == loop.getInductionVar())
    return 1;
  if (loop.isDefinedOutsideOfLoop(index))
    return 0;
  Operation *op = index.getDefiningOp();
  if (isa_and_present<arith::IndexCastOp>(op))
    return getGrowth(op->getOperand(0), loop);
  if (!isa_and_present<arith::AddIOp, arith::SubIOp, arith::MulIOp>(op)) {
    // The same in every iteration, if nothing that it is made of changes.
    bool isFixed = op && isPure(op) && op->getNumRegions() == 0 &&
                   llvm::all_of(op->getOperands(), [&](Value operand) {
                     return getGrowth(operand, loop) == 0;
                   });
    return isFixed ? std::optional<int64_t>(0) : std::nullopt;
  }
  auto lhs = getGrowth(op->getOperand(0), loop);
  auto rhs = getGrowth(op->getOperand(1), loop);
  if (!lhs || !rhs)
    return std::nullopt;
  if (isa<arith::AddIOp>(op))
    return *lhs + *rhs;
  if (isa<arith::SubIOp>(op))
    return *lhs - *rhs;
  return *lhs == 0 && *rhs == 0 ? std::optional<int64_t>(0) : std::nullopt;
}

/// Whether each iteration reads the element behind that of the last one.
static bool readsAdjacent(LLVM::LoadOp load, scf::ForOp loop) {
  int64_t growth = 0;
  Value address = load.getAddr();
  while (auto step = address.getDefiningOp<LLVM::GEPOp>()) {
    for (Value index : step.getDynamicIndices()) {
      auto part = getGrowth(index, loop);
      if (!part || (*part != 0 && (step.getElemType() != load.getType() ||
                                   step.getIndices().size() != 1)))
        return false;
      growth += *part;
    }
    address = step.getBase();
  }
  return growth == 1 && loop.isDefinedOutsideOfLoop(address) &&
         load.getOrdering() == LLVM::AtomicOrdering::not_atomic &&
         !load.getVolatile_();
}

/// What `read`, the result of `block`'s last branch or load, is read from; null
/// if `block` does more.
std::unique_ptr<PlaceTree> PlaceTree::find(Value read, Block *block,
                                           scf::ForOp loop) {
  Operation *op = read.getDefiningOp();
  if (!op || op->getBlock() != block || read.use_empty())
    return nullptr;
  auto tree = std::make_unique<PlaceTree>();
  if ((tree->load = dyn_cast<LLVM::LoadOp>(op)))
    return readsAdjacent(tree->load, loop) ? std::move(tree) : nullptr;
  auto branch = dyn_cast<scf::IfOp>(op);
  if (!branch || branch.getNumResults() != 1 ||
      !(tree->cut = LoopCut::find(branch, loop)))
    return nullptr;
  auto findIn = [&](Region &region) -> std::unique_ptr<PlaceTree> {
    Block *inner = &region.front();
    Value yielded = inner->getTerminator()->getOperand(0);
    for (Operation &other : inner->without_terminator())
      if (!isPure(&other) && &other != yielded.getDefiningOp())
        return nullptr;
    return find(yielded, inner, loop);
  };
  tree->low = findIn(branch.getThenRegion());
  tree->high = findIn(branch.getElseRegion());
  return tree->low && tree->high ? std::move(tree) : nullptr;
}

void PlaceTree::collectLoads(SmallVectorImpl<LLVM::LoadOp> &loads) const {
  if (!cut) {
    loads.push_back(load);
    return;
  }
  low->collectLoads(loads);
  high->collectLoads(loads);
}

void PlaceTree::emitPlaces(OpBuilder &builder, scf::ForOp loop) {
  if (!cut)
    return;
  place = cut->emitPlace(builder, loop);
  low->emitPlaces(builder, loop);
  high->emitPlaces(builder, loop);
}

/// `value` where the loop's variable is what `map` says.
static Value cloneFor(OpBuilder &builder, Value value, scf::ForOp loop,
                      IRMapping &map) {
  if (Value known = map.lookupOrNull(value))
    return known;
  if (loop.isDefinedOutsideOfLoop(value))
    return value;
  Operation *op = value.getDefiningOp();
  for (Value operand : op->getOperands())
    map.map(operand, cloneFor(builder, operand, loop, map));
  builder.clone(*op, map);
  return map.lookup(value);
}

/// The pointer that `tree` reads from at `position`, and where another one
/// follows, `end` at the latest.
std::pair<Value, Value> PlaceWalker::emitPointer(OpBuilder &builder,
                                                 PlaceTree &tree,
                                                 Value position, Value end) {
  if (!tree.cut) {
    IRMapping map;
    map.map(loop.getInductionVar(), position);
    return {cloneFor(builder, tree.load.getAddr(), loop, map), end};
  }
  Value isLow = builder.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt,
                                              position, tree.place);
  auto emitSide = [&](PlaceTree &side, bool isCut) {
    return [&, isCut](OpBuilder &b, Location) {
      Value last = isCut ? b.create<arith::MinSIOp>(loc, end, tree.place) : end;
      auto [pointer, found] = emitPointer(b, side, position, last);
      b.create<scf::YieldOp>(loc, ValueRange{pointer, found});
    };
  };
  auto branch = builder.create<scf::IfOp>(loc, isLow, emitSide(*tree.low, true),
                                          emitSide(*tree.high, false));
  return {branch.getResult(0), branch.getResult(1)};
}

Part PlaceWalker::emitPart(OpBuilder &builder, Value position) {
  Part part{{}, loop.getUpperBound()};
  for (Root &root : roots) {
    auto [pointer, end] = emitPointer(builder, *root.tree, position, part.end);
    part.pointers.push_back(pointer);
    part.end = end;
  }
  return part;
}

/// What a read from any of `loads` says of them all: the scopes of the one or
/// the other, and those that none of them meets.
static void mergeScopes(LLVM::LoadOp read,
                        MutableArrayRef<LLVM::LoadOp> loads) {
  SetVector<Attribute> scopes, avoided;
  for (auto [i, load] : llvm::enumerate(loads)) {
    ArrayAttr own = load.getAliasScopesAttr();
    ArrayAttr others = load.getNoaliasScopesAttr();
    if (!own || !others)
      return;
    scopes.insert(own.begin(), own.end());
    if (i == 0)
      avoided.insert(others.begin(), others.end());
    else
      avoided.remove_if(
          [&](Attribute scope) { return !llvm::is_contained(others, scope); });
  }
  OpBuilder builder(read);
  read.setAliasScopesAttr(builder.getArrayAttr(scopes.getArrayRef()));
  read.setNoaliasScopesAttr(builder.getArrayAttr(avoided.getArrayRef()));
}

/// Puts a read behind `pointer` where the branches stand in `elements`, which
/// is the loop copied by `map`.
void PlaceWalker::readFrom(Root &root, Value pointer, Value position,
                           scf::ForOp elements, const IRMapping &map) {
  auto branch = map.lookup(root.branch.getResult(0)).getDefiningOp<scf::IfOp>();
  OpBuilder b(branch);
  Type type = branch.getResult(0).getType();
  Value number =
      b.create<arith::SubIOp>(loc, elements.getInductionVar(), position);
  Value offset = b.create<arith::IndexCastOp>(loc, b.getI64Type(), number);
  Value address = b.create<LLVM::GEPOp>(loc, pointer.getType(), type, pointer,
                                        ValueRange{offset});
  LLVM::LoadOp first = root.loads.front();
  auto read = b.create<LLVM::LoadOp>(loc, type, address,
                                     first.getAlignment().value_or(0));
  mergeScopes(read, root.loads);
  branch.getResult(0).replaceAllUsesWith(read);
  branch.erase();
}

SmallVector<Value> PlaceWalker::emitElements(OpBuilder &builder, Value position,
                                             const Part &part,
                                             ValueRange carried) {
  IRMapping map;
  auto elements = cast<scf::ForOp>(builder.clone(*loop, map));
  elements.setLowerBound(position);
  elements.setUpperBound(part.end);
  elements.getInitArgsMutable().assign(carried);
  for (auto [root, pointer] : llvm::zip_equal(roots, part.pointers))
    readFrom(root, pointer, position, elements, map);
  return elements.getResults();
}

void PlaceWalker::run() {
  OpBuilder builder(loop);
  for (Root &root : roots)
    root.tree->emitPlaces(builder, loop);
  SmallVector<Value> inits{loop.getLowerBound()};
  llvm::append_range(inits, loop.getInitArgs());
  auto parts = builder.create<scf::WhileOp>(
      loc, ValueRange(inits).getTypes(), inits,
      [&](OpBuilder &b, Location, ValueRange state) {
        Value isInside =
            b.create<arith::CmpIOp>(loc, arith::CmpIPredicate::slt,
                                    state.front(), loop.getUpperBound());
        b.create<scf::ConditionOp>(loc, isInside, state);
      },
      [&](OpBuilder &b, Location, ValueRange state) {
        Part part = emitPart(b, state.front());
        SmallVector<Value> next{part.end};
        llvm::append_range(
            next, emitElements(b, state.front(), part, state.drop_front()));
        b.create<scf::YieldOp>(loc, next);
      });
  loop.replaceAllUsesWith(parts.getResults().drop_front());
  loop.erase();
}

bool tcc::cpu::walkPlaces(scf::ForOp loop) {
  SmallVector<Root> roots;
  size_t most = 0;
  for (auto branch : loop.getBody()->getOps<scf::IfOp>()) {
    if (branch.getNumResults() != 1)
      continue;
    auto tree = PlaceTree::find(branch.getResult(0), loop.getBody(), loop);
    if (!tree)
      continue;
    Root &root = roots.emplace_back(Root{branch, std::move(tree), {}});
    root.tree->collectLoads(root.loads);
    most = std::max(most, root.loads.size());
  }
  if (most < kManyPlaces)
    return false;
  PlaceWalker(loop, roots).run();
  return true;
}
