#include "compiler/codegen/cpu/tile/WindowSums.h"

#include "compiler/codegen/cpu/tile/GroupLanes.h"

#include <numeric>

using namespace mlir;
using namespace tcc::codegen;
using namespace tcc::cpu;

namespace {

/// Vectors of filters that are worked on at once.
constexpr int64_t vectorsAtOnce = 4;

/// Sums that stay in registers, of vectors of so many bytes.
int64_t countSums(int64_t vectorBytes) { return vectorBytes >= 64 ? 24 : 12; }

class SumsEmitter {
public:
  SumsEmitter(KernelBuilder &b, const WindowSums &sums);
  void emitTask(Value task);

private:
  KernelBuilder &b;
  const WindowSums &sums;
  GroupLanes groups;
  int64_t lanes;
  VectorType sumVector;
  Value channels;                       // of x
  SmallVector<Value> xSizes, sumsSizes; // of the dimensions of x and gradient
  Memory results;                       // the sums of emitTaps, for `store`

  // What a task sums: taps of the outer dimensions, [tapsFrom, tapsTo) of the
  // innermost one. At once it does `taps` from tap `firstTap` on, for `vectors`
  // vectors from filter `filter` on.
  SmallVector<Value> outerTaps;
  Value tapsFrom, tapsTo, filter, firstTap;
  int64_t vectors = 0, taps = 0;
  Value mask, inputMask; // of the filters that exist; null if all do

  /// Sums by tap, vector and channel of the group.
  using Sums = SmallVector<Value>;

  const WindowDimension &row() const { return sums.dimensions.back(); }
  void emitFilters(Value first, int64_t count, Value inside);
  void emitTaps(Value first, int64_t count);
  Sums walkOuter(SmallVector<Value> at, SmallVector<Value> position,
                 Sums partials);
  Sums walkColumns(ValueRange at, ValueRange position, Sums partials);
  Sums joinColumn(ValueRange at, ValueRange position, Value column,
                  bool isWhole, const Sums &partials);
  Value beginOf(const WindowDimension &d, Value tap);
  std::pair<Value, Value> findPositions(const WindowDimension &d, Value begin,
                                        Value last);
  Value load(Memory input, ArrayRef<Value> at, ArrayRef<Value> sizes,
             Value first, Value count, Value inside);
  void storeSums(ArrayRef<Value> partials);
};

} // namespace

SumsEmitter::SumsEmitter(KernelBuilder &b, const WindowSums &sums)
    : b(b), sums(sums),
      groups{std::min(sums.unit.bytes / 4, sums.unit.lanes(sums.sumType)),
             sums.groupSize, sums.groupInputs},
      lanes(groups.lanes), sumVector(VectorType::get(lanes, sums.sumType)),
      channels(groups.toInputs(b, sums.filters)) {
  xSizes = sumsSizes = {sums.images};
  for (const WindowDimension &d : sums.dimensions) {
    xSizes.push_back(d.input);
    sumsSizes.push_back(d.output);
  }
  int64_t most =
      std::max(countSums(sums.unit.bytes), vectorsAtOnce * sums.groupInputs);
  results = b.allocate(sums.sumType, most * lanes);
}

void SumsEmitter::emitTask(Value task) {
  SmallVector<Value> sizes = {b.ceilDiv(sums.filters, kFiltersPerTask)};
  for (const WindowDimension &d : ArrayRef(sums.dimensions).drop_back())
    sizes.push_back(d.taps);
  sizes.push_back(b.ceilDiv(row().taps, kTapsPerTask));
  SmallVector<Value> at = b.delinearize(task, sizes);
  outerTaps.assign(at.begin() + 1, at.end() - 1);
  tapsFrom = b.mul(at.back(), b.index(kTapsPerTask));
  tapsTo = b.min(b.add(tapsFrom, b.index(kTapsPerTask)), row().taps);
  Value from = b.mul(at.front(), b.index(kFiltersPerTask));
  Value to = b.min(b.add(from, b.index(kFiltersPerTask)), sums.filters);
  int64_t divisor =
      std::gcd(constantOf(sums.filters).value_or(1), kFiltersPerTask);
  groups.walk(b, from, to, divisor, vectorsAtOnce,
              [&](Value first, int64_t count, Value inside) {
                emitFilters(first, count, inside);
              });
}

void SumsEmitter::emitFilters(Value first, int64_t count, Value inside) {
  filter = first;
  vectors = count;
  mask = inside ? groups.makeMask(b, inside) : Value();
  inputMask = groups.makeInputMask(b, inside);
  int64_t inTask = std::min(*constantOf(row().taps), kTapsPerTask);
  int64_t most = countSums(sums.unit.bytes) / (vectors * sums.groupInputs);
  int64_t atOnce = std::clamp<int64_t>(most, 1, inTask);
  Value step = b.index(atOnce);
  Value whole = b.mul(b.div(b.sub(tapsTo, tapsFrom), step), step);
  Value rest = b.add(tapsFrom, whole);
  b.loop(tapsFrom, rest, step, [&](Value tap) { emitTaps(tap, atOnce); });
  b.loop(rest, tapsTo, b.index(1), [&](Value tap) { emitTaps(tap, 1); });
}

void SumsEmitter::emitTaps(Value first, int64_t count) {
  firstTap = first;
  taps = count;
  Sums partials(taps * vectors * sums.groupInputs, b.zero(sumVector));
  storeSums(b.loop(b.index(0), sums.images, partials,
                   [&](Value image, ValueRange carried) {
                     return walkOuter({image}, {image}, Sums(carried));
                   }));
}

/// The element of x under `tap` at position 0, which may lie before x.
Value SumsEmitter::beginOf(const WindowDimension &d, Value tap) {
  return b.sub(b.mul(tap, b.index(d.dilation)), d.padBegin);
}

/// The positions [from, to) at which x has all elements between those that are
/// `begin` and `last` at position 0.
std::pair<Value, Value> SumsEmitter::findPositions(const WindowDimension &d,
                                                   Value begin, Value last) {
  Value zero = b.index(0);
  Value from = b.ceilDiv(b.max(b.sub(zero, begin), zero), d.stride);
  Value to = b.ceilDiv(b.max(b.sub(d.input, last), zero), d.stride);
  from = b.min(from, d.output);
  return {from, b.max(from, b.min(to, d.output))};
}

/// One loop for each outer dimension; `at` is where the gradient is, `position`
/// where x is, the image first.
SumsEmitter::Sums SumsEmitter::walkOuter(SmallVector<Value> at,
                                         SmallVector<Value> position,
                                         Sums partials) {
  size_t d = at.size() - 1;
  if (d + 1 == sums.dimensions.size())
    return walkColumns(at, position, partials);
  const WindowDimension &dimension = sums.dimensions[d];
  Value begin = beginOf(dimension, outerTaps[d]);
  auto [from, to] = findPositions(dimension, begin, begin);
  at.push_back(nullptr);
  position.push_back(nullptr);
  return b.loop(from, to, partials, [&](Value o, ValueRange carried) {
    at.back() = o;
    position.back() = b.add(b.mul(o, b.index(dimension.stride)), begin);
    return walkOuter(at, position, Sums(carried));
  });
}

/// All columns in order, so that sums do not depend on how many taps are summed
/// at once: those before all taps lie inside x, those where they do, and, in
/// the same code as the first, those after.
SumsEmitter::Sums SumsEmitter::walkColumns(ValueRange at, ValueRange position,
                                           Sums partials) {
  const WindowDimension &d = row();
  if (constantOf(d.input) == 0)
    return partials;
  Value begin = beginOf(d, firstTap);
  Value last = b.add(begin, b.index((taps - 1) * d.dilation));
  auto [from, to] = findPositions(d, begin, last);
  auto walk = [&](Value first, Value end, bool isWhole, ValueRange sums) {
    return b.loop(first, end, sums, [&](Value column, ValueRange carried) {
      return joinColumn(at, position, column, isWhole, Sums(carried));
    });
  };
  if (constantOf(from) == 0 && constantOf(to) == constantOf(d.output))
    return walk(from, to, true, partials);
  return b.loop(b.index(0), b.index(2), partials,
                [&](Value side, ValueRange carried) {
                  Value isBefore = b.less(side, b.index(1));
                  auto choose = [&](Value before, Value after) -> Value {
                    return b.create<arith::SelectOp>(isBefore, before, after);
                  };
                  Sums edge = walk(choose(b.index(0), to),
                                   choose(from, d.output), false, carried);
                  return walk(from, choose(to, from), true, edge);
                });
}

/// `isWhole` if all taps lie inside x; the sums of others stay as they are.
SumsEmitter::Sums SumsEmitter::joinColumn(ValueRange at, ValueRange position,
                                          Value column, bool isWhole,
                                          const Sums &partials) {
  const WindowDimension &d = row();
  SmallVector<Value> to(at), from(position), gradients;
  to.push_back(column);
  auto filterOf = [&](int64_t v) { return b.add(filter, b.index(v * lanes)); };
  for (int64_t v = 0; v < vectors; ++v)
    gradients.push_back(
        load(sums.gradient, to, sumsSizes, filterOf(v), sums.filters, mask));
  from.push_back(nullptr);
  Value begin = b.add(b.mul(column, b.index(d.stride)), beginOf(d, firstTap));
  Sums next;
  for (int64_t tap = 0; tap < taps; ++tap) {
    from.back() = b.add(begin, b.index(tap * d.dilation));
    Value isInside;
    if (!isWhole) {
      isInside = b.create<arith::CmpIOp>(arith::CmpIPredicate::ult, from.back(),
                                         d.input);
      from.back() =
          b.create<arith::SelectOp>(isInside, from.back(), b.index(0));
    }
    for (int64_t v = 0; v < vectors; ++v) {
      Value x = load(sums.x, from, xSizes, groups.toInputs(b, filterOf(v)),
                     channels, inputMask);
      for (int64_t c = 0; c < sums.groupInputs; ++c) {
        Value partial = partials[next.size()];
        Value joined =
            sums.join(b, partial, groups.spread(b, x, c), gradients[v]);
        next.push_back(isWhole ? joined
                               : b.createOrFold<arith::SelectOp>(
                                     isInside, joined, partial));
      }
    }
  }
  return next;
}

/// A vector of the channels from `first` on, of `count`, at the indices `at` of
/// axes of `sizes`. Lanes outside `inside`, if it is not null, are not read.
Value SumsEmitter::load(Memory input, ArrayRef<Value> at, ArrayRef<Value> sizes,
                        Value first, Value count, Value inside) {
  Value place = b.index(0);
  for (auto [index, size] : llvm::zip_equal(at, sizes))
    place = b.add(b.mul(place, size), index);
  place = b.add(b.mul(place, count), first);
  if (!inside)
    return b.loadVector(input, place, lanes);
  return b.loadMasked(input, place, inside,
                      b.zero(VectorType::get(lanes, input.element)));
}

void SumsEmitter::storeSums(ArrayRef<Value> partials) {
  for (auto [i, partial] : llvm::enumerate(partials))
    b.store(partial, results, b.index(i * lanes));
  Value inputs = b.index(sums.groupInputs), step = b.index(lanes);
  b.loop(b.index(partials.size()), [&](Value sum) {
    SmallVector<Value> at =
        b.delinearize(sum, {b.index(taps), b.index(vectors), inputs});
    SmallVector<Value> tap(outerTaps);
    tap.push_back(b.add(firstTap, at[0]));
    Value first = b.add(filter, b.mul(at[1], step));
    Value count = b.min(step, b.sub(sums.filters, first));
    b.loop(count, [&](Value lane) {
      Value place = b.add(b.mul(sum, step), lane);
      sums.store(b, b.load(results, place), b.add(first, lane), tap, at[2]);
    });
  });
}

void tcc::cpu::emitWindowSums(KernelBuilder &b, const WindowSums &sums,
                              Value firstTask, Value lastTask) {
  SumsEmitter emitter(b, sums);
  b.loop(firstTask, lastTask, b.index(1),
         [&](Value task) { emitter.emitTask(task); });
}
