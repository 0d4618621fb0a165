//===- EmitControl.cpp - Branches and loops whose extents may change ------===//
//
// Regions are filled inside of an op of the module, so that what is in them
// finds the module's symbols. Extents that branches do not share, or that an
// iteration changes, become computed symbols.
//
//===----------------------------------------------------------------------===//
#include "frontends/Emitter.h"

#include "mlir/IR/Matchers.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/ScopeExit.h"
#include <cmath>

using namespace mlir;

namespace tcc {

static RankedTensorType getTensorType(Value value) {
  return cast<RankedTensorType>(value.getType());
}

/// True if `a` and `b` differ in nothing but extents.
static bool isAlike(RankedTensorType a, RankedTensorType b) {
  return a.getElementType() == b.getElementType() && a.getRank() == b.getRank();
}

Operation *Emitter::holdRegions(unsigned count) {
  OperationState state(loc, graph::IfOp::getOperationName());
  for (unsigned i = 0; i < count; ++i)
    state.addRegion()->emplaceBlock();
  return builder.create(state);
}

void Emitter::updateSymbols() {
  if (ModuleOp module = getModule())
    graph::setSymbols(module, sizes.getSymbols());
}

// --- Branches ----------------------------------------------------------------

/// An extent that branches give in two ways, of which it is the larger at most.
static AffineExpr addJoined(Sizes &sizes, StringRef name, AffineExpr a,
                            AffineExpr b) {
  graph::Range x = sizes.getRange(a), y = sizes.getRange(b);
  return sizes.addComputed(name, std::max<int64_t>(std::min(x.min, y.min), 0),
                           std::max(x.max, y.max));
}

RankedTensorType Emitter::joinTypes(RankedTensorType a, RankedTensorType b,
                                    StringRef name, size_t symbolCount) {
  graph::Extents joined, computed, ownA, ownB;
  auto isVisible = [&](AffineExpr extent) {
    return llvm::all_of(graph::getUsedSymbols(extent),
                        [&](unsigned symbol) { return symbol < symbolCount; });
  };
  for (auto [axis, x, y] :
       llvm::enumerate(graph::getExtents(a), graph::getExtents(b))) {
    joined.push_back(x);
    if (graph::isEqual(x, y) && isVisible(x))
      continue;
    joined.back() =
        addJoined(sizes, (name + "." + llvm::Twine(axis)).str(), x, y);
    computed.push_back(joined.back());
    ownA.push_back(x);
    ownB.push_back(y);
  }
  if (computed.size() > 1)
    sizes.limitProduct(
        computed, computed,
        std::max(sizes.getMaxElements(ownA), sizes.getMaxElements(ownB)));
  return graph::makeTensorType(joined, a.getElementType());
}

SmallVector<Value> Emitter::branch(Value condition,
                                   const SmallVectorImpl<std::string> &names,
                                   BranchBody body) {
  if (failed || !condition)
    return {};
  size_t symbolCount = sizes.getSymbols().size();
  Operation *holder = holdRegions(2);
  auto drop = llvm::make_scope_exit([&] { holder->erase(); });
  SmallVector<Value> yielded[2];
  for (int i = 0; i < 2; ++i) {
    OpBuilder::InsertionGuard guard(builder);
    builder.setInsertionPointToStart(&holder->getRegion(i).front());
    yielded[i] = body(i == 0);
    if (failed || llvm::is_contained(yielded[i], Value())) {
      fail("a branch is malformed");
      return {};
    }
    builder.create<graph::YieldOp>(loc, yielded[i]);
  }
  OperationState state(loc, graph::IfOp::getOperationName());
  bool isFit = yielded[0].size() == yielded[1].size();
  for (auto [i, a, b] : llvm::enumerate(yielded[0], yielded[1])) {
    isFit &= isAlike(getTensorType(a), getTensorType(b));
    if (!isFit)
      break;
    std::string name = i < names.size() ? names[i] : "branch";
    state.addTypes(
        joinTypes(getTensorType(a), getTensorType(b), name, symbolCount));
  }
  if (!isFit) {
    unsupported(
        "a branch that is known only at run time, with results of other "
        "element types or ranks than the other's,");
    return {};
  }
  updateSymbols();
  state.addOperands(condition);
  for (int i = 0; i < 2; ++i)
    state.addRegion()->takeBody(holder->getRegion(i));
  Operation *op = builder.create(state);
  return check(op) ? SmallVector<Value>(op->getResults())
                   : SmallVector<Value>();
}

// --- Loops -------------------------------------------------------------------

namespace {

/// An extent of a carried value that iterations change.
struct Change {
  size_t value, axis;
  unsigned group; ///< those of one group are always equal
};

/// Finds which extents of carried values change, a body at a time.
class CarriedTypes {
public:
  CarriedTypes(Sizes &sizes, ArrayRef<Value> inits, const LoopLength &length)
      : sizes(sizes), inits(inits), length(length) {}

  /// The types, with new symbols for what changes.
  SmallVector<RankedTensorType> make();
  /// Takes over what a body yields; true if that needs no other types.
  bool isFixed(ArrayRef<RankedTensorType> types, ValueRange yielded);

private:
  std::string getName(const Change &change) const;
  /// The most that an extent may become where nothing is known of it.
  int64_t getUsualMax(const Change &change) const;

  Sizes &sizes;
  ArrayRef<Value> inits;
  const LoopLength &length;
  SmallVector<Change> changes;
  /// By groups: bounds, and what each iteration adds, if that is known.
  struct Group {
    AffineExpr symbol;
    int64_t min = INT64_MAX;
    std::optional<int64_t> growth;
  };
  SmallVector<Group> groups;
};

} // namespace

std::string CarriedTypes::getName(const Change &change) const {
  std::string name =
      change.value < length.names.size() ? length.names[change.value] : "loop";
  return name + "." + std::to_string(change.axis);
}

int64_t CarriedTypes::getUsualMax(const Change &change) const {
  graph::Extents others;
  int64_t count = 0;
  for (auto [axis, extent] :
       llvm::enumerate(graph::getExtents(inits[change.value])))
    if (llvm::any_of(changes, [&, axis = axis](const Change &other) {
          return other.value == change.value && other.axis == axis;
        }))
      ++count;
    else
      others.push_back(extent);
  double rest = double(kUsualElements) /
                double(std::max<int64_t>(sizes.getMaxElements(others), 1));
  double each = std::pow(std::max(rest, 1.0), 1.0 / double(count));
  return std::min(int64_t(each), kUsualExtent);
}

SmallVector<RankedTensorType> CarriedTypes::make() {
  SmallVector<graph::Extents> all;
  for (Value init : inits)
    all.push_back(graph::getExtents(init));
  for (auto [number, group] : llvm::enumerate(groups)) {
    int64_t max = INT64_MAX, first = 0;
    std::string name;
    for (const Change &change : changes) {
      if (change.group != number)
        continue;
      first = sizes.getRange(all[change.value][change.axis]).max;
      max = std::min(max, std::max(first, getUsualMax(change)));
      if (name.empty())
        name = getName(change);
    }
    int64_t trips =
        length.known ? sizes.getRange(length.known).max : kMaxElements;
    if (group.growth && trips <= kMaxElements / (1 + std::abs(*group.growth)))
      max = first + std::max<int64_t>(*group.growth, 0) * trips;
    if (auto bound = sizes.findBound(name))
      max = *bound;
    group.symbol = sizes.addComputed(name, std::min(group.min, max), max);
  }
  for (const Change &change : changes)
    all[change.value][change.axis] = groups[change.group].symbol;
  SmallVector<RankedTensorType> types;
  for (auto [init, own] : llvm::zip_equal(inits, all))
    types.push_back(
        graph::makeTensorType(own, getTensorType(init).getElementType()));
  return types;
}

bool CarriedTypes::isFixed(ArrayRef<RankedTensorType> types,
                           ValueRange yielded) {
  struct Key {
    AffineExpr first, next;
    std::optional<unsigned> group;
    bool operator==(const Key &other) const {
      return first == other.first && next == other.next && group == other.group;
    }
  };
  SmallVector<Key> keys;
  SmallVector<Change> found;
  SmallVector<Group> foundGroups;
  for (auto [i, type, value] : llvm::enumerate(types, yielded)) {
    graph::Extents firsts = graph::getExtents(inits[i]);
    for (auto [axis, own, next] :
         llvm::enumerate(graph::getExtents(type), graph::getExtents(value))) {
      auto known = llvm::find_if(changes, [&, i = i, axis = axis](Change &one) {
        return one.value == i && one.axis == axis;
      });
      if (known == changes.end() && graph::isEqual(own, next))
        continue;
      Key key{firsts[axis], next, std::nullopt};
      if (known != changes.end())
        key.group = known->group;
      unsigned number = llvm::find(keys, key) - keys.begin();
      if (number == keys.size()) {
        keys.push_back(key);
        int64_t least =
            std::max<int64_t>(std::min(sizes.getRange(firsts[axis]).min,
                                       sizes.getRange(next).min),
                              0);
        Group group{AffineExpr(), least, std::nullopt};
        if (known != changes.end())
          group.growth = graph::getConstant(next - own);
        foundGroups.push_back(group);
      }
      found.push_back({i, axis, number});
    }
  }
  auto isSame = [&](const auto &pair) {
    const Group &a = std::get<0>(pair), &b = std::get<1>(pair);
    return a.min <= b.min && (a.growth || !b.growth);
  };
  bool isFixed = found.size() == changes.size() &&
                 foundGroups.size() == groups.size() &&
                 llvm::all_of(llvm::zip(groups, foundGroups), isSame);
  changes = std::move(found);
  groups = std::move(foundGroups);
  return isFixed;
}

/// True if `value` is a constant that is true.
static bool isTrue(Value value) {
  DenseIntElementsAttr elements;
  return matchPattern(value, m_Constant(&elements)) && elements.isSplat() &&
         !elements.getSplatValue<APInt>().isZero();
}

Operation *Emitter::fillBody(ArrayRef<RankedTensorType> types, LoopBody body,
                             SmallVectorImpl<Value> &yielded) {
  Operation *holder = holdRegions(1);
  Block &block = holder->getRegion(0).front();
  Value iteration =
      block.addArgument(RankedTensorType::get({}, builder.getI64Type()), loc);
  for (Type type : types)
    block.addArgument(type, loc);
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(&block);
  yielded = body(iteration, block.getArguments().drop_front());
  if (failed || yielded.size() <= types.size() ||
      llvm::is_contained(yielded, Value())) {
    fail("the loop's body is malformed");
    holder->erase();
    return nullptr;
  }
  for (auto [type, value] : llvm::zip(types, ArrayRef(yielded).drop_front()))
    if (!isAlike(type, getTensorType(value))) {
      unsupported("a loop that changes the rank or element type of a value");
      holder->erase();
      return nullptr;
    }
  builder.create<graph::YieldOp>(loc, yielded);
  return holder;
}

AffineExpr Emitter::countSlices(const LoopLength &length,
                                ArrayRef<Value> yielded, size_t carried,
                                size_t symbolCount) {
  bool runsToEnd =
      isTrue(yielded[0]) && (!length.condition || isTrue(length.condition));
  int64_t most = 1;
  for (Value slice : yielded.drop_front(1 + carried)) {
    graph::Extents extents = graph::getExtents(slice);
    most = std::max(most, sizes.getMaxElements(extents));
    for (AffineExpr extent : extents)
      for (unsigned symbol : graph::getUsedSymbols(extent))
        if (symbol >= symbolCount) {
          unsupported("stacked results of a loop that change their extents");
          return {};
        }
  }
  if (length.known && runsToEnd)
    return length.known;
  std::string name =
      (carried < length.names.size() ? length.names[carried] : "loop") + ".0";
  int64_t max =
      length.known
          ? std::max<int64_t>(sizes.getRange(length.known).max, 0)
          : std::min(std::max<int64_t>(kUsualElements / most, 1), kUsualExtent);
  if (auto bound = sizes.findBound(name))
    max = std::min(max, *bound);
  return sizes.addComputed(name, 0, max);
}

SmallVector<Value> Emitter::loop(const LoopLength &length,
                                 ArrayRef<Value> inits, LoopBody body) {
  if (failed || llvm::is_contained(inits, Value()))
    return {};
  size_t symbolCount = sizes.getSymbols().size(), carried = inits.size();
  CarriedTypes carriedTypes(sizes, inits, length);
  SmallVector<RankedTensorType> types = carriedTypes.make();
  SmallVector<Value> yielded;
  Operation *holder = fillBody(types, body, yielded);
  while (holder &&
         !carriedTypes.isFixed(types, ValueRange(yielded).slice(1, carried))) {
    holder->erase();
    sizes.keepSymbols(symbolCount);
    types = carriedTypes.make();
    updateSymbols();
    holder = fillBody(types, body, yielded);
  }
  if (!holder)
    return {};
  auto drop = llvm::make_scope_exit([&] { holder->erase(); });
  OperationState state(loc, graph::LoopOp::getOperationName());
  state.addTypes(SmallVector<Type>(types.begin(), types.end()));
  if (yielded.size() > 1 + carried) {
    AffineExpr count = countSlices(length, yielded, carried, symbolCount);
    if (!count)
      return {};
    updateSymbols();
    if (count != length.known)
      state.addAttribute("count", AffineMapAttr::get(graph::makeSizeMap(
                                      {count}, getContext())));
    for (Value slice : ArrayRef(yielded).drop_front(1 + carried)) {
      graph::Extents stacked = graph::getExtents(slice);
      stacked.insert(stacked.begin(), count);
      state.addTypes(graph::makeTensorType(
          stacked, getTensorType(slice).getElementType()));
    }
  }
  if (!llvm::all_of(state.types, [&](Type type) { return checkSize(type); }))
    return {};
  if (length.trips)
    state.addOperands(length.trips);
  if (length.condition)
    state.addOperands(length.condition);
  state.addOperands(inits);
  state.addAttribute("operandSegmentSizes",
                     builder.getDenseI32ArrayAttr({length.trips != nullptr,
                                                   length.condition != nullptr,
                                                   int32_t(carried)}));
  state.addRegion()->takeBody(holder->getRegion(0));
  Operation *op = builder.create(state);
  return check(op) ? SmallVector<Value>(op->getResults())
                   : SmallVector<Value>();
}

} // namespace tcc
