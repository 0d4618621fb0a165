#include "runtime/train/Manifest.h"

#include "runtime/base/MappedFile.h"

#include <algorithm>
#include <unordered_set>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::ordered_json;

static constexpr char kEvaluation[] = "evaluation", kSpikes[] = "spikes",
                      kData[] = "data";

std::string runtime::formatDigest(const format::Digest &digest) {
  static constexpr char kDigits[] = "0123456789abcdef";
  std::string text;
  for (uint8_t byte : digest.bytes) {
    text += kDigits[byte >> 4];
    text += kDigits[byte & 15];
  }
  return text;
}

//===----------------------------------------------------------------------===//
// Writing
//===----------------------------------------------------------------------===//

static ordered_json describeTensor(const ListedTensor &tensor) {
  ordered_json slices = ordered_json::array();
  for (const StoredSlice &slice : tensor.slices)
    slices.push_back({{"file", slice.file},
                      {"begin", slice.begin},
                      {"count", slice.count},
                      {"offset", slice.offset},
                      {"digest", slice.digest}});
  return {{"name", tensor.name},
          {"dtype", traitsOf(tensor.dtype).name},
          {"shape", tensor.shape},
          {"slices", slices}};
}

/// What is not finite is null.
ordered_json runtime::describe(const EvaluationRecord &record) {
  return {{"step", record.step},
          {"metrics", record.metrics},
          {"best",
           {{"metric", record.best},
            {"value", record.bestValue},
            {"step", record.bestStep}}},
          {"waited", record.waited}};
}

ordered_json runtime::describe(const Records &records) {
  ordered_json document = ordered_json::object();
  if (records.evaluation)
    document[kEvaluation] = describe(*records.evaluation);
  if (records.spikes)
    document[kSpikes] = {{"losses", records.spikes->losses},
                         {"left_out", records.spikes->leftOut}};
  if (records.data)
    document[kData] = {{"order", records.data->order},
                       {"samples", records.data->samples},
                       {"batches", records.data->batches}};
  return document;
}

std::string runtime::printManifest(const Manifest &manifest) {
  ordered_json tensors = ordered_json::array();
  for (const ListedTensor &tensor : manifest.tensors)
    tensors.push_back(describeTensor(tensor));
  ordered_json document = {
      {"schema_version", Manifest::kVersion},
      {"producer", concat("tcc ", TCC_VERSION)},
      {"step", manifest.step},
      {"updates", manifest.updates},
      {"batches", manifest.batches},
      {"program", manifest.program},
      {"recipe", manifest.recipe},
  };
  document.update(describe(manifest.records));
  document["tensors"] = std::move(tensors);
  // A package's text may be no UTF-8.
  return document.dump(/*indent=*/1, ' ', /*ensure_ascii=*/false,
                       ordered_json::error_handler_t::replace) +
         "\n";
}

//===----------------------------------------------------------------------===//
// Reading
//===----------------------------------------------------------------------===//

namespace {

/// Reads keys of one object; the first that is wrong is kept.
class Reader {
public:
  Reader(const ordered_json &object, std::string place, Status &status)
      : object(object), place(std::move(place)), status(status) {
    if (!object.is_object())
      fail(concat(this->place, " is no object"));
  }

  template <typename Integer> void read(const char *key, Integer &to) {
    const ordered_json *value = find(key);
    if (!value)
      return;
    if (!value->is_number_unsigned() || value->get<uint64_t>() > INT64_MAX)
      return fail(concat(key, " of ", place, " is no count"));
    to = static_cast<Integer>(value->get<uint64_t>());
  }
  void read(const char *key, std::string &to) {
    const ordered_json *value = find(key);
    if (value && !value->is_string())
      return fail(concat(key, " of ", place, " is no text"));
    if (value)
      to = value->get<std::string>();
  }
  /// null is NaN.
  void read(const char *key, double &to) {
    const ordered_json *value = find(key);
    if (value && !value->is_number() && !value->is_null())
      return fail(concat(key, " of ", place, " is no number"));
    if (value)
      to = value->is_null() ? NAN : value->get<double>();
  }
  void read(const char *key, DType &to) {
    std::string name;
    read(key, name);
    for (auto value : format::EnumValuesDType())
      if (traitsOf(value).name == name) {
        to = value;
        return;
      }
    fail(concat(place, " has unknown dtype '", name, "'"));
  }
  void read(const char *key, std::vector<int64_t> &to) {
    const ordered_json *array = readArray(key);
    for (size_t i = 0; array && i < array->size(); ++i) {
      const ordered_json &value = (*array)[i];
      if (!value.is_number_unsigned() || value.get<uint64_t>() > INT64_MAX)
        return fail(concat(key, " of ", place, " has what is no count"));
      to.push_back(value.get<int64_t>());
    }
  }
  void read(const char *key, std::vector<double> &to) {
    const ordered_json *array = readArray(key);
    for (size_t i = 0; array && i < array->size(); ++i) {
      if (!(*array)[i].is_number())
        return fail(concat(key, " of ", place, " has what is no number"));
      to.push_back((*array)[i].get<double>());
    }
  }
  const ordered_json *readArray(const char *key) {
    const ordered_json *value = find(key);
    if (!value || value->is_array())
      return value;
    fail(concat(key, " of ", place, " is no list"));
    return nullptr;
  }
  const ordered_json *readObject(const char *key) {
    const ordered_json *value = find(key);
    if (!value || value->is_object())
      return value;
    fail(concat(key, " of ", place, " is no object"));
    return nullptr;
  }
  void fail(std::string_view what) {
    if (status.ok())
      status = makeError(Code::BadData, what);
  }

private:
  const ordered_json *find(const char *key) {
    if (!status.ok())
      return nullptr;
    auto value = object.find(key);
    if (value != object.end())
      return &*value;
    fail(concat(place, " has no ", key));
    return nullptr;
  }

  const ordered_json &object;
  std::string place;
  Status &status;
};

} // namespace

/// Names a file of the checkpoint's own folder.
static bool isFileName(std::string_view name) {
  return !name.empty() && name != "." && name != ".." &&
         name.find_first_of(std::string_view("/\0", 2)) == name.npos;
}

static StoredSlice readSlice(const ordered_json &row, const std::string &place,
                             Status &status) {
  StoredSlice slice = {};
  Reader reader(row, concat("a slice of ", place), status);
  reader.read("file", slice.file);
  reader.read("begin", slice.begin);
  reader.read("count", slice.count);
  reader.read("offset", slice.offset);
  reader.read("digest", slice.digest);
  if (status.ok() && !isFileName(slice.file))
    reader.fail(concat("a slice of ", place, " is in no file of this folder"));
  return slice;
}

/// Whether they follow each other within the tensor.
static bool areInOrder(const ListedTensor &tensor) {
  auto bytes = bytesOf(tensor.dtype, tensor.shape);
  if (!bytes)
    return false;
  uint64_t end = 0, count = *bytes / traitsOf(tensor.dtype).bytes;
  for (const StoredSlice &slice : tensor.slices) {
    if (slice.begin < end || slice.begin > count ||
        slice.count > count - slice.begin)
      return false;
    end = slice.begin + slice.count;
  }
  return true;
}

static ListedTensor readTensor(const ordered_json &row, Status &status) {
  ListedTensor tensor = {};
  Reader reader(row, "a tensor", status);
  reader.read("name", tensor.name);
  reader.read("dtype", tensor.dtype);
  reader.read("shape", tensor.shape);
  const ordered_json *slices = reader.readArray("slices");
  std::string place = concat("tensor '", tensor.name, "'");
  for (size_t i = 0; slices && status.ok() && i < slices->size(); ++i)
    tensor.slices.push_back(readSlice((*slices)[i], place, status));
  if (status.ok() && !areInOrder(tensor))
    reader.fail(concat("the slices of ", place, " are not in its order"));
  return tensor;
}

static Status readTensors(const ordered_json &rows, Manifest &manifest) {
  Status status;
  std::unordered_set<std::string> names;
  for (size_t i = 0; status.ok() && i < rows.size(); ++i) {
    manifest.tensors.push_back(readTensor(rows[i], status));
    if (status.ok() && !names.insert(manifest.tensors.back().name).second)
      status = makeError(Code::BadData, "there are two tensors '",
                         manifest.tensors.back().name, "'");
  }
  return status;
}

static bool isKnown(int64_t version) {
  return version >= Manifest::kOldestVersion && version <= Manifest::kVersion;
}

static EvaluationRecord readEvaluation(const ordered_json &document,
                                       Status &status) {
  EvaluationRecord record;
  Reader reader(document, kEvaluation, status);
  reader.read("step", record.step);
  reader.read("waited", record.waited);
  if (const ordered_json *metrics = reader.readObject("metrics"))
    for (const auto &[name, value] : metrics->items())
      Reader(*metrics, "metrics", status)
          .read(name.c_str(), record.metrics[name]);
  if (const ordered_json *best = reader.readObject("best")) {
    Reader ofBest(*best, "best", status);
    ofBest.read("metric", record.best);
    ofBest.read("value", record.bestValue);
    ofBest.read("step", record.bestStep);
  }
  return record;
}

static SpikeRecord readSpikes(const ordered_json &document, Status &status) {
  SpikeRecord record;
  Reader reader(document, kSpikes, status);
  reader.read("losses", record.losses);
  reader.read("left_out", record.leftOut);
  for (size_t i = 0; i < record.leftOut.size() && status.ok(); ++i)
    if (record.leftOut[i] < 0 ||
        (i > 0 && record.leftOut[i] <= record.leftOut[i - 1]))
      reader.fail("what is left out does not ascend");
  return record;
}

static DataRecord readData(const ordered_json &document, Status &status) {
  DataRecord record;
  Reader reader(document, kData, status);
  reader.read("order", record.order);
  reader.read("samples", record.samples);
  // Older checkpoints say nothing of batches.
  if (status.ok() && document.contains("batches"))
    reader.read("batches", record.batches);
  return record;
}

Result<Records> runtime::readRecords(const ordered_json &document) {
  Status status;
  Records records;
  auto has = [&](const char *key) {
    return status.ok() && document.contains(key);
  };
  if (has(kEvaluation))
    records.evaluation = readEvaluation(document[kEvaluation], status);
  if (has(kSpikes))
    records.spikes = readSpikes(document[kSpikes], status);
  if (has(kData))
    records.data = readData(document[kData], status);
  if (!status.ok())
    return status;
  return records;
}

static Result<Manifest> parse(const ordered_json &document) {
  Status status;
  Manifest manifest;
  Reader reader(document, "it", status);
  reader.read("schema_version", manifest.version);
  if (!status.ok())
    return status;
  if (!isKnown(manifest.version))
    return manifest;
  reader.read("step", manifest.step);
  reader.read("updates", manifest.updates);
  reader.read("batches", manifest.batches);
  reader.read("program", manifest.program);
  if (const ordered_json *recipe = reader.readObject("recipe"))
    for (const auto &[key, value] : recipe->items()) {
      std::string text;
      Reader(*recipe, "recipe", status).read(key.c_str(), text);
      manifest.recipe[key] = text;
    }
  if (status.ok()) {
    auto records = readRecords(document);
    if (!records.ok())
      return records.takeStatus();
    manifest.records = std::move(*records);
  }
  if (manifest.version == Manifest::kOldestVersion)
    reader.read("digest", manifest.digest);
  else if (const ordered_json *tensors = reader.readArray("tensors"))
    status = readTensors(*tensors, manifest);
  if (!status.ok())
    return status;
  return manifest;
}

Result<Manifest> runtime::readManifest(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  const char *text = reinterpret_cast<const char *>(file->bytes().data());
  auto document = ordered_json::parse(text, text + file->bytes().size(),
                                      nullptr, /*allow_exceptions=*/false);
  Result<Manifest> manifest = parse(document);
  if (manifest.ok())
    return manifest;
  Status status = manifest.takeStatus();
  return makeError(Code::BadData, "'", path,
                   "' is no manifest: ", status.message());
}

Status runtime::checkVersion(const Manifest &manifest,
                             const std::string &path) {
  if (isKnown(manifest.version))
    return Status();
  return makeError(Code::BadData, "'", path, "' is of schema version ",
                   manifest.version, ", expected ", Manifest::kOldestVersion,
                   " to ", Manifest::kVersion);
}
