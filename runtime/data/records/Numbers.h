//===- Numbers.h - Numbers of records for a tensor --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_NUMBERS_H
#define TCC_RUNTIME_DATA_RECORDS_NUMBERS_H

#include "runtime/data/SampleSource.h"

#include <string_view>

namespace tcc::runtime {

/// Writes numbers of fields one after the other into a sample's part of a
/// tensor. Code::BadData where one is not of the tensor's type, or there are
/// more or fewer than the part has.
class NumberWriter {
public:
  /// Integers, booleans, f32 and f64.
  static bool canWrite(DType dtype);

  NumberWriter(const BatchTensor &tensor, std::span<std::byte> to)
      : tensor(tensor), to(to) {}

  /// Numbers with blanks, commas or brackets between them. Of a tensor that
  /// has classes, the name of one, which stands for its position.
  Status addText(std::string_view text);
  /// Little-endian numbers.
  Status add(DType dtype, std::span<const std::byte> bytes);
  Status finish() const;

private:
  Status addWord(std::string_view word);
  template <typename T> bool store(T value);

  const BatchTensor &tensor;
  std::span<std::byte> to; ///< what is not written yet
};

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_NUMBERS_H
