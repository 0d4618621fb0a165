# Flags that every target of the house shares.
add_compile_options(-Wall -Wextra -Wno-unused-parameter)
if(TCC_SANITIZE)
  list(JOIN TCC_SANITIZE "," sanitizers)
  add_compile_options(-fsanitize=${sanitizers} -fno-omit-frame-pointer -fno-sanitize-recover=all)
  add_link_options(-fsanitize=${sanitizers})
endif()
