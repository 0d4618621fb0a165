#include "compiler/codegen/cpu/tile/Convolution.h"
#include "compiler/codegen/cpu/tile/PackedUnit.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Columns whose elements are adjacent at every position: channels of one tap
/// or, along an innermost dimension without dilation, of all its taps.
struct ColumnRun {
  Value column;      // of the request, where the run or a vector begins
  Value number;      // among the runs
  Value element;     // of the run at that column, negative before the run
  int64_t taps;      // of the innermost dimension
  int64_t count;     // of columns: whole vectors
  Value exists = {}; // lanes of the run in a single vector; null: all
};

/// Packs the columns of a run. Positions are those of the request from its
/// first k on.
class RunPacker {
public:
  RunPacker(KernelBuilder &b, const ConvolutionInput &input, VectorUnit unit,
            const PackRequest &request, const ColumnRun &run);
  void emit();

private:
  KernelBuilder &b;
  const ConvolutionInput &input;
  const ColumnRun &run;
  int64_t lanes;
  Memory base, into;
  SmallVector<Value> strides;
  SmallVector<Value> begins; // where the window of output 0 has the run
  Value target;              // of the run's first column
  Value first, end;          // of all positions
  Value low, high;           // outputs of a row that have the run inside

  using Element = function_ref<Value(Value position, Value lane)>;
  void packRow(Value row);
  std::pair<Value, Value> findRow(Value row);
  Value loadEdge(Value source, Value x, Value isInside);
  void fill(Value from, Value to, Element element);
  void fillPairs(Value from, Value to, Element element);
  void store(Value vector, Value at);
  void forEachVector(Value place,
                     function_ref<void(Value at, Value lane)> body);
};

} // namespace

static VectorType maskOf(KernelBuilder &b, int64_t lanes) {
  return VectorType::get(lanes, b.getI1Type());
}

/// first, first + 1, ... as i32.
static Value countLanes(KernelBuilder &b, Value first, int64_t lanes) {
  auto type = VectorType::get(lanes, b.getI32Type());
  SmallVector<int32_t> numbers(lanes);
  std::iota(numbers.begin(), numbers.end(), 0);
  Value iota = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(type, ArrayRef<int32_t>(numbers)));
  Value start = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), first);
  return b.create<arith::AddIOp>(iota, b.create<vector::SplatOp>(type, start));
}

/// The lanes from `first` on that are in [0, end).
static Value areBelow(KernelBuilder &b, Value first, int64_t lanes, Value end) {
  Value numbers = countLanes(b, first, lanes);
  Value limit = b.createOrFold<arith::IndexCastOp>(b.getI32Type(), end);
  return b.create<arith::CmpIOp>(
      arith::CmpIPredicate::ult, numbers,
      b.create<vector::SplatOp>(numbers.getType(), limit));
}

RunPacker::RunPacker(KernelBuilder &b, const ConvolutionInput &input,
                     VectorUnit unit, const PackRequest &request,
                     const ColumnRun &run)
    : b(b), input(input), run(run), lanes(unit.lanes(request.into.element)),
      base(input.base.asBits()), into(request.into.asBits()),
      strides(getStrides(b, input)) {
  SmallVector<Value> taps;
  for (const WindowDimension &d : input.dimensions)
    taps.push_back(d.taps);
  if (run.taps > 1)
    taps.back() = b.index(1);
  SmallVector<Value> tap = b.delinearize(run.number, taps);
  for (auto [i, d] : llvm::enumerate(input.dimensions))
    begins.push_back(b.sub(b.mul(tap[i], b.index(d.dilation)), d.padBegin));
  Value width = b.index(kPanelColumns), zero = b.index(0);
  target = b.add(b.mul(b.div(run.column, width), b.index(request.panelSize)),
                 b.rem(run.column, width));
  Value unitSize = b.index(input.packing.group);
  first = b.mul(request.k, unitSize);
  end = b.add(first, b.mul(request.depth, unitSize));
  const WindowDimension &last = input.dimensions.back();
  Value ends = b.sub(last.input, b.add(begins.back(), b.index(run.taps - 1)));
  low = b.ceilDiv(b.max(b.sub(zero, begins.back()), zero), last.stride);
  high = b.max(low, b.ceilDiv(b.max(ends, zero), last.stride));
}

void RunPacker::emit() {
  Value length = input.dimensions.back().output;
  Value lastRow = b.div(b.sub(b.add(end, length), b.index(1)), length);
  b.loop(b.div(first, length), lastRow, b.index(1),
         [&](Value row) { packRow(row); });
}

/// Where the run's first element lies if the window of a row of outputs began
/// at input column 0, and whether the row has the taps of outer dimensions
/// inside the input.
std::pair<Value, Value> RunPacker::findRow(Value row) {
  SmallVector<Value> outer = {input.images};
  for (const WindowDimension &d : ArrayRef(input.dimensions).drop_back())
    outer.push_back(d.output);
  SmallVector<Value> at = b.delinearize(row, outer);
  Value source = b.add(run.element, b.mul(at[0], strides[0]));
  Value inside = b.create<arith::ConstantIntOp>(1, 1);
  for (size_t i = 0; i + 1 < input.dimensions.size(); ++i) {
    const WindowDimension &d = input.dimensions[i];
    Value x = b.add(b.mul(at[1 + i], b.index(d.stride)), begins[i]);
    // Unsigned, so that positions before the input are outside too.
    Value valid =
        b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, x, d.input);
    inside = b.createOrFold<arith::AndIOp>(inside, valid);
    source = b.add(source, b.mul(x, strides[1 + i]));
  }
  return {source, inside};
}

/// The elements of a run that may lie partly inside, from input column `x` on.
Value RunPacker::loadEdge(Value source, Value x, Value isInside) {
  Value none = b.zero(VectorType::get(lanes, base.element));
  if (!run.exists)
    return none;
  Value channels = b.index(input.channels);
  Value valid = areBelow(b, b.add(b.mul(x, channels), run.element), lanes,
                         b.mul(input.dimensions.back().input, channels));
  valid = b.create<arith::AndIOp>(valid, run.exists);
  valid = b.create<arith::AndIOp>(
      valid, b.create<vector::SplatOp>(valid.getType(), isInside));
  return b.loadMasked(base, b.add(source, b.mul(x, strides.back())), valid,
                      none);
}

void RunPacker::packRow(Value row) {
  const WindowDimension &last = input.dimensions.back();
  Value source, inside;
  std::tie(source, inside) = findRow(row);
  Value rowBegin = b.mul(row, last.output), zero = b.index(0);
  Value from = b.max(b.sub(first, rowBegin), zero);
  Value to = b.min(b.sub(end, rowBegin), last.output);
  Value start = b.min(b.max(low, from), to);
  Value stop = b.max(b.min(high, to), start);
  stop = b.create<arith::SelectOp>(inside, stop, start);
  // From outputs of the row to positions.
  Value shift = b.sub(rowBegin, first);
  auto column = [&](Value position) {
    return b.add(b.mul(b.sub(position, shift), b.index(last.stride)),
                 begins.back());
  };
  auto edge = [&](Value position, Value) {
    return loadEdge(source, column(position), inside);
  };
  auto pixel = [&](Value position, Value lane) -> Value {
    Value at = b.add(source, b.mul(column(position), strides.back()));
    if (!run.exists)
      return b.loadVector(base, b.add(at, lane), lanes);
    return b.loadMasked(base, at, run.exists,
                        b.zero(VectorType::get(lanes, base.element)));
  };
  fill(b.add(from, shift), b.add(start, shift), edge);
  fill(b.add(start, shift), b.add(stop, shift), pixel);
  fill(b.add(stop, shift), b.add(to, shift), edge);
}

void RunPacker::forEachVector(Value place,
                              function_ref<void(Value at, Value lane)> body) {
  Value start = b.add(target, b.mul(place, b.index(kPanelColumns)));
  for (int64_t lane = 0; lane < run.count; lane += lanes)
    body(b.add(start, b.index(lane)), b.index(lane));
}

void RunPacker::store(Value vector, Value at) {
  if (run.exists)
    b.storeMasked(vector, into, at, run.exists);
  else
    b.store(vector, into, at);
}

void RunPacker::fill(Value from, Value to, Element element) {
  if (input.packing.group > 1)
    return fillPairs(from, to, element);
  b.loop(from, to, b.index(1), [&](Value position) {
    forEachVector(position, [&](Value at, Value lane) {
      store(element(position, lane), at);
    });
  });
}

/// A row may begin and end within a unit, which is a pair here.
void RunPacker::fillPairs(Value from, Value to, Element element) {
  assert(input.packing.group == 2 && "other units are not filled yet");
  Value two = b.index(2), one = b.index(1);
  Value exists = run.exists;
  if (!exists)
    exists = b.create<arith::ConstantOp>(
        DenseElementsAttr::get(maskOf(b, lanes), true));
  auto fillHalf = [&](Value position, bool isHigh) {
    Value half = b.create<arith::ConstantIntOp>(isHigh, 1);
    forEachVector(b.div(position, two), [&](Value at, Value lane) {
      storeHalves(b, element(position, lane), half, into, at, exists);
    });
  };
  Value firstPair = b.ceilDiv(from, 2), endPair = b.div(to, two);
  Value whole = b.mul(endPair, two);
  b.when(b.less(from, b.min(b.mul(firstPair, two), to)),
         [&] { fillHalf(from, true); });
  b.loop(firstPair, endPair, one, [&](Value pair) {
    Value position = b.mul(pair, two), next = b.add(position, one);
    forEachVector(pair, [&](Value at, Value lane) {
      Value x = element(position, lane), y = element(next, lane);
      store(interleave(b, {x, y}), at);
    });
  });
  b.when(b.less(b.max(whole, from), b.min(to, b.add(whole, one))),
         [&] { fillHalf(whole, false); });
}

/// Columns whose taps have whole vectors of channels.
static void packTaps(KernelBuilder &b, const ConvolutionInput &input,
                     VectorUnit unit, const PackRequest &request,
                     int64_t count) {
  Value channels = b.index(input.channels);
  b.loop(b.index(0), request.count, b.index(count), [&](Value column) {
    Value at = b.add(request.first, column);
    ColumnRun run{column, b.div(at, channels), b.rem(at, channels), 1, count};
    RunPacker(b, input, unit, request, run).emit();
  });
}

/// Vectors of columns that several runs have parts of.
static void packParts(KernelBuilder &b, const ConvolutionInput &input,
                      VectorUnit unit, const PackRequest &request) {
  int64_t lanes = unit.lanes(request.into.element);
  int64_t taps = getRunTaps(input), length = taps * input.channels;
  b.loop(b.index(0), request.count, b.index(lanes), [&](Value column) {
    Value at = b.add(request.first, column);
    Value left = b.min(b.sub(request.count, column), b.index(lanes));
    Value asked = areBelow(b, b.index(0), lanes, left);
    Value end = b.ceilDiv(b.add(at, left), length);
    b.loop(b.div(at, b.index(length)), end, b.index(1), [&](Value number) {
      Value element = b.sub(at, b.mul(number, b.index(length)));
      Value exists = areBelow(b, element, lanes, b.index(length));
      exists = b.create<arith::AndIOp>(exists, asked);
      ColumnRun run{column, number, element, taps, lanes, exists};
      RunPacker(b, input, unit, request, run).emit();
    });
  });
}

MatrixOperand tcc::cpu::makePatchColumns(const ConvolutionInput &input,
                                         Type packed, VectorUnit unit) {
  MatrixOperand operand;
  operand.packedType = packed;
  operand.pack = [=](KernelBuilder &b, const PackRequest &request) {
    int64_t shared = std::gcd(input.channels, kPanelColumns);
    if (shared >= unit.lanes(packed))
      packTaps(b, input, unit, request, shared);
    else
      packParts(b, input, unit, request);
  };
  return operand;
}
