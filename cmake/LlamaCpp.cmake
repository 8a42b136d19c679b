# Imports the cached llama.cpp build (scripts/llama-cpp.sh makes it on first use) as the targets
#   llama_cpp::ggml, llama_cpp::llama, llama_cpp::mtmd, llama_cpp::jinja
find_package(Threads REQUIRED)

set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/scripts/llama-cpp.sh"
  "${CMAKE_CURRENT_SOURCE_DIR}/cmake/llama.cpp/CMakeLists.txt")
execute_process(
  COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/scripts/llama-cpp.sh" dir
  OUTPUT_VARIABLE LLAMA_CPP_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE llama_cpp_result)
if(NOT llama_cpp_result EQUAL 0)
  message(FATAL_ERROR "llama.cpp is not available; the line above says why")
endif()

function(plateau_import name archive)
  add_library(llama_cpp::${name} STATIC IMPORTED GLOBAL)
  set_target_properties(llama_cpp::${name} PROPERTIES
    IMPORTED_LOCATION "${LLAMA_CPP_DIR}/build/${archive}"
    INTERFACE_SYSTEM_INCLUDE_DIRECTORIES "${LLAMA_CPP_DIR}/source/${ARGV2}"
    INTERFACE_INCLUDE_DIRECTORIES "${LLAMA_CPP_DIR}/source/${ARGV2}")
endfunction()

plateau_import(ggml_base llama.cpp/ggml/src/libggml-base.a ggml/include)
plateau_import(ggml_cpu llama.cpp/ggml/src/libggml-cpu.a ggml/include)
plateau_import(ggml llama.cpp/ggml/src/libggml.a ggml/include)
plateau_import(llama llama.cpp/src/libllama.a include)
plateau_import(mtmd llama.cpp/tools/mtmd/libmtmd.a tools/mtmd)
plateau_import(jinja libllama-jinja.a common)

# OpenMP is linked by file, so that clang and g++ builds use the runtime that ggml was built with.
target_link_libraries(llama_cpp::ggml_base INTERFACE Threads::Threads m gomp)
target_link_libraries(llama_cpp::ggml_cpu INTERFACE llama_cpp::ggml_base)
target_link_libraries(llama_cpp::ggml INTERFACE llama_cpp::ggml_cpu llama_cpp::ggml_base dl)
target_link_libraries(llama_cpp::llama INTERFACE llama_cpp::ggml)
target_link_libraries(llama_cpp::mtmd INTERFACE llama_cpp::llama)
target_include_directories(llama_cpp::jinja SYSTEM INTERFACE
  "${LLAMA_CPP_DIR}/source/vendor/nlohmann" "${LLAMA_CPP_DIR}/source/vendor")
target_link_libraries(llama_cpp::jinja INTERFACE llama_cpp::ggml)
