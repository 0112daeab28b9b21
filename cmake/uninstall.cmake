# Removes the files of the last installation, and Weir's folders that are empty then:
# [DESTDIR=...] cmake -DMANIFEST=build/release/install_manifest.txt -P cmake/uninstall.cmake
if(NOT EXISTS "${MANIFEST}")
  message(FATAL_ERROR "${MANIFEST} is not there: nothing was installed from here")
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
list(SORT folders ORDER DESCENDING) # the inner ones first
foreach(folder IN LISTS folders)
  execute_process(COMMAND rmdir -- "${folder}" ERROR_QUIET) # refuses one that holds something else
endforeach()
file(REMOVE "${MANIFEST}")
