#include "compiler/package/LibraryTables.h"

#include "compiler/package/EntryBuilder.h"

using namespace mlir;

namespace tcc::package {

static flatbuffers::Offset<format::Operand>
buildOperand(flatbuffers::FlatBufferBuilder &fbb, exec::OperandAttr operand) {
  if (!operand)
    return {};
  std::vector<flatbuffers::Offset<format::SizeExpr>> sizes;
  for (AffineExpr size : operand.getPlace().getResults())
    sizes.push_back(buildSize(fbb, size));
  auto place = fbb.CreateVector(sizes);
  return format::CreateOperand(fbb, operand.getBuffer(),
                               getDType(operand.getElementType()), place);
}

static flatbuffers::Offset<format::Step>
buildStep(flatbuffers::FlatBufferBuilder &fbb, exec::StepAttr step) {
  auto operand = buildOperand(fbb, step.getOperand());
  double factor = step.getFactor() ? step.getFactor().getValueAsDouble() : 1;
  return format::CreateStep(fbb, step.getKind(), factor, operand);
}

static flatbuffers::Offset<format::Window>
buildWindow(flatbuffers::FlatBufferBuilder &fbb, exec::WindowAttr window) {
  if (!window)
    return {};
  auto buildList = [&](DenseI64ArrayAttr values) {
    return fbb.CreateVector(values.asArrayRef().data(), values.size());
  };
  auto padLow = buildList(window.getPadLow());
  auto padHigh = buildList(window.getPadHigh());
  auto strides = buildList(window.getStrides());
  auto dilations = buildList(window.getDilations());
  return format::CreateWindow(fbb, padLow, padHigh, strides, dilations);
}

flatbuffers::Offset<format::LibraryWork>
buildLibraryWork(flatbuffers::FlatBufferBuilder &fbb,
                 exec::LibraryWorkAttr work) {
  if (!work)
    return {};
  auto lhs = buildOperand(fbb, work.getLhs());
  auto rhs = buildOperand(fbb, work.getRhs());
  auto result = buildOperand(fbb, work.getResult());
  std::vector<flatbuffers::Offset<format::Step>> steps;
  if (work.getSteps())
    for (auto step : work.getSteps().getAsRange<exec::StepAttr>())
      steps.push_back(buildStep(fbb, step));
  auto stepsVector = fbb.CreateVector(steps);
  auto window = buildWindow(fbb, work.getWindow());
  return format::CreateLibraryWork(fbb, work.getKind(), lhs, rhs, result,
                                   stepsVector, work.getTf32(), window);
}

} // namespace tcc::package
