/* The rows of ops/elementwise.def as loops over elements. */
#include <string.h>
#include <type_traits>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"
#include "ops/class.h"

#define DT_F(name) Maths::name
#include "ops/formula.h"

namespace {

#define KERNEL(name, inputs, class, low, high, operands, value)                        \
    struct row_##name {                                                                \
        static constexpr int arity = inputs;                                           \
        static constexpr dt_class row_class = DT_CLASS_VALUE(DT_CLASS_##class);        \
        template <typename R, typename Maths, typename First, typename T>              \
        static DT_INLINE R value_of(First a, T b, T c, T d)                            \
        {                                                                              \
            operands(First, a, b, c, d) return (R)(value);                             \
        }                                                                              \
    };
#include "ops/elementwise_kernels.def"

/* The element at `place`, E in memory. */
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
        out[i] = Row::template value_of<R, Quick>(
            (Compute<First>)a[i], each_b ? (T)b[i] : b0, each_c ? (T)c[i] : c0, d);
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
    char *out = data[0];
    const char *a = data[1], *b = data[second], *c = data[third];
    for (int64_t i = 0; i < n; i++, out += strides[0], a += as, b += bs, c += cs)
        *(R *)out =
            Row::template value_of<R, Quick>(load<First>(a), load<E>(b), load<E>(c), d);
}

template <class Row, typename T>
__attribute__((noinline)) T exactly(T x)
{
    return Row::template value_of<T, Exact>(x, x, x, x);
}

/* A function of one float by the quick functions, in blocks: elements of a block for
 * which they give NaN are done once more by the exact ones, while the input is known. */
template <class Row, typename T>
void run_quick(int64_t n, char *const *data, const int64_t *strides)
{
    constexpr int block = 256;
    const int64_t size = (int64_t)sizeof(T);
    if (strides[0] == size && strides[1] == size) {
        T *out = (T *)data[0], kept[block];
        const T *x = (const T *)data[1];
        for (; n > 0; n -= block, out += block, x += block) {
            const int some = n > block ? block : (int)n;
            const T *from = x;
            if (from == out)
                from = (const T *)memcpy(kept, x, (size_t)some * sizeof(T));
            DT_VECTOR_LOOP
            for (int i = 0; i < some; i++)
                out[i] = Row::template value_of<T, Quick>(from[i], from[i], from[i],
                                                          from[i]);
            int odd = 0;
            DT_VECTOR_LOOP
            for (int i = 0; i < some; i++)
                odd |= out[i] != out[i];
            for (int i = 0; odd && i < some; i++)
                if (out[i] != out[i])
                    out[i] = exactly<Row>(from[i]);
        }
        return;
    }
    char *out = data[0];
    const char *x = data[1];
    for (int64_t i = 0; i < n; i++, out += strides[0], x += strides[1]) {
        const T a = *(const T *)x, quick = Row::template value_of<T, Quick>(a, a, a, a);
        *(T *)out = quick == quick ? quick : exactly<Row>(a);
    }
}

template <class Row, typename T>
constexpr dt_kernel *kernel_of()
{
    if constexpr (!Row::row_class.takes[dt_kind_of<T>])
        return nullptr;
    else if constexpr (Row::row_class.exact)
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
