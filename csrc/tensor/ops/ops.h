/* Operations that C code calls directly, without their records. */
#ifndef DT_TENSOR_OPS_OPS_H
#define DT_TENSOR_OPS_OPS_H

#include "device/plan.h"
#include "device/random.h"
#include "ops/ops.h"
#include "tensor/tensor.h"

/* Fails where x is not of a floating type, with the given code. */
int dt_check_float(const char *op_name, dt_error_code code, const dt_tensor *x);

/* --- creation --- */

struct dt_call;

/* The type that a factory is asked for, dtype being parameter `first`. */
dt_dtype dt_factory_dtype(const struct dt_call *call, int first, dt_dtype otherwise);

/* Fails where the value is not of the type's range. */
int dt_full(const char *op_name, dt_tensor *out, dt_dtype dtype, int ndim,
            const int64_t *shape, dt_device device, dt_scalar value);
int dt_fill_into(const char *op_name, dt_tensor *target, dt_scalar value);

/* start, start + step, ... up to but without end. dtype -1: int64 where all three are
 * integers, else the default floating type. */
int dt_arange(dt_tensor *out, dt_scalar start, dt_scalar end, dt_scalar step, int dtype,
              dt_device device);

/* --- random numbers --- */

/* Fills target with random numbers of generator (NULL: the device's own). */
int dt_random_into(const char *op_name, dt_tensor *target, dt_distribution distribution,
                   dt_scalar low, dt_scalar high, dt_generator *generator);

/* The default generator of a device, borrowed; seeded at first use from the system's
 * randomness. */
dt_generator *dt_default_generator(dt_device device);

/* Seeds the default generator of the CPU and of all GPUs, also those not used yet. */
void dt_seed_all(uint64_t seed);

/* The state of a generator as bytes: DT_TWISTER_STATE of the CPU's, in PyTorch's
 * layout, DT_PHILOX_STATE of a GPU's (seed, then offset). Both take the lock. */
#define DT_TWISTER_STATE 5056
#define DT_PHILOX_STATE  16
void dt_generator_save(dt_generator *generator, bool twister, unsigned char *bytes);
/* Fails where the bytes are not a state, and then changes nothing. */
int dt_generator_restore(dt_generator *generator, bool twister,
                         const unsigned char *bytes);

/* --- reductions --- */

extern const char *const dt_reduce_names[]; /* by dt_reduce_op */

/* Reduces `count` dimensions of x (count 0: all). dtype -1: the row's own result type;
 * else the type to compute in. `parameter` is P of the table. */
int dt_reduce(dt_reduce_op op, dt_tensor *out, const dt_tensor *x, int count,
              const int64_t *dims, bool keepdim, int dtype, double parameter);

/* The row of a p-norm. */
dt_reduce_op dt_norm_row(double p);

/* Marks the dimensions that are reduced: those named, or all for count 0. */
int dt_reduce_dims(const char *op_name, const dt_tensor *x, int count,
                   const int64_t *dims, bool *reduced);
/* The shape of its result; the number of dimensions. */
int dt_reduce_shape(const dt_tensor *x, const bool *reduced, bool keepdim,
                    int64_t *shape);

/* Variances over dimensions, with the divisor max(0, count - correction), and their
 * means unless mean is NULL. Those of floats of 16 bits are float32. */
int dt_variance(const char *op_name, dt_tensor *out, dt_tensor *mean,
                const dt_tensor *x, const bool *reduced, bool keepdim,
                double correction);

/* --- index tensors --- */

typedef enum dt_indexing_form {
    /* x[..., i, j, ...]: indices of dimensions, broadcast against one another; their
     * dimensions stand in place of the indexed ones where those are neighbours, else in
     * front. */
    DT_INDEXING_ADVANCED,
    DT_INDEXING_GATHER, /* x[a, i[a, b, c], c]: gather; one index with x's dimensions */
    DT_INDEXING_TAKE    /* one index into x's elements in row-major order: take */
} dt_indexing_form;

/* Elements of a tensor. The index tensors are borrowed; they are integers of any
 * type on the tensor's device, or on the CPU, from where they are copied. */
typedef struct dt_indexing {
    const char *op_name; /* the operation; a literal */
    dt_error_code code;  /* of an index out of range on the CPU. A GPU reports it at the
                           next wait, as DT_ERROR_ACCELERATOR */
    dt_indexing_form form;
    bool wraps; /* negative indices count from the end */
    int count;
    int dims
        [DT_MAX_NDIM]; /* ascending; of DT_INDEXING_ADVANCED and DT_INDEXING_GATHER */
    const dt_tensor *indices[DT_MAX_NDIM];
} dt_indexing;

/* The elements that one index tensor selects along dim. */
static inline dt_indexing dt_indexing_along(const char *op_name, dt_indexing_form form,
                                            int dim, const dt_tensor *index)
{
    return (dt_indexing){.op_name = op_name,
                         .code = form == DT_INDEXING_GATHER ? DT_ERROR_RUNTIME
                                                            : DT_ERROR_INDEX,
                         .form = form,
                         .wraps = form == DT_INDEXING_TAKE,
                         .count = 1,
                         .dims = {dim},
                         .indices = {index}};
}

/* The chosen elements of x, a copy. Does not wait, unless an index has to be copied. */
int dt_index_read(dt_tensor *out, const dt_tensor *x, const dt_indexing *indexing);

/* target[indexing] op= values, which broadcast to the shape of what is chosen (of
 * DT_INDEXING_GATHER: have at least the index's sizes) and have target's type. op is
 * not DT_INDEX_READ. Values of one place: on the CPU in row-major order, on a GPU in no
 * certain order, so sums of floats may differ in their last bits and which of several
 * values is written is open; but with dt_deterministic in the same order in every run,
 * and the last is written. */
int dt_index_write(dt_index_op op, dt_tensor *target, const dt_indexing *indexing,
                   const dt_tensor *values);

/* Whether GPUs have to give the same bits in every run. */
extern bool dt_deterministic;

/* The positions of elements that are not 0 (or NaN, or true), row by row, int64 of
 * shape [n, x.ndim]. Waits for a GPU's count, which is the result's size. */
int dt_nonzero(dt_tensor *out, const dt_tensor *x);

/* --- matrix products --- */

/* How exact float32 products on GPUs have to be; 'highest' does without TF32. */
typedef enum dt_matmul_precision {
    DT_MATMUL_HIGHEST,
    DT_MATMUL_HIGH,
    DT_MATMUL_MEDIUM
} dt_matmul_precision;
dt_matmul_precision dt_float32_matmul_precision(void);
void dt_set_float32_matmul_precision(dt_matmul_precision chosen);
/* Whether this thread's products are those of a recurrent layer, and whether these may
 * round to TF32: where convolutions may, too. */
extern _Thread_local bool dt_products_are_recurrent;
bool dt_recurrent_tf32(void);

/* a @ b with PyTorch's rules: vectors, matrices, and batches that broadcast. */
int dt_matmul(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);

/* --- repeats --- */

/* The number i, repeats[i] times, for each i in turn: int64, on the device of repeats,
 * which are int32 or int64 of at most one dimension. One repeat counts for each of
 * `size` numbers. output_size -1: the sum of the repeats, which synchronizes with a
 * GPU. */
int dt_repeat_index(dt_tensor *out, const dt_tensor *repeats, int64_t size,
                    int64_t output_size);

#endif
