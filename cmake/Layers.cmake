# plateau_layer(NAME [SOURCES ...] [LINKS ...] [PRIVATE_LINKS ...])
#
# One library per folder of src/. A layer's headers are reached as "NAME/header.h" through a
# directory that holds nothing but that one folder, so an include of a layer that is not linked
# does not compile.
function(plateau_layer name)
  cmake_parse_arguments(arg "" "FOLDER" "SOURCES;LINKS;PRIVATE_LINKS" ${ARGN})
  if(NOT arg_FOLDER)
    set(arg_FOLDER ${name})
  endif()
  set(visible "${CMAKE_BINARY_DIR}/layers/${name}")
  file(MAKE_DIRECTORY "${visible}")
  file(CREATE_LINK "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../src/${arg_FOLDER}" "${visible}/${arg_FOLDER}" SYMBOLIC)
  add_library(plateau_${name} STATIC ${arg_SOURCES})
  target_include_directories(plateau_${name} PUBLIC "${visible}" "${CMAKE_CURRENT_FUNCTION_LIST_DIR}/../include")
  target_link_libraries(plateau_${name} PUBLIC ${arg_LINKS}
                        PRIVATE plateau_warnings ${arg_PRIVATE_LINKS})
endfunction()
