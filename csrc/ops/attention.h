/* Attention by tiles of keys: what both backends compute for one element or row.
 *
 * A row of scores is known a tile at a time. Its exponentials are taken relative to the
 * maximum so far; where a later tile raises that, what has been summed is multiplied by
 * the correction. The backward pass computes the shares again, from the logarithm of
 * the row's sum (Dao et al., 2022, FlashAttention; the sum: Milakov and Gimelshein,
 * 2018).
 *
 * The includer has op_exp, op_log, and DT_FN, the qualifiers of functions. */
#ifndef DT_OPS_ATTENTION_H
#define DT_OPS_ATTENTION_H

#include <math.h>

namespace {
namespace attention {

/* The factor that rescales a row's sums so far. Exponentials of -inf are not taken: on
 * some CPUs a step of theirs below the normal numbers takes a hundred times as long. */
template <typename T>
DT_FN T correction(T old_top, T new_top)
{
    if (old_top == -(T)INFINITY)
        return 0;
    return old_top == new_top ? (T)1 : op_exp(old_top - new_top);
}

/* A score of -inf is left out, also where all are. `top`: the maximum, or log_sum. */
template <typename T>
DT_FN T share(T score, T top)
{
    const bool counts = score != -(T)INFINITY;
    const T e = op_exp(counts ? score - top : (T)0);
    return counts ? e : (T)0;
}

/* The factor that normalizes a row, and the logarithm that the backward pass reads. */
template <typename T>
DT_FN T inverse_sum(T sum)
{
    return sum == 0 ? (T)0 : 1 / sum;
}
template <typename T>
DT_FN T log_sum(T top, T sum)
{
    return sum == 0 ? (T)0 : top + op_log(sum);
}

/* The gradient of a product of query and key. for_share: of the share; out_dot: of the
 * row, the sum of its result times the result's gradient. */
template <typename T>
DT_FN T product_gradient(T share, T for_share, T out_dot, T scale)
{
    return share * (for_share - out_dot) * scale;
}

} // namespace attention
} // namespace

#endif
