#include "compiler/codegen/cpu/Convolution.h"
#include "compiler/codegen/cpu/Packing.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::cpu;

namespace {

/// Rows of the output that one vector of pixels may touch, at most, for its
/// lanes to be loaded row by row; a vector over more rows is gathered lane by
/// lane.
constexpr int64_t maxRowsPerVector = 4;

/// Packs panels of patches. A vector of pixels runs along the innermost
/// dimension and on into the next rows; which of its lanes read outside the
/// input depends on the tap only, so the loop over channels is a load, under
/// a mask that stays, and a store.
class PatchPacker {
public:
  PatchPacker(KernelBuilder &b, const ConvolutionInput &input, VectorUnit unit,
              const PackRequest &request);
  void emit();

private:
  KernelBuilder &b;
  const ConvolutionInput &input;
  const PackRequest &request;
  Memory base; // of the input
  int64_t lanes;
  VectorType valueType, laneType; // elements; positions of lanes as i32
  SmallVector<Value> planeStrides;
  Value plane, taps, image; // elements of a channel; taps; offset of the image

  // The vector of pixels.
  Value firstPixel, lanesInside;
  Value vectorPlace;                // in the packed block, at its first k
  SmallVector<Value> lanePositions; // output position along each dimension
  Value laneRow;                    // output row of each lane

  Value splat(Value index);
  Value splat(int64_t value);
  int64_t rowsPerVector() const;
  void placeVector(Value lane);
  void emitTap(ValueRange tap);
  Value inputPosition(const WindowDimension &d, Value output, Value tap);
  void emitChannels(Value tap, function_ref<Value(Value channelOffset)> load);
  void emitRowLoads(Value tap, ValueRange taps, Value inside, int64_t rows);
  Value loadRow(Value at, Value mask, Value otherwise);
  void emitGather(Value tap, Value positions, Value inside);
};

} // namespace

PatchPacker::PatchPacker(KernelBuilder &b, const ConvolutionInput &input,
                         VectorUnit unit, const PackRequest &request)
    : b(b), input(input), request(request), base(input.base.asBits()) {
  lanes = std::min(request.width, unit.bytes / 4);
  valueType = VectorType::get(lanes, base.element);
  laneType = VectorType::get(lanes, b.getI32Type());
  plane = taps = b.index(1);
  planeStrides.resize(input.dimensions.size());
  for (size_t d = input.dimensions.size(); d-- > 0;) {
    planeStrides[d] = plane;
    plane = b.mul(plane, input.dimensions[d].input);
    taps = b.mul(taps, input.dimensions[d].taps);
  }
  Value imageSize = b.mul(input.channels, plane);
  image = b.add(input.offset, b.mul(request.batch, imageSize));
}

Value PatchPacker::splat(Value index) {
  Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
  return b.createOrFold<vector::SplatOp>(laneType, narrow);
}

Value PatchPacker::splat(int64_t value) {
  return b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, static_cast<int32_t>(value)));
}

/// 0 where lanes must be gathered.
int64_t PatchPacker::rowsPerVector() const {
  const WindowDimension &row = input.dimensions.back();
  std::optional<int64_t> width = constantOf(row.output);
  if (row.stride > 2)
    return 0;
  if (input.dimensions.size() == 1)
    return 1;
  if (!width || *width == 0)
    return 0;
  int64_t rows = llvm::divideCeil(lanes - 1, *width) + 1;
  return rows <= maxRowsPerVector ? rows : 0;
}

void PatchPacker::emit() {
  SmallVector<Value> tapCounts;
  for (const WindowDimension &d : input.dimensions)
    tapCounts.push_back(d.taps);
  Value step = b.index(lanes);
  b.loop(b.index(0), request.count, step, [&](Value lane) {
    placeVector(lane);
    b.loop(taps, [&](Value tap) { emitTap(b.delinearize(tap, tapCounts)); });
  });
}

void PatchPacker::placeVector(Value lane) {
  Value width = b.index(request.width);
  Value panel = b.mul(b.div(lane, width), b.index(request.panelSize));
  vectorPlace = b.add(panel, b.rem(lane, width));
  firstPixel = b.add(request.first, lane);
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, ArrayRef<int32_t>(numbers)));
  lanesInside = b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, iota,
                                        splat(b.sub(request.count, lane)));
  Value position = b.create<arith::AddIOp>(iota, splat(firstPixel));
  size_t rank = input.dimensions.size();
  lanePositions.assign(rank, position);
  laneRow = splat(0);
  for (size_t d = rank; d-- > 1;) {
    Value size = splat(input.dimensions[d].output);
    lanePositions[d] = b.create<arith::RemUIOp>(position, size);
    position = b.create<arith::DivUIOp>(position, size);
    if (d == rank - 1)
      laneRow = position;
    lanePositions[0] = position;
  }
}

/// For an index; may be outside [0, input).
Value PatchPacker::inputPosition(const WindowDimension &d, Value output,
                                 Value tap) {
  Value begin = b.sub(b.mul(output, b.index(d.stride)), d.padBegin);
  return b.add(begin, b.mul(tap, b.index(d.dilation)));
}

void PatchPacker::emitTap(ValueRange tap) {
  Value inside = lanesInside, positions = splat(0), tapNumber = b.index(0);
  for (auto [d, dimension] : llvm::enumerate(input.dimensions)) {
    Value shift = inputPosition(dimension, b.index(0), tap[d]);
    Value at =
        b.create<arith::MulIOp>(lanePositions[d], splat(dimension.stride));
    at = b.create<arith::AddIOp>(at, splat(shift));
    // Unsigned, so that positions before the input are outside too.
    Value valid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, at,
                                          splat(dimension.input));
    inside = b.create<arith::AndIOp>(inside, valid);
    Value scaled = b.create<arith::MulIOp>(at, splat(planeStrides[d]));
    positions = b.create<arith::AddIOp>(positions, scaled);
    tapNumber = b.add(b.mul(tapNumber, dimension.taps), tap[d]);
  }
  int64_t rows = rowsPerVector();
  if (rows == 0)
    return emitGather(tapNumber, positions, inside);
  if (rows == 1)
    return emitRowLoads(tapNumber, tap, inside, 1);
  Value width = input.dimensions.back().output;
  Value end = b.add(b.rem(firstPixel, width), b.index(lanes));
  b.when(
      b.less(width, end), [&] { emitRowLoads(tapNumber, tap, inside, rows); },
      [&] { emitRowLoads(tapNumber, tap, inside, 1); });
}

/// One store for each channel whose k = channel * taps + tap is in the block.
void PatchPacker::emitChannels(Value tap,
                               function_ref<Value(Value channelOffset)> load) {
  // ceil((k - tap) / taps), and k may be less than tap.
  auto channelFrom = [&](Value k) {
    Value last = b.sub(taps, b.index(1));
    return b.div(b.add(k, b.sub(last, tap)), taps);
  };
  Value width = b.index(request.width);
  b.loop(channelFrom(request.k), channelFrom(b.add(request.k, request.depth)),
         b.index(1), [&](Value channel) {
           Value value = load(b.add(image, b.mul(channel, plane)));
           Value k = b.add(b.mul(channel, taps), tap);
           Value at = b.add(vectorPlace, b.mul(b.sub(k, request.k), width));
           b.store(value, request.into, at);
         });
}

void PatchPacker::emitRowLoads(Value tap, ValueRange taps, Value inside,
                               int64_t rows) {
  const WindowDimension &last = input.dimensions.back();
  SmallVector<Value> outerSizes;
  for (const WindowDimension &d : ArrayRef(input.dimensions).drop_back())
    outerSizes.push_back(d.output);
  Value firstRow =
      outerSizes.empty() ? b.index(0) : b.div(firstPixel, last.output);

  SmallVector<Value> masks, starts;
  for (int64_t r = 0; r < rows; ++r) {
    Value row = b.add(firstRow, b.index(r));
    Value ofRow =
        b.create<arith::CmpIOp>(arith::CmpIPredicate::eq, laneRow, splat(row));
    masks.push_back(b.create<arith::AndIOp>(inside, ofRow));
    // Where lane 0 would lie if the row went on to its left.
    Value column = b.sub(firstPixel, b.mul(row, last.output));
    Value start = inputPosition(last, column, taps.back());
    for (auto [d, output] : llvm::enumerate(b.delinearize(row, outerSizes)))
      start = b.add(start,
                    b.mul(inputPosition(input.dimensions[d], output, taps[d]),
                          planeStrides[d]));
    starts.push_back(start);
  }
  emitChannels(tap, [&](Value channelOffset) {
    Value value = b.zero(valueType);
    for (auto [mask, start] : llvm::zip_equal(masks, starts))
      value = loadRow(b.add(channelOffset, start), mask, value);
    return value;
  });
}

/// Lanes outside `mask` keep `otherwise`.
Value PatchPacker::loadRow(Value at, Value mask, Value otherwise) {
  if (input.dimensions.back().stride == 1)
    return b.loadMasked(base, at, mask, otherwise);
  Value value = b.loadEverySecond(base, at, mask);
  return b.create<arith::SelectOp>(mask, value, otherwise);
}

void PatchPacker::emitGather(Value tap, Value positions, Value inside) {
  emitChannels(tap, [&](Value channelOffset) -> Value {
    return b.gather(base, channelOffset, positions, inside);
  });
}

/// Whether each window is the position of its output alone.
static bool readsWholePlanes(const ConvolutionInput &input) {
  return llvm::all_of(input.dimensions, [](const WindowDimension &d) {
    bool sameSize =
        d.input == d.output ||
        (constantOf(d.input) && constantOf(d.input) == constantOf(d.output));
    return sameSize && constantOf(d.taps) == 1 && d.stride == 1 &&
           constantOf(d.padBegin) == 0;
  });
}

/// Of a 1x1 convolution the patches are the input itself.
static MatrixOperand planes(const ConvolutionInput &input, VectorUnit unit) {
  auto planeSize = [=](KernelBuilder &b) {
    Value size = b.index(1);
    for (const WindowDimension &d : input.dimensions)
      size = b.mul(size, d.input);
    return size;
  };
  auto offset = [=](KernelBuilder &b, Value batch) {
    Value image = b.mul(input.channels, planeSize(b));
    return b.add(input.offset, b.mul(batch, image));
  };
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    packedColumns({input.base, offset, planeSize(b)}, unit).pack(b, request);
  };
  return {nullptr, pack, input.base.element};
}

MatrixOperand tcc::cpu::gatheredPatches(const ConvolutionInput &input,
                                        VectorUnit unit) {
  if (readsWholePlanes(input))
    return planes(input, unit);
  auto pack = [=](KernelBuilder &b, const PackRequest &request) {
    PatchPacker(b, input, unit, request).emit();
  };
  return {nullptr, pack, input.base.element};
}
