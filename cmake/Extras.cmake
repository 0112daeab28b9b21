# Extras: parts of the program that the loader does not need. The CMakeLists.txt in each folder extras/NAME adds sources
# to the program, the CUDA module and the Python package; its tests/ and bench/ have their own. An extra is built unless
# WEIR_WITH_<NAME> is OFF or its folder is missing. extras/common holds shared code.
set(weir_extras)
foreach(extra train motion scenario)
  string(TOUPPER ${extra} name)
  option(WEIR_WITH_${name} "Build extras/${extra}: weir ${extra}" ON)
  if(WEIR_WITH_${name} AND EXISTS ${CMAKE_SOURCE_DIR}/extras/common AND EXISTS ${CMAKE_SOURCE_DIR}/extras/${extra})
    list(APPEND weir_extras ${extra})
  endif()
endforeach()
list(JOIN weir_extras " " shown)
message(STATUS "Extras: ${shown}")

# weir_extra_rows(TABLE ROW...): adds rows to a table of generated/base/extras.h, where the core finds the extras:
# COMMANDS (weir_cmd_<row>), GPU (function tables of GPU backends), CUDA (function tables in the CUDA module:
# weir_<row>_cuda) and PYTHON (weir_<row>_begin in the extension).
function(weir_extra_rows table)
  set_property(GLOBAL APPEND PROPERTY WEIR_EXTRA_${table} ${ARGN})
endfunction()

# weir_extra_library(NAME SOURCE...): an extra's library, linked into the program.
function(weir_extra_library name)
  add_library(${name} STATIC ${ARGN})
  target_link_libraries(${name} PUBLIC libweir)
  target_link_libraries(weir_cli PUBLIC ${name})
  set_property(GLOBAL APPEND PROPERTY WEIR_EXTRA_LIBRARIES ${name})
endfunction()

# Adds the extras, then writes the tables; call after defining weir_cli, weir_cuda and weir_python.
function(weir_add_extras)
  if(weir_extras)
    add_subdirectory(extras/common)
  endif()
  foreach(extra ${weir_extras})
    add_subdirectory(extras/${extra})
  endforeach()
  set(text "/* The extras of this build. Written by cmake/Extras.cmake. */\n")
  foreach(table COMMANDS GPU CUDA PYTHON)
    get_property(rows GLOBAL PROPERTY WEIR_EXTRA_${table})
    list(TRANSFORM rows REPLACE "(.+)" " ROW(\\1)")
    list(JOIN rows "" rows)
    string(APPEND text "#define WEIR_EXTRA_${table}(ROW)${rows}\n")
  endforeach()
  file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/generated/base/extras.h CONTENT "${text}" @ONLY)
endfunction()

# For tests/ and bench/: adds that subfolder of each extra. Programs go to the same build folder as the core's.
macro(weir_add_extras_in folder)
  set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/${folder})
  foreach(extra common ${weir_extras})
    if(weir_extras AND EXISTS ${CMAKE_SOURCE_DIR}/extras/${extra}/${folder}/CMakeLists.txt)
      add_subdirectory(${CMAKE_SOURCE_DIR}/extras/${extra}/${folder} ${CMAKE_BINARY_DIR}/${folder}/extras/${extra})
    endif()
  endforeach()
endmacro()
