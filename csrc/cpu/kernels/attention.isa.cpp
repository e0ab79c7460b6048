/* Rows of a tile of attention for this instruction set. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/float_functions.h"

#undef DT_FN
#define DT_FN  static DT_INLINE
#define op_exp Quick::exp
#define op_log Exact::log
#include "ops/attention.h"

namespace {

/* Lanes keep the adders busy; their number is that of every instruction set, so that
 * results do not depend on it. */
template <typename T>
constexpr int lanes = 128 / (int)sizeof(T);

/* Halves of the lanes onto each other until one is left. A loop over `half` would not
 * become vector code. */
template <int half, typename T, class Join>
DT_FN void fold(T *lane, Join join)
{
    for (int j = 0; j < half; j++)
        lane[j] = join(lane[j], lane[j + half]);
    if constexpr (half > 1)
        fold<half / 2>(lane, join);
}

template <typename T, class F, class Join>
DT_FN T joined(int64_t n, T start, F f, Join join)
{
    constexpr int N = lanes<T>;
    T lane[N];
    int64_t i = 0;
    for (int j = 0; j < N; j++)
        lane[j] = start;
    for (; i + N <= n; i += N)
        for (int j = 0; j < N; j++)
            lane[j] = join(lane[j], f(i + j));
    for (int j = 0; i + j < n; j++)
        lane[j] = join(lane[j], f(i + j));
    fold<N / 2>(lane, join);
    return lane[0];
}

template <typename T>
DT_FN T plus(T a, T b)
{
    return a + b;
}
template <typename T>
DT_FN T larger(T a, T b)
{
    return b > a ? b : a;
}

/* Adds the mask to the first `count` scores of n. Of the others those up to the next
 * whole number of lanes become -inf, the rest 0: the shares that they have. Returns the
 * end of the -inf. */
template <typename T>
DT_FN int64_t add_mask(int64_t n, int64_t count, T *scores,
                       const dt_attention_mask *mask)
{
    const int64_t step = mask->step;
    const dt_bool *counts = (const dt_bool *)mask->data;
    const T *added = (const T *)mask->data;
    int64_t end = (count + lanes<T> - 1) / lanes<T> * lanes<T>;
    end = end < n ? end : n;
    for (int64_t i = count; i < end; i++)
        scores[i] = -(T)INFINITY;
    for (int64_t i = end; i < n; i++)
        scores[i] = 0;
    if (!mask->data)
        return end;
    if (mask->is_bool) {
        for (int64_t i = 0; i < count; i++)
            scores[i] = (bool)counts[i * step] ? scores[i] : -(T)INFINITY;
    } else if (step == 1) {
        for (int64_t i = 0; i < count; i++)
            scores[i] += added[i];
    } else {
        for (int64_t i = 0; i < count; i++)
            scores[i] += added[i * step];
    }
    return end;
}

template <typename T>
double shares(int64_t n, int64_t count, void *scores, const dt_attention_mask *mask,
              double *top, double *sum)
{
    T *s = (T *)scores, old = (T)*top;
    n = add_mask(n, count, s, mask);
    const T most = joined(n, old, [=](int64_t i) { return s[i]; }, larger<T>);
    const double factor = (double)attention::correction(old, most);
    /* Relative to a number the exponential of -inf is 0. */
    const T part =
        most > -(T)INFINITY
            ? joined(
                  n, (T)0, [=](int64_t i) { return s[i] = op_exp(s[i] - most); },
                  plus<T>)
            : joined(
                  n, (T)0,
                  [=](int64_t i) { return s[i] = attention::share(s[i], most); },
                  plus<T>);
    *sum = *sum * factor + (double)part;
    *top = (double)most;
    return factor;
}

template <typename T>
double finish_softmax(double top, double sum, void *log_sum)
{
    *(T *)log_sum = (T)attention::log_sum(top, sum);
    return attention::inverse_sum(sum);
}

template <typename T>
void scale_row(int64_t n, void *row, double factor)
{
    T *x = (T *)row;
    for (int64_t i = 0; i < n; i++)
        x[i] *= (T)factor;
}

template <typename T>
void shares_again(int64_t n, int64_t count, void *scores, const dt_attention_mask *mask,
                  const void *log_sum)
{
    T *s = (T *)scores;
    const T top = *(const T *)log_sum;
    n = add_mask(n, count, s, mask);
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        s[i] = op_exp(s[i] - top); /* top is no -inf */
}

template <typename T>
double dot(int64_t n, const void *a, const void *b)
{
    const T *x = (const T *)a, *y = (const T *)b;
    return (double)joined(n, (T)0, [=](int64_t i) { return x[i] * y[i]; }, plus<T>);
}

template <typename T>
void product_gradients(int64_t n, const void *shares, void *gradients, double out_dot,
                       double scale)
{
    const T *p = (const T *)shares, part = (T)out_dot, factor = (T)scale;
    T *g = (T *)gradients;
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        g[i] = attention::product_gradient(p[i], g[i], part, factor);
}

#define KERNELS(T)                                                                     \
    {shares<T>, finish_softmax<T>,   scale_row<T>, shares_again<T>,                    \
     dot<T>,    product_gradients<T>}

} // namespace

const dt_attention_kernels DT_ISA_NAME(dt_attention) = {KERNELS(float),
                                                        KERNELS(double)};
