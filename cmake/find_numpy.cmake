# TFC_PYTHON: a python3 with NumPy. The first one on the PATH may be one without; Debian's own is looked at too.
if(NOT TFC_PYTHON)
  foreach(candidate python3 /usr/bin/python3)
    execute_process(COMMAND ${candidate} -c "import numpy, sys; print(sys.executable)" OUTPUT_VARIABLE found
                    OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
    if(status EQUAL 0)
      set(TFC_PYTHON ${found} CACHE FILEPATH "a python3 with NumPy")
      break()
    endif()
  endforeach()
endif()
if(NOT TFC_PYTHON)
  message(WARNING "no python3 with NumPy was found (Debian: python3-numpy): the Python tests are left out")
endif()
