#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "mlir/Parser/Parser.h"
#include "runtime/package/Image.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace tcc;
using namespace tcc::cpu;

namespace {

/// y[i] = exp(x[i]) * pow(x[i], 1.5), one task an element.
constexpr char kKernel[] = R"(
func.func @k(%buffers: !llvm.ptr, %sizes: !llvm.ptr, %first: i64, %last: i64,
             %scratch: !llvm.ptr) {
  %x = llvm.load %buffers : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %y = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %power = arith.constant 1.5 : f32
  %from = arith.index_cast %first : i64 to index
  %to = arith.index_cast %last : i64 to index
  %step = arith.constant 1 : index
  scf.for %i = %from to %to step %step {
    %j = arith.index_cast %i : index to i64
    %px = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %e = llvm.load %px : !llvm.ptr -> f32
    %a = math.exp %e : f32
    %b = math.powf %e, %power : f32
    %c = arith.mulf %a, %b : f32
    %py = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %c, %py : f32, !llvm.ptr
  }
  return
})";

class CpuCodeTest : public testing::Test {
protected:
  CpuCodeTest() {
    DialectRegistry registry;
    registerCodeEmission(registry);
    context.appendDialectRegistry(registry);
    context.loadAllAvailableDialects();
  }

  FailureOr<SmallVector<char, 0>> compile(llvm::StringRef source,
                                          CodeForm form = CodeForm::Object) {
    auto module = parseSourceString<ModuleOp>(source, &context);
    std::string error;
    std::optional<Cpu> cpu = getHostCpu(error);
    if (!module || !cpu)
      return failure();
    return emitCode(*module, *cpu, cpu->getVectorBytes(), form);
  }

  MLIRContext context;
};

TEST_F(CpuCodeTest, compiledKernelRunsFromTheRuntimesMapping) {
  auto object = compile(kKernel);
  ASSERT_TRUE(succeeded(object));
  StringRef bytes(object->data(), object->size());
  auto image = linkImage(bytes, std::string("k"));
  ASSERT_TRUE(bool(image)) << toString(image.takeError());

  auto mapped = runtime::CodeImage::map(std::as_bytes(std::span(image->bytes)));
  ASSERT_TRUE(mapped.ok()) << mapped.takeStatus().message();
  format::KernelFunction kernel = mapped->kernelAt(image->offsets[0]);
  ASSERT_NE(kernel, nullptr);

  float x[40], y[40];
  for (int i = 0; i < 40; ++i)
    x[i] = 0.25f * i;
  void *buffers[] = {x, y};
  kernel(buffers, nullptr, 0, 40, nullptr);
  for (int i = 0; i < 40; ++i)
    EXPECT_NEAR(y[i], std::exp(x[i]) * std::pow(x[i], 1.5f), 1e-6f * y[i]);
}

TEST_F(CpuCodeTest, functionsOfTheHotPathAreVectorised) {
  auto text = compile(R"(
func.func @k(%x: !llvm.ptr, %y: !llvm.ptr, %first: i64, %last: i64) {
  %from = arith.index_cast %first : i64 to index
  %to = arith.index_cast %last : i64 to index
  %step = arith.constant 1 : index
  scf.for %i = %from to %to step %step {
    %j = arith.index_cast %i : index to i64
    %px = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %e = llvm.load %px : !llvm.ptr -> f32
    %a = math.tanh %e : f32
    %b = math.erf %a : f32
    %c = math.log1p %b : f32
    %py = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %c, %py : f32, !llvm.ptr
  }
  return
})",
                      CodeForm::Assembly);
  ASSERT_TRUE(succeeded(text));
  StringRef assembly(text->data(), text->size());
  EXPECT_FALSE(assembly.contains("call"));
  EXPECT_TRUE(assembly.contains("vdivps"));
}

TEST_F(CpuCodeTest, undefinedFunctionIsAnError) {
  auto object = compile(R"(
func.func private @elsewhere()
func.func @k() {
  call @elsewhere() : () -> ()
  return
})");
  ASSERT_TRUE(succeeded(object));
  StringRef bytes(object->data(), object->size());
  auto image = linkImage(bytes, std::string("k"));
  ASSERT_FALSE(bool(image));
  EXPECT_NE(toString(image.takeError()).find("elsewhere"), std::string::npos);
}

TEST_F(CpuCodeTest, mathOpWithoutFunctionIsAnError) {
  ScopedDiagnosticHandler quiet(&context, [](Diagnostic &) {});
  EXPECT_TRUE(failed(compile(R"(
func.func @k(%x: f16) -> f16 {
  %y = math.exp %x : f16
  return %y : f16
})")));
}

TEST(CpuTest, namesAreResolvedToFeatures) {
  std::string error;
  auto cpu = resolveCpu("x86-64-v3", error);
  ASSERT_TRUE(cpu);
  EXPECT_TRUE(cpu->hasFeature("fma"));
  EXPECT_EQ(cpu->getVectorBytes(), 32);
  EXPECT_EQ(resolveCpu("znver5", error)->getVectorBytes(), 64);
  EXPECT_FALSE(resolveCpu("z80", error));
  EXPECT_EQ(error, "unknown cpu 'z80'");
  EXPECT_FALSE(resolveCpu("x86-64", error));
}

} // namespace
