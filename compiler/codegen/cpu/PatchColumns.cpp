#include "compiler/codegen/cpu/Convolution.h"
#include "compiler/codegen/cpu/PairProduct.h"
#include "mlir/Dialect/Vector/IR/VectorOps.h"
#include <numeric>

using namespace mlir;
using namespace tcc::cpu;

namespace {

/// Packs columns of a panel that belong to one tap, `column` of a request and
/// those behind it. Positions are those of the request from its first k on.
class TapPacker {
public:
  TapPacker(KernelBuilder &b, const ConvolutionInput &input, VectorUnit unit,
            const PackRequest &request, Value column, int64_t count);
  void emit();

private:
  KernelBuilder &b;
  const ConvolutionInput &input;
  int64_t count, lanes;
  bool isPaired; // neighbouring positions become pairs
  Memory base, into;
  SmallVector<Value> strides;
  SmallVector<Value> begins; // where the window of output 0 has the tap
  Value channel, target;     // of the tap's first column
  Value first, end;          // of all positions
  Value low, high;           // outputs of a row that have the tap inside

  using Element = function_ref<Value(Value position, Value lane)>;
  void packRow(Value row);
  std::pair<Value, Value> findRow(Value row);
  void fill(Value from, Value to, Element element);
  void fillPairs(Value from, Value to, Element element);
  void forEachVector(Value place,
                     function_ref<void(Value at, Value lane)> body);
};

} // namespace

TapPacker::TapPacker(KernelBuilder &b, const ConvolutionInput &input,
                     VectorUnit unit, const PackRequest &request, Value column,
                     int64_t count)
    : b(b), input(input), count(count), lanes(unit.lanes(request.into.element)),
      isPaired(packsPairs(input, request)), base(input.base.asBits()),
      into(request.into.asBits()), strides(getStrides(b, input)) {
  SmallVector<Value> taps;
  for (const WindowDimension &d : input.dimensions)
    taps.push_back(d.taps);
  taps.push_back(b.index(input.channels));
  SmallVector<Value> tap = b.delinearize(b.add(request.first, column), taps);
  for (auto [i, d] : llvm::enumerate(input.dimensions))
    begins.push_back(b.sub(b.mul(tap[i], b.index(d.dilation)), d.padBegin));
  channel = tap.back();
  Value width = b.index(panelColumns), zero = b.index(0);
  target = b.add(b.mul(b.div(column, width), b.index(request.panelSize)),
                 b.rem(column, width));
  Value unitSize = b.index(isPaired ? 2 : 1);
  first = b.mul(request.k, unitSize);
  end = b.add(first, b.mul(request.depth, unitSize));
  const WindowDimension &last = input.dimensions.back();
  low = b.ceilDiv(b.max(b.sub(zero, begins.back()), zero), last.stride);
  high = b.ceilDiv(b.max(b.sub(last.input, begins.back()), zero), last.stride);
}

void TapPacker::emit() {
  Value length = input.dimensions.back().output;
  Value lastRow = b.div(b.sub(b.add(end, length), b.index(1)), length);
  b.loop(b.div(first, length), lastRow, b.index(1),
         [&](Value row) { packRow(row); });
}

/// Where the tap's channel of input column 0 lies for a row of outputs, and
/// whether the row has the tap inside the input.
std::pair<Value, Value> TapPacker::findRow(Value row) {
  SmallVector<Value> outer = {input.images};
  for (const WindowDimension &d : ArrayRef(input.dimensions).drop_back())
    outer.push_back(d.output);
  SmallVector<Value> at = b.delinearize(row, outer);
  Value source = b.add(channel, b.mul(at[0], strides[0]));
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

void TapPacker::packRow(Value row) {
  const WindowDimension &last = input.dimensions.back();
  auto [source, inside] = findRow(row);
  source = b.add(source, b.mul(begins.back(), strides.back()));
  Value rowBegin = b.mul(row, last.output), zero = b.index(0);
  Value from = b.max(b.sub(first, rowBegin), zero);
  Value to = b.min(b.sub(end, rowBegin), last.output);
  Value start = b.min(b.max(low, from), to);
  Value stop = b.max(b.min(high, to), start);
  stop = b.create<arith::SelectOp>(inside, stop, start);
  // From outputs of the row to positions.
  Value shift = b.sub(rowBegin, first);
  Value none = b.zero(VectorType::get(lanes, base.element));
  auto isZero = [&](Value, Value) { return none; };
  auto pixel = [&, source = source](Value position, Value lane) {
    Value x = b.mul(b.sub(position, shift), b.index(last.stride));
    Value at = b.add(source, b.mul(x, strides.back()));
    return b.loadVector(base, b.add(at, lane), lanes);
  };
  fill(b.add(from, shift), b.add(start, shift), isZero);
  fill(b.add(start, shift), b.add(stop, shift), pixel);
  fill(b.add(stop, shift), b.add(to, shift), isZero);
}

void TapPacker::forEachVector(Value place,
                              function_ref<void(Value at, Value lane)> body) {
  Value start = b.add(target, b.mul(place, b.index(panelColumns)));
  for (int64_t lane = 0; lane < count; lane += lanes)
    body(b.add(start, b.index(lane)), b.index(lane));
}

void TapPacker::fill(Value from, Value to, Element element) {
  if (isPaired)
    return fillPairs(from, to, element);
  b.loop(from, to, b.index(1), [&](Value position) {
    forEachVector(position, [&](Value at, Value lane) {
      b.store(element(position, lane), into, at);
    });
  });
}

/// A row may begin and end within a pair.
void TapPacker::fillPairs(Value from, Value to, Element element) {
  Value two = b.index(2), one = b.index(1);
  Value mask = b.create<arith::ConstantOp>(
      DenseElementsAttr::get(VectorType::get(lanes, b.getI1Type()), true));
  auto fillHalf = [&](Value position, bool isHigh) {
    Value half = b.create<arith::ConstantIntOp>(isHigh, 1);
    forEachVector(b.div(position, two), [&](Value at, Value lane) {
      storeHalves(b, element(position, lane), half, into, at, mask);
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
      b.store(interleave(b, x, y), into, at);
    });
  });
  b.when(b.less(b.max(whole, from), b.min(to, b.add(whole, one))),
         [&] { fillHalf(whole, false); });
}

MatrixOperand tcc::cpu::makePatchColumns(const ConvolutionInput &input,
                                         Type packed, VectorUnit unit) {
  MatrixOperand operand;
  operand.packedType = packed;
  operand.pack = [=](KernelBuilder &b, const PackRequest &request) {
    int64_t shared = std::gcd(input.channels, panelColumns);
    if (shared >= unit.lanes(packed))
      return b.loop(b.index(0), request.count, b.index(shared),
                    [&](Value column) {
                      TapPacker(b, input, unit, request, column, shared).emit();
                    });
    Value width = b.index(panelColumns);
    Value unitSize = b.index(packsPairs(input, request) ? 2 : 1);
    b.loop(b.ceilDiv(request.count, panelColumns), [&](Value number) {
      // A panel is made of the patches of the positions, cut short.
      Value first = b.mul(number, width);
      Memory into =
          b.from(request.into, b.mul(number, b.index(request.panelSize)));
      packPatches(b, input, unit,
                  {request.batch, b.mul(request.k, unitSize),
                   b.mul(request.depth, unitSize), b.add(request.first, first),
                   b.min(b.sub(request.count, first), width), into,
                   panelColumns, request.panelSize, panelColumns});
    });
  };
  return operand;
}
