/* Updates of many tensors at once: what pydevtensor.optim and nn.utils call. */
#include <string.h>

#include "python/functions.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/optim.h"

/* What a call holds on to while the GIL is released. */
typedef struct call {
    dt_optim_op op;
    Py_ssize_t count;
    PyObject *parameters, *gradients, *steps; /* tuples; steps NULL: none are given */
    PyObject *states[DT_OPTIM_STATES];
    dt_optim_item *items;
    double numbers[DT_OPTIM_NUMBERS];
    dt_tensor *scale;
} call;

static void release(call *c)
{
    PyMem_Free(c->items);
    for (int k = 0; k < DT_OPTIM_STATES; k++)
        Py_XDECREF(c->states[k]);
    Py_XDECREF(c->steps);
    Py_XDECREF(c->gradients);
    Py_XDECREF(c->parameters);
}

static int find_rule(const char *name, dt_optim_op *out)
{
    for (int i = 0; i < DT_NOPTIM; i++)
        if (!strcmp(dt_optim_rules[i].name, name)) {
            *out = (dt_optim_op)i;
            return 0;
        }
    PyErr_Format(PyExc_ValueError,
                 "_update(): there is no rule '%.40s'; those that there are stand in "
                 "_update_rules()",
                 name);
    return -1;
}

static PyObject *tuple_of(const char *what, PyObject *values, Py_ssize_t count)
{
    PyObject *tuple = PySequence_Tuple(values);
    if (tuple && count >= 0 && PyTuple_GET_SIZE(tuple) != count) {
        PyErr_Format(PyExc_ValueError,
                     "_update(): there are %zd %s for %zd parameters; give one each",
                     PyTuple_GET_SIZE(tuple), what, count);
        Py_CLEAR(tuple);
    }
    return tuple;
}

static dt_tensor *tensor_in(const char *what, PyObject *tuple, Py_ssize_t i)
{
    PyObject *value = PyTuple_GET_ITEM(tuple, i);
    if (dt_tensor_check(value))
        return dt_tensor_of(value);
    char text[DT_DESCRIBE_TEXT];
    PyErr_Format(PyExc_TypeError, "_update(): number %zd of the %s is %s; give Tensors",
                 i, what, dt_describe(value, text, sizeof text));
    return NULL;
}

static int names_in(const char *names)
{
    int count = 1;
    for (; *names; names++)
        count += *names == ',';
    return count;
}

static int take_numbers(call *c, PyObject *values)
{
    int wanted = names_in(dt_optim_rules[c->op].numbers);
    PyObject *tuple = PySequence_Tuple(values);
    if (!tuple)
        return -1;
    int status = 0;
    if (PyTuple_GET_SIZE(tuple) != wanted) {
        PyErr_Format(PyExc_ValueError, "_update(): %s takes the numbers %s",
                     dt_optim_rules[c->op].name, dt_optim_rules[c->op].numbers);
        status = -1;
    }
    for (int i = 0; i < wanted && !status; i++) {
        c->numbers[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, i));
        if (c->numbers[i] == -1 && PyErr_Occurred())
            status = -1;
    }
    Py_DECREF(tuple);
    return status;
}

/* Which update of the parameter it is: one more than the step that is counted. */
static int take_step(PyObject *value, double *out)
{
    if (!dt_tensor_check(value)) {
        *out = PyFloat_AsDouble(value);
        return *out == -1 && PyErr_Occurred() ? -1 : 0;
    }
    dt_scalar counted;
    int status;
    const dt_tensor *t = dt_tensor_of(value);
    DT_RUN(status, !dt_device_is_cpu(dt_tensor_device(t)),
           dt_item("step", t, &counted));
    if (status)
        return dt_raise_status();
    *out = dt_scalar_as_double(counted) + 1;
    return 0;
}

static int take(call *c, const dt_args *args)
{
    const char *name;
    if (dt_take_str(args, 0, &name) < 0 || find_rule(name, &c->op) < 0 ||
        !(c->parameters = tuple_of("parameters", args->slots[1], -1)))
        return -1;
    c->count = PyTuple_GET_SIZE(c->parameters);
    if (!(c->gradients = tuple_of("gradients", args->slots[2], c->count)))
        return -1;
    int nstates = dt_optim_rules[c->op].nstates;
    PyObject *states = tuple_of("lists of states", args->slots[3], -1);
    if (states && PyTuple_GET_SIZE(states) != nstates) {
        PyErr_Format(PyExc_ValueError,
                     "_update(): %s has %d states: %s; give a list for each", name,
                     nstates, dt_optim_rules[c->op].states);
        Py_CLEAR(states);
    }
    int status = states ? 0 : -1;
    for (int k = 0; k < nstates && !status; k++) {
        c->states[k] = tuple_of("states", PyTuple_GET_ITEM(states, k), c->count);
        status = c->states[k] ? 0 : -1;
    }
    Py_XDECREF(states);
    if (status)
        return -1;
    if (dt_given(args, 4) && !(c->steps = tuple_of("steps", args->slots[4], c->count)))
        return -1;
    if (take_numbers(c, args->slots[5]) < 0)
        return -1;
    return dt_given(args, 6) ? dt_take_tensor(args, 6, &c->scale) : 0;
}

static int take_items(call *c)
{
    c->items = PyMem_Calloc((size_t)c->count + 1, sizeof *c->items);
    if (!c->items) {
        PyErr_NoMemory();
        return -1;
    }
    for (Py_ssize_t i = 0; i < c->count; i++) {
        dt_optim_item *item = &c->items[i];
        if (!(item->parameter = tensor_in("parameters", c->parameters, i)) ||
            !(item->gradient = tensor_in("gradients", c->gradients, i)))
            return -1;
        for (int k = 0; k < dt_optim_rules[c->op].nstates; k++)
            if (!(item->states[k] = tensor_in("states", c->states[k], i)))
                return -1;
        item->step = 1;
        if (c->steps && take_step(PyTuple_GET_ITEM(c->steps, i), &item->step) < 0)
            return -1;
    }
    return 0;
}

/* Counts the step in the tensor that holds the count. */
static int count_step(dt_tensor *t)
{
    if (dt_device_is_cpu(dt_tensor_device(t)) && t->dtype == DT_FLOAT32 &&
        t->numel == 1 && !t->storage->read_only) {
        *(float *)dt_tensor_data(t) += 1;
        dt_tensor_written(t);
        return 0;
    }
    dt_arg one = dt_arg_scalar(dt_scalar_int(1));
    return dt_elementwise_into(DT_OP_add, t, DT_ARGS(dt_arg_tensor(t), one));
}

DT_PUBLIC(update, "_update(rule: str, parameters: Any, gradients: Any, states: Any, "
                  "steps: Any, numbers: Any, scale: Tensor = None)")
{
    call c;
    memset(&c, 0, sizeof c);
    int64_t numel = 0;
    int status = take(&c, args);
    if (!status)
        status = take_items(&c);
    for (Py_ssize_t i = 0; i < c.count && !status; i++)
        numel += c.items[i].parameter->numel;
    if (!status) {
        DT_RUN(status, numel > DT_LONG_NUMEL,
               dt_optim_step(args->signature->name, c.op, c.count, c.items, c.numbers,
                             c.scale));
        for (Py_ssize_t i = 0; i < c.count && c.steps && !status; i++)
            if (dt_tensor_check(PyTuple_GET_ITEM(c.steps, i)))
                status = count_step(dt_tensor_of(PyTuple_GET_ITEM(c.steps, i)));
        if (status)
            dt_raise();
    }
    release(&c);
    if (status)
        return NULL;
    Py_RETURN_NONE;
}

DT_PUBLIC(total_norm, "_total_norm(tensors: Any, ord: float = 2.0)")
{
    double p;
    if (dt_take_float(args, 1, &p) < 0)
        return NULL;
    PyObject *tuple = PySequence_Tuple(args->slots[0]);
    if (!tuple)
        return NULL;
    Py_ssize_t count = PyTuple_GET_SIZE(tuple);
    int64_t numel = 0;
    dt_tensor **tensors = PyMem_Calloc((size_t)count + 1, sizeof *tensors);
    dt_tensor_object *out = NULL;
    int status = tensors ? 0 : -1;
    if (!tensors)
        PyErr_NoMemory();
    for (Py_ssize_t i = 0; i < count && !status; i++) {
        PyObject *value = PyTuple_GET_ITEM(tuple, i);
        if (dt_tensor_check(value)) {
            tensors[i] = dt_tensor_of(value);
            numel += tensors[i]->numel;
        } else {
            dt_argument_error(args, 0);
            status = -1;
        }
    }
    if (!status)
        out = dt_tensor_object_new();
    if (out)
        DT_RUN(status, numel > DT_LONG_NUMEL,
               dt_total_norm("get_total_norm", &out->tensor, count, tensors, p));
    PyMem_Free(tensors);
    Py_DECREF(tuple);
    return out ? dt_tensor_result(out, status) : NULL;
}

/* "(a, b)" as ("a", "b"); the first `count` of them. */
static PyObject *names_of(const char *text, int count)
{
    PyObject *names = PyTuple_New(count);
    for (int i = 0; i < count && names; i++) {
        text += strspn(text, "(, ");
        size_t length = strcspn(text, ",)");
        PyObject *name = PyUnicode_FromStringAndSize(text, (Py_ssize_t)length);
        if (!name)
            Py_CLEAR(names);
        else
            PyTuple_SET_ITEM(names, i, name);
        text += length;
    }
    return names;
}

DT_PUBLIC(update_rules, "_update_rules()")
{
    (void)args;
    PyObject *rules = PyDict_New();
    for (int i = 0; i < DT_NOPTIM && rules; i++) {
        const dt_optim_rule *rule = &dt_optim_rules[i];
        PyObject *states = names_of(rule->states, rule->nstates);
        PyObject *numbers = names_of(rule->numbers, names_in(rule->numbers));
        PyObject *both = states && numbers ? PyTuple_Pack(2, states, numbers) : NULL;
        if (!both || PyDict_SetItemString(rules, rule->name, both) < 0)
            Py_CLEAR(rules);
        Py_XDECREF(both);
        Py_XDECREF(states);
        Py_XDECREF(numbers);
    }
    return rules;
}

static const dt_function rows[] = {
    DT_FUNCTION(
        update, "_update",
        "Updates many Tensors in place by a rule, with one kernel for each device and\n"
        "type.\n\nstates: for each state of the rule a list of Tensors. steps: for "
        "each "
        "parameter a\nTensor that counts its updates and goes up by 1, or the number "
        "of "
        "this update, from\n1; None: 1. scale: a Tensor of one element, by which "
        "gradients are taken. Sees no\nhistory: call it under no_grad()."),
    DT_FUNCTION(
        total_norm, "_total_norm",
        "The norm of all elements of Tensors of one type on one device; sees no "
        "history."),
    DT_FUNCTION(update_rules, "_update_rules",
                "The rules of _update: names of states and of numbers, by name."),
};

int dt_setup_updates(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
