/* The Tensor object: lifetime, operators, type. */
#include "python/types/tensor.h"

#include <stddef.h>
#include <stdio.h>
#if PY_VERSION_HEX < 0x030c0000
#include <structmember.h>
#define Py_T_PYSSIZET T_PYSSIZET
#define Py_READONLY   READONLY
#endif

#include "ops/elementwise_ops.h"
#include "python/arguments.h"
#include "python/overrides.h"
#include "python/threads.h"
#include "python/types/tensor_protocols.h"
#include "autograd/autocast.h"
#include "autograd/recorded.h"
#include "tensor/ops/copy.h"
#include "tensor/ops/elementwise.h"
#include "tensor/ops/ops.h"
#include "tensor/view.h"

/* --- lifetime --- */

/* Free list of objects of the exact type; they keep their reference to the type.
 * Guarded by the GIL. */
#define KEPT 128
#define NAME 40 /* of an operator's name */
static dt_tensor_object *kept[KEPT];
static int nkept;

dt_tensor_object *dt_tensor_object_new(void)
{
    dt_tensor_object *self;
    if (nkept) {
        self = kept[--nkept];
        _Py_NewReference((PyObject *)self);
    } else {
        /* Untracked by the garbage collector: without a __dict__ it has no
         * references. */
        self = PyObject_GC_New(dt_tensor_object, dt_py.tensor_type);
        if (!self)
            return NULL;
        self->weakrefs = NULL;
        self->dict = NULL;
        self->slot = NULL;
        self->keeper = NULL;
    }
    self->tensor.storage = NULL;
    return self;
}

dt_tensor_object *dt_tensor_object_new_of(PyTypeObject *type)
{
    if (type == dt_py.tensor_type)
        return dt_tensor_object_new();
    if (dt_override_note(type) < 0)
        return NULL;
    return (dt_tensor_object *)type->tp_alloc(type, 0); /* zeroed */
}

PyObject *dt_tensor_object_steal(dt_tensor *t)
{
    dt_tensor_object *self = dt_tensor_object_new();
    if (!self) {
        dt_tensor_clear(t);
        return NULL;
    }
    self->tensor = *t;
    t->storage = NULL;
    if (self->tensor.history)
        dt_tensor_object_track(self);
    return (PyObject *)self;
}

PyObject *dt_tensor_object_over(dt_tensor_object *object, dt_device device, void *data,
                                size_t bytes, bool read_only, void (*release)(void *),
                                void *owner)
{
    dt_tensor *t = &object->tensor;
    t->offset = 0;
    t->history = NULL;
    t->unversioned = false;
    t->storage =
        dt_storage_new_borrowed(device, data, bytes, read_only, release, owner);
    if (!t->storage)
        return dt_tensor_result(object, -1);
    dt_tensor_update(t);
    return (PyObject *)object;
}

void dt_object_free(void *object)
{
    if (!Py_IsInitialized())
        return;
    DT_WITH_GIL;
    Py_DECREF((PyObject *)object);
}

void dt_tensor_object_bind(dt_tensor_object *object, void **slot, dt_history *keeper)
{
    *slot = object;
    object->slot = slot;
    object->keeper = dt_history_retain(keeper);
}

void dt_tensor_object_forget(dt_tensor_object *object)
{
    dt_history *keeper = object->keeper;
    *object->slot = NULL;
    object->slot = NULL;
    object->keeper = NULL;
    dt_history_release(keeper);
}

static void tensor_dealloc(PyObject *object)
{
    dt_tensor_object *self = (dt_tensor_object *)object;
    PyTypeObject *type = Py_TYPE(object);
    bool exact = type == dt_py.tensor_type;
    if (self->slot)
        dt_tensor_object_forget(self); /* before any code that might ask for it */
    PyObject_GC_UnTrack(object); /* also if tp_clear has cleared the __dict__ already */
    if (self->weakrefs)
        PyObject_ClearWeakRefs(object);
    Py_CLEAR(self->dict);
    dt_tensor_clear(&self->tensor);
    if (exact && nkept < KEPT) {
        kept[nkept++] = self;
        return;
    }
    type->tp_free(object);
    Py_DECREF(type);
}

static int tensor_traverse(PyObject *self, visitproc visit, void *arg)
{
    Py_VISIT(((dt_tensor_object *)self)->dict);
    Py_VISIT(Py_TYPE(self));
    return dt_history_traverse(dt_tensor_of(self), visit, arg);
}

static int tensor_clear(PyObject *self)
{
    Py_CLEAR(((dt_tensor_object *)self)->dict);
    dt_history_drop(dt_tensor_of(self));
    return 0;
}

void dt_tensor_object_track(dt_tensor_object *object)
{
    const dt_variable *v = dt_variable_of(&object->tensor);
    if (v && v->made.node && v->made.node->calls_back &&
        !PyObject_GC_IsTracked((PyObject *)object))
        PyObject_GC_Track((PyObject *)object);
}

/* With a __dict__ it may be part of a cycle. */
static void track(PyObject *self)
{
    if (((dt_tensor_object *)self)->dict && !PyObject_GC_IsTracked(self))
        PyObject_GC_Track(self);
}

static int tensor_setattr(PyObject *self, PyObject *name, PyObject *value)
{
    int status = PyObject_GenericSetAttr(self, name, value);
    track(self);
    return status;
}

static PyObject *get_dict(PyObject *self, void *context)
{
    PyObject *dict = PyObject_GenericGetDict(self, context);
    track(self);
    return dict;
}

static int set_dict(PyObject *self, PyObject *value, void *context)
{
    int status = PyObject_GenericSetDict(self, value, context);
    track(self);
    return status;
}

/* --- operators --- */

static inline bool is_long(const dt_arg *a)
{
    return a->tensor && a->tensor->numel > DT_LONG_NUMEL;
}

/* Not inlined, as what it holds would cost small calls time. */
static __attribute__((noinline)) int run_long(dt_elementwise_op op, dt_tensor *out,
                                              bool in_place, dt_arg x, dt_arg y)
{
    int status;
    DT_RUN(status, true,
           in_place
               ? dt_recorded_elementwise_into(op, (dt_tensor *)x.tensor, DT_ARGS(x, y))
               : dt_recorded_elementwise(op, out, DT_ARGS(x, y)),
           &x.tensor, &y.tensor);
    return status;
}

static PyObject *binary(dt_elementwise_op op, PyObject *a, PyObject *b);

/* The same where one operand is a complex number; an exception is set. */
static __attribute__((noinline)) PyObject *binary_with_complex(dt_elementwise_op op,
                                                               PyObject *a, PyObject *b)
{
    const bool first = dt_is_complex_number(a);
    if (!first && !dt_is_complex_number(b))
        return NULL;
    PyErr_Clear();
    PyObject *other = first ? b : a;
    if (!dt_tensor_check(other))
        Py_RETURN_NOTIMPLEMENTED;
    DT_REF number = dt_complex_from_python(first ? a : b,
                                           dt_complex_type_beside(dt_tensor_of(other)));
    return !number ? NULL : first ? binary(op, number, b) : binary(op, a, number);
}

/* Asks the class of an operand that is not a Tensor. */
static __attribute__((noinline)) PyObject *binary_with_other(dt_elementwise_op op,
                                                             PyObject *a, PyObject *b)
{
    PyObject *both[] = {a, b};
    PyObject *made =
        dt_override_failed(dt_elementwise_rows[op].name, NULL, both, 2, NULL);
    return made == Py_NotImplemented ? Py_NewRef(made) : made;
}

static PyObject *binary(dt_elementwise_op op, PyObject *a, PyObject *b)
{
    dt_arg x, y;
    DT_OVERRIDE(dt_override_operator(dt_elementwise_rows[op].name, a, b, NULL));
    int status = dt_operand_from_python(a, &x);
    if (status > 0)
        status = dt_operand_from_python(b, &y);
    if (status <= 0) {
        if (status < 0)
            return binary_with_complex(op, a, b);
        return binary_with_other(op, a, b);
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    status = is_long(&x) || is_long(&y)
                 ? run_long(op, &out->tensor, false, x, y)
                 : dt_recorded_elementwise(op, &out->tensor, DT_ARGS(x, y));
    return dt_tensor_result(out, status);
}

/* "add_": for overrides, which read it at once. */
static const char *in_place_name(dt_elementwise_op op, char name[NAME])
{
    snprintf(name, NAME, "%s_", dt_elementwise_rows[op].name);
    return name;
}

static PyObject *binary_in_place(dt_elementwise_op op, PyObject *self, PyObject *other)
{
    char name[NAME];
    dt_arg x = dt_arg_tensor(dt_tensor_of(self)), y;
    DT_REF array = NULL;
    DT_OVERRIDE(dt_override_operator(in_place_name(op, name), self, other, NULL));
    int status = dt_operand_from_python(other, &y);
    if (!status) {
        /* NumPy's own operator would make an array of self. */
        array =
            dt_python_call("pydevtensor._functions.ufuncs", "operand", "(O)", other);
        if (!array || array == Py_NotImplemented)
            return Py_XNewRef(array);
        status = dt_operand_from_python(array, &y);
    }
    if (status < 0 && dt_is_complex_number(other)) {
        PyErr_Clear();
        array =
            dt_complex_from_python(other, dt_complex_type_beside(dt_tensor_of(self)));
        status = array ? dt_operand_from_python(array, &y) : -1;
    }
    if (status < 0)
        return NULL;
    status = is_long(&x) || is_long(&y)
                 ? run_long(op, NULL, true, x, y)
                 : dt_recorded_elementwise_into(op, dt_tensor_of(self), DT_ARGS(x, y));
    return status < 0 ? dt_raise() : Py_NewRef(self);
}

static PyObject *binary_of_casts(dt_elementwise_op op, PyObject *a, PyObject *b);

/* A number divided by a Tensor is a multiple of its reciprocal, which autocast computes in
 * float32 on GPUs. */
static inline bool is_reciprocal(dt_elementwise_op op, PyObject *a)
{
    return op == DT_OP_div && dt_autocast.on && !dt_tensor_check(a);
}

#define OPERATOR(slot, op)                                                             \
    static PyObject *op_##slot(PyObject *a, PyObject *b)                               \
    {                                                                                  \
        return is_reciprocal(DT_OP_##op, a) ? binary_of_casts(DT_OP_##op, a, b)        \
                                            : binary(DT_OP_##op, a, b);                \
    }                                                                                  \
    static PyObject *in_place_##slot(PyObject *a, PyObject *b)                         \
    {                                                                                  \
        return binary_in_place(DT_OP_##op, a, b);                                      \
    }
/* The binary operators that are rows of ops/elementwise.def. */
#define OPERATORS(OPERATOR)                                                            \
    OPERATOR(add, add)                                                                 \
    OPERATOR(subtract, sub)                                                            \
    OPERATOR(multiply, mul)                                                            \
    OPERATOR(true_divide, div)                                                         \
    OPERATOR(floor_divide, floor_divide)                                               \
    OPERATOR(remainder, remainder)                                                     \
    OPERATOR(and, bitwise_and)                                                         \
    OPERATOR(or, bitwise_or)                                                           \
    OPERATOR(xor, bitwise_xor)                                                         \
    OPERATOR(lshift, bitwise_left_shift)                                               \
    OPERATOR(rshift, bitwise_right_shift)
OPERATORS(OPERATOR)
#undef OPERATOR

/* The operation with Tensors of float32 where autocast asks for it, on GPUs. */
static PyObject *binary_of_casts(dt_elementwise_op op, PyObject *a, PyObject *b)
{
    PyObject *both[] = {a, b}, *result = NULL;
    dt_tensor_object *casts[2] = {NULL, NULL};
    bool failed = false;
    for (int i = 0; i < 2 && !failed; i++) {
        if (!dt_tensor_check(both[i]) ||
            dt_device_is_cpu(dt_tensor_device(dt_tensor_of(both[i]))))
            continue;
        casts[i] = dt_tensor_object_new();
        const dt_tensor *t = casts[i]
                                 ? dt_autocast_as(&casts[i]->tensor,
                                                  dt_tensor_of(both[i]), DT_CASTS_FLOAT)
                                 : NULL;
        failed = !t;
        if (t == &casts[i]->tensor)
            both[i] = (PyObject *)casts[i];
    }
    if (!failed)
        result = binary(op, both[0], both[1]);
    else if (!PyErr_Occurred())
        dt_raise();
    Py_XDECREF((PyObject *)casts[0]);
    Py_XDECREF((PyObject *)casts[1]);
    return result;
}

static PyObject *power(PyObject *a, PyObject *b, PyObject *modulus)
{
    if (modulus != Py_None)
        return PyErr_Format(PyExc_TypeError,
                            "pow(): tensors take no modulus; use (a ** b) %% modulus");
    return dt_autocast.on ? binary_of_casts(DT_OP_pow, a, b) : binary(DT_OP_pow, a, b);
}

static PyObject *power_in_place(PyObject *a, PyObject *b, PyObject *Py_UNUSED(modulus))
{
    return binary_in_place(DT_OP_pow, a, b);
}

static PyObject *compare(PyObject *a, PyObject *b, int op)
{
    static const dt_elementwise_op ops[] = {
        [Py_LT] = DT_OP_lt, [Py_LE] = DT_OP_le, [Py_EQ] = DT_OP_eq,
        [Py_NE] = DT_OP_ne, [Py_GT] = DT_OP_gt, [Py_GE] = DT_OP_ge,
    };
    return binary(ops[op], a, b);
}

static PyObject *unary(dt_elementwise_op op, PyObject *self)
{
    DT_OVERRIDE(dt_override_operator(dt_elementwise_rows[op].name, self, NULL, NULL));
    dt_arg x = dt_arg_tensor(dt_tensor_of(self));
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    return dt_tensor_result(
        out, is_long(&x) ? run_long(op, &out->tensor, false, x, x)
                         : dt_recorded_elementwise(op, &out->tensor, DT_ARGS(x)));
}

static PyObject *negative(PyObject *self)
{
    return unary(DT_OP_neg, self);
}
static PyObject *absolute(PyObject *self)
{
    return unary(DT_OP_abs, self);
}
static PyObject *invert(PyObject *self)
{
    if (dt_dtype_is_inexact((dt_dtype)dt_tensor_of(self)->dtype))
        return PyErr_Format(PyExc_TypeError,
                            "~: not defined for floating tensors; convert "
                            "with .to(torch.int64) or .to(torch.bool)");
    return unary(DT_OP_bitwise_not, self);
}
static PyObject *positive(PyObject *self)
{
    if (dt_tensor_of(self)->dtype == DT_BOOL)
        return PyErr_Format(PyExc_RuntimeError,
                            "+: not defined for bools; convert them first, e.g. "
                            "with .int()");
    return Py_NewRef(self);
}

static int multiply_tensors(dt_tensor *out, const dt_tensor *x, const dt_tensor *y)
{
    return dt_recording(x) || dt_recording(y) || dt_autocast.on
               ? DT_CALL(matmul, out, dt_value_tensor(x), dt_value_tensor(y))
               : dt_matmul(out, x, y);
}

static __attribute__((noinline)) int multiply_long(dt_tensor *out, const dt_tensor *x,
                                                   const dt_tensor *y)
{
    int status;
    DT_RUN(status, true, multiply_tensors(out, x, y), &x, &y);
    return status;
}

static PyObject *matrix_multiply(PyObject *a, PyObject *b)
{
    DT_OVERRIDE(dt_override_operator("matmul", a, b, NULL));
    if (!dt_tensor_check(a) || !dt_tensor_check(b)) {
        PyObject *both[] = {a, b};
        PyObject *made = dt_override_failed("matmul", NULL, both, 2, NULL);
        return made == Py_NotImplemented ? Py_NewRef(made) : made;
    }
    const dt_tensor *x = dt_tensor_of(a), *y = dt_tensor_of(b);
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    int64_t columns = y->ndim > 1 ? y->shape[y->ndim - 1] : 1;
    bool long_run =
        (double)x->numel * (double)columns > 5e5 || y->numel > DT_LONG_NUMEL;
    return dt_tensor_result(out, long_run ? multiply_long(&out->tensor, x, y)
                                          : multiply_tensors(&out->tensor, x, y));
}

/* --- text --- */

/* Printing is written in Python, imported when a tensor is first printed. */
static PyObject *repr(PyObject *self)
{
    DT_OVERRIDE(dt_override_operator("__repr__", self, NULL, NULL));
    return dt_python_call("pydevtensor.printing", "tensor_repr", "(O)", self);
}

static PyObject *format(PyObject *self, PyObject *spec)
{
    return dt_python_call("pydevtensor.printing", "format_tensor", "(OO)", self, spec);
}

static Py_hash_t hash(PyObject *self)
{
    return Py_HashPointer(self); /* == compares elements, so hash by identity */
}

/* --- the type --- */

static PyObject *array_ufunc(PyObject *Py_UNUSED(self), PyObject *args,
                             PyObject *kwargs)
{
    return dt_python_call("pydevtensor._functions.ufuncs", "array_ufunc", "(OO)", args,
                          kwargs ? kwargs : Py_None);
}

/* (cls, func, types, args=(), kwargs=None) */
static PyObject *torch_function(PyObject *cls, PyObject *args, PyObject *kwargs)
{
    DT_REF module = PyImport_ImportModule("pydevtensor.overrides");
    DT_REF function = module ? PyObject_GetAttrString(module, "_default") : NULL;
    DT_REF first = function ? PyTuple_Pack(1, cls) : NULL;
    DT_REF all = first ? PySequence_Concat(first, args) : NULL;
    return all ? PyObject_Call(function, all, kwargs) : NULL;
}

static PyObject *make_subclass(PyObject *Py_UNUSED(none), PyObject *args,
                               PyObject *kwargs)
{
    DT_REF function = PyObject_GetAttrString(dt_py.module, "_make_subclass");
    return function ? PyObject_Call(function, args, kwargs) : NULL;
}

static PyMethodDef methods[] = {
    {"__torch_function__", (PyCFunction)(void (*)(void))torch_function,
     METH_VARARGS | METH_KEYWORDS | METH_CLASS,
     "__torch_function__($type, func, types, args=(), kwargs=None, /)\n--\n\n"
     "Called for functions of objects of a subclass: the results are of it, too."},
    {"_make_subclass", (PyCFunction)(void (*)(void))make_subclass,
     METH_VARARGS | METH_KEYWORDS | METH_STATIC,
     "An object of a subclass over the memory of data."},
    {"__format__", format, METH_O, NULL},
    {"__array_ufunc__", (PyCFunction)(void (*)(void))array_ufunc,
     METH_VARARGS | METH_KEYWORDS,
     "__array_ufunc__($self, ufunc, method, /, *inputs, **kwargs)\n--\n\n"
     "Called by NumPy's functions and operators, on arrays and tensors.\n\n"
     "An operator of a tensor and an array gives what it gives of two tensors; "
     "another\n"
     "function computes on the memory of CPU tensors. The results are tensors.\n\n"
     ">>> import numpy\n"
     ">>> numpy.ones(2, numpy.float32) + torch.ones(2)\n"
     "tensor([2., 2.])\n"
     ">>> numpy.exp(torch.zeros(2))\n"
     "tensor([1., 1.])"},
    {NULL, NULL, 0, NULL},
};

static PyMemberDef members[] = {
    {"__weaklistoffset__", Py_T_PYSSIZET, offsetof(dt_tensor_object, weakrefs),
     Py_READONLY, NULL},
    {"__dictoffset__", Py_T_PYSSIZET, offsetof(dt_tensor_object, dict), Py_READONLY,
     NULL},
    {NULL, 0, 0, 0, NULL},
};

static PyGetSetDef getset[] = {
    {"__dict__", get_dict, set_dict, NULL, NULL},
    {NULL, NULL, NULL, NULL, NULL},
};

static PyType_Slot slots[] = {
    {Py_tp_doc, "A multi-dimensional array of numbers of one type, on one device.\n\n"
                ">>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]])\n"
                ">>> x[0] + x[:, 1]\n"
                "tensor([3., 6.])"},
    {Py_tp_new, dt_tensor_construct},
    {Py_tp_dealloc, tensor_dealloc},
    {Py_tp_traverse, tensor_traverse},
    {Py_tp_clear, tensor_clear},
    {Py_tp_free, PyObject_GC_Del},
    {Py_tp_setattro, tensor_setattr},
    {Py_tp_repr, repr},
    {Py_tp_hash, hash},
    {Py_tp_richcompare, compare},
    {Py_tp_iter, dt_tensor_iterate},
    {Py_tp_methods, methods},
    {Py_tp_members, members},
    {Py_tp_getset, getset},
#define OPERATOR(slot, op)                                                             \
    {Py_nb_##slot, op_##slot}, {Py_nb_inplace_##slot, in_place_##slot},
    OPERATORS(OPERATOR)
#undef OPERATOR
        {Py_nb_power, power},
    {Py_nb_inplace_power, power_in_place},
    {Py_nb_matrix_multiply, matrix_multiply},
    {Py_nb_negative, negative},
    {Py_nb_positive, positive},
    {Py_nb_absolute, absolute},
    {Py_nb_invert, invert},
    {Py_nb_bool, dt_tensor_to_bool},
    {Py_nb_int, dt_tensor_to_int},
    {Py_nb_float, dt_tensor_to_float},
    {Py_nb_index, dt_tensor_to_index},
    {Py_sq_length, dt_tensor_length},
    {Py_sq_item, dt_tensor_sequence_item},
    {Py_sq_contains, dt_tensor_contains},
    {Py_bf_getbuffer, dt_tensor_get_buffer},
    {Py_bf_releasebuffer, dt_tensor_release_buffer},
    {Py_mp_length, dt_tensor_length},
    {Py_mp_subscript, dt_tensor_subscript},
    {Py_mp_ass_subscript, dt_tensor_ass_subscript},
    {0, NULL},
};

int dt_setup_tensor_type(PyObject *module)
{
    dt_py.tensor_type = dt_add_type(
        module, "pydevtensor.Tensor", sizeof(dt_tensor_object),
        Py_TPFLAGS_DEFAULT | Py_TPFLAGS_BASETYPE | Py_TPFLAGS_HAVE_GC, NULL, slots);
    if (!dt_py.tensor_type)
        return -1;
    /* makes NumPy's operators defer to the tensor's */
    PyObject *priority = PyLong_FromLong(1000);
    int status = priority ? PyDict_SetItemString(dt_py.tensor_type->tp_dict,
                                                 "__array_priority__", priority)
                          : -1;
    Py_XDECREF(priority);
    PyType_Modified(dt_py.tensor_type);
    return status;
}
