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
     * one, 'c' char, 'b' bool, 'f' a float, 'h' float16, 'g' bfloat16, 'v' void, 'p'
     * another pointer, 's' any other type. The components of float4 and its kin count. */
    char kind;
    bool pointer;
    bool constant;       /* a pointer that is not written through */
    unsigned components; /* 1 but for float4 and its kin */
    unsigned size;       /* bytes of a component */
    unsigned alignment;
} dt_module_parameter;

/* Decodes a number of device/describe.h. */
#ifdef __cplusplus
constexpr
#endif
    static inline dt_module_parameter dt_module_parameter_of(unsigned long long row)
{
    const dt_module_parameter made = {
        (char)(row & 255),     (row >> 8 & 1) != 0,
        (row >> 9 & 1) != 0,   (unsigned)(row >> 16 & 255),
        (unsigned)(row >> 40), (unsigned)(row >> 24 & 65535)};
    return made;
}

/* Bytes of the value that a launch passes. */
static inline size_t dt_module_bytes(const dt_module_parameter *p)
{
    return p->pointer ? sizeof(void *) : (size_t)p->size * p->components;
}

/* The module owns it; modules stay loaded. */
typedef struct dt_module_kernel {
    const char *name;
    void *handle;  /* the backend's */
    bool barriers; /* its threads may wait for one another */
    bool apart;    /* it has no shared memory of fixed size (simulated GPUs) */
    int count;
    const dt_module_parameter *parameters;
} dt_module_kernel;

/* The input of a compiler at run time. `names`: expressions that name kernels and
 * variables. */
typedef struct dt_module_source {
    const char *text;
    int nheaders, noptions, nnames;
    const char *const *headers, *const *header_names, *const *options, *const *names;
} dt_module_source;

/* Its output, each by malloc; without code where the source is wrong. */
typedef struct dt_module_code {
    char *code, *log;
    size_t bytes;   /* of code */
    char **lowered; /* the caller's array: for each name the one that the code has */
} dt_module_code;

/* A variable of a module: read it, write it, or ask for its bytes alone. */
typedef enum dt_module_access {
    DT_MODULE_SIZE,
    DT_MODULE_READ,
    DT_MODULE_WRITE
} dt_module_access;

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
