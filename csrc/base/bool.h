/* Bools in memory.
 *
 * Memory of another library may hold any byte: 0 is false, all others are true. A struct,
 * so that an element which is read without this test does not compile. Kernels compute
 * with bool and store 0 or 1. C code tests `byte`, C++ code casts. */
#ifndef DT_BASE_BOOL_H
#define DT_BASE_BOOL_H

#include <stdint.h>

#ifdef __cplusplus
struct dt_bool {
    uint8_t byte;

#ifdef __CUDACC__
#define DT_BOOL_METHOD __host__ __device__ __forceinline__
#else
/* Always inlined: the linker would keep one copy for all instruction sets. */
#define DT_BOOL_METHOD inline __attribute__((always_inline))
#endif
    dt_bool() = default;
    DT_BOOL_METHOD explicit dt_bool(bool value) : byte(value) {}
    DT_BOOL_METHOD explicit operator bool() const { return byte != 0; }
#undef DT_BOOL_METHOD
};
#else
typedef struct dt_bool {
    uint8_t byte;
} dt_bool;
#endif

#endif
