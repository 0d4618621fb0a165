#include "compiler/codegen/cpu/tile/PaddedWindows.h"

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

/// Elements of a unit.
static constexpr int64_t kGroup = 2;

bool PaddedWindows::isWorthwhile() const {
  constexpr double kLeastShare = 0.5;
  constexpr int64_t kMostBytes = 1 << 20;
  double share = 1;
  int64_t taps = 1;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    if (axis.output < 1 || axis.taps < 1)
      return false;
    share *= double(axis.output) / double(getPositions(i));
    taps *= axis.taps;
  }
  PaddedWindows usual = *this;
  usual.windows = kSharedRows * Blocking().m;
  return channels % (kGroup * kRegisterUnits) == 0 && taps > 1 &&
         share >= kLeastShare && usual.getScratchBytes() <= kMostBytes;
}

static int64_t getReachOf(const PaddedAxis &axis) {
  return (axis.taps - 1) * axis.dilation;
}

int64_t PaddedWindows::getPositions(size_t axis) const {
  return axes[axis].output + (isInner(axis) ? getReachOf(axes[axis]) : 0);
}

int64_t PaddedWindows::getReach() const {
  int64_t reach = 0;
  for (auto [i, axis] : llvm::enumerate(axes))
    if (isInner(i))
      reach = reach * getPositions(i) + getReachOf(axis);
  return reach;
}

int64_t PaddedWindows::getCopies() const {
  int64_t copies = 1;
  for (auto [i, axis] : llvm::enumerate(axes))
    if (!isInner(i))
      copies *= axis.taps;
  return copies;
}

int64_t PaddedWindows::getCopyPositions() const {
  // Each time that an axis begins anew, what it has more than windows is
  // passed.
  int64_t positions = windows, inner = 1, pitch = 1;
  for (size_t i = axes.size(); i-- > 0;) {
    inner *= axes[i].output;
    positions +=
        (windows / inner + 1) * (getPositions(i) - axes[i].output) * pitch;
    pitch *= getPositions(i);
  }
  // A copy has whole rows of pixels.
  return positions + getReach() + 2 * getPitch() + kRegisterTileRows;
}

int64_t PaddedWindows::getScratchBytes() const {
  return getCopies() * getCopyPositions() * channels * 2;
}

namespace {

/// Emits what a contraction asks of padded windows.
class WindowEmitter {
public:
  WindowEmitter(const ConvolutionInput &input, const PaddedWindows &windows)
      : input(input), windows(windows), pixelUnits(windows.channels / kGroup),
        copyUnits(windows.getCopyPositions() * pixelUnits) {}

  Value positionOf(KernelBuilder &b, Value row) const;
  std::pair<Value, Value> rowAt(KernelBuilder &b, Value position) const;
  Value pack(KernelBuilder &b, Value first, Value last, Memory into) const;
  Value runOffset(KernelBuilder &b, Value run) const;

private:
  ConvolutionInput input;
  PaddedWindows windows;
  int64_t pixelUnits, copyUnits;

  /// The number of images, and those of windows or positions of each axis.
  SmallVector<Value> countWindows(KernelBuilder &b) const;
  SmallVector<Value> countPositions(KernelBuilder &b) const;
  void copyRow(KernelBuilder &b, ValueRange outerTaps, Value number,
               Memory to) const;
};

} // namespace

SmallVector<Value> WindowEmitter::countWindows(KernelBuilder &b) const {
  SmallVector<Value> counts = {input.images};
  for (const PaddedAxis &axis : windows.axes)
    counts.push_back(b.index(axis.output));
  return counts;
}

SmallVector<Value> WindowEmitter::countPositions(KernelBuilder &b) const {
  SmallVector<Value> counts = {input.images};
  for (size_t i = 0; i < windows.axes.size(); ++i)
    counts.push_back(b.index(windows.getPositions(i)));
  return counts;
}

Value WindowEmitter::positionOf(KernelBuilder &b, Value row) const {
  Value position = b.index(0);
  SmallVector<Value> at = b.delinearize(row, countWindows(b));
  for (auto [i, size] : llvm::zip_equal(at, countPositions(b)))
    position = b.add(b.mul(position, size), i);
  return position;
}

std::pair<Value, Value> WindowEmitter::rowAt(KernelBuilder &b,
                                             Value position) const {
  SmallVector<Value> at = b.delinearize(position, countPositions(b));
  Value isRow = b.less(at.front(), input.images), row = at.front();
  for (auto [i, axis] :
       llvm::zip_equal(ArrayRef(at).drop_front(), windows.axes)) {
    Value output = b.index(axis.output);
    isRow = b.createOrFold<arith::AndIOp>(isRow, b.less(i, output));
    row = b.add(b.mul(row, output), i);
  }
  return {isRow, row};
}

/// A row of pixels of that number, with zeros around it, for a tap of each
/// outer axis; all zeros where it lies outside of the input.
void WindowEmitter::copyRow(KernelBuilder &b, ValueRange outerTaps,
                            Value number, Memory to) const {
  SmallVector<Value> all = countPositions(b), strides = getStrides(b, input);
  all.pop_back();
  SmallVector<Value> at = b.delinearize(number, all);
  Value isInside = b.less(at.front(), input.images);
  Value source = b.mul(at.front(), strides.front());
  for (size_t i = 0; i + 1 < windows.axes.size(); ++i) {
    const PaddedAxis &axis = windows.axes[i];
    Value place = b.sub(at[1 + i], b.index(axis.padLow));
    if (!windows.isInner(i))
      place = b.add(place, b.mul(outerTaps[i], b.index(axis.dilation)));
    // Unsigned, so that places before the input are outside, too.
    Value own = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, place,
                                        b.index(axis.input));
    isInside = b.createOrFold<arith::AndIOp>(isInside, own);
    source = b.add(source, b.mul(place, strides[1 + i]));
  }
  const PaddedAxis &last = windows.axes.back();
  // Positions of the row that lie in the input.
  int64_t padded = windows.getPitch();
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

/// Returns where position `first` is in a copy.
Value WindowEmitter::pack(KernelBuilder &b, Value first, Value last,
                          Memory into) const {
  Value pitch = b.index(windows.getPitch());
  Value rowUnits = b.index(windows.getPitch() * pixelUnits);
  Value from = b.div(first, pitch);
  Value reach = b.add(last, b.index(windows.getReach()));
  Value to = b.add(b.div(reach, pitch), b.index(1));
  SmallVector<Value> taps;
  for (auto [i, axis] : llvm::enumerate(windows.axes))
    if (!windows.isInner(i))
      taps.push_back(b.index(axis.taps));
  b.loop(b.index(windows.getCopies()), [&](Value number) {
    SmallVector<Value> outerTaps = b.delinearize(number, taps);
    Memory copy = b.from(into, b.mul(number, b.index(copyUnits)));
    b.loop(from, to, b.index(1), [&](Value row) {
      copyRow(b, outerTaps, row,
              b.from(copy, b.mul(b.sub(row, from), rowUnits)));
    });
  });
  return b.mul(b.sub(first, b.mul(from, pitch)), b.index(pixelUnits));
}

/// The runs are the taps.
Value WindowEmitter::runOffset(KernelBuilder &b, Value run) const {
  SmallVector<Value> taps;
  for (const PaddedAxis &axis : windows.axes)
    taps.push_back(b.index(axis.taps));
  Value copy = b.index(0), position = b.index(0);
  for (auto [i, tap] : llvm::enumerate(b.delinearize(run, taps))) {
    const PaddedAxis &axis = windows.axes[i];
    if (windows.isInner(i))
      position = b.add(b.mul(position, b.index(windows.getPositions(i))),
                       b.mul(tap, b.index(axis.dilation)));
    else
      copy = b.add(b.mul(copy, taps[i]), tap);
  }
  return b.add(b.mul(copy, b.index(copyUnits)),
               b.mul(position, b.index(pixelUnits)));
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
