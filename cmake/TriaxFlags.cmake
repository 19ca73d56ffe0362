# Flags of every target. The baseline is x86-64-v2; only the per-set kernel files go above it.
if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "" FORCE)
endif()

add_library(triax_flags INTERFACE)
target_include_directories(triax_flags INTERFACE ${CMAKE_SOURCE_DIR}/src)
target_compile_options(triax_flags INTERFACE
  -march=x86-64-v2 -fno-math-errno -ffp-contract=off
  -Wall -Wextra -Wpedantic -Wshadow -Wnon-virtual-dtor -Wold-style-cast -Wconversion
  -Wno-sign-conversion)
if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees overlapping copies in std::string::operator+ that are not there (GCC PR 105329).
  target_compile_options(triax_flags INTERFACE -Wno-restrict)
endif()
if(TRIAX_WERROR)
  target_compile_options(triax_flags INTERFACE -Werror)
endif()
if(TRIAX_SANITIZE)
  target_compile_options(triax_flags INTERFACE -fsanitize=${TRIAX_SANITIZE} -fno-omit-frame-pointer
    -fno-sanitize-recover=all)
  target_link_options(triax_flags INTERFACE -fsanitize=${TRIAX_SANITIZE})
endif()
if(TRIAX_FUZZ)
  target_compile_options(triax_flags INTERFACE -fsanitize=fuzzer-no-link)
endif()

find_program(CCACHE ccache)
if(CCACHE)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CCACHE})
endif()
find_program(MOLD mold)
if(MOLD)
  target_link_options(triax_flags INTERFACE -fuse-ld=mold)
endif()
