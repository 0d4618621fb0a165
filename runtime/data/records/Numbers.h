//===- Numbers.h - Numbers of records for a tensor --------------*- C++ -*-===//
#ifndef TCC_RUNTIME_DATA_RECORDS_NUMBERS_H
#define TCC_RUNTIME_DATA_RECORDS_NUMBERS_H

#include "runtime/data/SampleSource.h"

#include <string_view>

namespace tcc::runtime {

/// What becomes of numbers on their way into a tensor.
struct NumberTransforms {
  bool isBytes = false;     ///< "bytes": each byte of a text is a number
  bool isTruncated = false; ///< "truncate": what a sample has no room for is
                            ///< left out
  bool isOneHot =
      false;          ///< "one_hot": 1 at the place of the one number, else 0
  std::string maskOf; ///< "mask NAME": 1 for each number of that tensor, then 0

  /// Code::Usage where a line is none of them.
  static Result<NumberTransforms> read(std::span<const std::string> lines);
  static bool isOne(std::string_view line);
};

/// Writes numbers of fields one after the other into a sample's part of a
/// tensor. Code::BadData where one is not of the tensor's type, or there are
/// more than the part has.
class NumberWriter {
public:
  /// Integers, booleans, f32 and f64.
  static bool canWrite(DType dtype);

  /// Leaves out the first `passed` numbers.
  NumberWriter(const BatchTensor &tensor, const NumberTransforms &transforms,
               int64_t passed, std::span<std::byte> to)
      : tensor(tensor), transforms(transforms), passed(passed), to(to) {}

  /// Numbers with blanks, commas or brackets between them. Of a tensor that
  /// has classes, the name of one, which stands for its position.
  Status addText(std::string_view text);
  /// Little-endian numbers.
  Status add(DType dtype, std::span<const std::byte> bytes);
  /// Fills up what is left with the tensor's pad. Code::BadData where there is
  /// something left and no pad.
  Status finish();
  /// `ones` times 1, then 0.
  void writeMask(size_t ones);

private:
  /// What begins another number: it is to be stored if there is no status.
  std::optional<Status> begin();
  Status refuse(std::string_view word) const;
  Status addWord(std::string_view word);
  Status addClass(std::string_view name);
  Status addBytes(std::string_view text);
  template <typename T> bool store(T value);
  template <typename T> bool storeNumber(T value);
  bool storeOneHot(int64_t place);

  const BatchTensor &tensor;
  const NumberTransforms &transforms;
  int64_t passed;
  std::span<std::byte> to; ///< what is not written yet
};

/// How many numbers a text has, as `addText` takes it.
size_t countNumbers(std::string_view text);

} // namespace tcc::runtime

#endif // TCC_RUNTIME_DATA_RECORDS_NUMBERS_H
