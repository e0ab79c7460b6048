/* The quick way of the commonest collective calls, of contiguous tensors of the CPU: the
 * whole way is pydevtensor/distributed/_collectives.py's, and has all errors of arguments. */
#include "python/groups.h"

#include "ops/elementwise_ops.h"
#include "python/arguments.h"
#include "python/source_lines.h"

#define MOST_RANKS 64
/* The library's between the program and quick(): all_reduce() and what names its errors. */
#define FRAMES 2

/* A call. `part` is each rank's own, `whole` has one for each rank. */
typedef struct quick {
    const dt_python_group *group;
    const char *name, *op; /* op: of ReduceOp, or NULL */
    int root;              /* -1: none */
    PyObject *part, *whole;
    dt_group_exchange x;
    dt_group_span spans[MOST_RANKS], one;
} quick;

static const dt_tensor *plain(PyObject *given)
{
    if (!dt_tensor_check(given))
        return NULL;
    const dt_tensor *t = dt_tensor_of(given);
    return t->contiguous && dt_tensor_device(t).type == DT_CPU ? t : NULL;
}

static bool is_bits(int combine)
{
    return combine == DT_OP_bitwise_and || combine == DT_OP_bitwise_or ||
           combine == DT_OP_bitwise_xor;
}

/* The parts of a tensor of `ranks` times as many elements; false: it is not one. */
static bool split(quick *q, const dt_tensor *part)
{
    const int n = q->group->size;
    const dt_tensor *whole = plain(q->whole);
    if (!whole || n > MOST_RANKS || whole->dtype != part->dtype ||
        whole->numel != n * part->numel)
        return false;
    char *data = dt_tensor_data(whole);
    for (int r = 0; r < n; r++)
        q->spans[r] = (dt_group_span){data + r * q->one.bytes, q->one.bytes};
    return true;
}

/* Whether it is a call that this way takes. Fills in the exchange. */
static bool describe(quick *q)
{
    dt_group_exchange *x = &q->x;
    x->segments = 1;
    x->combine = DT_GROUP_COPY;
    if (q->part == Py_None) /* a barrier */
        return true;
    const dt_tensor *part = plain(q->part);
    if (!part || (q->op && !dt_python_group_find(q->op, &x->combine)) ||
        (is_bits(x->combine) && dt_dtype_is_float((dt_dtype)part->dtype)))
        return false;
    x->dtype = (dt_dtype)part->dtype;
    q->one = (dt_group_span){dt_tensor_data(part),
                             part->numel * (int64_t)dt_dtype_size(x->dtype)};
    if (q->whole != Py_None) {
        x->segments = q->op ? q->group->size : 1;
        x->in = q->op ? q->spans : &q->one;
        x->out = q->op ? &q->one : q->spans;
        return split(q, part);
    }
    if (q->root < 0) {
        x->in = x->out = &q->one;
        x->whole = true;
    } else if (q->root == q->group->rank) {
        x->in = &q->one;
    } else if (q->group->size <= MOST_RANKS) {
        memset(q->spans, 0, (size_t)q->group->size * sizeof *q->spans);
        q->spans[q->root] = q->one;
        x->out = q->spans;
    } else {
        return false;
    }
    return true;
}

static char *write_number(char *to, int64_t n)
{
    char digits[20];
    int count = 0;
    do
        digits[count++] = (char)('0' + n % 10);
    while (n /= 10);
    while (count)
        *to++ = digits[--count];
    return to;
}

/* The same text as key_of() of _collectives.py. */
static void write_key(const quick *q, char key[DT_GROUP_KEY])
{
    key = stpcpy(key, q->name);
    if (q->op)
        key = stpcpy(stpcpy(stpcpy(key, "("), q->op), ")");
    else if (q->root >= 0)
        key = stpcpy(write_number(stpcpy(key, "(src="), q->root), ")");
    if (q->part != Py_None) {
        key = write_number(stpcpy(key, " of "), dt_tensor_of(q->part)->numel);
        stpcpy(stpcpy(key, " "), dt_dtype_name(q->x.dtype));
    }
}

static int run_quick(dt_python_group *g, quick *q, double seconds)
{
    char key[DT_GROUP_KEY], line[DT_LINE_TEXT];
    dt_tensor held[2] = {0}; /* another thread may give them other memory */
    int status;
    write_key(q, key);
    const dt_group_call call = {"", key, dt_source_line_above(FRAMES, line), seconds,
                                NULL};
    if (q->part != Py_None)
        dt_tensor_alias(&held[0], dt_tensor_of(q->part));
    if (q->whole != Py_None)
        dt_tensor_alias(&held[1], dt_tensor_of(q->whole));
    DT_WAIT(status, dt_group_run(g->open, &call, &q->x));
    dt_tensor_clear(&held[0]);
    dt_tensor_clear(&held[1]);
    if (status < 0)
        dt_raise();
    else if (q->x.out)
        dt_tensor_written(dt_tensor_of(
            q->x.out == q->spans && q->whole != Py_None ? q->whole : q->part));
    return status;
}

/* quick(name, op, root, part, whole, seconds): whether it has made the call. */
static PyObject *call(PyObject *capsule, PyObject *const *given, Py_ssize_t count)
{
    if (count != 6)
        return PyErr_Format(PyExc_TypeError, "quick() takes 6 arguments");
    quick q = {.part = given[3], .whole = given[4]};
    q.root = (int)PyLong_AsLong(given[2]);
    const double seconds = PyFloat_AsDouble(given[5]);
    q.name = PyUnicode_AsUTF8(given[0]);
    if (given[1] != Py_None)
        q.op = PyUnicode_Check(given[1]) ? PyUnicode_AsUTF8(given[1]) : "";
    if (PyErr_Occurred())
        return NULL;
    dt_python_group *g = dt_python_group_begin(capsule);
    if (!g)
        return NULL;
    q.group = g;
    const bool fits = !g->queue && describe(&q);
    int status = 0;
    if (fits) {
        g->queue++;
        status = run_quick(g, &q, seconds);
        g->queue--;
    }
    dt_python_group_end(g);
    return status < 0 ? NULL : PyBool_FromLong(fits);
}

/* begin(inside): whether the queue was empty, or the caller is in the thread that makes its
 * calls. Then there is one more. */
static PyObject *begin_queued(PyObject *capsule, PyObject *inside)
{
    dt_python_group *g = dt_python_group_of(capsule);
    if (!g)
        return NULL;
    const bool begins = !g->queue || inside == Py_True;
    g->queue += begins;
    return PyBool_FromLong(begins);
}

/* add(n): n calls more. */
static PyObject *add(PyObject *capsule, PyObject *n)
{
    dt_python_group *g = dt_python_group_of(capsule);
    const long more = PyLong_AsLong(n);
    if (!g || PyErr_Occurred())
        return NULL;
    g->queue += (int)more;
    Py_RETURN_NONE;
}

static PyMethodDef bound[] = {
    {"quick", (PyCFunction)(void (*)(void))call, METH_FASTCALL, NULL},
    {"begin", begin_queued, METH_O, NULL},
    {"add", add, METH_O, NULL},
};

/* _group_queue(group): the functions quick, begin and add above, of the group. */
static PyObject *queue(PyObject *Py_UNUSED(self), PyObject *capsule)
{
    if (!dt_python_group_of(capsule))
        return NULL;
    PyObject *all = PyTuple_New(3);
    for (int i = 0; all && i < 3; i++) {
        PyObject *made = PyCFunction_New(&bound[i], capsule);
        if (made)
            PyTuple_SET_ITEM(all, i, made);
        else
            Py_CLEAR(all);
    }
    return all;
}

PyMethodDef dt_groups_quick_functions[] = {
    {"_group_queue", queue, METH_O, NULL},
    {NULL, NULL, 0, NULL},
};
