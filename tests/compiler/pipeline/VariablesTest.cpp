// Functions that share variables, from text to a package and a session.

#include "compiler/package/PackageBuilder.h"
#include "compiler/pipeline/GenerateCode.h"
#include "compiler/pipeline/Phases.h"
#include "compiler/pipeline/Register.h"
#include "runtime/train/Session.h"

#include "mlir/Parser/Parser.h"
#include "mlir/Pass/PassManager.h"
#include "gtest/gtest.h"
#include <filesystem>
#include <unistd.h>

using namespace tcc;
using mlir::ModuleOp;
using mlir::OwningOpRef;

namespace {

/// Gradient descent with momentum 0.5 and rate 0.1 on the mean of (x w - y)^2.
constexpr char kModule[] = R"(
module attributes {graph.variables = [
    #graph.variable<"w", parameter, tensor<2xf64>>,
    #graph.variable<"momentum/w", slot, tensor<2xf64> of "w">,
    #graph.variable<"step/iteration", step, tensor<i64> field iteration>]} {
  func.func @init() -> (
      tensor<2xf64> {graph.variable = "w"},
      tensor<2xf64> {graph.variable = "momentum/w"},
      tensor<i64> {graph.variable = "step/iteration"}) {
    %w = graph.constant dense<[0.5, -1.0]> : tensor<2xf64>
    %m = graph.constant dense<0.0> : tensor<2xf64>
    %i = graph.constant dense<0> : tensor<i64>
    return %w, %m, %i : tensor<2xf64>, tensor<2xf64>, tensor<i64>
  }
  func.func @train_step(
      %x: tensor<4x2xf64> {graph.name = "x"},
      %y: tensor<4xf64> {graph.name = "y"},
      %w: tensor<2xf64> {graph.variable = "w"},
      %m: tensor<2xf64> {graph.variable = "momentum/w"},
      %i: tensor<i64> {graph.variable = "step/iteration"})
      -> (tensor<f64> {graph.name = "loss"},
          tensor<2xf64> {graph.variable = "w"},
          tensor<2xf64> {graph.variable = "momentum/w"},
          tensor<i64> {graph.variable = "step/iteration"}) {
    %0 = graph.broadcast %w : (tensor<2xf64>) -> tensor<4x2xf64>
    %1 = graph.mul %x, %0
      : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<4x2xf64>
    %2 = graph.reduce <sum> %1 [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    %e = graph.sub %2, %y : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %3 = graph.mul %e, %e : (tensor<4xf64>, tensor<4xf64>) -> tensor<4xf64>
    %4 = graph.reduce <sum> %3 [0] : (tensor<4xf64>) -> tensor<f64>
    %5 = graph.constant dense<0.25> : tensor<f64>
    %loss = graph.mul %4, %5 : (tensor<f64>, tensor<f64>) -> tensor<f64>
    %6 = graph.reshape %e : (tensor<4xf64>) -> tensor<4x1xf64>
    %7 = graph.broadcast %6 : (tensor<4x1xf64>) -> tensor<4x2xf64>
    %8 = graph.mul %x, %7
      : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<4x2xf64>
    %9 = graph.reduce <sum> %8 [0] : (tensor<4x2xf64>) -> tensor<2xf64>
    %half = graph.constant dense<0.5> : tensor<2xf64>
    %g = graph.mul %9, %half : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %10 = graph.mul %m, %half : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %m1 = graph.add %10, %g : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %rate = graph.constant dense<0.1> : tensor<2xf64>
    %11 = graph.mul %m1, %rate
      : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %w1 = graph.sub %w, %11 : (tensor<2xf64>, tensor<2xf64>) -> tensor<2xf64>
    %one = graph.constant dense<1> : tensor<i64>
    %i1 = graph.add %i, %one : (tensor<i64>, tensor<i64>) -> tensor<i64>
    return %loss, %w1, %m1, %i1
      : tensor<f64>, tensor<2xf64>, tensor<2xf64>, tensor<i64>
  }
  func.func @predict(%x: tensor<4x2xf64> {graph.name = "x"},
                     %w: tensor<2xf64> {graph.variable = "w"})
      -> (tensor<4xf64> {graph.name = "line"}) {
    %0 = graph.broadcast %w : (tensor<2xf64>) -> tensor<4x2xf64>
    %1 = graph.mul %x, %0
      : (tensor<4x2xf64>, tensor<4x2xf64>) -> tensor<4x2xf64>
    %2 = graph.reduce <sum> %1 [1] : (tensor<4x2xf64>) -> tensor<4xf64>
    return %2 : tensor<4xf64>
  }
})";

/// A file of one test, removed with it.
struct TemporaryFile {
  std::string path = "/tmp/tcc-test-" + std::to_string(getpid()) + ".tcc";
  ~TemporaryFile() { std::filesystem::remove(path); }
};

class VariablesTest : public testing::Test {
protected:
  VariablesTest() {
    mlir::DialectRegistry registry;
    registerAllTccDialects(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// All phases after import; false after an error.
  bool compile(const char *text, const std::string &path) {
    OwningOpRef<ModuleOp> module =
        mlir::parseSourceString<ModuleOp>(text, &context);
    mlir::PassManager passes(&context);
    addSimplification(passes, getHostTarget(), {});
    addFusion(passes, getHostTarget());
    addLowering(passes);
    addScheduling(passes);
    addPlacement(passes);
    CompileOptions options;
    Machines machines;
    if (!module || !resolveMachines(options, machines).empty() ||
        failed(passes.run(*module)))
      return false;
    auto code = CodeGenerator(*module, options, machines, {})
                    .generate(/*computesConstants=*/false);
    if (failed(code))
      return false;
    WeightStore weights;
    std::vector<MetadataEntry> metadata;
    uint64_t bytes = 0;
    package::PackageInputs inputs{*module, weights, metadata,
                                  std::move(code->variants)};
    return package::writePackage(inputs, path, bytes).ok();
  }

  mlir::MLIRContext context;
};

/// The same in plain C++.
struct Reference {
  double w[2] = {0.5, -1}, m[2] = {0, 0};

  double step(const double (&x)[4][2], const double (&y)[4]) {
    double loss = 0, g[2] = {0, 0};
    for (int i = 0; i < 4; ++i) {
      double error = x[i][0] * w[0] + x[i][1] * w[1] - y[i];
      loss += error * error / 4;
      for (int j = 0; j < 2; ++j)
        g[j] += x[i][j] * error / 2;
    }
    for (int j = 0; j < 2; ++j) {
      m[j] = m[j] / 2 + g[j];
      w[j] -= 0.1 * m[j];
    }
    return loss;
  }
};

} // namespace

TEST_F(VariablesTest, EntriesShareThem) {
  TemporaryFile file;
  ASSERT_TRUE(compile(kModule, file.path));
  auto package = runtime::Package::open(file.path);
  ASSERT_TRUE(package.ok());
  auto executable = runtime::Executable::load(std::move(*package));
  ASSERT_TRUE(executable.ok());
  auto session =
      runtime::TrainingSession::create(std::move(*executable), {.threads = 1});
  ASSERT_TRUE(session.ok());

  double x[4][2] = {{1, 2}, {-1, 0.5}, {0.25, 1}, {3, -2}};
  double y[4] = {1, 2, -1, 0.5};
  int64_t shape[] = {4, 2};
  runtime::TensorView batch[] = {
      {x, runtime::DType::f64, shape},
      {y, runtime::DType::f64, std::span(shape).first(1)}};
  Reference reference;
  for (int i = 1; i <= 20; ++i) {
    double loss = reference.step(x, y);
    ASSERT_TRUE((*session)->step(batch).ok());
    EXPECT_EQ((*session)->metrics().step, i);
    EXPECT_NEAR((*session)->metrics().loss, loss, 1e-12 * loss);
  }
  ASSERT_TRUE((*session)->predict(std::span(batch).first(1)).ok());
  auto line = (*session)->prediction(0);
  ASSERT_TRUE(line.ok());
  for (int i = 0; i < 4; ++i)
    EXPECT_NEAR(static_cast<double *>(line->data)[i],
                x[i][0] * reference.w[0] + x[i][1] * reference.w[1], 1e-12);
}
