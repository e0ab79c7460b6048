/* Rows of a tile of attention for this instruction set. */
#include "cpu/kernels/kernels.h"
#include "cpu/kernels/math.h"

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
    for (int half = N / 2; half; half /= 2)
        for (int j = 0; j < half; j++)
            lane[j] = join(lane[j], lane[j + half]);
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

/* scores = scale * scores + mask */
template <typename T>
DT_FN void add_mask(int64_t n, T *scores, T scale, const dt_attention_mask *mask)
{
    const int64_t step = mask->step;
    if (!mask->data) {
        for (int64_t i = 0; i < n; i++)
            scores[i] *= scale;
    } else if (mask->is_bool) {
        const bool *counts = (const bool *)mask->data;
        for (int64_t i = 0; i < n; i++)
            scores[i] = counts[i * step] ? scores[i] * scale : -(T)INFINITY;
    } else if (step == 1) {
        const T *added = (const T *)mask->data;
        for (int64_t i = 0; i < n; i++)
            scores[i] = scores[i] * scale + added[i];
    } else {
        const T *added = (const T *)mask->data;
        for (int64_t i = 0; i < n; i++)
            scores[i] = scores[i] * scale + added[i * step];
    }
}

template <typename T>
DT_FN void exponentials(int64_t n, T *scores, T top)
{
    DT_VECTOR_LOOP
    for (int64_t i = 0; i < n; i++)
        scores[i] = attention::share(scores[i], top);
}

template <typename T>
double shares(int64_t n, void *scores, double scale, const dt_attention_mask *mask,
              double *top, double *sum)
{
    T *s = (T *)scores, old = (T)*top;
    add_mask(n, s, (T)scale, mask);
    T most = joined(n, old, [=](int64_t i) { return s[i]; }, larger<T>);
    exponentials(n, s, most);
    double factor = (double)attention::correction(old, most);
    *sum = *sum * factor +
           (double)joined(n, (T)0, [=](int64_t i) { return s[i]; }, plus<T>);
    *top = (double)most;
    return factor;
}

template <typename T>
double finish(double top, double sum, void *log_sum)
{
    *(T *)log_sum = (T)attention::log_sum(top, sum);
    return attention::inverse_sum(sum);
}

template <typename T>
void multiply(int64_t n, void *row, double factor)
{
    T *x = (T *)row;
    for (int64_t i = 0; i < n; i++)
        x[i] *= (T)factor;
}

template <typename T>
void shares_again(int64_t n, void *scores, double scale, const dt_attention_mask *mask,
                  const void *log_sum)
{
    add_mask(n, (T *)scores, (T)scale, mask);
    exponentials(n, (T *)scores, *(const T *)log_sum);
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
    {shares<T>, finish<T>, multiply<T>, shares_again<T>, dot<T>, product_gradients<T>}

} // namespace

const dt_attention_kernels DT_ISA_NAME(dt_attention) = {KERNELS(float),
                                                        KERNELS(double)};
