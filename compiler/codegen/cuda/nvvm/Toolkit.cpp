#include "compiler/codegen/cuda/nvvm/Toolkit.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include <vector>

using namespace tcc::cuda;
namespace path = llvm::sys::path;

static std::vector<std::string> getToolkitFolders() {
  std::vector<std::string> folders;
  auto add = [&](llvm::StringRef folder) {
    if (!folder.empty() && !llvm::is_contained(folders, folder))
      folders.push_back(folder.str());
  };
  for (const char *variable : {"CUDA_HOME", "CUDA_PATH"})
    add(llvm::sys::Process::GetEnv(variable).value_or(""));
  if (auto ptxas = llvm::sys::findProgramByName("ptxas"))
    add(path::parent_path(path::parent_path(*ptxas)));
  add(TCC_CUDA_TOOLKIT);
  add("/usr/local/cuda");
  return folders;
}

llvm::Expected<std::string>
tcc::cuda::findToolkitFile(llvm::StringRef what,
                           llvm::ArrayRef<llvm::StringRef> paths) {
  std::vector<std::string> folders = getToolkitFolders();
  for (llvm::StringRef folder : folders)
    for (llvm::StringRef file : paths) {
      llvm::SmallString<128> candidate(folder);
      path::append(candidate, file);
      if (llvm::sys::fs::exists(candidate))
        return std::string(candidate);
    }
  return llvm::createStringError(
      "cannot find " + what.str() + " of the CUDA toolkit; looked for " +
      llvm::join(paths, ", ") + " in " + llvm::join(folders, ", ") +
      " (set CUDA_HOME)");
}
