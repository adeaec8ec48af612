# The run time is compiled twice: by clang-19 to bitcode, which the compiler links into every generated module, and by
# the ordinary compiler as the library tfc_runtime, so that sanitizers and debuggers see it.
find_program(CLANG_19 NAMES clang++-19 clang-19 REQUIRED)
find_program(LLVM_LINK_19 NAMES llvm-link-19 HINTS ${LLVM_TOOLS_BINARY_DIR} REQUIRED)
file(GLOB runtime_sources CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.cpp)
file(GLOB runtime_headers CONFIGURE_DEPENDS ${CMAKE_SOURCE_DIR}/runtime/*.h ${CMAKE_SOURCE_DIR}/runtime/*.def)

set(runtime_bitcode ${CMAKE_BINARY_DIR}/runtime/runtime.bc)
file(MAKE_DIRECTORY ${CMAKE_BINARY_DIR}/runtime)
set(parts "")
foreach(source ${runtime_sources})
  get_filename_component(stem ${source} NAME_WE)
  set(part ${CMAKE_BINARY_DIR}/runtime/${stem}.bc)
  add_custom_command(
    OUTPUT ${part}
    COMMAND ${CLANG_19} -x c++ -std=c++20 -O2 -fPIC -fno-exceptions -fno-rtti -fno-threadsafe-statics -ffp-contract=off
            -fno-math-errno -fvisibility=hidden -fno-vectorize -fno-slp-vectorize -fno-ident -Wall -Wextra
            -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -I${CMAKE_SOURCE_DIR} -emit-llvm -c ${source} -o ${part}
    DEPENDS ${source} ${runtime_headers}
    VERBATIM)
  list(APPEND parts ${part})
endforeach()
add_custom_command(OUTPUT ${runtime_bitcode} COMMAND ${LLVM_LINK_19} ${parts} -o ${runtime_bitcode} DEPENDS ${parts}
                   VERBATIM)

tfc_embed(tfc_codegen tfc_runtime_bitcode ${runtime_bitcode})

add_library(tfc_runtime STATIC ${runtime_sources})
target_include_directories(tfc_runtime PUBLIC ${CMAKE_SOURCE_DIR})
target_compile_options(tfc_runtime PRIVATE -fno-exceptions -fno-rtti -ffp-contract=off)
target_link_libraries(tfc_runtime PUBLIC Threads::Threads m)
