/* Functions of three elements: the rows of ops/ternary.def as Python calls them. */
#include <math.h>

#include "autograd/recorded.h"
#include "python/functions.h"
#include "python/output.h"

/* A row on three operands, to a new tensor, into `out` (at index out_at), or in place.
 */
static PyObject *run(dt_ternary_op op, const char *name, const dt_arg *three,
                     const dt_args *args, int out_at, bool in_place)
{
    bool releases = false;
    int status;
    for (int i = 0; i < 3; i++)
        releases |= three[i].tensor && three[i].tensor->numel > DT_LONG_NUMEL;
    if (in_place) {
        dt_tensor *target;
        if (dt_take_tensor(args, 0, &target) < 0)
            return NULL;
        DT_RUN(status, releases, dt_recorded_ternary_into(op, name, target, three));
        return status < 0 ? dt_raise() : Py_NewRef(args->slots[0]);
    }
    dt_tensor_object *out = dt_tensor_object_new();
    if (!out)
        return NULL;
    DT_RUN(status, releases, dt_recorded_ternary(op, name, &out->tensor, three));
    return dt_finish(args, out_at, out, status);
}

/* --- addcmul, addcdiv --- */

static PyObject *add_scaled(dt_ternary_op op, const char *name, const dt_args *args,
                            bool in_place)
{
    dt_tensor *tensors[3], scaled;
    dt_scalar value;
    for (int i = 0; i < 3; i++)
        if (dt_take_tensor(args, i, &tensors[i]) < 0)
            return NULL;
    if (dt_take_number(args, 3, &value) < 0)
        return NULL;
    dt_arg three[] = {dt_arg_tensor(tensors[0]), dt_arg_tensor(tensors[1]),
                      dt_arg_tensor(tensors[2])};
    if (op == DT_TERNARY_addcdiv && !dt_dtype_is_float(dt_result_type(three + 1, 2))) {
        PyErr_SetString(PyExc_RuntimeError,
                        "addcdiv(): tensor1 and tensor2 hold integers, whose quotients "
                        "would be rounded; convert one of them with .float()");
        return NULL;
    }
    if (value.kind == DT_KIND_FLOAT && !dt_dtype_is_float(dt_result_type(three, 3)))
        value = dt_scalar_int((int64_t)value.f);
    if (dt_scalar_as_double(value) == 1)
        return run(op, name, three, args, 4, in_place);
    int status;
    scaled.storage = NULL;
    DT_RUN(status, tensors[1]->numel > DT_LONG_NUMEL,
           dt_recorded_binary(DT_BINARY_mul, &scaled, three[1], dt_arg_scalar(value)));
    if (status < 0)
        return dt_raise();
    three[1] = dt_arg_tensor(&scaled);
    PyObject *result = run(op, name, three, args, 4, in_place);
    dt_tensor_clear(&scaled);
    return result;
}

#define SCALED(name, node)                                                             \
    DT_PUBLIC(name, #name "(input: Tensor, tensor1: Tensor, tensor2: Tensor, *, "      \
                          "value: Number = 1, out: Tensor = None)")                    \
    {                                                                                  \
        return add_scaled(DT_TERNARY_##name, node, args, false);                       \
    }                                                                                  \
    DT_PUBLIC(name##_in_place, #name "_(input: Tensor, tensor1: Tensor, "              \
                                     "tensor2: Tensor, *, value: Number = 1)")         \
    {                                                                                  \
        return add_scaled(DT_TERNARY_##name, node, args, true);                        \
    }
SCALED(addcmul, "AddcmulBackward0")
SCALED(addcdiv, "AddcdivBackward0")

/* --- lerp --- */

static PyObject *interpolate(const dt_args *args, bool in_place)
{
    dt_tensor *input, *end;
    dt_arg weight;
    if (dt_take_tensor(args, 0, &input) < 0 || dt_take_tensor(args, 1, &end) < 0 ||
        dt_take_value(args, 2, &weight) < 0)
        return NULL;
    const dt_tensor *others[] = {
        end, weight.tensor && weight.tensor->ndim ? weight.tensor : end};
    for (int i = 0; i < 2; i++)
        if (others[i]->dtype != input->dtype) {
            PyErr_Format(PyExc_RuntimeError,
                         "lerp(): input is of type %s and %s of type %s; convert one "
                         "of them with .to()",
                         dt_dtype_name((dt_dtype)input->dtype), i ? "weight" : "end",
                         dt_dtype_name((dt_dtype)others[i]->dtype));
            return NULL;
        }
    if (!dt_dtype_is_float((dt_dtype)input->dtype)) {
        PyErr_Format(PyExc_NotImplementedError,
                     "lerp(): not defined for tensors of type %s; convert them first, "
                     "e.g. with .float()",
                     dt_dtype_name((dt_dtype)input->dtype));
        return NULL;
    }
    dt_arg three[] = {dt_arg_tensor(input), dt_arg_tensor(end), weight};
    return run(DT_TERNARY_lerp, weight.tensor ? "LerpBackward1" : "LerpBackward0",
               three, args, 3, in_place);
}

DT_PUBLIC(lerp, "lerp(input: Tensor, end: Tensor, weight: Value, *, "
                "out: Tensor = None)")
{
    return interpolate(args, false);
}
DT_PUBLIC(lerp_in_place, "lerp_(input: Tensor, end: Tensor, weight: Value)")
{
    return interpolate(args, true);
}

/* --- clamp --- */

/* No bound: what no element of the type lies beyond. */
static dt_arg boundless(dt_dtype dtype, bool low)
{
    if (dt_dtype_is_float(dtype))
        return dt_arg_scalar(dt_scalar_float(low ? -INFINITY : INFINITY));
    int bits = 8 * (int)dt_dtype_size(dtype);
    dt_element minus = dt_element_from_scalar(dtype, dt_scalar_int(-1));
    bool is_signed = dt_scalar_as_double(dt_element_to_scalar(dtype, &minus)) < 0;
    int64_t top = is_signed ? (int64_t)(((uint64_t)1 << (bits - 1)) - 1)
                            : (int64_t)(((uint64_t)1 << bits) - 1);
    if (dtype == DT_BOOL)
        top = 1;
    return dt_arg_scalar(dt_scalar_int(low ? (is_signed ? -top - 1 : 0) : top));
}

/* names: of the nodes for numbers as bounds and for tensors. */
static PyObject *hold(const dt_args *args, int low_at, int high_at, int out_at,
                      const char *const *names, bool in_place)
{
    dt_tensor *x;
    dt_arg given[3];
    int count = 1;
    if (dt_take_tensor(args, 0, &x) < 0)
        return NULL;
    bool has_low = low_at && dt_given(args, low_at);
    bool has_high = high_at && dt_given(args, high_at);
    if (!has_low && !has_high) {
        PyErr_Format(PyExc_RuntimeError, "%s(): neither min nor max is given; give one",
                     args->signature->name);
        return NULL;
    }
    given[0] = dt_arg_tensor(x);
    if (has_low && dt_take_value(args, low_at, &given[count]) < 0)
        return NULL;
    count += has_low;
    if (has_high && dt_take_value(args, high_at, &given[count]) < 0)
        return NULL;
    count += has_high;
    dt_dtype meet = dt_result_type(given, count);
    dt_arg three[] = {given[0], has_low ? given[1] : boundless(meet, true),
                      has_high ? given[count - 1] : boundless(meet, false)};
    bool tensors = three[1].tensor || three[2].tensor;
    return run(DT_TERNARY_clamp, names[tensors], three, args, out_at, in_place);
}

static const char *const clamp_names[] = {"ClampBackward1", "ClampBackward0"};
static const char *const min_names[] = {"ClampMinBackward0", "ClampMinBackward1"};
static const char *const max_names[] = {"ClampMaxBackward0", "ClampMaxBackward1"};

DT_PUBLIC(clamp, "clamp(input: Tensor, min: Value = None, max: Value = None, *, "
                 "out: Tensor = None)")
{
    return hold(args, 1, 2, 3, clamp_names, false);
}
DT_PUBLIC(clamp_in_place, "clamp_(input: Tensor, min: Value = None, max: Value = None)")
{
    return hold(args, 1, 2, -1, clamp_names, true);
}
DT_PUBLIC(clamp_min, "clamp_min(input: Tensor, min: Value, *, out: Tensor = None)")
{
    return hold(args, 1, 0, 2, min_names, false);
}
DT_PUBLIC(clamp_min_in_place, "clamp_min_(input: Tensor, min: Value)")
{
    return hold(args, 1, 0, -1, min_names, true);
}
DT_PUBLIC(clamp_max, "clamp_max(input: Tensor, max: Value, *, out: Tensor = None)")
{
    return hold(args, 0, 1, 2, max_names, false);
}
DT_PUBLIC(clamp_max_in_place, "clamp_max_(input: Tensor, max: Value)")
{
    return hold(args, 0, 1, -1, max_names, true);
}

#define CLAMP                                                                          \
    "Each element, or the bound that it lies beyond; max where the bounds cross.\n\n"  \
    "A bound is a number, a tensor that broadcasts with input, or None. A gradient "   \
    "goes to input where it lies within, else to the bound."

static const dt_function rows[] = {
    DT_BOTH(
        addcmul, "addcmul",
        "input + value * tensor1 * tensor2, broadcasting, in the type in which they "
        "meet."),
    DT_METHOD(addcmul_in_place, "addcmul_", "In place: addcmul."),
    DT_BOTH(addcdiv, "addcdiv",
            "input + value * tensor1 / tensor2, broadcasting. RuntimeError where both "
            "of them hold integers."),
    DT_METHOD(addcdiv_in_place, "addcdiv_", "In place: addcdiv."),
    DT_BOTH(lerp, "lerp",
            "input + weight * (end - input): input where weight is 0, end where it is "
            "1.\n\nweight is a number or a tensor; all broadcast, and are of one "
            "floating type (RuntimeError where not)."),
    DT_METHOD(lerp_in_place, "lerp_", "In place: lerp."),
    DT_BOTH(clamp, "clamp", CLAMP),
    DT_BOTH(clamp, "clip", "The same as clamp."),
    DT_BOTH(clamp_in_place, "clamp_", "In place: clamp."),
    DT_BOTH(clamp_in_place, "clip_", "The same as clamp_."),
    DT_BOTH(clamp_min, "clamp_min", "Each element, or min where it is less."),
    DT_BOTH(clamp_min_in_place, "clamp_min_", "In place: clamp_min."),
    DT_BOTH(clamp_max, "clamp_max", "Each element, or max where it is greater."),
    DT_BOTH(clamp_max_in_place, "clamp_max_", "In place: clamp_max."),
};

int dt_setup_ternary(PyObject *module)
{
    return DT_ADD_FUNCTIONS(module, rows);
}
