#include "runtime/data/TokenSource.h"

#include "runtime/data/Widen.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <sstream>

using namespace tcc;
using namespace tcc::runtime;

namespace {

struct Window {
  int64_t length;
  int64_t stride; ///< from the begin of one to that of the next
};

class TokenSource final : public SampleSource {
public:
  TokenSource(std::vector<TokenFile> files, std::vector<int64_t> ends,
              std::vector<BatchTensor> tensors, Window window, int64_t ahead)
      : files(std::move(files)), ends(std::move(ends)),
        tensors(std::move(tensors)), window(window), ahead(ahead) {}

  int64_t sampleCount() const override { return ends.back(); }
  Status read(int64_t, int64_t number, SampleParts parts) const override;

private:
  Status readPiece(const TokenFile &file, int64_t first, int64_t done,
                   int64_t count, SampleParts parts) const;

  const std::vector<TokenFile> files;
  const std::vector<int64_t> ends; ///< of each file's samples
  const std::vector<BatchTensor> tensors;
  const Window window;
  const int64_t ahead; ///< tokens after a window that a target has
};

struct Header {
  int32_t magic, version;
  DType dtype;
};
constexpr Header kHeaders[] = {{20240520, 1, DType::u16},
                               {20240801, 7, DType::u32}};
constexpr size_t kHeaderWords = 256;
using HeaderWords = std::array<int32_t, kHeaderWords>;

} // namespace

/// Tokens that are read at a time, and stay in a cache.
static constexpr int64_t kPiece = 4096, kMostAhead = 1;

/// Tokens `done` and so on of the window that begins with token `first`, once
/// for all tensors.
Status TokenSource::readPiece(const TokenFile &file, int64_t first,
                              int64_t done, int64_t count,
                              SampleParts parts) const {
  size_t bytes = traitsOf(file.dtype).bytes;
  std::array<std::byte, (kPiece + kMostAhead) * sizeof(uint32_t)> tokens;
  std::span<std::byte> wanted(tokens.data(), size_t(count + ahead) * bytes);
  if (Status status =
          file.file->read(file.offset + uint64_t(first + done) * bytes, wanted);
      !status.ok())
    return status;
  for (size_t i = 0; i < parts.size(); ++i) {
    if (tensors[i].isWeight())
      continue;
    size_t wide = traitsOf(tensors[i].dtype).bytes;
    widen(file.dtype, tensors[i].dtype,
          wanted.data() + size_t(*tensors[i].tokensAhead) * bytes,
          parts[i].subspan(size_t(done) * wide, size_t(count) * wide));
  }
  return Status();
}

Status TokenSource::read(int64_t, int64_t number, SampleParts parts) const {
  constexpr float kOne = 1;
  for (size_t i = 0; i < parts.size(); ++i)
    if (tensors[i].isWeight())
      std::memcpy(parts[i].data(), &kOne, sizeof(kOne));
  auto place = size_t(std::ranges::upper_bound(ends, number) - ends.begin());
  int64_t begin = place == 0 ? 0 : ends[place - 1];
  int64_t first = (number - begin) * window.stride;
  for (int64_t done = 0; done < window.length; done += kPiece) {
    int64_t count = std::min(kPiece, window.length - done);
    if (Status status = readPiece(files[place], first, done, count, parts);
        !status.ok())
      return status;
  }
  return Status();
}

//===----------------------------------------------------------------------===//
// What a batch has
//===----------------------------------------------------------------------===//

static Status refuse(const BatchTensor &tensor, std::string_view what) {
  return makeError(Code::Usage, "files of tokens have nothing for '",
                   tensor.name, "': ", what);
}

static Status checkTensor(const BatchTensor &tensor) {
  if (tensor.shape.size() != 2)
    return refuse(tensor, concat("it has ", tensor.shape.size(),
                                 " dimensions, expected batch and tokens"));
  if (!tensor.tokensAhead || *tensor.tokensAhead > kMostAhead)
    return refuse(tensor, "it is the target of a loss that is no causal_lm");
  DTypeKind kind = traitsOf(tensor.dtype).kind;
  if (kind != DTypeKind::Signed && kind != DTypeKind::Unsigned)
    return refuse(tensor, concat("it is ", traitsOf(tensor.dtype).name,
                                 ", expected integers"));
  return Status();
}

/// The tensors' one length of a window.
static Result<int64_t> findLength(std::span<const BatchTensor> tensors) {
  const BatchTensor *input = nullptr, *target = nullptr;
  for (const BatchTensor &tensor : tensors) {
    if (tensor.isWeight())
      continue;
    if (Status status = checkTensor(tensor); !status.ok())
      return status;
    const BatchTensor *&place = tensor.isTarget ? target : input;
    if (place)
      return refuse(tensor, concat("'", place->name, "' has the tokens"));
    place = &tensor;
  }
  const BatchTensor *any = input ? input : target;
  if (!any)
    return makeError(Code::Usage, "there is no input for tokens");
  if (target && target->shape[1] != any->shape[1])
    return refuse(*target, concat("it has ", target->shape[1], " tokens, '",
                                  any->name, "' ", any->shape[1]));
  return any->shape[1];
}

/// Nothing where it is something else than `window LENGTH` or `window LENGTH
/// stride STRIDE`.
static std::optional<int64_t> readStride(const std::string &line,
                                         int64_t length) {
  std::istringstream words(line);
  std::string window, stride, more;
  int64_t own = 0, step = length;
  words >> window >> own;
  bool isRight = words && window == "window" && own == length;
  if (words >> stride)
    isRight &= stride == "stride" && words >> step && step > 0;
  bool hasMore = isRight && words >> more;
  return isRight && !hasMore ? std::optional(step) : std::nullopt;
}

/// The window of the transforms that tensors have, which are the same ones.
static Result<Window> findWindow(std::span<const BatchTensor> tensors) {
  auto length = findLength(tensors);
  if (!length.ok())
    return length.takeStatus();
  Window window = {*length, *length};
  const std::vector<std::string> *known = nullptr;
  for (const BatchTensor &tensor : tensors) {
    if (tensor.transforms.empty())
      continue;
    auto stride = tensor.transforms.size() == 1
                      ? readStride(tensor.transforms[0], *length)
                      : std::nullopt;
    if (!stride || (known && *known != tensor.transforms))
      return refuse(tensor,
                    concat("its one transform is window ", *length,
                           " stride S, and that of the target is the same"));
    window.stride = *stride;
    known = &tensor.transforms;
  }
  return window;
}

//===----------------------------------------------------------------------===//
// Files
//===----------------------------------------------------------------------===//

static Result<TokenFile> openOneText(const std::string &path,
                                     const Files &files) {
  auto file = files.open(path);
  if (!file.ok())
    return file.takeStatus();
  int64_t count = static_cast<int64_t>((*file)->size());
  return TokenFile{std::move(*file), DType::u8, 0, count};
}

/// The header that the file begins with, if it does with one.
static Result<std::optional<HeaderWords>> readHeader(const SampleFile &file) {
  HeaderWords words = {};
  if (file.size() < sizeof(words[0]))
    return std::optional<HeaderWords>();
  std::span<std::byte> bytes = std::as_writable_bytes(std::span(words));
  bytes = bytes.first(std::min<uint64_t>(bytes.size(), file.size()));
  if (Status status = file.read(0, bytes); !status.ok())
    return status;
  if (std::ranges::find(kHeaders, words[0], &Header::magic) ==
      std::end(kHeaders))
    return std::optional<HeaderWords>();
  return std::optional(words);
}

static Status checkHeader(const SampleFile &file, const Header &header,
                          const HeaderWords &words) {
  if (words[1] != header.version)
    return makeError(Code::BadData, "'", file.path(), "': version ", words[1],
                     " of a file of tokens, expected ", header.version);
  size_t bytes = traitsOf(header.dtype).bytes;
  uint64_t expected = sizeof(words) + uint64_t(uint32_t(words[2])) * bytes;
  if (words[2] < 0 || file.size() != expected)
    return makeError(Code::BadData, "'", file.path(), "': its header says ",
                     words[2], " tokens of ", bytes, " bytes, and it has ",
                     file.size(), " bytes, the header's ", sizeof(words),
                     " among them");
  return Status();
}

static Result<TokenFile> openOneOfTokens(const std::string &path,
                                         const Files &files) {
  auto file = files.open(path);
  if (!file.ok())
    return file.takeStatus();
  auto words = readHeader(**file);
  if (!words.ok())
    return words.takeStatus();
  if (*words) {
    const Header *header =
        std::ranges::find(kHeaders, (**words)[0], &Header::magic);
    if (Status status = checkHeader(**file, *header, **words); !status.ok())
      return status;
    return TokenFile{std::move(*file), header->dtype, sizeof(HeaderWords),
                     (**words)[2]};
  }
  uint64_t size = (*file)->size();
  if (size % sizeof(uint16_t))
    return makeError(Code::BadData, "'", path, "': ", size,
                     " bytes, expected tokens of ", sizeof(uint16_t));
  int64_t count = static_cast<int64_t>(size / sizeof(uint16_t));
  return TokenFile{std::move(*file), DType::u16, 0, count};
}

static Status checkTypes(const TokenFile &file,
                         std::span<const BatchTensor> tensors) {
  for (const BatchTensor &tensor : tensors)
    if (!tensor.isWeight() && tensor.dtype != file.dtype &&
        !canWiden(file.dtype, tensor.dtype))
      return makeError(Code::Usage, "'", file.file->path(), "' has tokens of ",
                       traitsOf(file.dtype).name, ", '", tensor.name, "' is ",
                       traitsOf(tensor.dtype).name);
  return Status();
}

static Result<std::vector<TokenFile>>
openAll(std::string_view paths, const Files &files,
        Result<TokenFile> (*open)(const std::string &path, const Files &)) {
  std::vector<TokenFile> all;
  for (const std::string &path : splitPaths(paths)) {
    auto file = open(path, files);
    if (!file.ok())
      return file.takeStatus();
    all.push_back(std::move(*file));
  }
  return all;
}

Result<std::vector<TokenFile>> runtime::openTokens(const std::string &paths,
                                                   const Files &files) {
  return openAll(paths, files, openOneOfTokens);
}

Result<std::vector<TokenFile>> runtime::openText(const std::string &paths,
                                                 const Files &files) {
  return openAll(paths, files, openOneText);
}

Result<std::unique_ptr<SampleSource>>
runtime::makeTokenSource(std::vector<TokenFile> files,
                         std::span<const BatchTensor> tensors) {
  auto window = findWindow(tensors);
  if (!window.ok())
    return window.takeStatus();
  int64_t ahead = 0, samples = 0;
  for (const BatchTensor &tensor : tensors)
    ahead = std::max(ahead, tensor.tokensAhead.value_or(0));
  std::vector<int64_t> ends;
  for (const TokenFile &file : files) {
    if (Status status = checkTypes(file, tensors); !status.ok())
      return status;
    int64_t room = file.count - ahead - window->length;
    samples += room < 0 ? 0 : room / window->stride + 1;
    ends.push_back(samples);
  }
  if (samples == 0)
    return makeError(Code::BadData, "'", files.front().file->path(), "'",
                     files.size() > 1 ? " and those after it" : "",
                     ": no file has the ", window->length + ahead,
                     " tokens of a sample");
  return std::unique_ptr<SampleSource>(
      new TokenSource(std::move(files), std::move(ends),
                      {tensors.begin(), tensors.end()}, *window, ahead));
}
