# triax_module(NAME DEPS a b ... [LIBS x y ...])
#
# One static library triax_NAME from the folder's *.cc, and one test program triax_NAME_test from its
# *_test.cc. DEPS are other modules (they must agree with docs/modules.txt), LIBS are external.
function(triax_module name)
  cmake_parse_arguments(ARG "" "" "DEPS;LIBS;EXCLUDE" ${ARGN})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*.cc)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_(test|fuzz|bench)\\.cc$")
  list(FILTER tests INCLUDE REGEX "_test\\.cc$")
  foreach(skip ${ARG_EXCLUDE})
    list(FILTER sources EXCLUDE REGEX "${skip}")
  endforeach()

  set(deps)
  foreach(dep ${ARG_DEPS})
    list(APPEND deps triax_${dep})
  endforeach()
  if(sources)
    add_library(triax_${name} STATIC ${sources})
    target_link_libraries(triax_${name} PUBLIC triax_flags ${deps} ${ARG_LIBS} fmt::fmt Threads::Threads)
  else()
    add_library(triax_${name} INTERFACE)
    target_link_libraries(triax_${name} INTERFACE triax_flags ${deps} ${ARG_LIBS} fmt::fmt Threads::Threads)
  endif()

  if(TRIAX_TESTS AND tests)
    add_executable(triax_${name}_test ${tests})
    target_include_directories(triax_${name}_test PRIVATE ${CMAKE_SOURCE_DIR}/tests)
    target_link_libraries(triax_${name}_test PRIVATE triax_${name} GTest::gtest GTest::gmock GTest::gtest_main)
    target_compile_definitions(triax_${name}_test PRIVATE
      TRIAX_SOURCE_DIR="${CMAKE_SOURCE_DIR}" TRIAX_GOLDEN_DIR="${CMAKE_SOURCE_DIR}/tests/golden")
    add_test(NAME ${name} COMMAND triax_${name}_test --gtest_brief=1)
  endif()

  # libFuzzer targets: NAME_fuzz.cc becomes the program NAME_fuzz
  if(TRIAX_FUZZ)
    file(GLOB_RECURSE fuzzers CONFIGURE_DEPENDS ${CMAKE_CURRENT_SOURCE_DIR}/*_fuzz.cc)
    foreach(fuzzer ${fuzzers})
      get_filename_component(program ${fuzzer} NAME_WE)
      add_executable(${program} ${fuzzer})
      target_link_libraries(${program} PRIVATE triax_${name})
      target_link_options(${program} PRIVATE -fsanitize=fuzzer)
      set_target_properties(${program} PROPERTIES
        RUNTIME_OUTPUT_DIRECTORY ${CMAKE_BINARY_DIR}/fuzzers)
      add_dependencies(triax_fuzzers ${program})
    endforeach()
  endif()
endfunction()
