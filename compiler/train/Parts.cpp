#include "compiler/train/Parts.h"

#include "compiler/train/Optimizer.h"
#include "dialects/graph/Variables.h"
#include "runtime/base/Alignment.h"

#include "llvm/Support/MathExtras.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

// --- Buckets -----------------------------------------------------------------

static int64_t getBytes(Type element) {
  return llvm::divideCeil(element.getIntOrFloatBitWidth(), 8);
}

namespace {

/// What parameters of one bucket have in common.
struct Likeness {
  Type stored, gradient;
  std::optional<size_t> group;
  bool decays;

  bool operator==(const Likeness &other) const {
    return stored == other.stored && gradient == other.gradient &&
           group == other.group && decays == other.decays;
  }
  /// Elements to the next one whose parameter and gradient are aligned.
  int64_t getStride() const {
    return kTensorAlignment / std::min(getBytes(stored), getBytes(gradient));
  }
};

/// A bucket that takes more parameters until it is full.
struct OpenBucket {
  Likeness likeness;
  size_t index;
  int64_t elements = 0; ///< those before the next parameter
};

} // namespace

static Likeness getLikeness(const VariableTable &table,
                            const OptimizerRecipe &recipe,
                            const DividedParameter &parameter) {
  const ParameterTraits &traits = parameter.traits;
  return {table.get(traits.name).type.getElementType(),
          table.get(parameter.gradient).type.getElementType(),
          findGroup(recipe, traits), !matchesAny(recipe.noDecay, traits)};
}

static void add(const VariableTable &table, const DividedParameter &parameter,
                OpenBucket &open, DividedBucket &bucket) {
  int64_t count = table.get(parameter.gradient).type.getNumElements();
  bucket.parameters.push_back(parameter.traits.name);
  bucket.gradients.push_back(parameter.gradient);
  bucket.begins.push_back(open.elements);
  open.elements += llvm::alignTo(count, open.likeness.getStride());
}

static void close(const OpenBucket &open, int64_t ranks,
                  DividedBucket &bucket) {
  // A bucket of tensors without elements has parts, too.
  int64_t elements = std::max<int64_t>(open.elements, 1);
  int64_t count =
      llvm::alignTo(elements, open.likeness.getStride() * ranks) / ranks;
  bucket.stored = RankedTensorType::get(count, open.likeness.stored);
  bucket.type = RankedTensorType::get(count, open.likeness.gradient);
}

std::vector<DividedBucket>
divideAmongRanks(const VariableTable &table, const Recipe &recipe,
                 ArrayRef<DividedParameter> parameters) {
  std::vector<DividedBucket> buckets;
  std::vector<OpenBucket> all;
  for (const DividedParameter &parameter : parameters) {
    Likeness likeness = getLikeness(table, recipe.optimizer, parameter);
    int64_t bytes = countBytes(table.get(parameter.gradient).type);
    int64_t room =
        (recipe.parallel.bucket.bytes - bytes) / getBytes(likeness.gradient);
    // The last of the buckets that are alike is the one that may have room.
    auto found = std::find_if(all.rbegin(), all.rend(), [&](const auto &open) {
      return open.likeness == likeness;
    });
    if (found == all.rend() || found->elements > room) {
      all.push_back({likeness, buckets.size()});
      found = all.rbegin();
      buckets.emplace_back();
      buckets.back().name = "bucket." + std::to_string(buckets.size() - 1);
      buckets.back().traits = parameter.traits;
    }
    add(table, parameter, *found, buckets[found->index]);
  }
  for (const OpenBucket &open : all)
    close(open, recipe.parallel.getParts(), buckets[open.index]);
  return buckets;
}

/// The bytes from each variable to the next one, or to the end of all parts.
static SmallVector<int64_t> getRooms(const DividedBucket &bucket,
                                     RankedTensorType part, int64_t ranks) {
  SmallVector<int64_t> rooms;
  int64_t end = part.getNumElements() * ranks;
  for (int64_t begin : llvm::reverse(bucket.begins)) {
    rooms.push_back((end - begin) * getBytes(part.getElementType()));
    end = begin;
  }
  std::reverse(rooms.begin(), rooms.end());
  return rooms;
}

void placeDivided(VariableTable &table, ArrayRef<DividedBucket> buckets,
                  int64_t ranks, int64_t number) {
  for (const DividedBucket &bucket : buckets)
    table.moveToBucket(bucket.gradients, number++,
                       getRooms(bucket, bucket.type, ranks));
  for (const DividedBucket &bucket : buckets)
    table.moveToBucket(bucket.parameters, number++,
                       getRooms(bucket, bucket.stored, ranks));
}

void declarePart(VariableTable &table, const DividedBucket &bucket,
                 StringRef slot, VariableKind kind) {
  Builder builder(table.getContext());
  Variable part{(slot + "/" + bucket.name).str(), kind, bucket.type,
                makeSplat(0),
                /*isZero=*/true};
  for (auto [name, begin] : llvm::zip_equal(bucket.parameters, bucket.begins)) {
    auto type = RankedTensorType::get(table.get(name).type.getShape(),
                                      bucket.type.getElementType());
    part.pieces.push_back(PieceAttr::get(
        table.getContext(), builder.getStringAttr(slot + "/" + name), type,
        builder.getStringAttr(name), begin));
  }
  table.declare(std::move(part));
}

// --- Ops ---------------------------------------------------------------------

static ArrayAttr getNames(OpBuilder &builder, const Bucket &bucket) {
  SmallVector<StringRef> names(bucket.begin(), bucket.end());
  return builder.getStrArrayAttr(names);
}

Value emitSumOfPart(StepFunction &step, const DividedBucket &bucket,
                    const NamedValues &values) {
  SmallVector<Value> tensors;
  for (const std::string &name : bucket.gradients)
    tensors.push_back(values.lookup(name));
  OpBuilder builder(step.getBuilder());
  setInsertionPointAfter(builder, tensors);
  auto loc = NameLoc::get(builder.getStringAttr(describe(bucket.gradients)));
  return builder.create<ReduceScatterOp>(loc, bucket.type, tensors,
                                         getNames(builder, bucket.gradients));
}

Value emitPartOfSums(StepFunction &step, const DividedBucket &bucket,
                     const NamedValues &sums) {
  SmallVector<Value> tensors;
  for (const std::string &name : bucket.gradients)
    tensors.push_back(sums.lookup(name));
  OpBuilder &builder = step.getBuilder();
  return builder.create<PartOp>(step.getLoc(), bucket.type, tensors,
                                getNames(builder, bucket.gradients));
}

Value emitPart(StepFunction &step, const DividedBucket &bucket) {
  SmallVector<Value> tensors;
  for (const std::string &name : bucket.parameters)
    tensors.push_back(step.read(name));
  OpBuilder &builder = step.getBuilder();
  return builder.create<PartOp>(step.getLoc(), bucket.stored, tensors,
                                getNames(builder, bucket.parameters));
}

void emitGather(StepFunction &step, const DividedBucket &bucket, Value part) {
  OpBuilder &builder = step.getBuilder();
  SmallVector<Type> types;
  for (const std::string &name : bucket.parameters)
    types.push_back(step.read(name).getType());
  auto loc = NameLoc::get(builder.getStringAttr(describe(bucket.parameters)));
  auto gather = builder.create<AllGatherOp>(
      loc, types, part, getNames(builder, bucket.parameters));
  for (auto [name, tensor] :
       llvm::zip_equal(bucket.parameters, gather.getTensors()))
    step.write(name, tensor);
}

} // namespace tcc::train
