#include "tools/tcc-run/TrainSession.h"

#include "runtime/base/Glob.h"
#include "runtime/package/SizeExpr.h"
#include "runtime/train/Checkpoint.h"
#include "tools/cli/CommandLine.h"
#include "tools/tcc-run/Inputs.h"
#include "tools/tcc-run/Session.h"

#include <charconv>
#include <cstring>
#include <limits>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using format::VariableKind;

static constexpr std::string_view kSettingPrefix = "set/";

Result<std::unique_ptr<runtime::TrainingSession>>
tools::openTraining(const RunningOptions &running, const DataOptions &data) {
  auto executable = loadExecutable(running);
  if (!executable.ok())
    return executable.takeStatus();
  if (!(*executable)->findEntry(format::EntryKind::train_step))
    return makeError(Code::Usage, "package '", running.package,
                     "' was not compiled with --train");
  SessionOptions options;
  options.threads = running.threads;
  auto session =
      runtime::TrainingSession::create(std::move(*executable), options);
  if (!session.ok() || data.init.empty())
    return session;
  if (Status status = initializeFrom(**session, data.init); !status.ok())
    return status;
  return session;
}

//===----------------------------------------------------------------------===//
// Settings
//===----------------------------------------------------------------------===//

/// The run-time keys of the recipe.
static std::vector<std::string> listKeys(const Variables &variables) {
  std::vector<std::string> keys;
  for (size_t i = 0; i < variables.size(); ++i) {
    std::string_view name = variables.describe(i).name()->string_view();
    if (name.starts_with(kSettingPrefix))
      keys.emplace_back(name.substr(kSettingPrefix.size()));
  }
  return keys;
}

/// The variables of a key, or of all keys that it is a pattern for.
static std::vector<size_t> findSettings(const Variables &variables,
                                        const std::string &key) {
  auto index = variables.find(concat(kSettingPrefix, key));
  if (!index && key == "seed")
    index = variables.find("step/seed");
  if (index)
    return {*index};
  std::vector<size_t> found;
  std::string pattern = concat(kSettingPrefix, key);
  for (size_t i = 0; i < variables.size(); ++i)
    if (matchesGlob(pattern, variables.describe(i).name()->string_view()))
      found.push_back(i);
  return found;
}

/// The numbers that a setting may have; NaN is in none.
struct Interval {
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool opensAtMin = false, opensAtMax = false;

  bool contains(double value) const {
    return (opensAtMin ? value > min : value >= min) &&
           (opensAtMax ? value < max : value <= max);
  }
};

/// "[MIN,MAX]", or round brackets at open ends. Words are no interval.
static std::optional<Interval> parseInterval(std::string_view text) {
  size_t comma = text.find(',');
  if (comma == std::string_view::npos || text.size() < 5 ||
      !std::strchr("[(", text.front()) || !std::strchr("])", text.back()))
    return std::nullopt;
  Interval interval;
  auto read = [](std::string_view number, double &to) {
    const char *end = number.data() + number.size();
    return std::from_chars(number.data(), end, to).ptr == end;
  };
  if (!read(text.substr(1, comma - 1), interval.min) ||
      !read(text.substr(comma + 1, text.size() - comma - 2), interval.max))
    return std::nullopt;
  interval.opensAtMin = text.front() == '(';
  interval.opensAtMax = text.back() == ')';
  return interval;
}

static Status refuseKey(const std::string &key, const Variables &variables) {
  std::vector<std::string> keys = listKeys(variables);
  std::string nearest = nearestWord(key, keys), known;
  for (const std::string &name : keys)
    known += concat(known.empty() ? "" : ", ", name);
  return makeError(Code::Usage, "--set: '", key,
                   "' is no setting that changes at run time",
                   nearest.empty() ? concat("; these do: ", known)
                                   : concat(", did you mean '", nearest, "'?"));
}

template <typename T>
static bool storeNumber(std::string_view text, const Interval &interval,
                        std::span<std::byte> bytes) {
  T value = 0;
  const char *end = text.data() + text.size();
  auto [rest, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || rest != end || bytes.size() != sizeof(value) ||
      !interval.contains(double(value)))
    return false;
  std::memcpy(bytes.data(), &value, sizeof(value));
  return true;
}

static bool storeElement(DType dtype, std::string_view text,
                         const Interval &interval, std::span<std::byte> bytes) {
  switch (dtype) {
  case DType::f64:
    return storeNumber<double>(text, interval, bytes);
  case DType::f32:
    return storeNumber<float>(text, interval, bytes);
  case DType::i64:
    return storeNumber<int64_t>(text, interval, bytes);
  default:
    return false;
  }
}

/// Stores the position of `word` among `words`.
static bool storeWord(std::string_view words, std::string_view word,
                      std::span<std::byte> bytes) {
  for (int64_t position = 0; !words.empty(); ++position) {
    std::string_view next = words.substr(0, words.find(' '));
    if (next == word && bytes.size() == sizeof(position)) {
      std::memcpy(bytes.data(), &position, sizeof(position));
      return true;
    }
    words.remove_prefix(std::min(words.size(), next.size() + 1));
  }
  return false;
}

/// False unless `text` has a number in the interval for each element.
static bool storeList(DType dtype, std::string_view text,
                      const Interval &interval, std::span<std::byte> bytes) {
  size_t step = traitsOf(dtype).bytes;
  for (size_t at = 0; at < bytes.size(); at += step) {
    std::string_view element = text.substr(0, text.find(','));
    if (!storeElement(dtype, element, interval, bytes.subspan(at, step)))
      return false;
    text.remove_prefix(std::min(text.size(), element.size() + 1));
  }
  return text.empty();
}

namespace {

/// What a setting may be: words by their positions, or numbers of an interval,
/// where a word may stand for 0.
struct Values {
  std::string_view words, numbers;
  std::optional<Interval> interval;
};

} // namespace

/// The values stand in the place of a setting's owner.
static Values getValues(const format::Variable &variable) {
  std::string_view text;
  if (variable.kind() == VariableKind::setting && variable.owner())
    text = variable.owner()->string_view();
  if (text.empty())
    return {"", "", Interval()};
  size_t space = text.rfind(' ');
  std::string_view last = text.substr(space + 1);
  std::optional<Interval> interval = parseInterval(last);
  if (!interval)
    return {text, "", std::nullopt};
  return {space == text.npos ? "" : text.substr(0, space), last, interval};
}

static std::string describeValues(const format::Variable &variable,
                                  size_t count) {
  Values values = getValues(variable);
  if (!values.interval)
    return concat("one of: ", values.words);
  std::string_view type = traitsOf(variable.dtype()).name;
  return concat(count == 1 ? concat("a number (", type, ")")
                           : concat(count, " numbers (", type,
                                    ") with commas between them"),
                values.numbers.empty() ? "" : concat(" in ", values.numbers),
                values.words.empty() ? "" : concat(", or ", values.words));
}

static Status store(Variables &variables, size_t index, std::string_view text,
                    const std::string &setting) {
  const format::Variable &variable = variables.describe(index);
  std::vector<std::byte> bytes(variables.byteCount(index));
  Values values = getValues(variable);
  bool isZero = values.interval && !text.empty() && text == values.words;
  bool isStored =
      isZero || (values.interval ? storeList(variable.dtype(), text,
                                             *values.interval, bytes)
                                 : storeWord(values.words, text, bytes));
  if (!isStored)
    return makeError(
        Code::Usage, "--set '", setting, "': expected ",
        describeValues(variable,
                       bytes.size() / traitsOf(variable.dtype()).bytes));
  return variables.write(index, bytes);
}

Status tools::applySetting(TrainingSession &session,
                           const std::string &setting) {
  size_t at = setting.find('=');
  if (at == std::string::npos || at == 0)
    return makeError(Code::Usage, "--set '", setting, "', expected KEY=VALUE");
  std::string key = setting.substr(0, at);
  std::vector<size_t> found = findSettings(session.variables(), key);
  if (found.empty())
    return refuseKey(key, session.variables());
  for (size_t index : found)
    if (Status status =
            store(session.variables(), index,
                  std::string_view(setting).substr(at + 1), setting);
        !status.ok())
      return status;
  return Status();
}

//===----------------------------------------------------------------------===//
// Data
//===----------------------------------------------------------------------===//

Result<std::vector<int64_t>>
tools::staticShape(const format::TensorSpec &input) {
  std::vector<int64_t> shape;
  for (const format::SizeExpr *dim : *input.shape())
    if (!readsOnlySlotsBelow(*dim, 0) ||
        !evaluate(*dim, nullptr, shape.emplace_back()))
      return makeError(Code::Usage, "input '", input.name()->string_view(),
                       "' has no static shape: compile with --dim");
  return shape;
}

Result<RandomBatch> RandomBatch::make(const format::Entry &entry) {
  RandomBatch batch;
  for (const format::TensorSpec *input : *entry.inputs()) {
    auto shape = staticShape(*input);
    if (!shape.ok())
      return shape.takeStatus();
    auto tensor = Tensor::allocate(input->dtype(), std::move(*shape));
    if (!tensor.ok())
      return tensor.takeStatus();
    fillRandom(*tensor, /*seed=*/0, batch.tensors.size(), *input);
    batch.tensors.push_back(std::move(*tensor));
  }
  for (const Tensor &tensor : batch.tensors)
    batch.tensorViews.push_back(
        {tensor.data.data(), tensor.dtype, tensor.shape});
  return batch;
}

int64_t RandomBatch::size() const {
  bool hasSamples = !tensors.empty() && !tensors.front().shape.empty();
  return hasSamples ? tensors.front().shape.front() : 1;
}

/// The inputs of an entry point as tensors of a batch.
static Result<std::vector<BatchTensor>>
describeBatch(const format::Entry &entry) {
  std::vector<BatchTensor> tensors;
  for (const format::TensorSpec *input : *entry.inputs()) {
    auto shape = staticShape(*input);
    if (!shape.ok())
      return shape.takeStatus();
    BatchTensor tensor = {input->name()->str(), input->dtype(),
                          std::move(*shape)};
    if (tensor.shape.empty() ||
        (!tensors.empty() && tensor.shape[0] != tensors[0].shape[0]))
      return makeError(Code::Usage, "input '", tensor.name, "' is ",
                       formatShape(tensor.shape),
                       ": samples come first, as many as the batch has");
    tensors.push_back(std::move(tensor));
  }
  return tensors;
}

Batches::Batches(BatchReader reader) : batches(std::move(reader)) {
  for (const Tensor &tensor : batches.tensors())
    tensorViews.push_back({tensor.data.data(), tensor.dtype, tensor.shape});
}

Result<Batches> Batches::open(const runtime::TrainingSession &session,
                              format::EntryKind kind, const std::string &spec,
                              uint64_t seed, bool shuffles) {
  const format::Entry *entry = session.executable().findEntry(kind);
  if (!entry)
    return makeError(Code::Usage, "the package has no entry '",
                     format::nameOf(kind), "'");
  auto tensors = describeBatch(*entry);
  if (!tensors.ok())
    return tensors.takeStatus();
  auto source = openBatches(spec, *tensors);
  if (!source.ok())
    return source.takeStatus();
  SampleOrder order((*source)->sampleCount(), seed, shuffles);
  auto reader = BatchReader::create(std::move(*source), *tensors, order);
  if (!reader.ok())
    return reader.takeStatus();
  return Batches(std::move(*reader));
}
