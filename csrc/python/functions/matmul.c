/* Matrix products. */
#include "python/functions.h"
#include "python/output.h"
#include "autograd/recorded.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/matmul.h"

/* Multiplications from which on a product is long: some 20 us. */
#define LONG_PRODUCT 5e5

static bool is_long(const dt_tensor *a, const dt_tensor *b)
{
    int64_t columns = b->ndim > 1 ? b->shape[b->ndim - 1] : 1;
    return (double)a->numel * (double)columns > LONG_PRODUCT ||
           b->numel > DT_LONG_NUMEL;
}

typedef int (*product)(dt_tensor *out, const dt_tensor *a, const dt_tensor *b);

static PyObject *multiply(const dt_args *args, product run)
{
    dt_tensor *a, *b;
    if (dt_take_tensor(args, 0, &a) < 0 || dt_take_tensor(args, 1, &b) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int status;
    DT_RUN(status, is_long(a, b), run(&out->tensor, a, b));
    return dt_finish(args, 2, out, status);
}

#define PRODUCT(name, second)                                                          \
    DT_PUBLIC(name,                                                                    \
              #name "(input: Tensor, " #second ": Tensor, *, out: Tensor = None)")     \
    {                                                                                  \
        return multiply(args, dt_recorded_##name);                                     \
    }
PRODUCT(matmul, other)
PRODUCT(mm, mat2)
PRODUCT(mv, vec)
PRODUCT(dot, tensor)
PRODUCT(bmm, mat2)

static dt_tensor_object *add_product(const dt_args *args, int *status)
{
    dt_tensor *x, *a, *b;
    dt_scalar beta, alpha;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 1, &a) < 0 ||
        dt_take_tensor(args, 2, &b) < 0 || dt_take_number(args, 3, &beta) < 0 ||
        dt_take_number(args, 4, &alpha) < 0)
        return NULL;
    dt_tensor_object *out = dt_tensor_object_new();
    if (out)
        DT_RUN(*status, is_long(a, b),
               dt_recorded_addmm(&out->tensor, x, a, b, beta, alpha));
    return out;
}

DT_PUBLIC(addmm,
          "addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, "
          "alpha: Number = 1, out: Tensor = None)")
{
    int status = -1;
    dt_tensor_object *out = add_product(args, &status);
    return out ? dt_finish(args, 5, out, status) : NULL;
}

DT_PUBLIC(addmm_in_place, "addmm_(input: Tensor, mat1: Tensor, mat2: Tensor, *, "
                          "beta: Number = 1, alpha: Number = 1)")
{
    int status = -1;
    dt_tensor_object *out = add_product(args, &status);
    PyObject *made = out ? dt_tensor_result(out, status) : NULL;
    if (!made)
        return NULL;
    status = dt_copy_to_output("addmm_", args->slots[0], dt_tensor_of(made));
    Py_DECREF(made);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
    DT_BOTH(matmul, "matmul",
            "The product of vectors, matrices or batches of matrices.\n\n"
            "Two vectors give a number, a matrix and a vector a vector; with more "
            "dimensions the leading ones broadcast: (..., n, k) and (..., k, m) "
            "give (..., n, m). Both of one type and on one device, and the inner "
            "sizes equal: a RuntimeError where not."),
    DT_BOTH(mm, "mm",
            "The product of two matrices.\n\n"
            "(n, k) and (k, m) give (n, m). RuntimeError for other shapes and for "
            "two types."),
    DT_BOTH(mv, "mv",
            "The product of a matrix and a vector.\n\n"
            "(n, k) and (k) give (n). RuntimeError for other shapes and for two "
            "types."),
    DT_BOTH(dot, "dot",
            "The inner product of two vectors.\n\n"
            "Both of one size; the result has no dimensions. RuntimeError for other "
            "shapes and for two types."),
    DT_BOTH(bmm, "bmm",
            "The products of two batches of matrices.\n\n"
            "(b, n, k) and (b, k, m) give (b, n, m). RuntimeError for other shapes "
            "and for two types."),
    DT_BOTH(addmm, "addmm",
            "beta * input + alpha * (mat1 @ mat2).\n\n"
            "input broadcasts to the shape of the product, (n, m). RuntimeError for "
            "other shapes."),
    DT_METHOD(addmm_in_place, "addmm_",
              "In place: beta * input + alpha * (mat1 @ mat2)."),
};

int dt_setup_products(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
