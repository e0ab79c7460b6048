/* Checks of any backend, driven through its struct: elementwise ops in each layout
 * against plain loops, and in backend_parts.inc what is not elementwise. */
#ifndef BACKEND_CHECKS_H
#define BACKEND_CHECKS_H

#include "check.h"

#include <math.h>
#include <string.h>
#include <sys/types.h>
#include <type_traits>
#include <vector>

#include "cuda/kernels/device_functions.h" /* the formulas, in plain C++ */
#include "device/backend.h"
#include "device/random.h"
#include "ops/elementwise.h"
#include "ops/elementwise_ops.h"
#include "ops/reduce_ops.h"

static const dt_backend *backend; /* under test */
static const dt_stream kDefault = {0, nullptr};
static bool zero_divides = true; /* an integer by 0 is 0; else an error */

/* The call returns 0; else prints the error. */
#define FINE(call)                                                                     \
    do {                                                                               \
        if ((call) != 0) {                                                             \
            failed++;                                                                  \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                       \
                   dt_error_slot()->text);                                             \
            dt_error_clear();                                                          \
        }                                                                              \
    } while (0)
/* The call fails with this code and a message. */
#define FAILS(call, wanted)                                                            \
    do {                                                                               \
        EQUAL((call), -1);                                                             \
        EQUAL((int)dt_error_slot()->code, (int)(wanted));                              \
        CHECK(strlen(dt_error_slot()->text) > 20);                                     \
        dt_error_clear();                                                              \
    } while (0)

/* --- device memory between margins that must not change --- */

static const size_t kMargin = 64;
static const unsigned char kUntouched = 0x5b;

struct Buffer {
    char *whole = nullptr, *data = nullptr;
    size_t bytes, shift;
    dt_stream stream;

    explicit Buffer(size_t n, size_t misaligned = 0, dt_stream q = kDefault)
        : bytes(n), shift(misaligned), stream(q)
    {
        void *got = nullptr;
        FINE(backend->allocate(stream, total(), &got));
        whole = (char *)got;
        data = whole + kMargin + shift;
        std::vector<unsigned char> all(total(), kUntouched);
        FINE(backend->copy_to_device(stream, whole, all.data(), all.size()));
    }
    Buffer(const Buffer &) = delete;
    ~Buffer() { backend->release(stream.device, whole, total()); }
    size_t total() const { return bytes + 2 * kMargin + shift; }
    void set(const void *source)
    {
        FINE(backend->copy_to_device(stream, data, source, bytes));
    }
    template <class T>
    std::vector<T> get()
    {
        std::vector<unsigned char> all(total());
        FINE(backend->copy_to_host(stream, all.data(), whole, all.size()));
        for (size_t i = 0; i < all.size(); i++)
            if ((i < kMargin + shift || i >= kMargin + shift + bytes) &&
                all[i] != kUntouched) {
                failed++;
                printf("a kernel wrote %zd bytes outside of its result\n",
                       (ssize_t)i - (ssize_t)(kMargin + shift));
                break;
            }
        std::vector<T> out(bytes / sizeof(T));
        memcpy((void *)out.data(), all.data() + kMargin + shift, bytes);
        return out;
    }
};

template <class T>
struct Values { /* std::vector<bool> is not an array */
    std::vector<unsigned char> raw;
    explicit Values(size_t n) : raw(n * sizeof(T)) {}
    T *data() { return (T *)raw.data(); }
    T &operator[](size_t i) { return data()[i]; }
};
template <class T>
static Values<T> values_of(Buffer &buffer)
{
    std::vector<unsigned char> bytes = buffer.get<unsigned char>();
    Values<T> out(bytes.size() / sizeof(T));
    out.raw = bytes;
    return out;
}

static unsigned noise_state = 1;
static double noise(double low, double high)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return low + (high - low) * ((noise_state >> 8) / 16777216.0);
}
/* From here on the noise is that of a row, whichever rows come before it. */
static void noise_of(const char *name)
{
    noise_state = 2166136261u;
    for (; *name; name++)
        noise_state = (noise_state ^ (unsigned char)*name) * 16777619u;
}
template <class T>
static Values<T> draw(size_t n, double low, double high)
{
    Values<T> out(n);
    for (size_t i = 0; i < n; i++) {
        double x = noise(low, high);
        out[i] = sizeof(T) == 1 && (T)2 == (T)1 ? (T)(x > 0.5 * (low + high))
                                                : (T)(int64_t)x;
        if ((T)0.5 != (T)0 && (T)2 != (T)1)
            out[i] = (T)x;
    }
    return out;
}
static double slack = 1; /* number of roundings in a value */
template <class T>
static bool close_to(T got, T wanted)
{
    double a = (double)got, b = (double)wanted;
    if (a == b || (a != a && b != b))
        return true;
    return fabs(a - b) <= slack * (sizeof(T) == 4 ? 3e-6 : 1e-13) * (1 + fabs(b));
}

template <class T>
static bool same_values(const char *what, Values<T> got, Values<T> wanted)
{
    size_t n = wanted.raw.size() / sizeof(T);
    for (size_t i = 0; i < n; i++)
        if (!close_to(got[i], wanted[i])) {
            failed++;
            printf("%s: element %zu of %zu is %.9g, not %.9g\n", what, i, n,
                   (double)got[i], (double)wanted[i]);
            return false;
        }
    return true;
}

/* --- elementwise ops --- */

enum { KIND_BOOL, KIND_INTEGER, KIND_FLOAT };
static dt_plan flat_plan(int noperands, int64_t n)
{
    dt_plan plan = {};
    plan.ndim = 1;
    plan.noperands = noperands;
    plan.numel = plan.shape[0] = n;
    plan.contiguous = true;
    return plan;
}
static void flat_operand(dt_operand *operand, void *data, dt_dtype dtype)
{
    operand->data = data;
    operand->dtype = dtype;
    operand->strides[0] = (int64_t)dt_dtype_size(dtype);
}

/* A rows x columns result from one transposed and one broadcast operand. */
static const int64_t kRows = 37, kColumns = 29;
static void strided_plan(dt_plan *plan)
{
    plan->ndim = 2;
    plan->contiguous = false;
    plan->shape[0] = kRows;
    plan->shape[1] = kColumns;
    plan->numel = kRows * kColumns;
}
static void strides(dt_operand *operand, int64_t row, int64_t column)
{
    int64_t size = (int64_t)dt_dtype_size(operand->dtype);
    operand->strides[0] = row * size;
    operand->strides[1] = column * size;
}

static const int64_t kSizes[] = {1, 15, 257, 4099};

template <class First, class T, class R>
struct Case {
    dt_elementwise_op op;
    int arity;
    const char *name;
    dt_dtype dtypes[3]; /* of the result, the first input, the others */
    double low, high;
    bool divides;
    R (*f)(First, T, T);

    /* Numbers to divide by, where it does. */
    Values<T> divisors(size_t n) const
    {
        Values<T> out = draw<T>(n, low, high);
        for (size_t i = 0; i < n && divides && !zero_divides; i++)
            out[i] = out[i] == (T)0 ? (T)1 : out[i];
        return out;
    }

    dt_dtype dtype(int operand) const { return dtypes[operand < 2 ? operand : 2]; }

    /* Row-major operands: all tensors; one of them a scalar; the last one misaligned. */
    void check_flat(int64_t count, int form) const
    {
        size_t n = (size_t)count, shift = form == arity + 1 ? 1 : 0;
        Values<First> a = draw<First>(n, low, high);
        Values<T> b = divisors(n), c = draw<T>(n, low, high);
        Values<R> wanted(n);
        for (size_t i = 0; i < n; i++)
            wanted[i] =
                f(a[form == 1 ? 0 : i], b[form == 2 ? 0 : i], c[form == 3 ? 0 : i]);
        Buffer out(n * sizeof(R)),
            first(n * sizeof(First), arity == 1 ? shift * sizeof(First) : 0),
            second(n * sizeof(T), shift * sizeof(T)),
            third(n * sizeof(T), shift * sizeof(T));
        first.set(a.data());
        second.set(b.data());
        third.set(c.data());
        void *data[] = {out.data, first.data, second.data, third.data};
        const void *values[] = {nullptr, a.data(), b.data(), c.data()};
        dt_plan plan = flat_plan(arity + 1, count);
        for (int i = 0; i <= arity; i++)
            flat_operand(&plan.operands[i], data[i], dtype(i));
        if (form && form <= arity) {
            plan.operands[form].scalar = true;
            plan.operands[form].data = nullptr;
            memcpy(plan.operands[form].value.bytes, values[form],
                   dt_dtype_size(dtype(form)));
        }
        FINE(backend->elementwise(kDefault, op, &plan));
        same_values(name, values_of<R>(out), wanted);
    }

    /* The first input transposed, the second broadcast. */
    void check_strided() const
    {
        size_t n = (size_t)(kRows * kColumns);
        Values<First> a = draw<First>(n, low, high);
        Values<T> b = divisors((size_t)kColumns), c = draw<T>(n, low, high);
        Values<R> wanted(n);
        for (int64_t i = 0; i < kRows; i++)
            for (int64_t j = 0; j < kColumns; j++)
                wanted[(size_t)(i * kColumns + j)] =
                    f(a[(size_t)(j * kRows + i)], b[(size_t)j],
                      c[(size_t)(i * kColumns + j)]);
        Buffer out(n * sizeof(R)), first(n * sizeof(First)),
            second((size_t)kColumns * sizeof(T)), third(n * sizeof(T));
        first.set(a.data());
        second.set(b.data());
        third.set(c.data());
        void *data[] = {out.data, first.data, second.data, third.data};
        const int64_t steps[][2] = {{kColumns, 1}, {1, kRows}, {0, 1}, {kColumns, 1}};
        dt_plan plan = flat_plan(arity + 1, 1);
        strided_plan(&plan);
        for (int i = 0; i <= arity; i++) {
            flat_operand(&plan.operands[i], data[i], dtype(i));
            strides(&plan.operands[i], steps[i][0], steps[i][1]);
        }
        FINE(backend->elementwise(kDefault, op, &plan));
        same_values(name, values_of<R>(out), wanted);
    }

    void check() const
    {
        noise_of(name);
        for (int64_t n : kSizes)
            for (int form = 0; form <= arity + 1; form++)
                if (arity > 1 || form != 1) /* some input is a tensor */
                    check_flat(n, form);
        check_strided();
    }
};

template <class T>
static void refuses(dt_elementwise_op op, dt_dtype dtype)
{
    Buffer in(16 * sizeof(T)), out(16 * sizeof(T));
    dt_plan plan = flat_plan(dt_elementwise_rows[op].arity + 1, 16);
    for (int k = 0; k < plan.noperands; k++)
        flat_operand(&plan.operands[k], k ? in.data : out.data, dtype);
    FAILS(backend->elementwise(kDefault, op, &plan), DT_ERROR_RUNTIME);
}

#define KERNEL(name, arity, class_, flags, low, high, operands, value)                 \
    static constexpr dt_class class_of_##name =                                        \
        DT_CLASS_VALUE(flags, DT_CLASS_##class_);
#include "ops/elementwise_kernels.def"

template <class T, int kind>
static void check_elementwise(dt_dtype dtype)
{
    bool is_unsigned = (T)-1 > (T)0;
#define KERNEL(name, arity, class_, flags, low, high, operands, value)                 \
    if constexpr (arity > 3) { /* gradients in Python check a fourth input */          \
    } else if constexpr (class_of_##name.takes[kind]) {                                \
        typedef std::conditional_t<class_of_##name.choice, bool, T> First;             \
        typedef std::conditional_t<class_of_##name.truth, bool, T> R;                  \
        Case<First, T, R>{                                                             \
            DT_OP_##name,                                                              \
            arity,                                                                     \
            #name " " #class_,                                                         \
            {class_of_##name.truth ? DT_BOOL : dtype,                                  \
             class_of_##name.choice ? DT_BOOL : dtype, dtype},                         \
            (double)(is_unsigned && low < 0 ? 0 : low),                                \
            high,                                                                      \
            class_of_##name.rule == DT_RULE_DIVISOR,                                   \
            [](First a, [[maybe_unused]] T b, [[maybe_unused]] T d) -> R {             \
                operands(First, a, b, d, d) return (R)(value);                         \
            }}                                                                         \
            .check();                                                                  \
    } else if constexpr (!class_of_##name.choice) /* which moves any type */           \
        refuses<T>(DT_OP_##name, dtype);
#include "ops/elementwise_kernels.def"
}

static void check_all_elementwise()
{
#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    check_elementwise<bool, KIND_BOOL>(DT_##ID);
#define DT_DTYPE_INTEGER(ID, name, alias, type)                                        \
    check_elementwise<type, KIND_INTEGER>(DT_##ID);
#define DT_DTYPE_FLOAT(ID, name, alias, type)                                          \
    check_elementwise<type, KIND_FLOAT>(DT_##ID);
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"
}

#include "backend_parts.inc"

#endif
