/* The stage of a convolution: convolution.h. */
#ifndef DT_CPU_KERNELS_CONVOLUTION_STAGE_H
#define DT_CPU_KERNELS_CONVOLUTION_STAGE_H

#include "cpu/kernels/gemm_tile.h"

namespace {

/* Copies W elements, which may go beyond a run: what comes next overwrites them. */
template <int64_t W, typename T>
DT_INLINE void copy_vector(T *out, const T *from)
{
    memcpy(out, from, W * sizeof(T));
}

/* A part of the source with its padding, from which the patches are read, and where
 * positions are in it and in the target. */
template <typename T>
struct Stage {
    static constexpr int64_t columns = Tile<T>::columns;
    static constexpr int64_t lanes = VECTOR / (int64_t)sizeof(T);
    typedef T Lanes __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));

    /* A run of a panel: where it is in the stage, and its first column. */
    struct Run {
        int64_t from, column;
    };

    /* --- staging --- */

    /* The lowest offset of an axis, from which the stage begins. */
    static int64_t lowest(const dt_patch_axis &a)
    {
        return a.offset + (a.offset_step < 0 ? (a.taps - 1) * a.offset_step : 0);
    }
    static void zero(T *out, int64_t n)
    {
        for (int64_t i = 0; i < n; i++)
            out[i] = 0;
    }
    /* One row of the source, or NULL for a row of zeros. */
    static void stage_row(const dt_patches *p, const T *row, T *out)
    {
        const dt_patch_axis &x = p->axis[2];
        const int64_t low = lowest(x), move = x.move;
        if (!row) {
            zero(out, p->row_length);
            return;
        }
        for (int64_t f = 0; f < move; f++, out += p->pitch) {
            /* Elements begin to end-1 are in the source. */
            const int64_t at = low + f;
            int64_t begin = at < 0 ? (-at + move - 1) / move : 0;
            int64_t end = at < x.size ? (x.size - at + move - 1) / move : 0;
            begin = dt_least(begin, p->pitch);
            end = end < begin ? begin : dt_least(end, p->pitch);
            zero(out, begin);
            const T *from = row + at + begin * move;
            if (move == 1) {
                memcpy(out + begin, from, (size_t)(end - begin) * sizeof(T));
            } else {
                for (int64_t i = 0; i < end - begin; i++)
                    out[begin + i] = from[i * move];
            }
            zero(out + end, p->pitch - end);
        }
    }
    static void stage(const dt_patches *p, const dt_patch_part &part, T *out)
    {
        const dt_patch_axis &z = p->axis[0], &y = p->axis[1], &x = p->axis[2];
        const int64_t plane = y.size * x.size, top = part.row * y.move + lowest(y);
        const int64_t rows = z.taps ? p->stage_rows : 0;
        /* Without padding the stage has the source's lines, and all at once. */
        const bool whole = lowest(x) == 0 && x.move == 1 && p->row_length == x.size &&
                           top >= 0 && top + rows <= y.size;
        for (int64_t c = 0; c < part.channels; c++)
            for (int64_t q = part.plane; q < part.plane + part.planes; q++)
                for (int64_t j = 0; j < z.taps; j++) {
                    int64_t depth = q % z.count * z.move + z.offset + j * z.offset_step;
                    int64_t image = q / z.count * p->groups * p->channels +
                                    part.group * p->channels + part.channel + c;
                    const T *from =
                        (const T *)p->source + (image * z.size + depth) * plane;
                    bool inside = depth >= 0 && depth < z.size;
                    if (whole && inside) {
                        memcpy(out, from + top * x.size,
                               (size_t)(rows * x.size) * sizeof(T));
                        out += rows * x.size;
                        continue;
                    }
                    for (int64_t r = 0; r < rows; r++, out += p->row_length)
                        stage_row(p,
                                  inside && top + r >= 0 && top + r < y.size
                                      ? from + (top + r) * x.size
                                      : nullptr,
                                  out);
                }
        zero(out, 2 * columns); /* read beside the last line, where that is not used */
    }
    /* Where the patches' elements are in the stage, from that of the position on. */
    static void place_taps(const dt_patches *p, const dt_patch_part &part,
                           int64_t *offsets)
    {
        const dt_patch_axis &y = p->axis[1], &x = p->axis[2];
        const int64_t top = lowest(y) - y.offset, left = lowest(x) - x.offset;
        const int64_t depth = p->stage_rows * p->row_length;
        for (int64_t c = 0; c < part.channels; c++)
            for (int64_t j0 = 0; j0 < p->axis[0].taps; j0++)
                for (int64_t j1 = 0; j1 < y.taps; j1++)
                    for (int64_t j2 = 0; j2 < x.taps; j2++) {
                        int64_t across = j2 * x.offset_step - left;
                        *offsets++ = (c * part.planes * p->axis[0].taps + j0) * depth +
                                     (j1 * y.offset_step - top) * p->row_length +
                                     across % x.move * p->pitch + across / x.move;
                    }
    }
    /* The runs of positions begin to end-1 of a part. */
    static int64_t find_runs(const dt_patches *p, const dt_patch_part &part,
                             int64_t begin, int64_t end, Run *runs)
    {
        const dt_patch_axis &y = p->axis[1], &x = p->axis[2];
        int64_t count = 0;
        for (int64_t n = begin; n < end; count++) {
            int64_t column = n % x.count, line = n / x.count;
            runs[count].from = (line / part.rows * p->axis[0].taps * p->stage_rows +
                                line % part.rows * y.move) *
                                   p->row_length +
                               column;
            runs[count].column = n - begin;
            n += x.count - column;
        }
        return count;
    }
    static int64_t stage_numel(const dt_patches *p)
    {
        return p->block * p->planes * p->plane_length + 2 * columns;
    }

    /* --- items --- */

    /* The part of a position, with all channels of its group. */
    static dt_patch_part part_of(const dt_patches *p, int64_t group, int64_t place)
    {
        const int64_t all = p->batch * p->axis[0].count;
        dt_patch_part part;
        part.group = group;
        part.channel = 0;
        part.channels = p->channels;
        part.plane = place / p->bands * p->planes;
        part.planes = dt_least(p->planes, all - part.plane);
        part.row = place % p->bands * p->band;
        part.rows = dt_least(p->band, p->axis[1].count - part.row);
        return part;
    }
    /* Block number `block` of its channels. */
    static void take_block(const dt_patches *p, dt_patch_part &part, int64_t block)
    {
        part.channel = block * p->block;
        part.channels = dt_least(p->block, p->channels - part.channel);
        if (part.channels < 0)
            part.channels = 0;
    }
    /* Where position n of a part is in the target's first channel of the group. */
    static int64_t place_of(const dt_patches *p, const dt_patch_part &part, int64_t n)
    {
        const dt_patch_axis *a = p->axis;
        const int64_t *size = p->target_size;
        int64_t column = n % a[2].count, line = n / a[2].count;
        int64_t plane = part.plane + line / part.rows,
                row = part.row + line % part.rows;
        int64_t depth = plane % a[0].count, image = plane / a[0].count;
        return (((image * p->groups + part.group) * p->rows * size[0] + a[0].first +
                 depth * a[0].step) *
                    size[1] +
                a[1].first + row * a[1].step) *
                   size[2] +
               a[2].first + column * a[2].step;
    }

    /* Positions n to n + count - 1 of a plane, counted in the stage, whose padding gives
     * some of no meaning: calls body(where they begin, number, element) for the runs of the
     * others; the element is the target's, counted from that of position 0. */
    template <typename Body>
    static DT_INLINE void for_runs(const dt_patches *p, int64_t n, int64_t count,
                                   Body body)
    {
        const dt_patch_axis &y = p->axis[1], &x = p->axis[2];
        int64_t row = n / p->row_length, column = n % p->row_length;
        for (int64_t i = 0; i < count; row++, column = 0) {
            const int64_t some = dt_least(count - i, x.count - column);
            if (some > 0)
                body(i, some, row * y.step * p->target_size[2] + column * x.step);
            i += p->row_length - column;
        }
    }
    /* How many positions of a plane are counted so. */
    static int64_t span_of(const dt_patches *p, const dt_patch_part &part)
    {
        return (part.rows - 1) * p->row_length + p->axis[2].count;
    }
    /* Where a line begins in the stage. */
    static int64_t start_of(const dt_patches *p, const dt_patch_part &part,
                            int64_t line)
    {
        Run run;
        const int64_t n = line * p->axis[2].count;
        find_runs(p, part, n, n + 1, &run);
        return run.from;
    }
    /* Writes or adds a row of a tile to the target. */
    static DT_INLINE void put(T *out, int64_t step, const T *sums, int64_t n, T start,
                              bool adds)
    {
        if (step == 1 && !adds)
            for (int64_t i = 0; i < n; i++)
                out[i] = sums[i] + start;
        else if (step == 1)
            for (int64_t i = 0; i < n; i++)
                out[i] += sums[i];
        else
            for (int64_t i = 0; i < n; i++)
                out[i * step] = adds ? out[i * step] + sums[i] : sums[i] + start;
    }
};

} // namespace

#endif
