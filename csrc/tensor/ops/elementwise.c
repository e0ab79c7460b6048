#include "tensor/ops/elementwise.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#include "device/stream.h"
#include "tensor/ops/copy.h"
#include "tensor/iterate.h"
#include "tensor/ops/reduce.h"

/* What a row's class allows and gives; the classes are explained in the tables. */
enum { ANY, NUMBER, FLOAT, REAL, BITS, PREDICATE, COMPARE, DIVIDES };

const char *const dt_unary_names[DT_NUNARY] = {
#define UNARY(name, class, low, high, value, derivative, doc) #name,
#include "ops/unary.def"
#undef UNARY
};
const char *const dt_binary_names[DT_NBINARY] = {
#define BINARY(name, class, low, high, value, da, db, doc) #name,
#include "ops/kernels.def"
#undef BINARY
};
const char *const dt_ternary_names[DT_NTERNARY] = {
#define TERNARY(name, class, low, high, value, da, db, dc, doc) #name,
#include "ops/ternary.def"
#undef TERNARY
};
static const unsigned char ternary_class[DT_NTERNARY] = {
#define TERNARY(name, class, low, high, value, da, db, dc, doc) class,
#include "ops/ternary.def"
#undef TERNARY
};
static const unsigned char unary_class[DT_NUNARY] = {
#define UNARY(name, class, low, high, value, derivative, doc) class,
#include "ops/unary.def"
#undef UNARY
};
static const unsigned char binary_class[DT_NBINARY] = {
#define BINARY(name, class, low, high, value, da, db, doc) class,
#include "ops/kernels.def"
#undef BINARY
};

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
            result = (int)dt_dtype_promote((dt_dtype)result, (dt_dtype)groups[g]);
    }
    return (dt_dtype)result;
}

int dt_check_cast(const char *what, dt_dtype from, dt_dtype to)
{
    if (dt_dtype_kind(from) <= dt_dtype_kind(to))
        return 0;
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: the result has type %s, which does not go into a tensor of type %s; "
        "convert the target with .to(%s) first, or write the result to a new tensor",
        what, dt_dtype_name(from), dt_dtype_name(to), dt_dtype_name(from));
}

static int reject(const char *what, dt_dtype dtype, const char *wanted)
{
    return dt_fail(DT_ERROR_NOT_IMPLEMENTED,
                   "%s: not defined for tensors of type %s; %s", what,
                   dt_dtype_name(dtype), wanted);
}

/* The type to compute in, from the type in which the operands meet; -1 after dt_fail.
 */
static int compute_type(const char *what, int class, dt_dtype dtype)
{
    switch (class) {
    case FLOAT:
        return (int)(dt_dtype_is_float(dtype) ? dtype : default_dtype);
    case REAL:
        if (!dt_dtype_is_float(dtype))
            return reject(what, dtype, "convert the tensors first, e.g. with .float()");
        return (int)dtype;
    case NUMBER:
    case DIVIDES:
        if (dtype == DT_BOOL)
            return reject(what, dtype,
                          "convert it first, e.g. with .int(), or use a logical "
                          "operation");
        return (int)dtype;
    case BITS:
        if (dt_dtype_is_float(dtype))
            return reject(what, dtype, "give integers or bools");
        return (int)dtype;
    default:
        return (int)dtype;
    }
}

static dt_dtype class_result(int class, dt_dtype computed)
{
    return class == PREDICATE || class == COMPARE ? DT_BOOL : computed;
}

/* --- devices --- */

int dt_check_same_device(const char *what, const char *aname, const dt_tensor *a,
                         const char *bname, const dt_tensor *b)
{
    dt_device adevice = dt_tensor_device(a), bdevice = dt_tensor_device(b);
    if (dt_device_equal(adevice, bdevice))
        return 0;
    char ashape[DT_SHAPE_TEXT], bshape[DT_SHAPE_TEXT], at[DT_DEVICE_TEXT],
        bt[DT_DEVICE_TEXT];
    dt_device_text(adevice, at);
    dt_device_text(bdevice, bt);
    return dt_fail(
        DT_ERROR_RUNTIME,
        "%s: the operands are on two devices: %s of shape %s is on %s and %s of shape "
        "%s is on %s; bring them together, e.g. with %s.to('%s')",
        what, aname, dt_shape_text(a->ndim, a->shape, ashape, sizeof ashape), at, bname,
        dt_shape_text(b->ndim, b->shape, bshape, sizeof bshape), bt, bname, at);
}

/* A CPU tensor without dimensions counts as a number for a tensor that lives elsewhere.
 */
static bool is_guest(const dt_tensor *t)
{
    return t->ndim == 0 && dt_device_is_cpu(dt_tensor_device(t));
}

/* --- running a plan --- */

/* An operand in the type to compute in. `copy` receives the converted tensor where one
 * is needed; the caller clears it. */
static int prepare(const char *what, dt_input *input, dt_tensor *copy, dt_arg arg,
                   dt_dtype compute, dt_device device)
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
                           what, arg.scalar.i, dt_dtype_name(compute));
        input->value = dt_element_from_scalar(compute, arg.scalar);
        return 0;
    }
    if (is_guest(t) && !dt_device_is_cpu(device)) {
        input->value = dt_element_from_scalar(
            compute, dt_element_to_scalar((dt_dtype)t->dtype, dt_tensor_data(t)));
        return 0;
    }
    input->tensor = t;
    if (t->dtype != compute) {
        if (dt_to(copy, t, compute, device))
            return dt_fail_prefix("%s: ", what);
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

/* One row of the tables, made ready: what differs between them is only the last call.
 */
typedef struct row {
    const char *name;
    int class;
    int unary; /* a dt_unary_op, or -1 */
    int binary;
    int ternary;
} row;

static int launch(const row *r, dt_queue queue, const dt_backend *backend,
                  const dt_plan *plan)
{
    if (r->ternary >= 0)
        return backend->ternary(queue, (dt_ternary_op)r->ternary, plan);
    return r->binary < 0 ? backend->unary(queue, (dt_unary_op)r->unary, plan)
                         : backend->binary(queue, (dt_binary_op)r->binary, plan);
}

static int check_divisor(const char *what, const dt_input *divisor, dt_device device)
{
    bool zero = false;
    if (!divisor->tensor) {
        dt_scalar value = dt_element_to_scalar(divisor->dtype, divisor->value.bytes);
        zero = value.i == 0;
    } else if (dt_device_is_cpu(device)) {
        /* Only the CPU is asked: on a GPU the answer would have to be waited for. */
        dt_tensor all = {.storage = NULL};
        if (dt_reduce(DT_REDUCE_all, &all, divisor->tensor, 0, NULL, false, -1, 0))
            return -1;
        zero = !*(unsigned char *)dt_tensor_data(&all);
        dt_tensor_clear(&all);
    }
    if (zero)
        return dt_fail(
            DT_ERROR_RUNTIME,
            "%s: division of integers by zero (ZeroDivisionError); use true division "
            "or floats, which give inf or nan",
            what);
    return 0;
}

static int check_power(const char *what, const dt_arg *args, dt_dtype compute)
{
    if (dt_dtype_is_float(compute) || args[1].tensor || args[1].scalar.i >= 0)
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "%s: an integer to the negative power %" PRId64
                   " is no integer; convert the "
                   "tensor to a floating type first",
                   what, args[1].scalar.i);
}

static bool is_truth(const dt_arg *arg)
{
    return arg->tensor ? arg->tensor->dtype == DT_BOOL
                       : arg->scalar.kind == DT_KIND_BOOL;
}

/* out holds nothing (a result is made) or is the target. On failure a made result is
 * cleared; a target is left as it is. */
static int run(const row *r, dt_tensor *out, bool into, const dt_arg *args, int nargs)
{
    assert(out && (into || args[0].tensor || args[nargs - 1].tensor));
    dt_device device = {DT_CPU, 0};
    const dt_tensor *home = into ? out : NULL;
    const char *home_name = "target";
    static const char *const names[] = {"input", "other", "the third operand"};
    for (int i = 0; i < nargs; i++) {
        const dt_tensor *t = args[i].tensor;
        if (t && (!home || (is_guest(home) && !into && !is_guest(t)))) {
            home = t;
            home_name = names[i];
        }
    }
    for (int i = 0; i < nargs; i++) {
        const dt_tensor *t = args[i].tensor;
        if (t && t != home && !is_guest(t) &&
            dt_check_same_device(r->name, home_name, home, names[i], t))
            return -1;
    }
    device = dt_tensor_device(home);
    dt_dtype meet = dt_result_type(args, nargs);
    if (meet == DT_BOOL && r->unary == DT_UNARY_square)
        meet = DT_INT64; /* a power by the number 2 */
    if (r->binary == DT_BINARY_sub && (is_truth(&args[0]) || is_truth(&args[1])))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: bools cannot be subtracted; convert them first, "
                       "e.g. with .int(), or use ^ or ~",
                       r->name);
    /* Where both the target and the operation refuse the type, the target's answer
     * counts. */
    if (into && (r->class == BITS || r->class == NUMBER || r->class == DIVIDES) &&
        dt_check_cast(r->name, meet, (dt_dtype)out->dtype))
        return -1;
    if (meet == DT_BOOL && (r->unary == DT_UNARY_neg || r->unary == DT_UNARY_relu))
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: not defined for bools; convert them first, e.g. "
                       "with .int(), or use ~",
                       r->name);
    int compute = compute_type(r->name, r->class, meet);
    if (compute < 0)
        return -1;
    dt_dtype result = class_result(r->class, (dt_dtype)compute);
    if (into && dt_check_cast(r->name, result, (dt_dtype)out->dtype))
        return -1;

    dt_input inputs[3];
    dt_tensor copies[3], made; /* initializers would clear all of each, at every call */
    copies[0].storage = copies[1].storage = copies[2].storage = made.storage = NULL;
    dt_plan plan;
    int status = -1;
    /* Products and quotients of halves take a number as it is, as in PyTorch; other
     * rows round it to the type first. */
    bool wide = r->binary == DT_BINARY_mul || r->binary == DT_BINARY_div ||
                r->binary == DT_BINARY_floor_divide;
    for (int i = 0; i < nargs; i++) {
        dt_dtype type = wide && !args[i].tensor ? dt_dtype_compute((dt_dtype)compute)
                                                : (dt_dtype)compute;
        if (prepare(r->name, &inputs[i], &copies[i], args[i], type, device))
            goto done;
        /* What is read must not change under the reader's feet. */
        if (into && inputs[i].tensor && inputs[i].tensor != &copies[i] &&
            dt_iterate_partly_overlaps(out, inputs[i].tensor)) {
            if (dt_to(&copies[i], inputs[i].tensor, (dt_dtype)compute, device))
                goto done;
            inputs[i].tensor = &copies[i];
        }
    }
    if (r->class == DIVIDES && !dt_dtype_is_float((dt_dtype)compute) &&
        check_divisor(r->name, &inputs[1], device))
        goto done;
    if (r->binary == DT_BINARY_pow && check_power(r->name, args, (dt_dtype)compute))
        goto done;
    /* A target of another type, or one whose layout may not be written while it is
     * read, takes a copy of the result. */
    dt_tensor *target = into && out->dtype != result ? &made : out;
    status = dt_iterate_plan(&plan, r->name, target, result, device, inputs, nargs);
    if (status == 0) {
        status = use_all(target, inputs, nargs);
        if (!status)
            status = launch(r, dt_queue_current(device), dt_backend_of(device), &plan);
    } else if (status > 0) {
        status = 0;
    }
    if (!status && target == &made)
        status = dt_copy_into(r->name, out, &made);
    if (status && !into)
        dt_tensor_clear(out);
done:
    dt_tensor_clear(&made);
    for (int i = 0; i < nargs; i++)
        if (copies[i].storage)
            dt_tensor_clear(&copies[i]);
    return status;
}

static row unary_row(dt_unary_op op)
{
    row r = {dt_unary_names[op], unary_class[op], (int)op, -1, -1};
    return r;
}

static row binary_row(dt_binary_op op)
{
    row r = {dt_binary_names[op], binary_class[op], -1, (int)op, -1};
    return r;
}

int dt_unary(dt_unary_op op, dt_tensor *out, const dt_tensor *x)
{
    row r = unary_row(op);
    dt_arg arg = dt_arg_tensor(x);
    out->storage = NULL;
    return run(&r, out, false, &arg, 1);
}

int dt_unary_into(dt_unary_op op, dt_tensor *target, const dt_tensor *x)
{
    row r = unary_row(op);
    dt_arg arg = dt_arg_tensor(x);
    return run(&r, target, true, &arg, 1);
}

/* Bools to the power of a bool, for which there is no kernel: true unless false is
 * raised to true. */
static void as_logic(dt_binary_op *op, dt_arg a, dt_arg *b)
{
    if (*op == DT_BINARY_pow && a.tensor && a.tensor->dtype == DT_BOOL && !b->tensor &&
        b->scalar.kind == DT_KIND_BOOL) {
        *op = DT_BINARY_logical_or;
        *b = dt_arg_scalar(dt_scalar_bool(!b->scalar.i));
    }
}

int dt_binary(dt_binary_op op, dt_tensor *out, dt_arg a, dt_arg b)
{
    out->storage = NULL;
    /* The commonest call by far, two alike row-major tensors, skips every question that
     * the general road asks. */
    if (a.tensor && b.tensor && a.tensor->dtype == b.tensor->dtype &&
        a.tensor->contiguous && b.tensor->contiguous && binary_class[op] == ANY &&
        dt_device_equal(dt_tensor_device(a.tensor), dt_tensor_device(b.tensor)) &&
        dt_shape_equal(a.tensor->ndim, a.tensor->shape, b.tensor->ndim,
                       b.tensor->shape) &&
        a.tensor->numel) {
        const dt_tensor *t = a.tensor;
        dt_device device = dt_tensor_device(t);
        if (dt_tensor_empty(dt_binary_names[op], out, (dt_dtype)t->dtype, t->ndim,
                            t->shape, device))
            return -1;
        dt_plan plan;
        const dt_tensor *tensors[] = {out, a.tensor, b.tensor};
        int64_t size = (int64_t)dt_dtype_size((dt_dtype)t->dtype);
        plan.ndim = 1;
        plan.noperands = 3;
        plan.numel = plan.shape[0] = t->numel;
        plan.contiguous = true;
        for (int i = 0; i < 3; i++) {
            plan.operands[i].data = dt_tensor_data(tensors[i]);
            plan.operands[i].strides[0] = size;
            plan.operands[i].dtype = (dt_dtype)t->dtype;
            plan.operands[i].immediate = false;
        }
        if (dt_storage_use(a.tensor->storage) || dt_storage_use(b.tensor->storage) ||
            dt_backend_of(device)->binary(dt_queue_current(device), op, &plan)) {
            dt_tensor_clear(out);
            return -1;
        }
        return 0;
    }
    as_logic(&op, a, &b);
    row r = binary_row(op);
    dt_arg args[] = {a, b};
    return run(&r, out, false, args, 2);
}

int dt_binary_into(dt_binary_op op, dt_tensor *target, dt_arg a, dt_arg b)
{
    as_logic(&op, a, &b);
    row r = binary_row(op);
    dt_arg args[] = {a, b};
    return run(&r, target, true, args, 2);
}

/* Of three floats of 16 bits there are no kernels. */
static int ternary_by_float32(const row *r, dt_tensor *out, bool into,
                              const dt_arg *args, dt_dtype meet)
{
    dt_tensor wide[3], made;
    dt_arg widened[3];
    int status = -1;
    wide[0].storage = wide[1].storage = wide[2].storage = made.storage = NULL;
    for (int i = 0; i < 3; i++) {
        const dt_tensor *t = args[i].tensor;
        widened[i] = t ? dt_arg_tensor(&wide[i]) : args[i];
        if (t && dt_to(&wide[i], t, DT_FLOAT32, dt_tensor_device(t)))
            goto done;
    }
    status = run(r, &made, false, widened, 3);
    if (status == 0)
        status = into ? dt_copy_into(r->name, out, &made)
                      : dt_to(out, &made, meet, dt_tensor_device(&made));
done:
    dt_tensor_clear(&made);
    for (int i = 0; i < 3; i++)
        dt_tensor_clear(&wide[i]);
    return status;
}

static int ternary(dt_ternary_op op, dt_tensor *out, bool into, const dt_arg *args)
{
    row r = {dt_ternary_names[op], ternary_class[op], -1, -1, (int)op};
    dt_dtype meet = dt_result_type(args, 3);
    if (!dt_dtype_is_half(meet))
        return run(&r, out, into, args, 3);
    if (into && dt_check_cast(r.name, meet, (dt_dtype)out->dtype))
        return -1;
    return ternary_by_float32(&r, out, into, args, meet);
}

int dt_ternary(dt_ternary_op op, dt_tensor *out, dt_arg a, dt_arg b, dt_arg c)
{
    dt_arg args[] = {a, b, c};
    out->storage = NULL;
    return ternary(op, out, false, args);
}

int dt_ternary_into(dt_ternary_op op, dt_tensor *target, dt_arg a, dt_arg b, dt_arg c)
{
    dt_arg args[] = {a, b, c};
    return ternary(op, target, true, args);
}

/* out is empty (a result is made) or the target, of the type that a and b promote to. */
static int where(const char *what, dt_tensor *out, const dt_tensor *condition, dt_arg a,
                 dt_arg b)
{
    static const char *const names[] = {"condition", "input", "other"};
    dt_arg args[] = {dt_arg_tensor(condition), a, b};
    bool into = out->storage != NULL;
    if (condition->dtype != DT_BOOL && condition->dtype != DT_UINT8)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s: condition is of type %s; give a tensor of bools, such as "
                       "x > 0 or x.bool()",
                       what, dt_dtype_name((dt_dtype)condition->dtype));
    int home = 0;
    for (int i = 1; i < 3; i++)
        if (args[i].tensor && is_guest(args[home].tensor) && !is_guest(args[i].tensor))
            home = i;
    for (int i = 0; i < 3; i++)
        if (args[i].tensor && !is_guest(args[i].tensor) &&
            dt_check_same_device(what, names[home], args[home].tensor, names[i],
                                 args[i].tensor))
            return -1;
    dt_device device = dt_tensor_device(args[home].tensor);
    dt_dtype result = dt_result_type(args + 1, 2);
    dt_input inputs[3];
    dt_tensor copies[3];
    dt_plan plan;
    int status = -1;
    copies[0].storage = copies[1].storage = copies[2].storage = NULL;
    for (int i = 0; i < 3; i++)
        if (prepare(what, &inputs[i], &copies[i], args[i], i ? result : DT_BOOL,
                    device))
            goto done;
    for (int i = 0; i < 3 && into; i++) {
        const dt_tensor *t = inputs[i].tensor;
        if (!t || t == &copies[i] || !dt_iterate_partly_overlaps(out, t))
            continue;
        if (dt_to(&copies[i], t, (dt_dtype)t->dtype, device))
            goto done;
        inputs[i].tensor = &copies[i];
    }
    status = dt_iterate_plan(&plan, what, out, result, device, inputs, 3);
    if (status == 0) {
        status = use_all(out, inputs, 3);
        if (!status)
            status = dt_backend_of(device)->where(dt_queue_current(device), &plan);
    } else if (status > 0) {
        status = 0;
    }
    if (status && !into)
        dt_tensor_clear(out);
done:
    for (int i = 0; i < 3; i++)
        dt_tensor_clear(&copies[i]);
    return status;
}

int dt_where(dt_tensor *out, const dt_tensor *condition, dt_arg a, dt_arg b)
{
    out->storage = NULL;
    return where("where", out, condition, a, b);
}

int dt_where_into(const char *what, dt_tensor *target, const dt_tensor *condition,
                  dt_arg a, dt_arg b)
{
    return where(what, target, condition, a, b);
}
