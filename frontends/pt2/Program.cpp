#include "frontends/pt2/Program.h"

#include "frontends/pt2/Types.h"

using namespace mlir;

namespace tcc::pt2 {

/// The schema's version that this reads; minor ones only add to it.
constexpr int64_t kSchemaMajor = 8;

void Program::fail(ProblemClass kind, const llvm::Twine &message) {
  problems.add(kind, message.str());
}

// --- The model ---------------------------------------------------------------

static std::string readShort(const Archive &archive, StringRef name) {
  std::string error;
  const Archive::Entry *entry = archive.find(name);
  auto text = entry ? archive.read(*entry, error) : std::nullopt;
  return StringRef(text.value_or("")).trim().str();
}

bool Program::checkFormat() {
  if (readShort(archive, "archive_format") != "pt2")
    fail(ProblemClass::badBytes, "is not an exported program of PyTorch");
  else if (readShort(archive, "archive_version") != "0")
    fail(ProblemClass::unsupported, "is an archive of version '" +
                                        readShort(archive, "archive_version") +
                                        "'; 0 is supported");
  else if (readShort(archive, "byteorder") != "little")
    fail(ProblemClass::unsupported, "is not in little-endian byte order");
  return problems.empty();
}

std::optional<Json> Program::readJson(const std::string &path) {
  std::string error = "is not there";
  const Archive::Entry *entry = archive.find(path);
  auto text = entry ? archive.read(*entry, error) : std::nullopt;
  auto json = text ? parseJson(*text) : std::nullopt;
  if (text && !json)
    error = "is not JSON";
  if (!json)
    fail(ProblemClass::badBytes, "'" + path + "': " + error);
  return json;
}

/// The model is one of several methods or models only in packages made by hand.
bool Program::readModel() {
  SmallVector<std::string> paths;
  for (const Archive::Entry &entry : archive.getEntries())
    if (entry.name.starts_with("models/") && entry.name.ends_with(".json"))
      paths.push_back(entry.name.str());
  if (paths.size() != 1) {
    fail(paths.empty() ? ProblemClass::badBytes : ProblemClass::unsupported,
         "has " + llvm::Twine(paths.size()) + " models, not one");
    return false;
  }
  auto json = readJson(paths.front());
  if (!json)
    return false;
  model = std::move(*json);
  const Json *version = find(model, "schema_version");
  auto major = version ? getInteger(find(*version, "major")) : std::nullopt;
  const Json *module = find(model, "graph_module");
  if (!major || !module || !find(*module, "graph") ||
      !find(*module, "signature")) {
    fail(ProblemClass::badBytes, "'" + paths.front() + "' is not a program");
    return false;
  }
  if (*major == kSchemaMajor)
    return true;
  fail(ProblemClass::unsupported,
       "is of schema version " + llvm::Twine(*major) + "; " +
           llvm::Twine(kSchemaMajor) + " is supported");
  return false;
}

// --- Tensors -----------------------------------------------------------------

void Program::readPlaces(const std::string &folder, StringRef name) {
  std::string path = folder + "/" + name.str();
  if (!archive.find(path))
    return;
  auto json = readJson(path);
  if (!json)
    return;
  configs.push_back(std::move(*json));
  const Json *config = find(configs.back(), "config");
  if (!config || !config->is_object())
    return;
  for (const auto &[key, value] : config->items()) {
    const Json *isPickled = find(value, "use_pickle");
    if (isPickled && *isPickled == true)
      fail(ProblemClass::unsupported,
           "tensor '" + key + "' is stored as a pickle");
    places.try_emplace(key, Place{folder + "/" + getText(value, "path_name"),
                                  find(value, "tensor_meta")});
  }
}

bool Program::readMeta(const Json &meta, Weight &weight, int64_t &offset,
                       SmallVectorImpl<int64_t> &strides) {
  auto readSizes = [&](StringRef key, SmallVectorImpl<int64_t> &sizes) {
    for (const Json &size : getList(find(meta, key))) {
      auto known = getInteger(find(size, "as_int"));
      if (!known)
        return false;
      sizes.push_back(*known);
    }
    return true;
  };
  SmallVector<int64_t> extents;
  const Json *start = find(meta, "storage_offset");
  offset = start ? getInteger(find(*start, "as_int")).value_or(-1) : 0;
  Type type = getElementType(getInteger(find(meta, "dtype")), context);
  bool hasSizes = readSizes("sizes", extents) && readSizes("strides", strides);
  weight.type = type && hasSizes ? makeStaticType(extents, type) : nullptr;
  if (!type)
    fail(ProblemClass::unsupported, "tensor '" + weight.name +
                                        "' has an element type that is not "
                                        "supported");
  else if (!weight.type)
    fail(ProblemClass::badBytes,
         "tensor '" + weight.name + "' has no valid shape");
  return weight.type != nullptr;
}

bool Program::readBytes(const Place &place, Weight &weight) {
  SmallVector<int64_t> strides;
  int64_t offset = 0;
  if (!place.meta || !readMeta(*place.meta, weight, offset, strides))
    return false;
  if (!readsWeights)
    return true;
  std::string error = "'" + place.path + "' is not there";
  const Archive::Entry *entry = archive.find(place.path);
  auto storage = entry ? archive.getStored(*entry, error) : std::nullopt;
  if (storage && takeBytes(weight, *storage, archive.getOwner(), offset,
                           strides, copyBudget))
    return true;
  fail(ProblemClass::badBytes,
       "tensor '" + weight.name + "': " +
           (storage ? "does not fit the bytes that are stored" : error));
  return false;
}

void Program::addTensor(const std::string &argument, const std::string &name,
                        WeightRole role) {
  auto place = places.find(name);
  if (argument.empty() || place == places.end())
    return fail(ProblemClass::badBytes, "tensor '" + name + "' is not stored");
  StoredTensor tensor{argument, {}};
  tensor.weight.name = name;
  tensor.weight.role = role;
  size_t count = problems.get().size();
  if (!readBytes(place->second, tensor.weight)) {
    if (problems.get().size() == count)
      fail(ProblemClass::badBytes, "tensor '" + name + "' is malformed");
    return;
  }
  // Views of one storage lie at other places, or have other strides.
  const Json &meta = *place->second.meta;
  std::string key = place->second.path;
  for (StringRef part : {"storage_offset", "strides"})
    if (const Json *value = find(meta, part))
      key += " " + value->dump();
  auto [first, isNew] = firstNames.try_emplace(
      key, std::make_pair(name, Type(tensor.weight.type)));
  // Tied: one tensor with several names.
  if (!isNew && first->second.second == Type(tensor.weight.type) &&
      first->second.first != name) {
    aliases.push_back({name, first->second.first});
    tensor.weight.name = first->second.first;
  }
  tensors.push_back(std::move(tensor));
}

void Program::readInputSpecs() {
  for (const Json &spec : getList(find(getSignature(), "input_specs"))) {
    auto [kind, value] = getChoice(spec);
    const Json *argument = value ? find(*value, "arg") : nullptr;
    std::string name = argument ? getText(*argument, "name") : "";
    if (kind == "parameter")
      addTensor(name, getText(*value, "parameter_name"), WeightRole::parameter);
    else if (kind == "buffer")
      addTensor(name, getText(*value, "buffer_name"), WeightRole::buffer);
    else if (kind == "tensor_constant")
      addTensor(name, getText(*value, "tensor_constant_name"),
                WeightRole::constant);
    else if (kind != "user_input")
      fail(ProblemClass::unsupported,
           "takes an argument of kind '" + kind + "'");
  }
}

bool Program::read(bool readWeights) {
  readsWeights = readWeights;
  if (!checkFormat() || !readModel())
    return false;
  readPlaces("data/weights", "model_weights_config.json");
  readPlaces("data/constants", "model_constants_config.json");
  if (problems.empty())
    readInputSpecs();
  return problems.empty();
}

} // namespace tcc::pt2
