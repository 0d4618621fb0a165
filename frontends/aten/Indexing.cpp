#include "frontends/aten/Call.h"
#include "frontends/aten/Tracer.h"

using namespace mlir;

namespace tcc::aten {

static void importEmbedding(Call &call) {
  // They change the gradient alone.
  bool changesGradient =
      call.integer("padding_idx") >= 0 || call.isTrue("scale_grad_by_freq");
  if (changesGradient && call.getTracer().trains())
    return (void)call.unsupported(
        "training an embedding with padding_idx or scale_grad_by_freq");
  call.give(call.gather(call.tensor("weight"), call.indices("indices"), 0));
}

static void importIndexSelect(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!call.hasFailed())
    call.give(call.gather(x, call.indices("index"), axis));
}

static void importGather(Call &call) {
  Value x = call.tensor("self"), index = call.indices("index");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || !index || call.hasFailed())
    return;
  // PyTorch reads the leading part of longer axes.
  for (int64_t other = 0; other < call.rank(x); ++other)
    if (other != axis && call.rank(index) == call.rank(x))
      x = call.slice(x, other, call.getSizes().constant(0),
                     graph::getExtent(index, other));
  call.give(call.create<graph::GatherElementsOp>({x, index},
                                                 {call.attr("axis", axis)}));
}

template <graph::ScatterKind kind> static void importScatter(Call &call) {
  Value x = call.tensor("self"), index = call.indices("index");
  if (!x || !index)
    return;
  int64_t axis = call.axis("dim", call.rank(x));
  StringRef name = call.getSchema().find("src") ? "src" : "value";
  Value updates = call.operand(call.get(name), call.elementType(x));
  updates = call.broadcast(updates, call.extents(index));
  auto kindAttr = graph::ScatterKindAttr::get(call.getContext(), kind);
  call.give(call.create<graph::ScatterElementsOp>(
      {x, index, updates},
      {call.attr("axis", axis), call.attr("kind", kindAttr)}));
}

// --- Indexing with tensors ---------------------------------------------------

namespace {

/// Indices of some axes, that stand together in the result.
struct Indices {
  SmallVector<int64_t> axes;
  SmallVector<Value> values; // of one shape, one an axis
};

} // namespace

static std::optional<Indices> readIndices(Call &call, Value x) {
  Indices indices;
  SmallVector<Value> given = call.tensors("indices");
  if (!x || int64_t(given.size()) > call.rank(x)) {
    call.fail("more indices than axes");
    return std::nullopt;
  }
  for (auto [axis, value] : llvm::enumerate(given)) {
    if (!value)
      continue;
    if (call.elementType(value).isInteger(1)) {
      call.unsupported("indexing with booleans");
      return std::nullopt;
    }
    indices.axes.push_back(axis);
    value = call.toIndices(value);
    if (!value)
      return std::nullopt;
    indices.values.push_back(call.cast(value, call.getIndexType()));
  }
  if (!indices.values.empty())
    indices.values = call.broadcastTogether(indices.values);
  if (call.hasFailed() || indices.values.empty()) {
    call.fail("there are no indices");
    return std::nullopt;
  }
  return indices;
}

/// x with the indexed axes first, in their order.
static SmallVector<int64_t> bringForward(Call &call, Value x,
                                         const Indices &indices) {
  SmallVector<int64_t> permutation(indices.axes);
  for (int64_t axis = 0; axis < call.rank(x); ++axis)
    if (!llvm::is_contained(indices.axes, axis))
      permutation.push_back(axis);
  return permutation;
}

/// Indices as the tuples of gather_nd and scatter_nd.
static Value makeTuples(Call &call, const Indices &indices) {
  SmallVector<Value> columns;
  for (Value value : indices.values)
    columns.push_back(call.unsqueeze(value, {call.rank(value)}));
  return call.concat(columns, call.rank(indices.values[0]));
}

/// The result has the indices' axes where the first indexed axis was, or in
/// front where the indexed ones are not neighbours.
static void importIndex(Call &call) {
  Value x = call.tensor("self");
  auto indices = readIndices(call, x);
  if (!indices)
    return;
  int64_t first = indices->axes.front(), count = indices->axes.size();
  if (count == 1)
    return call.give(call.gather(x, indices->values[0], first));
  bool areNeighbours = indices->axes.back() - first == count - 1;
  Value moved = call.transpose(x, bringForward(call, x, *indices));
  Value y = call.create<graph::GatherNdOp>({moved, makeTuples(call, *indices)},
                                           {call.attr("batch_dims", 0L)});
  if (!y || !areNeighbours || first == 0)
    return call.give(y);
  // [indices..., leading..., rest...] to [leading..., indices..., rest...]
  int64_t rank = call.rank(indices->values[0]);
  auto permutation = llvm::to_vector(llvm::seq<int64_t>(rank, rank + first));
  llvm::append_range(permutation, llvm::seq<int64_t>(0, rank));
  llvm::append_range(permutation,
                     llvm::seq<int64_t>(rank + first, call.rank(y)));
  call.give(call.transpose(y, permutation));
}

/// A mask of the leading axes: where it is true x has the value.
static void importMaskedPut(Call &call, Value x, Value mask) {
  Value values = call.operand(call.get("values"), call.elementType(x));
  if (call.rank(values) != 0 || call.isTrue("accumulate"))
    return (void)call.unsupported("indexing with booleans");
  SmallVector<int64_t> rest;
  for (int64_t axis = call.rank(mask); axis < call.rank(x); ++axis)
    rest.push_back(axis);
  call.give(call.select(call.unsqueeze(mask, rest), values, x));
}

static void importIndexPut(Call &call) {
  Value x = call.tensor("self");
  SmallVector<Value> given = call.tensors("indices");
  if (x && given.size() == 1 && given[0] &&
      call.elementType(given[0]).isInteger(1))
    return importMaskedPut(call, x, given[0]);
  auto indices = readIndices(call, x);
  if (!indices)
    return;
  if (indices->axes.back() != int64_t(indices->axes.size()) - 1)
    return (void)call.unsupported("writing to indices of inner axes");
  Value tuples = makeTuples(call, *indices);
  graph::Extents extents = call.extents(indices->values[0]);
  graph::Extents all = call.extents(x);
  extents.append(all.begin() + indices->axes.size(), all.end());
  Value updates = call.broadcast(call.tensor("values"), extents);
  auto kind = call.isTrue("accumulate") ? graph::ScatterKind::add
                                        : graph::ScatterKind::none;
  call.give(call.create<graph::ScatterNdOp>(
      {x, tuples, call.cast(updates, call.elementType(x))},
      {call.attr("kind",
                 graph::ScatterKindAttr::get(call.getContext(), kind))}));
}

// --- Order -------------------------------------------------------------------

static void addTopK(Call &call, Value x, int64_t count, int64_t axis,
                    bool isLargest) {
  SmallVector<NamedAttribute> attributes = {call.attr("k", count),
                                            call.attr("axis", axis)};
  if (!isLargest)
    attributes.push_back(call.flag("smallest"));
  Operation *op =
      call.createOp(graph::TopKOp::getOperationName(), x, attributes);
  if (!op)
    return;
  call.give(op->getResult(0));
  call.give(op->getResult(1));
}

static void importTopK(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  addTopK(call, x, call.integer("k"), axis, call.isTrue("largest"));
}

static void importSort(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  auto extent = graph::getConstant(graph::getExtent(x, axis));
  if (!extent)
    return (void)call.unsupported("a sort along a symbolic dimension");
  addTopK(call, x, *extent, axis, call.isTrue("descending"));
}

static const OpRow rows[] = {
    {"embedding(Tensor weight, Tensor indices, int padding_idx=-1, bool "
     "scale_grad_by_freq=False, bool sparse=False) -> Tensor",
     importEmbedding},
    {"gather(Tensor self, int dim, Tensor index, *, bool sparse_grad=False) -> "
     "Tensor",
     importGather},
    {"index(Tensor self, Tensor?[] indices) -> Tensor", importIndex},
    {"index_put(Tensor self, Tensor?[] indices, Tensor values, bool "
     "accumulate=False) -> Tensor",
     importIndexPut},
    {"index_select(Tensor self, int dim, Tensor index) -> Tensor",
     importIndexSelect},
    {"scatter(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     importScatter<graph::ScatterKind::none>},
    {"scatter(Tensor self, int dim, Tensor index, Scalar value) -> Tensor",
     importScatter<graph::ScatterKind::none>},
    {"scatter_add(Tensor self, int dim, Tensor index, Tensor src) -> Tensor",
     importScatter<graph::ScatterKind::add>},
    {"sort(Tensor self, int dim=-1, bool descending=False) -> (Tensor, Tensor)",
     importSort},
    {"topk(Tensor self, int k, int dim=-1, bool largest=True, bool "
     "sorted=True) -> (Tensor, Tensor)",
     importTopK},
};

ArrayRef<OpRow> getIndexingOps() { return rows; }

} // namespace tcc::aten
