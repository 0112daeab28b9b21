# What "make install" puts where: the program, the library (shared and static) with its headers, a pkg-config file and a
# CMake package, man pages and completion.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The public headers, closed under #include. A new function wants its name in cmake/weir.map.
set(prof_public_headers
  include/weir/base.h
  include/weir/kernel_clock.h
  include/weir/profiler.h
  include/weir/recorder.h
  include/weir/trace.h
)
set(weir_public_headers
  ${prof_public_headers}
  include/weir/dataset.h
  include/weir/decoder.h
  include/weir/frames.h
  include/weir/loader.h
  include/weir/report.h
  include/weir/stages.h
)

install(TARGETS weir weir_hdf5_program)

# ---- man pages and completion: the program writes them out of its own option tables ----
set(weir_share ${CMAKE_BINARY_DIR}/share)
if(CMAKE_CROSSCOMPILING AND NOT CMAKE_CROSSCOMPILING_EMULATOR)
  message(STATUS "man pages and completion: left out, the program does not run on this machine")
else()
  set(folders man/man1 bash-completion/completions zsh/site-functions)
  list(TRANSFORM folders PREPEND ${weir_share}/)
  list(GET folders 0 man)
  list(GET folders 1 bash)
  list(GET folders 2 zsh)
  add_custom_command(OUTPUT ${man}/weir.1
    COMMAND ${CMAKE_COMMAND} -E rm -rf ${weir_share}
    COMMAND ${CMAKE_COMMAND} -E make_directory ${folders}
    COMMAND weir --generate man ${man}
    COMMAND weir --generate bash ${bash}
    COMMAND weir --generate zsh ${zsh}
    DEPENDS weir COMMENT "Writing man pages and completion" VERBATIM)
  add_custom_target(weir_pages ALL DEPENDS ${man}/weir.1)
  install(DIRECTORY ${weir_share}/man/ DESTINATION ${CMAKE_INSTALL_MANDIR})
  install(DIRECTORY ${weir_share}/bash-completion ${weir_share}/zsh
    DESTINATION ${CMAKE_INSTALL_DATADIR})
endif()

# ---- the library ----
if(WEIR_STATIC_DEPS)
  message(STATUS "library: not installed with WEIR_STATIC_DEPS, which is for a program to be copied")
  return()
endif()

add_library(libweir_shared SHARED $<TARGET_OBJECTS:weir_prof_objects> $<TARGET_OBJECTS:weir_objects>)
set_target_properties(libweir_shared PROPERTIES OUTPUT_NAME weir EXPORT_NAME weir
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR}
  LINK_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/weir.map)
target_link_options(libweir_shared PRIVATE LINKER:--version-script=${CMAKE_SOURCE_DIR}/cmake/weir.map)
target_link_libraries(libweir_shared PRIVATE ${lib_libraries} Threads::Threads m)
set_target_properties(libweir PROPERTIES EXPORT_NAME weir_static)

# The profiler alone. libweir has it in itself: a program links one of the two.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/cmake/weir.map)
file(READ ${CMAKE_SOURCE_DIR}/cmake/weir.map map)
string(REGEX REPLACE "/\\* decoders/ \\*/.*local:" "local:" map "${map}")
file(CONFIGURE OUTPUT ${CMAKE_BINARY_DIR}/weir_prof.map CONTENT "${map}")
add_library(libweir_prof STATIC $<TARGET_OBJECTS:weir_prof_objects>)
set_target_properties(libweir_prof PROPERTIES OUTPUT_NAME weir_prof EXPORT_NAME prof_static)
target_link_libraries(libweir_prof PUBLIC Threads::Threads m PRIVATE $<BUILD_INTERFACE:weir::zlib>)
add_library(libweir_prof_shared SHARED $<TARGET_OBJECTS:weir_prof_objects>)
set_target_properties(libweir_prof_shared PROPERTIES OUTPUT_NAME weir_prof EXPORT_NAME prof
  VERSION ${PROJECT_VERSION} SOVERSION ${PROJECT_VERSION_MAJOR} LINK_DEPENDS ${CMAKE_BINARY_DIR}/weir_prof.map)
target_link_options(libweir_prof_shared PRIVATE LINKER:--version-script=${CMAKE_BINARY_DIR}/weir_prof.map)
target_link_libraries(libweir_prof_shared PRIVATE ${prof_libraries} Threads::Threads m)

# Two exports: a machine that has only what the shared library needs to run must still find that one.
install(TARGETS libweir_shared libweir_prof_shared EXPORT weirTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS libweir EXPORT weirStaticTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(TARGETS libweir_prof EXPORT weirProfStaticTargets INCLUDES DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
# kernel_clock.cuh is for users' own kernels, with a CUDA compiler.
install(FILES ${weir_public_headers} include/weir/kernel_clock.cuh DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/weir)

# The pkg-config modules behind lib_libraries, for those who link the static library.
foreach(kind lib prof)
  set(${kind}_modules)
  foreach(library ${${kind}_libraries})
    string(REGEX REPLACE "^weir::" "weir_" library ${library})
    get_target_property(module ${library} WEIR_MODULE)
    list(APPEND ${kind}_modules ${module})
  endforeach()
  list(JOIN ${kind}_modules " " ${kind}_modules)
endforeach()

set(weir_package ${CMAKE_INSTALL_LIBDIR}/cmake/weir)
configure_package_config_file(cmake/weirConfig.cmake.in ${CMAKE_BINARY_DIR}/weirConfig.cmake
  INSTALL_DESTINATION ${weir_package})
write_basic_package_version_file(${CMAKE_BINARY_DIR}/weirConfigVersion.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/weirConfig.cmake ${CMAKE_BINARY_DIR}/weirConfigVersion.cmake
  DESTINATION ${weir_package})
install(EXPORT weirTargets NAMESPACE weir:: DESTINATION ${weir_package})
install(EXPORT weirStaticTargets NAMESPACE weir:: DESTINATION ${weir_package})
install(EXPORT weirProfStaticTargets NAMESPACE weir:: DESTINATION ${weir_package})

# Relative to the file itself, so that an installed tree may be moved.
set(here ${CMAKE_INSTALL_FULL_LIBDIR}/pkgconfig)
file(RELATIVE_PATH weir_pc_prefix ${here} ${CMAKE_INSTALL_PREFIX})
file(RELATIVE_PATH weir_pc_libdir ${here} ${CMAKE_INSTALL_FULL_LIBDIR})
file(RELATIVE_PATH weir_pc_includedir ${here} ${CMAKE_INSTALL_FULL_INCLUDEDIR})
set(pc_name weir)
set(pc_description "Loader of robot episodes that times every stage")
set(pc_modules ${lib_modules})
configure_file(cmake/weir.pc.in weir.pc @ONLY)
set(pc_name weir_prof)
set(pc_description "Profiler for C programs: stages, recorded windows, traces")
set(pc_modules ${prof_modules})
configure_file(cmake/weir.pc.in weir_prof.pc @ONLY)
install(FILES ${CMAKE_BINARY_DIR}/weir.pc ${CMAKE_BINARY_DIR}/weir_prof.pc
  DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
