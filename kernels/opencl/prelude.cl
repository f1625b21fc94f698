// What every kernel may use. `real` is the precision of the arrays, set when a program is built.

#ifdef cl_khr_fp64
#pragma OPENCL EXTENSION cl_khr_fp64 : enable
typedef double wide; // for sums
#else
typedef float wide;
#endif

typedef long index;

// An array's memory need not begin at its first element: OFFSET moves the pointer there.
#define BUFFER(type, name) __global type *name, const ulong name##_offset
#define OFFSET(name) name += name##_offset
