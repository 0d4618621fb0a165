#include "frontends/aten/Call.h"

using namespace mlir;

namespace tcc::aten {

// --- Shapes ------------------------------------------------------------------

/// `sizes` with the one that is -1 computed from the number of elements.
static std::optional<graph::Extents> inferExtents(Call &call, Value x,
                                                  graph::Extents sizes) {
  if (!x)
    return std::nullopt;
  std::optional<size_t> open;
  graph::Extents known;
  for (auto [i, size] : llvm::enumerate(sizes)) {
    if (graph::getConstant(size) != -1)
      known.push_back(size);
    else if (open)
      call.fail("more than one size is -1");
    else
      open = i;
  }
  if (open) {
    Size rest = call.getSizes().divideProducts(call.extents(x), known);
    if (!rest)
      call.fail("the sizes do not divide the number of elements");
    else
      sizes[*open] = *rest;
  }
  if (call.hasFailed())
    return std::nullopt;
  return sizes;
}

/// A tensor that keeps its shape stays a view, whatever its strides are.
static void giveReshaped(Call &call, Value x, ArrayRef<AffineExpr> extents) {
  Value y = call.reshape(x, extents);
  if (y && y == x)
    return call.giveSame("self");
  call.give(y);
}

static void importView(Call &call) {
  Value x = call.tensor("self");
  auto extents =
      inferExtents(call, x, call.sizes(call.getSchema().parameters[1].name));
  if (extents)
    giveReshaped(call, x, *extents);
}

static void importViewAs(Call &call) {
  Value x = call.tensor("self"), other = call.tensor("other");
  if (x && other)
    giveReshaped(call, x, call.extents(other));
}

static void importFlatten(Call &call) {
  Value x = call.tensor("self");
  int64_t rank = call.rank(x);
  int64_t first = call.wrapAxis(call.integer("start_dim"), rank),
          last = call.wrapAxis(call.integer("end_dim"), rank);
  if (!x || call.hasFailed())
    return;
  if (first > last)
    return (void)call.fail("start_dim is after end_dim");
  graph::Extents extents = call.extents(x);
  if (rank == 0)
    return call.give(call.reshape(x, {call.getSizes().constant(1)}));
  Size merged =
      call.getSizes().product(ArrayRef(extents).slice(first, last - first + 1));
  if (!merged)
    return (void)call.fail("the input is too large");
  extents.erase(extents.begin() + first, extents.begin() + last + 1);
  extents.insert(extents.begin() + first, *merged);
  giveReshaped(call, x, extents);
}

static void importUnflatten(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  graph::Extents extents = call.extents(x), parts = call.sizes("sizes");
  extents.erase(extents.begin() + axis);
  extents.insert(extents.begin() + axis, parts.begin(), parts.end());
  if (auto inferred = inferExtents(call, x, extents))
    call.give(call.reshape(x, *inferred));
}

static void importUnsqueeze(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x) + 1);
  if (!call.hasFailed())
    call.give(call.unsqueeze(x, {axis}));
}

/// Drops the axes asked for whose extent is 1.
static void importSqueeze(Call &call) {
  Value x = call.tensor("self");
  if (!x)
    return;
  bool isAll = !call.getSchema().find("dim");
  SmallVector<int64_t> dropped;
  graph::Extents extents = call.extents(x);
  auto axes = isAll ? llvm::to_vector(llvm::seq<int64_t>(0, call.rank(x)))
                    : call.axes("dim", call.rank(x));
  for (int64_t axis : axes)
    if (graph::getConstant(extents[axis]) == 1)
      dropped.push_back(axis);
  call.give(call.squeeze(x, dropped));
}

// --- Order of axes -----------------------------------------------------------

static void importPermute(Call &call) {
  Value x = call.tensor("self");
  SmallVector<int64_t> axes = call.axes("dims", call.rank(x));
  if (!call.hasFailed() && int64_t(axes.size()) != call.rank(x))
    call.fail("dims must list each axis once");
  if (!call.hasFailed())
    call.give(call.transpose(x, axes));
}

static void addSwapped(Call &call, Value x, int64_t a, int64_t b) {
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, call.rank(x)));
  if (call.hasFailed() || axes.size() < 2)
    return call.give(x);
  std::swap(axes[a], axes[b]);
  call.give(call.transpose(x, axes));
}

static void importTranspose(Call &call) {
  Value x = call.tensor("self");
  int64_t rank = call.rank(x);
  addSwapped(call, x, call.wrapAxis(call.integer("dim0"), rank),
             call.wrapAxis(call.integer("dim1"), rank));
}

static void importT(Call &call) {
  Value x = call.tensor("self");
  if (call.rank(x) > 2)
    return (void)call.fail("a matrix is expected");
  addSwapped(call, x, 0, 1);
}

static void importMoveAxis(Call &call) {
  Value x = call.tensor("self");
  int64_t rank = call.rank(x);
  int64_t from = call.wrapAxis(call.integer("source"), rank),
          to = call.wrapAxis(call.integer("destination"), rank);
  if (!x || call.hasFailed())
    return;
  if (rank == 0)
    return call.give(x);
  auto axes = llvm::to_vector(llvm::seq<int64_t>(0, rank));
  axes.erase(axes.begin() + from);
  axes.insert(axes.begin() + to, from);
  call.give(call.transpose(x, axes));
}

// --- Repetition --------------------------------------------------------------

static void importExpand(Call &call) {
  Value x = call.tensor("self");
  graph::Extents sizes = call.sizes("size");
  if (!x || call.hasFailed())
    return;
  graph::Extents extents = call.extents(x);
  if (sizes.size() < extents.size())
    return (void)call.fail("fewer sizes than axes");
  size_t added = sizes.size() - extents.size();
  for (auto [i, size] : llvm::enumerate(sizes))
    if (graph::getConstant(size) == -1 && i >= added)
      size = extents[i - added];
  call.give(call.broadcast(x, sizes));
}

static void importExpandAs(Call &call) {
  Value x = call.tensor("self"), other = call.tensor("other");
  if (x && other)
    call.give(call.broadcast(x, call.extents(other)));
}

/// The tensor several times along each axis.
static void importRepeat(Call &call) {
  Value x = call.tensor("self");
  graph::Extents counts = call.sizes(call.getSchema().parameters[1].name);
  if (!x || call.hasFailed())
    return;
  graph::Extents extents = call.extents(x);
  AffineExpr one = call.getSizes().constant(1);
  while (counts.size() < extents.size() && call.getSchema().name == "tile")
    counts.insert(counts.begin(), one);
  if (counts.size() < extents.size())
    return (void)call.fail("fewer counts than axes");
  extents.insert(extents.begin(), counts.size() - extents.size(), one);
  graph::Extents split, repeated, merged;
  for (auto [count, extent] : llvm::zip(counts, extents)) {
    Size size = call.getSizes().product({count, extent});
    if (!size)
      return (void)call.fail("the result is too large");
    split.append({one, extent});
    repeated.append({count, extent});
    merged.push_back(*size);
  }
  call.give(
      call.reshape(call.broadcast(call.reshape(x, split), repeated), merged));
}

/// Each slice of an axis several times.
static void importRepeatInterleave(Call &call) {
  Value x = call.tensor("self");
  AffineExpr count = call.extent("repeats");
  if (!x || !call.has("dim"))
    return (void)call.unsupported("repeat_interleave of all axes");
  int64_t axis = call.axis("dim", call.rank(x));
  if (call.hasFailed())
    return;
  Size size = call.getSizes().product({graph::getExtent(x, axis), count});
  if (!size)
    return (void)call.fail("the result is too large");
  Value split = call.unsqueeze(x, {axis + 1});
  Value repeated =
      call.broadcast(split, call.withExtent(split, axis + 1, count));
  call.give(call.reshape(repeated, call.withExtent(x, axis, *size)));
}

/// The tensor itself where it lies in the order asked for.
static void importContiguous(Call &call) {
  call.give(call.tensor("self"), !call.has("memory_format"));
}

static const OpRow rows[] = {
    {"_unsafe_view(Tensor self, int[1] size) -> Tensor", importView},
    {"contiguous(Tensor self, *, Any? memory_format=None) -> Tensor(a?)",
     importContiguous},
    {"expand(Tensor self, int[1] size, *, bool implicit=False) -> Tensor(a)",
     importExpand},
    {"expand_as(Tensor self, Tensor other) -> Tensor(a)", importExpandAs},
    {"flatten(Tensor self, int start_dim=0, int end_dim=-1) -> Tensor(a?)",
     importFlatten},
    {"movedim(Tensor self, int source, int destination) -> Tensor(a)",
     importMoveAxis},
    {"numpy_T(Tensor self) -> Tensor(a)", importT},
    {"permute(Tensor self, int[1] dims) -> Tensor(a)", importPermute},
    {"repeat(Tensor self, int[1] repeats) -> Tensor", importRepeat},
    {"repeat_interleave(Tensor self, int repeats, int? dim=None, *, int? "
     "output_size=None) -> Tensor",
     importRepeatInterleave},
    {"reshape(Tensor self, int[1] shape) -> Tensor(a?)", importView},
    {"reshape_as(Tensor self, Tensor other) -> Tensor(a?)", importViewAs},
    {"squeeze(Tensor self) -> Tensor(a)", importSqueeze},
    {"squeeze(Tensor self, int[1] dim) -> Tensor(a)", importSqueeze},
    {"t(Tensor self) -> Tensor(a)", importT},
    {"tile(Tensor self, int[1] dims) -> Tensor", importRepeat},
    {"transpose(Tensor self, int dim0, int dim1) -> Tensor(a)",
     importTranspose},
    {"unflatten(Tensor self, int dim, int[1] sizes) -> Tensor(a)",
     importUnflatten},
    {"unsqueeze(Tensor self, int dim) -> Tensor(a)", importUnsqueeze},
    {"view(Tensor self, int[1] size) -> Tensor(a)", importView},
    {"view_as(Tensor self, Tensor other) -> Tensor(a)", importViewAs},
};

ArrayRef<OpRow> getShapeOps() { return rows; }

} // namespace tcc::aten
