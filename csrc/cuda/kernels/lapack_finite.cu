/* Beside the factorizations by libraries: tables of a batch's matrices, and the
 * matrices with elements that are not finite, on which an iteration might not end. */
#include "device/lapack.h"

#include "cuda/kernels/layout.h"

template <typename T>
__global__ void note_infinite(const T *x, int64_t size, int64_t count, int32_t *info)
{
    int64_t i = thread_number();
    /* All that write here write the same. */
    if (i < count && !(x[i] * 0 == 0))
        info[i / size] = DT_LAPACK_NOT_FINITE;
}

template <typename T>
__global__ void clear_noted(T *x, int64_t size, int64_t count, const int32_t *info)
{
    int64_t i = thread_number();
    if (i < count && info[i / size])
        x[i] = 0;
}

__global__ void join_infos(int32_t *info, const int32_t *found, int64_t batch)
{
    int64_t i = thread_number();
    if (i < batch && !info[i])
        info[i] = found[i];
}

/* first is a number, so that the simulator leaves it as it is: the table is read by
 * others than kernels. */
__global__ void fill_table(uintptr_t *table, uintptr_t first, int64_t step,
                           int64_t count)
{
    int64_t i = thread_number();
    if (i < count)
        table[i] = first + (uintptr_t)(i * step);
}

int lapack_table(dt_stream stream, void **table, const void *first, int64_t step,
                 int64_t count)
{
    SIM_TABLE(table, first, (size_t)(step * count));
    return START("listing matrices", stream, fill_table, count, (uintptr_t *)table,
                 (uintptr_t)first, step, count);
}

static const char doing[] = "looking for matrices that are not finite";

template <typename T>
static int refuse(dt_stream stream, T *x, int64_t size, int64_t batch, int32_t *info)
{
    const int64_t count = size * batch;
    if (!count)
        return 0;
    if (START(doing, stream, (note_infinite<T>), count, (const T *)x, size, count,
              info))
        return -1;
    return START(doing, stream, (clear_noted<T>), count, x, size, count,
                 (const int32_t *)info);
}

int lapack_refuse(dt_stream stream, dt_dtype dtype, void *matrices, int64_t size,
                  int64_t batch, int32_t *info)
{
    const dt_dtype part = dt_dtype_part(dtype);
    if (part != dtype)
        size *= 2;
    return part == DT_FLOAT64 ? refuse(stream, (double *)matrices, size, batch, info)
                              : refuse(stream, (float *)matrices, size, batch, info);
}

int lapack_join(dt_stream stream, int32_t *info, const int32_t *found, int64_t batch)
{
    return START(doing, stream, join_infos, batch, info, found, batch);
}
