// Status, packages and programs of the C API.

#include "runtime/api/Handles.h"

#include "runtime/base/Log.h"
#include "runtime/base/Mirror.h"
#include "runtime/executor/Variants.h"
#include "runtime/package/SizeExpr.h"

#include <cstring>
#include <new>

using namespace tcc;
using namespace tcc::runtime;

static_assert(isMirror<DType, tcc_dtype>({{DType::f32, TCC_F32},
                                          {DType::f16, TCC_F16},
                                          {DType::bf16, TCC_BF16},
                                          {DType::f64, TCC_F64},
                                          {DType::i8, TCC_I8},
                                          {DType::i16, TCC_I16},
                                          {DType::i32, TCC_I32},
                                          {DType::i64, TCC_I64},
                                          {DType::u8, TCC_U8},
                                          {DType::u16, TCC_U16},
                                          {DType::u32, TCC_U32},
                                          {DType::u64, TCC_U64},
                                          {DType::boolean, TCC_BOOL}},
                                         DType::MAX));
static_assert(isMirror<Code, tcc_code>({{Code::Ok, TCC_OK},
                                        {Code::Mismatch, TCC_MISMATCH},
                                        {Code::Usage, TCC_USAGE},
                                        {Code::BadData, TCC_BAD_DATA},
                                        {Code::Unsupported, TCC_UNSUPPORTED},
                                        {Code::Io, TCC_IO},
                                        {Code::Numerics, TCC_NUMERICS},
                                        {Code::OutOfMemory, TCC_OUT_OF_MEMORY},
                                        {Code::Device, TCC_DEVICE},
                                        {Code::Peer, TCC_PEER},
                                        {Code::Internal, TCC_INTERNAL}}));
static_assert(
    isMirror<LogLevel, tcc_log_level>({{LogLevel::Debug, TCC_LOG_DEBUG},
                                       {LogLevel::Info, TCC_LOG_INFO},
                                       {LogLevel::Warning, TCC_LOG_WARNING}}));

/// An error for when there is no memory to make one; never freed.
static tcc_status exhaustedStatus() {
  static constinit char text[sizeof(tcc_status_s)] = {};
  return reinterpret_cast<tcc_status>(text);
}

tcc_status tcc_status_create(tcc_code code, const char *message) {
  try {
    return new tcc_status_s{code, message};
  } catch (const std::bad_alloc &) {
    return exhaustedStatus();
  }
}

tcc_code tcc_status_code(tcc_status status) {
  if (!status)
    return TCC_OK;
  return status == exhaustedStatus() ? TCC_OUT_OF_MEMORY : status->code;
}

const char *tcc_status_message(tcc_status status) {
  if (!status)
    return "";
  return status == exhaustedStatus() ? "out of memory"
                                     : status->message.c_str();
}

void tcc_status_free(tcc_status status) {
  if (status != exhaustedStatus())
    delete status;
}

const char *tcc_version(void) { return TCC_VERSION; }

Allocator runtime::toAllocator(const tcc_allocator *allocator) {
  if (!allocator)
    return systemAllocator();
  return {allocator->user, allocator->allocate, allocator->release, nullptr};
}

//===----------------------------------------------------------------------===//
// Packages
//===----------------------------------------------------------------------===//

tcc_status tcc_package_open(const char *path,
                            const tcc_package_options *options,
                            tcc_package **package) {
  return guard([&]() -> Status {
    PackageOptions opened;
    opened.verifyWeights = !readOptions(options).skip_weight_check;
    auto result = Package::open(path, opened);
    if (!result.ok())
      return result.takeStatus();
    *package = new tcc_package{std::move(*result)};
    return Status();
  });
}

void tcc_package_release(tcc_package *package) { delete package; }

static const auto *metadataOf(const tcc_package *package) {
  return package->package->program().metadata();
}

size_t tcc_package_metadata_count(const tcc_package *package) {
  return metadataOf(package) ? metadataOf(package)->size() : 0;
}

const char *tcc_package_metadata_key(const tcc_package *package, size_t index) {
  if (index >= tcc_package_metadata_count(package))
    return nullptr;
  return metadataOf(package)->Get(index)->key()->c_str();
}

const char *tcc_package_metadata_value(const tcc_package *package,
                                       size_t index) {
  if (index >= tcc_package_metadata_count(package))
    return nullptr;
  const auto *value = metadataOf(package)->Get(index)->value();
  return value ? value->c_str() : "";
}

const char *tcc_package_find_metadata(const tcc_package *package,
                                      const char *key) {
  return findMetadata(package->package->program(), key);
}

//===----------------------------------------------------------------------===//
// Programs
//===----------------------------------------------------------------------===//

size_t tcc_dtype_size(tcc_dtype dtype) {
  std::optional<DType> known = toDType(dtype);
  return known ? traitsOf(*known).bytes : 0;
}

const char *tcc_dtype_name(tcc_dtype dtype) {
  std::optional<DType> known = toDType(dtype);
  return known ? traitsOf(*known).name.data() : "unknown";
}

static tcc_dim describeDim(const format::Program &program,
                           const format::SizeExpr &expr) {
  int64_t extent = 0;
  if (readsOnlySlotsBelow(expr, 0) && evaluate(expr, nullptr, extent))
    return {extent, extent, extent, nullptr};
  int64_t slot = slotOf(expr);
  if (slot < 0 || !program.symbols() || slot >= program.symbols()->size())
    return {-1, -1, -1, nullptr};
  const format::Symbol &symbol = *program.symbols()->Get(slot);
  return {-1, symbol.min(), symbol.max(), symbol.name()->c_str()};
}

static tcc_program::Spec describeSpec(const format::Program &program,
                                      const format::TensorSpec &spec) {
  tcc_program::Spec result;
  for (const format::SizeExpr *expr : *spec.shape())
    result.dims.push_back(describeDim(program, *expr));
  result.spec = {spec.name()->c_str(),
                 static_cast<tcc_dtype>(spec.dtype()),
                 result.dims.size(),
                 nullptr,
                 -1,
                 spec.fixed() != nullptr};
  return result;
}

std::vector<tcc_program::Spec> runtime::describeSpecs(
    const format::Program &program,
    const flatbuffers::Vector<flatbuffers::Offset<format::TensorSpec>> &specs) {
  std::vector<tcc_program::Spec> result;
  for (const format::TensorSpec *spec : specs)
    result.push_back(describeSpec(program, *spec));
  for (tcc_program::Spec &spec : result)
    spec.spec.dims = spec.dims.data();
  return result;
}

static tcc_program::Signature describeSignature(const format::Program &program,
                                                const format::Entry &entry) {
  tcc_program::Signature signature = {describeSpecs(program, *entry.inputs()),
                                      describeSpecs(program, *entry.outputs())};
  for (size_t i = 0; entry.states() && i < entry.states()->size(); ++i) {
    const format::StatePair &pair = *entry.states()->Get(i);
    signature.inputs[pair.input()].spec.state = pair.output();
    signature.outputs[pair.output()].spec.state = pair.input();
  }
  return signature;
}

tcc_status tcc_program_create(const tcc_package *package,
                              const tcc_program_options *options,
                              tcc_program **program) {
  return guard([&]() -> Status {
    tcc_program_options given = readOptions(options);
    ExecutableOptions loaded;
    if (given.weights_file)
      loaded.weightsFile = given.weights_file;
    if (given.device)
      loaded.device = given.device;
    if (given.tune_cache)
      loaded.tuneCache = given.tune_cache;
    loaded.threads = given.threads;
    loaded.allocator = toAllocator(given.allocator);
    if (given.log)
      loaded.log = {given.log->user, given.log->write};
    auto executable = Executable::load(package->package, loaded);
    if (!executable.ok())
      return executable.takeStatus();
    auto result = std::make_unique<tcc_program>();
    result->executable = std::move(*executable);
    const format::Program &source = result->executable->program();
    auto variants = listVariants(source, format::EntryKind::main);
    if (variants.empty())
      variants = listVariants(source, format::EntryKind::predict);
    if (variants.empty())
      return makeError(Code::Usage, "package '", package->package->path(),
                       "' has no entry '",
                       format::nameOf(format::EntryKind::main), "'");
    for (const format::Entry *variant : variants)
      result->variants.push_back(describeSignature(source, *variant));
    *program = result.release();
    return Status();
  });
}

void tcc_program_release(tcc_program *program) { delete program; }

size_t tcc_program_input_count(const tcc_program *program) {
  return program->variants[0].inputs.size();
}

size_t tcc_program_output_count(const tcc_program *program) {
  return program->variants[0].outputs.size();
}

const tcc_tensor_spec *tcc_program_input(const tcc_program *program,
                                         size_t index) {
  return tcc_program_variant_input(program, /*variant=*/0, index);
}

const tcc_tensor_spec *tcc_program_output(const tcc_program *program,
                                          size_t index) {
  return tcc_program_variant_output(program, /*variant=*/0, index);
}

size_t tcc_program_variant_count(const tcc_program *program) {
  return program->variants.size();
}

static const tcc_tensor_spec *
specAt(const std::vector<tcc_program::Spec> &specs, size_t index) {
  return index < specs.size() ? &specs[index].spec : nullptr;
}

const tcc_tensor_spec *tcc_program_variant_input(const tcc_program *program,
                                                 size_t variant, size_t index) {
  return variant < program->variants.size()
             ? specAt(program->variants[variant].inputs, index)
             : nullptr;
}

const tcc_tensor_spec *tcc_program_variant_output(const tcc_program *program,
                                                  size_t variant,
                                                  size_t index) {
  return variant < program->variants.size()
             ? specAt(program->variants[variant].outputs, index)
             : nullptr;
}

static ptrdiff_t findSpec(const std::vector<tcc_program::Spec> &specs,
                          const char *name) {
  for (size_t i = 0; i < specs.size(); ++i)
    if (std::strcmp(specs[i].spec.name, name) == 0)
      return i;
  return -1;
}

ptrdiff_t tcc_program_find_input(const tcc_program *program, const char *name) {
  return findSpec(program->variants[0].inputs, name);
}

ptrdiff_t tcc_program_find_output(const tcc_program *program,
                                  const char *name) {
  return findSpec(program->variants[0].outputs, name);
}
