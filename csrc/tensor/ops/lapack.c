#include "tensor/ops/lapack.h"

#include <inttypes.h>
#include <string.h>

#include "device/stream.h"
#include "tensor/ops/elementwise.h"

static const char *const names[DT_NLAPACK] = {
#define LAPACK_OP(name, ...) #name,
#include "ops/lapack.def"
};

int dt_lapack_op_of(const char *op_name, const char *name)
{
    for (int i = 0; i < DT_NLAPACK; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return dt_fail(DT_ERROR_VALUE, "%s: there is no operation '%.40s'", op_name, name);
}

static int check(const char *op_name, const dt_lapack_call *call, int count,
                 const dt_tensor *const *tensors, const dt_lapack_operand *operands)
{
    for (int i = 0; i < count; i++) {
        const dt_tensor *t = tensors[i];
        dt_dtype dtype = operands[i].dtype;
        if (t->dtype != dtype || !t->contiguous ||
            t->numel != call->batch * operands[i].size)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: operand %d has %" PRId64 " elements of %s%s; %s takes "
                           "%" PRId64 " of %s, contiguous",
                           op_name, i, t->numel, dt_dtype_name((dt_dtype)t->dtype),
                           t->contiguous ? "" : ", not contiguous", names[call->op],
                           call->batch * operands[i].size, dt_dtype_name(dtype));
        if (dt_check_same_device(op_name, "the matrices", tensors[0], "an operand",
                                 t) ||
            (operands[i].written && dt_tensor_check_writable(op_name, t)))
            return -1;
    }
    return 0;
}

int dt_lapack(const char *op_name, dt_lapack_call *call, int count,
              const dt_tensor *const *tensors)
{
    const int64_t most = 1 << 30;
    dt_lapack_operand operands[DT_LAPACK_OPERANDS] = {0};
    if (call->m < 1 || call->n < 1 || call->k < 0 || call->m > most || call->n > most ||
        call->k > most)
        return dt_fail(DT_ERROR_VALUE,
                       "%s: the sizes are %" PRId64 ", %" PRId64 " and %" PRId64
                       "; give 1 to 2^30",
                       op_name, call->m, call->n, call->k);
    call->dtype = count ? (dt_dtype)tensors[0]->dtype : DT_FLOAT32;
    int wanted = dt_lapack_operands(call, operands);
    if (count != wanted || operands[0].size < 1)
        return dt_fail(DT_ERROR_VALUE, "%s: %d operands were given; %s takes %d",
                       op_name, count, names[call->op], wanted);
    if (!dt_lapack_takes(call->dtype))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: the matrices are of %s; give float32, float64 or a complex "
                       "type",
                       op_name, dt_dtype_name(call->dtype));
    call->batch = tensors[0]->numel / operands[0].size;
    if (check(op_name, call, count, tensors, operands))
        return -1;
    if (!call->batch)
        return 0;
    dt_device device = dt_tensor_device(tensors[0]);
    for (int i = 0; i < count; i++) {
        call->operands[i] = dt_tensor_data(tensors[i]);
        if (dt_storage_use(tensors[i]->storage))
            return -1;
    }
    if (dt_backend_of(device)->lapack(dt_stream_current(device), call))
        return -1;
    for (int i = 0; i < count; i++)
        if (operands[i].written)
            dt_tensor_written(tensors[i]);
    return 0;
}
