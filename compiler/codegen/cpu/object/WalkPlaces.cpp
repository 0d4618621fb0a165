#include "compiler/codegen/cpu/object/WalkPlaces.h"

#include "compiler/codegen/cpu/object/LoopCut.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/IRMapping.h"
#include "llvm/ADT/SetVector.h"
#include <memory>

using namespace mlir;
using namespace tcc::cpu;

namespace {

/// Fewer places have loops of their own, which need no pointer at run time.
constexpr size_t kManyPlaces = 5;

/// An element as it is read: loaded, and made wider, say.
struct Read {
  LLVM::LoadOp load;
  SmallVector<Operation *> changes; // each takes the result of the one before

  static std::optional<Read> find(Value value, Block *block, scf::ForOp loop);
  bool changesAs(const Read &other) const;
  Value emitChanges(OpBuilder &builder, Value loaded) const;
};

/// Branches that end in reads. A leaf has a read and no cut.
struct PlaceTree {
  std::optional<LoopCut> cut;
  std::unique_ptr<PlaceTree> low, high; // where the condition holds or does not
  Read read;
  Value place; // where the condition changes

  static std::unique_ptr<PlaceTree> find(Value value, Block *block,
                                         scf::ForOp loop);
  void collectReads(SmallVectorImpl<Read> &reads) const;
  void emitPlaces(OpBuilder &builder, scf::ForOp loop);
};

struct Root {
  scf::IfOp branch;
  std::unique_ptr<PlaceTree> tree;
  SmallVector<Read> reads;
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
  /// The loop over elements.
  scf::ForOp run();

private:
  scf::ForOp loop;
  MutableArrayRef<Root> roots;
  Location loc;

  Part emitPart(OpBuilder &builder, Value position);
  std::pair<Value, Value> emitPointer(OpBuilder &builder, PlaceTree &tree,
                                      Value position, Value end);
  scf::ForOp emitElements(OpBuilder &builder, Value position, const Part &part,
                          ValueRange carried);
  void readFrom(Root &root, Value pointer, Value position, scf::ForOp elements,
                const IRMapping &map);
};

/// By how much indices grow with the variable of a loop.
class Growth {
public:
  explicit Growth(scf::ForOp loop) : loop(loop) {}
  /// Nullopt if not evenly.
  std::optional<int64_t> get(Value index);

private:
  scf::ForOp loop;
  llvm::DenseMap<Value, std::optional<int64_t>> known;

  std::optional<int64_t> find(Value index);
};

} // namespace

std::optional<int64_t> Growth::get(Value index) {
  if (auto found = known.find(index); found != known.end())
    return found->second;
  std::optional<int64_t> growth = find(index);
  known[index] = growth;
  return growth;
}

std::optional<int64_t> Growth::find(Value index) {
  if (index == loop.getInductionVar())
    return 1;
  if (loop.isDefinedOutsideOfLoop(index))
    return 0;
  Operation *op = index.getDefiningOp();
  if (!op || !isPure(op) || op->getNumRegions() > 0)
    return std::nullopt;
  SmallVector<int64_t> operands;
  for (Value operand : op->getOperands()) {
    std::optional<int64_t> growth = get(operand);
    if (!growth)
      return std::nullopt;
    operands.push_back(*growth);
  }
  if (isa<arith::IndexCastOp>(op))
    return operands[0];
  if (isa<arith::AddIOp>(op))
    return operands[0] + operands[1];
  if (isa<arith::SubIOp>(op))
    return operands[0] - operands[1];
  // What is made of what does not change does not.
  bool isFixed =
      llvm::all_of(operands, [](int64_t growth) { return growth == 0; });
  return isFixed ? std::optional<int64_t>(0) : std::nullopt;
}

/// Whether each iteration reads the element behind that of the last one.
static bool readsAdjacent(LLVM::LoadOp load, scf::ForOp loop) {
  Growth growths(loop);
  int64_t growth = 0;
  Value address = load.getAddr();
  while (auto step = address.getDefiningOp<LLVM::GEPOp>()) {
    for (Value index : step.getDynamicIndices()) {
      std::optional<int64_t> part = growths.get(index);
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

/// How `value` is read in `block`; nullopt if it is something else, or if
/// adjacent elements are not adjacent in memory.
std::optional<Read> Read::find(Value value, Block *block, scf::ForOp loop) {
  Read read;
  Operation *op = value.getDefiningOp();
  while (op && op->getBlock() == block && !isa<LLVM::LoadOp>(op)) {
    if (!isPure(op) || op->getNumRegions() > 0 || op->getNumResults() != 1)
      return std::nullopt;
    auto isInside = [&](Value operand) {
      return !loop.isDefinedOutsideOfLoop(operand);
    };
    auto changed = llvm::make_filter_range(op->getOperands(), isInside);
    if (!llvm::hasSingleElement(changed))
      return std::nullopt;
    read.changes.insert(read.changes.begin(), op);
    op = (*changed.begin()).getDefiningOp();
  }
  read.load = dyn_cast_or_null<LLVM::LoadOp>(op);
  if (!read.load || op->getBlock() != block || !readsAdjacent(read.load, loop))
    return std::nullopt;
  return read;
}

bool Read::changesAs(const Read &other) const {
  llvm::DenseMap<Value, Value> same{
      {load->getResult(0), other.load->getResult(0)}};
  auto check = [&](Value lhs, Value rhs) {
    return success(lhs == rhs || same.lookup(lhs) == rhs);
  };
  auto mark = [&](Value lhs, Value rhs) { same[lhs] = rhs; };
  auto isSame = [&](auto pair) {
    return OperationEquivalence::isEquivalentTo(
        std::get<0>(pair), std::get<1>(pair), check, mark,
        OperationEquivalence::IgnoreLocations);
  };
  return load->getResultTypes() == other.load->getResultTypes() &&
         changes.size() == other.changes.size() &&
         llvm::all_of(llvm::zip(changes, other.changes), isSame);
}

Value Read::emitChanges(OpBuilder &builder, Value loaded) const {
  IRMapping map;
  map.map(load->getResult(0), loaded);
  for (Operation *change : changes)
    loaded = builder.clone(*change, map)->getResult(0);
  return loaded;
}

/// What the branches of `block` that end in `value` read; null if they do more.
std::unique_ptr<PlaceTree> PlaceTree::find(Value value, Block *block,
                                           scf::ForOp loop) {
  auto tree = std::make_unique<PlaceTree>();
  auto branch = value.getDefiningOp<scf::IfOp>();
  if (!branch) {
    auto read = Read::find(value, block, loop);
    if (!read)
      return nullptr;
    tree->read = std::move(*read);
    return tree;
  }
  if (branch->getBlock() != block || branch.getNumResults() != 1 ||
      !(tree->cut = LoopCut::find(branch, loop)))
    return nullptr;
  auto findIn = [&](Region &region) -> std::unique_ptr<PlaceTree> {
    Block *inner = &region.front();
    for (Operation &op : inner->without_terminator())
      if (!isPure(&op) && !isa<LLVM::LoadOp, scf::IfOp>(op))
        return nullptr;
    return find(inner->getTerminator()->getOperand(0), inner, loop);
  };
  tree->low = findIn(branch.getThenRegion());
  tree->high = findIn(branch.getElseRegion());
  return tree->low && tree->high ? std::move(tree) : nullptr;
}

void PlaceTree::collectReads(SmallVectorImpl<Read> &reads) const {
  if (!cut) {
    reads.push_back(read);
    return;
  }
  low->collectReads(reads);
  high->collectReads(reads);
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
    return {cloneFor(builder, tree.read.load.getAddr(), loop, map), end};
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

/// What a load in the place of those of `reads` says of them all: the scopes of
/// the one or the other, and those that none of them meets.
static void mergeScopes(LLVM::LoadOp load, MutableArrayRef<Read> reads) {
  SetVector<Attribute> scopes, avoided;
  for (auto [i, read] : llvm::enumerate(reads)) {
    ArrayAttr own = read.load.getAliasScopesAttr();
    ArrayAttr others = read.load.getNoaliasScopesAttr();
    if (!own || !others)
      return;
    scopes.insert(own.begin(), own.end());
    if (i == 0)
      avoided.insert(others.begin(), others.end());
    else
      avoided.remove_if(
          [&](Attribute scope) { return !llvm::is_contained(others, scope); });
  }
  OpBuilder builder(load);
  load.setAliasScopesAttr(builder.getArrayAttr(scopes.getArrayRef()));
  load.setNoaliasScopesAttr(builder.getArrayAttr(avoided.getArrayRef()));
}

/// Puts a read behind `pointer` where the branches stand in `elements`, which
/// is the loop copied by `map`.
void PlaceWalker::readFrom(Root &root, Value pointer, Value position,
                           scf::ForOp elements, const IRMapping &map) {
  auto branch = map.lookup(root.branch.getResult(0)).getDefiningOp<scf::IfOp>();
  OpBuilder b(branch);
  Read &first = root.reads.front();
  Type type = first.load.getType();
  Value number =
      b.create<arith::SubIOp>(loc, elements.getInductionVar(), position);
  Value offset = b.create<arith::IndexCastOp>(loc, b.getI64Type(), number);
  Value address = b.create<LLVM::GEPOp>(loc, pointer.getType(), type, pointer,
                                        ValueRange{offset});
  auto load = b.create<LLVM::LoadOp>(loc, type, address,
                                     first.load.getAlignment().value_or(0));
  mergeScopes(load, root.reads);
  branch.getResult(0).replaceAllUsesWith(first.emitChanges(b, load));
  branch.erase();
}

scf::ForOp PlaceWalker::emitElements(OpBuilder &builder, Value position,
                                     const Part &part, ValueRange carried) {
  IRMapping map;
  auto elements = cast<scf::ForOp>(builder.clone(*loop, map));
  elements.setLowerBound(position);
  elements.setUpperBound(part.end);
  elements.getInitArgsMutable().assign(carried);
  for (auto [root, pointer] : llvm::zip_equal(roots, part.pointers))
    readFrom(root, pointer, position, elements, map);
  return elements;
}

scf::ForOp PlaceWalker::run() {
  OpBuilder builder(loop);
  scf::ForOp elements;
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
        elements = emitElements(b, state.front(), part, state.drop_front());
        SmallVector<Value> next{part.end};
        llvm::append_range(next, elements.getResults());
        b.create<scf::YieldOp>(loc, next);
      });
  loop.replaceAllUsesWith(parts.getResults().drop_front());
  loop.erase();
  return elements;
}

scf::ForOp tcc::cpu::walkPlaces(scf::ForOp loop) {
  SmallVector<Root> roots;
  size_t most = 0;
  for (auto branch : loop.getBody()->getOps<scf::IfOp>()) {
    if (branch.getNumResults() != 1)
      continue;
    auto tree = PlaceTree::find(branch.getResult(0), loop.getBody(), loop);
    if (!tree)
      continue;
    SmallVector<Read> reads;
    tree->collectReads(reads);
    if (!llvm::all_of(reads, [&](const Read &read) {
          return read.changesAs(reads.front());
        }))
      continue;
    most = std::max(most, reads.size());
    roots.push_back(Root{branch, std::move(tree), std::move(reads)});
  }
  return most < kManyPlaces ? loop : PlaceWalker(loop, roots).run();
}
