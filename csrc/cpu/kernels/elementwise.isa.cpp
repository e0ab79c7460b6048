/* The rows of ops/elementwise.def as loops over elements. */
#include <string.h>
#include <type_traits>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"
#include "ops/class.h"

#define DT_F(name) Maths::name
#include "ops/formula.h"

#undef DT_FN
#define DT_FN static __attribute__((noinline, unused))
#include "ops/complex_functions.h"
#undef DT_FN

namespace {

/* The functions of complex numbers, which have one form. */
struct Complex {
#define COMPLEX(name)                                                                  \
    template <typename T>                                                              \
    static DT_INLINE T name(T z)                                                       \
    {                                                                                  \
        return op_##name(z);                                                           \
    }
    COMPLEX(exp)
    COMPLEX(exp2)
    COMPLEX(expm1)
    COMPLEX(log)
    COMPLEX(log2)
    COMPLEX(log10)
    COMPLEX(log1p)
    COMPLEX(sin)
    COMPLEX(cos)
    COMPLEX(tan)
    COMPLEX(sinh)
    COMPLEX(cosh)
    COMPLEX(tanh)
    COMPLEX(asin)
    COMPLEX(acos)
    COMPLEX(atan)
    COMPLEX(asinh)
    COMPLEX(acosh)
    COMPLEX(atanh)
#undef COMPLEX
};
template <typename T>
using MathsOf = std::conditional_t<is_complex<T>, Complex, Composed>;

#define KERNEL(name, inputs, class, flags, low, high, operands, value)                 \
    struct row_##name {                                                                \
        static constexpr int arity = inputs;                                           \
        static constexpr dt_class row_class = DT_CLASS_VALUE(flags, DT_CLASS_##class); \
        template <typename R, typename Maths, typename First, typename T>              \
        static DT_INLINE R value_of(First a, T b, T c, T d)                            \
        {                                                                              \
            operands(First, a, b, c, d) return (R)(value);                             \
        }                                                                              \
    };
#include "ops/elementwise_kernels.def"

/* Loads the element at `place`, an E. */
template <typename E>
DT_INLINE Compute<E> load(const void *place)
{
    return (Compute<E>)((const E *)place)[0];
}

/* One after the other; where `each_b` is false, b is a single element, and so for c. */
template <class Row, bool each_b, bool each_c, typename R, typename First, typename E,
          typename T = Compute<E>>
DT_INLINE void run_dense(int64_t n, R *out, const First *a, const E *b, const E *c, T d)
{
    const T b0 = (T)*b, c0 = (T)*c;
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        out[i] = Row::template value_of<R, MathsOf<T>>(
            (Compute<First>)a[i], each_b ? (T)b[i] : b0, each_c ? (T)c[i] : c0, d);
}

/* Calls a kernel whose first input is a single element, as in 1 - x, for parts of the
 * others, with the element as often as a part has elements. */
__attribute__((noinline)) void run_with_first(dt_kernel *kernel, int operands,
                                              size_t size, int64_t n, char *const *data,
                                              const int64_t *strides)
{
    constexpr int SOME = 256;
    alignas(16) char first[SOME * 16];
    char *at[DT_MAX_OPERANDS];
    int64_t steps[DT_MAX_OPERANDS];
    const int64_t most = n < SOME ? n : SOME;
    memcpy(first, data[1], size);
    for (int64_t have = 1; have < most; have *= 2) /* SOME is a power of 2 */
        memcpy(first + (size_t)have * size, first, (size_t)have * size);
    memcpy(at, data, (size_t)operands * sizeof *at);
    memcpy(steps, strides, (size_t)operands * sizeof *steps);
    at[1] = first;
    steps[1] = (int64_t)size;
    for (; n > 0; n -= SOME) {
        kernel(n < SOME ? n : SOME, at, steps);
        for (int i = 0; i < operands; i++)
            at[i] += i == 1 ? 0 : SOME * steps[i];
    }
}

/* A function of 1 to 4 inputs, a fourth one being a number. Where elements are next to
 * each other, and inputs behind the first are that or a single element, a loop is made
 * for the case. For an input that the function lacks stands one that it has: the compiler
 * drops it, and the loops of its cases. */
template <class Row, typename E>
void run_loop(int64_t n, char *const *data, const int64_t *strides)
{
    typedef Compute<E> T;
    typedef std::conditional_t<Row::row_class.truth, bool, T> R;
    typedef std::conditional_t<Row::row_class.choice, dt_bool, E> First;
    constexpr int second = Row::arity > 1 ? 2 : 1;
    constexpr int third = Row::arity > 2 ? 3 : Row::arity;
    const int64_t as = strides[1], bs = strides[second], cs = strides[third];
    const int64_t size = (int64_t)sizeof(E);
    if constexpr (std::is_same_v<Row, row_div> && is_float<E>) {
        if (n > 16 && !bs && has_exact_inverse(*(const E *)data[2])) {
            E inverse = 1 / *(const E *)data[2];
            char *const factors[] = {data[0], data[1], (char *)&inverse};
            return run_loop<row_mul, E>(n, factors, strides);
        }
    }
    const T d = load<E>(data[Row::arity]);
    if (strides[0] == (int64_t)sizeof(R) && as == (int64_t)sizeof(First) &&
        (bs == size || bs == 0) && (cs == size || cs == 0)) {
        R *out = (R *)data[0];
        const First *a = (const First *)data[1];
        const E *b = (const E *)data[second], *c = (const E *)data[third];
        if (bs && cs)
            run_dense<Row, true, true>(n, out, a, b, c, d);
        else if (bs)
            run_dense<Row, true, false>(n, out, a, b, c, d);
        else if (cs)
            run_dense<Row, false, true>(n, out, a, b, c, d);
        else
            run_dense<Row, false, false>(n, out, a, b, c, d);
        return;
    }
    if (Row::arity > 1 && n > 32 && as == 0 && strides[0] == (int64_t)sizeof(R) &&
        bs == size && (cs == size || cs == 0)) {
        run_with_first(run_loop<Row, E>, Row::arity + 1, sizeof(First), n, data,
                       strides);
        return;
    }
    char *out = data[0];
    const char *a = data[1], *b = data[second], *c = data[third];
    for (int64_t i = 0; i < n; i++, out += strides[0], a += as, b += bs, c += cs)
        *(R *)out = Row::template value_of<R, MathsOf<T>>(load<First>(a), load<E>(b),
                                                          load<E>(c), d);
}

template <class Row, typename T>
__attribute__((noinline)) T exactly(T a, T b)
{
    return Row::template value_of<T, Exact>(a, b, b, b);
}

/* n elements of inputs that are not where the results go; b is one where not each_b. */
template <class Row, bool each_b, typename T>
DT_INLINE void run_block(int n, T *out, const T *a, const T *b)
{
    const T b0 = *b;
    DT_VECTOR_LOOP
    for (int i = 0; i < n; i++) {
        const T bi = each_b ? b[i] : b0;
        out[i] = Row::template value_of<T, Quick>(a[i], bi, bi, bi);
    }
    int odd = 0;
    DT_VECTOR_LOOP
    for (int i = 0; i < n; i++)
        odd |= out[i] != out[i];
    for (int i = 0; odd && i < n; i++)
        if (out[i] != out[i])
            out[i] = exactly<Row>(a[i], each_b ? b[i] : b0);
}

/* A function of one or two floats by the quick functions, in blocks: elements of a block
 * for which they give NaN are done once more by the exact ones, while the inputs are
 * known. */
template <class Row, typename T>
void run_quick(int64_t n, char *const *data, const int64_t *strides)
{
    constexpr int most = 256;
    constexpr int64_t size = (int64_t)sizeof(T);
    const int64_t as = strides[1], bs = strides[Row::arity];
    char *out = data[0];
    const char *a = data[1], *b = data[Row::arity];
    if (strides[0] == size && as == size && (bs == size || bs == 0)) {
        T kept[2][most];
        for (; n > 0; n -= most, out += most * size, a += most * size, b += most * bs) {
            const int some = n > most ? most : (int)n;
            const size_t bytes = (size_t)some * sizeof(T);
            const char *x = a, *y = b;
            if (x == out)
                x = (const char *)memcpy(kept[0], x, bytes);
            if (Row::arity > 1 && bs && y == out)
                y = (const char *)memcpy(kept[1], y, bytes);
            if (Row::arity == 1 || bs)
                run_block<Row, true>(some, (T *)out, (const T *)x,
                                     (const T *)(Row::arity == 1 ? x : y));
            else
                run_block<Row, false>(some, (T *)out, (const T *)x, (const T *)y);
        }
        return;
    }
    for (int64_t i = 0; i < n; i++, out += strides[0], a += as, b += bs) {
        const T x = *(const T *)a, y = *(const T *)b;
        const T quick = Row::template value_of<T, Quick>(x, y, y, y);
        *(T *)out = quick == quick ? quick : exactly<Row>(x, y);
    }
}

template <class Row, typename T>
constexpr dt_kernel *kernel_of()
{
    if constexpr (!Row::row_class.takes[dt_kind_of<T>])
        return nullptr;
    else if constexpr (Row::row_class.exact && is_float<T>)
        return run_quick<Row, T>;
    else
        return run_loop<Row, T>;
}
template <typename T>
dt_kernel *const kernels[] = {
#define KERNEL(name, ...) kernel_of<row_##name, T>(),
#include "ops/elementwise_kernels.def"
};

} // namespace

const dt_elementwise_kernels DT_ISA_NAME(dt_elementwise) = {
#define DT_DTYPE(ID, name, alias, type)      kernels<type>,
#define DT_DTYPE_HALF(ID, name, alias, type) kernels<float>,
#include "ops/dtype.def"
};
