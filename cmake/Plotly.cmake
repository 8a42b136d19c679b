# Finds the pinned plotly.js (scripts/plotly.sh downloads it on first use): PLOTLY_DIR.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
  "${CMAKE_CURRENT_SOURCE_DIR}/scripts/plotly.sh")
execute_process(
  COMMAND "${CMAKE_CURRENT_SOURCE_DIR}/scripts/plotly.sh"
  OUTPUT_VARIABLE PLOTLY_DIR OUTPUT_STRIP_TRAILING_WHITESPACE
  RESULT_VARIABLE plotly_result)
if(NOT plotly_result EQUAL 0)
  message(FATAL_ERROR "plotly.js is not available; the line above says why")
endif()
