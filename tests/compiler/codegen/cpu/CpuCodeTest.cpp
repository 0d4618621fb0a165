#include "compiler/codegen/cpu/object/ImageLinker.h"
#include "compiler/codegen/cpu/object/ObjectEmitter.h"
#include "mlir/Parser/Parser.h"
#include "runtime/package/Image.h"
#include "llvm/PassInfo.h"
#include "llvm/PassRegistry.h"
#include "llvm/Support/FormatVariadic.h"
#include "llvm/Support/Regex.h"
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
    std::string error;
    return compileFor(getHostCpu(error), source, form);
  }

  FailureOr<SmallVector<char, 0>>
  compileFor(std::optional<Cpu> cpu, llvm::StringRef source, CodeForm form) {
    auto module = parseSourceString<ModuleOp>(source, &context);
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

/// y[i] = x[i] rounded to bf16, z[i] that as a float.
constexpr char kRounding[] = R"(
func.func @k(%buffers: !llvm.ptr, %sizes: !llvm.ptr, %first: i64, %last: i64,
             %scratch: !llvm.ptr) {
  %x = llvm.load %buffers {alignment = 8} : !llvm.ptr -> !llvm.ptr
  %1 = llvm.getelementptr %buffers[1] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %y = llvm.load %1 : !llvm.ptr -> !llvm.ptr
  %2 = llvm.getelementptr %buffers[2] : (!llvm.ptr) -> !llvm.ptr, !llvm.ptr
  %z = llvm.load %2 : !llvm.ptr -> !llvm.ptr
  %from = arith.index_cast %first : i64 to index
  %to = arith.index_cast %last : i64 to index
  %step = arith.constant 1 : index
  scf.for %i = %from to %to step %step {
    %j = arith.index_cast %i : index to i64
    %px = llvm.getelementptr %x[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    %e = llvm.load %px : !llvm.ptr -> f32
    %r = llvm.fptrunc %e : f32 to bf16
    %bits = llvm.bitcast %r : bf16 to i16
    %w = llvm.fpext %r : bf16 to f32
    %py = llvm.getelementptr %y[%j] : (!llvm.ptr, i64) -> !llvm.ptr, i16
    llvm.store %bits, %py : i16, !llvm.ptr
    %pz = llvm.getelementptr %z[%j] : (!llvm.ptr, i64) -> !llvm.ptr, f32
    llvm.store %w, %pz : f32, !llvm.ptr
  }
  return
})";

TEST_F(CpuCodeTest, vectorsAreRoundedByOneInstruction) {
  std::string error;
  auto text =
      compileFor(resolveCpu("znver5", error), kRounding, CodeForm::Assembly);
  ASSERT_TRUE(succeeded(text));
  StringRef assembly(text->data(), text->size());
  EXPECT_FALSE(assembly.contains("call"));
  EXPECT_TRUE(llvm::Regex("vcvtneps2bf16\t.*, %ymm").match(assembly));
}

TEST_F(CpuCodeTest, roundingIsToTheNearestEven) {
  std::string error;
  std::optional<Cpu> cpu = getHostCpu(error);
  if (!cpu || !cpu->hasPairProducts())
    GTEST_SKIP() << "not available: this CPU lacks AVX512-BF16";
  auto object = compile(kRounding);
  ASSERT_TRUE(succeeded(object));
  auto image =
      linkImage(StringRef(object->data(), object->size()), std::string("k"));
  ASSERT_TRUE(bool(image)) << toString(image.takeError());
  auto mapped = runtime::CodeImage::map(std::as_bytes(std::span(image->bytes)));
  ASSERT_TRUE(mapped.ok()) << mapped.takeStatus().message();

  // Bits of an f32 and of the bf16 that it becomes: ties go to even ones,
  // carries reach infinity, NaN stays, and a denormal is a zero of its sign.
  constexpr std::pair<uint32_t, uint16_t> kCases[] = {
      {0x3f808000, 0x3f80}, {0x3f818000, 0x3f82}, {0x3f808001, 0x3f81},
      {0x7f7fffff, 0x7f80}, {0x7f800000, 0x7f80}, {0x7fc00001, 0x7fc0},
      {0x80000001, 0x8000}, {0xc2280000, 0xc228}};
  constexpr int kCount = 43; // vectors, and some after them
  uint32_t x[kCount], z[kCount];
  uint16_t y[kCount];
  for (int i = 0; i < kCount; ++i)
    x[i] = kCases[i % std::size(kCases)].first;
  void *buffers[] = {x, y, z};
  mapped->kernelAt(image->offsets[0])(buffers, nullptr, 0, kCount, nullptr);
  for (int i = 0; i < kCount; ++i) {
    EXPECT_EQ(y[i], kCases[i % std::size(kCases)].second) << i;
    EXPECT_EQ(z[i], uint32_t(y[i]) << 16) << i;
  }
}

/// A tile of 12 rows that start anywhere and two vectors of a panel, two steps
/// at once: 24 sums and 13 pointers.
static std::string makeTile() {
  constexpr int kRows = 12, kVectors = 2, kUnroll = 2;
  std::string text = R"(
func.func @k(%buffers: !llvm.ptr, %sizes: !llvm.ptr, %first: i64, %last: i64,
             %panel: !llvm.ptr) {
  %zero = arith.constant dense<0.0> : vector<16xf32>
  %from = arith.constant 0 : index
  %to = arith.constant 128 : index
  %step = arith.constant 2 : index
)";
  llvm::raw_string_ostream out(text);
  std::string sums, inits, types, next;
  for (int row = 0; row < kRows; ++row) {
    out << llvm::formatv("%a{0} = llvm.getelementptr %buffers[{0}] : "
                         "(!llvm.ptr) -> !llvm.ptr, !llvm.ptr\n"
                         "%p{0} = llvm.load %a{0} : !llvm.ptr -> !llvm.ptr\n",
                         row);
    for (int v = 0; v < kVectors; ++v) {
      int sum = row * kVectors + v;
      inits += llvm::formatv("{0}%s{1}_0 = %zero", sum ? ", " : "", sum);
      sums += llvm::formatv("{0}%s{1}_{2}", sum ? ", " : "", sum, kUnroll);
      types += sum ? ", vector<16xf32>" : "vector<16xf32>";
    }
  }
  int count = kRows * kVectors;
  out << llvm::formatv("%r:{0} = scf.for %i = %from to %to step %step "
                       "iter_args({1}) -> ({2}) {{\n",
                       count, inits, types);
  out << "%k = arith.index_cast %i : index to i64\n"
         "%kb = arith.addi %k, %first : i64\n"
         "%width = arith.constant 32 : i64\n"
         "%at = arith.muli %kb, %width : i64\n";
  for (int u = 0; u < kUnroll; ++u) {
    for (int v = 0; v < kVectors; ++v)
      out << llvm::formatv(
          "%o{0}{1} = arith.constant {2} : i64\n"
          "%q{0}{1} = arith.addi %at, %o{0}{1} : i64\n"
          "%g{0}{1} = llvm.getelementptr %panel[%q{0}{1}] : (!llvm.ptr, i64) "
          "-> !llvm.ptr, f32\n"
          "%b{0}{1} = llvm.load %g{0}{1} {{alignment = 4} : !llvm.ptr -> "
          "vector<16xf32>\n",
          u, v, u * 32 + v * 16);
    out << llvm::formatv("%c{0} = arith.constant {0} : i64\n"
                         "%k{0} = arith.addi %k, %c{0} : i64\n",
                         u);
    for (int row = 0; row < kRows; ++row) {
      out << llvm::formatv(
          "%e{0}_{1} = llvm.getelementptr %p{1}[%k{0}] : (!llvm.ptr, i64) -> "
          "!llvm.ptr, f32\n"
          "%x{0}_{1} = llvm.load %e{0}_{1} : !llvm.ptr -> f32\n"
          "%w{0}_{1} = vector.broadcast %x{0}_{1} : f32 to vector<16xf32>\n",
          u, row);
      for (int v = 0; v < kVectors; ++v)
        out << llvm::formatv(
            "%s{0}_{1} = math.fma %w{2}_{3}, %b{2}{4}, %s{0}_{2} : "
            "vector<16xf32>\n",
            row * kVectors + v, u + 1, u, row, v);
    }
  }
  out << llvm::formatv("scf.yield {0} : {1}\n}\n", sums, types);
  for (int sum = 0; sum < count; ++sum)
    out << llvm::formatv(
        "%z{0} = llvm.getelementptr %panel[{1}] : (!llvm.ptr) -> !llvm.ptr, "
        "f32\n"
        "llvm.store %r#{0}, %z{0} {{alignment = 4} : vector<16xf32>, "
        "!llvm.ptr\n",
        sum, sum * 16);
  return text + "return\n}\n";
}

TEST_F(CpuCodeTest, sumsOfATileStayInRegisters) {
  std::string error;
  auto text = compileFor(resolveCpu("cooperlake", error), makeTile(),
                         CodeForm::Assembly);
  ASSERT_TRUE(succeeded(text));
  SmallVector<StringRef> lines;
  StringRef(text->data(), text->size()).split(lines, '\n');
  int sums = 0, onStack = 0, found = 0;
  for (StringRef line : lines) {
    if (line.starts_with(".LBB"))
      sums = onStack = 0;
    sums += line.contains("vfmadd");
    onStack += line.contains("(%rsp)");
    if (line.trim().starts_with("j") && sums == 48) {
      ++found;
      EXPECT_EQ(onStack, 0);
    }
  }
  EXPECT_EQ(found, 1);
}

/// Those that are left out, by the names that ObjectEmitter.cpp knows.
TEST_F(CpuCodeTest, omittedPassesExist) {
  ASSERT_TRUE(succeeded(compile(kKernel)));
  for (StringRef name :
       {"canon-freeze", "loop-reduce", "x86-domain-reassignment"})
    EXPECT_NE(llvm::PassRegistry::getPassRegistry()->getPassInfo(name), nullptr)
        << name.str();
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
