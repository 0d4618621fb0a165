//===- Works.h - What libraries are asked for in tests ----------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_WORKS_H
#define TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_WORKS_H

#include "runtime/package/LibraryRules.h"

#include <algorithm>
#include <initializer_list>

namespace tcc::tests {

/// Bytes, of what the functions below make.
inline constexpr uint32_t kAlignment = 64;

/// [batch, rows, columns] with `padding` elements behind each row, or column.
inline runtime::StridedView makeMatrix(format::DType dtype, int64_t batch,
                                       int64_t rows, int64_t columns,
                                       bool byColumns = false,
                                       int64_t padding = 0) {
  int64_t leading = (byColumns ? rows : columns) + padding;
  int64_t elements = leading * (byColumns ? columns : rows);
  return {dtype,
          3,
          kAlignment,
          {batch, rows, columns},
          {elements, byColumns ? 1 : leading, byColumns ? leading : 1}};
}

/// [N, C, spatial...] with `padding` elements behind each image.
inline runtime::StridedView makeImage(format::DType dtype,
                                      const std::vector<int64_t> &extents,
                                      bool channelsLast = true,
                                      int64_t padding = 0) {
  runtime::StridedView view{dtype, uint32_t(extents.size()), kAlignment};
  std::ranges::copy(extents, view.extents.begin());
  int64_t step = 1;
  auto place = [&](size_t axis) {
    view.strides[axis] = step;
    step *= extents[axis];
  };
  if (channelsLast)
    place(1);
  for (size_t axis = extents.size(); axis-- > 2;)
    place(axis);
  if (!channelsLast)
    place(1);
  view.strides[0] = step + padding;
  return view;
}

/// A step whose operand lies as the result of `work` does, or is a vector.
inline runtime::LibraryStep makeStep(const runtime::LibraryWork &work,
                                     format::StepKind kind, double factor = 1) {
  runtime::LibraryStep step{kind, factor};
  runtime::OperandForm form = runtime::traitsOf(kind).form;
  if (form == runtime::OperandForm::none)
    return step;
  step.operand = work.result;
  if (form == runtime::OperandForm::elements)
    return step;
  step.operand.strides = {};
  step.operand.strides[runtime::axisOf(form, work.kind)] = 1;
  return step;
}

inline std::vector<runtime::LibraryStep>
makeSteps(const runtime::LibraryWork &work,
          const std::vector<format::StepKind> &kinds) {
  std::vector<runtime::LibraryStep> steps;
  for (format::StepKind kind : kinds)
    steps.push_back(makeStep(work, kind));
  return steps;
}

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_DEVICES_LIBRARIES_WORKS_H
