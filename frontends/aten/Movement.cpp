#include "frontends/aten/Call.h"

#include "llvm/ADT/StringSwitch.h"

using namespace mlir;

namespace tcc::aten {

// --- Parts -------------------------------------------------------------------

/// A position along an axis, counted from its end if it is negative.
static AffineExpr wrapPosition(Call &call, AffineExpr position,
                               AffineExpr extent) {
  auto isNegative = call.getSizes().compare(SizeCompare::lt, position,
                                            call.getSizes().constant(0));
  if (!isNegative)
    call.unsupported("a position that may be of either sign");
  return isNegative.value_or(false) ? extent + position : position;
}

static void importSelect(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  AffineExpr extent = graph::getExtent(x, axis), index = call.extent("index");
  index = wrapPosition(call, index, extent);
  const Sizes &sizes = call.getSizes();
  if (sizes.compare(SizeCompare::lt, index, extent) == false ||
      sizes.compare(SizeCompare::lt, index, sizes.constant(0)) == true)
    return (void)call.fail("the index is out of range");
  Value part = call.slice(x, axis, index, sizes.constant(1));
  call.give(call.squeeze(part, {axis}));
}

/// A bound of a slice within [0, extent].
static AffineExpr clampBound(Call &call, StringRef name, AffineExpr fallback,
                             AffineExpr extent) {
  if (!call.has(name))
    return fallback;
  AffineExpr bound = wrapPosition(call, call.extent(name), extent);
  Size clamped =
      call.getSizes().clamp(bound, call.getSizes().constant(0), extent);
  if (!clamped)
    call.unsupported("a slice that ends where only the input's size tells");
  return clamped.value_or(fallback);
}

static void importSlice(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x)), step = call.integer("step");
  if (!x || call.hasFailed())
    return;
  if (step < 1)
    return (void)call.fail("a positive step is expected");
  const Sizes &sizes = call.getSizes();
  AffineExpr extent = graph::getExtent(x, axis), zero = sizes.constant(0);
  AffineExpr start = clampBound(call, "start", zero, extent);
  AffineExpr end = clampBound(call, "end", extent, extent);
  Size span = sizes.apply(SizeOp::max, end - start, zero);
  Size count = span;
  if (span && step != 1) {
    count = sizes.apply(SizeOp::div, *span + (step - 1), sizes.constant(step));
  }
  if (!count)
    return (void)call.unsupported("a slice of an unknown extent");
  call.give(call.slice(x, axis, start, *count, step));
}

static void importNarrow(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  AffineExpr start =
      wrapPosition(call, call.extent("start"), graph::getExtent(x, axis));
  call.give(call.slice(x, axis, start, call.extent("length")));
}

static void addParts(Call &call, Value x, int64_t axis,
                     ArrayRef<AffineExpr> counts) {
  AffineExpr start = call.getSizes().constant(0);
  for (AffineExpr count : counts) {
    call.give(call.slice(x, axis, start, count));
    start = start + count;
  }
  if (!call.hasFailed() && !graph::isEqual(start, graph::getExtent(x, axis)))
    call.fail("the parts do not make up the axis");
}

/// Parts of equal extents, the last one with the rest.
static void addEqualParts(Call &call, Value x, int64_t axis, int64_t size) {
  auto extent = graph::getConstant(graph::getExtent(x, axis));
  if (!extent)
    return (void)call.unsupported("a split along a symbolic dimension");
  if (size < 1 || *extent / size > kMaxContent)
    return (void)call.fail("the extent of the parts is out of range");
  SmallVector<AffineExpr> counts;
  for (int64_t start = 0; start < *extent; start += size)
    counts.push_back(call.getSizes().constant(std::min(size, *extent - start)));
  addParts(call, x, axis, counts);
}

static void importSplit(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  if (call.get("split_size").isSequence())
    return addParts(call, x, axis, call.sizes("split_size"));
  addEqualParts(call, x, axis, call.integer("split_size"));
}

static void importChunk(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x)), count = call.integer("chunks");
  if (!x || call.hasFailed())
    return;
  auto extent = graph::getConstant(graph::getExtent(x, axis));
  if (!extent || count < 1)
    return (void)call.unsupported("chunks of a symbolic dimension");
  addEqualParts(call, x, axis,
                std::max<int64_t>(1, (*extent + count - 1) / count));
}

static void importUnbind(Call &call) {
  Value x = call.tensor("self");
  int64_t axis = call.axis("dim", call.rank(x));
  if (!x || call.hasFailed())
    return;
  auto extent = graph::getConstant(graph::getExtent(x, axis));
  if (!extent || *extent > kMaxContent)
    return (void)call.unsupported("unbind along a symbolic or long axis");
  for (int64_t i = 0; i < *extent; ++i)
    call.give(call.squeeze(call.slice(x, axis, i, 1), {axis}));
}

// --- Joining -----------------------------------------------------------------

/// The tensors in their common type; those without elements are skipped, as
/// PyTorch does with [0].
static SmallVector<Value> readParts(Call &call) {
  SmallVector<const Item *> items;
  for (const Item &item : *call.get("tensors").items)
    items.push_back(&item);
  SmallVector<Value> parts;
  Type type = call.promote(items);
  for (const Item *item : items) {
    Value part = call.operand(*item, type);
    bool isNothing = part && call.rank(part) == 1 &&
                     graph::getConstant(graph::getExtent(part, 0)) == 0;
    if (!isNothing || items.size() == 1)
      parts.push_back(part);
  }
  if (parts.empty())
    call.fail("there are no tensors");
  return parts;
}

static void importCat(Call &call) {
  SmallVector<Value> parts = readParts(call);
  if (call.hasFailed() || llvm::is_contained(parts, Value()))
    return;
  int64_t axis = call.axis("dim", call.rank(parts.front()));
  if (!call.hasFailed())
    call.give(call.concat(parts, axis));
}

static void importStack(Call &call) {
  SmallVector<Value> parts = readParts(call);
  if (call.hasFailed() || llvm::is_contained(parts, Value()))
    return;
  int64_t axis = call.axis("dim", call.rank(parts.front()) + 1);
  if (call.hasFailed())
    return;
  for (Value &part : parts)
    part = call.unsqueeze(part, {axis});
  call.give(call.concat(parts, axis));
}

// --- Turning and padding -----------------------------------------------------

static void importFlip(Call &call) {
  Value x = call.tensor("self");
  SmallVector<int64_t> axes;
  if (!call.integers("dims").empty()) // an empty list is none, not all
    axes = call.axes("dims", call.rank(x));
  if (!x || call.hasFailed())
    return;
  for (int64_t axis : axes) {
    AffineExpr extent = graph::getExtent(x, axis);
    x = call.slice(x, axis, extent - 1, extent, -1);
  }
  call.give(x);
}

/// Elements move along axes, those beyond the end to the start.
static void importRoll(Call &call) {
  Value x = call.tensor("self");
  SmallVector<int64_t> shifts = call.integers("shifts");
  SmallVector<int64_t> axes = call.integers("dims");
  if (!x || call.hasFailed())
    return;
  if (axes.size() != shifts.size())
    return (void)call.unsupported("a roll of all elements");
  for (auto [axis, shift] : llvm::zip(axes, shifts)) {
    int64_t along = call.realAxis(axis, call.rank(x));
    if (call.hasFailed())
      return;
    auto extent = graph::getConstant(graph::getExtent(x, along));
    if (!extent)
      return (void)call.unsupported("a roll of a symbolic dimension");
    if (*extent == 0)
      continue;
    int64_t back = ((shift % *extent) + *extent) % *extent;
    if (back != 0)
      x = call.concat({call.slice(x, along, *extent - back, back),
                       call.slice(x, along, 0, *extent - back)},
                      along);
  }
  call.give(x);
}

static void importPad(Call &call) {
  const Schema &schema = call.getSchema();
  Value x = call.tensor("self");
  SmallVector<int64_t> pads = call.integers(schema.parameters[1].name);
  int64_t rank = call.rank(x);
  std::string mode = "constant";
  if (schema.find("mode"))
    mode = call.text("mode");
  else if (schema.name.starts_with("reflection"))
    mode = "reflect";
  else if (schema.name.starts_with("replication"))
    mode = "replicate";
  auto kind = llvm::StringSwitch<std::optional<graph::PadMode>>(mode)
                  .Case("constant", graph::PadMode::constant)
                  .Case("reflect", graph::PadMode::reflect)
                  .Case("replicate", graph::PadMode::edge)
                  .Default(std::nullopt);
  if (!x || call.hasFailed())
    return;
  if (!kind)
    return (void)call.unsupported("padding mode '" + mode + "'");
  if (pads.size() % 2 != 0 || int64_t(pads.size()) > 2 * rank)
    return (void)call.fail("the paddings do not fit the axes");
  // The last axis comes first.
  SmallVector<int64_t> low(rank, 0), high(rank, 0);
  for (size_t i = 0; i < pads.size() / 2; ++i) {
    low[rank - 1 - i] = pads[2 * i];
    high[rank - 1 - i] = pads[2 * i + 1];
  }
  double value =
      schema.find("value") && call.has("value") ? call.real("value") : 0;
  call.give(call.pad(x, call.constantLike(value, x), low, high, {}, *kind));
}

/// [batch, channel r r, h, w] as [batch, channel, h r, w r].
static void importPixelShuffle(Call &call) {
  Value x = call.tensor("self");
  int64_t factor = call.integer("upscale_factor");
  if (!x || call.rank(x) != 4 || factor < 1 || factor > 1 << 10)
    return (void)call.fail("an input of rank 4 and a factor are expected");
  const Sizes &sizes = call.getSizes();
  AffineExpr r = sizes.constant(factor);
  graph::Extents e = call.extents(x);
  Size channels = sizes.divideProducts(e[1], {r, r});
  if (!channels)
    return (void)call.fail("the factor does not divide the channels");
  Value split = call.reshape(x, {e[0], *channels, r, r, e[2], e[3]});
  call.give(call.reshape(call.transpose(split, {0, 1, 4, 2, 5, 3}),
                         {e[0], *channels, e[2] * factor, e[3] * factor}));
}

static const OpRow rows[] = {
    {"cat(Tensor[] tensors, int dim=0) -> Tensor", importCat},
    {"chunk(Tensor self, int chunks, int dim=0) -> Tensor(a)[]", importChunk},
    {"concat(Tensor[] tensors, int dim=0) -> Tensor", importCat},
    {"constant_pad_nd(Tensor self, int[1] pad, Scalar value=0) -> Tensor",
     importPad},
    {"flip(Tensor self, int[1] dims) -> Tensor", importFlip},
    {"narrow(Tensor self, int dim, int start, int length) -> Tensor(a)",
     importNarrow},
    {"pad(Tensor self, int[1] pad, str mode=constant, float? value=None) -> "
     "Tensor",
     importPad},
    {"pixel_shuffle(Tensor self, int upscale_factor) -> Tensor",
     importPixelShuffle},
    {"reflection_pad1d(Tensor self, int[2] padding) -> Tensor", importPad},
    {"reflection_pad2d(Tensor self, int[4] padding) -> Tensor", importPad},
    {"replication_pad1d(Tensor self, int[2] padding) -> Tensor", importPad},
    {"replication_pad2d(Tensor self, int[4] padding) -> Tensor", importPad},
    {"roll(Tensor self, int[1] shifts, int[1] dims=[]) -> Tensor", importRoll},
    {"select(Tensor self, int dim, int index) -> Tensor(a)", importSelect},
    {"slice(Tensor self, int dim=0, int? start=None, int? end=None, int "
     "step=1) -> Tensor(a)",
     importSlice},
    {"split(Tensor self, int[1] split_size, int dim=0) -> Tensor(a)[]",
     importSplit},
    {"split_with_sizes(Tensor self, int[1] split_size, int dim=0) -> "
     "Tensor(a)[]",
     importSplit},
    {"stack(Tensor[] tensors, int dim=0) -> Tensor", importStack},
    {"unbind(Tensor self, int dim=0) -> Tensor(a)[]", importUnbind},
};

ArrayRef<OpRow> getMovementOps() { return rows; }

} // namespace tcc::aten
