/* The rows of ops/reduce.def as loops over elements next to each other, moments, and
 * where extremes are. */
#include <string.h>

#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"

#define DT_F(name) Quick::name
#include "ops/formula.h"
#undef DT_FN
#define DT_FN static DT_INLINE

namespace {

#include "ops/reduce.h"

/* Number of independent partial results. It keeps the adders busy, and is the same for
 * every instruction set, so that results do not depend on it. A tree combines them. */
template <typename T>
constexpr int lanes = 128 / (int)sizeof(T);

/* T is the type of the elements in memory, R that of the result. */
template <class Row, typename T, typename R>
struct Kernel {
    /* A partial result. gcc makes vectors of these, but not of bool. */
    typedef std::conditional_t<std::is_same_v<R, bool>, dt_bool, R> Partial;

    /* The initial partial result: an extreme is not changed by meeting itself. */
    static DT_INLINE Partial first(const T *x, int64_t i, double p)
    {
        return (Partial)(Row::row_class.starts ? Row::map((Compute<T>)x[i], p)
                                               : Row::identity());
    }
    static DT_INLINE Partial step(Partial a, T x, double p)
    {
        return (Partial)Row::combine((R)a, Row::map((Compute<T>)x, p));
    }
    static DT_INLINE Partial both(Partial a, Partial b)
    {
        return (Partial)Row::combine((R)a, (R)b);
    }

    /* Twice `half` partial results into the first. */
    template <int half>
    static DT_INLINE void fold(Partial *acc)
    {
        if constexpr (Row::row_class.starts) {
            /* gcc makes vectors of extremes in a loop alone; else it guesses wrong half
             * of the time which one is greater. */
#pragma GCC unroll 1
            for (int j = 0; j < half; j++)
                acc[j] = both(acc[j], acc[j + half]);
        } else {
            for (int j = 0; j < half; j++)
                acc[j] = both(acc[j], acc[j + half]);
        }
        if constexpr (half > 1)
            fold<half / 2>(acc);
    }
    __attribute__((noinline)) static void run(int64_t n, const void *from, double p,
                                              void *out)
    {
        constexpr int N = lanes<T>;
        const T *x = (const T *)from;
        Partial acc[N], a = first(x, 0, p);
        int64_t i = 0;
        if (n < N) {
            for (; i < n; i++)
                a = step(a, x[i], p);
            *(Partial *)out = a;
            return;
        }
        for (int j = 0; j < N; j++)
            acc[j] = a;
        for (; i + N <= n; i += N)
            for (int j = 0; j < N; j++)
                acc[j] = step(acc[j], x[i + j], p);
        for (int j = 0; i + j < n; j++)
            acc[j] = step(acc[j], x[i + j], p);
        fold<N / 2>(acc);
        *(Partial *)out = acc[0];
    }
    /* Short ones side by side: each in its order, as in run(). */
    static void runs(int64_t many, int64_t stride, int64_t n, const void *from,
                     double p, void *out)
    {
        constexpr int SIDE = 16;
        const char *x = (const char *)from;
        Partial *to = (Partial *)out;
        for (; n < lanes<T> && many >= SIDE; many -= SIDE, x += SIDE * stride) {
            Partial acc[SIDE];
            for (int j = 0; j < SIDE; j++)
                acc[j] = first((const T *)(x + j * stride), 0, p);
            for (int64_t i = 0; i < n; i++)
                for (int j = 0; j < SIDE; j++)
                    acc[j] = step(acc[j], ((const T *)(x + j * stride))[i], p);
            for (int j = 0; j < SIDE; j++)
                *to++ = acc[j];
        }
        for (; many > 0; many--, x += stride)
            run(n, x, p, to++);
    }
    static void start(int64_t columns, const void *from, void *partial)
    {
        const T *x = (const T *)from;
        for (int64_t j = 0; j < columns; j++)
            ((Partial *)partial)[j] = first(x, j, 0);
    }
    static void rows(int64_t rows, int64_t row_stride, int64_t columns,
                     const void *from, double p, void *partial)
    {
        const char *x = (const char *)from;
        Partial *acc = (Partial *)partial;
        for (; rows >= 4; rows -= 4, x += 4 * row_stride) {
            const T *x0 = (const T *)x, *x1 = (const T *)(x + row_stride);
            const T *x2 = (const T *)(x + 2 * row_stride);
            const T *x3 = (const T *)(x + 3 * row_stride);
            DT_VECTOR_LOOP
            for (int64_t j = 0; j < columns; j++)
                acc[j] = step(step(step(step(acc[j], x0[j], p), x1[j], p), x2[j], p),
                              x3[j], p);
        }
        for (; rows > 0; rows--, x += row_stride) {
            const T *x0 = (const T *)x;
            DT_VECTOR_LOOP
            for (int64_t j = 0; j < columns; j++)
                acc[j] = step(acc[j], x0[j], p);
        }
    }
    static void join(int64_t n, void *partial, const void *other)
    {
        Partial *a = (Partial *)partial;
        for (int64_t i = 0; i < n; i++)
            a[i] = both(a[i], ((const Partial *)other)[i]);
    }
    static void finish(int64_t n, void *partial, int64_t count, double p)
    {
        Partial *a = (Partial *)partial;
        for (int64_t i = 0; i < n; i++)
            a[i] = (Partial)Row::finish((R)a[i], count, p);
    }
};

template <template <typename, typename> class Row, typename T>
constexpr dt_reduce_kernel reduce_of()
{
    typedef Compute<T> C;
    constexpr reduce_class c = Row<C, C>::row_class;
    constexpr bool truth = c.accumulates == AS_TRUTH;
    if constexpr (!c.floats || is_float<C>) {
        typedef std::conditional_t<truth, bool, C> R;
        typedef Kernel<Row<C, R>, T, R> F;
        return {F::run,    F::runs,  F::start, F::rows,  F::join,
                F::finish, c.starts, truth,    sizeof(R)};
    }
    return {};
}
template <typename T>
constexpr dt_reduce_kernel kernels_of[] = {
#define REDUCE(name, ...) reduce_of<reduce_##name, T>(),
#include "ops/reduce.def"
#undef REDUCE
};

/* --- means and squared deviations --- */

/* Elements are read twice, the second time from the cache: once for the mean, then for
 * the deviations from it, whose own sum, 0 but for rounding, takes the mean's error out
 * again. */
template <typename T>
struct Moments {
    static dt_moments moments_of(double n, T near, double off, double square)
    {
        return {n, (double)near + off / n, square - off * off / n};
    }
    static void run(int64_t n, const void *from, double, void *out)
    {
        constexpr int N = 32;
        const T *x = (const T *)from;
        T sums[N] = {0}, squares[N] = {0}, offs[N] = {0};
        int64_t i = 0;
        for (; i + N <= n; i += N)
            for (int j = 0; j < N; j++)
                sums[j] += x[i + j];
        for (int j = 0; i + j < n; j++)
            sums[j] += x[i + j];
        const int used = n < N ? (int)n : N;
        double sum = 0, square = 0, off = 0;
        for (int j = 0; j < used; j++)
            sum += (double)sums[j];
        const T near = (T)(sum / (double)n);
        for (i = 0; i + N <= n; i += N)
            for (int j = 0; j < N; j++) {
                T d = x[i + j] - near;
                offs[j] += d;
                squares[j] += d * d;
            }
        for (int j = 0; i + j < n; j++) {
            T d = x[i + j] - near;
            offs[j] += d;
            squares[j] += d * d;
        }
        for (int j = 0; j < used; j++) {
            off += (double)offs[j];
            square += (double)squares[j];
        }
        *(dt_moments *)out = moments_of((double)n, near, off, square);
    }
    static void runs(int64_t many, int64_t stride, int64_t n, const void *from,
                     double p, void *out)
    {
        for (int64_t j = 0; j < many; j++)
            run(n, (const char *)from + j * stride, p, (dt_moments *)out + j);
    }
    static void start(int64_t columns, const void *, void *partial)
    {
        memset(partial, 0, (size_t)columns * sizeof(dt_moments));
    }
    static void rows(int64_t rows, int64_t row_stride, int64_t columns,
                     const void *from, double, void *partial)
    {
        T near[DT_MOMENTS_COLUMNS], offs[DT_MOMENTS_COLUMNS];
        T squares[DT_MOMENTS_COLUMNS];
        for (int64_t j = 0; j < columns; j++)
            near[j] = offs[j] = squares[j] = 0;
        for (int64_t i = 0; i < rows; i++) {
            const T *x = (const T *)((const char *)from + i * row_stride);
            for (int64_t j = 0; j < columns; j++)
                near[j] += x[j];
        }
        for (int64_t j = 0; j < columns; j++)
            near[j] /= (T)rows;
        for (int64_t i = 0; i < rows; i++) {
            const T *x = (const T *)((const char *)from + i * row_stride);
            for (int64_t j = 0; j < columns; j++) {
                T d = x[j] - near[j];
                offs[j] += d;
                squares[j] += d * d;
            }
        }
        dt_moments leaf[DT_MOMENTS_COLUMNS];
        for (int64_t j = 0; j < columns; j++)
            leaf[j] =
                moments_of((double)rows, near[j], (double)offs[j], (double)squares[j]);
        join(columns, partial, leaf);
    }
    /* Every column has equally many elements in both. */
    static void join(int64_t n, void *partial, const void *other)
    {
        dt_moments *a = (dt_moments *)partial;
        const dt_moments *b = (const dt_moments *)other;
        const double mine = a->count, others = b->count;
        for (int64_t i = 0; i < n; i++)
            a[i] = dt_moments_join({mine, a[i].mean, a[i].square},
                                   {others, b[i].mean, b[i].square});
    }
    static constexpr dt_reduce_kernel kernel = {
        run, runs, start, rows, join, nullptr, false, false, sizeof(dt_moments)};
};

/* --- extremes and where they are --- */

template <typename T>
struct Arg {
    typedef Compute<T> C;

    static DT_INLINE bool is(C a, C wanted)
    {
        return (a == wanted) | ((a != a) & (wanted != wanted));
    }
    static int64_t find(int64_t n, const void *from, const void *value)
    {
        const T *x = (const T *)from;
        const C wanted = (C)((const T *)value)[0];
        int64_t i = 0;
        /* Whole blocks first: within one the test for a hit is without branches. */
        for (; i + 64 <= n; i += 64) {
            int hits = 0;
            for (int j = 0; j < 64; j++)
                hits |= is((C)x[i + j], wanted);
            if (hits)
                break;
        }
        for (; i < n; i++)
            if (is((C)x[i], wanted))
                return i;
        return -1;
    }
    static DT_INLINE bool wins(C a, C b, bool greatest)
    {
        return ((greatest ? a > b : a < b) | (a != a)) & (b == b);
    }
    static bool beats(const void *a, const void *b, bool greatest)
    {
        return wins((C)((const T *)a)[0], (C)((const T *)b)[0], greatest);
    }
    template <bool greatest>
    static DT_INLINE void meet(int64_t columns, const T *x, int64_t index, T *top,
                               int64_t *where)
    {
        DT_VECTOR_LOOP
        for (int64_t j = 0; j < columns; j++) {
            bool better = wins((C)x[j], (C)top[j], greatest);
            top[j] = (T)(better ? (C)x[j] : (C)top[j]);
            where[j] = better ? index : where[j];
        }
    }
    /* The extremes of `many` times n elements, `stride` bytes apart, side by side. */
    template <bool greatest>
    static DT_INLINE void side(int64_t many, int64_t stride, int64_t n, const char *x,
                               T *best, int64_t *where)
    {
        constexpr int SIDE = 16;
        for (; many > 0; many -= SIDE, x += SIDE * stride) {
            const int some = many < SIDE ? (int)many : SIDE;
            T top[SIDE];
            int32_t at[SIDE] = {0};
            for (int j = 0; j < SIDE; j++)
                top[j] = *(const T *)(x + (j < some ? j : 0) * stride);
            for (int32_t i = 1; i < n; i++)
                for (int j = 0; j < SIDE; j++) {
                    const T y = ((const T *)(x + (j < some ? j : 0) * stride))[i];
                    const bool better = wins((C)y, (C)top[j], greatest);
                    top[j] = (T)(better ? (C)y : (C)top[j]);
                    at[j] = better ? i : at[j];
                }
            for (int j = 0; j < some; j++) {
                *best++ = top[j];
                *where++ = at[j];
            }
        }
    }
    static void runs(int64_t many, int64_t stride, int64_t n, const void *from,
                     bool greatest, void *best, int64_t *where)
    {
        if (greatest)
            side<true>(many, stride, n, (const char *)from, (T *)best, where);
        else
            side<false>(many, stride, n, (const char *)from, (T *)best, where);
    }
    static void row(int64_t columns, const void *from, bool greatest, int64_t index,
                    void *best, int64_t *where)
    {
        const T *x = (const T *)from;
        if (greatest)
            meet<true>(columns, x, index, (T *)best, where);
        else
            meet<false>(columns, x, index, (T *)best, where);
    }
};
template <typename T>
constexpr dt_arg_kernel args = {Arg<T>::find, Arg<T>::beats, Arg<T>::runs, Arg<T>::row};

} // namespace

const dt_reduce_kernels DT_ISA_NAME(dt_reduce) = {
    {
#define DT_DTYPE(ID, name, alias, type)      kernels_of<type>,
#define DT_DTYPE_HALF(ID, name, alias, type) kernels_of<float>,
#define DT_DTYPE_COMPLEX(...)                nullptr,
#include "ops/dtype.def"
    },
    {
#define DT_DTYPE(ID, name, alias, type)      &args<type>,
#define DT_DTYPE_HALF(ID, name, alias, type) &args<float>,
#define DT_DTYPE_COMPLEX(...)                nullptr,
#include "ops/dtype.def"
    },
    Moments<float>::kernel,
    Moments<double>::kernel,
};
