#include "compiler/codegen/cpu/tile/Convolution.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Fewer channels make runs too short to be read one by one.
constexpr int64_t minRunChannels = 16;

/// The indices of a row: image and output positions.
SmallVector<Value> splitRow(KernelBuilder &b, const ConvolutionInput &input,
                            Value row) {
  SmallVector<Value> sizes = {input.images};
  for (const WindowDimension &d : input.dimensions)
    sizes.push_back(d.output);
  SmallVector<Value> at = b.delinearize(row, sizes);
  if (constantOf(input.images) == 1)
    at.front() = b.index(0);
  return at;
}

/// Packs patches as rows of k. The taps that read adjacent elements are one
/// run: the channels of a pixel or, along an innermost dimension without
/// dilation, those of all its pixels. Of a run the elements [low, high) lie
/// inside the input.
class PatchPacker {
public:
  PatchPacker(KernelBuilder &b, const ConvolutionInput &input, VectorUnit unit,
              const PackRequest &request);
  void emit();

private:
  KernelBuilder &b;
  const ConvolutionInput &input;
  const PackRequest &request;
  Memory base;   // of the input
  Memory packed; // of the request, in the same type
  int64_t lanes, pixelSize, runLength = 0;
  int64_t unitSize;     // elements of the input in one of the request
  size_t tapDimensions; // whose taps are runs of their own
  SmallVector<Value> strides;
  Value first, end; // k of the request, in elements

  struct Run {
    Value source; // of its element 0, which may lie before the input
    Value low, high;
  };
  Run findRun(Value number, Value image, ValueRange position);
  void emitRun(Value number, Value row, const Run &run);
  void copyWhole(Value source, Value target);
  void copyPart(const Run &run, Value begin, Value end, Value target);
};

} // namespace

SmallVector<Value> tcc::cpu::getStrides(KernelBuilder &b,
                                        const ConvolutionInput &input) {
  SmallVector<Value> strides(input.dimensions.size() + 1);
  Value stride = b.index(input.groups * input.channels);
  for (size_t d = input.dimensions.size(); d > 0; --d) {
    strides[d] = stride;
    stride = b.mul(stride, input.dimensions[d - 1].input);
  }
  strides.front() = stride;
  return strides;
}

int64_t tcc::cpu::getRunTaps(const ConvolutionInput &input) {
  const WindowDimension &last = input.dimensions.back();
  int64_t taps = *constantOf(last.taps);
  bool isDense = input.groups == 1 && (last.dilation == 1 || taps == 1);
  return isDense ? taps : 1;
}

PatchPacker::PatchPacker(KernelBuilder &b, const ConvolutionInput &input,
                         VectorUnit unit, const PackRequest &request)
    : b(b), input(input), request(request), base(input.base.asBits()),
      packed{request.into.pointer, base.element}, lanes(unit.bytes / 4),
      pixelSize(input.groups * input.channels), unitSize(input.packing.group) {
  int64_t runTaps = getRunTaps(input);
  runLength = runTaps * input.channels;
  // A vector of narrow elements for runs that are longer than one of masks.
  if (runLength > lanes && bytesOf(base.element) < 4)
    lanes *= 2;
  bool joinsLast = constantOf(input.dimensions.back().taps) == runTaps;
  tapDimensions = input.dimensions.size() - (joinsLast ? 1 : 0);
  strides = getStrides(b, input);
  first = b.mul(request.k, b.index(unitSize));
  end = b.add(first, b.mul(request.depth, b.index(unitSize)));
}

void PatchPacker::emit() {
  Value run = b.index(runLength);
  Value firstRun = b.div(first, run);
  Value endRun = b.ceilDiv(end, runLength);
  b.loop(request.count, [&](Value lane) {
    SmallVector<Value> at = splitRow(b, input, b.add(request.first, lane));
    Value image = b.add(b.mul(request.batch, b.index(input.channels)),
                        b.mul(at[0], strides[0]));
    Value row = b.mul(lane, b.index(request.laneStride * unitSize));
    b.loop(firstRun, endRun, b.index(1), [&](Value number) {
      Run run = findRun(number, image, ValueRange(at).drop_front());
      emitRun(number, row, run);
    });
  });
}

PatchPacker::Run PatchPacker::findRun(Value number, Value image,
                                      ValueRange position) {
  auto dimensions = ArrayRef(input.dimensions);
  SmallVector<Value> tapCounts;
  for (const WindowDimension &d : dimensions.take_front(tapDimensions))
    tapCounts.push_back(d.taps);
  SmallVector<Value> tap = b.delinearize(number, tapCounts);
  Value inside = b.create<arith::ConstantIntOp>(1, 1);
  if (unitSize > 1) { // what fills up the last unit lies in no run
    Value count = b.index(1);
    for (Value taps : tapCounts)
      count = b.mul(count, taps);
    inside = b.less(number, count);
  }
  Value source = image, length = b.index(runLength), zero = b.index(0);
  Run run{nullptr, zero, length};
  for (auto [d, dimension] : llvm::enumerate(dimensions)) {
    Value begin = b.sub(b.mul(position[d], b.index(dimension.stride)),
                        dimension.padBegin);
    if (d < tapDimensions) {
      begin = b.add(begin, b.mul(tap[d], b.index(dimension.dilation)));
      // Unsigned, so that positions before the input are outside too.
      Value valid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, begin,
                                            dimension.input);
      inside = b.createOrFold<arith::AndIOp>(inside, valid);
    } else {
      Value size = b.index(pixelSize);
      Value before = b.mul(b.sub(zero, begin), size);
      Value left = b.mul(b.sub(dimension.input, begin), size);
      run.low = b.min(b.max(before, zero), length);
      run.high = b.max(b.min(left, length), run.low);
    }
    source = b.add(source, b.mul(begin, strides[1 + d]));
  }
  // A masked load of no element is slow where its address is no memory of ours.
  run.source = b.create<arith::SelectOp>(inside, source, image);
  run.high = b.create<arith::SelectOp>(inside, run.high, run.low);
  return run;
}

void PatchPacker::emitRun(Value number, Value row, const Run &run) {
  Value runStart = b.mul(number, b.index(runLength)), zero = b.index(0);
  Value begin = b.max(b.sub(first, runStart), zero);
  Value end = b.min(b.sub(this->end, runStart), b.index(runLength));
  // Element e of the run goes to target + e.
  Value target = b.add(row, b.sub(runStart, first));
  Value isWhole = b.createOrFold<arith::AndIOp>(b.equal(run.low, zero),
                                                b.equal(begin, zero));
  for (Value limit : {end, run.high})
    isWhole = b.createOrFold<arith::AndIOp>(isWhole,
                                            b.equal(limit, b.index(runLength)));
  b.when(
      isWhole, [&] { copyWhole(run.source, target); },
      [&] { copyPart(run, begin, end, target); });
}

/// A run that lies inside the input.
void PatchPacker::copyWhole(Value source, Value target) {
  Value none = b.zero(VectorType::get(lanes, base.element));
  Value step = b.index(lanes), whole = b.index(runLength / lanes * lanes);
  b.loop(b.index(0), whole, step, [&](Value e) {
    Value x = b.loadVector(base, b.add(source, e), lanes);
    b.store(x, packed, b.add(target, e));
  });
  if (runLength % lanes == 0)
    return;
  Value mask = b.lanesBelow(lanes, b.index(runLength % lanes));
  Value x = b.loadMasked(base, b.add(source, whole), mask, none);
  b.storeMasked(x, packed, b.add(target, whole), mask);
}

/// Elements [begin, end) of a run, zeros where it lies outside of the input.
void PatchPacker::copyPart(const Run &run, Value begin, Value end,
                           Value target) {
  Value none = b.zero(VectorType::get(lanes, base.element));
  b.loop(begin, end, b.index(lanes), [&](Value e) {
    Value outside = b.lanesBelow(lanes, b.sub(run.low, e));
    Value inside = b.lanesBelow(lanes, b.sub(run.high, e));
    inside =
        b.create<arith::SelectOp>(outside, b.zero(inside.getType()), inside);
    Value value = b.loadMasked(base, b.add(run.source, e), inside, none);
    Value exist = b.lanesBelow(lanes, b.sub(end, e));
    b.storeMasked(value, packed, b.add(target, e), exist);
  });
}

/// The share of taps that are known to read zeros for all pixels of most tiles:
/// those of an axis of which tiles have one position.
static double getZeroShare(const ConvolutionInput &input) {
  constexpr int64_t kTileRows = 2 * panelRows;
  double share = 1;
  int64_t inner = 1; // positions of the axes behind
  for (const WindowDimension &d : llvm::reverse(input.dimensions)) {
    std::optional<int64_t> size = constantOf(d.input),
                           pad = constantOf(d.padBegin),
                           output = constantOf(d.output),
                           taps = constantOf(d.taps);
    if (!size || !pad || !output || !taps || *output == 0)
      return 0;
    int64_t met = 0;
    for (int64_t tap = 0; tap < *taps; ++tap)
      for (int64_t position = 0; position < *output; ++position) {
        int64_t at = position * d.stride - *pad + tap * d.dilation;
        met += at >= 0 && at < *size;
      }
    if (inner >= kTileRows)
      share *= double(met) / double(*output * *taps);
    inner *= *output;
  }
  return 1 - share;
}

/// A run is the channels of one pixel, or as many zeros. Which runs are zeros
/// is told where skipping them saves more than the tests cost.
static RowRuns makeRuns(KernelBuilder &b, const ConvolutionInput &input,
                        Memory zeros, Value group, ValueRange lanes) {
  SmallVector<Value> taps, strides = getStrides(b, input);
  for (const WindowDimension &d : input.dimensions)
    taps.push_back(d.taps);
  // For each row, where its image starts and its windows begin.
  SmallVector<Value> starts;
  SmallVector<SmallVector<Value>> begins;
  for (Value lane : lanes) {
    SmallVector<Value> at = splitRow(b, input, lane), begin;
    starts.push_back(
        b.add(b.mul(group, b.index(input.channels)), b.mul(at[0], strides[0])));
    for (auto [i, d] : llvm::enumerate(input.dimensions))
      begin.push_back(b.sub(b.mul(at[1 + i], b.index(d.stride)), d.padBegin));
    begins.push_back(begin);
  }
  constexpr double kLeastShare = 0.03;
  bool tellsZeros = getZeroShare(input) > kLeastShare;
  return [=](KernelBuilder &b, Value number) {
    SmallVector<Value> tap = b.delinearize(number, taps);
    RowRun run;
    Value anyInside;
    for (auto [start, begin] : llvm::zip_equal(starts, begins)) {
      Value inside = b.create<arith::ConstantIntOp>(1, 1), offset = start;
      for (auto [i, d] : llvm::enumerate(input.dimensions)) {
        Value position = b.add(begin[i], b.mul(tap[i], b.index(d.dilation)));
        // Unsigned, so that positions before the input are outside too.
        Value valid = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult,
                                              position, d.input);
        inside = b.createOrFold<arith::AndIOp>(inside, valid);
        offset = b.add(offset, b.mul(position, strides[1 + i]));
      }
      Memory row = b.from(input.base, offset);
      row.pointer =
          b.create<arith::SelectOp>(inside, row.pointer, zeros.pointer);
      run.starts.push_back(row);
      anyInside =
          anyInside ? b.createOrFold<arith::OrIOp>(anyInside, inside) : inside;
    }
    if (tellsZeros)
      run.areZeros = b.create<arith::XOrIOp>(
          anyInside, b.create<arith::ConstantIntOp>(1, 1));
    return run;
  };
}

static Memory allocateZeros(KernelBuilder &b, Type element, int64_t count) {
  Memory zeros = b.allocate(element, count);
  Value zero = b.zero(element);
  b.loop(b.index(count), [&](Value i) { b.store(zero, zeros, i); });
  return zeros;
}

MatrixOperand tcc::cpu::makePatches(KernelBuilder &b,
                                    const ConvolutionInput &input, Type packed,
                                    VectorUnit unit, bool isCopied) {
  MatrixOperand operand;
  if (!isCopied) {
    Memory zeros = allocateZeros(b, input.base.element, input.channels);
    operand.runLength = input.channels;
    operand.runs = [=](KernelBuilder &b, Value group, ValueRange lanes) {
      return makeRuns(b, input, zeros, group, lanes);
    };
  } else {
    operand.packedType = packed;
    operand.packsRows = true;
    operand.pack = [=](KernelBuilder &b, const PackRequest &request) {
      PatchPacker(b, input, unit, request).emit();
    };
  }
  return operand;
}

/// A tile register loads rows that are a fixed distance apart.
bool tcc::cpu::packsPatches(int64_t channels, Packing packing,
                            bool hasTileRegisters) {
  return channels % packing.group != 0 ||
         channels / packing.group < minRunChannels ||
         (packing.group > 1 && hasTileRegisters);
}
