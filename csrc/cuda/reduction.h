/* Launches of reductions, and the kernels of each type. */
#ifndef DT_CUDA_REDUCTION_H
#define DT_CUDA_REDUCTION_H

#include "cuda/compute.h"
#include "cuda/folding.h"
#include "device/backend.h"

/* Which types a class of ops/reduce.def takes, and what its rows fold them as. */
#define TAKES_TOTAL(kind) true
#define TAKES_FLOAT(kind) ((kind) == DT_KIND_FLOAT)
#define TAKES_NORM(kind)  ((kind) == DT_KIND_FLOAT)
#define TAKES_ORDER(kind) true
#define TAKES_TRUTH(kind) true
typedef enum Folds { AS_ITSELF, AS_TOTAL, AS_TRUTH, WAYS_TO_FOLD } Folds;

/* A launch. Partial results lie [result][part]. */
typedef struct Reduction {
    const char *input;
    void *out;
    double parameter;
    int64_t count; /* of the elements of a result */
    dt_reduce_op op;
    bool mapped;   /* the input is to be mapped; else it is partial results */
    bool finished; /* results are wanted; else partial ones */
    bool starts;   /* the row has no identity: from an element, which changes nothing a
                      second time */
    bool packs;    /* the kernel's: elements follow each other, and packs are aligned */
    Half from, to; /* how input and results lie: partial ones are WHOLE */
    Folding f;
} Reduction;
POINTERS_OF(Reduction, f(s.input); f(s.out);)

/* The kernels for an input type. device_use has been called. */
typedef struct reduce_kernels {
    int (*start[WAYS_TO_FOLD])(dt_queue queue, const Reduction *call);
} reduce_kernels;
#define DT_DTYPE(ID, name, alias, type, class) extern const reduce_kernels reduce_##ID;
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"

#endif
