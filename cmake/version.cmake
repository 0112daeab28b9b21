# Writes the version header at build time: cmake -DSOURCE=... -DOUTPUT=... -DWEIR_VERSION=... -P version.cmake
# The file changes only with the version, so that a build without changes does nothing.
set(WEIR_GIT_DESCRIBE "unknown")
# A release archive unpacked inside another project's checkout must not use that project's version.
if(EXISTS "${SOURCE}/.git")
  execute_process(COMMAND git describe --always --dirty --tags WORKING_DIRECTORY "${SOURCE}" OUTPUT_VARIABLE described
                  ERROR_QUIET OUTPUT_STRIP_TRAILING_WHITESPACE RESULT_VARIABLE status)
  if(status EQUAL 0 AND described)
    set(WEIR_GIT_DESCRIBE "${described}")
  endif()
endif()
configure_file("${SOURCE}/base/version.h.in" "${OUTPUT}" @ONLY)
