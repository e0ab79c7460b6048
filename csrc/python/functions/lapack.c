/* Factorizations and solvers: what pydevtensor.linalg calls. */
#include "python/functions.h"
#include "tensor/ops/lapack.h"

#include <string.h>

DT_PUBLIC(lapack, "_lapack(name: str, operands: Tensors, m: int, n: int, k: int = 0, "
                  "flags: int = 0, number: float = 0)")
{
    const char *function = args->signature->name;
    int op = dt_lapack_op_of(function, v[0].text), status = op < 0 ? -1 : 0;
    dt_lapack_call call = {.op = (dt_lapack_op)(op < 0 ? 0 : op),
                           .flags = (int)v[5].i,
                           .m = v[2].i,
                           .n = v[3].i,
                           .k = v[4].i,
                           .number = v[6].f};
    const dt_tensor **items = (const dt_tensor **)v[1].tensors;
    dt_held held;
    if (!status)
        status = dt_held_begin(&held, (size_t)v[1].count);
    if (!status) {
        for (int i = 0; i < v[1].count; i++)
            dt_held_add(&held, &items[i]);
        status = dt_lapack(function, &call, v[1].count, v[1].tensors);
        dt_held_end(&held);
    }
    return status ? dt_raise() : Py_NewRef(Py_None);
}

static const dt_function rows[] = {
    DT_FUNCTION(
        lapack, "_lapack",
        "Runs a routine of LAPACK on contiguous Tensors, batches of column-major "
        "matrices.\n\nThe operands of each name are in csrc/ops/lapack.def. Sees "
        "no history: call it under no_grad().",
        "", ""),
};

int dt_setup_lapack(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
