//===- Text.h - Values in the small files of proc and sys -------*- C++ -*-===//
//
// Each takes all of a text or nothing: what is not as expected has no value.
//
//===----------------------------------------------------------------------===//
#ifndef TCC_TOOLS_TCCRUN_DOCTOR_TEXT_H
#define TCC_TOOLS_TCCRUN_DOCTOR_TEXT_H

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tcc::tools::doctor {

/// The text is one whole number.
std::optional<int64_t> parseInteger(std::string_view text);

/// Whole numbers with space between them, at least `least`.
std::optional<std::vector<int64_t>> parseIntegers(std::string_view text,
                                                  size_t least);

/// "madvise" of "always [madvise] never".
std::optional<std::string> parseChosen(std::string_view text);

/// The numbers 0, 1, 2, 3, 8 of "0-3,8"; at most 65536 of them.
std::optional<std::vector<int>> parseList(std::string_view text);

/// The rest of the line that begins with `key`, without the space around it.
std::optional<std::string_view> findLine(std::string_view text,
                                         std::string_view key);

/// Bytes of the line "KEY:   123 kB" of /proc/meminfo.
std::optional<uint64_t> findKibibytes(std::string_view text,
                                      std::string_view key);

/// Percent of the last ten seconds in the line "some avg10=1.50 ..." of a file
/// of /proc/pressure.
std::optional<double> findPressure(std::string_view text);

/// Whether words with space between them have this one.
bool hasWord(std::string_view text, std::string_view word);

/// "1.5 GiB", "64 MiB" or "512 bytes".
std::string nameBytes(uint64_t bytes);

/// With one digit behind the point: "12.3 %".
std::string namePercent(double percent);

/// "1.5", with one digit behind the point.
std::string nameNumber(double number);

} // namespace tcc::tools::doctor

#endif // TCC_TOOLS_TCCRUN_DOCTOR_TEXT_H
