#include "runtime/package/Safetensors.h"

#include "runtime/base/OutputFile.h"

#include <nlohmann/json.hpp>

#include <cstring>

using namespace tcc;
using namespace tcc::runtime;
using nlohmann::json;

/// The format's own bound on the header.
static constexpr uint64_t kMaxHeaderBytes = 100'000'000;

template <typename... Parts>
static Status refuse(const std::string &path, const Parts &...parts) {
  return makeError(Code::BadData, "'", path, "': ", parts...);
}

/// Reads {"dtype": "F32", "shape": [2, 3], "data_offsets": [0, 24]}.
static Status parseTensor(const std::string &path, const json &value,
                          std::span<const std::byte> data,
                          StoredTensor &tensor) {
  if (!value.is_object() || !value.contains("dtype") ||
      !value.contains("shape") || !value.contains("data_offsets"))
    return refuse(path, "tensor '", tensor.name, "' is incomplete");
  const json &dtype = value["dtype"], &shape = value["shape"];
  const json &offsets = value["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() ||
      offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned())
    return refuse(path, "tensor '", tensor.name, "' is malformed");
  auto known = dtypeOfSafetensors(dtype.get_ref<const std::string &>());
  if (!known)
    return refuse(path, "tensor '", tensor.name, "' has unknown dtype '",
                  dtype.get_ref<const std::string &>(), "'");
  tensor.dtype = *known;
  for (const json &dim : shape)
    tensor.shape.push_back(dim.is_number_unsigned() ? dim.get<int64_t>() : -1);
  std::optional<uint64_t> bytes = bytesOf(*known, tensor.shape);
  if (!bytes)
    return refuse(path, "tensor '", tensor.name, "' has a bad shape");
  uint64_t begin = offsets[0].get<uint64_t>(), end = offsets[1].get<uint64_t>();
  if (begin > end || end > data.size() || end - begin != *bytes)
    return refuse(path, "tensor '", tensor.name, "' has bad offsets");
  tensor.bytes = data.subspan(begin, *bytes);
  return Status();
}

Result<SafetensorsFile> SafetensorsFile::open(const std::string &path) {
  Result<MappedFile> mapped = MappedFile::open(path);
  if (!mapped.ok())
    return mapped.takeStatus();
  SafetensorsFile result;
  result.file = std::move(*mapped);
  std::span<const std::byte> bytes = result.file.bytes();
  uint64_t headerBytes = 0;
  if (bytes.size() < sizeof(headerBytes))
    return refuse(path, "not a safetensors file: ", bytes.size(), " bytes");
  std::memcpy(&headerBytes, bytes.data(), sizeof(headerBytes));
  bytes = bytes.subspan(sizeof(headerBytes));
  if (headerBytes > bytes.size() || headerBytes > kMaxHeaderBytes)
    return refuse(path, "not a safetensors file: header of ", headerBytes,
                  " bytes");
  const char *text = reinterpret_cast<const char *>(bytes.data());
  json header = json::parse(text, text + headerBytes, nullptr, false);
  if (!header.is_object())
    return refuse(path, "the header is not a JSON object");
  for (const auto &[name, value] : header.items()) {
    if (name == "__metadata__")
      continue;
    StoredTensor tensor;
    tensor.name = name;
    if (Status status =
            parseTensor(path, value, bytes.subspan(headerBytes), tensor);
        !status.ok())
      return status;
    result.entries.push_back(std::move(tensor));
  }
  return result;
}

/// "NAME":{...} of a tensor whose bytes begin at `begin` of the data.
static std::string formatEntry(const StoredTensor &tensor, uint64_t begin) {
  uint64_t end = begin + *bytesOf(tensor.dtype, tensor.shape);
  nlohmann::ordered_json entry = {{"dtype", traitsOf(tensor.dtype).safetensors},
                                  {"shape", tensor.shape},
                                  {"data_offsets", {begin, end}}};
  return concat(json(tensor.name).dump(), ":", entry.dump());
}

/// How long a header with so many bytes of JSON is: filled up to a block.
static uint64_t sizeOfHeader(uint64_t jsonBytes) {
  constexpr uint64_t kBlock = 64;
  uint64_t bytes = sizeof(bytes) + jsonBytes;
  return (bytes + kBlock - 1) / kBlock * kBlock;
}

/// What comes before the data: its length, and JSON filled up with spaces.
static std::string formatHeader(std::span<const StoredTensor> tensors) {
  std::string json = "{";
  uint64_t end = 0;
  for (const StoredTensor &tensor : tensors) {
    json += concat(json.size() > 1 ? "," : "", formatEntry(tensor, end));
    end += *bytesOf(tensor.dtype, tensor.shape);
  }
  json += "}";
  uint64_t bytes = sizeOfHeader(json.size()) - sizeof(bytes);
  json.resize(bytes, ' ');
  return std::string(reinterpret_cast<const char *>(&bytes), sizeof(bytes)) +
         json;
}

std::vector<size_t>
runtime::divideIntoFiles(std::span<const StoredTensor> tensors,
                         uint64_t mostBytes) {
  std::vector<size_t> counts;
  uint64_t jsonBytes = 0, dataBytes = 0;
  for (const StoredTensor &tensor : tensors) {
    uint64_t bytes = *bytesOf(tensor.dtype, tensor.shape);
    // With the bracket or comma before it, and the last bracket.
    uint64_t longer = jsonBytes + formatEntry(tensor, dataBytes).size() + 1;
    bool hasRoom = sizeOfHeader(longer + 1) + dataBytes + bytes <= mostBytes;
    if (counts.empty() || !hasRoom) {
      counts.push_back(0);
      longer = formatEntry(tensor, 0).size() + 1;
      dataBytes = 0;
    }
    ++counts.back();
    jsonBytes = longer;
    dataBytes += bytes;
  }
  return counts;
}

std::vector<uint64_t>
runtime::findOffsets(std::span<const StoredTensor> tensors) {
  std::vector<uint64_t> offsets = {formatHeader(tensors).size()};
  for (const StoredTensor &tensor : tensors)
    offsets.push_back(offsets.back() + *bytesOf(tensor.dtype, tensor.shape));
  return offsets;
}

Status runtime::writeSafetensors(const std::string &path,
                                 std::span<const StoredTensor> tensors) {
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  std::string header = formatHeader(tensors);
  uint64_t bytes = header.size();
  for (const StoredTensor &tensor : tensors)
    bytes += tensor.bytes.size();
  file->reserve(bytes);
  file->write(header);
  for (const StoredTensor &tensor : tensors)
    file->write(tensor.bytes);
  return file->commit();
}
