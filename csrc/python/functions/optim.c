/* Updates of many tensors at once: what pydevtensor.optim and nn.utils call. */
#include <string.h>

#include "ops/elementwise_ops.h"
#include "ops/optim_ops.h"
#include "python/functions.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/ops.h"
#include "tensor/ops/optim.h"

static int find_rule(dt_optim_update *u, const char *name)
{
    int i = 0;
    while (i < DT_NOPTIM && strcmp(dt_optim_rules[i].name, name) != 0)
        i++;
    if (i == DT_NOPTIM)
        return DT_SET_ERROR(PyExc_ValueError,
                            "_update(): there is no rule '%.40s'; see _update_rules()",
                            name);
    u->op = (dt_optim_op)i;
    return 0;
}

/* How many parameters so many tensors are. */
static int count_parameters(dt_optim_update *u, const char *name, Py_ssize_t ntensors)
{
    const dt_optim_rule *rule = &dt_optim_rules[u->op];
    int each = 2 + rule->nstates;
    if (ntensors % each)
        return DT_SET_ERROR(PyExc_ValueError,
                            "_update(): %zd tensors were given; %s takes %d for each "
                            "parameter: it, its gradient, and %d states",
                            ntensors, name, each, rule->nstates);
    u->count = ntensors / each;
    return 0;
}

static int take_floats(const char *what, PyObject *tuple, Py_ssize_t count, double *out)
{
    if (PyTuple_GET_SIZE(tuple) != count)
        return DT_SET_ERROR(PyExc_ValueError,
                            "_update(): there are %zd %s; give %zd numbers",
                            PyTuple_GET_SIZE(tuple), what, count);
    for (Py_ssize_t i = 0; i < count; i++) {
        out[i] = PyFloat_AsDouble(PyTuple_GET_ITEM(tuple, i));
        if (out[i] == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

/* Adds a step to the Tensor that counts them. */
static int count_step(dt_tensor *t)
{
    if (dt_device_is_host(dt_tensor_device(t)) && t->dtype == DT_FLOAT32 &&
        t->numel == 1 && !t->storage->read_only) {
        *(float *)dt_tensor_data(t) += 1;
        dt_tensor_written(t);
        return 0;
    }
    dt_arg one = dt_arg_scalar(dt_scalar_int(1));
    return dt_elementwise_into(DT_OP_add, t, DT_ARGS(dt_arg_tensor(t), one));
}

static bool can_keep_number(const dt_tensor *t)
{
    return dt_dtype_is_float((dt_dtype)t->dtype) && t->numel == 1 &&
           !t->storage->read_only;
}

/* Reads what is kept for each parameter: a Tensor of one element for each number. */
static int take_kept(dt_optim_update *u, PyObject *tuple)
{
    const dt_optim_rule *rule = &dt_optim_rules[u->op];
    if (PyTuple_GET_SIZE(tuple) != u->count * rule->nkept)
        return DT_SET_ERROR(PyExc_ValueError,
                            "_update(): there are %zd kept numbers; %s takes %d for "
                            "each parameter",
                            PyTuple_GET_SIZE(tuple), rule->name, rule->nkept);
    for (int64_t i = 0; i < u->count * rule->nkept; i++) {
        PyObject *item = PyTuple_GET_ITEM(tuple, i);
        const dt_tensor *t = dt_tensor_check(item) ? dt_tensor_of(item) : NULL;
        if (!t || !can_keep_number(t))
            return DT_SET_ERROR(PyExc_TypeError,
                                "_update(): the kept number %lld is no Tensor that can "
                                "be written; give one of a floating type and of one "
                                "element",
                                (long long)i);
        dt_optim_kept *kept = &u->kept[i % u->count * rule->nkept + i / u->count];
        kept->is_float32 = t->dtype != DT_FLOAT64;
        kept->value = PyFloat_AsDouble(item);
        if (kept->value == -1 && PyErr_Occurred())
            return -1;
    }
    return 0;
}

static int put_kept(const dt_optim_update *u, PyObject *tuple)
{
    int each = dt_optim_rules[u->op].nkept;
    for (int64_t i = 0; i < u->count * each; i++) {
        dt_tensor *t = dt_tensor_of(PyTuple_GET_ITEM(tuple, i));
        double value = u->kept[i % u->count * each + i / u->count].value;
        /* Another thread may have changed it since. */
        if (!can_keep_number(t))
            return dt_fail(DT_ERROR_RUNTIME,
                           "_update(): a kept number was replaced while the step ran; "
                           "update parameters from one thread at a time");
        if (dt_fill_into("_update", t, dt_scalar_float(value)))
            return -1;
        dt_tensor_written(t);
    }
    return 0;
}

static int step(const char *function, dt_optim_update *u, const dt_tensor **items,
                Py_ssize_t count, bool is_long)
{
    dt_held held;
    if (!is_long)
        return dt_optim_step(function, u);
    if (dt_held_begin(&held, (size_t)count + 3) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < count; i++)
        dt_held_add(&held, &items[i]);
    dt_held_add(&held, &u->scale);
    dt_held_add(&held, &u->rate);
    dt_held_add(&held, &u->found);
    int status = dt_optim_step(function, u);
    dt_held_end(&held);
    return status;
}

/* The same for complex tensors, which rules take as pairs of real numbers. */
static int step_of_pairs(const char *function, dt_optim_update *u,
                         const dt_tensor **items, Py_ssize_t count, bool is_long)
{
    dt_tensor *views = PyMem_Calloc((size_t)count, sizeof *views);
    const dt_tensor **places = PyMem_New(const dt_tensor *, count);
    int status = views && places ? 0 : dt_fail(DT_ERROR_HOST_MEMORY, "no memory left");
    for (Py_ssize_t i = 0; i < count && !status; i++) {
        places[i] = &views[i];
        if (dt_dtype_is_complex((dt_dtype)items[i]->dtype))
            status = dt_complex_pairs(function, &views[i], items[i]);
        else
            dt_tensor_alias(&views[i], items[i]);
    }
    u->tensors = places;
    if (!status)
        status = step(function, u, places, count, is_long);
    for (Py_ssize_t i = 0; i < count && views; i++)
        dt_tensor_clear(&views[i]);
    PyMem_Free(places);
    PyMem_Free(views);
    return status;
}

/* Counts the step and stores the numbers that it changed. */
static int count_all(const dt_optim_update *u, PyObject *steps, PyObject *kept)
{
    for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(steps); i++)
        if (dt_tensor_check(PyTuple_GET_ITEM(steps, i)) &&
            count_step(dt_tensor_of(PyTuple_GET_ITEM(steps, i))))
            return -1;
    return put_kept(u, kept);
}

/* The arguments of a call besides tensors; `counted` is u->steps. */
typedef struct taken {
    PyObject *steps, *numbers, *kept;
    double *counted;
} taken;

static int take(taken *t, dt_optim_update *u, PyObject *steps, PyObject *numbers,
                PyObject *kept)
{
    t->steps = PySequence_Tuple(steps);
    t->numbers = PySequence_Tuple(numbers);
    t->kept = kept ? PySequence_Tuple(kept) : PyTuple_New(0);
    t->counted = PyMem_New(double, (Py_ssize_t)u->count + 1);
    if (t->kept)
        u->kept = PyMem_New(dt_optim_kept, PyTuple_GET_SIZE(t->kept) + 1);
    if (!t->counted || (t->kept && !u->kept))
        PyErr_NoMemory();
    if (!t->steps || !t->numbers || !t->counted || !u->kept)
        return -1;
    const Py_ssize_t nsteps = PyTuple_GET_SIZE(t->steps);
    if (take_floats("numbers", t->numbers, dt_optim_rules[u->op].nnumbers, u->numbers) <
            0 ||
        take_floats("steps", t->steps, nsteps ? u->count : 0, t->counted) < 0 ||
        take_kept(u, t->kept) < 0)
        return -1;
    for (Py_ssize_t i = 0; i < nsteps; i++)
        t->counted[i] += dt_tensor_check(PyTuple_GET_ITEM(t->steps, i));
    u->steps = nsteps ? t->counted : NULL;
    return 0;
}

static void drop(taken *t, dt_optim_update *u)
{
    PyMem_Free(t->counted);
    PyMem_Free(u->kept);
    Py_XDECREF(t->kept);
    Py_XDECREF(t->numbers);
    Py_XDECREF(t->steps);
}

DT_PUBLIC(update, "_update(rule: str, tensors: Tensors, steps: Any, numbers: Any, "
                  "scale: Tensor = None, kept: Any = None, captured: bool = False, "
                  "own: Tensor = None, rate: Tensor = None, found: Tensor = None)")
{
    dt_optim_update u = {.tensors = v[1].tensors,
                         .scale = v[4].tensor,
                         .own = v[7].tensor,
                         .rate = v[8].tensor,
                         .found = v[9].tensor};
    taken t = {NULL, NULL, NULL, NULL};
    int64_t numel = 0;
    bool pairs = false;
    int status = -1;
    if (find_rule(&u, v[0].text) < 0 ||
        count_parameters(&u, v[0].text, v[1].count) < 0 ||
        take(&t, &u, args->slots[2], args->slots[3],
             dt_given(args, 5) ? args->slots[5] : NULL) < 0)
        goto done;
    for (Py_ssize_t i = 0; i < u.count; i++)
        numel += u.tensors[i]->numel;
    for (Py_ssize_t i = 0; i < u.count; i++)
        pairs |= dt_dtype_is_complex((dt_dtype)u.tensors[i]->dtype);
    status = (pairs ? step_of_pairs : step)(args->signature->name, &u,
                                            (const dt_tensor **)v[1].tensors,
                                            v[1].count, numel > DT_LONG_NUMEL);
    if (!status && !v[6].b)
        status = count_all(&u, t.steps, t.kept);
    if (status)
        dt_raise();
done:
    drop(&t, &u);
    return status ? NULL : Py_NewRef(Py_None);
}

DT_PUBLIC(update_own,
          "_update_own(own: Tensor, rule: str, steps: Any, numbers: Any, kept: Any)")
{
    const dt_tensor *own = v[0].tensor;
    dt_optim_update u = {.count = own->numel / DT_OPTIM_OWN};
    taken t = {NULL, NULL, NULL, NULL};
    int status = -1;
    if (find_rule(&u, v[1].text) < 0 ||
        take(&t, &u, args->slots[2], args->slots[3], args->slots[4]) < 0)
        goto done;
    if (own->dtype != DT_FLOAT64 || !own->contiguous || own->numel % DT_OPTIM_OWN ||
        !dt_device_is_host(dt_tensor_device(own))) {
        PyErr_Format(PyExc_ValueError,
                     "_update_own(): give a contiguous float64 Tensor of the CPU of "
                     "shape [parameters, %d]",
                     DT_OPTIM_OWN);
        goto done;
    }
    dt_optim_prepare(&u, dt_tensor_data(own));
    dt_tensor_written((dt_tensor *)own);
    status = count_all(&u, t.steps, t.kept);
    if (status)
        dt_raise();
done:
    drop(&t, &u);
    return status ? NULL : Py_NewRef(Py_None);
}

DT_PUBLIC(update_rules, "_update_rules()")
{
    PyObject *rules = PyTuple_New(DT_NOPTIM);
    for (int i = 0; i < DT_NOPTIM && rules; i++) {
        const dt_optim_rule *rule = &dt_optim_rules[i];
        PyObject *row =
            Py_BuildValue("(sissis)", rule->name, rule->nstates, rule->states,
                          rule->numbers, rule->nkept, rule->kept);
        if (row)
            PyTuple_SET_ITEM(rules, i, row);
        else
            Py_CLEAR(rules);
    }
    return rules;
}

static const dt_function rows[] = {
    DT_FUNCTION(
        update, "_update",
        "Updates many Tensors in place by a rule, with one kernel for each device and\n"
        "type.\n\ntensors: the parameters, then their gradients, then for each state "
        "of the rule one a\nparameter. steps: for each parameter a Tensor that counts "
        "its updates and goes up by\n1, or the number of this update, from 1; empty: "
        "1. scale: a Tensor of one element, by\nwhich gradients are taken. kept: for "
        "each number that the rule keeps a Tensor of one\nelement a parameter, which "
        "is changed. captured: a graph captures the step, which is not counted. own:\n"
        "the table that _update_own fills before each replay of it. rate: a Tensor on "
        "the\nparameters' GPU that is the number lr; the others are those of an lr of "
        "1. found: a float32 Tensor\nof one element, which becomes 1 where the rule "
        "finds a gradient that is not finite. Autograd\ndoes not record it: call it "
        "under no_grad().",
        "", ""),
    DT_FUNCTION(
        update_own, "_update_own",
        "Writes the numbers that each parameter has for itself in its next step "
        "into a table,\na float64 Tensor of shape [parameters, width] on the "
        "CPU, and counts the step.",
        "", ""),
    DT_FUNCTION(update_rules, "_update_rules",
                "The rules of _update: name, number of states, the names of states and "
                "of numbers,\nhow many numbers are kept, and their names.",
                "", ""),
};

int dt_setup_updates(PyObject *module)
{
    return PyModule_AddIntConstant(module, "_UPDATE_OWN", DT_OPTIM_OWN) < 0
               ? -1
               : DT_ADD_FUNCTIONS(module, rows);
}
