// The C program, as C++: the headers serve both languages.
#include "two_models.c"
