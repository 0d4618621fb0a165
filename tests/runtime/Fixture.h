//===- Fixture.h - Small packages made by hand ------------------*- C++ -*-===//
#ifndef TCC_TESTS_RUNTIME_FIXTURE_H
#define TCC_TESTS_RUNTIME_FIXTURE_H

#include "runtime/executor/Context.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace tcc::tests {

using format::EntryKind;
using runtime::Code;
using runtime::DType;
using runtime::Executable;
using runtime::ExecutableOptions;
using runtime::Result;
using runtime::Status;
using runtime::TensorView;

using Expr = std::unique_ptr<format::SizeExprT>;
using Instruction = format::SizeInstruction;

std::vector<char> readBytes(const std::string &path);
void writeBytes(const std::string &path, const std::vector<char> &bytes);

/// The image of kernels.c.
const std::vector<char> &kernelImage();

/// A folder of one test, removed with it.
class TemporaryFolder {
public:
  TemporaryFolder();
  ~TemporaryFolder() { std::filesystem::remove_all(path); }
  std::string operator/(const std::string &name) const {
    return path + "/" + name;
  }

private:
  std::string path;
};

Expr constant(int64_t value);
Expr slot(int64_t index);
/// Postfix code.
Expr code(std::vector<Instruction> instructions);

/// A tensor of a library's work: its offset, extents, then strides.
std::unique_ptr<format::OperandT>
makeOperand(uint32_t buffer, DType dtype, std::initializer_list<int64_t> place);
format::StepT &addStep(format::LibraryWorkT &work, format::StepKind kind,
                       std::unique_ptr<format::OperandT> operand = nullptr);

/// An exec program in the object form of the schema, with shorthands. Adding a
/// kernel's launch adds the kernel.
class ProgramBuilder {
public:
  ProgramBuilder();

  /// The entry of that kind, made if need be.
  format::EntryT &entry(EntryKind kind = EntryKind::main, uint16_t variant = 0);
  /// What is added later belongs to this entry; to `main` at first.
  ProgramBuilder &inEntry(EntryKind kind, uint16_t variant = 0);

  void symbol(const std::string &name, int64_t min, int64_t max);
  uint32_t input(const std::string &name, DType dtype, std::vector<Expr> shape);
  uint32_t output(const std::string &name, DType dtype,
                  std::vector<Expr> shape);
  uint32_t buffer(format::StorageClass storage, uint32_t index,
                  uint64_t maxBytes);
  uint32_t scratch(uint64_t bytes);
  uint32_t fault();
  uint32_t view(uint32_t base, Expr offset, uint64_t maxBytes);
  /// Adds an f32 weight with a digest; `sources` as in the schema.
  uint32_t weight(const std::string &name, const std::vector<float> &values,
                  std::vector<uint32_t> sources = {});
  void state(uint32_t input, uint32_t output);
  uint32_t variable(const std::string &name, DType dtype,
                    std::vector<int64_t> shape,
                    format::VariableKind kind = format::VariableKind::step);
  /// A field of the step, under its usual name.
  uint32_t field(format::StepField field);
  /// A setting of numbers from 0 in `variable`.
  void setting(const std::string &key, uint32_t variable);
  uint32_t modelTensor(const std::string &name, std::vector<int64_t> shape,
                       int32_t constIndex = -1);

  /// It runs on a device, and all its buffers lie there.
  void moveToDevice(format::EntryT &entry);
  /// All entries but `prepare` run on the emulated device.
  void compileForDevice();

  /// The block that launches are appended to; the entry's body at first.
  format::BlockT &block() { return *blocks.back(); }
  void pushBlock(format::BlockT &block) { blocks.push_back(&block); }
  void popBlock() { blocks.pop_back(); }

  /// What is added later is on this lane; on lane 0 at first.
  void onLane(uint16_t newLane);
  /// Adds an event: `from` records it, and `to` waits for it at once.
  void orderLanes(uint16_t from, uint16_t to);
  void copy(uint32_t from, uint32_t to, uint64_t bytes);
  format::LaunchT &launch(const std::string &kernel,
                          std::vector<uint32_t> buffers,
                          std::vector<Expr> sizes, Expr tasks);
  template <typename Action> Action &command(Action action) {
    auto added = std::make_unique<format::CommandT>();
    added->action.Set(std::move(action));
    added->lane = lane;
    block().commands.push_back(std::move(added));
    return *static_cast<Action *>(block().commands.back()->action.value);
  }

  /// An If whose blocks are empty.
  format::IfT &branch(uint32_t condition) {
    format::IfT added;
    added.condition = condition;
    added.then_block = std::make_unique<format::BlockT>();
    added.else_block = std::make_unique<format::BlockT>();
    return command(std::move(added));
  }

  /// Serializes; the weights' bytes are kept for `write`.
  std::vector<std::byte> program();
  void write(const std::string &path);
  /// With another program in the place of this one.
  void write(const std::string &path, std::span<const std::byte> program);

  format::ProgramT tables;
  bool withWeights = true;

private:
  uint32_t kernel(const std::string &symbol);

  format::EntryT *current = nullptr;
  std::vector<format::BlockT *> blocks;
  uint16_t lane = 0;
  std::vector<std::vector<float>> weightValues;
  uint64_t weightEnd = 0;
};

/// Makes the first command of a serialized program one of kind 99, which no
/// schema has.
void spoilFirstCommand(std::vector<std::byte> &program);

/// out = in + 1 over `batch` (1..8) x 4 floats.
ProgramBuilder addOneProgram();

/// Asserts success and moves the value out.
template <typename T> T unwrap(Result<T> result) {
  if (result.ok())
    return std::move(*result);
  std::string message(result.takeStatus().message());
  ADD_FAILURE() << message;
  std::exit(1);
}

std::shared_ptr<const Executable>
loadExecutable(const std::string &path, const ExecutableOptions &options = {});
/// Compiled for the emulated device and loaded there.
std::shared_ptr<const Executable>
loadEmulated(ProgramBuilder &builder, const std::string &tuneCache = "");
std::unique_ptr<runtime::Context> makeContext(ProgramBuilder &builder,
                                              int threads = 1);

MATCHER(succeeds, "succeeds") {
  *result_listener << arg.message();
  return arg.ok();
}
MATCHER_P2(failsWith, expectedCode, text, "") {
  *result_listener << int(arg.code()) << ": " << arg.message();
  return arg.code() == expectedCode &&
         arg.message().find(text) != std::string_view::npos;
}

template <typename T>
Status bind(runtime::Context &context, size_t index,
            const std::vector<T> &values, std::vector<int64_t> shape,
            DType dtype = DType::f32) {
  return context.bindInput(index,
                           {const_cast<T *>(values.data()), dtype, shape});
}
std::vector<float> floatsOf(const TensorView &tensor);

} // namespace tcc::tests

#endif // TCC_TESTS_RUNTIME_FIXTURE_H
