# Flags that every target of the house shares.
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(TCC_SANITIZE)
  list(JOIN TCC_SANITIZE "," sanitizers)
  # C programs may pass any number as an enum of the C API, which checks it.
  add_compile_options(-fsanitize=${sanitizers} -fno-sanitize=enum
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitizers})
endif()
