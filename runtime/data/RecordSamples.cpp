#include "runtime/data/RecordSamples.h"

#include "runtime/data/images/Image.h"
#include "runtime/data/records/RecordSource.h"
#include "runtime/package/Format.h"

#include <algorithm>
#include <charconv>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// What is read for a tensor.
struct Part {
  BatchTensor tensor;
  std::vector<size_t> fields; ///< the first that a record has
};

class RecordSamples final : public SampleSource {
public:
  RecordSamples(std::unique_ptr<RecordSource> records, std::vector<Part> parts)
      : records(std::move(records)), tensors(std::move(parts)) {}

  int64_t sampleCount() const override { return records->recordCount(); }
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override;

private:
  Status readPart(int64_t number, const Part &part,
                  std::span<std::byte> to) const;

  const std::unique_ptr<RecordSource> records;
  const std::vector<Part> tensors;
};

} // namespace

static bool isImage(const BatchTensor &tensor) {
  return tensor.shape.size() == 4 && tensor.dtype == DType::f32 &&
         (tensor.shape[1] == 1 || tensor.shape[1] == 3);
}

static bool isWeight(const BatchTensor &tensor) {
  return tensor.name == format::kSampleWeight;
}

/// Channels first, each a plane.
static void writePlanes(const images::Image &image, int64_t channels,
                        std::span<std::byte> to) {
  auto *planes = reinterpret_cast<float *>(to.data());
  size_t count = to.size() / sizeof(float) / size_t(channels);
  const uint8_t *pixels = image.bytes.data();
  for (int64_t c = 0; c < channels; ++c)
    for (size_t i = 0; i < count; ++i) {
      const uint8_t *pixel = pixels + i * images::Image::kPixelBytes;
      int value = pixel[c];
      if (channels == 1)
        value =
            (pixel[0] * 19595 + pixel[1] * 38470 + pixel[2] * 7471 + 0x8000) >>
            16;
      planes[size_t(c) * count + i] = float(value) / 255;
    }
}

static Status readImage(std::span<const std::byte> file,
                        const BatchTensor &tensor, std::span<std::byte> to) {
  auto size = images::readSize(file);
  if (!size.ok())
    return size.takeStatus();
  if (size->height != tensor.shape[2] || size->width != tensor.shape[3])
    return makeError(Code::BadData, "its image has ", size->height, " rows of ",
                     size->width, " pixels, '", tensor.name, "' ",
                     tensor.shape[2], " of ", tensor.shape[3]);
  thread_local images::Image image;
  if (Status status = images::decode(file, {0, 0, *size}, image); !status.ok())
    return status;
  writePlanes(image, tensor.shape[1], to);
  return Status();
}

/// Whether a type has this number, which becomes the bytes of `to`.
static bool writeInteger(DType dtype, int64_t value, std::span<std::byte> to) {
  const int bits = int(to.size()) * 8;
  bool isSigned = traitsOf(dtype).kind == DTypeKind::Signed;
  // A shift by all bits of a number has no meaning.
  int64_t rest = bits == 64 ? 0 : value >> (isSigned ? bits - 1 : bits);
  if (rest != 0 && !(isSigned && rest == -1))
    return false;
  std::memcpy(to.data(), &value, to.size());
  return isSigned || value >= 0;
}

/// Blanks around a number do not matter.
static Status readNumber(std::span<const std::byte> field,
                         const BatchTensor &tensor, std::span<std::byte> to) {
  std::string_view text(reinterpret_cast<const char *>(field.data()),
                        field.size());
  constexpr std::string_view kBlanks = " \t\r\n";
  text.remove_prefix(std::min(text.find_first_not_of(kBlanks), text.size()));
  text = text.substr(0, text.find_last_not_of(kBlanks) + 1);
  const char *end = text.data() + text.size();
  auto isRead = [&](auto &value) {
    auto [rest, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && rest == end;
  };
  int64_t integer = 0;
  float real = 0;
  bool isReal = tensor.dtype == DType::f32;
  if (isReal ? isRead(real)
             : isRead(integer) && writeInteger(tensor.dtype, integer, to)) {
    if (isReal)
      std::memcpy(to.data(), &real, sizeof(real));
    return Status();
  }
  return makeError(Code::BadData, "'", text.substr(0, 32), "' is no number of ",
                   traitsOf(tensor.dtype).name);
}

Status RecordSamples::readPart(int64_t number, const Part &part,
                               std::span<std::byte> to) const {
  if (isWeight(part.tensor)) {
    constexpr float kOne = 1;
    std::memcpy(to.data(), &kOne, sizeof(kOne));
    return Status();
  }
  auto field = records->findField(number, part.fields);
  if (!field)
    return makeError(Code::BadData, "it has no '",
                     records->fieldNames()[part.fields[0]], "'");
  thread_local std::vector<std::byte> bytes;
  if (Status status = records->read(number, *field, bytes); !status.ok())
    return status;
  return isImage(part.tensor) ? readImage(bytes, part.tensor, to)
                              : readNumber(bytes, part.tensor, to);
}

Status RecordSamples::read(int64_t, int64_t number, SampleParts parts) const {
  for (size_t i = 0; i < parts.size(); ++i)
    if (Status status = readPart(number, tensors[i], parts[i]); !status.ok())
      return makeError(status.code(), records->describe(number), ", sample ",
                       number, ": ", status.message());
  return Status();
}

//===----------------------------------------------------------------------===//
// What a batch has
//===----------------------------------------------------------------------===//

static Status checkTensor(const BatchTensor &tensor) {
  DTypeKind kind = traitsOf(tensor.dtype).kind;
  bool isNumber = kind == DTypeKind::Signed || kind == DTypeKind::Unsigned ||
                  tensor.dtype == DType::f32;
  if (isWeight(tensor) || isImage(tensor) ||
      (isNumber && tensor.shape.size() == 1))
    return Status();
  return makeError(Code::Usage, "records have nothing for '", tensor.name,
                   "', which is ", traitsOf(tensor.dtype).name, " of ",
                   tensor.shape.size(),
                   " dimensions: they have images, f32 of [N, 1 or 3, H, W], "
                   "and numbers, [N]");
}

static std::vector<size_t> findFields(const RecordSource &records,
                                      const BatchTensor &tensor) {
  std::vector<std::string_view> wanted = {tensor.name};
  if (isImage(tensor))
    wanted = {tensor.name, "jpg", "jpeg", "png", "webp", "image"};
  else if (tensor.isTarget)
    wanted = {tensor.name, "cls", "label"};
  std::vector<size_t> fields;
  auto names = records.fieldNames();
  for (std::string_view name : wanted)
    if (auto found = std::ranges::find(names, name); found != names.end())
      fields.push_back(size_t(found - names.begin()));
  return fields;
}

static Result<std::unique_ptr<SampleSource>>
makeSource(Result<std::unique_ptr<RecordSource>> records,
           const std::string &path, std::span<const BatchTensor> tensors) {
  if (!records.ok())
    return records.takeStatus();
  std::vector<Part> parts;
  for (const BatchTensor &tensor : tensors) {
    if (Status status = checkTensor(tensor); !status.ok())
      return status;
    parts.push_back({tensor, findFields(**records, tensor)});
    if (!isWeight(tensor) && parts.back().fields.empty()) {
      std::string names;
      for (const std::string &name : (*records)->fieldNames())
        names += concat(names.empty() ? "'" : ", '", name, "'");
      return makeError(Code::Usage, "'", path, "': no field is for '",
                       tensor.name, "', it has ", names);
    }
  }
  return std::unique_ptr<SampleSource>(
      new RecordSamples(std::move(*records), std::move(parts)));
}

Result<std::unique_ptr<SampleSource>>
runtime::openShardSource(const std::string &paths,
                         std::span<const BatchTensor> tensors) {
  return makeSource(openShards(paths), paths, tensors);
}

Result<std::unique_ptr<SampleSource>>
runtime::openImageSource(const std::string &folder,
                         std::span<const BatchTensor> tensors) {
  return makeSource(openImageFolder(folder), folder, tensors);
}
