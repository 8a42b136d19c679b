# Warnings are errors in our code; third-party headers are system headers.
add_library(plateau_warnings INTERFACE)
target_compile_options(plateau_warnings INTERFACE
  -Wall -Wextra -Wpedantic -Werror -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Woverloaded-virtual
  -Wconversion -Wno-sign-conversion)
