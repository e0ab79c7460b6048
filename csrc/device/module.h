/* Kernels that the program compiled itself: their parameters, and a launch of one.
 *
 * The libraries of simulated kernels are made with this file (sim/module.h), so it
 * includes nothing of the core. */
#ifndef DT_DEVICE_MODULE_H
#define DT_DEVICE_MODULE_H

#include <stdbool.h>
#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

enum { DT_MODULE_PARAMETERS = 64 };

typedef struct dt_module_parameter {
    /* The value, or what a pointer points to: 'i' a signed integer, 'u' an unsigned
     * one, 'c' char, 'b' bool, 'f' a float, 'v' void, 'p' another pointer, 's' any other
     * type. The components of float4 and its kin count. */
    char kind;
    bool pointer;
    bool constant; /* a pointer that is not written through */
    unsigned size; /* bytes of the value, or of a component of what is pointed to */
    unsigned alignment;
} dt_module_parameter;

/* The module owns it; modules stay loaded. */
typedef struct dt_module_kernel {
    const char *name;
    void *handle;  /* the backend's */
    bool barriers; /* its threads may wait for one another */
    int count;
    const dt_module_parameter *parameters;
} dt_module_kernel;

struct dt_extent;

typedef struct dt_module_call {
    const dt_module_kernel *kernel;
    unsigned grid[3], block[3];
    size_t shared; /* bytes of dynamic shared memory */
    void *const *values;
    /* The tensors that pointers lead to. */
    int noperands;
    const struct dt_extent *operands;
    long long bytes; /* of their elements */
    int dtype;       /* of the first one */
} dt_module_call;

#ifdef __cplusplus
}
#endif
#endif
