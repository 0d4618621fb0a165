//===- ZipFile.h - Archives made in memory ----------------------*- C++ -*-===//
#ifndef TCC_TESTS_FUZZ_TARGETS_ZIPFILE_H
#define TCC_TESTS_FUZZ_TARGETS_ZIPFILE_H

#include "frontends/MappedFile.h"
#include <string>
#include <utility>
#include <vector>

namespace tcc {

/// A zip file of entries, none of them compressed, in the folder "m".
MappedFile
makeZip(const std::vector<std::pair<std::string, std::string>> &entries);

} // namespace tcc

#endif // TCC_TESTS_FUZZ_TARGETS_ZIPFILE_H
