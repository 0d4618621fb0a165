# Flags that every target of the house shares.
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(TCC_SANITIZE)
  list(JOIN TCC_SANITIZE "," sanitizers)
  # C programs may pass any number as an enum of the C API, which checks it.
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize=enum
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  # Relative, as ccache shares objects between checkouts: compilers run in the build's
  # folder.
  file(RELATIVE_PATH ignored ${PROJECT_BINARY_DIR}
    ${PROJECT_SOURCE_DIR}/tools/cmake/sanitize-ignore.txt)
  add_compile_options(-fsanitize-ignorelist=${ignored})
  add_link_options(-fsanitize=${sanitizers})
endif()

# tcc_precompile_headers(target header...): precompiles, beside the headers given,
# the standard library's and the package schema's: parsing them is most of the time
# of a compilation of the runtime.
function(tcc_precompile_headers target)
  add_dependencies(${target} tcc_program_header)
  # Precompiled headers are compared by content, so that ccache can restore them.
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
  target_precompile_headers(${target} PRIVATE
    <algorithm> <atomic> <chrono> <filesystem> <fstream> <functional> <map> <memory>
    <mutex> <numeric> <optional> <span> <string> <thread> <unordered_map> <vector>
    ${PROJECT_BINARY_DIR}/runtime/package/Program_generated.h ${ARGN})
endfunction()
