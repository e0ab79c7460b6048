/* Every elementwise op, type and layout against the op's formula with the C
 * library's functions, element by element. */
#include <float.h>

#include "cpu_support.h"
#include "ops/elementwise.h"
#include "ops/elementwise_ops.h"

/* cpu_elementwise_reference.cpp */
bool reference(dt_dtype dtype, dt_elementwise_op op, const void *a, const void *b,
               const void *c, const void *d, void *out);

/* --- layouts --- */

/* A shape and, for each operand, its innermost dimension, its padding, and its
 * broadcast dimensions. */
typedef struct layout {
    const char *name;
    int ndim;
    int64_t shape[4];
    struct {
        int first;     /* the innermost dimension; the others in order */
        int64_t gap;   /* padding between elements of the innermost dimension */
        int broadcast; /* bit d: stride 0 */
        bool scalar;
    } operands[3];
} layout;

/* Fields that a case leaves out are 0. */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"
static const layout layouts[] = {
    {"one", 1, {1}, {{0}, {0}, {0}}},
    {"tiny", 1, {3}, {{0}, {0}, {0}}},
    {"vector", 1, {1003}, {{0}, {0}, {0}}},
    {"parallel", 1, {70001}, {{0}, {0}, {0}}},
    {"number", 1, {37}, {{0}, {0}, {0, 0, 0, true}}},
    {"number first", 1, {37}, {{0}, {0, 0, 0, true}, {0}}},
    {"parallel number", 1, {50000}, {{0}, {0}, {0, 0, 0, true}}},
    {"stepped", 1, {333}, {{0}, {0, 1}, {0, 2}}},
    {"long stepped", 1, {70000}, {{0}, {0, 1}, {0}}},
    {"stepped result", 1, {333}, {{0, 3}, {0}, {0}}},
    {"row", 2, {50, 40}, {{1}, {1}, {1, 0, 1}}},
    {"column", 2, {50, 40}, {{1}, {1}, {1, 0, 2}}},
    {"columns meet rows", 2, {300, 170}, {{1}, {1, 0, 1}, {1, 0, 2}}},
    {"padded", 2, {31, 33}, {{1, 1}, {1}, {1, 2}}},
    {"transposed", 2, {200, 301}, {{1}, {0}, {1}}},
    {"both transposed", 2, {150, 301}, {{1}, {0}, {0}}},
    {"transposed result", 2, {140, 131}, {{0}, {1}, {1}}},
    {"narrow", 2, {9000, 3}, {{1}, {1, 0, 1}, {1, 0, 2}}},
    {"three", 3, {7, 11, 13}, {{2}, {0}, {1}}},
    {"three large", 3, {40, 50, 61}, {{2}, {0, 0, 2}, {1}}},
    {"four", 4, {3, 4, 5, 6}, {{3}, {2, 0, 1}, {0, 0, 8}}},
};

static int64_t lay_out(const layout *l, int which, size_t size, int64_t *strides)
{
    int order[4], n = 0;
    order[n++] = l->operands[which].first;
    for (int d = l->ndim - 1; d >= 0; d--)
        if (d != order[0])
            order[n++] = d;
    int64_t step = (int64_t)size * (1 + l->operands[which].gap);
    for (int i = 0; i < l->ndim; i++) {
        int d = order[i];
        if (l->operands[which].broadcast >> d & 1) {
            strides[d] = 0;
            continue;
        }
        strides[d] = step;
        step *= l->shape[d];
    }
    return step;
}

/* Merges dimensions like the planner. */
static void merge(dt_plan *p)
{
    for (int d = p->ndim - 1; d > 0; d--) {
        bool can = true;
        for (int i = 0; i < p->noperands; i++)
            can = can && p->operands[i].strides[d - 1] ==
                             p->operands[i].strides[d] * p->shape[d];
        if (!can)
            continue;
        p->shape[d - 1] *= p->shape[d];
        for (int i = 0; i < p->noperands; i++)
            p->operands[i].strides[d - 1] = p->operands[i].strides[d];
        for (int e = d; e < p->ndim - 1; e++) {
            p->shape[e] = p->shape[e + 1];
            for (int i = 0; i < p->noperands; i++)
                p->operands[i].strides[e] = p->operands[i].strides[e + 1];
        }
        p->ndim--;
    }
    p->contiguous = p->ndim == 1;
    for (int i = 0; i < p->noperands; i++)
        if (!p->operands[i].scalar &&
            p->operands[i].strides[0] != (int64_t)dt_dtype_size(p->operands[i].dtype))
            p->contiguous = false;
}

/* size: magnitude of the operands of a subtraction, to which its error is relative. Below
 * the smallest normal number the steps get no smaller. */
static bool close_enough(dt_dtype dtype, const void *got, const void *wanted,
                         double size)
{
    if (!memcmp(got, wanted, dt_dtype_size(dtype)))
        return true;
    if (!dt_dtype_is_float(dtype))
        return false;
    double g = get(dtype, got), w = get(dtype, wanted);
    if (isnan(g) || isnan(w))
        return isnan(g) && isnan(w);
    bool single = dtype == DT_FLOAT32;
    double ulp = single ? FLT_EPSILON : DBL_EPSILON;
    double least = single ? FLT_MIN : DBL_MIN;
    return fabs(g - w) <= 4 * ulp * fmax(fabs(w), fmax(size, least));
}

/* How large the parts are that a row subtracts, of inputs a and b; 0: it subtracts
 * nothing. */
static double size_of_parts(const char *name, double a, double b)
{
    if (!strcmp(name, "logaddexp") || !strcmp(name, "logaddexp2"))
        return a + 1;
    if (!strcmp(name, "gelu") || !strcmp(name, "gelu_tanh"))
        return a; /* 1 + erf or tanh of a negative number */
    if (!strcmp(name, "silu_backward") || !strcmp(name, "mish_backward") ||
        !strcmp(name, "gelu_backward") || !strcmp(name, "gelu_tanh_backward"))
        return a * (1 + b); /* a times the derivative of b f(b), f from 0 to 1 */
    return 0;
}

/* The layout that has the operand: a third input's is that of the first. */
static int place_of(int operand)
{
    return operand < 3 ? operand : 1;
}

static void run_case(const dt_backend *cpu, dt_elementwise_op op, dt_dtype dtype,
                     const layout *l)
{
    const dt_elementwise_row *row = &dt_elementwise_rows[op];
    const char *name = row->name;
    const double low = row->low, high = row->high;
    const int noperands = row->arity + 1;
    const dt_element zero = {.bytes = {0}}, one = {.bytes = {1}};
    dt_element unused;
    bool taken = reference(dtype, op, &zero, row->arity == 1 ? &zero : &one, &zero,
                           &zero, &unused);
    if (row->class_.choice && !taken)
        return; /* moves elements of any type by their size */
    dt_dtype to = row->class_.truth ? DT_BOOL : dtype;
    dt_plan plan = {.ndim = l->ndim, .noperands = noperands, .numel = 1};
    char *memory[DT_MAX_OPERANDS] = {NULL};
    size_t bytes[DT_MAX_OPERANDS] = {0};
    for (int d = 0; d < l->ndim; d++)
        plan.numel *= plan.shape[d] = l->shape[d];
    bool least = dt_dtype_kind(dtype) == DT_KIND_INTEGER && low >= 0.5;
    for (int i = 0; i < noperands; i++) {
        dt_operand *o = &plan.operands[i];
        o->dtype = i == 0 ? to : i == 1 && row->class_.choice ? DT_BOOL : dtype;
        size_t size = dt_dtype_size(o->dtype);
        bytes[i] = (size_t)lay_out(l, place_of(i), size, o->strides);
        memory[i] = guarded_new(bytes[i]);
        memset(memory[i], 0, bytes[i]);
        for (size_t at = 0; i && at + size <= bytes[i]; at += size) {
            double x = noise_between(low, high);
            if (dt_dtype_kind(o->dtype) == DT_KIND_BOOL)
                x = (double)(noise() & 1);
            if (dtype == DT_UINT8)
                x = fabs(x);
            put(o->dtype, memory[i] + at, least && x < 1 ? 1 : x);
        }
        o->data = memory[i];
        /* A fourth input is always a number. */
        o->scalar = i && (i > 3 || l->operands[place_of(i)].scalar);
        if (o->scalar) {
            memcpy(o->value.bytes, memory[i], size);
            o->data = NULL;
            memset(o->strides, 0, sizeof o->strides);
        }
    }
    dt_plan merged = plan;
    merge(&merged);
    int status = cpu->elementwise(stream, op, &merged);
    if (!taken) {
        CHECK(status == -1 && dt_error_slot()->code == DT_ERROR_RUNTIME &&
                  strstr(dt_error_slot()->text, name) &&
                  strstr(dt_error_slot()->text, dt_dtype_name(dtype)),
              "%s of %s is refused", name, dt_dtype_name(dtype));
        dt_error_clear();
    } else {
        CHECK(status == 0, "%s: %s", name, dt_error_slot()->text);
        for (int64_t item = 0; item < plan.numel; item++) {
            int64_t rest = item;
            const char *at[DT_MAX_OPERANDS] = {NULL};
            for (int i = 0; i < noperands; i++)
                at[i] = plan.operands[i].scalar
                            ? (const char *)plan.operands[i].value.bytes
                            : memory[i];
            for (int d = plan.ndim - 1; d >= 0; d--) {
                int64_t index = rest % plan.shape[d];
                rest /= plan.shape[d];
                for (int i = 0; i < noperands; i++)
                    at[i] += index * plan.operands[i].strides[d];
            }
            dt_element wanted = {.bytes = {0}};
            int last = noperands - 1;
            reference(dtype, op, at[1], at[last < 2 ? 1 : 2], at[last < 3 ? last : 3],
                      at[last], &wanted);
            double part = size_of_parts(name, fabs(get(dtype, at[1])),
                                        fabs(get(dtype, at[last < 2 ? 1 : 2])));
            if (!close_enough(to, at[0], &wanted, part)) {
                CHECK(false,
                      "%s of %s, %s, element %" PRId64 ": %.17g, not %.17g (of %.17g)",
                      name, dt_dtype_name(dtype), l->name, item, get(to, at[0]),
                      get(to, &wanted), get(dtype, at[1]));
                break;
            }
        }
    }
    for (int i = 0; i < noperands; i++)
        guarded_free(memory[i], bytes[i]);
}

static void test_zero_divisors(const dt_backend *cpu)
{
    int64_t a[3] = {7, -7, INT64_MIN}, b[3] = {2, 0, -1}, out[3];
    dt_plan plan = {
        .ndim = 1, .noperands = 3, .numel = 3, .shape = {3}, .contiguous = true};
    int64_t *data[3] = {out, a, b};
    for (int i = 0; i < 3; i++) {
        plan.operands[i].data = data[i];
        plan.operands[i].strides[0] = 8;
        plan.operands[i].dtype = DT_INT64;
    }
    dt_elementwise_op ops[] = {DT_OP_floor_divide, DT_OP_remainder, DT_OP_fmod};
    for (int i = 0; i < 3; i++) {
        b[1] = 0;
        CHECK(cpu->elementwise(stream, ops[i], &plan) == -1 &&
                  strstr(dt_error_slot()->text, "ZeroDivisionError"),
              "a zero divisor is an error");
        dt_error_clear();
        b[1] = -2;
        CHECK(cpu->elementwise(stream, ops[i], &plan) == 0, "no zero, no error");
    }
    cpu->elementwise(stream, DT_OP_floor_divide, &plan);
    CHECK(out[0] == 3 && out[1] == 3 && out[2] == INT64_MIN, "quotients %" PRId64,
          out[2]);
}

/* The result may overwrite an input. */
static void test_in_place(const dt_backend *cpu)
{
    static float x[100000];
    for (int i = 0; i < 100000; i++)
        x[i] = (float)i;
    dt_plan plan = {.ndim = 1,
                    .noperands = 3,
                    .numel = 100000,
                    .shape = {100000},
                    .contiguous = true};
    for (int i = 0; i < 3; i++) {
        plan.operands[i].data = x;
        plan.operands[i].strides[0] = 4;
        plan.operands[i].dtype = DT_FLOAT32;
    }
    CHECK(cpu->elementwise(stream, DT_OP_add, &plan) == 0, "add in place");
    for (int i = 0; i < 100000; i++)
        if (x[i] != (float)(2 * i)) {
            CHECK(false, "element %d is %g", i, (double)x[i]);
            break;
        }
}

int main(void)
{
    const dt_backend *cpu = dt_cpu_backend();
    for (int op = 0; op < DT_NELEMENTWISE; op++) {
        noise_of(dt_elementwise_rows[op].name);
        for (int dtype = 0; dtype < NREAL; dtype++)
            for (size_t i = 0; i < sizeof layouts / sizeof *layouts; i++)
                if (!dt_dtype_is_half((dt_dtype)dtype))
                    run_case(cpu, (dt_elementwise_op)op, (dt_dtype)dtype, &layouts[i]);
    }
    test_zero_divisors(cpu);
    test_in_place(cpu);
    return failures != 0;
}
