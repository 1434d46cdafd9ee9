// INDEPENDENT: the iterations of the loop that follows read and write no element of another one, so
// that they may be vectorised without a look at the pointers.

#ifdef __clang__
#define INDEPENDENT _Pragma("clang loop vectorize(assume_safety) interleave(enable)")
// Where the compiler cannot, the loop stays as it is; that is nothing for the terminal.
#pragma clang diagnostic ignored "-Wpass-failed"
#else
#define INDEPENDENT
#endif
