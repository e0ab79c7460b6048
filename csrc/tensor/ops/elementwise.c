#include "tensor/ops/elementwise.h"

#include <inttypes.h>

#include "device/released.h"
#include "device/stream.h"
#include "ops/elementwise_ops.h"
#include "tensor/ops/complex.h"
#include "tensor/ops/copy.h"
#include "tensor/iterate.h"

/* --- types --- */

static dt_dtype default_dtype = DT_FLOAT32;

dt_dtype dt_default_dtype(void)
{
    return default_dtype;
}

void dt_set_default_dtype(dt_dtype dtype)
{
    default_dtype = dtype;
}

static dt_dtype scalar_dtype(dt_kind kind)
{
    return kind == DT_KIND_BOOL      ? DT_BOOL
           : kind == DT_KIND_INTEGER ? DT_INT64
                                     : default_dtype;
}

dt_dtype dt_result_type(const dt_arg *args, int count)
{
    int groups[3] = {-1, -1, -1}; /* with dimensions, without, numbers; -1: none */
    for (int i = 0; i < count; i++) {
        const dt_tensor *t = args[i].tensor;
        int group = !t ? 2 : t->ndim ? 0 : 1;
        dt_dtype dtype = t ? (dt_dtype)t->dtype : scalar_dtype(args[i].scalar.kind);
        groups[group] = groups[group] < 0
                            ? (int)dtype
                            : (int)dt_dtype_promote((dt_dtype)groups[group], dtype);
    }
    int result = -1;
    for (int g = 0; g < 3; g++) {
        if (groups[g] < 0)
            continue;
        if (result < 0)
            result = groups[g];
        else if (dt_dtype_kind((dt_dtype)groups[g]) > dt_dtype_kind((dt_dtype)result))
            result =
                (int)(dt_dtype_is_float((dt_dtype)result)
                          ? dt_dtype_to_complex((dt_dtype)result)
                          : dt_dtype_promote((dt_dtype)result, (dt_dtype)groups[g]));
    }
    return (dt_dtype)result;
}

int dt_check_cast(const char *op_name, dt_dtype from, dt_dtype to)
{
    if (dt_dtype_kind(from) <= dt_dtype_kind(to))
        return 0;
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: the result has type %s, which does not go into a tensor of type %s; "
        "convert the target with .to(%s) first, or write the result to a new tensor",
        op_name, dt_dtype_name(from), dt_dtype_name(to), dt_dtype_name(from));
}

static int reject(const char *op_name, dt_dtype dtype, const char *wanted)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "%s: not defined for tensors of type %s; %s", op_name,
                   dt_dtype_name(dtype), wanted);
}

static bool is_bool(const dt_arg *arg)
{
    return arg->tensor ? arg->tensor->dtype == DT_BOOL
                       : arg->scalar.kind == DT_KIND_BOOL;
}

/* The type to compute in, where the operands promote to `dtype`; -1 after dt_fail. */
static int compute_type(const dt_elementwise_row *row, const dt_arg *args,
                        dt_dtype dtype)
{
    const dt_class *class = &row->class_;
    switch (class->rule) {
    case DT_RULE_FLOATING:
        if (dt_dtype_is_complex(dtype))
            break;
        return (int)(dt_dtype_is_float(dtype) ? dtype : default_dtype);
    case DT_RULE_CHOICE:
        return (int)dtype;
    case DT_RULE_COUNTING:
        if (dtype == DT_BOOL)
            dtype = DT_INT64;
        break;
    case DT_RULE_SIGN:
        for (int i = 0; i < row->arity; i++)
            if (is_bool(&args[i]))
                return dt_fail(DT_ERROR_RUNTIME,
                               "%s: not defined for bools; convert them first, e.g. "
                               "with .int(), or use ^ or ~",
                               row->name);
        break;
    case DT_RULE_EXPONENT:
        if (dtype == DT_BOOL && args[1].tensor)
            return reject(row->name, dtype, "convert it first, e.g. with .int()");
        if (!dt_dtype_is_inexact(dtype) && !args[1].tensor && args[1].scalar.i < 0)
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: an integer to the negative power %" PRId64
                           " is not an integer; convert the tensor to a floating type "
                           "first",
                           row->name, args[1].scalar.i);
        break;
    default:
        break;
    }
    if (class->takes[dt_dtype_kind(dtype)])
        return (int)dtype;
    return reject(row->name, dtype,
                  !class->takes[DT_KIND_INTEGER]
                      ? "convert the tensors first, e.g. with .float()"
                  : class->takes[DT_KIND_BOOL] ? "give integers or bools"
                  : class->takes[DT_KIND_FLOAT]
                      ? "convert it first, e.g. with .int(), or use a logical operation"
                      : "give integers");
}

/* DT_ONE_TYPE: tensors are of the type of the first, but for a third without
 * dimensions. */
static int check_one_type(const dt_elementwise_row *row, const dt_arg *args)
{
    const dt_tensor *first = args[0].tensor;
    for (int i = 1; i < row->arity; i++) {
        const dt_tensor *t = args[i].tensor;
        if (t && first && t->dtype != first->dtype && (i == 1 || t->ndim))
            return dt_fail(
                DT_ERROR_RUNTIME,
                "%s: the operands are of the types %s and %s; convert one of "
                "them with .to()",
                row->name, dt_dtype_name((dt_dtype)first->dtype),
                dt_dtype_name((dt_dtype)t->dtype));
    }
    return 0;
}

/* --- devices --- */

int dt_check_same_device(const char *op_name, const char *aname, const dt_tensor *a,
                         const char *bname, const dt_tensor *b)
{
    dt_device adevice = dt_tensor_device(a), bdevice = dt_tensor_device(b);
    if (dt_device_equal(adevice, bdevice))
        return 0;
    if (dt_device_check_memory(adevice) || dt_device_check_memory(bdevice))
        return -1;
    char ashape[DT_SHAPE_TEXT], bshape[DT_SHAPE_TEXT], at[DT_DEVICE_TEXT],
        bt[DT_DEVICE_TEXT];
    dt_device_text(adevice, at);
    dt_device_text(bdevice, bt);
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: the operands are on two devices: %s of shape %s is on %s and %s of shape "
        "%s is on %s; bring them together, e.g. with %s.to('%s')",
        op_name, aname, dt_shape_text(a->ndim, a->shape, ashape, sizeof ashape), at,
        bname, dt_shape_text(b->ndim, b->shape, bshape, sizeof bshape), bt, bname, at);
}

/* A tensor without dimensions that the host can read counts as a number for a tensor of
 * another device. */
static bool is_guest(const dt_tensor *t)
{
    return t->ndim == 0 && dt_device_is_host(dt_tensor_device(t));
}

/* --- running a plan --- */

/* The type of 16 bits that the kernel reads and writes beside float32, the type to compute
 * in: the target's or the first operand's that has one. Else `compute`. */
static dt_dtype type_beside(const dt_class *class, const dt_tensor *target,
                            const dt_arg *args, int arity, dt_dtype compute,
                            dt_device device)
{
    if (compute != DT_FLOAT32 || class->choice || !dt_backend_of(device)->halves)
        return compute;
    if (target && dt_dtype_is_half((dt_dtype)target->dtype))
        return (dt_dtype)target->dtype;
    for (int i = 0; i < arity; i++)
        if (args[i].tensor && dt_dtype_is_half((dt_dtype)args[i].tensor->dtype))
            return (dt_dtype)args[i].tensor->dtype;
    return compute;
}

/* Whether the kernel reads bools and uint8 too: beside floats, computing in float32. */
static bool reads_bytes(const dt_class *class, const dt_arg *args, int arity,
                        dt_dtype compute, dt_device device)
{
    bool floats = false;
    for (int i = 0; i < arity; i++)
        floats |= args[i].tensor ? dt_dtype_is_float((dt_dtype)args[i].tensor->dtype)
                                 : args[i].scalar.kind == DT_KIND_FLOAT;
    return floats && !class->choice && dt_dtype_compute(compute) == DT_FLOAT32 &&
           dt_backend_of(device)->halves;
}

/* An operand in the type to compute in, in `beside`, or in bytes. `copy` receives the
 * converted tensor where one is needed; the caller clears it. */
static int prepare(const char *op_name, dt_input *input, dt_tensor *copy, dt_arg arg,
                   dt_dtype compute, dt_dtype beside, bool bytes, dt_device device)
{
    const dt_tensor *t = arg.tensor;
    input->tensor = NULL;
    input->dtype = compute;
    if (!t) {
        if (dt_dtype_kind(compute) == DT_KIND_INTEGER &&
            arg.scalar.kind == DT_KIND_INTEGER && !dt_scalar_fits(compute, arg.scalar))
            return dt_fail(DT_ERROR_RUNTIME,
                           "%s: the number %" PRId64
                           " does not fit into the type %s; convert the "
                           "tensor to a wider type first",
                           op_name, arg.scalar.i, dt_dtype_name(compute));
        input->value = dt_element_from_scalar(compute, arg.scalar);
        return 0;
    }
    if (is_guest(t) && !dt_device_is_host(device)) {
        if (dt_check_imag(op_name, compute, t) || dt_tensor_used_by_host(op_name, t))
            return -1;
        input->value = dt_element_cast(compute, (dt_dtype)t->dtype, dt_tensor_data(t));
        return 0;
    }
    input->tensor = t;
    if (t->dtype == beside ||
        (bytes && (t->dtype == DT_BOOL || t->dtype == DT_UINT8))) {
        input->dtype = (dt_dtype)t->dtype;
    } else if (t->dtype != compute) {
        if (!t->ndim && dt_check_imag(op_name, compute, t))
            return -1;
        if (dt_to(copy, t, compute, device))
            return dt_fail_prefix("%s: ", op_name);
        input->tensor = copy;
    }
    return 0;
}

static int use_all(const dt_tensor *out, const dt_input *inputs, int ninputs)
{
    if (dt_storage_use(out->storage))
        return -1;
    for (int i = 0; i < ninputs; i++)
        if (inputs[i].tensor && dt_storage_use(inputs[i].tensor->storage))
            return -1;
    return 0;
}

/* The device to compute on: the target's, else that of the operands, of which a guest
 * has no say. -1 after dt_fail where two operands live apart. */
static int find_device(const dt_elementwise_row *row, const dt_tensor *target,
                       const dt_arg *args, dt_device *device)
{
    static const char *const names[] = {"condition", "input", "other",
                                        "the third operand", "the fourth operand"};
    const char *const *name = names + !row->class_.choice;
    const dt_tensor *home = target;
    const char *home_name = "target";
    for (int i = 0; i < row->arity; i++) {
        const dt_tensor *t = args[i].tensor;
        if (t && (!home || (!target && is_guest(home) && !is_guest(t)))) {
            home = t;
            home_name = name[i];
        }
    }
    for (int i = 0; i < row->arity; i++) {
        const dt_tensor *t = args[i].tensor;
        if (t && t != home && !is_guest(t) &&
            dt_check_same_device(row->name, home_name, home, name[i], t))
            return -1;
    }
    *device = dt_tensor_device(home);
    return 0;
}

int dt_elementwise_whole(dt_elementwise_op op, dt_tensor *out, dt_tensor *target,
                         const dt_arg *args)
{
    const dt_elementwise_row *row = &dt_elementwise_rows[op];
    const dt_class *class = &row->class_;
    const int arity = row->arity, first = class->choice; /* of the inputs of the type */
    dt_device device;
    if (find_device(row, target, args, &device) ||
        (row->flags & DT_ONE_TYPE && check_one_type(row, args)))
        return -1;
    if (first && (!args[0].tensor || (args[0].tensor->dtype != DT_BOOL &&
                                      args[0].tensor->dtype != DT_UINT8)))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: condition is of type %s; give a tensor of bools, such as "
                       "x > 0 or x.bool()",
                       row->name,
                       args[0].tensor ? dt_dtype_name((dt_dtype)args[0].tensor->dtype)
                                      : "number");
    dt_dtype promoted = row->flags & DT_ONE_TYPE
                            ? (dt_dtype)args[0].tensor->dtype
                            : dt_result_type(args + first, arity - first);
    if (dt_dtype_is_complex(promoted) && !class->takes[DT_KIND_COMPLEX] && !first)
        return dt_complex_elementwise(op, out, target, args);
    /* Where both the target and the operation refuse the type, the target's answer
     * counts. */
    if (target && class->rule != DT_RULE_FLOATING && !class->truth &&
        dt_check_cast(row->name, promoted, (dt_dtype)target->dtype))
        return -1;
    int computed = compute_type(row, args, promoted);
    if (computed < 0)
        return -1;
    dt_dtype compute = (dt_dtype)computed, result = class->truth ? DT_BOOL : compute;
    if (target && dt_check_cast(row->name, result, (dt_dtype)target->dtype))
        return -1;

    const dt_dtype beside = type_beside(class, target, args, arity, compute, device);
    const bool bytes = reads_bytes(class, args, arity, compute, device);
    dt_input inputs[DT_MAX_INPUTS];
    dt_tensor copies[DT_MAX_INPUTS],
        made; /* initializers would clear all of each, at every call */
    for (int i = 0; i < arity; i++)
        copies[i].storage = NULL;
    made.storage = NULL;
    dt_plan plan;
    int status = -1;
    for (int i = 0; i < arity; i++) {
        dt_dtype type = i < first ? DT_BOOL
                        : row->flags & DT_WIDE_NUMBERS && !args[i].tensor
                            ? dt_dtype_compute(compute)
                            : compute;
        if (prepare(row->name, &inputs[i], &copies[i], args[i], type,
                    type == compute ? beside : type, bytes, device))
            goto done;
        /* An input must not change while it is read. */
        if (target && inputs[i].tensor && inputs[i].tensor != &copies[i] &&
            dt_iterate_partly_overlaps(target, inputs[i].tensor)) {
            if (dt_to(&copies[i], inputs[i].tensor, inputs[i].dtype, device))
                goto done;
            inputs[i].tensor = &copies[i];
        }
    }
    /* The CPU's kernel checks divisors in tensors; a GPU's would make the host wait. */
    if (class->rule == DT_RULE_DIVISOR && !dt_dtype_is_float(compute) &&
        !inputs[1].tensor &&
        dt_element_to_scalar(compute, inputs[1].value.bytes).i == 0) {
        dt_fail(DT_ERROR_RUNTIME,
                "%s: division of integers by zero (ZeroDivisionError); use true "
                "division or floats, which give inf or nan",
                row->name);
        goto done;
    }
    /* A target of another type, or one whose layout may not be written while it is
     * read, takes a copy of the result. */
    dt_tensor *written =
        target && target->dtype != result && (class->truth || target->dtype != beside)
            ? &made
            : out;
    status = dt_iterate_plan(&plan, row->name, written, result, device, inputs, arity);
    if (status == 0) {
        status = use_all(written, inputs, arity);
        if (!status)
            status = dt_backend_of(device)->elementwise(dt_stream_current(device), op,
                                                        &plan);
    } else if (status > 0) {
        status = 0;
    }
    if (!status && written == &made)
        status = dt_copy_into(row->name, target, &made);
    if (status && !target)
        dt_tensor_clear(out);
done:
    dt_tensor_clear(&made);
    for (int i = 0; i < arity; i++)
        if (copies[i].storage)
            dt_tensor_clear(&copies[i]);
    return status;
}

dt_elementwise_op dt_elementwise_power(const dt_arg *args)
{
    if (args[1].tensor || !args[0].tensor ||
        !dt_dtype_is_inexact((dt_dtype)args[0].tensor->dtype))
        return DT_OP_pow;
    double exponent = dt_scalar_as_double(args[1].scalar);
    return exponent == 2      ? DT_OP_square
           : exponent == 3    ? DT_OP_cube
           : exponent == 0.5  ? DT_OP_sqrt
           : exponent == -0.5 ? DT_OP_rsqrt
           : exponent == -1   ? DT_OP_reciprocal
                              : DT_OP_pow;
}
