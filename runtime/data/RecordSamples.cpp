#include "runtime/data/RecordSamples.h"

#include "runtime/data/ImageAxes.h"
#include "runtime/data/images/Colors.h"
#include "runtime/data/images/ImageCache.h"
#include "runtime/data/images/Transforms.h"
#include "runtime/data/records/Numbers.h"

#include <algorithm>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

namespace {

/// What is read for a tensor.
struct Part {
  BatchTensor tensor;
  /// One after the other; of each the first that a record has.
  std::vector<std::vector<size_t>> fields;
  images::Transforms transforms;
  NumberTransforms numbers;
  int64_t passed = 0;         ///< numbers at the beginning that it leaves out
  std::optional<size_t> mask; ///< of which tensor's numbers it is one
  bool isImage = false;       ///< else numbers
  uint32_t owner = 0;         ///< of images in the cache

  /// Whether fields are read for it.
  bool isRead() const { return !mask && !tensor.isWeight(); }
};

/// What is read of one sample for a tensor.
struct Reading {
  size_t first, count;                       ///< of the fields that are wanted
  std::shared_ptr<const images::Image> kept; ///< where the cache has it
};

/// What is read of one sample.
struct Readings {
  std::vector<Reading> parts;
  std::vector<FieldRead> wanted;
  std::vector<std::vector<std::byte>> bytes; ///< of those, reused

  std::span<const FieldRead> of(size_t part) const {
    return std::span(wanted).subspan(parts[part].first, parts[part].count);
  }
};

class RecordSamples final : public SampleSource {
public:
  RecordSamples(std::unique_ptr<RecordSource> records, std::vector<Part> parts,
                const SourceOptions &options)
      : records(std::move(records)), tensors(std::move(parts)),
        options(options) {}

  int64_t sampleCount() const override { return records->recordCount(); }
  uint64_t keyOf(int64_t number) const override {
    return records->keyOf(number);
  }
  Result<SampleRoom> needs(int64_t number) const override;
  Status read(int64_t epoch, int64_t number, SampleParts parts) const override;

private:
  Status readFields(int64_t number, bool withImages, Readings &readings) const;
  size_t countNumbers(const Part &part,
                      std::span<const FieldRead> fields) const;
  Result<size_t> needs(const Part &part,
                       std::span<const FieldRead> fields) const;
  Status readImage(int64_t number, const Part &part, const Reading &reading,
                   std::span<const FieldRead> fields, SplitMix64 draws,
                   std::span<std::byte> to) const;
  Status writeNumbers(const Part &part, std::span<const FieldRead> fields,
                      std::span<std::byte> to) const;

  const std::unique_ptr<RecordSource> records;
  const std::vector<Part> tensors;
  const SourceOptions options;
};

} // namespace

static bool areChannelsFirst(const BatchTensor &tensor) {
  return findImageAxes(tensor)->channels == 1;
}

static bool hasImageShape(const BatchTensor &tensor) {
  return findImageAxes(tensor).has_value();
}

static images::Size sizeOf(const BatchTensor &tensor) {
  ImageAxes axes = *findImageAxes(tensor);
  return {int(tensor.shape[axes.width]), int(tensor.shape[axes.height])};
}

/// A channel, whose elements are `Step` apart. Pixels are read as words, of
/// which a vector has several.
template <size_t Step, typename T, typename Convert>
static void writeChannel(const images::Image &image, int channel, bool isGrey,
                         T *to, Convert convert) {
  const uint8_t *pixels = image.bytes.data();
  for (size_t i = 0; i < image.pixelCount(); ++i) {
    const uint8_t *pixel = pixels + i * images::Image::kPixelBytes;
    uint32_t word = 0;
    std::memcpy(&word, pixel, sizeof(word));
    uint32_t value = word >> (8 * channel) & 255;
    to[i * Step] = convert(int(isGrey ? images::toGrey(pixel) : value));
  }
}

template <size_t Step, typename T>
static void writeChannels(const images::Image &image, const Part &part, T *to) {
  int channels =
      areChannelsFirst(part.tensor) ? int(part.tensor.shape[1]) : int(Step);
  bool isGrey = channels == 1;
  const auto &normalization = part.transforms.normalization();
  for (int c = 0; c < channels; ++c) {
    T *own = to + size_t(c) * (Step == 1 ? image.pixelCount() : 1);
    if constexpr (std::is_same_v<T, uint8_t>) {
      writeChannel<Step>(image, c, isGrey, own,
                         [](int value) { return uint8_t(value); });
    } else if (!normalization) {
      writeChannel<Step>(image, c, isGrey, own,
                         [](int value) { return float(value) / 255; });
    } else {
      float mean = normalization->mean[c],
            deviation = normalization->deviation[c];
      writeChannel<Step>(image, c, isGrey, own, [=](int value) {
        return (float(value) / 255 - mean) / deviation;
      });
    }
  }
}

/// Each channel a plane, or those of a pixel side by side.
template <typename T>
static void writePixels(const images::Image &image, const Part &part, T *to) {
  if (areChannelsFirst(part.tensor) || part.tensor.shape[3] == 1)
    writeChannels<1>(image, part, to);
  else
    writeChannels<3>(image, part, to);
}

static void writeTensor(const images::Image &image, const Part &part,
                        std::span<std::byte> to) {
  if (part.tensor.dtype == DType::u8)
    writePixels(image, part, reinterpret_cast<uint8_t *>(to.data()));
  else
    writePixels(image, part, reinterpret_cast<float *>(to.data()));
}

/// The rest of the transforms, and the tensor.
static Status writeImage(images::Canvas &canvas, const Part &part,
                         SplitMix64 draws, std::span<std::byte> to) {
  if (Status status = part.transforms.applyRest(canvas, draws); !status.ok())
    return status;
  images::Size size = canvas.size(), expected = sizeOf(part.tensor);
  if (size != expected)
    return makeError(Code::BadData, "its image has ", size.height, " rows of ",
                     size.width, " pixels, '", part.tensor.name, "' ",
                     expected.height, " of ", expected.width);
  auto image = canvas.draw();
  if (!image.ok())
    return image.takeStatus();
  writeTensor(**image, part, to);
  return Status();
}

Status RecordSamples::readImage(int64_t number, const Part &part,
                                const Reading &reading,
                                std::span<const FieldRead> fields,
                                SplitMix64 draws,
                                std::span<std::byte> to) const {
  thread_local images::Canvas canvas;
  if (reading.kept) {
    canvas.open(*reading.kept);
    return writeImage(canvas, part, draws, to);
  }
  if (Status status = canvas.open(*fields[0].bytes); !status.ok())
    return status;
  if (Status status = part.transforms.applyFixed(canvas); !status.ok())
    return status;
  if (options.images) {
    auto image = canvas.draw();
    if (!image.ok())
      return image.takeStatus();
    options.images->keep(part.owner, number, **image);
  }
  return writeImage(canvas, part, draws, to);
}

Status RecordSamples::writeNumbers(const Part &part,
                                   std::span<const FieldRead> fields,
                                   std::span<std::byte> to) const {
  NumberWriter writer(part.tensor, part.numbers, part.passed, to);
  for (const FieldRead &read : fields) {
    std::span<const std::byte> bytes = *read.bytes;
    auto dtype = records->dtypeOf(read.field);
    Status status =
        dtype ? writer.add(*dtype, bytes)
              : writer.addText({reinterpret_cast<const char *>(bytes.data()),
                                bytes.size()});
    if (!status.ok())
      return status;
  }
  return writer.finish();
}

/// How many numbers `fields` have for a tensor, were it as large as can be.
size_t RecordSamples::countNumbers(const Part &part,
                                   std::span<const FieldRead> fields) const {
  size_t count = 0;
  for (const FieldRead &read : fields) {
    std::span<const std::byte> bytes = *read.bytes;
    std::string_view text(reinterpret_cast<const char *>(bytes.data()),
                          bytes.size());
    if (auto dtype = records->dtypeOf(read.field))
      count += bytes.size() / traitsOf(*dtype).bytes;
    else if (!part.tensor.classes.empty())
      ++count;
    else
      count += part.numbers.isBytes ? text.size() : runtime::countNumbers(text);
  }
  return count - std::min(count, size_t(part.passed));
}

/// Reads what all tensors need of a record, which is parsed once.
Status RecordSamples::readFields(int64_t number, bool withImages,
                                 Readings &readings) const {
  size_t count = 0;
  for (const Part &part : tensors)
    count += part.fields.size();
  if (readings.bytes.size() < count)
    readings.bytes.resize(count);
  readings.wanted.clear();
  readings.parts.clear();
  for (const Part &part : tensors) {
    Reading &own = readings.parts.emplace_back(readings.wanted.size(), 0);
    if (part.isImage && options.images)
      own.kept = options.images->find(part.owner, number);
    if (own.kept || (part.isImage && !withImages))
      continue;
    own.count = part.fields.size();
    for (const auto &choices : part.fields) {
      auto field = records->findField(number, choices);
      if (!field)
        return makeError(Code::BadData, "it has no '",
                         records->fieldNames()[choices[0]], "'");
      readings.wanted.push_back(
          {*field, part.isImage, &readings.bytes[readings.wanted.size()]});
    }
  }
  return readings.wanted.empty() ? Status()
                                 : records->read(number, readings.wanted);
}

Result<size_t> RecordSamples::needs(const Part &part,
                                    std::span<const FieldRead> fields) const {
  if (!part.isRead() || part.isImage)
    return 0;
  size_t bytes = traitsOf(part.tensor.dtype).bytes;
  size_t count = countNumbers(part, fields);
  size_t most = part.tensor.sampleBytes() / bytes;
  if (count > most && !part.numbers.isTruncated)
    return makeError(Code::BadData, "it has ", count, " numbers for '",
                     part.tensor.name, "', whose largest samples have ", most);
  return std::min(count, most) * bytes;
}

Result<SampleRoom> RecordSamples::needs(int64_t number) const {
  thread_local Readings readings;
  SampleRoom needed;
  Status status = readFields(number, /*withImages=*/false, readings);
  for (size_t i = 0; i < tensors.size() && status.ok(); ++i) {
    auto bytes = needs(tensors[i], readings.of(i));
    if (bytes.ok())
      needed.push_back(*bytes);
    else
      status = bytes.takeStatus();
  }
  if (status.ok())
    return needed;
  return makeError(status.code(), records->describe(number), ", sample ",
                   number, ": ", status.message());
}

/// All tensors draw the same, so that one transform moves images and what is
/// drawn over them alike.
Status RecordSamples::read(int64_t epoch, int64_t number,
                           SampleParts parts) const {
  constexpr float kOne = 1;
  thread_local Readings readings;
  auto draws = SplitMix64::of(options.seed, uint64_t(epoch), uint64_t(number));
  Status status = readFields(number, /*withImages=*/true, readings);
  for (size_t i = 0; i < parts.size() && status.ok(); ++i) {
    const Part &part = tensors[i];
    Reading &own = readings.parts[i];
    auto fields = readings.of(part.mask.value_or(i));
    if (part.tensor.isWeight())
      std::memcpy(parts[i].data(), &kOne, sizeof(kOne));
    else if (part.isImage)
      status = readImage(number, part, own, fields, draws, parts[i]);
    else if (part.mask)
      NumberWriter(part.tensor, part.numbers, /*passed=*/0, parts[i])
          .writeMask(countNumbers(tensors[*part.mask], fields));
    else
      status = writeNumbers(part, fields, parts[i]);
    own.kept.reset();
  }
  return status.ok() ? std::move(status)
                     : makeError(status.code(), records->describe(number),
                                 ", sample ", number, ": ", status.message());
}

//===----------------------------------------------------------------------===//
// What a batch has
//===----------------------------------------------------------------------===//

static Status checkTensor(const BatchTensor &tensor) {
  if (tensor.isWeight() || hasImageShape(tensor) ||
      NumberWriter::canWrite(tensor.dtype))
    return Status();
  return makeError(Code::Usage, "records have nothing for '", tensor.name,
                   "', which is ", traitsOf(tensor.dtype).name,
                   ": they have images, f32 or u8 of [N, 1 or 3, H, W] or [N, "
                   "H, W, 1 or 3], and "
                   "numbers of f32, f64, integers and booleans");
}

/// Names of fields by which a tensor is known that names none.
static std::vector<std::string_view> listNames(const BatchTensor &tensor) {
  if (hasImageShape(tensor))
    return {tensor.name, "jpg", "jpeg", "png", "webp", "image"};
  if (tensor.isTarget)
    return {tensor.name, "cls", "label"};
  return {tensor.name};
}

using FieldLists = std::vector<std::vector<size_t>>;

/// The fields of each tensor, which are none where nothing has its name.
static Result<FieldLists> findFields(const RecordSource &records,
                                     const std::string &path,
                                     const BatchTensor &tensor) {
  auto names = records.fieldNames();
  auto findOne = [&](std::string_view name, std::vector<size_t> &to) {
    if (auto found = std::ranges::find(names, name); found != names.end())
      to.push_back(size_t(found - names.begin()));
  };
  // Images of a field may have the endings of their formats.
  auto find = [&](std::string_view name, std::vector<size_t> &to) {
    findOne(name, to);
    if (hasImageShape(tensor))
      for (std::string_view ending : {"jpg", "jpeg", "png", "webp"})
        findOne(concat(name, ".", ending), to);
  };
  FieldLists fields;
  for (const std::string &name : tensor.fields) {
    find(name, fields.emplace_back());
    if (fields.back().empty())
      return makeError(Code::Usage, "'", path, "': there is no field '", name,
                       "' for '", tensor.name, "', it has ", quoteNames(names));
  }
  std::vector<size_t> choices;
  if (fields.empty() && !tensor.isWeight())
    for (std::string_view name : listNames(tensor))
      find(name, choices);
  if (!choices.empty())
    fields.push_back(std::move(choices));
  return fields;
}

/// In a table, the one tensor without fields takes those that no other has.
static Status fillFields(const RecordSource &records, const std::string &path,
                         std::span<Part> parts) {
  auto names = records.fieldNames();
  std::vector<bool> isTaken(names.size());
  Part *empty = nullptr;
  int count = 0;
  for (Part &part : parts) {
    for (const auto &choices : part.fields)
      isTaken[choices[0]] = true;
    if (part.fields.empty() && part.isRead()) {
      empty = &part;
      ++count;
    }
  }
  if (count == 0)
    return Status();
  if (count == 1 && records.isTable())
    for (size_t i = 0; i < names.size(); ++i)
      if (!isTaken[i])
        empty->fields.push_back({i});
  if (!empty->fields.empty())
    return Status();
  return makeError(Code::Usage, "'", path, "': no field is for '",
                   empty->tensor.name, "', it has ", quoteNames(names));
}

/// What transforms have nothing to do with an image, or give another one.
static Status checkTransforms(const Part &part) {
  const BatchTensor &tensor = part.tensor;
  const images::Transforms &transforms = part.transforms;
  if (tensor.transforms.empty())
    return Status();
  if (!part.isImage)
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
  auto fields = findFields(records, path, tensor);
  if (!fields.ok())
    return fields.takeStatus();
  Part part;
  part.tensor = tensor;
  part.fields = std::move(*fields);
  if (tensor.tokensAhead && !tensor.pad) // what pads a text counts nowhere
    part.tensor.pad =
        double(tensor.isTarget ? tensor.ignoreIndex.value_or(0) : 0);
  if (!tensor.transforms.empty() &&
      NumberTransforms::isOne(tensor.transforms[0])) {
    auto numbers = NumberTransforms::read(tensor.transforms);
    if (!numbers.ok())
      return numbers.takeStatus();
    part.numbers = std::move(*numbers);
    part.tensor.transforms.clear();
    return part;
  }
  auto transforms = images::Transforms::read(tensor.transforms);
  if (!transforms.ok())
    return transforms.takeStatus();
  part.transforms = std::move(*transforms);
  return part;
}

/// The target of a language model has the text of its input, if no field has
/// its name.
static void takeText(std::span<Part> parts) {
  auto isText = [](const Part &part) {
    return part.tensor.tokensAhead && !part.tensor.isTarget &&
           !part.fields.empty();
  };
  auto text = std::ranges::find_if(parts, isText);
  for (Part &part : parts)
    if (text != parts.end() && part.tensor.isTarget &&
        part.tensor.tokensAhead && part.fields.empty()) {
      part.fields = text->fields;
      part.numbers = text->numbers;
      part.passed = *part.tensor.tokensAhead;
    }
}

static Status findMask(std::span<Part> parts, Part &part) {
  const std::string &name = part.numbers.maskOf;
  if (name.empty())
    return Status();
  for (size_t i = 0; i < parts.size(); ++i)
    if (parts[i].tensor.name == name && parts[i].numbers.maskOf.empty()) {
      part.mask = i;
      part.fields.clear();
      return Status();
    }
  return makeError(Code::Usage, "'", part.tensor.name, "' is a mask of '", name,
                   "', which is no other input of numbers");
}

Result<std::unique_ptr<SampleSource>> runtime::makeRecordSamples(
    std::unique_ptr<RecordSource> records, const std::string &path,
    std::span<const BatchTensor> tensors, const SourceOptions &options) {
  std::vector<Part> parts;
  for (const BatchTensor &tensor : tensors) {
    auto part = makePart(*records, path, tensor);
    if (!part.ok())
      return part.takeStatus();
    parts.push_back(std::move(*part));
  }
  for (Part &part : parts)
    if (Status status = findMask(parts, part); !status.ok())
      return status;
  takeText(parts);
  if (Status status = fillFields(*records, path, parts); !status.ok())
    return status;
  for (Part &part : parts) {
    // Tables and lists of numbers may have the shape of images, too.
    part.isImage = hasImageShape(part.tensor) && part.fields.size() == 1 &&
                   !records->hasNumbers(part.fields[0][0]);
    if (part.isImage && options.images)
      part.owner = options.images->addOwner();
    if (Status status = checkTransforms(part); !status.ok())
      return status;
  }
  return std::unique_ptr<SampleSource>(
      new RecordSamples(std::move(records), std::move(parts), options));
}
