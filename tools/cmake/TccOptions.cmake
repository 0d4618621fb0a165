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

# clang reads the precompiled header alone, whose text need not be named, too: its
# path would tell checkouts apart.
set(CMAKE_CXX_COMPILE_OPTIONS_USE_PCH -Xclang -include-pch -Xclang <PCH_FILE>)

# tcc_precompile(target HEADERS header... [AFTER target...]): precompiles headers, which
# the targets AFTER generate, for the sources of a target. What is precompiled has paths
# of the checkout inside: a sum of the text that it was made of lies beside it, by which
# ccache compares it (CCACHE_PCH_EXTSUM) and shares objects between checkouts.
function(tcc_precompile target)
  cmake_parse_arguments(ARG "" "" "HEADERS;AFTER" ${ARGN})
  target_compile_options(${target} PRIVATE
    $<$<COMPILE_LANGUAGE:CXX>:SHELL:-Xclang -fno-pch-timestamp>)
  target_precompile_headers(${target} PRIVATE ${ARG_HEADERS})
  get_target_property(folder ${target} BINARY_DIR)
  set(header ${folder}/CMakeFiles/${target}.dir/cmake_pch.hxx)
  add_custom_command(OUTPUT ${header}.pch.sum
    COMMAND ${CMAKE_CXX_COMPILER} -std=c++20 -DNDEBUG -w
      "-I$<JOIN:$<TARGET_PROPERTY:${target},INCLUDE_DIRECTORIES>,;-I>"
      -E -P -x c++ ${header} -o ${header}.text -MD -MF ${header}.d -MT ${header}.pch.sum
    COMMAND sha256sum < ${header}.text > ${header}.pch.sum
    COMMAND ${CMAKE_COMMAND} -E rm ${header}.text
    DEPENDS ${header} DEPFILE ${header}.d COMMAND_EXPAND_LISTS)
  add_custom_target(${target}_headers_sum DEPENDS ${header}.pch.sum)
  if(ARG_AFTER)
    add_dependencies(${target}_headers_sum ${ARG_AFTER})
    add_dependencies(${target} ${ARG_AFTER})
  endif()
  add_dependencies(${target} ${target}_headers_sum)
endfunction()

# tcc_reuse_precompiled(target owner): what tcc_precompile made for another target.
function(tcc_reuse_precompiled target owner)
  target_precompile_headers(${target} REUSE_FROM ${owner})
  add_dependencies(${target} ${owner}_headers_sum)
endfunction()

# tcc_unite(target [APART file...]): in a sanitized build, which CI makes anew each time,
# sources of the target are compiled eight at a time: reading headers is most of a
# compilation. The files APART have names that others of them have, too.
function(tcc_unite target)
  cmake_parse_arguments(ARG "" "" "APART" ${ARGN})
  if(NOT TCC_SANITIZE)
    return()
  endif()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_BATCH_SIZE 8)
  set_source_files_properties(${ARG_APART} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
endfunction()

# tcc_precompile_runtime(target header...): precompiles, beside the headers given, the
# standard library's and the package schema's: parsing them is most of the time of a
# compilation of the runtime.
function(tcc_precompile_runtime target)
  tcc_precompile(${target} AFTER tcc_program_header HEADERS
    <algorithm> <atomic> <chrono> <filesystem> <fstream> <functional> <map> <memory>
    <mutex> <numeric> <optional> <span> <string> <thread> <unordered_map> <vector>
    <runtime/package/Program_generated.h> ${ARGN})
endfunction()

# tcc_install_program(target component): wherever the installation is moved, the program
# opens the libraries of devices and ranks that lie in it, and finds those that it was
# linked with outside of the system's folders.
function(tcc_install_program target component)
  file(RELATIVE_PATH libraries /${CMAKE_INSTALL_BINDIR} /${CMAKE_INSTALL_LIBDIR})
  set_target_properties(${target} PROPERTIES
    INSTALL_RPATH "$ORIGIN/${libraries}" INSTALL_RPATH_USE_LINK_PATH ON)
  install(TARGETS ${target} RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR}
    COMPONENT ${component})
endfunction()
