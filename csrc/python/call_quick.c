/* The quick way of calls from Python. The whole way, dt_call_record in call.c, binds arguments
 * by name, chooses among overloads, converts lists and sizes, and knows factories and
 * several results. The commonest calls need none of that: a Tensor and what
 * dt_convert_quickly takes, by position, with one result. It is safe, since nothing is
 * done before all arguments are known to be of that kind; all other calls, and with them
 * all errors of arguments, are the whole way's. */
#include "python/call.h"

static __attribute__((noinline)) PyObject *call_plain(dt_signature *signature,
                                                      bool in_place, PyObject *self,
                                                      PyObject *const *values,
                                                      Py_ssize_t count)
{
    PyObject *input = self ? self : count ? *values : NULL;
    int before = self != NULL, given = (int)count + before, i = 0;
    bool writes = in_place;
    if (given < signature->required || given > signature->positional || !input ||
        Py_TYPE(input) != dt_py.tensor_type)
        goto whole;
    if (given > signature->inplace) {
        PyObject *choice = values[--given - before];
        writes = choice == Py_True;
        if (!writes && choice != Py_False)
            goto whole;
    }
    const dt_op_info *info = dt_op_info_of(signature->op);
    dt_call call = {.op = signature->op, .name = signature->name};
    call.in_place = writes || (info && info->in_place);
    if (!info || !info->plain || info->factory >= 0 || given < info->nfixed ||
        (call.in_place && !(call.op->flags & DT_WRITES)))
        goto whole;
    dt_value all[DT_MAX_PARAMETERS];
    int64_t numel = 0;
    for (; i < given; i++) {
        PyObject *value = i ? values[i - before] : input;
        if (!dt_convert_quickly(&signature->parameters[i], value, &all[i]))
            goto whole;
        numel += all[i].tensor ? all[i].tensor->numel : 0;
    }
    for (; i < info->schema.count; i++) /* `out`, too, which methods in place lack */
        all[i] = info->defaults[i];
    call.args = all;
    call.node = call.op->node;
    dt_tensor_object *made = call.in_place ? NULL : dt_tensor_object_new();
    if (!made && !call.in_place)
        return NULL;
    call.out[0] = made ? &made->tensor : dt_tensor_of(input);
    int status = dt_call_is_long(&call, numel) ? dt_dispatch_long(&call, all, NULL, 0)
                                               : dt_dispatch(&call);
    return made          ? dt_tensor_result(made, status)
           : status == 0 ? Py_NewRef(input)
                         : dt_raise();
whole:
    return dt_call_record(signature, in_place, self, values, count, NULL);
}

PyObject *dt_call_record_quick(dt_signature *signature, bool in_place,
                               DT_CALL_PARAMETERS)
{
    return kwnames || !signature->simple
               ? dt_call_record(signature, in_place, self, values, count, kwnames)
               : call_plain(signature, in_place, self, values, count);
}
