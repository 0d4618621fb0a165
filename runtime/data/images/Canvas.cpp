#include "runtime/data/images/Canvas.h"

#include "runtime/data/images/Formats.h"
#include "runtime/data/images/Resample.h"

#include <algorithm>

using namespace tcc;
using namespace tcc::runtime;
using namespace tcc::runtime::images;

Status Canvas::open(std::span<const std::byte> from) {
  auto size = readSize(from);
  if (!size.ok())
    return size.takeStatus();
  file = from;
  decoded = nullptr;
  isFlipped = mayScale = false;
  source = shown = {0, 0, *size};
  scaled = *size;
  return Status();
}

void Canvas::open(const Image &image) {
  decoded = &image;
  isFlipped = false;
  source = shown = {0, 0, image.size};
  scaled = image.size;
}

void Canvas::crop(Region region) {
  if (isFlipped)
    region.left = shown.size.width - region.left - region.size.width;
  region.left += shown.left;
  region.top += shown.top;
  shown = region;
  if (scaled != source.size)
    return;
  source.left += shown.left;
  source.top += shown.top;
  source.size = scaled = shown.size;
  shown.left = shown.top = 0;
}

/// What is mirrored is drawn first: weights are not symmetric to the last bit.
Status Canvas::resize(Size to) {
  if (to == size())
    return Status();
  if (Status status = checkSize(to, "resize makes"); !status.ok())
    return status;
  if (scaled != source.size || isFlipped)
    if (auto image = draw(); !image.ok())
      return image.takeStatus();
  scaled = to;
  shown = {0, 0, to};
  return Status();
}

Status Canvas::change(const std::function<void(Image &)> &change) {
  if (auto image = draw(); !image.ok())
    return image.takeStatus();
  if (decoded != &pixels)
    pixels = *decoded;
  decoded = &pixels;
  change(pixels);
  source = shown = {0, 0, pixels.size};
  scaled = pixels.size;
  return Status();
}

bool Canvas::isDrawn() const {
  return decoded && !isFlipped && shown == source &&
         shown == Region{0, 0, decoded->size};
}

Result<const Image *> Canvas::draw() {
  if (!isDrawn()) {
    if (Status status = drawAnew(drawn); !status.ok())
      return status;
    std::swap(drawn, pixels);
    open(pixels);
  }
  return decoded;
}

/// A region of the source.
Status Canvas::decodeRegion(Region region, Image &to) {
  region.left += source.left;
  region.top += source.top;
  if (!decoded)
    return decode(file, region, to);
  to.resize(region.size);
  copyRegion(decoded->bytes.data(), decoded->rowBytes(), region, to);
  return Status();
}

static void mirror(Image &image) {
  struct Pixel {
    uint8_t bytes[Image::kPixelBytes];
  };
  for (int y = 0; y < image.size.height; ++y) {
    auto *row = reinterpret_cast<Pixel *>(image.row(y));
    std::reverse(row, row + image.size.width);
  }
}

/// 1: it is not decoded at a part of its size.
int Canvas::findDenominator() const {
  if (!mayScale || decoded || !canScale(file))
    return 1;
  int denominator = 8;
  while (denominator > 1 && (source.size.width < scaled.width * denominator ||
                             source.size.height < scaled.height * denominator))
    denominator /= 2;
  return denominator;
}

/// The pixels that a span covers at one part in `denominator`, if only in part.
static LineWeights makeWeights(int begin, int length, int denominator, int to,
                               int first, int count) {
  auto up = [=](int place) { return (place + denominator - 1) / denominator; };
  return {{double(begin) / denominator, double(length) / denominator},
          {begin / denominator, up(begin + length)},
          to,
          first,
          count};
}

Status Canvas::drawScaled(int denominator, Image &to) {
  LineWeights columns = makeWeights(source.left, source.size.width, denominator,
                                    scaled.width, shown.left, shown.size.width);
  LineWeights rows = makeWeights(source.top, source.size.height, denominator,
                                 scaled.height, shown.top, shown.size.height);
  Region wanted = {
      columns.begin(),
      rows.begin(),
      {columns.end() - columns.begin(), rows.end() - rows.begin()}};
  if (Status status = decodeScaled(file, denominator, wanted, needed);
      !status.ok())
    return status;
  resample(needed, columns, rows, hasRowsFirst(source.size, scaled), between,
           to);
  return Status();
}

Status Canvas::drawAnew(Image &to) {
  if (int denominator = findDenominator(); denominator > 1) {
    if (Status status = drawScaled(denominator, to); !status.ok())
      return status;
  } else if (scaled == source.size) {
    if (Status status = decodeRegion(shown, to); !status.ok())
      return status;
  } else {
    LineWeights columns(source.size.width, scaled.width, shown.left,
                        shown.size.width);
    LineWeights rows(source.size.height, scaled.height, shown.top,
                     shown.size.height);
    Region wanted = {
        columns.begin(),
        rows.begin(),
        {columns.end() - columns.begin(), rows.end() - rows.begin()}};
    if (Status status = decodeRegion(wanted, needed); !status.ok())
      return status;
    resample(needed, columns, rows, hasRowsFirst(source.size, scaled), between,
             to);
  }
  if (isFlipped)
    mirror(to);
  return Status();
}
