#include "runtime/package/Verify.h"

#include "runtime/base/Alignment.h"
#include "runtime/package/Alignment.h"
#include "runtime/package/BatchTree.h"
#include "runtime/package/DType.h"
#include "runtime/package/Format.h"
#include "runtime/package/Names.h"
#include "runtime/package/VariableOffsets.h"
#include "runtime/package/VerifyEntry.h"
#include "runtime/package/VerifyLibrary.h"
#include "runtime/package/VerifyMetrics.h"

#include <algorithm>
#include <bit>
#include <set>
#include <unordered_set>

using namespace tcc;
using namespace tcc::runtime;

/// FlatBuffers' verifier counts one level for each nested table.
static constexpr size_t kMaxTableDepth = 256;
static constexpr size_t kMaxTables = size_t(1) << 26;

template <typename T>
static size_t sizeOf(const flatbuffers::Vector<T> *vector) {
  return vector ? vector->size() : 0;
}

template <typename... Parts> static Status refuse(const Parts &...parts) {
  return makeError(Code::BadData, parts...);
}

/// Nothing also if the extents cannot be read where they lie.
static std::optional<uint64_t>
bytesOf(DType dtype, const flatbuffers::Vector<int64_t> &shape) {
  if (!isAligned<int64_t>(shape))
    return std::nullopt;
  return bytesOf(dtype, std::span(shape.data(), shape.size()));
}

/// Words of Program.requires that this runtime can do; version 2.0 has none.
static constexpr std::string_view kKnownWords[] = {
    format::kExactWord, format::kDividedWord, format::kKernelCodeWord};

/// A word may come from a damaged file: it is quoted on one line.
static std::string quote(std::string_view word) {
  constexpr size_t kMaxLength = 60;
  std::string text(word.substr(0, kMaxLength));
  std::ranges::replace_if(
      text, [](unsigned char c) { return c < ' ' || c == 127; }, '?');
  return "'" + text + "'";
}

static Status verifyRequirements(const format::Program &program) {
  for (size_t i = 0; i < sizeOf(program.requires_()); ++i)
    if (std::string_view word = program.requires_()->Get(i)->string_view();
        std::ranges::find(kKnownWords, word) == std::end(kKnownWords))
      return refuse("it requires ", quote(word),
                    ", which is unknown to this runtime");
  return Status();
}

static Status verifyExact(const format::Program &program) {
  if (program.exact() == 0 || std::has_single_bit(program.exact()))
    return Status();
  return refuse("an update of ", program.exact(),
                " batches is no power of two of them");
}

static Status verifySymbols(const format::Program &program) {
  if (!program.symbols())
    return Status();
  for (const format::Symbol *symbol : *program.symbols())
    if (symbol->min() < 0 || symbol->min() > symbol->max() ||
        symbol->divisor() < 1)
      return refuse("dimension '", symbol->name()->string_view(),
                    "' has an empty range");
  return Status();
}

static Status verifyWeight(const format::Program &program,
                           const format::ConstTensor &weight,
                           const ProgramLimits &limits) {
  std::string_view name = weight.name()->string_view();
  if (!isDType(weight.dtype()) ||
      bytesOf(weight.dtype(), *weight.shape()) != weight.bytes())
    return refuse("weight '", name, "' has a bad type");
  if (limits.sections && weight.digest() &&
      weight.digest()->size() != sizeof(format::Digest))
    return refuse("weight '", name, "' has a bad digest");
  if (weight.offset() % kTensorAlignment)
    return refuse("weight '", name, "' is not aligned");
  if (limits.weightBytes && weight.digest() &&
      (weight.offset() > *limits.weightBytes ||
       weight.bytes() > *limits.weightBytes - weight.offset()))
    return refuse("weight '", name, "' ends after its section");
  if (!weight.sources())
    return Status();
  for (uint32_t source : *weight.sources())
    if (source >= sizeOf(program.model_tensors()))
      return refuse("weight '", name, "' has an unknown source");
  return Status();
}

static Status verifyModelTensor(const format::Program &program,
                                const format::ModelTensor &tensor) {
  std::string_view name = tensor.name()->string_view();
  std::optional<uint64_t> bytes;
  if (isDType(tensor.dtype()))
    bytes = bytesOf(tensor.dtype(), *tensor.shape());
  if (!bytes)
    return refuse("model tensor '", name, "' has a bad type");
  size_t digest = sizeOf(tensor.structural_digest());
  if (digest != 0 && digest != sizeof(format::Digest))
    return refuse("model tensor '", name, "' has a bad digest");
  if (tensor.const_index() < 0)
    return Status();
  if (static_cast<size_t>(tensor.const_index()) >= sizeOf(program.weights()))
    return refuse("model tensor '", name, "' is held by an unknown weight");
  if (program.weights()->Get(tensor.const_index())->bytes() != bytes)
    return refuse("model tensor '", name, "' differs from its weight in size");
  return Status();
}

static Status verifyVariable(const format::Variable &variable) {
  std::string_view name = variable.name()->string_view();
  if (!isDType(variable.dtype()) ||
      !bytesOf(variable.dtype(), *variable.shape()))
    return refuse("variable '", name, "' has a bad type");
  if (variable.kind() > format::VariableKind::MAX)
    return refuse("variable '", name, "' is of an unknown kind");
  return Status();
}

/// The number of elements; verified.
static uint64_t countOf(const format::Variable &variable) {
  return *bytesOf(variable.dtype(), *variable.shape()) /
         traitsOf(variable.dtype()).bytes;
}

/// A field is one element: a sum or factor f64, all others i64.
static Status verifyField(const format::Variable &variable) {
  using format::StepField;
  if (!variable.field())
    return Status();
  StepField field = *variable.field();
  bool isFloat = field == StepField::loss || field == StepField::count ||
                 field == StepField::loss_scale;
  DType expected = isFloat ? DType::f64 : DType::i64;
  if (field > StepField::MAX || variable.kind() != format::VariableKind::step ||
      variable.dtype() != expected || countOf(variable) != 1 ||
      variable.global_shape() || variable.ranks() > 0)
    return refuse("variable '", variable.name()->string_view(),
                  "' is no field of the step");
  return Status();
}

/// A slice lies in its tensor.
static Status verifySlice(const format::Variable &variable) {
  const auto &shape = *variable.shape();
  const auto *global = variable.global_shape(), *offset = variable.offset();
  if (!global && !offset)
    return Status();
  bool isInside =
      global && offset && isAligned<int64_t>(*global) &&
      isAligned<int64_t>(*offset) && global->size() == shape.size() &&
      offset->size() == shape.size() && bytesOf(variable.dtype(), *global);
  for (size_t axis = 0; isInside && axis < shape.size(); ++axis)
    isInside = offset->Get(axis) >= 0 && global->Get(axis) >= shape[axis] &&
               offset->Get(axis) <= global->Get(axis) - shape[axis];
  return isInside ? Status()
                  : refuse("variable '", variable.name()->string_view(),
                           "' is no part of what it is a slice of");
}

/// Its own bytes, in multiples of the alignment.
static Status verifyRoom(const format::Variable &variable) {
  uint64_t room = variable.room();
  bool isRoom = room >= *bytesOf(variable.dtype(), *variable.shape()) &&
                room % kTensorAlignment == 0;
  return room == 0 || isRoom
             ? Status()
             : refuse("variable '", variable.name()->string_view(),
                      "' has a bad room");
}

/// Pieces follow each other in what ranks have together.
static Status verifyPieces(const format::Variable &variable, uint32_t ranks) {
  if (sizeOf(variable.pieces()) == 0 && variable.ranks() == 0)
    return Status();
  uint64_t end = 0, all = 0;
  bool isGood = variable.ranks() == ranks && ranks > 1 &&
                !variable.global_shape() &&
                !__builtin_mul_overflow(countOf(variable), ranks, &all);
  for (size_t i = 0; isGood && i < sizeOf(variable.pieces()); ++i) {
    const format::Piece &piece = *variable.pieces()->Get(i);
    auto bytes = bytesOf(variable.dtype(), *piece.shape());
    isGood = bytes && piece.begin() >= end && piece.begin() <= all;
    uint64_t count = isGood ? *bytes / traitsOf(variable.dtype()).bytes : 0;
    isGood = isGood && count <= all - piece.begin();
    end = piece.begin() + count;
  }
  return isGood ? Status()
                : refuse("variable '", variable.name()->string_view(),
                         "' does not hold its pieces");
}

/// No two variables or pieces have one name.
static Status addNames(const format::Variable &variable,
                       std::unordered_set<std::string_view> &names) {
  std::vector<std::string_view> own = {variable.name()->string_view()};
  for (size_t i = 0; i < sizeOf(variable.pieces()); ++i)
    own.push_back(variable.pieces()->Get(i)->name()->string_view());
  for (std::string_view name : own)
    if (!names.insert(name).second)
      return refuse("there are two variables '", name, "'");
  return Status();
}

/// A mean in parts begins as its parameter: see TrainingSession::initialize.
static Status verifyMean(const format::Program &program,
                         const format::Piece &piece, DType dtype) {
  auto isFloat = [](DType type) {
    return traitsOf(type).kind == DTypeKind::Float;
  };
  for (const format::Variable *variable : *program.variables())
    if (piece.parameter() && variable->ranks() == 0 &&
        variable->name()->string_view() == piece.parameter()->string_view() &&
        std::ranges::equal(*variable->shape(), *piece.shape()) &&
        isFloat(dtype) && isFloat(variable->dtype()))
      return Status();
  return refuse("'", piece.name()->string_view(),
                "' is the mean of no parameter");
}

static Status verifyMeans(const format::Program &program) {
  for (size_t i = 0; i < sizeOf(program.variables()); ++i) {
    const format::Variable &variable = *program.variables()->Get(i);
    if (variable.kind() != format::VariableKind::ema)
      continue;
    for (size_t k = 0; k < sizeOf(variable.pieces()); ++k)
      if (Status status =
              verifyMean(program, *variable.pieces()->Get(k), variable.dtype());
          !status.ok())
        return status;
  }
  return Status();
}

static Status verifyVariables(const format::Program &program) {
  std::unordered_set<std::string_view> names;
  uint32_t ranks = rankCountOf(program);
  std::set<format::StepField> fields;
  for (size_t i = 0; i < sizeOf(program.variables()); ++i) {
    const format::Variable &variable = *program.variables()->Get(i);
    if (Status status = verifyVariable(variable); !status.ok())
      return status;
    if (Status status = verifyField(variable); !status.ok())
      return status;
    if (Status status = verifySlice(variable); !status.ok())
      return status;
    if (Status status = verifyRoom(variable); !status.ok())
      return status;
    if (Status status = verifyPieces(variable, ranks); !status.ok())
      return status;
    if (Status status = addNames(variable, names); !status.ok())
      return status;
    if (variable.field() && !fields.insert(*variable.field()).second)
      return refuse("two variables are the step's field ",
                    nameOf(*variable.field()));
  }
  return verifyMeans(program);
}

static bool isSettingType(DType dtype) {
  return dtype == DType::f64 || dtype == DType::f32 || dtype == DType::i64;
}

static Status verifySetting(const format::Program &program,
                            const format::Setting &setting) {
  std::string_view key = setting.key()->string_view();
  if (setting.variable() >= sizeOf(program.variables()))
    return refuse("setting '", key, "' has an unknown variable");
  const format::Variable &variable =
      *program.variables()->Get(setting.variable());
  if (!isSettingType(variable.dtype()) ||
      bytesOf(variable.dtype(), *variable.shape()) != setting.initial()->size())
    return refuse("setting '", key, "' has a bad type");
  if (setting.initial()->size() == 0)
    return refuse("setting '", key, "' has no elements");
  const format::Range *range = setting.range();
  bool hasWords = sizeOf(setting.words()) > 0;
  if (range ? !(range->min() <= range->max()) : !hasWords)
    return refuse("setting '", key, "' has no values");
  if (hasWords && countOf(variable) != 1)
    return refuse("setting '", key, "' is a list of words");
  return Status();
}

static Status verifySettings(const format::Program &program) {
  std::unordered_set<std::string_view> keys;
  for (size_t i = 0; i < sizeOf(program.settings()); ++i) {
    const format::Setting &setting = *program.settings()->Get(i);
    if (Status status = verifySetting(program, setting); !status.ok())
      return status;
    if (!keys.insert(setting.key()->string_view()).second)
      return refuse("there are two settings '", setting.key()->string_view(),
                    "'");
  }
  return Status();
}

static Status verifyStoredTensors(const format::Program &program) {
  for (size_t i = 0; i < sizeOf(program.stored_tensors()); ++i) {
    const format::StoredTensor &tensor = *program.stored_tensors()->Get(i);
    if (tensor.variable() >= sizeOf(program.variables()))
      return refuse("stored tensor '", tensor.name()->string_view(),
                    "' has an unknown variable");
    if (tensor.transposed() &&
        program.variables()->Get(tensor.variable())->shape()->size() != 2)
      return refuse("stored tensor '", tensor.name()->string_view(),
                    "' is the transpose of what is no matrix");
  }
  return Status();
}

static Status verifySpikes(const format::Program &program) {
  const format::Spikes *spikes = program.spikes();
  constexpr uint64_t kMost = INT64_MAX;
  if (spikes && !(spikes->z() >= 0 && spikes->rollback_every() > 0 &&
                  spikes->rollback_every() <= kMost))
    return refuse("its spikes are no number of deviations and of updates");
  return Status();
}

/// A part of a line of a tune cache.
static bool isPlan(std::string_view text) {
  auto isControl = [](unsigned char c) { return c < ' ' || c == 127; };
  return text.starts_with('{') && text.ends_with('}') &&
         std::ranges::none_of(text, isControl);
}

static Status verifyKernel(const format::Kernel &kernel,
                           const format::Program &program) {
  std::string_view name = kernel.symbol()->string_view();
  if (kernel.threads() > format::kMaxBlockThreads)
    return refuse("kernel '", name, "' has ", kernel.threads(),
                  " threads in a block");
  for (size_t i = 0; i < sizeOf(kernel.results()); ++i)
    if (!isDType(kernel.results()->Get(i)))
      return refuse("kernel '", name, "' has a result of no known type");
  for (size_t i = 0; i < sizeOf(kernel.alignments()); ++i)
    if (uint8_t alignment = kernel.alignments()->Get(i);
        !std::has_single_bit(alignment))
      return refuse("kernel '", name, "' has a buffer aligned to ",
                    int(alignment), " bytes");
  if (kernel.plan() && !isPlan(kernel.plan()->string_view()))
    return refuse("kernel '", name, "' has no plan in braces");
  return verifyForLibrary(kernel);
}

/// A CPU's code has the kernels of one side, the host's or the device's.
static Status verifyOffsets(const format::Program &program,
                            const format::Variant &variant) {
  std::string_view name = variant.cpu()->string_view();
  std::string_view target = variant.target()->string_view();
  size_t expected = target == "cuda" ? 0 : sizeOf(program.kernels());
  if (sizeOf(variant.kernel_offsets()) != expected)
    return refuse("variant '", name, "' has ", sizeOf(variant.kernel_offsets()),
                  " kernels, not ", expected);
  if (!isAligned<uint64_t>(*variant.kernel_offsets()))
    return refuse("variant '", name, "' has misaligned offsets");
  for (size_t i = 0; i < expected; ++i) {
    const format::Kernel &kernel = *program.kernels()->Get(i);
    bool isThere = variant.kernel_offsets()->Get(i) != format::kNoKernel;
    if (isThere != ((target == "cpu") == (kernel.threads() == 0)))
      return refuse("variant '", name, "' ", isThere ? "has" : "lacks",
                    " kernel '", kernel.symbol()->string_view(), "'");
  }
  return Status();
}

/// Kernels of the device, if it names any.
static Status verifyNamed(const format::Program &program,
                          const format::Variant &variant) {
  if (!variant.kernels())
    return Status();
  std::string_view name = variant.cpu()->string_view();
  if (variant.target()->string_view() != "cuda" ||
      !isAligned<uint32_t>(*variant.kernels()))
    return refuse("variant '", name, "' cannot name kernels");
  for (uint32_t kernel : *variant.kernels())
    if (kernel >= sizeOf(program.kernels()) ||
        program.kernels()->Get(kernel)->threads() == 0)
      return refuse("variant '", name, "' names ", kernel,
                    ", which is no kernel of a device");
  return Status();
}

static Status verifyVariant(const format::Program &program,
                            const format::Variant &variant,
                            const ProgramLimits &limits) {
  if (Status status = verifyOffsets(program, variant); !status.ok())
    return status;
  if (Status status = verifyNamed(program, variant); !status.ok())
    return status;
  if (!limits.sections)
    return Status();
  if (variant.image() >= limits.sections->size() ||
      (*limits.sections)[variant.image()].kind != format::SectionKind::Code)
    return refuse("variant '", variant.cpu()->string_view(),
                  "' has no code section");
  return Status();
}

static Status verifyTables(const format::Program &program,
                           const ProgramLimits &limits) {
  if (Status status = verifyExact(program); !status.ok())
    return status;
  if (Status status = verifySymbols(program); !status.ok())
    return status;
  for (size_t i = 0; i < sizeOf(program.weights()); ++i)
    if (Status status =
            verifyWeight(program, *program.weights()->Get(i), limits);
        !status.ok())
      return status;
  for (size_t i = 0; i < sizeOf(program.model_tensors()); ++i)
    if (Status status =
            verifyModelTensor(program, *program.model_tensors()->Get(i));
        !status.ok())
      return status;
  if (Status status = verifyVariables(program); !status.ok())
    return status;
  if (Status status = verifySettings(program); !status.ok())
    return status;
  if (Status status = verifyStoredTensors(program); !status.ok())
    return status;
  if (Status status = verifySpikes(program); !status.ok())
    return status;
  for (size_t i = 0; i < sizeOf(program.kernels()); ++i)
    if (Status status = verifyKernel(*program.kernels()->Get(i), program);
        !status.ok())
      return status;
  for (const format::Variant *variant : *program.variants())
    if (Status status = verifyVariant(program, *variant, limits); !status.ok())
      return status;
  return Status();
}

/// No two entries are one variant of a kind.
static Status verifyNames(const format::Program &program) {
  std::unordered_set<std::string> names;
  for (const format::Entry *entry : *program.entries()) {
    if (entry->kind() > format::EntryKind::MAX)
      return refuse("an entry is of a kind unknown to this runtime");
    if (!names.insert(nameOf(*entry)).second)
      return refuse("there are two entries '", nameOf(*entry), "'");
  }
  return Status();
}

static bool isAlike(const format::TensorSpec &a, const format::TensorSpec &b) {
  return a.name()->string_view() == b.name()->string_view() &&
         a.dtype() == b.dtype() && a.shape()->size() == b.shape()->size();
}

template <typename Specs> static bool areAlike(const Specs &a, const Specs &b) {
  return std::equal(
      a.begin(), a.end(), b.begin(), b.end(),
      [](auto *one, auto *other) { return isAlike(*one, *other); });
}

/// Variants of a kind differ in the sizes of tensors alone.
static Status verifyVariants(const format::Program &program) {
  for (const format::Entry *entry : *program.entries()) {
    const format::Entry *first = nullptr;
    for (const format::Entry *other : *program.entries())
      if (other->kind() == entry->kind() && other->variant() == 0)
        first = other;
    if (!first || !areAlike(*first->inputs(), *entry->inputs()) ||
        !areAlike(*first->outputs(), *entry->outputs()))
      return refuse("entry '", nameOf(*entry), "' is no variant of an entry '",
                    format::nameOf(entry->kind()), "'");
  }
  return Status();
}

/// Entries but `prepare`, which share variables, run at one place.
static Status verifySpaces(const format::Program &program) {
  const format::Entry *first = nullptr;
  for (const format::Entry *entry : *program.entries()) {
    if (entry->kind() == format::EntryKind::prepare)
      continue;
    if (!first)
      first = entry;
    if (entry->space() != first->space())
      return refuse("entries '", nameOf(*first), "' and '", nameOf(*entry),
                    "' lie in different memory");
  }
  return Status();
}

Status runtime::verifyProgram(std::span<const std::byte> bytes,
                              const ProgramLimits &limits) {
  flatbuffers::Verifier verifier(
      reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size(),
      kMaxTableDepth, kMaxTables);
  // The file identifier stands after the root's offset.
  constexpr size_t kSmallest = 8;
  if (bytes.size() < kSmallest || !format::VerifyProgramBuffer(verifier))
    return refuse("the program section is malformed");
  const format::Program &program = *format::GetProgram(bytes.data());
  if (Status status = verifyRequirements(program); !status.ok())
    return status;
  if (Status status = verifyTables(program, limits); !status.ok())
    return status;
  if (Status status = verifyNames(program); !status.ok())
    return status;
  KernelLaunches launches(sizeOf(program.kernels()));
  for (const format::Entry *entry : *program.entries())
    if (Status status = verifyEntry(program, *entry, launches); !status.ok())
      return status;
  if (Status status = verifyVariants(program); !status.ok())
    return status;
  if (Status status = verifyMetrics(program); !status.ok())
    return status;
  return verifySpaces(program);
}
