# Removes the files of the last installation, and Weir's folders that end up empty:
# [DESTDIR=...] cmake -DMANIFEST=build/release/install_manifest.txt -P cmake/uninstall.cmake
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} does not exist: nothing was installed from here")
endif()
file(STRINGS "${MANIFEST}" paths)
set(folders)
foreach(path IN LISTS paths)
  set(path "$ENV{DESTDIR}${path}")
  message(STATUS "Removing ${path}")
  file(REMOVE "${path}")
  while(path MATCHES "/(include|cmake)/weir/")
    get_filename_component(path "${path}" DIRECTORY)
    list(APPEND folders "${path}")
  endwhile()
endforeach()
list(REMOVE_DUPLICATES folders)
list(SORT folders ORDER DESCENDING) # innermost first
foreach(folder IN LISTS folders)
  execute_process(COMMAND rmdir -- "${folder}" ERROR_QUIET) # keeps non-empty folders
endforeach()
file(REMOVE "${MANIFEST}")
