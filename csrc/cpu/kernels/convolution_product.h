/* The product of weights with patches: convolution.h. */
#ifndef DT_CPU_KERNELS_CONVOLUTION_PRODUCT_H
#define DT_CPU_KERNELS_CONVOLUTION_PRODUCT_H

#include "cpu/kernels/convolution_stage.h"
#include "cpu/kernels/task_memory.h"

namespace {

/* Patches are packed into panels of the product, or read in the stage where the rows are
 * few. */
template <typename T>
struct Product : Stage<T> {
    typedef Stage<T> Base;
    using Base::columns;
    using Base::find_runs;
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
    using Base::take_block;
    using typename Base::Lanes;
    using typename Base::Run;

    /* A tile from patches read from the stage itself: out = a @ b for `rows` rows of a,
     * where row p of b is the stage from offsets[p] on. */
    template <int rows>
    static void slide(int64_t k, const T *a, const T *stage, const int64_t *offsets,
                      T *out)
    {
        typedef Lanes V;
        V sums[rows][TILE_VECTORS];
        Tile<T>::template for_each<rows, TILE_VECTORS>(
            [&](int r, int v) { sums[r][v] = V{}; });
        for (int64_t p = 0; p < k; p++, a += rows) {
            const V *b = (const V *)(stage + offsets[p]);
            Tile<T>::template for_each<rows, TILE_VECTORS>([&](int r, int v) {
                V ar = a[r] - V{}; /* the element in every lane */
                sums[r][v] += ar * b[v];
            });
        }
        Tile<T>::template for_each<rows, TILE_VECTORS>(
            [&](int r, int v) { ((V *)out)[r * TILE_VECTORS + v] = sums[r][v]; });
    }
    typedef void Slide(int64_t k, const T *a, const T *stage, const int64_t *offsets,
                       T *out);
    template <int... i>
    static Slide *slide_of(int64_t rows, std::integer_sequence<int, i...>)
    {
        static constexpr Slide *all[] = {slide<i + 1>...};
        return all[rows - 1];
    }

    /* --- packing --- */

    template <int64_t W>
    static DT_INLINE void pack_pieces(int64_t k, const int64_t *offsets, const T *stage,
                                      const Run *pieces, int64_t count, T *out)
    {
        for (int64_t i = 0; i < k; i++, out += columns)
            for (int64_t r = 0; r < count; r++)
                copy_vector<W>(out + pieces[r].column,
                               stage + pieces[r].from + offsets[i]);
    }
    /* Runs of n columns in all, in pieces of W elements. */
    template <int64_t W>
    static DT_INLINE void pack_panel(int64_t k, const int64_t *offsets, const T *stage,
                                     const Run *runs, int64_t count, int64_t n, T *out)
    {
        Run pieces[columns];
        int64_t found = 0;
        for (int64_t r = 0; r < count; r++) {
            int64_t end = r + 1 < count ? runs[r + 1].column : n;
            for (int64_t s = 0; runs[r].column + s < end; s += W, found++) {
                pieces[found].from = runs[r].from + s;
                pieces[found].column = runs[r].column + s;
            }
        }
        if (found == 2)
            pack_pieces<W>(k, offsets, stage, pieces, 2, out);
        else if (found == 3)
            pack_pieces<W>(k, offsets, stage, pieces, 3, out);
        else if (found == 4)
            pack_pieces<W>(k, offsets, stage, pieces, 4, out);
        else
            pack_pieces<W>(k, offsets, stage, pieces, found, out);
    }
    static void pack(const dt_patches *p, void *packed)
    {
        T *out = (T *)packed;
        const T *w = (const T *)p->weight;
        const dt_patch_axis *a = p->axis;
        const int64_t tile_rows = p->tile_rows;
        for (int64_t g = 0; g < p->groups; g++)
            for (int64_t m = 0; m < p->rows; m += tile_rows)
                for (int64_t c = 0; c < p->channels; c++)
                    for (int64_t j0 = 0; j0 < a[0].taps; j0++)
                        for (int64_t j1 = 0; j1 < a[1].taps; j1++)
                            for (int64_t j2 = 0; j2 < a[2].taps; j2++) {
                                const T *from = w + g * p->weight_group +
                                                m * p->weight_row +
                                                c * p->weight_channel +
                                                (a[0].tap_first + j0 * a[0].tap_step) *
                                                    p->weight_tap[0] +
                                                (a[1].tap_first + j1 * a[1].tap_step) *
                                                    p->weight_tap[1] +
                                                (a[2].tap_first + j2 * a[2].tap_step) *
                                                    p->weight_tap[2];
                                for (int64_t r = 0; r < tile_rows; r++)
                                    *out++ = m + r < p->rows ? from[r * p->weight_row]
                                                             : (T)0;
                            }
    }

    /* n columns of a tile from `column` on, which are `step` apart in the target. */
    struct Piece {
        int64_t at, column, n;
    };
    /* Runs that follow each other are one piece. */
    static int64_t find_pieces(const dt_patches *p, const dt_patch_part &part,
                               int64_t begin, const Run *runs, int64_t count, int64_t n,
                               Piece *pieces)
    {
        int64_t found = 0;
        for (int64_t r = 0; r < count; r++) {
            const int64_t column = runs[r].column,
                          end = r + 1 < count ? runs[r + 1].column : n;
            const int64_t at = place_of(p, part, begin + column);
            Piece *last = &pieces[found - 1];
            if (found && at == last->at + last->n * p->axis[2].step)
                last->n += end - column;
            else
                pieces[found++] = {at, column, end - column};
        }
        return found;
    }

    /* --- the product --- */

    static DT_INLINE void put_row(T *target, int64_t step, const Piece *pieces,
                                  int64_t count, const T *sums, T start, bool adds)
    {
        if (count == 1 && pieces[0].n == columns && step == 1) {
            put(target + pieces[0].at, 1, sums, columns, start, adds);
            return;
        }
        for (int64_t i = 0; i < count; i++)
            put(target + pieces[i].at, step, sums + pieces[i].column, pieces[i].n,
                start, adds);
    }
    static void run_item(const dt_patches *p, const dt_patch_part &whole, int64_t first,
                         int64_t last, T *stage_room, T *panel, int64_t *offsets)
    {
        const int64_t volume = dt_window_volume(p->target_size),
                      k = p->channels * p->taps;
        const int64_t positions = whole.planes * whole.rows * p->axis[2].count;
        const int64_t tile_rows = p->tile_rows,
                      tiles = (p->rows + tile_rows - 1) / tile_rows;
        const T *bias = (const T *)p->bias;
        typename Tile<T>::Multiply *const multiply =
            Tile<T>::template multiply_of<TILE_VECTORS, 1, 0>(tile_rows);
        Run runs[columns];
        Piece pieces[columns];
        dt_patch_part part = whole;
        for (int64_t block = 0; block < p->blocks; block++) {
            take_block(p, part, block);
            int64_t depth = part.channels * p->taps;
            if (depth) {
                stage(p, part, stage_room);
                place_taps(p, part, offsets);
            }
            const T *packed = (const T *)p->weight +
                              whole.group * tiles * tile_rows * k +
                              part.channel * p->taps * tile_rows;
            for (int64_t n = 0; n < positions; n += columns) {
                int64_t count = dt_least(columns, positions - n);
                int64_t found = find_runs(p, part, n, n + count, runs);
                if (depth && p->axis[2].count <= lanes / 2)
                    pack_panel<lanes / 2>(depth, offsets, stage_room, runs, found,
                                          count, panel);
                else if (depth)
                    pack_panel<lanes>(depth, offsets, stage_room, runs, found, count,
                                      panel);
                const int64_t apart =
                    find_pieces(p, part, n, runs, found, count, pieces);
                for (int64_t m = first; m < last; m += tile_rows) {
                    alignas(VECTOR) T sums[TILE_ROWS * columns];
                    multiply(depth, packed + m * k, panel, sums);
                    for (int64_t r = 0; r < dt_least(tile_rows, last - m); r++)
                        put_row((T *)p->target + (m + r) * volume, p->axis[2].step,
                                pieces, apart, sums + r * columns,
                                bias ? bias[whole.group * p->rows + m + r] : (T)0,
                                block > 0);
                }
            }
        }
    }

    /* Few rows: the products of a tile would take less time than packing its panel. */
    static void run_few_rows(const dt_patches *p, const dt_patch_part &whole,
                             T *stage_room, int64_t *offsets)
    {
        const int64_t volume = dt_window_volume(p->target_size);
        const int64_t width = p->axis[2].count;
        const T *bias = (const T *)p->bias;
        Slide *const multiply =
            slide_of(p->rows, std::make_integer_sequence<int, TILE_ROWS>{});
        dt_patch_part part = whole;
        for (int64_t block = 0; block < p->blocks; block++) {
            take_block(p, part, block);
            const T *packed =
                (const T *)p->weight +
                (whole.group * p->channels + part.channel) * p->taps * p->rows;
            stage(p, part, stage_room);
            place_taps(p, part, offsets);
            for (int64_t line = 0; line < part.planes * part.rows; line += part.rows) {
                const T *from = stage_room + start_of(p, part, line);
                T *target = (T *)p->target + place_of(p, part, line * width);
                const int64_t end = span_of(p, part);
                for (int64_t n = 0; n < end; n += columns) {
                    alignas(VECTOR) T sums[TILE_ROWS * columns];
                    multiply(part.channels * p->taps, packed, from + n, offsets, sums);
                    for_runs(p, n, dt_least(columns, end - n),
                             [&](int64_t i, int64_t some, int64_t element) {
                                 T *out = target + element;
                                 for (int64_t r = 0; r < p->rows; r++, out += volume)
                                     put(out, p->axis[2].step, sums + r * columns + i,
                                         some,
                                         bias ? bias[whole.group * p->rows + r] : (T)0,
                                         block > 0);
                             });
                }
            }
        }
    }

    static void run(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t taps = p->block * p->taps, staged = stage_numel(p),
                      packed = p->slides ? 0 : (taps + 1) * columns;
        Room room(&p->failed,
                  (packed + staged) * (int64_t)sizeof(T) +
                      taps * (int64_t)sizeof(int64_t),
                  3);
        if (!room.data)
            return;
        T *panel = room.take<T>(packed), *stage_room = room.take<T>(staged);
        int64_t *offsets = room.take<int64_t>(taps);
        for (int64_t item = begin; item < end; item++) {
            int64_t rest = item / p->row_parts,
                    first = item % p->row_parts * p->row_part;
            dt_patch_part part = part_of(p, rest / p->places, rest % p->places);
            if (p->slides)
                run_few_rows(p, part, stage_room, offsets);
            else
                run_item(p, part, first, dt_least(first + p->row_part, p->rows),
                         stage_room, panel, offsets);
        }
    }
};

} // namespace

#endif
