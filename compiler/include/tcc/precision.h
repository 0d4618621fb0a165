//===- tcc/precision.h - The types of arithmetic ----------------*- C++ -*-===//
#ifndef TCC_PRECISION_H
#define TCC_PRECISION_H

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tcc {

/// F32: as the model is written. BF16, F16: products read it; their sums, and
/// all else, are f32. TF32, of CUDA: libraries may round what products of f32
/// read to it. F64: all that is written in f32 is computed in it.
enum class Precision { F64, F32, TF32, BF16, F16 };

/// What the command line, recipes and packages call them, in this order.
inline constexpr const char *kPrecisionWords = "f64 f32 tf32 bf16 f16";

inline std::vector<std::string> getPrecisionNames() {
  std::vector<std::string> names(1);
  for (char letter : std::string_view(kPrecisionWords)) {
    if (letter == ' ')
      names.emplace_back();
    else
      names.back() += letter;
  }
  return names;
}

inline std::string getName(Precision precision) {
  return getPrecisionNames()[size_t(precision)];
}

inline std::optional<Precision> findPrecision(std::string_view name) {
  std::vector<std::string> names = getPrecisionNames();
  for (size_t i = 0; i < names.size(); ++i)
    if (names[i] == name)
      return Precision(i);
  return std::nullopt;
}

} // namespace tcc

#endif // TCC_PRECISION_H
