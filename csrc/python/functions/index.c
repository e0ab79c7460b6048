/* Functions that choose elements by index tensors and masks. */
#include <string.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/ops.h"

DT_PUBLIC(nonzero,
          "nonzero(input: Tensor, *, as_tuple: bool = False, out: Tensor = None)")
{
    const dt_tensor *x = v[0].tensor;
    if (v[1].b && dt_given(args, 2))
        return PyErr_Format(PyExc_RuntimeError,
                            "nonzero(): as_tuple=True gives a tuple; give it no out=");
    if (v[1].b)
        return PyObject_CallMethod(dt_py.module, "where", "O", args->slots[0]);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    const dt_tensor *mask = x;
    int status;
    DT_RUN(status,
           x->numel > DT_LONG_NUMEL || dt_device_has_streams(dt_tensor_device(x)),
           dt_nonzero(&out->tensor, mask), &mask);
    return dt_finish(args, 2, out, status);
}

DT_PUBLIC(index_put_in_place, "index_put_(input: Tensor, indices: Any, values: Tensor, "
                              "accumulate: bool = False)")
{
    return dt_tensor_index_put(args->slots[0], args->slots[1], args->slots[2], v[3].b) <
                   0
               ? NULL
               : Py_NewRef(args->slots[0]);
}

static const dt_function rows[] = {
    DT_BOTH(
        nonzero, "nonzero",
        "The positions of elements that are not 0: int64 of shape [n, input.ndim];\n"
        "with as_tuple one tensor for each dimension. Waits for a GPU.",
        "torch.tensor([[0, 1], [2, 0]]).nonzero()",
        "tensor([[0, 1],\n        [1, 0]])"),
    DT_BOTH(
        index_put_in_place, "index_put_", "In-place index_put().",
        "x = torch.zeros(3)\nx.index_put_((torch.tensor([0, 2]),), torch.tensor([1.0, "
        "2.0])) is x",
        "True"),
};

int dt_setup_indexing(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
