# weir_with(NAME MODULE PURPOSE [ARCHIVE...]): an optional library, found by pkg-config.
#
# Creates the cache variable WEIR_WITH_<NAME> = AUTO|ON|OFF and sets WEIR_HAVE_<NAME> to 1 or 0 in the caller's scope. ON
# fails if the library is missing; AUTO uses it if found. weir::<NAME> is then the target to link and <NAME>_VERSION the
# version; archives are for WEIR_STATIC_DEPS.
function(weir_with name module purpose)
  set(WEIR_WITH_${name} AUTO CACHE STRING "${purpose}: AUTO, ON or OFF")
  set_property(CACHE WEIR_WITH_${name} PROPERTY STRINGS AUTO ON OFF)
  set(wanted "${WEIR_WITH_${name}}")
  if(NOT wanted MATCHES "^(AUTO|ON|OFF)$")
    message(FATAL_ERROR "WEIR_WITH_${name} is '${wanted}'; it must be AUTO, ON or OFF")
  endif()
  set(have 0)
  if(NOT wanted STREQUAL "OFF")
    pkg_check_modules(${name} QUIET IMPORTED_TARGET GLOBAL ${module})
    if(${name}_FOUND)
      set(have 1)
      weir_library(${name} ${ARGN})
      string(REGEX REPLACE "[<>=].*" "" module ${module})
      set_target_properties(weir_${name} PROPERTIES WEIR_MODULE ${module}) # in case the installed library links it
    elseif(wanted STREQUAL "ON")
      message(FATAL_ERROR "WEIR_WITH_${name}=ON, but pkg-config finds no ${module}: install its development package, "
                          "or set WEIR_WITH_${name} to AUTO or OFF")
    endif()
  endif()
  message(STATUS "${purpose}: ${have} (WEIR_WITH_${name}=${wanted})")
  set(WEIR_HAVE_${name} ${have} PARENT_SCOPE)
  set(${name}_VERSION "${${name}_VERSION}" PARENT_SCOPE)
endfunction()
