#include "compiler/train/Buckets.h"

#include "compiler/decisions/Decisions.h"
#include "dialects/graph/Variables.h"
#include "runtime/package/Names.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace tcc::graph;

namespace tcc::train {

std::vector<std::string> listByReadiness(ArrayRef<NamedValue> values) {
  auto order = llvm::to_vector(llvm::seq<size_t>(0, values.size()));
  llvm::sort(order, [&](size_t a, size_t b) {
    Operation *first = values[a].second.getDefiningOp();
    Operation *second = values[b].second.getDefiningOp();
    if (first == second)
      return a < b;
    return !first || (second && first->isBeforeInBlock(second));
  });
  std::vector<std::string> names;
  for (size_t i : order)
    names.push_back(values[i].first);
  return names;
}

std::vector<Bucket> divideIntoBuckets(const VariableTable &table,
                                      ArrayRef<std::string> names,
                                      int64_t bytes) {
  std::vector<Bucket> buckets;
  Type element;
  int64_t room = 0;
  for (const std::string &name : names) {
    RankedTensorType type = table.get(name).type;
    if (type.getElementType() != element || countBytes(type) > room) {
      buckets.emplace_back();
      element = type.getElementType();
      room = bytes;
    }
    buckets.back().push_back(name);
    room -= countBytes(type);
  }
  return buckets;
}

int64_t getBytes(const VariableTable &table, const Bucket &bucket) {
  int64_t bytes = 0;
  for (const std::string &name : bucket)
    bytes += countBytes(table.get(name).type);
  return bytes;
}

void noteBucket(ModuleOp module, const Bucket &bucket, int64_t bytes,
                const char *what) {
  bool isExact = module->hasAttr(GraphDialect::kExactAttr);
  DecisionLog(module, "buckets")
      .add(module, what, describe(bucket) + " by one message",
           {{"variables", double(bucket.size())}, {"bytes", double(bytes)}},
           format::nameOf(isExact ? format::EntryKind::reduce_apply
                                  : format::EntryKind::reduce_step));
}

/// See isSummedByRanks; integers have no gradients.
bool isSummed(Type element) { return element.isF32() || element.isF64(); }

void checkSums(ModuleOp module, int64_t parts, Problems &problems) {
  llvm::SetVector<Type> refused;
  module.walk([&](Operation *op) {
    if (!isa<AllReduceOp, ReduceScatterOp>(op))
      return;
    Type element = getElementTypeOrSelf(op->getOperand(0));
    if (!isSummed(element))
      refused.insert(element);
  });
  std::string ranks = parts ? std::to_string(parts) : "'auto'";
  for (Type element : refused) {
    std::string text;
    llvm::raw_string_ostream(text)
        << "parallel.data = " << ranks
        << ": ranks add up f32 and f64, and the model has gradients or "
           "statistics of "
        << element;
    problems.add(ProblemClass::unsupported, text);
  }
}

std::string describe(const Bucket &bucket) {
  return bucket.size() == 1 ? bucket.front()
                            : bucket.front() + " to " + bucket.back();
}

void setInsertionPointAfter(OpBuilder &builder, ArrayRef<Value> values) {
  Operation *last = nullptr;
  for (Value value : values)
    if (Operation *op = value.getDefiningOp();
        op && (!last || last->isBeforeInBlock(op)))
      last = op;
  if (last)
    builder.setInsertionPointAfter(last);
}

void emitSums(StepFunction &step, ArrayRef<Bucket> buckets, bool inTree,
              NamedValues &values) {
  for (const Bucket &bucket : buckets) {
    SmallVector<Value> tensors;
    SmallVector<StringRef> names(bucket.begin(), bucket.end());
    for (const std::string &name : bucket)
      tensors.push_back(values.lookup(name));
    OpBuilder builder(step.getBuilder());
    setInsertionPointAfter(builder, tensors);
    auto loc = NameLoc::get(builder.getStringAttr(describe(bucket)));
    auto sums = builder.create<AllReduceOp>(
        loc, tensors, builder.getStrArrayAttr(names), /*group=*/0, inTree);
    for (auto [name, sum] : llvm::zip_equal(bucket, sums.getSums()))
      values[name] = sum;
  }
}

} // namespace tcc::train
