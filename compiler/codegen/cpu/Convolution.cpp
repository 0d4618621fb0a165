#include "compiler/codegen/cpu/Convolution.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::cpu;

namespace {

/// Lanes of the vectors that move elements, whatever their type.
int64_t getLanes(VectorUnit unit) { return unit.bytes / 4; }

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
  size_t tapDimensions;       // whose taps are runs of their own
  SmallVector<Value> strides; // of the dimensions, in elements
  Value imageSize;

  struct Run {
    Value source; // of its element 0, which may lie before the input
    Value low, high;
  };
  Run findRun(Value number, Value pixel, ValueRange position);
  void emitRun(Value number, Value row, const Run &run);
  void copyVectors(Value from, Value to, const Run &run, Value target);
  void clearVectors(Value from, Value to, Value target);
  void copyMasked(Value from, Value to, const Run &run, Value target);
};

} // namespace

static int64_t getRunTaps(const WindowDimension &last,
                          const ConvolutionInput &input) {
  int64_t taps = *constantOf(last.taps);
  bool isDense = input.groups == 1 && (last.dilation == 1 || taps == 1);
  return isDense ? taps : 1;
}

PatchPacker::PatchPacker(KernelBuilder &b, const ConvolutionInput &input,
                         VectorUnit unit, const PackRequest &request)
    : b(b), input(input), request(request), base(input.base.asBits()),
      packed(request.into.asBits()), lanes(getLanes(unit)),
      pixelSize(input.groups * input.channels) {
  const WindowDimension &last = input.dimensions.back();
  int64_t runTaps = getRunTaps(last, input);
  runLength = runTaps * input.channels;
  bool joinsLast = constantOf(last.taps) == runTaps;
  tapDimensions = input.dimensions.size() - (joinsLast ? 1 : 0);
  imageSize = b.index(pixelSize);
  strides.resize(input.dimensions.size());
  for (size_t d = strides.size(); d-- > 0;) {
    strides[d] = imageSize;
    imageSize = b.mul(imageSize, input.dimensions[d].input);
  }
}

void PatchPacker::emit() {
  SmallVector<Value> sizes = {input.images};
  for (const WindowDimension &d : input.dimensions)
    sizes.push_back(d.output);
  Value run = b.index(runLength);
  Value firstRun = b.div(request.k, run);
  Value endRun = b.ceilDiv(b.add(request.k, request.depth), runLength);
  b.loop(request.count, [&](Value lane) {
    SmallVector<Value> at = b.delinearize(b.add(request.first, lane), sizes);
    Value pixel = b.mul(request.batch, b.index(input.channels));
    if (constantOf(input.images) != 1)
      pixel = b.add(pixel, b.mul(at[0], imageSize));
    Value row = b.mul(lane, b.index(request.laneStride));
    b.loop(firstRun, endRun, b.index(1), [&](Value number) {
      emitRun(number, row, findRun(number, pixel, ValueRange(at).drop_front()));
    });
  });
}

PatchPacker::Run PatchPacker::findRun(Value number, Value pixel,
                                      ValueRange position) {
  auto dimensions = ArrayRef(input.dimensions);
  SmallVector<Value> tapCounts;
  for (const WindowDimension &d : dimensions.take_front(tapDimensions))
    tapCounts.push_back(d.taps);
  SmallVector<Value> tap = b.delinearize(number, tapCounts);
  Value inside = b.create<arith::ConstantIntOp>(1, 1);
  Value source = pixel, length = b.index(runLength), zero = b.index(0);
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
    source = b.add(source, b.mul(begin, strides[d]));
  }
  run.source = source;
  run.high = b.create<arith::SelectOp>(inside, run.high, run.low);
  return run;
}

void PatchPacker::emitRun(Value number, Value row, const Run &run) {
  Value first = b.mul(number, b.index(runLength)), zero = b.index(0);
  Value begin = b.max(b.sub(request.k, first), zero);
  Value end = b.sub(b.add(request.k, request.depth), first);
  end = b.min(end, b.index(runLength));
  // Element e of the run goes to target + e.
  Value target = b.add(row, b.sub(first, request.k));
  if (input.channels % lanes != 0 || request.laneStride % lanes != 0)
    return copyMasked(begin, end, run, target);
  // Low, high and the ends of blocks fall between vectors.
  Value low = b.min(b.max(run.low, begin), end);
  Value high = b.min(b.max(run.high, low), end);
  clearVectors(begin, low, target);
  copyVectors(low, high, run, target);
  clearVectors(high, end, target);
}

void PatchPacker::copyVectors(Value from, Value to, const Run &run,
                              Value target) {
  b.loop(from, to, b.index(lanes), [&](Value e) {
    Value value = b.loadVector(base, b.add(run.source, e), lanes);
    b.store(value, packed, b.add(target, e));
  });
}

void PatchPacker::clearVectors(Value from, Value to, Value target) {
  Value none = b.zero(VectorType::get(lanes, base.element));
  b.loop(from, to, b.index(lanes),
         [&](Value e) { b.store(none, packed, b.add(target, e)); });
}

void PatchPacker::copyMasked(Value from, Value to, const Run &run,
                             Value target) {
  auto laneType = VectorType::get(lanes, b.getI32Type());
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(laneType, ArrayRef<int32_t>(numbers)));
  auto splat = [&](Value index) {
    Value narrow = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), index);
    return b.createOrFold<vector::SplatOp>(laneType, narrow);
  };
  Value none = b.zero(VectorType::get(lanes, base.element));
  b.loop(from, to, b.index(lanes), [&](Value e) {
    auto isLess = [&](Value lane, Value than) {
      return b.create<arith::CmpIOp>(arith::CmpIPredicate::slt, lane, than);
    };
    Value outside = isLess(iota, splat(b.sub(run.low, e)));
    Value inside = isLess(iota, splat(b.sub(run.high, e)));
    inside =
        b.create<arith::SelectOp>(outside, b.zero(inside.getType()), inside);
    Value value = b.loadMasked(base, b.add(run.source, e), inside, none);
    b.storeMasked(value, packed, b.add(target, e),
                  isLess(iota, splat(b.sub(to, e))));
  });
}

bool tcc::cpu::readsPixelsInPlace(const ConvolutionInput &input) {
  return llvm::all_of(input.dimensions, [](const WindowDimension &d) {
    bool sameSize =
        d.input == d.output ||
        (constantOf(d.input) && constantOf(d.input) == constantOf(d.output));
    return sameSize && constantOf(d.taps) == 1 && d.stride == 1 &&
           constantOf(d.padBegin) == 0;
  });
}

MatrixOperand tcc::cpu::makePatches(const ConvolutionInput &input,
                                    VectorUnit unit) {
  MatrixOperand operand;
  if (readsPixelsInPlace(input)) {
    operand.view = [=](KernelBuilder &b, Value batch) -> PanelView {
      Value pixel = b.index(input.groups * input.channels);
      return {input.base, b.mul(batch, b.index(input.channels)),
              b.mul(pixel, b.index(panelRows)), pixel, b.index(1)};
    };
    return operand;
  }
  operand.packedType = input.base.element;
  operand.packsRows = true;
  operand.pack = [=](KernelBuilder &b, const PackRequest &request) {
    PatchPacker(b, input, unit, request).emit();
  };
  return operand;
}

int64_t tcc::cpu::getDepthUnit(int64_t channels) {
  int64_t lanes = getLanes({});
  return channels % lanes == 0 ? lanes : 1;
}
