#include "compiler/codegen/cpu/tile/PaddedWindows.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

/// Elements of a unit.
static constexpr int64_t kGroup = 2;

bool PaddedWindows::isWorthwhile() const {
  constexpr double kLeastShare = 0.5;
  constexpr int64_t kMostBytes = 1 << 20;
  double share = 1, taps = 1;
  for (const PaddedAxis &axis : axes) {
    if (axis.output < 1 || axis.taps < 1)
      return false;
    share *= double(axis.output) / double(axis.getPadded());
    taps *= double(axis.taps);
  }
  return channels % (kGroup * kRegisterUnits) == 0 && taps > 1 &&
         share >= kLeastShare &&
         getScratchBytes(Blocking().m + kRegisterTileRows) <= kMostBytes;
}

int64_t PaddedWindows::getReach() const {
  int64_t reach = 0;
  for (const PaddedAxis &axis : axes)
    reach = reach * axis.getPadded() + axis.getReach();
  return reach;
}

int64_t PaddedWindows::getScratchBytes(int64_t windows) const {
  // Each time that an axis begins anew, what it has more than windows is
  // passed.
  int64_t positions = windows, inner = 1, pitch = 1;
  for (const PaddedAxis &axis : llvm::reverse(axes)) {
    inner *= axis.output;
    positions += (windows / inner + 1) * axis.getReach() * pitch;
    pitch *= axis.getPadded();
  }
  // The copy has whole rows of pixels.
  positions += getReach() + 2 * getPitch() + kRegisterTileRows;
  return positions * channels * 2;
}

namespace {

/// Emits what a contraction asks of padded windows.
class WindowEmitter {
public:
  WindowEmitter(const ConvolutionInput &input, const PaddedWindows &windows)
      : input(input), windows(windows), pixelUnits(windows.channels / kGroup) {}

  Value positionOf(KernelBuilder &b, Value row) const;
  std::pair<Value, Value> rowAt(KernelBuilder &b, Value position) const;
  Value pack(KernelBuilder &b, Value first, Value last, Memory into) const;
  Value runOffset(KernelBuilder &b, Value run) const;

private:
  ConvolutionInput input;
  PaddedWindows windows;
  int64_t pixelUnits;

  SmallVector<Value> sizes(KernelBuilder &b,
                           int64_t (*get)(const PaddedAxis &)) const {
    SmallVector<Value> all = {input.images};
    for (const PaddedAxis &axis : windows.axes)
      all.push_back(b.index(get(axis)));
    return all;
  }
  static int64_t getOutput(const PaddedAxis &axis) { return axis.output; }
  static int64_t getPadded(const PaddedAxis &axis) { return axis.getPadded(); }
  void copyRow(KernelBuilder &b, Value number, Memory to) const;
};

} // namespace

Value WindowEmitter::positionOf(KernelBuilder &b, Value row) const {
  Value position = b.index(0);
  SmallVector<Value> at = b.delinearize(row, sizes(b, getOutput));
  for (auto [i, size] : llvm::zip_equal(at, sizes(b, getPadded)))
    position = b.add(b.mul(position, size), i);
  return position;
}

std::pair<Value, Value> WindowEmitter::rowAt(KernelBuilder &b,
                                             Value position) const {
  SmallVector<Value> at = b.delinearize(position, sizes(b, getPadded));
  Value isRow = b.less(at.front(), input.images), row = at.front();
  for (auto [i, axis] :
       llvm::zip_equal(ArrayRef(at).drop_front(), windows.axes)) {
    Value output = b.index(axis.output);
    isRow = b.createOrFold<arith::AndIOp>(isRow, b.less(i, output));
    row = b.add(b.mul(row, output), i);
  }
  return {isRow, row};
}

/// A row of pixels of that number, with zeros around it; all zeros where it
/// lies outside of the input.
void WindowEmitter::copyRow(KernelBuilder &b, Value number, Memory to) const {
  SmallVector<Value> all = sizes(b, getPadded), strides = getStrides(b, input);
  all.pop_back();
  SmallVector<Value> at = b.delinearize(number, all);
  Value isInside = b.less(at.front(), input.images);
  Value source = b.mul(at.front(), strides.front());
  for (size_t d = 0; d + 1 < windows.axes.size(); ++d) {
    const PaddedAxis &axis = windows.axes[d];
    Value place = b.sub(at[1 + d], b.index(axis.padLow));
    // Unsigned, so that places before the input are outside, too.
    Value own = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, place,
                                        b.index(axis.input));
    isInside = b.createOrFold<arith::AndIOp>(isInside, own);
    source = b.add(source, b.mul(place, strides[1 + d]));
  }
  const PaddedAxis &last = windows.axes.back();
  // Positions of the row that lie in the input.
  int64_t padded = last.getPadded();
  int64_t low = std::clamp<int64_t>(last.padLow, 0, padded);
  int64_t high = std::clamp<int64_t>(last.padLow + last.input, low, padded);
  Value zero = b.zero(VectorType::get(kRegisterUnits, to.element));
  auto clear = [&](int64_t from, int64_t to_) {
    b.loop(b.index(from * pixelUnits), b.index(to_ * pixelUnits),
           b.index(kRegisterUnits), [&](Value e) { b.store(zero, to, e); });
  };
  Value shift = b.sub(source, b.index(last.padLow * pixelUnits));
  b.when(
      isInside,
      [&] {
        clear(0, low);
        b.loop(b.index(low * pixelUnits), b.index(high * pixelUnits),
               b.index(kRegisterUnits), [&](Value e) {
                 Value x =
                     b.loadVector(input.base, b.add(shift, e), kRegisterUnits);
                 b.store(x, to, e);
               });
        clear(high, padded);
      },
      [&] { clear(0, padded); });
}

/// Returns where position `first` is in the copy.
Value WindowEmitter::pack(KernelBuilder &b, Value first, Value last,
                          Memory into) const {
  Value pitch = b.index(windows.getPitch());
  Value rowUnits = b.index(windows.getPitch() * pixelUnits);
  Value from = b.div(first, pitch);
  Value reach = b.add(last, b.index(windows.getReach()));
  Value to = b.add(b.div(reach, pitch), b.index(1));
  b.loop(from, to, b.index(1), [&](Value number) {
    copyRow(b, number, b.from(into, b.mul(b.sub(number, from), rowUnits)));
  });
  return b.mul(b.sub(first, b.mul(from, pitch)), b.index(pixelUnits));
}

/// The runs are the taps.
Value WindowEmitter::runOffset(KernelBuilder &b, Value run) const {
  SmallVector<Value> taps;
  for (const PaddedAxis &axis : windows.axes)
    taps.push_back(b.index(axis.taps));
  Value position = b.index(0);
  for (auto [tap, axis] :
       llvm::zip_equal(b.delinearize(run, taps), windows.axes))
    position = b.add(b.mul(position, b.index(axis.getPadded())),
                     b.mul(tap, b.index(axis.dilation)));
  return b.mul(position, b.index(pixelUnits));
}

MatrixOperand tcc::cpu::makePaddedWindows(const ConvolutionInput &input,
                                          const PaddedWindows &windows) {
  WindowEmitter emitter(input, windows);
  MatrixOperand operand;
  operand.packedType = input.base.element;
  operand.hasSpareRows = true;
  int64_t runs = 1;
  for (const PaddedAxis &axis : windows.axes)
    runs *= axis.taps;
  operand.positions = RowPositions{
      .size = windows.channels / kGroup,
      .runs = runs,
      .positionOf = [=](KernelBuilder &b,
                        Value row) { return emitter.positionOf(b, row); },
      .rowAt = [=](KernelBuilder &b,
                   Value position) { return emitter.rowAt(b, position); },
      .pack = [=](KernelBuilder &b, Value first, Value last,
                  Memory into) { return emitter.pack(b, first, last, into); },
      .runOffset = [=](KernelBuilder &b,
                       Value run) { return emitter.runOffset(b, run); }};
  return operand;
}
