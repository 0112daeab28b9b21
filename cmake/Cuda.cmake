# libweir_cuda.so, with all code that includes CUDA headers: WEIR_WITH_CUDA = AUTO|ON|OFF. Building it requires the CUDA
# Toolkit (nvcc, cudart). CUPTI and nvJPEG are optional: only their headers are used, their libraries are loaded at run
# time. nvJPEG's header comes with the toolkit, or from PyPI: "make nvjpeg".
set(WEIR_WITH_CUDA AUTO CACHE STRING "The CUDA module: AUTO, ON or OFF")
set_property(CACHE WEIR_WITH_CUDA PROPERTY STRINGS AUTO ON OFF)
if(NOT WEIR_WITH_CUDA MATCHES "^(AUTO|ON|OFF)$")
  message(FATAL_ERROR "WEIR_WITH_CUDA is '${WEIR_WITH_CUDA}'; it must be AUTO, ON or OFF")
endif()
set(WEIR_HAVE_CUDA 0)
set(why "")
if(NOT WEIR_WITH_CUDA STREQUAL "OFF")
  find_package(CUDAToolkit 12.4 QUIET)
  if(NOT CUDAToolkit_FOUND)
    set(why "no CUDA Toolkit 12.4 or later was found (nvcc on the PATH, or CUDAToolkit_ROOT)")
  elseif(NOT TARGET CUDA::cudart_static)
    set(why "the CUDA Toolkit in ${CUDAToolkit_LIBRARY_ROOT} has no libcudart_static.a")
  else()
    include(CheckLanguage)
    if(NOT DEFINED CMAKE_CUDA_COMPILER)
      set(ENV{CUDACXX} ${CUDAToolkit_NVCC_EXECUTABLE})
    endif()
    check_language(CUDA)
    if(CMAKE_CUDA_COMPILER)
      set(WEIR_HAVE_CUDA 1)
    else()
      set(why "${CUDAToolkit_NVCC_EXECUTABLE} cannot compile (it needs a C++ compiler, such as g++)")
    endif()
  endif()
endif()
if(WEIR_WITH_CUDA STREQUAL "ON" AND NOT WEIR_HAVE_CUDA)
  message(FATAL_ERROR "WEIR_WITH_CUDA=ON, but ${why}: install it, or set WEIR_WITH_CUDA to AUTO or OFF")
endif()
message(STATUS "The CUDA module: ${WEIR_HAVE_CUDA} (WEIR_WITH_CUDA=${WEIR_WITH_CUDA})")
if(NOT WEIR_HAVE_CUDA)
  return()
endif()

if(NOT DEFINED CMAKE_CUDA_ARCHITECTURES)
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
enable_language(CUDA)
set(CMAKE_CUDA_FLAGS_DEBUG "${CMAKE_CUDA_FLAGS_RELEASE}") # kernels are always timed; also shared by a compiler cache
file(GLOB hints ${CMAKE_SOURCE_DIR}/build/nvjpeg-venv/lib/python3*/site-packages/nvidia/cu13/include)
find_path(WEIR_NVJPEG_INCLUDE_DIR nvjpeg.h HINTS ${CUDAToolkit_INCLUDE_DIRS} ${hints})
find_path(WEIR_CUPTI_INCLUDE_DIR cupti.h HINTS ${CUDAToolkit_INCLUDE_DIRS} PATH_SUFFIXES ../extras/CUPTI/include)
# Records have CUPTI 13.0's layout.
set(WEIR_HAVE_CUPTI 0)
if(WEIR_CUPTI_INCLUDE_DIR)
  file(STRINGS ${WEIR_CUPTI_INCLUDE_DIR}/cupti_activity.h found REGEX "^} CUpti_ActivityKernel10;")
  if(found)
    set(WEIR_HAVE_CUPTI 1)
  endif()
endif()
find_path(WEIR_CUBLAS_INCLUDE_DIR cublas_v2.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
find_path(WEIR_CUDNN_INCLUDE_DIR cudnn.h HINTS ${CUDAToolkit_INCLUDE_DIRS})
message(STATUS "  cuBLAS's header: ${WEIR_CUBLAS_INCLUDE_DIR}, cuDNN's: ${WEIR_CUDNN_INCLUDE_DIR} (training needs both)")
message(STATUS "  nvJPEG's header: ${WEIR_NVJPEG_INCLUDE_DIR}, CUPTI's: ${WEIR_CUPTI_INCLUDE_DIR} (13.0 or later: ${WEIR_HAVE_CUPTI})")

# add_weir_cuda(): call after defining the libraries.
function(add_weir_cuda)
  add_library(weir_cuda MODULE
    cuda/cuda_calls.c cuda/cuda_context.c cuda/cuda_exports.c
    base/err.c
    cuda/nvtx_cuda.c
    base/text.c
    cuda/gpu_cuda.c
    cuda/gpu_kernels.cu
  )
  set_target_properties(weir_cuda PROPERTIES C_VISIBILITY_PRESET hidden CUDA_VISIBILITY_PRESET hidden
    LIBRARY_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR} CUDA_STANDARD 17)
  target_include_directories(weir_cuda PRIVATE ${CMAKE_SOURCE_DIR} ${CMAKE_BINARY_DIR}/generated)
  target_include_directories(weir_cuda SYSTEM PRIVATE ${CUDAToolkit_INCLUDE_DIRS})
  target_compile_definitions(weir_cuda PRIVATE
    WEIR_CUDA_TOOLKIT="${CUDAToolkit_VERSION_MAJOR}.${CUDAToolkit_VERSION_MINOR}")
  target_link_libraries(weir_cuda PRIVATE CUDA::cudart_static ${CMAKE_DL_LIBS} Threads::Threads)
  # Its host code needs no C++ runtime, which some machines lack; libgcc's unwinder would need glibc 2.35.
  target_compile_options(weir_cuda PRIVATE
    $<$<COMPILE_LANGUAGE:CUDA>:-Xcompiler=-fno-exceptions,-fno-asynchronous-unwind-tables,-fno-threadsafe-statics>)
  target_link_options(weir_cuda PRIVATE LINKER:--exclude-libs,ALL LINKER:--no-undefined -static-libstdc++ -static-libgcc)
  if(WEIR_HAVE_CUPTI)
    target_sources(weir_cuda PRIVATE cuda/cupti.c cuda/cupti_library.c cuda/cupti_priv.h cuda/cupti_read.c
      cuda/cupti_records.c)
    target_include_directories(weir_cuda SYSTEM PRIVATE ${WEIR_CUPTI_INCLUDE_DIR})
    target_compile_definitions(weir_cuda PRIVATE WEIR_HAVE_CUPTI)
  endif()
  if(WEIR_NVJPEG_INCLUDE_DIR)
    target_sources(weir_cuda PRIVATE cuda/nvjpeg.c base/files.c base/shortage.c)
    # Not for the kernels, whose object files a compiler cache then shares with builds without nvJPEG.
    target_include_directories(weir_cuda SYSTEM PRIVATE $<$<COMPILE_LANGUAGE:C>:${WEIR_NVJPEG_INCLUDE_DIR}>)
    target_compile_definitions(weir_cuda PRIVATE $<$<COMPILE_LANGUAGE:C>:WEIR_HAVE_NVJPEG>)
  endif()
  add_dependencies(weir weir_cuda)
  install(TARGETS weir_cuda LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR})
endfunction()
