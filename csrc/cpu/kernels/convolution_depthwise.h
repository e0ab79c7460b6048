/* Convolution with one channel for each group: convolution.h. */
#ifndef DT_CPU_KERNELS_CONVOLUTION_DEPTHWISE_H
#define DT_CPU_KERNELS_CONVOLUTION_DEPTHWISE_H

#include "cpu/kernels/convolution_stage.h"
#include "cpu/kernels/task_memory.h"

namespace {

template <typename T>
struct Depthwise : Stage<T> {
    typedef Stage<T> Base;
    using Base::for_runs;
    using Base::lanes;
    using Base::part_of;
    using Base::place_of;
    using Base::place_taps;
    using Base::put;
    using Base::span_of;
    using Base::stage;
    using Base::stage_numel;
    using Base::start_of;
    using typename Base::Lanes;

    static void run_part(const dt_patches *p, const dt_patch_part &part, const T *stage,
                         const int64_t *offsets, const T *weight)
    {
        const int64_t width = p->axis[2].count;
        const T start = p->bias ? ((const T *)p->bias)[part.group] : (T)0;
        /* A whole plane, or line by line. */
        const int64_t rows = p->slides ? part.rows : 1,
                      end = p->slides ? span_of(p, part) : width;
        for (int64_t line = 0; line < part.planes * part.rows; line += rows) {
            const T *from = stage + start_of(p, part, line);
            T *target = (T *)p->target + place_of(p, part, line * width);
            for (int64_t n = 0; n < end; n += 4 * lanes) {
                T sums[4 * lanes];
                Lanes a = Lanes{} + start, b = a, c = a, d = a;
                for (int64_t k = 0; k < p->taps; k++) {
                    const Lanes *at = (const Lanes *)(from + n + offsets[k]);
                    a += weight[k] * at[0];
                    b += weight[k] * at[1];
                    c += weight[k] * at[2];
                    d += weight[k] * at[3];
                }
                Lanes *to = (Lanes *)sums;
                to[0] = a, to[1] = b, to[2] = c, to[3] = d;
                for_runs(p, n, dt_least(4 * lanes, end - n),
                         [&](int64_t i, int64_t some, int64_t element) {
                             put(target + element, p->axis[2].step, sums + i, some,
                                 (T)0, false);
                         });
            }
        }
    }
    static void run(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t staged = stage_numel(p) + 4 * lanes;
        Room room(&p->failed,
                  (staged + p->taps) * (int64_t)sizeof(T) +
                      p->taps * (int64_t)sizeof(int64_t),
                  3);
        if (!room.data)
            return;
        T *stage_room = room.take<T>(staged), *weight = room.take<T>(p->taps);
        int64_t *offsets = room.take<int64_t>(p->taps);
        for (int64_t item = begin; item < end; item++) {
            dt_patch_part part = part_of(p, item / p->places, item % p->places);
            stage(p, part, stage_room);
            place_taps(p, part, offsets);
            const T *w = (const T *)p->weight + part.group * p->weight_group;
            T *out = weight;
            const dt_patch_axis *a = p->axis;
            for (int64_t j0 = 0; j0 < a[0].taps; j0++)
                for (int64_t j1 = 0; j1 < a[1].taps; j1++)
                    for (int64_t j2 = 0; j2 < a[2].taps; j2++)
                        *out++ =
                            w[(a[0].tap_first + j0 * a[0].tap_step) * p->weight_tap[0] +
                              (a[1].tap_first + j1 * a[1].tap_step) * p->weight_tap[1] +
                              (a[2].tap_first + j2 * a[2].tap_step) * p->weight_tap[2]];
            run_part(p, part, stage_room, offsets, weight);
        }
    }
};

} // namespace

#endif
