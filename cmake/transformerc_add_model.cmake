# transformerc_add_model(TARGET model.toml [STATIC|SHARED] [CPU x] [PRECISION f32|f64] [SET key=value ...])
#
# Compiles a description at build time, and again when the description, a file it extends or the compiler changes.
# TARGET is a library to link with: it brings the folder of NAME.h, threads and libm. NAME is the model's own name. The
# properties TRANSFORMERC_NAME and TRANSFORMERC_DIR of TARGET say what it is and where the files are; SHARED also writes
# the Python module NAME.py there.
function(transformerc_add_model target description)
  cmake_parse_arguments(PARSE_ARGV 2 ARG "STATIC;SHARED" "CPU;PRECISION" "SET")
  if(ARG_UNPARSED_ARGUMENTS)
    message(FATAL_ERROR "transformerc_add_model: unknown argument '${ARG_UNPARSED_ARGUMENTS}'")
  endif()
  if(ARG_STATIC AND ARG_SHARED)
    message(FATAL_ERROR "transformerc_add_model: STATIC and SHARED exclude each other")
  endif()
  get_filename_component(description "${description}" ABSOLUTE BASE_DIR "${CMAKE_CURRENT_SOURCE_DIR}")

  set(flags "")
  if(ARG_CPU)
    list(APPEND flags "--cpu=${ARG_CPU}")
  endif()
  if(ARG_PRECISION)
    list(APPEND flags "--precision=${ARG_PRECISION}")
  endif()
  foreach(setting IN LISTS ARG_SET)
    list(APPEND flags "--set" "${setting}")
  endforeach()

  # The names of the outputs follow from the description, so the compiler is asked now, and again when it changes.
  get_target_property(compiler transformerc::transformerc IMPORTED_LOCATION)
  execute_process(COMMAND "${compiler}" "${description}" ${flags} --emit=toml -o -
                  OUTPUT_VARIABLE resolved ERROR_VARIABLE errors RESULT_VARIABLE status)
  if(NOT status EQUAL 0)
    message(FATAL_ERROR "transformerc_add_model: ${errors}")
  endif()
  if(NOT resolved MATCHES "\n *name *= *\"([A-Za-z_][A-Za-z0-9_]*)\"")
    message(FATAL_ERROR "transformerc_add_model: ${description} has no name")
  endif()
  set(name "${CMAKE_MATCH_1}")
  set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${description}")

  set(folder "${CMAKE_CURRENT_BINARY_DIR}/${target}.model")
  file(MAKE_DIRECTORY "${folder}")
  if(ARG_SHARED)
    set(kind SHARED)
    set(emit "so,header,python")
    set(library "${folder}/lib${name}.so")
    set(outputs "${library}" "${folder}/${name}.h" "${folder}/${name}.py")
  else()
    set(kind STATIC)
    set(emit "lib,header")
    set(library "${folder}/lib${name}.a")
    set(outputs "${library}" "${folder}/${name}.h")
  endif()
  add_custom_command(
    OUTPUT ${outputs}
    COMMAND transformerc::transformerc "${description}" ${flags} --emit=${emit} -o "${folder}"
            "--depfile=${folder}/${name}.d"
    DEPENDS "${description}" "${compiler}"
    DEPFILE "${folder}/${name}.d"
    COMMENT "Compiling the model ${name}"
    VERBATIM)
  add_custom_target(${target}_compile DEPENDS ${outputs})

  add_library(${target} ${kind} IMPORTED GLOBAL)
  add_dependencies(${target} ${target}_compile)
  set_target_properties(${target} PROPERTIES
    IMPORTED_LOCATION "${library}"
    INTERFACE_INCLUDE_DIRECTORIES "${folder}"
    TRANSFORMERC_NAME "${name}"
    TRANSFORMERC_DIR "${folder}")
  if(ARG_SHARED)
    set_target_properties(${target} PROPERTIES IMPORTED_SONAME "lib${name}.so")
  endif()
  target_link_libraries(${target} INTERFACE Threads::Threads m)
endfunction()
