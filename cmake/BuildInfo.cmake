# Writes OUTPUT, a header with the commit, compiler and build type, where it would change.
set(commit "")
find_package(Git QUIET)
if(Git_FOUND)
  execute_process(
    COMMAND "${GIT_EXECUTABLE}" -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12 --exclude=*
    OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(commit STREQUAL "")
  set(commit "unknown")
endif()
set(content "#pragma once

#define PLATEAU_COMMIT \"${commit}\"
#define PLATEAU_COMPILER \"${COMPILER}\"
#define PLATEAU_BUILD_TYPE \"${BUILD_TYPE}\"
")
set(before "")
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" before)
endif()
if(NOT content STREQUAL before)
  file(WRITE "${OUTPUT}" "${content}")
endif()
