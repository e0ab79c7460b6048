/* Functions that are other functions put together: their signatures and checks are
 * here, what they do is said in pydevtensor/_composed.py. */
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/indexing.h"
#include "python/output.h"

/* 0 where what was given for parameter i is of the kind that its word promises; else -1
 * with TypeError. */
static int check(const dt_args *args, int i)
{
    dt_tensor *tensor;
    dt_arg value;
    dt_scalar number;
    double real;
    int64_t whole, dims[DT_MAX_NDIM];
    int count;
    bool flag;
    if (args->slots[i] == Py_None && args->signature->parameters[i].none)
        return 0;
    switch (args->signature->parameters[i].word) {
    case DT_WORD_TENSOR:
        return dt_take_tensor(args, i, &tensor);
    case DT_WORD_VALUE:
        return dt_take_value(args, i, &value);
    case DT_WORD_NUMBER:
        return dt_take_number(args, i, &number);
    case DT_WORD_FLOAT:
        return dt_take_float(args, i, &real);
    case DT_WORD_INT:
        return dt_take_int(args, i, &whole);
    case DT_WORD_BOOL:
        return dt_take_bool(args, i, &flag);
    case DT_WORD_DIMS:
        return dt_take_dims(args, i, &count, dims);
    default:
        return 0;
    }
}

PyObject *dt_call_python(const dt_args *args, const char *module_name,
                         const char *function)
{
    const dt_signature *s = args->signature;
    PyObject *module = NULL, *callee = NULL, *words = NULL, *result = NULL;
    PyObject *nothing = PyTuple_New(0);
    for (int i = 0; i < s->count; i++)
        if (args->slots[i] && check(args, i) < 0)
            goto done;
    module = PyImport_ImportModule(module_name);
    callee = module ? PyObject_GetAttrString(module, function) : NULL;
    words = callee ? PyDict_New() : NULL;
    if (!words || !nothing)
        goto done;
    for (int i = 0; i < s->count; i++) {
        PyObject *name = s->parameters[i].name;
        if (args->slots[i] && PyUnicode_CompareWithASCIIString(name, "out") != 0 &&
            PyDict_SetItem(words, name, args->slots[i]) < 0)
            goto done;
    }
    result = PyObject_Call(callee, nothing, words);
done:
    Py_XDECREF(words);
    Py_XDECREF(callee);
    Py_XDECREF(module);
    Py_XDECREF(nothing);
    return result;
}

static PyObject *call(const dt_args *args, const char *function)
{
    return dt_call_python(args, "pydevtensor._composed", function);
}

/* The same with the result in the last argument, `out`, where that is given. */
static PyObject *forward(const dt_args *args, const char *function)
{
    int out_at = args->signature->count - 1;
    PyObject *result = call(args, function);
    if (!result || !dt_given(args, out_at))
        return result;
    int status = -1;
    if (dt_recording(dt_tensor_of(result)))
        dt_output_refuse(args->signature->name);
    else
        status = dt_copy_to_output(args->signature->name, args->slots[out_at],
                                   dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(args->slots[out_at]);
}

/* The same with the result in the first argument. */
static PyObject *forward_in_place(const dt_args *args, const char *function)
{
    PyObject *result = call(args, function);
    if (!result)
        return NULL;
    int status =
        dt_copy_to_output(args->signature->name, args->slots[0], dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(args->slots[0]);
}

#define COMPOSED(name, parameters)                                                     \
    DT_PUBLIC(name, #name "(" parameters ", *, out: Tensor = None)")                   \
    {                                                                                  \
        return forward(args, #name);                                                   \
    }
#define ADDED(name, parameters)                                                        \
    DT_PUBLIC(name, #name "(" parameters ", *, beta: Number = 1, alpha: Number = 1, "  \
                          "out: Tensor = None)")                                       \
    {                                                                                  \
        return forward(args, #name);                                                   \
    }                                                                                  \
    DT_PUBLIC(name##_in_place,                                                         \
              #name "_(" parameters ", *, beta: Number = 1, alpha: Number = 1)")       \
    {                                                                                  \
        return forward_in_place(args, #name);                                          \
    }
COMPOSED(outer, "input: Tensor, vec2: Tensor")
COMPOSED(inner, "input: Tensor, other: Tensor")
COMPOSED(vdot, "input: Tensor, other: Tensor")
COMPOSED(kron, "input: Tensor, other: Tensor")
COMPOSED(cross, "input: Tensor, other: Tensor, dim: int = None")
COMPOSED(matrix_power, "input: Tensor, n: int")
COMPOSED(tensordot, "a: Tensor, b: Tensor, dims: Any = 2")
COMPOSED(take_along_dim, "input: Tensor, indices: Tensor, dim: int = None")
COMPOSED(masked_select, "input: Tensor, mask: Tensor")
ADDED(addmv, "input: Tensor, mat: Tensor, vec: Tensor")
ADDED(addr, "input: Tensor, vec1: Tensor, vec2: Tensor")
ADDED(addbmm, "input: Tensor, batch1: Tensor, batch2: Tensor")
ADDED(baddbmm, "input: Tensor, batch1: Tensor, batch2: Tensor")

DT_PUBLIC(dist, "dist(input: Tensor, other: Tensor, p: Number = 2)")
{
    return call(args, "dist");
}
DT_PUBLIC(cdist,
          "cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: Any = None)")
{
    return call(args, "cdist");
}
DT_PUBLIC(argwhere, "argwhere(input: Tensor)")
{
    return call(args, "argwhere");
}
DT_PUBLIC(masked_scatter, "masked_scatter(input: Tensor, mask: Tensor, source: Tensor)")
{
    return call(args, "masked_scatter");
}
DT_PUBLIC(masked_scatter_in_place,
          "masked_scatter_(input: Tensor, mask: Tensor, source: Tensor)")
{
    return call(args, "masked_scatter_");
}
DT_PUBLIC(index_put, "index_put(input: Tensor, indices: Any, values: Tensor, "
                     "accumulate: bool = False)")
{
    return call(args, "index_put");
}

DT_PUBLIC(index_put_in_place, "index_put_(input: Tensor, indices: Any, values: Tensor, "
                              "accumulate: bool = False)")
{
    dt_tensor *x, *values;
    bool accumulate;
    if (dt_take_tensor(args, 0, &x) < 0 || dt_take_tensor(args, 2, &values) < 0 ||
        dt_take_bool(args, 3, &accumulate) < 0 ||
        dt_tensor_index_put(args->slots[0], args->slots[1], args->slots[2],
                            accumulate) < 0)
        return NULL;
    return Py_NewRef(args->slots[0]);
}

static const dt_row rows[] = {
    DT_BOTH(
        outer, "outer",
        "The products of all elements of one vector with all of another: [n, m].\n\n"
        "Of vectors of n and of m elements; RuntimeError for other shapes."),
    DT_BOTH(outer, "ger", "The same as outer."),
    DT_BOTH(inner, "inner",
            "Sums of products along the last dimension of both: the inner product of "
            "vectors, and of all pairs of them where there are more dimensions."),
    DT_BOTH(vdot, "vdot",
            "The inner product of two vectors.\n\n"
            "Both of one size; the result has no dimensions. RuntimeError for other "
            "shapes and for two types."),
    DT_BOTH(kron, "kron",
            "The Kronecker product: other, times each element of input, in blocks.\n\n"
            "The sizes of both are multiplied, dimension by dimension."),
    DT_BOTH(cross, "cross",
            "The cross product of vectors of 3 elements along dim, broadcasting.\n\n"
            "Without dim, the first dimension of size 3."),
    DT_BOTH(
        matrix_power, "matrix_power",
        "A square matrix, or a batch of them, multiplied n times with itself; n is 0 "
        "or more."),
    DT_FUNCTION(tensordot, "tensordot",
                "Sums of products of a and b over several dimensions.\n\ndims is how "
                "many of the "
                "last ones of a and the first ones of b, or two lists of dimensions."),
    DT_BOTH(take_along_dim, "take_along_dim",
            "Elements chosen along dim by indices, which broadcast with input in the "
            "other dimensions; without dim, of all elements in a row."),
    DT_BOTH(masked_select, "masked_select",
            "The elements where mask, a tensor of bools that broadcasts with input, "
            "holds: one dimension. Waits for a GPU."),
    DT_BOTH(addmv, "addmv", "beta * input + alpha * (mat @ vec)."),
    DT_METHOD(addmv_in_place, "addmv_", "In place: addmv."),
    DT_BOTH(addr, "addr", "beta * input + alpha * outer(vec1, vec2)."),
    DT_METHOD(addr_in_place, "addr_", "In place: addr."),
    DT_BOTH(
        addbmm, "addbmm",
        "beta * input + alpha * the sum of the products of two batches of matrices."),
    DT_METHOD(addbmm_in_place, "addbmm_", "In place: addbmm."),
    DT_BOTH(baddbmm, "baddbmm",
            "beta * input + alpha * (batch1 @ batch2), matrix by matrix."),
    DT_METHOD(baddbmm_in_place, "baddbmm_", "In place: baddbmm."),
    DT_BOTH(dist, "dist", "The p-norm of input - other, broadcasting: no dimensions."),
    DT_FUNCTION(
        cdist, "cdist",
        "The p-norms of all differences of rows: [..., n, k] and [..., m, k] give "
        "[..., n, m]."),
    DT_BOTH(argwhere, "argwhere",
            "The positions of elements that are not 0, row by row: [n, input.dim()]. "
            "Waits for a GPU."),
    DT_BOTH(masked_scatter, "masked_scatter",
            "A copy with the elements of source, in order, wherever mask holds."),
    DT_METHOD(masked_scatter_in_place, "masked_scatter_", "In place: masked_scatter."),
    DT_BOTH(index_put, "index_put",
            "A copy with values at the places that a tuple of index tensors chooses; "
            "accumulate adds them to what is there."),
    DT_METHOD(index_put_in_place, "index_put_", "In place: index_put."),
};

int dt_setup_composed(PyObject *module)
{
    return DT_ADD_ROWS(module, rows);
}
