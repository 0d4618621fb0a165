#include "runtime/data/Npy.h"

#include "runtime/base/MappedFile.h"
#include "runtime/base/OutputFile.h"

#include <charconv>
#include <cstdio>
#include <cstring>

using namespace tcc;
using namespace tcc::runtime;

namespace {

constexpr std::string_view kMagic = "\x93NUMPY";
constexpr size_t kMaxRank = 64;

template <typename... Parts>
Status refuse(const std::string &name, const Parts &...parts) {
  return makeError(Code::BadData, "'", name, "': ", parts...);
}

/// The text after `'key':`, without leading spaces; empty if there is none.
std::string_view valueOf(std::string_view dictionary, std::string_view key) {
  size_t at = dictionary.find(concat("'", key, "'"));
  if (at == std::string_view::npos)
    return {};
  at = dictionary.find(':', at);
  if (at == std::string_view::npos)
    return {};
  at = dictionary.find_first_not_of(' ', at + 1);
  return at == std::string_view::npos ? std::string_view()
                                      : dictionary.substr(at);
}

/// "(2, 3)", "(3,)" or "()".
bool parseShape(std::string_view text, std::vector<int64_t> &shape) {
  size_t end = text.find(')');
  if (text.empty() || text[0] != '(' || end == std::string_view::npos)
    return false;
  text = text.substr(1, end - 1);
  while (!text.empty()) {
    int64_t dim = 0;
    auto [rest, error] =
        std::from_chars(text.data(), text.data() + text.size(), dim);
    if (error != std::errc() || dim < 0 || shape.size() >= kMaxRank)
      return false;
    shape.push_back(dim);
    text.remove_prefix(rest - text.data());
    size_t next = text.find_first_not_of(", ");
    text =
        next == std::string_view::npos ? std::string_view() : text.substr(next);
  }
  return true;
}

Status parseHeader(std::string_view dictionary, const std::string &name,
                   NpyLayout &header) {
  std::string_view descr = valueOf(dictionary, "descr");
  size_t end = descr.find('\'', 1);
  if (descr.empty() || descr[0] != '\'' || end == std::string_view::npos)
    return refuse(name, "the header has no dtype");
  std::string dtype(descr.substr(1, end - 1));
  auto known = dtypeOfNumpy(dtype);
  if (!known)
    return refuse(name, "dtype '", dtype, "' is not known");
  header.dtype = *known;
  header.isFortran = valueOf(dictionary, "fortran_order").starts_with("True");
  if (!parseShape(valueOf(dictionary, "shape"), header.shape))
    return refuse(name, "the header has a bad shape");
  return Status();
}

/// Copies column-major elements into row-major order.
void transposeInto(Tensor &tensor, const std::byte *from) {
  size_t bytes = traitsOf(tensor.dtype).bytes;
  std::vector<int64_t> index(tensor.shape.size());
  size_t count = tensor.data.size() / bytes;
  for (size_t i = 0; i < count; ++i) {
    size_t offset = 0;
    for (size_t axis = index.size(); axis-- > 0;)
      offset = offset * tensor.shape[axis] + index[axis];
    std::memcpy(tensor.data.data() + i * bytes, from + offset * bytes, bytes);
    for (size_t axis = index.size(); axis-- > 0;) {
      if (++index[axis] < tensor.shape[axis])
        break;
      index[axis] = 0;
    }
  }
}

std::string formatHeader(DType dtype, std::span<const int64_t> shape) {
  std::string text = concat("{'descr': '", traitsOf(dtype).numpy,
                            "', 'fortran_order': False, 'shape': (");
  for (int64_t dim : shape)
    text += concat(dim, shape.size() == 1 ? "," : ", ");
  if (shape.size() > 1)
    text.resize(text.size() - 2);
  text += "), }";
  // Magic, version, length, header and newline together fill 64-byte blocks.
  size_t before = kMagic.size() + 4;
  text.resize((before + text.size() + 1 + 63) / 64 * 64 - before - 1, ' ');
  text += '\n';
  return text;
}

std::vector<float> widenBf16(const void *data, size_t count) {
  std::vector<float> wide(count);
  for (size_t i = 0; i < count; ++i) {
    uint16_t bits;
    std::memcpy(&bits, static_cast<const char *>(data) + 2 * i, 2);
    uint32_t wideBits = uint32_t(bits) << 16;
    std::memcpy(&wide[i], &wideBits, 4);
  }
  return wide;
}

} // namespace

Result<NpyLayout> runtime::parseNpyLayout(std::span<const std::byte> head,
                                          uint64_t size,
                                          const std::string &name) {
  std::string_view text(reinterpret_cast<const char *>(head.data()),
                        head.size());
  if (text.size() < kMagic.size() + 6 || !text.starts_with(kMagic))
    return refuse(name, "not a npy file");
  bool isLong = text[6] >= 2; // version 1 has 2 bytes of length, later ones 4
  uint32_t length = 0;
  size_t begin = kMagic.size() + 2 + (isLong ? 4 : 2);
  std::memcpy(&length, text.data() + kMagic.size() + 2, isLong ? 4 : 2);
  if (length > size - begin)
    return refuse(name, "the header ends after the file");
  if (length > text.size() - begin)
    return refuse(name, "has a header of ", length, " bytes");
  NpyLayout layout;
  if (Status status = parseHeader(text.substr(begin, length), name, layout);
      !status.ok())
    return status;
  layout.offset = begin + length;
  std::optional<uint64_t> needed = bytesOf(layout.dtype, layout.shape);
  if (!needed)
    return refuse(name, "the header has a bad shape");
  if (size - layout.offset != *needed)
    return refuse(name, "has ", size - layout.offset,
                  " bytes of data, expected ", *needed);
  return layout;
}

Result<Tensor> runtime::parseNpy(std::span<const std::byte> bytes,
                                 const std::string &name) {
  auto layout = parseNpyLayout(bytes, bytes.size(), name);
  if (!layout.ok())
    return layout.takeStatus();
  std::span<const std::byte> data = bytes.subspan(layout->offset);
  auto tensor = Tensor::allocate(layout->dtype, layout->shape);
  if (!tensor.ok())
    return tensor;
  if (layout->isFortran)
    transposeInto(*tensor, data.data());
  else if (!data.empty())
    std::memcpy(tensor->data.data(), data.data(), data.size());
  return tensor;
}

Result<Tensor> runtime::readNpy(const std::string &path) {
  Result<MappedFile> file = MappedFile::open(path);
  if (!file.ok())
    return file.takeStatus();
  return parseNpy(file->bytes(), path);
}

Status runtime::writeNpy(const std::string &path, DType dtype,
                         std::span<const int64_t> shape, const void *data) {
  size_t count = 1;
  for (int64_t dim : shape)
    count *= dim;
  std::vector<float> wide;
  if (dtype == DType::bf16) {
    wide = widenBf16(data, count);
    data = wide.data();
    dtype = DType::f32;
  }
  std::string header = formatHeader(dtype, shape);
  uint16_t length = header.size();
  std::string prefix = concat(kMagic, std::string_view("\1\0", 2));
  prefix.append(reinterpret_cast<const char *>(&length), sizeof(length));
  prefix += header;
  Result<OutputFile> file = OutputFile::create(path);
  if (!file.ok())
    return file.takeStatus();
  file->write(prefix);
  file->write(
      {static_cast<const std::byte *>(data), count * traitsOf(dtype).bytes});
  return file->commit();
}
