#include "compiler/codegen/cuda/nvvm/Assembler.h"
#include "compiler/codegen/cuda/nvvm/DeviceCode.h"
#include "compiler/codegen/cuda/nvvm/Toolkit.h"
#include "mlir/Parser/Parser.h"
#include "tests/compiler/codegen/cuda/Kernels.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include <cstdlib>

using namespace mlir;
using namespace tcc;
using namespace tcc::cuda;
using testing::HasSubstr;
using testing::Not;

namespace {

using Find = llvm::Expected<std::unique_ptr<Assembler>> (*)();

class AssemblerTest : public testing::TestWithParam<Find> {
protected:
  AssemblerTest() {
    DialectRegistry registry;
    registerDeviceCode(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  /// The kernels as one text.
  std::string emit(const Arch &arch) {
    std::vector<std::string> texts;
    for (const std::string &source :
         {std::string(kExpKernel),
          substitute(kSumKernel, "MARKER", "gpu.barrier"),
          substitute(substitute(kTransposeKernel, "WRITTEN", "gpu.barrier"),
                     "READ", "gpu.barrier")}) {
      auto module = parseSourceString<ModuleOp>(source, &context);
      FailureOr<std::string> ptx = emitPtx(*module, arch);
      EXPECT_TRUE(succeeded(ptx));
      texts.push_back(*ptx);
    }
    return joinPtx(texts, arch);
  }

  MLIRContext context;
};

Arch arch(const char *name) {
  std::string error;
  return *parseArch(name, error);
}

TEST_P(AssemblerTest, kernelsOfOneTextUseRegistersAlone) {
  auto assembler = GetParam()();
  if (!assembler)
    GTEST_SKIP() << "not available: " << toString(assembler.takeError());
  for (const char *name : {"sm_80", "sm_90", "sm_100"}) {
    auto cubin = (*assembler)->assemble(emit(arch(name)), arch(name));
    ASSERT_TRUE(bool(cubin)) << toString(cubin.takeError());
    EXPECT_EQ(std::string(cubin->bytes.data(), 4), "\x7f"
                                                   "ELF");
    ASSERT_EQ(cubin->functions.size(), 3u);
    unsigned sharedBytes = 0;
    for (const FunctionResources &function : cubin->functions) {
      EXPECT_GT(function.registers, 0u) << function.name;
      EXPECT_LE(function.registers, 40u) << function.name;
      EXPECT_EQ(function.spillBytes, 0u) << function.name;
      EXPECT_EQ(function.stackBytes, 0u) << function.name;
      sharedBytes += function.sharedBytes;
    }
    EXPECT_GE(sharedBytes, 16u + 4224u);
  }
}

/// A kernel that applies all functions that are called to f32 and f64.
std::string writeFunctionKernel(const std::string &name) {
  std::string text =
      "gpu.module @kernels {\ngpu.func @" + name + "(%p: !llvm.ptr) kernel {\n";
  int value = 0;
  for (std::string type : {"f32", "f64"}) {
    auto define = [&](const std::string &op, int operands) {
      text += "%" + std::to_string(value + 1) + " = " + op;
      for (int i = 0; i < operands; ++i)
        text += (i ? ", %" : " %") + std::to_string(value);
      ++value;
    };
    text += "%" + std::to_string(value) + " = llvm.load %p : !llvm.ptr -> " +
            type + "\n";
    for (const char *op :
         {"exp",  "expm1", "log",   "log1p", "tanh",  "erf",  "exp2",
          "log2", "sin",   "cos",   "tan",   "asin",  "acos", "atan",
          "sinh", "cosh",  "asinh", "acosh", "atanh", "cbrt"}) {
      define("math." + std::string(op), 1);
      text += " : " + type + "\n";
    }
    for (const char *op : {"math.atan2", "math.powf", "arith.remf"}) {
      define(op, 2);
      text += " : " + type + "\n";
    }
    text += "llvm.store %" + std::to_string(value++) + ", %p : " + type +
            ", !llvm.ptr\n";
  }
  return text + "gpu.return\n}}";
}

TEST_P(AssemblerTest, functionsComeWithTheirTables) {
  auto assembler = GetParam()();
  if (!assembler)
    GTEST_SKIP() << "not available: " << toString(assembler.takeError());
  std::vector<std::string> texts;
  for (const char *name : {"first", "second"}) {
    auto module =
        parseSourceString<ModuleOp>(writeFunctionKernel(name), &context);
    ASSERT_TRUE(module);
    FailureOr<std::string> ptx = emitPtx(*module, arch("sm_80"));
    ASSERT_TRUE(succeeded(ptx));
    EXPECT_THAT(*ptx, Not(HasSubstr(".extern")));
    EXPECT_THAT(*ptx, Not(HasSubstr("\tsqrt.approx")));
    texts.push_back(*ptx);
  }
  auto cubin =
      (*assembler)->assemble(joinPtx(texts, arch("sm_80")), arch("sm_80"));
  ASSERT_TRUE(bool(cubin)) << toString(cubin.takeError());
}

TEST_P(AssemblerTest, whatIsNotPtxIsAnError) {
  auto assembler = GetParam()();
  if (!assembler)
    GTEST_SKIP() << "not available: " << toString(assembler.takeError());
  auto cubin =
      (*assembler)
          ->assemble(".version 7.8\n.target sm_80\nnonsense\n", arch("sm_80"));
  ASSERT_FALSE(bool(cubin));
  EXPECT_THAT(toString(cubin.takeError()),
              HasSubstr("cannot assemble for sm_80"));
}

INSTANTIATE_TEST_SUITE_P(All, AssemblerTest,
                         testing::Values(&Assembler::findPtxas,
                                         &Assembler::findNvJitLink),
                         [](const testing::TestParamInfo<Find> &info) {
                           return info.index == 0 ? "ptxas" : "nvJitLink";
                         });

TEST(ToolkitTest, missingFileSaysWhereItWasLookedFor) {
  setenv("CUDA_HOME", "/nonexistent", /*overwrite=*/1);
  auto path = findToolkitFile("things", {"bin/things", "lib/things"});
  unsetenv("CUDA_HOME");
  ASSERT_FALSE(bool(path));
  EXPECT_THAT(toString(path.takeError()),
              HasSubstr("cannot find things of the CUDA toolkit; looked for "
                        "bin/things, lib/things in /nonexistent, "));
}

TEST(ArchTest, namesAreChecked) {
  std::string error;
  EXPECT_EQ(parseArch("sm_90", error)->number, 90);
  EXPECT_EQ(parseArch("sm_100", error)->getPtxArch().name, "sm_90");
  EXPECT_EQ(parseArch("sm_86", error)->getPtxArch().name, "sm_80");
  for (const char *name : {"", "90", "sm_", "sm_70", "sm_90a", "sm_-90"})
    EXPECT_FALSE(parseArch(name, error)) << name;
  EXPECT_THAT(error, HasSubstr("unknown arch 'sm_-90'"));
}

} // namespace
