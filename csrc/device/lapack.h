/* The calls of factorizations and solvers: ops/lapack.def. */
#ifndef DT_DEVICE_LAPACK_H
#define DT_DEVICE_LAPACK_H

#include "base/dtype.h"

typedef enum dt_lapack_op {
#define LAPACK_OP(name, ...) DT_LAPACK_##name,
#include "ops/lapack.def"
    DT_NLAPACK
} dt_lapack_op;

#define DT_LAPACK_OPERANDS 5

/* dt_lapack_call.flags */
enum {
    DT_LAPACK_UPPER = 1,
    DT_LAPACK_TRANSPOSED = 2,
    DT_LAPACK_UNIT = 4,
    DT_LAPACK_VECTORS = 8,
    DT_LAPACK_FULL = 16,
    DT_LAPACK_ROTATIONS = 32,
};

/* info of a matrix with elements that are not finite, where they would keep an iteration
 * from ending. */
#define DT_LAPACK_NOT_FINITE (-1000)

/* One operation on `batch` matrices, which follow one another in each operand. */
typedef struct dt_lapack_call {
    dt_lapack_op op;
    dt_dtype dtype; /* dt_lapack_takes() */
    int flags;
    int64_t batch, m, n, k; /* batch, m and n at least 1 */
    double number;
    void *operands[DT_LAPACK_OPERANDS];
} dt_lapack_call;

typedef struct dt_lapack_operand {
    int64_t size; /* elements of one matrix */
    dt_dtype dtype;
    bool written;
} dt_lapack_operand;

/* The types of matrices; their routines' names begin with s, d, c and z. */
static inline bool dt_lapack_takes(dt_dtype dtype)
{
    return dtype >= DT_FLOAT32;
}
enum { DT_LAPACK_TYPES = DT_NDTYPES - DT_FLOAT32 };

/* The operands of a call; how many there are. */
static inline int dt_lapack_operands(const dt_lapack_call *call,
                                     dt_lapack_operand *operands)
{
    const int64_t m = call->m, n = call->n, k = call->k;
    const int64_t LEAST = m < n ? m : n, MOST = m < n ? n : m;
    const int64_t VECTORS = (call->flags & DT_LAPACK_VECTORS) != 0;
    const bool FULL = (call->flags & DT_LAPACK_FULL) != 0;
    const dt_dtype type = call->dtype, part = dt_dtype_part(type);
    const bool COMPLEX = dt_dtype_is_complex(type);
    int count = 0;
    (void)k, (void)LEAST, (void)MOST, (void)VECTORS, (void)FULL, (void)COMPLEX,
        (void)part;
#define OPERAND(...)    {__VA_ARGS__}
#define FLOATS(size)    OPERAND(size, type, true)
#define REALS(size)     OPERAND(size, part, true)
#define INTS(size)      OPERAND(size, DT_INT32, true)
#define IN_FLOATS(size) OPERAND(size, type, false)
#define IN_INTS(size)   OPERAND(size, DT_INT32, false)
#define LAPACK_OP(name, ...)                                                           \
    case DT_LAPACK_##name: {                                                           \
        const dt_lapack_operand all[] = {__VA_ARGS__};                                 \
        for (; count < (int)(sizeof all / sizeof *all); count++)                       \
            operands[count] = all[count];                                              \
        break;                                                                         \
    }
    switch (call->op) {
#include "ops/lapack.def"
    default:
        break;
    }
#undef OPERAND
#undef FLOATS
#undef REALS
#undef INTS
#undef IN_FLOATS
#undef IN_INTS
    return count;
}

#endif
