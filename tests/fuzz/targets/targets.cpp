//===- targets.cpp - What libFuzzer calls ---------------------------------===//
//
// import-fuzz --target=NAME FOLDER|FILE...
//
// Readers of archives and of plugins' texts on bytes that nobody checked.
// Without libFuzzer the program runs the files given (replay.cpp). An import
// must end in a module that verifies, or in a problem that is the file's or the
// options' fault.
//
//===----------------------------------------------------------------------===//

#include "frontends/Archive.h"
#include "frontends/Frontend.h"
#include "frontends/Importers.h"
#include "mlir/IR/Verifier.h"
#include "tests/fuzz/targets/ZipFile.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using llvm::StringRef;

/// Prints what was expected and stops, which is what a fuzzer looks for.
static void require(bool holds, const char *what) {
  if (holds)
    return;
  llvm::errs() << "import-fuzz: expected " << what << '\n';
  abort();
}

/// A context keeps what was made in it.
static MLIRContext &getContext() {
  constexpr int kRuns = 256;
  static std::unique_ptr<MLIRContext> context;
  static int runs = 0;
  if (runs++ % kRuns == 0) {
    context = std::make_unique<MLIRContext>(MLIRContext::Threading::DISABLED);
    context->getDiagEngine().registerHandler([](Diagnostic &) {});
  }
  return *context;
}

static void import(const tcc::MappedFile &file,
                   const tcc::plugin::Operators &operators = {}) {
  tcc::Problems problems("model");
  tcc::ImportOptions options;
  options.inputShapes = {{"x", {2, 3}}};
  auto model = tcc::importModel(file, "model", options, operators,
                                &getContext(), problems);
  if (succeeded(model))
    return require(succeeded(verify(*model->module)), "a module that verifies");
  int code = problems.getExitCode();
  require(code >= 2 && code <= 4, "a problem of the file or the options");
}

// --- Targets -----------------------------------------------------------------

/// A zip file: its directory and entries, then what is in them.
static void runArchive(StringRef bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  tcc::MappedFile file{owner, {owner->data(), owner->size()}};
  std::string error;
  auto archive = tcc::Archive::open(file, error);
  require(archive || !error.empty(), "a reason");
  for (const auto &entry :
       archive ? archive->getEntries() : ArrayRef<tcc::Archive::Entry>()) {
    auto text = archive->read(entry, error);
    auto stored = archive->getStored(entry, error);
    require(!text || text->size() == entry.zip.size, "as much as there is");
    require(!stored || stored->size() == entry.zip.size, "as much as there is");
  }
  if (archive)
    import(file);
}

constexpr StringRef kHead = "class Net(Module):\n";
constexpr StringRef kForward =
    "  def forward(self: __torch__.nets.Net,\n    x: Tensor) -> Tensor:\n"
    "    return torch.add(x, (self).weight)\n";
/// Net with {'training': False, 'n': 3, 'weight': 2 by 3 floats}
constexpr char kNet[] =
    "c__torch__.nets\nNet\n)\x81}(X\x08\0\0\0training\x89X\x01\0\0\0nK\x03"
    "X\x06\0\0\0weightctorch._utils\n_rebuild_tensor_v2\n((X\x07\0\0\0storage"
    "ctorch\nFloatStorage\nX\x01\0\0\0"
    "0X\x03\0\0\0cpuK\x06tQK\0"
    "K\x02K\x03\x86K\x03K\x01\x86\x89NtRub.";

static void importScript(StringRef data, StringRef code) {
  import(tcc::makeZip({{"data.pkl", data.str()},
                       {"constants.pkl", ")."},
                       {"version", "3"},
                       {"data/0", std::string(24, '\0')},
                       {"code/__torch__/nets.py", code.str()}}));
}

/// The pickle of a module.
static void runPickle(StringRef text) {
  importScript(text, (kHead + kForward).str());
}

/// The code of a module.
static void runSource(StringRef text) {
  importScript(StringRef(kNet, sizeof kNet - 1), text);
}

/// The JSON of a program and, after a zero byte, that of its weights.
static void runProgram(StringRef text) {
  auto [model, weights] = text.split('\0');
  import(
      tcc::makeZip({{"archive_format", "pt2"},
                    {"archive_version", "0"},
                    {"byteorder", "little"},
                    {"models/model.json", model.str()},
                    {"data/weights/model_weights_config.json", weights.str()},
                    {"data/weights/w", std::string(64, '\0')}}));
}

/// The texts of an operator of a plugin, each ended by a zero byte; its
/// examples are imported.
static void runPlugin(StringRef bytes) {
  std::string text = bytes.str();
  StringRef rest = text;
  auto next = [&]() -> const char * {
    StringRef part = rest.split('\0').first; // ends with a zero
    rest = rest.drop_front(std::min(part.size() + 1, rest.size()));
    return part.empty() ? nullptr : part.data();
  };
  tcc_op_v1 op = {};
  op.bytes_of_this = sizeof(op);
  op.since = 1;
  for (auto field : {&tcc_op_v1::schema, &tcc_op_v1::checks, &tcc_op_v1::shapes,
                     &tcc_op_v1::body, &tcc_op_v1::gradient, &tcc_op_v1::flops,
                     &tcc_op_v1::examples})
    op.*field = next();
  static constexpr char kObject[] = "object";
  tcc_op_code_v1 code = {sizeof(code), TCC_OP_OBJECT, "x86-64-v3", kObject,
                         kObject + sizeof(kObject)};
  tcc_op_kernel_v1 kernel = {};
  kernel.bytes_of_this = sizeof(kernel);
  kernel.target = TCC_OP_CPU;
  kernel.codes = &code;
  kernel.code_count = 1;
  for (auto field : {&tcc_op_kernel_v1::types, &tcc_op_kernel_v1::symbol,
                     &tcc_op_kernel_v1::sizes, &tcc_op_kernel_v1::tasks,
                     &tcc_op_kernel_v1::scratch})
    kernel.*field = next();
  op.kernels = &kernel;
  op.kernel_count = kernel.types != nullptr;
  tcc_plugin_v1 plugin = {TCC_OP_ABI, sizeof(plugin), "fuzz", "1", &op, 1};
  tcc::plugin::Operators operators;
  tcc::Problems problems("model");
  operators.add("p.so", plugin, problems);
  if (!problems.empty())
    return require(problems.getExitCode() == 3, "bad data");
  for (const auto &example : tcc::plugin::readExamples(operators).examples)
    for (const std::string &model : {example.model, example.wideModel}) {
      auto owner = std::make_shared<std::string>(model);
      import({owner, {owner->data(), owner->size()}}, operators);
    }
}

static void (*target)(StringRef) = nullptr;

extern "C" int LLVMFuzzerInitialize(int *argc, char ***argv) {
  struct {
    StringRef name;
    void (*run)(StringRef);
  } targets[] = {{"archive", runArchive},
                 {"pickle", runPickle},
                 {"source", runSource},
                 {"program", runProgram},
                 {"plugin", runPlugin}};
  for (int i = 1; i < *argc; ++i)
    for (const auto &[name, run] : targets)
      if (StringRef((*argv)[i]) == ("--target=" + name).str())
        target = run;
  require(target, "--target=archive, pickle, source, program or plugin");
  return 0;
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
  target(StringRef(reinterpret_cast<const char *>(data), size));
  return 0;
}
