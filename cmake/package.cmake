# cmake --install PREFIX: the program, and what find_package(transformerc) needs.
include(CMakePackageConfigHelpers)
install(TARGETS transformerc RUNTIME DESTINATION ${CMAKE_INSTALL_BINDIR})
set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/transformerc)
configure_package_config_file(${CMAKE_SOURCE_DIR}/cmake/transformerc-config.cmake.in
                              ${CMAKE_BINARY_DIR}/transformerc-config.cmake INSTALL_DESTINATION ${package_dir}
                              PATH_VARS CMAKE_INSTALL_BINDIR)
write_basic_package_version_file(${CMAKE_BINARY_DIR}/transformerc-config-version.cmake COMPATIBILITY SameMinorVersion)
install(FILES ${CMAKE_BINARY_DIR}/transformerc-config.cmake ${CMAKE_BINARY_DIR}/transformerc-config-version.cmake
              ${CMAKE_SOURCE_DIR}/cmake/transformerc_add_model.cmake
        DESTINATION ${package_dir})
install(FILES ${CMAKE_SOURCE_DIR}/LICENSE DESTINATION ${CMAKE_INSTALL_DOCDIR})
