// Elementary functions in double from plain arithmetic alone, so that initialisation and sampling give the
// same bits on every machine, whatever its libm. Errors are a few units in the last place.
#pragma once

namespace tc {

double natural_log(double x);                                        // x positive, finite and normal
double exponential(double x);                                        // 0 below -708
void sine_cosine_turns(double turns, double& sine, double& cosine);  // of 2 pi turns, 0 <= turns < 1

}  // namespace tc
