# cmake -DOUT=FILE -DFOLDER=DIR -P embed.cmake: a C++ file with the parts of the page.
function(add_asset name)
  set(text "")
  foreach(file ${ARGN})
    file(READ ${FOLDER}/${file} part)
    string(APPEND text "${part}")
  endforeach()
  set_property(GLOBAL APPEND_STRING PROPERTY source
    "const char k${name}[] = R\"asset(${text})asset\";\n")
endfunction()

set_property(GLOBAL PROPERTY source "#include \"tools/report/Assets.h\"\n\nnamespace tcc::tools {\n")
add_asset(PageFrame page.html)
add_asset(PageStyle page.css)
add_asset(PageScript format.js element.js table.js chart.js page.js)
get_property(source GLOBAL PROPERTY source)
file(WRITE ${OUT} "${source}} // namespace tcc::tools\n")
