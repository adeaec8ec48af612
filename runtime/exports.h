// The functions that a generated library exports, as the run time names them (runtime/symbols.def).
#pragma once

#include "runtime/api.h"

extern "C" {
#define TC_API(result, suffix, parameters) result tc_rt_##suffix parameters;
#define TC_CORE(result, suffix, parameters) result tc_rt_##suffix parameters;
#include "runtime/symbols.def"

/// NULL unless `build_id` is this library's, or 0.
const tc_api* tc_rt_api(uint64_t build_id);
}
