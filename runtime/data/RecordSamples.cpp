#include "runtime/data/RecordSamples.h"

#include "runtime/data/images/Colors.h"
#include "runtime/data/images/Transforms.h"
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
  images::Transforms transforms;
};

class RecordSamples final : public SampleSource {
public:
  RecordSamples(std::unique_ptr<RecordSource> records, std::vector<Part> parts,
                uint64_t seed)
      : records(std::move(records)), tensors(std::move(parts)), seed(seed) {}

  int64_t sampleCount() const override { return records->recordCount(); }
  uint64_t keyOf(int64_t number) const override {
    return records->keyOf(number);
  }
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override;

private:
  Status readPart(int64_t number, const Part &part, SplitMix64 draws,
                  std::span<std::byte> to) const;

  const std::unique_ptr<RecordSource> records;
  const std::vector<Part> tensors;
  const uint64_t seed;
};

} // namespace

static bool isImage(const BatchTensor &tensor) {
  return tensor.shape.size() == 4 &&
         (tensor.dtype == DType::f32 || tensor.dtype == DType::u8) &&
         (tensor.shape[1] == 1 || tensor.shape[1] == 3);
}

static images::Size sizeOf(const BatchTensor &tensor) {
  return {int(tensor.shape[3]), int(tensor.shape[2])};
}

static bool isWeight(const BatchTensor &tensor) {
  return tensor.name == format::kSampleWeight;
}

/// A plane of a channel. Pixels are read as words, of which a vector has
/// several.
template <typename T, typename Convert>
static void writePlane(const images::Image &image, int channel, bool isGrey,
                       T *to, Convert convert) {
  const uint8_t *pixels = image.bytes.data();
  for (size_t i = 0; i < image.pixelCount(); ++i) {
    const uint8_t *pixel = pixels + i * images::Image::kPixelBytes;
    uint32_t word = 0;
    std::memcpy(&word, pixel, sizeof(word));
    uint32_t value = word >> (8 * channel) & 255;
    to[i] = convert(int(isGrey ? images::toGrey(pixel) : value));
  }
}

/// Channels first, each a plane.
static void writePlanes(const images::Image &image, const Part &part,
                        std::span<std::byte> to) {
  int channels = int(part.tensor.shape[1]);
  bool isGrey = channels == 1, isBytes = part.tensor.dtype == DType::u8;
  std::span<std::byte> planes = to;
  for (int c = 0; c < channels; ++c) {
    std::byte *plane = planes.data();
    planes = planes.subspan(to.size() / size_t(channels));
    auto *bytes = reinterpret_cast<uint8_t *>(plane);
    auto *numbers = reinterpret_cast<float *>(plane);
    const auto &normalization = part.transforms.normalization();
    if (isBytes) {
      writePlane(image, c, isGrey, bytes,
                 [](int value) { return uint8_t(value); });
    } else if (!normalization) {
      writePlane(image, c, isGrey, numbers,
                 [](int value) { return float(value) / 255; });
    } else {
      float mean = normalization->mean[c],
            deviation = normalization->deviation[c];
      writePlane(image, c, isGrey, numbers, [=](int value) {
        return (float(value) / 255 - mean) / deviation;
      });
    }
  }
}

static Status readImage(std::span<const std::byte> file, const Part &part,
                        SplitMix64 draws, std::span<std::byte> to) {
  thread_local images::Canvas canvas;
  if (Status status = canvas.open(file); !status.ok())
    return status;
  if (Status status = part.transforms.apply(canvas, draws); !status.ok())
    return status;
  images::Size size = canvas.size(), expected = sizeOf(part.tensor);
  if (size != expected)
    return makeError(Code::BadData, "its image has ", size.height, " rows of ",
                     size.width, " pixels, '", part.tensor.name, "' ",
                     expected.height, " of ", expected.width);
  auto image = canvas.draw();
  if (!image.ok())
    return image.takeStatus();
  writePlanes(**image, part, to);
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
                               SplitMix64 draws,
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
  return isImage(part.tensor) ? readImage(bytes, part, draws, to)
                              : readNumber(bytes, part.tensor, to);
}

/// All tensors draw the same, so that one transform moves images and what is
/// drawn over them alike.
Status RecordSamples::read(int64_t epoch, int64_t number,
                           SampleParts parts) const {
  auto draws = SplitMix64::of(seed, uint64_t(epoch), uint64_t(number));
  for (size_t i = 0; i < parts.size(); ++i)
    if (Status status = readPart(number, tensors[i], draws, parts[i]);
        !status.ok())
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
  return makeError(
      Code::Usage, "records have nothing for '", tensor.name, "', which is ",
      traitsOf(tensor.dtype).name, " of ", tensor.shape.size(),
      " dimensions: they have images, f32 or u8 of [N, 1 or 3, H, W], "
      "and numbers, [N]");
}

static std::vector<size_t> findFields(const RecordSource &records,
                                      const BatchTensor &tensor) {
  std::vector<std::string_view> wanted = {tensor.arrayName()};
  if (tensor.field.empty() && isImage(tensor))
    wanted = {tensor.name, "jpg", "jpeg", "png", "webp", "image"};
  else if (tensor.field.empty() && tensor.isTarget)
    wanted = {tensor.name, "cls", "label"};
  std::vector<size_t> fields;
  auto names = records.fieldNames();
  for (std::string_view name : wanted)
    if (auto found = std::ranges::find(names, name); found != names.end())
      fields.push_back(size_t(found - names.begin()));
  return fields;
}

static Status refuseFields(const RecordSource &records, const std::string &path,
                           const BatchTensor &tensor) {
  std::string names;
  for (const std::string &name : records.fieldNames())
    names += concat(names.empty() ? "'" : ", '", name, "'");
  if (!tensor.field.empty())
    return makeError(Code::Usage, "'", path, "': there is no field '",
                     tensor.field, "' for '", tensor.name, "', it has ", names);
  return makeError(Code::Usage, "'", path, "': no field is for '", tensor.name,
                   "', it has ", names);
}

/// What transforms have nothing to do with an image, or give another one.
static Status checkTransforms(const BatchTensor &tensor,
                              const images::Transforms &transforms) {
  if (!isImage(tensor))
    return makeError(Code::Usage, "'", tensor.name,
                     "' has transforms, and is no image");
  if (tensor.dtype == DType::u8 && transforms.normalization())
    return makeError(Code::Usage, "'", tensor.name,
                     "' is normalized, and has bytes");
  images::Size expected = sizeOf(tensor);
  if (auto size = transforms.finalSize(); size && *size != expected)
    return makeError(Code::Usage, "transforms give '", tensor.name, "' ",
                     size->height, " rows of ", size->width, " pixels, it has ",
                     expected.height, " of ", expected.width);
  return Status();
}

static Result<Part> makePart(const RecordSource &records,
                             const std::string &path,
                             const BatchTensor &tensor) {
  if (Status status = checkTensor(tensor); !status.ok())
    return status;
  Part part = {tensor, findFields(records, tensor), {}};
  if (!isWeight(tensor) && part.fields.empty())
    return refuseFields(records, path, tensor);
  auto transforms = images::Transforms::read(tensor.transforms);
  if (!transforms.ok())
    return transforms.takeStatus();
  if (!tensor.transforms.empty())
    if (Status status = checkTransforms(tensor, *transforms); !status.ok())
      return status;
  part.transforms = std::move(*transforms);
  return part;
}

static Result<std::unique_ptr<SampleSource>>
makeSource(Result<std::unique_ptr<RecordSource>> records,
           const std::string &path, std::span<const BatchTensor> tensors,
           uint64_t seed) {
  if (!records.ok())
    return records.takeStatus();
  std::vector<Part> parts;
  for (const BatchTensor &tensor : tensors) {
    auto part = makePart(**records, path, tensor);
    if (!part.ok())
      return part.takeStatus();
    parts.push_back(std::move(*part));
  }
  return std::unique_ptr<SampleSource>(
      new RecordSamples(std::move(*records), std::move(parts), seed));
}

Result<std::unique_ptr<SampleSource>>
runtime::openShardSource(const std::string &paths,
                         std::span<const BatchTensor> tensors, uint64_t seed) {
  return makeSource(openShards(paths), paths, tensors, seed);
}

Result<std::unique_ptr<SampleSource>>
runtime::openImageSource(const std::string &folder,
                         std::span<const BatchTensor> tensors, uint64_t seed) {
  return makeSource(openImageFolder(folder), folder, tensors, seed);
}
