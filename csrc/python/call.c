/* A call of a record from Python: the arguments are bound to its schema and converted, the
 * call is dispatched, and its results become objects. call_quick.c has the quick way. */
#include "python/call.h"

#include <math.h>
#include <string.h>

#include "python/types/device.h"
#include "tensor/ops/ops.h"

/* dtype and device of a factory. */
static int convert_factory(dt_values *s, const dt_args *args, int first)
{
    const dt_tensor *like = NULL;
    int dtype = -1;
    if (args->signature->parameters[0].type == DT_PARAM_TENSOR &&
        dt_tensor_check(args->slots[0]))
        like = dt_tensor_of(args->slots[0]);
    if (dt_take_factory(args, first, like, &dtype, &s->device) < 0)
        return -1;
    s->v[first].dtype = dtype;
    s->v[first + 2].device = s->device;
    return 0;
}

/* About how many elements a factory makes: the product of its sizes or, without sizes,
 * of its numbers, of which a step may be small. */
static double factory_numel(const dt_args *args, const dt_value *values, int first)
{
    double sizes = 1, numbers = 1;
    bool has_sizes = false;
    for (int i = 0; i < first; i++) {
        dt_param_type type = args->signature->parameters[i].type;
        has_sizes |= type == DT_PARAM_SIZES;
        for (int d = 0; type == DT_PARAM_SIZES && d < values[i].count; d++)
            sizes *= fabs((double)values[i].ints[d]);
        double n = type == DT_PARAM_INT ? fabs((double)values[i].i)
                   : type == DT_PARAM_NUMBER
                       ? fabs(dt_scalar_as_double(values[i].scalar))
                       : 0;
        numbers *= n > 1 ? n : n > 0 ? 1 / n : 1;
    }
    return fmin(has_sizes ? sizes : numbers, 1e18);
}

/* If a call's first parameter is a Value and all arguments are numbers, the first
 * becomes a tensor on the default device. */
static int convert_numbers(dt_values *s, const dt_args *args, const dt_op *op,
                           dt_tensor_object **number)
{
    dt_arg first = dt_value_operand(&s->v[0]);
    dt_device device;
    for (int i = 1; i < args->signature->count; i++)
        if (i != args->signature->out && s->v[i].tensor)
            return 0;
    if (!(op->flags & DT_NUMBERS))
        return dt_argument_error(args, 0);
    *number = dt_default_device(&device) < 0 ? NULL : dt_tensor_object_new();
    if (!*number)
        return -1;
    s->v[0].tensor = &(*number)->tensor;
    return dt_full(args->signature->name, &(*number)->tensor, dt_result_type(&first, 1),
                   0, NULL, device, first.scalar) < 0
               ? dt_raise_status()
               : 0;
}

static int dispatch(dt_call *call, dt_values *s)
{
    return dt_call_is_long(call, s->numel)
               ? dt_dispatch_long(call, s->v, s->has_list ? s->list.items : NULL,
                                  s->has_list ? s->list.count : 0)
               : dt_dispatch(call);
}

static PyObject *call_dense(dt_signature *signature, bool in_place, DT_CALL_PARAMETERS)
{
    dt_args bound;
    const dt_args *args = &bound;
    if (dt_bind(signature, &bound, self, values, count, kwnames) < 0)
        return NULL;
    dt_op *op = args->signature->op;
    const dt_op_info *info = dt_op_info_of(op);
    dt_tensor_object *objects[DT_MAX_RESULTS];
    PyObject *result = NULL;
    int made = 0, status, i = 0;
    dt_tensor_object *number = NULL; /* the first argument of a call of numbers alone */
    dt_values s;
    if (!info)
        return dt_raise();
    dt_values_begin(&s);
    dt_call call;
    call.op = op;
    call.name = info->schema.name;
    call.args = s.v;
    call.target = NULL;
    int first = info->factory, out = args->signature->out;
    bool has_out = out >= 0 && dt_given(args, out);
    if (has_out && info->nresults == 1 && dt_take_tensor(args, out, &call.target) < 0)
        return NULL;
    if (first >= 0 && convert_factory(&s, args, first) < 0)
        return NULL;
    int some = args->given > info->nfixed ? args->given : info->nfixed;
    for (; i < some; i++)
        if (i == first)
            i += DT_FACTORY_NKWARGS - 1;
        else if (!args->slots[i] && info->optional[i])
            s.v[i] = info->defaults[i];
        else if (i != out && dt_convert(&s, args, i) < 0)
            goto done;
    for (; i < info->schema.count; i++) /* methods in place lack the last ones */
        if (i == first)
            i += DT_FACTORY_NKWARGS - 1;
        else
            s.v[i] = info->defaults[i];
    in_place = in_place || info->in_place ||
               (args->signature->inplace < args->signature->count &&
                s.v[args->signature->inplace].b);
    call.node = in_place ? info->in_place_node : op->node;
    call.in_place = in_place;
    if (first >= 0)
        s.numel += (int64_t)factory_numel(args, s.v, first);
    else if (args->signature->count &&
             args->signature->parameters[0].type == DT_PARAM_VALUE && !s.v[0].tensor &&
             convert_numbers(&s, args, op, &number) < 0)
        goto done;
    if (info->schema.out >= 0)
        s.v[info->schema.out] = info->defaults[info->schema.out];
    if (in_place && (op->flags & DT_WRITES)) {
        call.name = args->signature->name;
        call.node = op->node;
        call.out[0] = dt_tensor_of(args->slots[0]);
        status = dispatch(&call, &s);
        result = status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
        goto done;
    }
    for (; made < info->nresults; made++) {
        objects[made] = dt_tensor_object_new();
        if (!objects[made])
            goto done;
        call.out[made] = &objects[made]->tensor;
    }
    status = dispatch(&call, &s);
    made = 0; /* finishing takes them over */
    if (info->plain && !in_place && first < 0 && !has_out)
        result = dt_tensor_result(objects[0], status);
    else
        result = dt_finish_record(args, info, &call, objects, status);
done:
    while (made)
        Py_DECREF((PyObject *)objects[--made]);
    dt_values_release(&s);
    Py_XDECREF((PyObject *)number);
    return result;
}

/* Whether a call has failed because it is norm(x, 'nuc'), which linalg computes. */
static bool is_nuclear_norm(const dt_signature *signature, PyObject *const *values,
                            Py_ssize_t count)
{
    bool found = false;
    if (strcmp(signature->name, "norm") != 0 ||
        !PyErr_ExceptionMatches(PyExc_NotImplementedError))
        return false;
    for (Py_ssize_t i = 0; i < count && !found; i++)
        found = PyUnicode_Check(values[i]) &&
                PyUnicode_CompareWithASCIIString(values[i], "nuc") == 0;
    return found;
}

PyObject *dt_call_record(dt_signature *signature, bool in_place, DT_CALL_PARAMETERS)
{
    PyObject *result = call_dense(signature, in_place, self, values, count, kwnames);
    Py_ssize_t all = count + (kwnames ? PyTuple_GET_SIZE(kwnames) : 0);
    const char *name = signature->name;
    if (result || !is_nuclear_norm(signature, values, all))
        return result ? result
                      : dt_call_sparse(name, name, self, values, count, kwnames);
    PyErr_Clear();
    return dt_call_whole("pydevtensor.linalg.norms", "call_nuclear_norm",
                         PyUnicode_FromString(signature->name), self, values, count,
                         kwnames);
}
