/* Public functions made of the rows of ops/functions: each is bound to its schema,
 * dispatched, and its results handed to Python. */
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "autograd/dispatch.h"
#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"
#include "python/types/dtype.h"
#include "python/types/device.h"

/* --- one call --- */

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

/* Whether an argument is on another device than the first one. */
static bool crosses(const dt_call *c, int count)
{
    const dt_tensor *x = c->args[0].tensor;
    for (int i = 1; i < count && x; i++)
        if (c->args[i].tensor &&
            !dt_device_equal(dt_tensor_device(c->args[i].tensor), dt_tensor_device(x)))
            return true;
    return false;
}

static inline bool is_long(const dt_call *c, int64_t numel)
{
    unsigned flags = c->op->flags;
    return (flags & DT_LONG) ||
           numel > ((flags & DT_COSTLY) ? DT_LONG_NUMEL / 16 : DT_LONG_NUMEL) ||
           ((flags & DT_ANY_DEVICE) && crosses(c, c->op->info->schema.count));
}

/* A long call, whose arguments `values` are. `items`: those of a list among them. */
static __attribute__((noinline)) int dispatch_long(dt_call *call, dt_value *values,
                                                   const dt_tensor **items,
                                                   Py_ssize_t nitems)
{
    const dt_schema *schema = &call->op->info->schema;
    const dt_tensor *target = call->target, *first = values[0].tensor;
    dt_held held;
    if (dt_held_begin(&held, (size_t)(schema->count + 1 + nitems)) < 0)
        return -1;
    for (int i = 0; i < schema->count; i++)
        if (schema->parameters[i].type == DT_PARAM_TENSOR ||
            schema->parameters[i].type == DT_PARAM_VALUE)
            dt_held_add(&held, &values[i].tensor);
    for (Py_ssize_t k = 0; k < nitems; k++)
        dt_held_add(&held, &items[k]);
    dt_held_add(&held, &target);
    call->target = (dt_tensor *)target;
    dt_tensor *out = call->out[0];
    if (out && out == first) /* it is written in place */
        call->out[0] = (dt_tensor *)values[0].tensor;
    int status = dt_dispatch(call);
    dt_held_end(&held);
    call->target = (dt_tensor *)target;
    call->out[0] = out;
    return status;
}

/* The result becomes the input: a view's shape and strides, or else the elements. */
static PyObject *finish_in_place(const dt_args *args, dt_call *call,
                                 dt_tensor_object *made, int status)
{
    PyObject *self = args->slots[0];
    if (call->op->flags & DT_VIEW) {
        if (!status)
            status = dt_recorded_become_steal(args->signature->name, call->node,
                                              dt_tensor_of(self), &made->tensor);
        Py_DECREF((PyObject *)made);
        return status < 0 ? dt_raise() : Py_NewRef(self);
    }
    PyObject *result = dt_tensor_result(made, status);
    if (!result)
        return NULL;
    status = dt_copy_in_place(args->signature->name, self, dt_tensor_of(result));
    Py_DECREF(result);
    return status < 0 ? NULL : Py_NewRef(self);
}

/* A tuple of the results that forward made; one result alone is not a tuple. */
static PyObject *finish_tensors(dt_tensor_object **objects, int count, int status)
{
    PyObject *made[DT_MAX_RESULTS], *tuple = NULL;
    int nmade = 0;
    for (int k = 0; k < count; k++)
        if (status == 0 && objects[k]->tensor.storage)
            made[nmade++] = dt_tensor_result(objects[k], 0);
        else
            Py_DECREF((PyObject *)objects[k]);
    if (status < 0)
        return dt_raise();
    if (nmade == 1)
        return made[0];
    tuple = PyTuple_New(nmade);
    for (int k = 0; k < nmade; k++)
        if (tuple)
            PyTuple_SET_ITEM(tuple, k, made[k]);
        else
            Py_DECREF(made[k]);
    return tuple;
}

/* A tuple with names, or, with out= given, a tuple of the tensors in it. */
static PyObject *finish_tuple(const dt_args *args, const dt_op_info *info,
                              dt_tensor_object **objects, int status)
{
    if (!strncmp(info->schema.results, "(Tensor", 7))
        return finish_tensors(objects, info->nresults, status);
    PyTypeObject *type =
        dt_named_tuple_type(args->signature->name, info->schema.results);
    if (!type || status < 0) {
        for (int k = 0; k < info->nresults; k++)
            Py_DECREF((PyObject *)objects[k]);
        return type ? dt_raise() : NULL;
    }
    return dt_finish_results(args, args->signature->out, type, info->nresults, objects);
}

/* A tuple of the tensors of a list. */
static PyObject *finish_list(dt_call *call, int status)
{
    if (status < 0)
        return dt_raise();
    PyObject *tuple = PyTuple_New((Py_ssize_t)call->list_count);
    for (int64_t i = 0; tuple && i < call->list_count; i++) {
        PyObject *item = dt_tensor_object_steal(&call->list[i]);
        if (item)
            PyTuple_SET_ITEM(tuple, i, item);
        else
            Py_CLEAR(tuple);
    }
    dt_call_free_list(call);
    return tuple;
}

/* Copies the result, whose graph ends here, to the argument out=. */
static PyObject *finish_without_graph(const dt_args *args, dt_call *call,
                                      dt_tensor_object *made)
{
    dt_tensor_object *result = dt_tensor_object_new();
    if (result)
        dt_tensor_alias(&result->tensor, &made->tensor);
    Py_DECREF((PyObject *)made);
    if (!result)
        return NULL;
    PyObject *out = dt_finish(args, args->signature->out, result, 0);
    if (out && dt_record_refusal(dt_tensor_of(out), args->signature->name,
                                 call->args[0].tensor) < 0) {
        Py_DECREF(out);
        return dt_raise();
    }
    return out;
}

/* The result of a call that does not simply return one new tensor. */
static PyObject *finish_record(const dt_args *args, const dt_op_info *info,
                               dt_call *call, dt_tensor_object **objects, int status)
{
    int out = args->signature->out;
    if (info->list)
        return finish_list(call, status);
    if (call->in_place)
        return finish_in_place(args, call, objects[0], status);
    if (info->nresults > 1)
        return finish_tuple(args, info, objects, status);
    if (info->factory >= 0)
        return dt_finish_factory(args, info->factory,
                                 dt_tensor_result(objects[0], status));
    if (out < 0)
        return dt_tensor_result(objects[0], status);
    if (call->op->flags & DT_OUT_BREAKS_GRAPH && status == 0 && dt_given(args, out) &&
        dt_recording(call->args[0].tensor) &&
        !dt_requires_grad(dt_tensor_of(args->slots[out])))
        return finish_without_graph(args, call, objects[0]);
    return dt_finish(args, out, objects[0], status);
}

/* Runs the commonest calls: a Tensor and what dt_convert_quickly takes, by position,
 * with one result. Returns false, having done nothing, for others. */
static inline __attribute__((always_inline)) bool
run_quickly(dt_signature *signature, bool in_place, PyObject *self,
            PyObject *const *values, Py_ssize_t count, PyObject **result)
{
    PyObject *input = self ? self : count ? *values : NULL;
    int before = self != NULL, given = (int)count + before, i = 0;
    if (!signature->simple || given < signature->required ||
        given > signature->positional || !input || Py_TYPE(input) != dt_py.tensor_type)
        return false;
    if (given > signature->inplace) {
        PyObject *choice = values[--given - before];
        in_place = choice == Py_True;
        if (!in_place && choice != Py_False)
            return false;
    }
    const dt_op_info *info = dt_op_info_of(signature->op);
    dt_call call = {.op = signature->op, .name = signature->name};
    call.in_place = in_place || (info && info->in_place);
    if (!info || !info->plain || info->factory >= 0 || given < info->nfixed ||
        (call.in_place && !(call.op->flags & DT_WRITES)))
        return false;
    dt_value all[DT_MAX_PARAMETERS];
    int64_t numel = 0;
    for (; i < given; i++) {
        PyObject *value = i ? values[i - before] : input;
        if (!dt_convert_quickly(&signature->parameters[i], value, &all[i]))
            return false;
        numel += all[i].tensor ? all[i].tensor->numel : 0;
    }
    for (; i < info->schema.count; i++) /* `out`, too, which methods in place lack */
        all[i] = info->defaults[i];
    call.args = all;
    call.node = call.op->node;
    dt_tensor_object *made = call.in_place ? NULL : dt_tensor_object_new();
    *result = NULL;
    if (!made && !call.in_place)
        return true;
    call.out[0] = made ? &made->tensor : dt_tensor_of(input);
    int status =
        is_long(&call, numel) ? dispatch_long(&call, all, NULL, 0) : dt_dispatch(&call);
    *result = made          ? dt_tensor_result(made, status)
              : status == 0 ? Py_NewRef(input)
                            : dt_raise();
    return true;
}

static int dispatch(dt_call *call, dt_values *s)
{
    return is_long(call, s->numel)
               ? dispatch_long(call, s->v, s->has_list ? s->list.items : NULL,
                               s->has_list ? s->list.count : 0)
               : dt_dispatch(call);
}

static PyObject *run_record(dt_signature *signature, bool in_place, DT_CALL_PARAMETERS)
{
    PyObject *quick;
    if (!kwnames && run_quickly(signature, in_place, self, values, count, &quick))
        return quick;
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
        result = finish_record(args, info, &call, objects, status);
done:
    while (made)
        Py_DECREF((PyObject *)objects[--made]);
    dt_values_release(&s);
    Py_XDECREF((PyObject *)number);
    return result;
}

/* --- the rows as functions and methods --- */

enum {
#define OP(id, ...) ROW_##id,
#include "ops/functions/all.def"
#undef OP
    NROWS
};

/* The first row of each name; set at import. */
static dt_signature *function_signatures[NROWS], *method_signatures[NROWS],
    *in_place_signatures[NROWS];

#define OP(id, ...)                                                                    \
    DT_FUNCTION_ENTRY(id##_function, run_record, function_signatures[ROW_##id], false) \
    DT_METHOD_ENTRY(id##_method, run_record, method_signatures[ROW_##id], false)       \
    DT_FUNCTION_ENTRY(id##_in_place_function, run_record,                              \
                      in_place_signatures[ROW_##id], true)                             \
    DT_METHOD_ENTRY(id##_in_place_method, run_record, in_place_signatures[ROW_##id],   \
                    true)
#include "ops/functions/all.def"
#undef OP

#define OP(id, ...) extern dt_op dt_op_##id;
#include "ops/functions/all.def"
#undef OP

static const struct {
    dt_op *op;
    dt_function_call function, method, in_place_function, in_place_method;
} rows[NROWS] = {
#define OP(id, ...)                                                                    \
    {&dt_op_##id, id##_function, id##_method, id##_in_place_function,                  \
     id##_in_place_method},
#include "ops/functions/all.def"
#undef OP
};

static size_t name_length(const char *schema)
{
    return strcspn(schema, "(");
}

/* Whether row k is an overload of row i: of its name, in the same module. */
static bool is_overload(int i, int k)
{
    const dt_op *a = rows[i].op, *b = rows[k].op;
    size_t length = name_length(a->schema);
    return length == name_length(b->schema) && !memcmp(a->schema, b->schema, length) &&
           !((a->flags ^ b->flags) & DT_NN);
}

/* One overload's schema as its function (`*name: Sizes` takes one sequence) or in-place
 * method (its input a Tensor, no `out` or `inplace`, no named results) has it. Returns
 * the end of the text. */
static char *derive(char *out, const char *schema, bool function, bool in_place)
{
    size_t length = name_length(schema);
    out = stpncpy(out, schema, length);
    if (in_place)
        *out++ = '_';
    const char *c = schema + length, *end = strstr(c, ") -> ");
    static const char output[] = ", *, out: Tensor = None", last[] = ", out: Tensor";
    static const char choice[] = ", inplace: Truth = False";
    static const char value[] = "(input: Value";
    if (in_place && !strncmp(c, value, sizeof value - 1)) {
        out = stpcpy(out, "(input: Tensor");
        c += sizeof value - 1;
    }
    for (; *c; c++) {
        const char *sizes = *c == '*' ? strstr(c, ": Sizes") : NULL;
        if (function && sizes && c[1] != ',' && sizes < c + strcspn(c, ",)"))
            continue;
        if (in_place && !strncmp(c, output, sizeof output - 1))
            c += sizeof output - 1;
        else if (in_place && !strncmp(c, choice, sizeof choice - 1))
            c += sizeof choice - 1;
        else if (in_place && !strncmp(c, last, sizeof last - 1))
            c += strcspn(c + 1, ",)") + 1;
        *out++ = *c;
        if (in_place && c == end)
            break;
    }
    *out = '\0';
    return out;
}

/* The signature of row i and its overloads: all that have a flag of `wants`. */
static dt_signature *make_signature(int i, unsigned wants, bool function, bool in_place)
{
    size_t room = 1, count = 0;
    int stop = i;
    for (; stop < NROWS && is_overload(i, stop); stop++)
        room += strlen(rows[stop].op->schema) + 4;
    dt_signature *signature = PyMem_RawCalloc(1, sizeof *signature);
    dt_op **ops = PyMem_RawCalloc((size_t)(stop - i), sizeof *ops);
    char *text = PyMem_RawMalloc(room), *end = text;
    if (!signature || !ops || !text) {
        PyMem_RawFree(signature);
        PyMem_RawFree(ops);
        PyMem_RawFree(text);
        PyErr_NoMemory();
        return NULL;
    }
    for (int k = i; k < stop; k++)
        if (rows[k].op->flags & wants) {
            end = end == text ? end : stpcpy(end, " | ");
            end = derive(end, rows[k].op->schema, function, in_place);
            ops[count++] = rows[k].op;
        }
    signature->text = text;
    signature->ops = ops;
    return signature;
}

/* With DT_NN among the flags, for nn.functional. */
static int add(PyObject *module, unsigned flags, const char *name,
               dt_signature *signature, dt_function_call function,
               dt_function_call method, const char *doc)
{
    dt_function *entry = PyMem_RawCalloc(1, sizeof *entry);
    if (!entry || !name || !doc) {
        PyMem_RawFree(entry);
        PyErr_NoMemory();
        return -1;
    }
    entry->name = name;
    entry->signature = signature;
    entry->function = function;
    entry->method = method;
    entry->doc = doc;
    entry->example = entry->prints = "";
    if (!(flags & DT_NN))
        return dt_add_functions(module, entry, 1);
    dt_publish("nn.functional", entry, 1);
    return 0;
}

/* A text for free(); NULL where no memory is left. */
__attribute__((format(printf, 1, 2))) static char *text_of(const char *format, ...)
{
    char *text;
    va_list values;
    va_start(values, format);
    if (vasprintf(&text, format, values) < 0)
        text = NULL;
    va_end(values);
    return text;
}

/* The docstring of the in-place method. The last paragraph of a function with out= or
 * inplace= describes the result's type, which does not apply in place: replace it. */
static char *in_place_doc(const dt_op *op)
{
    int length = (int)name_length(op->schema);
    const char *end = strstr(op->doc, "\n\n");
    if (!end || (!strstr(op->schema, "out: Tensor") && !strstr(op->schema, "inplace")))
        return text_of("In-place %.*s(). %s", length, op->schema, op->doc);
    return text_of(
        "In-place %.*s(). %.*s\n\nThe result has to have input's shape, and a "
        "type that input's can hold (RuntimeError where not).",
        length, op->schema, (int)(end - op->doc), op->doc);
}

/* Adds row i, the first of its name, with its overloads; under another name where alias
 * is given. */
static int add_row(PyObject *module, int i, const char *alias)
{
    const dt_op *op = rows[i].op;
    /* The method tables use names and docstrings: never free them. */
    char *first = text_of("%.*s", (int)name_length(op->schema), op->schema);
    const char *name = alias ? alias : first;
    char *what = alias ? text_of("The same as %s().", first) : strdup(op->doc);
    char *doc = dt_doc_with_example(what, first, op->example, op->prints, false);
    free(what);
    unsigned flags = 0;
    bool shared = !strstr(op->schema, ": Sizes"); /* one signature for both */
    for (int k = i; k < NROWS && is_overload(i, k); k++) {
        flags |= rows[k].op->flags;
        shared = shared && (rows[k].op->flags & DT_BOTH) == DT_BOTH;
    }
    if (flags & DT_METHOD) {
        if (!method_signatures[i])
            method_signatures[i] = make_signature(i, DT_METHOD, false, false);
        if (shared)
            function_signatures[i] = method_signatures[i];
        if (!method_signatures[i] ||
            add(module, flags, name, method_signatures[i],
                shared ? rows[i].function : NULL, rows[i].method, doc) < 0)
            return -1;
    }
    const unsigned function = DT_FUNCTION | DT_NN;
    if (flags & function && !shared) {
        if (!function_signatures[i])
            function_signatures[i] =
                make_signature(i, function, flags & DT_METHOD, false);
        if (!function_signatures[i] || add(module, flags, name, function_signatures[i],
                                           rows[i].function, NULL, doc) < 0)
            return -1;
    }
    const unsigned in_place = DT_IN_PLACE | DT_IN_PLACE_TOO;
    if (!(flags & in_place))
        return 0;
    if (!in_place_signatures[i])
        in_place_signatures[i] = make_signature(i, in_place, false, true);
    what = alias ? text_of("The same as %s_().", first) : in_place_doc(op);
    doc = dt_doc_with_example(what, first, op->example, op->prints, true);
    free(what);
    if (!in_place_signatures[i])
        return -1;
    return add(module, flags, text_of("%s_", name), in_place_signatures[i],
               flags & DT_IN_PLACE_TOO ? rows[i].in_place_function : NULL,
               flags & DT_IN_PLACE ? rows[i].in_place_method : NULL, doc);
}

int dt_setup_operations(PyObject *module)
{
    for (int i = 0; i < NROWS; i++) {
        if (!(i && is_overload(i - 1, i)) &&
            rows[i].op->flags & (DT_BOTH | DT_IN_PLACE | DT_NN) &&
            add_row(module, i, NULL) < 0)
            return -1;
    }
    static const struct {
        const char *name;
        int row;
    } aliases[] = {
#define ALIAS(name, row) {#name, ROW_##row},
#include "ops/elementwise.def"
    };
    for (size_t k = 0; k < sizeof aliases / sizeof *aliases; k++)
        if (add_row(module, aliases[k].row, aliases[k].name) < 0)
            return -1;
    return 0;
}
