/* Pooling of one window, for both backends. A maximum is the first one of its window in
 * row-major order, or the last NaN, as in PyTorch.
 *
 * The includer has device/pooling.h, and DT_FN, the qualifiers of functions. A call C
 * is a dt_pooling_call, or has its members and a divided() of its own. Sizes and positions
 * are computed with the type of its window's sizes, products of two sizes with 64 bits. */
#ifndef DT_OPS_POOLING_H
#define DT_OPS_POOLING_H

#include <math.h>
#include <stdint.h>
#include <type_traits>
#include <utility>

#include "ops/window.h"

#ifndef ROLLED /* for compilers that unroll short loops */
#define ROLLED
#endif

namespace {
namespace pooling {

template <class C>
using Index = std::decay_t<decltype(std::declval<C &>().window.input[0])>;

/* A window along one dimension: elements first, first + dilation, ... below end.
 * `whole` counts those in the padding too; windows of averages have no dilation. */
template <typename I>
struct Span {
    I first, end, whole;
};

/* n / a size of dimension d; n is not negative. */
DT_FN int64_t divided(const dt_pooling_call &c, dt_divisor by, int d, int64_t n)
{
    const dt_window &w = c.window;
    return n / (by == DT_BY_INPUT    ? w.input[d]
                : by == DT_BY_OUTPUT ? w.output[d]
                : by == DT_BY_STRIDE ? w.stride[d]
                                     : w.dilation[d]);
}

template <typename I>
DT_FN I smaller(I a, I b)
{
    return a < b ? a : b;
}

template <class C, typename I = Index<C>>
DT_FN Span<I> span_of(const C &c, int d, I o)
{
    const auto &w = c.window;
    const I input = w.input[d], output = w.output[d], dilation = w.dilation[d];
    if (c.adaptive) {
        const int64_t before = (int64_t)o * input;
        const I first = (I)divided(c, DT_BY_OUTPUT, d, before);
        const I end = (I)divided(c, DT_BY_OUTPUT, d, before + input + output - 1);
        return {first, end, end - first};
    }
    I first = o * w.stride[d] - w.padding[d];
    const I reach = (w.kernel[d] - 1) * dilation + 1;
    const I whole = smaller(reach, input + w.padding[d] - first);
    const I end = smaller(first + reach, input);
    if (first < 0)
        first += divided(c, DT_BY_DILATION, d, dilation - 1 - first) * dilation;
    return {first, end, whole};
}

/* The windows, first to end-1, that reach over element i of dimension d, which all have it
 * where there is no dilation. */
template <typename I>
struct Windows {
    I first, end;
};
template <class C, typename I = Index<C>>
DT_FN Windows<I> windows_of(const C &c, int d, I i)
{
    const auto &w = c.window;
    const I input = w.input[d], output = w.output[d];
    if (c.adaptive) {
        const int64_t before = (int64_t)i * output;
        return {(I)divided(c, DT_BY_INPUT, d, before),
                (I)divided(c, DT_BY_INPUT, d, before + output + input - 1)};
    }
    const I reach = (w.kernel[d] - 1) * w.dilation[d] + 1;
    const I end = i + w.padding[d] + w.stride[d], first = end - reach;
    return {first < 0 ? 0 : divided(c, DT_BY_STRIDE, d, first),
            smaller(divided(c, DT_BY_STRIDE, d, end), output)};
}

template <typename T, typename I>
struct Found {
    T value;
    I at; /* in the plane */
};

/* The plane's elements are stored as S. */
template <typename T, typename S, class C, typename I = Index<C>>
DT_FN Found<T, I> max_of(const C &c, const S *plane, const Span<I> &d, const Span<I> &h,
                         const Span<I> &w)
{
    const I height = c.window.input[1], width = c.window.input[2];
    Found<T, I> best = {std::is_integral_v<T> ? (T)INT64_MIN : -(T)INFINITY, 0};
    if (d.first < d.end && h.first < h.end && w.first < w.end)
        best.at = (d.first * height + h.first) * width + w.first;
    for (I i = d.first; i < d.end; i += c.window.dilation[0])
        for (I j = h.first; j < h.end; j += c.window.dilation[1]) {
            const I row = (i * height + j) * width;
            ROLLED
            for (I k = w.first; k < w.end; k += c.window.dilation[2]) {
                const T v = (T)plane[row + k];
                if (v > best.value || v != v)
                    best = {v, row + k};
            }
        }
    return best;
}

/* The divisor of the sum over a window; 0: there is no element. */
template <typename T, class C, typename I = Index<C>>
DT_FN T divisor_of(const C &c, const Span<I> &d, const Span<I> &h, const Span<I> &w)
{
    if (d.first >= d.end || h.first >= h.end || w.first >= w.end)
        return 0;
    return c.divisor ? (T)c.divisor
           : c.counts_padding
               ? (T)(d.whole * h.whole * w.whole)
               : (T)((d.end - d.first) * (h.end - h.first) * (w.end - w.first));
}

/* Integers wrap, and lose what is behind the point. */
template <typename T>
DT_FN T average(T sum, T divisor)
{
    if constexpr (std::is_integral_v<T>)
        if (divisor == -1)
            return (T)(0 - (uint64_t)sum);
    return sum / divisor;
}

template <typename T, typename S, class C, typename I = Index<C>>
DT_FN T average_of(const C &c, const S *plane, const Span<I> &d, const Span<I> &h,
                   const Span<I> &w)
{
    const I height = c.window.input[1], width = c.window.input[2];
    const T divisor = divisor_of<T>(c, d, h, w);
    std::conditional_t<std::is_integral_v<T>, uint64_t, T> sum = 0;
    for (I i = d.first; i < d.end; i++)
        for (I j = h.first; j < h.end; j++) {
            ROLLED
            for (I k = w.first; k < w.end; k++)
                sum += (T)plane[(i * height + j) * width + k];
        }
    return divisor ? average((T)sum, divisor) : 0;
}

} // namespace pooling
} // namespace

#endif
