//===- MixPrecision.cpp - Products and what they read in narrow floats ----===//
#include "compiler/decisions/Decisions.h"
#include "compiler/passes/graph/Passes.h"
#include "compiler/passes/graph/fusion/Epilogue.h"
#include "compiler/passes/graph/fusion/Region.h"
#include "compiler/passes/graph/match/Matchers.h"
#include "compiler/target/Target.h"

#include "dialects/graph/NodeNames.h"
#include "dialects/graph/Phases.h"
#include "runtime/base/Glob.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "llvm/ADT/StringSwitch.h"
#include <set>

using namespace mlir;
using namespace tcc::graph;

namespace tcc {

#define GEN_PASS_DEF_MIXPRECISIONPASS
#include "compiler/passes/graph/Passes.h.inc"

namespace {

bool isWide(Value value) {
  auto tensor = dyn_cast<RankedTensorType>(value.getType());
  return tensor && tensor.getElementType().isF32();
}

Precision getPrecision(Operation *op) {
  auto precision = dyn_cast<PrecisionOpInterface>(op);
  return precision ? precision.getPrecision() : Precision::keep;
}

bool isProduct(Precision precision) {
  return precision == Precision::narrow ||
         precision == Precision::narrow_attention ||
         precision == Precision::narrow_tensor_attention;
}

/// The narrow ops of a function that stay wide: those that a glob names, by the
/// node or by a parameter that they read, and what has their location, as their
/// gradients do.
class KeptOps {
public:
  KeptOps(func::FuncOp function, ArrayRef<Operation *> ops,
          ArrayRef<std::string> globs);

  bool contains(Operation *op) const {
    return ops.contains(op) || locations.contains(withoutPhase(op->getLoc()));
  }
  /// The globs that named one.
  const std::set<std::string> &getUsedGlobs() const { return used; }

private:
  bool isNamed(Operation *op);
  StringRef getName(Value value);
  bool matches(StringRef name);

  func::FuncOp function;
  ArrayRef<std::string> globs;
  llvm::SmallPtrSet<Operation *, 8> ops;
  llvm::DenseSet<Attribute> locations;
  std::set<std::string> used;
};

/// Gives each value that a narrow op reads a narrow form, and that form to all
/// its readers.
class Mixer {
public:
  Mixer(FloatType narrow, bool hasLibraries, const KeptOps &kept,
        DecisionLog &log)
      : narrow(narrow), hasLibraries(hasLibraries), kept(kept), log(log) {}

  /// Whether a product is stored wherever it goes as libraries have to store
  /// it.
  bool isStoredAsRead(Operation *product) const;

  void narrowOperands(Operation *op);
  /// What the kernel of a product stores, and what it adds, is narrow.
  void narrowSums(Operation *product);
  /// What adds up moved or picked elements of one narrow value, as the gradient
  /// of a pooling does, is narrow.
  void narrowGathered(ArrayRef<Operation *> ops);
  /// Readers of values that are stored narrow read them so, but for products
  /// that stay wide. `ops` are the function's.
  void widenReaders(ArrayRef<Operation *> ops);
  /// What is moved narrow is widened behind the move.
  void sinkWidening(Operation *op);

private:
  FloatType narrow;
  bool hasLibraries;
  const KeptOps &kept;
  DecisionLog &log;
  llvm::DenseMap<Value, Value> narrowed;
  SmallVector<CastOp> stores; // of computed values and parameters

  Value getNarrow(Value value);
  bool isActivation(Operation *op, Operation *product) const;
  bool isSum(Value value, int depth) const;
  bool canAddNarrow(Value value, int depth = 0) const;
  Value findNarrow(OpBuilder &builder, Value value);
  Value move(OpBuilder &builder, Operation *op,
             function_ref<Value(Value)> getOperand);
};

} // namespace

// --- What stays wide ---------------------------------------------------------

KeptOps::KeptOps(func::FuncOp function, ArrayRef<Operation *> all,
                 ArrayRef<std::string> globs)
    : function(function), globs(globs) {
  for (Operation *op : all) {
    if (!isProduct(getPrecision(op)) || !isNamed(op))
      continue;
    ops.insert(op);
    if (!getNodeNames(op->getLoc()).empty())
      locations.insert(withoutPhase(op->getLoc()));
  }
}

/// The name of the weight or variable that is moved to `value`.
StringRef KeptOps::getName(Value value) {
  while (Operation *op = value.getDefiningOp()) {
    if (auto weight = dyn_cast<WeightOp>(op))
      return weight.getName();
    if (op->getNumOperands() != 1 || getPrecision(op) != Precision::follow)
      return "";
    value = op->getOperand(0);
  }
  auto argument = cast<BlockArgument>(value);
  if (argument.getOwner() != &function.getBody().front())
    return "";
  auto name = function.getArgAttrOfType<StringAttr>(
      argument.getArgNumber(), GraphDialect::kVariableAttr);
  return name ? name.getValue() : "";
}

bool KeptOps::matches(StringRef name) {
  bool isMatch = false;
  for (const std::string &glob : globs)
    if (runtime::matchesGlob(glob, name)) {
      used.insert(glob);
      isMatch = true;
    }
  return isMatch;
}

bool KeptOps::isNamed(Operation *op) {
  bool isNamed = false;
  for (StringRef name : getNodeNames(op->getLoc()))
    isNamed |= matches(name);
  for (Value operand : op->getOperands())
    isNamed |= matches(getName(operand));
  return isNamed;
}

/// The products that stay wide, and the ops that move what these read. `ops`
/// are in order.
static llvm::SmallPtrSet<Operation *, 8>
findWideReaders(ArrayRef<Operation *> ops, const KeptOps &kept) {
  llvm::SmallPtrSet<Operation *, 8> readers;
  for (Operation *op : llvm::reverse(ops)) {
    Precision precision = getPrecision(op);
    bool isKept = isProduct(precision) && kept.contains(op);
    bool isMove = precision == Precision::follow &&
                  llvm::any_of(op->getUsers(), [&](Operation *user) {
                    return readers.contains(user);
                  });
    if (isKept || isMove)
      readers.insert(op);
  }
  return readers;
}

/// What products are computed from. A gradient that an update alone reads is
/// not among it, nor are a model's last sums. What has regions counts as a
/// product.
static llvm::DenseSet<Value> findSources(ArrayRef<Operation *> ops,
                                         ArrayRef<Operation *> products) {
  llvm::DenseSet<Value> sources;
  llvm::SmallPtrSet<Operation *, 16> isProduct(products.begin(),
                                               products.end());
  for (Operation *op : llvm::reverse(ops)) {
    bool isNested =
        !isa<func::FuncOp>(op) && !isa<func::FuncOp>(op->getParentOp());
    if (isNested || op->getNumRegions() > 0 || isProduct.contains(op) ||
        llvm::any_of(op->getResults(),
                     [&](Value result) { return sources.contains(result); }))
      sources.insert(op->operand_begin(), op->operand_end());
  }
  return sources;
}

// --- What becomes narrow -----------------------------------------------------

/// `op`, which follows its operands, on narrow ones.
Value Mixer::move(OpBuilder &builder, Operation *op,
                  function_ref<Value(Value)> getOperand) {
  SmallVector<Value> operands;
  for (Value operand : op->getOperands())
    operands.push_back(isWide(operand) ? getOperand(operand) : operand);
  Operation *clone = builder.clone(*op);
  clone->setOperands(operands);
  Value result = clone->getResult(0);
  result.setType(withElementType(getTensorType(result), narrow));
  return result;
}

/// The narrow form of `value`: what is moved is narrowed before it moves.
Value Mixer::getNarrow(Value value) {
  auto known = narrowed.find(value);
  if (known != narrowed.end())
    return known->second;
  OpBuilder builder(value.getContext());
  builder.setInsertionPointAfterValue(value);
  Operation *op = value.getDefiningOp();
  Value result;
  if (auto cast = value.getDefiningOp<CastOp>();
      cast && getElementTypeOrSelf(cast.getX()) == narrow) {
    result = cast.getX();
  } else if (op && getPrecision(op) == Precision::follow) {
    result =
        move(builder, op, [&](Value operand) { return getNarrow(operand); });
  } else {
    auto store = builder.create<CastOp>(
        value.getLoc(), withElementType(getTensorType(value), narrow), value);
    result = store;
    // An argument is there in its own type.
    if (op)
      stores.push_back(store);
  }
  return narrowed[value] = result;
}

/// What `op` multiplies.
static SmallVector<OpOperand *> getFactors(Operation *op) {
  if (auto attention = dyn_cast<AttentionOpInterface>(op))
    return attention.getMatrices();
  SmallVector<OpOperand *> factors;
  for (OpOperand &operand : op->getOpOperands())
    factors.push_back(&operand);
  return factors;
}

void Mixer::narrowOperands(Operation *op) {
  for (OpOperand *operand : getFactors(op))
    if (isWide(operand->get()))
      operand->set(getNarrow(operand->get()));
  log.add(op, "narrowed", "products are summed in f32");
}

/// True if `use` takes the value out of the block it is computed in.
static bool isExit(OpOperand &use) {
  return use.getOwner()->hasTrait<OpTrait::IsTerminator>();
}

static bool isStoredWide(Operation *product) {
  return cast<PrecisionOpInterface>(product).isStoredWide();
}

/// True if elements of the result are elements of operands: moved, or picked
/// where relu passed. They are not rounded again.
static bool isPick(Operation *op) {
  return getPrecision(op) == Precision::follow || isa<SelectOp>(op);
}

/// Sums of more terms than this deep are not looked through.
static constexpr int kMaxDepth = 8;

/// A product that `value` adds up or picks elements of; null if there is none.
static Operation *findProduct(Value value, int depth = 0) {
  Operation *op = value.getDefiningOp();
  if (!op || isProduct(getPrecision(op)))
    return op;
  if (depth == kMaxDepth || !(isPick(op) || isa<AddOp>(op)))
    return nullptr;
  for (Value operand : op->getOperands())
    if (Operation *product = findProduct(operand, depth + 1))
      return product;
  return nullptr;
}

/// Whether a library computes `op`, a function, in its call for `product`.
bool Mixer::isActivation(Operation *op, Operation *product) const {
  return hasLibraries && product && fusion::isActivationOf(op, product);
}

/// Whether `value` is a product and what may be added to it, in few steps.
bool Mixer::isSum(Value value, int depth) const {
  if (depth > kMaxDepth)
    return false;
  Operation *op = value.getDefiningOp();
  if (!op || isProduct(getPrecision(op)))
    return op && !kept.contains(op) && !isStoredWide(op);
  if (isPick(op))
    return llvm::all_of(op->getOperands(), [&](Value part) {
      return !isWide(part) || getSplat(part) == 0.0 ||
             canAddNarrow(part, depth + 1);
    });
  bool isFunction = fusion::isActivation(op) &&
                    isActivation(op, findProduct(fusion::getActivated(op)));
  return (isa<AddOp>(op) || isFunction) &&
         llvm::all_of(op->getOperands(), [&](Value term) {
           return canAddNarrow(term, depth + 1);
         });
}

/// What is moved to `value`.
static Value getMoved(Value value) {
  Operation *op = value.getDefiningOp();
  while (op && op->getNumOperands() == 1 &&
         getPrecision(op) == Precision::follow) {
    value = op->getOperand(0);
    op = value.getDefiningOp();
  }
  return value;
}

/// Whether `value` is an argument that a variable comes in by.
static bool isVariable(Value value) {
  auto argument = dyn_cast<BlockArgument>(value);
  auto function =
      argument ? dyn_cast<func::FuncOp>(argument.getOwner()->getParentOp())
               : func::FuncOp();
  return function && function.getArgAttr(argument.getArgNumber(),
                                         GraphDialect::kVariableAttr);
}

/// Whether `value`, which is added to a product, is narrow or may be: a mask
/// has elements that are infinite then.
bool Mixer::canAddNarrow(Value value, int depth) const {
  if (narrowed.contains(value))
    return true;
  Value moved = getMoved(value);
  if (isParameter(value) || isVariable(moved))
    return getLongAxes(moved).size() <= 1;
  return isSum(value, depth);
}

bool Mixer::isStoredAsRead(Operation *product) const {
  return hasLibraries && cast<PrecisionOpInterface>(product).isStoredAsRead();
}

void Mixer::narrowSums(Operation *product) {
  Value sum = product->getResult(0);
  SmallVector<OpOperand *> addends;
  bool hasPick = false, isMoved = false;
  while (hasOneLocalUse(sum)) {
    Operation *reader = *sum.user_begin();
    auto others = llvm::make_filter_range(
        reader->getOpOperands(), [&](OpOperand &operand) {
          Value value = operand.get();
          return value != sum && isWide(value) && getSplat(value) != 0.0;
        });
    isMoved = getPrecision(reader) == Precision::follow;
    bool isPicked = !hasLibraries && isPick(reader) && !isMoved;
    bool isLast = isActivation(reader, product);
    bool goesOn = isPicked || isLast || fusion::isView(reader) ||
                  (isa<AddOp>(reader) && addends.size() < fusion::kMaxAddends);
    if (!goesOn || !llvm::all_of(others, [&](OpOperand &operand) {
          return canAddNarrow(operand.get());
        }))
      break;
    for (OpOperand &operand : others)
      addends.push_back(&operand);
    sum = reader->getResult(0);
    hasPick |= isPicked;
    if (isLast)
      break;
  }
  // On the CPU what one reader makes of a sum is part of the same kernel, and
  // wide. Elements that are moved or picked are the sum's.
  bool isOneUse = hasOneLocalUse(product->getResult(0));
  bool isSumStored = hasOneLocalUse(sum) ? isMoved : hasPick;
  if (!hasLibraries && isOneUse && !isSumStored)
    return;
  // What adds up over layers may leave the range of f16: it is only stored so
  // if products read it, and else perhaps the product alone.
  bool isStored = !narrow.isF16() || narrowed.contains(sum);
  if (llvm::all_of(sum.getUses(), isExit) || !isStored) {
    if (!isStoredAsRead(product))
      return;
    sum = product->getResult(0);
    addends.clear();
  }
  if (llvm::all_of(sum.getUses(), isExit) || !isWide(sum))
    return;
  getNarrow(sum);
  for (OpOperand *addend : addends) {
    Value value = addend->get();
    if (!isWide(value))
      continue;
    OpBuilder builder(addend->getOwner());
    addend->set(builder.create<CastOp>(value.getLoc(), value.getType(),
                                       getNarrow(value)));
  }
}

void Mixer::narrowGathered(ArrayRef<Operation *> ops) {
  // The narrow value whose elements a value has, and whether it adds them up.
  llvm::MapVector<Value, std::pair<Value, bool>> gathered;
  auto gather = [&](Operation *op, bool isSum) {
    Value origin;
    for (Value operand : op->getOperands()) {
      if (!isWide(operand) || getSplat(operand) == 0.0)
        continue;
      auto [one, isSumBefore] = gathered.lookup(operand);
      if (!one || (origin && one != origin))
        return;
      origin = one;
      isSum |= isSumBefore;
    }
    if (origin)
      gathered[op->getResult(0)] = {origin, isSum};
  };
  for (Operation *op : ops) {
    if (op->getNumResults() != 1 || !isWide(op->getResult(0)))
      continue;
    bool isTerm = isa<AddOp>(op);
    if (Value result = op->getResult(0); narrowed.contains(result))
      gathered[result] = {result, false};
    else if (isTerm || isPick(op))
      gather(op, isTerm);
  }
  for (auto &[value, from] : gathered) {
    auto goesOn = [&, origin = from.first](Operation *reader) {
      return reader->getNumResults() == 1 &&
             gathered.lookup(reader->getResult(0)).first == origin;
    };
    if (from.second && !llvm::all_of(value.getUsers(), goesOn))
      getNarrow(value);
  }
}

void Mixer::widenReaders(ArrayRef<Operation *> ops) {
  llvm::SmallPtrSet<Operation *, 8> wide = findWideReaders(ops, kept);

  for (CastOp store : stores) {
    Value value = store.getX();
    OpBuilder builder(store.getContext());
    builder.setInsertionPointAfter(store);
    auto widened =
        builder.create<CastOp>(store.getLoc(), value.getType(), store);
    value.replaceUsesWithIf(widened, [&](OpOperand &use) {
      return use.getOwner() != store && !isExit(use) &&
             !wide.contains(use.getOwner());
    });
    if (widened->use_empty())
      widened->erase();
  }
}

/// The narrow value that `value` is, exactly; null if it is none.
Value Mixer::findNarrow(OpBuilder &builder, Value value) {
  if (auto cast = value.getDefiningOp<CastOp>())
    return getElementTypeOrSelf(cast.getX()) == narrow ? cast.getX() : Value();
  std::optional<double> splat = getSplat(value);
  if (!splat)
    return {};
  // A border of zeros, say.
  APFloat exact(*splat);
  bool isLossy = false;
  exact.convert(narrow.getFloatSemantics(), APFloat::rmNearestTiesToEven,
                &isLossy);
  return isLossy
             ? Value()
             : makeSplat(builder, value.getLoc(),
                         withElementType(getTensorType(value), narrow), *splat);
}

void Mixer::sinkWidening(Operation *op) {
  if (getPrecision(op) != Precision::follow || !isWide(op->getResult(0)))
    return;
  OpBuilder builder(op);
  llvm::SmallDenseMap<Value, Value> operands;
  bool isAnyCast = false;
  for (Value operand : op->getOperands()) {
    if (!isWide(operand))
      continue;
    operands[operand] = findNarrow(builder, operand);
    if (!operands[operand])
      return;
    isAnyCast |= operand.getDefiningOp<CastOp>() != nullptr;
  }
  if (!isAnyCast)
    return;
  Value moved =
      move(builder, op, [&](Value operand) { return operands[operand]; });
  Value wide =
      builder.create<CastOp>(op->getLoc(), op->getResult(0).getType(), moved);
  op->replaceAllUsesWith(ValueRange(wide));
  op->erase();
}

namespace {

struct MixPrecisionPass : impl::MixPrecisionPassBase<MixPrecisionPass> {
  using MixPrecisionPassBase::MixPrecisionPassBase;

  SmallVector<Operation *> findProducts(ArrayRef<Operation *> ops,
                                        const KeptOps &kept, DecisionLog &log) {
    const TargetCapabilities &able =
        getTarget(getOperation()).getCapabilities();
    SmallVector<Operation *> products;
    for (Operation *op : ops) {
      Precision precision = getPrecision(op);
      bool isNarrow = precision == Precision::narrow ||
                      (precision == Precision::narrow_attention &&
                       able.hasBf16Attention && type == "bf16") ||
                      (isProduct(precision) && able.hasTensorAttention);
      if (!isNarrow || !isWide(op->getOperand(0)))
        continue;
      if (kept.contains(op))
        log.add(op, "kept wide", "its node or parameter is to be");
      else
        products.push_back(op);
    }
    return products;
  }

  /// Marks the products that a library may compute in tf32.
  void allowTf32(ArrayRef<Operation *> products, DecisionLog &log) {
    for (Operation *op : products)
      if (cast<PrecisionOpInterface>(op).setTf32Allowed())
        log.add(op, "tf32", "a library may round what its products read");
  }

  void mix(FloatType narrow, ArrayRef<Operation *> ops,
           ArrayRef<Operation *> products, const KeptOps &kept,
           DecisionLog &log) {
    const TargetCapabilities &able =
        getTarget(getOperation()).getCapabilities();
    Mixer mixer(narrow, able.hasLibraries, kept, log);
    llvm::DenseSet<Value> sources = findSources(ops, products);
    for (Operation *product : products)
      mixer.narrowOperands(product);
    for (Operation *product : products)
      if (!isStoredWide(product) && (sources.contains(product->getResult(0)) ||
                                     mixer.isStoredAsRead(product)))
        mixer.narrowSums(product);
    mixer.narrowGathered(ops);
    mixer.widenReaders(ops);
    for (Operation *op : ops)
      mixer.sinkWidening(op);
  }

  void runOnOperation() override {
    FloatType narrow = llvm::StringSwitch<FloatType>(type)
                           .Case("bf16", FloatType::getBF16(&getContext()))
                           .Case("f16", FloatType::getF16(&getContext()))
                           .Default({});
    if (!narrow && type != "tf32") {
      getOperation().emitError("expected bf16, f16 or tf32, found ") << type;
      return signalPassFailure();
    }
    DecisionLog log(getOperation(), "mix-precision");
    std::set<std::string> used;
    for (auto function : getOperation().getOps<func::FuncOp>()) {
      SmallVector<Operation *> ops;
      function.walk<WalkOrder::PreOrder>(
          [&](Operation *op) { ops.push_back(op); });
      KeptOps kept(function, ops, keep);
      used.insert(kept.getUsedGlobs().begin(), kept.getUsedGlobs().end());
      SmallVector<Operation *> products = findProducts(ops, kept, log);
      if (narrow)
        mix(narrow, ops, products, kept, log);
      else
        allowTf32(products, log);
    }
    for (const std::string &glob : keep)
      if (!used.count(glob))
        mlir::emitWarning(UnknownLoc::get(&getContext()))
            << "no product is kept in f32 for '" << glob << "'";
  }
};

} // namespace
} // namespace tcc
