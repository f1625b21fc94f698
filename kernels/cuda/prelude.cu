// Lets NVRTC read the kernels, which are written in OpenCL C. Compile with -default-device.

typedef unsigned int uint;
typedef long long index;
typedef double wide; // for sums

#define __kernel extern "C" __global__
#define __global
#define __local __shared__
#define CLK_LOCAL_MEM_FENCE
#define CLK_GLOBAL_MEM_FENCE
#define barrier(fence) __syncthreads()
#define atomic_inc(counter) atomicAdd(counter, 1)
#define INFINITY __int_as_float(0x7f800000)
#define NAN __int_as_float(0x7fffffff)

// CUDA's arrays begin at their pointer.
#define BUFFER(type, name) type *name
#define OFFSET(name)

// A grid may be 65,535 groups high, so dimension 1 goes on in z.
__forceinline__ index get_local_id(int d) { return d == 0 ? threadIdx.x : threadIdx.y; }
__forceinline__ index get_local_size(int d) { return d == 0 ? blockDim.x : blockDim.y; }
__forceinline__ index get_group_id(int d) {
    return d == 0 ? (index)blockIdx.x : (index)blockIdx.z * gridDim.y + blockIdx.y;
}
__forceinline__ index get_global_id(int d) {
    return get_group_id(d) * get_local_size(d) + get_local_id(d);
}
