/* Reductions and scans of cuda/kernels/warp.h, which the last thread of a group computes
 * for all of them: each thread then waits once, not at each shuffle and barrier. The order
 * of the operations, and so each bit of the results, is that of the shuffles. */
#ifndef DT_SIM_REDUCTIONS_H
#define DT_SIM_REDUCTIONS_H

#include "sim/intrinsics.h"

namespace sim {

/* Whether groups meet. If not, the kernels' shuffles and barriers run. */
extern SIM_HIDDEN bool groups_meet;

/* Waits for the threads of a warp (32) or of the block. Each passes the address of what it
 * brings, and the last one calls f(with, their addresses), from thread 0 of the group on. */
void meet(unsigned threads, void *mine, void (*f)(void *with, void *const *all),
          void *with);

template <class T, class F>
void meet(unsigned threads, T &mine, F f)
{
    meet(
        threads, &mine,
        [](void *with, void *const *all) { (*(F *)with)((T *const *)all); }, &f);
}

/* Combine by shuffles over count / 2, or `lanes`, ... 1 lanes: the value of lane 0, and of
 * each. */
template <class T, class Combine>
T first_of(T *v, int count, Combine combine)
{
    for (int lanes = count / 2; lanes; lanes /= 2)
        for (int l = 0; l < lanes; l++)
            v[l] = combine(v[l], v[l + lanes]);
    return v[0];
}
template <class T, class Combine>
void each_of(T *v, int count, int lanes, Combine combine)
{
    T next[32];
    for (; lanes; lanes /= 2) {
        for (int l = 0; l < count; l++)
            next[l] = combine(v[l], v[l ^ lanes]);
        for (int l = 0; l < count; l++)
            v[l] = next[l];
    }
}

/* reduce_group. */
template <bool EVERYONE, class T, class Combine>
void reduce(T &value, int threads, Combine combine)
{
    meet((unsigned)threads, value, [threads, combine](T *const *all) {
        T lanes[32], warps[32];
        int count = threads / 32;
        for (int w = 0; w < count; w++) {
            for (int l = 0; l < 32; l++)
                lanes[l] = *all[32 * w + l];
            if (count > 1)
                warps[w] = first_of(lanes, 32, combine);
        }
        T *last = count > 1 ? warps : lanes;
        count = count > 1 ? count : 32;
        if (!EVERYONE) {
            *all[0] = first_of(last, count, combine);
            return;
        }
        each_of(last, count, count / 2, combine);
        for (int i = 0; i < threads; i++)
            *all[i] = last[i % count];
    });
}

/* reduce_lanes. */
template <class T, class Combine>
void reduce_lanes(T &value, int lanes, Combine combine)
{
    meet(32, value, [lanes, combine](T *const *all) {
        T v[32];
        for (int l = 0; l < 32; l++)
            v[l] = *all[l];
        each_of(v, 32, lanes / 2, combine);
        for (int l = 0; l < 32; l++)
            *all[l] = v[l];
    });
}

/* before_in_block. */
template <class T, class Combine>
T before(const T &mine, const T &lead, T *total, int threads, Combine combine)
{
    struct Brought {
        T value;
        const T &lead;
        T total;
    } thread = {mine, lead, mine};
    meet((unsigned)threads, thread, [threads, combine](Brought *const *all) {
        T warps[1024 / 32];
        const int count = threads / 32;
        for (int w = 0; w < count; w++) {
            Brought *const *lanes = all + 32 * w;
            T v[32];
            for (int l = 0; l < 32; l++)
                v[l] = lanes[l]->value;
            for (int delta = 1; delta < 32; delta *= 2)
                for (int l = 31; l >= delta; l--)
                    v[l] = combine(v[l - delta], v[l]);
            for (int l = 1; l < 32; l++)
                lanes[l]->value = v[l - 1];
            warps[w] = v[31];
        }
        for (int w = 0; w < count; w++)
            for (int l = 0; l < 32; l++) {
                Brought &t = *all[32 * w + l];
                T sum = t.lead;
                for (int k = 0; k < w; k++)
                    sum = combine(sum, warps[k]);
                t.value = l ? combine(sum, t.value) : sum;
                for (int k = w; k < count; k++)
                    sum = combine(sum, warps[k]);
                t.total = sum;
            }
    });
    *total = thread.total;
    return thread.value;
}

} /* namespace sim */

#endif
