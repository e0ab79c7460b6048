/* The guards of waits and of copies: cuda.set_sync_debug_mode, cuda.transfer_guard. */
#include <string.h>

#include "device/activity.h"
#include "python/arguments.h"
#include "python/errors.h"
#include "python/source_lines.h"
#include "python/threads.h"
#include "tensor/tensor.h"

static enum { ALLOW, WARN, FORBID } waits;

/* The rule for the copies of a direction. Those after UNSET are in the order of _MODES
 * in pydevtensor/cuda/guards.py. */
typedef enum { UNSET, ALLOWED, LOGGED, ASKED, FORBIDDEN } rule;
enum { DIRECTIONS = 3 };
static struct {
    unsigned char process[DIRECTIONS];
    int threads; /* that have rules of their own */
} copies;
/* UNSET: as in the process. */
static _Thread_local unsigned char own[DIRECTIONS];

enum { COPY_TEXT = 1024 };

/* "the copy of a float32 tensor of shape [2, 3] from cuda:0 to the CPU (train.py:7)" */
static void describe(const dt_activity *activity, char text[COPY_TEXT])
{
    char device[DT_DEVICE_TEXT], shape[DT_SHAPE_TEXT], line[DT_LINE_TEXT], what[256];
    const dt_tensor *t = activity->tensor;
    bool to_host = activity->kind == DT_ACTIVITY_DEVICE_TO_HOST;
    dt_device_text(activity->device, device);
    dt_source_line_now(line);
    if (t)
        snprintf(what, sizeof what, "a %s tensor of shape %s",
                 dt_dtype_name((dt_dtype)t->dtype),
                 dt_shape_text(t->ndim, t->shape, shape, sizeof shape));
    else
        snprintf(what, sizeof what, "%lld bytes", (long long)activity->bytes);
    snprintf(text, COPY_TEXT, "the copy of %s %s %s%s%s%s%s", what,
             to_host ? "from" : "to", device, to_host ? " to the CPU" : "",
             *line ? " (" : "", line, *line ? ")" : "");
}

static int check_wait(const dt_activity *activity)
{
    const char *what = activity->kind == DT_ACTIVITY_WAIT ? "a wait for a stream"
                                                          : "a copy to the host";
    char device[DT_DEVICE_TEXT];
    dt_device_text(activity->device, device);
    if (waits == FORBID)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s made the host wait for %s, which set_sync_debug_mode('error') "
            "forbids; keep values on the device, or copy them with "
            "non_blocking=True from and to pinned memory",
            what, device);
    return PyErr_WarnFormat(PyExc_UserWarning, 1,
                            "%s made the host wait for %s; keep values on the device "
                            "where that is too slow",
                            what, device) < 0
               ? dt_fail(DT_ERROR_RUNTIME, "the warning became an error")
               : 0;
}

static int log_copy(const char *what)
{
    DT_REF text = PyUnicode_DecodeUTF8(what, (Py_ssize_t)strlen(what), "replace");
    DT_REF done =
        text ? dt_python_call("pydevtensor.cuda.guards", "log", "(O)", text) : NULL;
    return done ? 0 : dt_fail(DT_ERROR_RUNTIME, "the copy could not be logged");
}

static rule rule_of(dt_activity_kind kind)
{
    int direction = kind - DT_ACTIVITY_HOST_TO_DEVICE;
    return own[direction] ? own[direction] : copies.process[direction];
}

/* hint: what to do instead; NULL: as the copy is. */
static int check_copy(const dt_activity *activity, rule r, const char *hint)
{
    char what[COPY_TEXT];
    describe(activity, what);
    if (r == LOGGED)
        return log_copy(what);
    return dt_fail(
        DT_ERROR_RUNTIME, "%s is forbidden by transfer_guard('disallow%s'); %s", what,
        r == ASKED ? "_implicit" : "",
        hint         ? hint
        : r != ASKED ? "keep the tensor where it is, or allow the copy with `with "
                       "torch.cuda.transfer_guard('allow'):`"
        : activity->kind == DT_ACTIVITY_DEVICE_TO_HOST
            ? "keep the value on the device, or ask for the copy with .cpu()"
            : "ask for the copy with .to(device)");
}

static int begin_guard(const dt_activity *activity, void **mark)
{
    (void)mark;
    rule r = ALLOWED;
    if (activity->kind < DT_ACTIVITY_WAIT)
        r = rule_of(activity->kind);
    bool copy = r == LOGGED || r == FORBIDDEN || (r == ASKED && !activity->asked);
    bool wait = waits != ALLOW && activity->waits &&
                !(activity->kind == DT_ACTIVITY_WAIT && activity->asked);
    if (!copy && !wait)
        return 0;
    DT_WITH_GIL;
    int status = copy ? check_copy(activity, r, NULL) : 0;
    if (!status && wait)
        status = check_wait(activity);
    return status;
}

static const dt_observer observer = {.begin = begin_guard};

static void observe(void)
{
    bool needed = waits != ALLOW || copies.threads;
    for (int i = 0; i < DIRECTIONS; i++)
        needed |= copies.process[i] > ALLOWED;
    (needed ? dt_observer_add : dt_observer_remove)(&observer);
}

static PyObject *set_sync_debug_mode(PyObject *Py_UNUSED(self), PyObject *value)
{
    int wanted = (int)PyLong_AsLong(value);
    if (wanted < ALLOW || wanted > FORBID)
        return PyErr_Occurred()
                   ? NULL
                   : PyErr_Format(PyExc_ValueError, "no such mode: %d", wanted);
    waits = wanted;
    observe();
    Py_RETURN_NONE;
}

static PyObject *get_sync_debug_mode(PyObject *Py_UNUSED(self),
                                     PyObject *Py_UNUSED(unused))
{
    return PyLong_FromLong(waits);
}

/* _transfer_rules(here, host_to_device, device_to_host, device_to_device): sets the
 * rules of the process or, with `here`, of this thread, and returns those before. */
static PyObject *transfer_rules(PyObject *Py_UNUSED(self), PyObject *args)
{
    int here, rules[DIRECTIONS];
    if (!PyArg_ParseTuple(args, "piii", &here, &rules[0], &rules[1], &rules[2]))
        return NULL;
    unsigned char *kept = here ? own : copies.process;
    PyObject *before = Py_BuildValue("(iii)", kept[0], kept[1], kept[2]);
    if (!before)
        return NULL;
    bool had = kept[0] || kept[1] || kept[2], has = rules[0] || rules[1] || rules[2];
    for (int i = 0; i < DIRECTIONS; i++)
        kept[i] = (unsigned char)rules[i];
    copies.threads += here ? has - had : 0;
    observe();
    return before;
}

/* _refuse_copy(tensor, to_host, hint): raises if a rule forbids the copy of a GPU's tensor
 * to the host or back that a call makes for the program later. */
static PyObject *refuse_copy(PyObject *Py_UNUSED(self), PyObject *args)
{
    PyObject *tensor;
    int to_host;
    const char *hint;
    if (!PyArg_ParseTuple(args, "Ops:_refuse_copy", &tensor, &to_host, &hint))
        return NULL;
    if (!dt_tensor_check(tensor))
        return PyErr_Format(PyExc_TypeError, "%s is given; give a Tensor",
                            Py_TYPE(tensor)->tp_name);
    const dt_tensor *t = dt_tensor_of(tensor);
    const dt_activity activity = {.kind = to_host ? DT_ACTIVITY_DEVICE_TO_HOST
                                                  : DT_ACTIVITY_HOST_TO_DEVICE,
                                  .device = dt_tensor_device(t),
                                  .tensor = t};
    rule r = rule_of(activity.kind);
    if (r >= ASKED && check_copy(&activity, r, hint) < 0)
        return dt_raise();
    Py_RETURN_NONE;
}

PyMethodDef dt_guards_functions[] = {
    {"_set_sync_debug_mode", set_sync_debug_mode, METH_O, NULL},
    {"_get_sync_debug_mode", get_sync_debug_mode, METH_NOARGS, NULL},
    {"_transfer_rules", transfer_rules, METH_VARARGS, NULL},
    {"_refuse_copy", refuse_copy, METH_VARARGS, NULL},
    {NULL, NULL, 0, NULL},
};
