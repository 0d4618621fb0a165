#include "tools/tcc-run/RunResult.h"

#include "runtime/base/OutputFile.h"

#include <filesystem>
#include <fstream>

using namespace tcc;
using namespace tcc::tools;
using namespace tcc::runtime;
using nlohmann::ordered_json;

static std::string resultOf(const std::string &folder) {
  return concat(folder, "/result.json");
}

Status tools::writeRunResult(const std::string &folder,
                             const ordered_json &result) {
  auto file = OutputFile::create(resultOf(folder));
  if (!file.ok())
    return file.takeStatus();
  // Names are the model's, and paths are any bytes.
  file->write(result.dump(/*indent=*/-1, ' ', /*ensure_ascii=*/false,
                          ordered_json::error_handler_t::replace) +
              "\n");
  return file->commit();
}

void tools::removeRunResult(const std::string &folder) {
  std::error_code error;
  std::filesystem::remove(resultOf(folder), error);
}

Result<ordered_json> tools::readRunResult(const std::string &folder) {
  std::string path = resultOf(folder);
  std::ifstream file(path);
  if (!file)
    return ordered_json();
  auto document = ordered_json::parse(file, nullptr,
                                      /*allow_exceptions=*/false);
  if (!document.is_object())
    return makeError(Code::BadData, "'", path, "' is ",
                     document.is_discarded() ? "no JSON" : document.type_name(),
                     ", expected an object that says how a run ended");
  return document;
}
