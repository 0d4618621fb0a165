#include "runtime/data/Batches.h"

#include "runtime/data/NpzBatches.h"
#include "runtime/package/Format.h"

#include <cstring>
#include <filesystem>

using namespace tcc;
using namespace tcc::runtime;

static constexpr std::string_view kNpz = "npz:";

Result<std::unique_ptr<BatchSource>>
runtime::openBatches(const std::string &spec,
                     std::span<const BatchTensor> tensors) {
  if (spec.starts_with(kNpz))
    return openNpzBatches(spec.substr(kNpz.size()), tensors);
  return makeError(Code::Usage, "data '", spec,
                   "' are of no known kind, expected npz:FILE");
}

std::string runtime::absoluteData(const std::string &spec) {
  if (!spec.starts_with(kNpz))
    return spec;
  std::string path = spec.substr(kNpz.size());
  return concat(kNpz,
                std::filesystem::absolute(path).lexically_normal().string());
}

//===----------------------------------------------------------------------===//
// Batches
//===----------------------------------------------------------------------===//

Result<BatchReader> BatchReader::create(std::unique_ptr<BatchSource> source,
                                        std::span<const BatchTensor> tensors,
                                        SampleOrder order) {
  BatchReader reader(std::move(source), std::move(order));
  for (const BatchTensor &tensor : tensors) {
    auto allocated = Tensor::allocate(tensor.dtype, tensor.shape);
    if (!allocated.ok())
      return allocated.takeStatus();
    if (tensor.name == format::kSampleWeight && tensor.dtype == DType::f32)
      reader.weights = reader.batch.size();
    reader.batch.push_back(std::move(*allocated));
  }
  reader.samples.resize(tensors.empty() ? 0 : tensors[0].shape[0]);
  if (reader.samples.empty() || reader.batchesPerEpoch() == 0)
    return makeError(Code::Usage, "the data have ", reader.sampleCount(),
                     " samples, a batch takes ", reader.samples.size());
  return reader;
}

int64_t BatchReader::batchesPerEpoch() const {
  int64_t filled = weights ? batchSize() - 1 : 0;
  return (source->sampleCount() + filled) / batchSize();
}

Status BatchReader::read(int64_t index) {
  int64_t epoch = index / batchesPerEpoch();
  int64_t first = index % batchesPerEpoch() * batchSize();
  EpochOrder ofEpoch = order.of(epoch);
  for (int64_t i = 0; i < batchSize(); ++i)
    samples[i] = ofEpoch.at((first + i) % sampleCount());
  for (size_t i = 0; i < batch.size(); ++i)
    if (Status status = source->read(i, samples, batch[i].data.span());
        !status.ok())
      return status;
  int64_t counted = std::min(batchSize(), sampleCount() - first);
  if (weights)
    std::memset(batch[*weights].data.data() + counted * sizeof(float), 0,
                (batchSize() - counted) * sizeof(float));
  return Status();
}

/// Little-endian: the low bytes come first.
static int64_t readInteger(std::span<const std::byte> bytes, bool isSigned) {
  bool isNegative =
      isSigned && (bytes.back() & std::byte(0x80)) != std::byte(0);
  int64_t value = isNegative ? -1 : 0;
  std::memcpy(&value, bytes.data(), bytes.size());
  return value;
}

std::optional<int64_t> BatchReader::findSample(size_t tensor,
                                               int64_t number) const {
  const Tensor &searched = batch[tensor];
  const DTypeTraits &traits = traitsOf(searched.dtype);
  if (traits.kind != DTypeKind::Signed && traits.kind != DTypeKind::Unsigned)
    return std::nullopt;
  size_t count = searched.data.size() / traits.bytes;
  for (size_t i = 0; i < count; ++i)
    if (readInteger(
            searched.data.span().subspan(i * traits.bytes, traits.bytes),
            traits.kind == DTypeKind::Signed) == number)
      return samples[i / (count / samples.size())];
  return std::nullopt;
}
