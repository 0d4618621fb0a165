//===- LogFile.h - A file that records are added to -------------*- C++ -*-===//
#ifndef TCC_TOOLS_TCCRUN_LOGFILE_H
#define TCC_TOOLS_TCCRUN_LOGFILE_H

#include "runtime/base/Status.h"

#include <cstdint>
#include <deque>
#include <string>

namespace tcc::tools {

/// Records, each of which the system has once it was added, and which nothing
/// changes after that: a process that is killed loses none, and leaves at most
/// the last one half written. A disk that is full may have room later: what it
/// does not take is kept, up to a limit, and written before the next record,
/// from the byte on that it lacks.
class LogFile {
public:
  /// Opens `path`, made where it is not there, for records at its end; `flags`
  /// are open's beside those. `noun` is what errors call several records.
  /// Code::Io.
  static runtime::Result<LogFile> open(std::string path, int flags,
                                       const char *noun);
  /// No file.
  LogFile() = default;
  LogFile(LogFile &&other) noexcept { *this = std::move(other); }
  LogFile &operator=(LogFile &&other) noexcept;
  ~LogFile();

  const std::string &getPath() const { return path; }
  bool isOpen() const { return file >= 0; }

  /// Cuts off what comes after byte `size`.
  [[nodiscard]] runtime::Status cut(uint64_t size);
  /// Fails where the disk does not take the record, but not again until it has
  /// taken one: the file can be used as before.
  [[nodiscard]] runtime::Status add(std::string record);
  /// Whether `add` keeps a record of so many bytes, until the disk takes it.
  bool hasRoomFor(size_t bytes) const;
  /// Fails where records are lost.
  [[nodiscard]] runtime::Status close();

private:
  void writeRest();

  std::string path;
  const char *noun = "";
  int file = -1;
  std::deque<std::string> rest; ///< what the file lacks; part of the first one
  size_t restBytes = 0;
  int64_t dropped = 0; ///< records that are not in `rest`
  int failure = 0;     ///< errno of the last write
};

} // namespace tcc::tools

#endif // TCC_TOOLS_TCCRUN_LOGFILE_H
