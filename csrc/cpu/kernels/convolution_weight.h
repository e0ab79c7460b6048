/* The gradient of a convolution's weight: convolution.h. */
#ifndef DT_CPU_KERNELS_CONVOLUTION_WEIGHT_H
#define DT_CPU_KERNELS_CONVOLUTION_WEIGHT_H

#include "cpu/kernels/convolution_stage.h"
#include "cpu/kernels/task_memory.h"

/* Positions whose patches one call packs. */
#define CHUNK       256
#define CHUNK_PITCH (CHUNK + 64)

namespace {

template <typename T>
struct WeightGradient : Stage<T> {
    typedef Stage<T> Base;
    using Base::columns;
    using Base::find_runs;
    using Base::lanes;
    using Base::part_of;
    using Base::place_of;
    using Base::place_taps;
    using Base::span_of;
    using Base::stage;
    using Base::stage_numel;
    using Base::start_of;
    using Base::take_block;
    using Base::zero;
    using typename Base::Lanes;
    using typename Base::Run;

    static int64_t filled_rows(const dt_patches *p)
    {
        return (p->rows + p->tile_columns - 1) / p->tile_columns * p->tile_columns;
    }
    /* Patches of a block, filled up to whole tiles. */
    static int64_t filled_depth(const dt_patches *p)
    {
        return (p->block * p->taps + p->tile_rows - 1) / p->tile_rows * p->tile_rows;
    }

    /* Rows of patches: out[k * CHUNK_PITCH + position]. */
    static void pack_rows(int64_t k, const int64_t *offsets, const T *stage,
                          const Run *runs, int64_t count, int64_t n, T *out)
    {
        for (int64_t i = 0; i < k; i++, out += CHUNK_PITCH)
            for (int64_t r = 0; r < count; r++) {
                const T *from = stage + runs[r].from + offsets[i];
                int64_t begin = runs[r].column,
                        end = r + 1 < count ? runs[r + 1].column : n;
                for (int64_t s = begin; s < end; s += lanes)
                    copy_vector<lanes>(out + s, from + (s - begin));
            }
    }
    /* Up to tile_columns channels of the target, position after position. */
    static void pack_target(const dt_patches *p, const dt_patch_part &part,
                            int64_t begin, int64_t n, int64_t row, T *out)
    {
        const int64_t plane = part.rows * p->axis[2].count;
        const int64_t volume = dt_window_volume(p->target_size);
        const int64_t width = p->tile_columns, rows = dt_least(width, p->rows - row);
        const int log = sizeof(T) == 4 ? 2 : 3;
        if (rows < width)
            zero(out, n * width);
        for (int64_t i = 0; i < n;) {
            int64_t some = dt_least(n - i, plane - (begin + i) % plane);
            const T *from =
                (const T *)p->target + place_of(p, part, begin + i) + row * volume;
            dt_cpu_kernels.copy->transpose[log](
                rows, some, (char *)(out + i * width), width * (int64_t)sizeof(T),
                (const char *)from, volume * (int64_t)sizeof(T));
            i += some;
        }
    }

    static void run_place(const dt_patches *p, dt_patch_part &part, T *stage_room,
                          const int64_t *offsets, T *rows, T *panel, T *sums)
    {
        const int64_t positions = part.planes * part.rows * p->axis[2].count;
        const int64_t depth = part.channels * p->taps, width = filled_rows(p);
        const int64_t tile_rows = p->tile_rows, tile_columns = p->tile_columns;
        typename Tile<T>::Multiply *const multiply =
            tile_columns == lanes
                ? Tile<T>::template multiply_of<1, CHUNK_PITCH, 1>(tile_rows)
                : Tile<T>::template multiply_of<TILE_VECTORS, CHUNK_PITCH, 1>(
                      tile_rows);
        Run runs[CHUNK + 1];
        for (int64_t begin = 0; begin < positions; begin += CHUNK) {
            int64_t n = dt_least(CHUNK, positions - begin);
            int64_t found = find_runs(p, part, begin, begin + n, runs);
            pack_rows(depth, offsets, stage_room, runs, found, n, rows);
            for (int64_t m = 0; m < p->rows; m += tile_columns) {
                pack_target(p, part, begin, n, m, panel);
                for (int64_t k = 0; k < depth; k += tile_rows) {
                    alignas(VECTOR) T tile[TILE_ROWS * columns];
                    multiply(n, rows + k * CHUNK_PITCH, panel, tile);
                    for (int64_t r = 0; r < tile_rows; r++) {
                        T *out = sums + (k + r) * width + m;
                        for (int64_t i = 0; i < tile_columns; i++)
                            out[i] += tile[r * tile_columns + i];
                    }
                }
            }
        }
    }

    /* --- the gradient of a weight, of few rows --- */

    /* Adds to sums the products of `rows` rows of the target, which are `pitch` apart,
     * and of the stage from each of `taps` offsets on: n of each, lane by lane. */
    template <int rows, int taps>
    static void dot(int64_t n, const T *target, int64_t pitch, const T *stage,
                    const int64_t *offsets, T *sums)
    {
        typedef Lanes V;
        V all[rows][taps];
        Tile<T>::template for_each<rows, taps>(
            [&](int r, int k) { all[r][k] = ((const V *)sums)[r * taps + k]; });
        for (int64_t i = 0; i < n; i += lanes)
            Tile<T>::template for_each<rows, taps>([&](int r, int k) {
                all[r][k] += *(const V *)(target + r * pitch + i) *
                             *(const V *)(stage + offsets[k] + i);
            });
        Tile<T>::template for_each<rows, taps>(
            [&](int r, int k) { ((V *)sums)[r * taps + k] = all[r][k]; });
    }
    typedef void Dot(int64_t n, const T *target, int64_t pitch, const T *stage,
                     const int64_t *offsets, T *sums);
    template <int rows, int... i>
    static Dot *choose_dot(int64_t taps, std::integer_sequence<int, i...>)
    {
        static constexpr Dot *all[] = {dot<rows, i + 1>...};
        return all[taps - 1];
    }
    static Dot *dot_of(int64_t rows, int64_t taps)
    {
        return rows == 1
                   ? choose_dot<1>(taps, std::make_integer_sequence<int, TILE_ROWS>{})
                   : choose_dot<DT_FEW_ROWS>(
                         taps, std::make_integer_sequence<int, TILE_ROWS / 2>{});
    }
    static int64_t target_pitch(const dt_patches *p)
    {
        return (p->band * p->row_length + lanes - 1) / lanes * lanes;
    }
    /* Copies lines of the target in the stage's pitch, with zeros between them. They
     * meet elements of the stage that do not count: an inf or nan there reaches all
     * taps. */
    static void stage_target(const dt_patches *p, const dt_patch_part &part,
                             int64_t row, int64_t line, T *out)
    {
        const int64_t width = p->axis[2].count, pitch = target_pitch(p);
        if (row >= p->rows) {
            zero(out, pitch);
            return;
        }
        const T *from = (const T *)p->target + place_of(p, part, line * width) +
                        row * dt_window_volume(p->target_size);
        for (int64_t i = 0; i < part.rows; i++, from += width) {
            T *to = out + i * p->row_length;
            for (int64_t c = 0; c < width; c++)
                to[c] = from[c];
            zero(to + width, p->row_length - width);
        }
        zero(out + part.rows * p->row_length, pitch - part.rows * p->row_length);
    }
    /* The sums: [tile of rows][tile of patches][row][patch][lane]. */
    static void run_few_rows(const dt_patches *p, const dt_patch_part &part,
                             const T *stage_room, int64_t *offsets, T *target, T *sums)
    {
        const int64_t pitch = target_pitch(p), end = span_of(p, part);
        const int64_t rows = p->tile_columns, taps = p->tile_rows;
        Dot *const multiply = dot_of(rows, taps);
        for (int64_t k = part.channels * p->taps; k < filled_depth(p); k++)
            offsets[k] = 0;
        for (int64_t line = 0; line < part.planes * part.rows; line += part.rows) {
            const T *from = stage_room + start_of(p, part, line);
            for (int64_t m = 0; m < p->rows; m += rows) {
                for (int64_t r = 0; r < rows; r++)
                    stage_target(p, part, m + r, line, target + r * pitch);
                for (int64_t k = 0; k < filled_depth(p); k += taps)
                    multiply(end, target, pitch, from, offsets + k,
                             sums + (m * filled_depth(p) + k * rows) * lanes);
            }
        }
    }
    /* Adds the lanes up: out[patch][row]. */
    static void add_lanes(const dt_patches *p, const T *sums, T *out)
    {
        const int64_t width = filled_rows(p), rows = p->tile_columns,
                      taps = p->tile_rows;
        for (int64_t m = 0; m < width; m += rows)
            for (int64_t k = 0; k < filled_depth(p); k += taps)
                for (int64_t r = 0; r < rows; r++)
                    for (int64_t i = 0; i < taps; i++) {
                        T sum = 0;
                        for (int64_t l = 0; l < lanes; l++)
                            sum += *sums++;
                        out[(k + i) * width + m + r] = sum;
                    }
    }

    /* An item is a group, a block of channels and a range of positions. */
    static void run(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t depth = filled_depth(p), width = filled_rows(p);
        /* Bytes of packed patches and a panel of the target, or of the sums of lanes
         * and some rows of the target. */
        const int64_t rows = p->slides ? depth * width * lanes
                                       : depth * CHUNK_PITCH + 2 * columns,
                      panel = p->slides ? p->tile_columns * target_pitch(p)
                                        : CHUNK * columns,
                      staged = stage_numel(p);
        Room room(&p->failed,
                  (rows + panel + staged) * (int64_t)sizeof(T) +
                      depth * (int64_t)sizeof(int64_t),
                  4);
        if (!room.data)
            return;
        T *row_room = room.take<T>(rows), *panel_room = room.take<T>(panel),
          *stage_room = room.take<T>(staged);
        int64_t *offsets = room.take<int64_t>(depth);
        if (!p->slides)
            zero(row_room, rows); /* what fills up the last tile stays so */
        for (int64_t item = begin; item < end; item++) {
            int64_t which = item / p->parts, range = item % p->parts;
            T *sums = (T *)p->sums + item * depth * width;
            if (p->slides)
                zero(row_room, rows);
            else
                zero(sums, depth * width);
            for (int64_t place = p->places * range / p->parts;
                 place < p->places * (range + 1) / p->parts; place++) {
                dt_patch_part part = part_of(p, which / p->blocks, place);
                take_block(p, part, which % p->blocks);
                stage(p, part, stage_room);
                place_taps(p, part, offsets);
                if (p->slides)
                    run_few_rows(p, part, stage_room, offsets, panel_room, row_room);
                else
                    run_place(p, part, stage_room, offsets, row_room, panel_room, sums);
            }
            if (p->slides)
                add_lanes(p, row_room, sums);
        }
    }
    /* Adds the sums of all ranges: an item is a group and a block. */
    static void add_ranges(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t width = filled_rows(p), depth = filled_depth(p);
        for (int64_t which = begin; which < end; which++) {
            dt_patch_part part;
            take_block(p, part, which % p->blocks);
            T *out = (T *)(uintptr_t)p->weight + which / p->blocks * p->weight_group +
                     part.channel * p->taps;
            const T *sums = (const T *)p->sums + which * p->parts * depth * width;
            for (int64_t m = 0; m < p->rows; m++, out += p->weight_row)
                for (int64_t k = 0; k < part.channels * p->taps; k++) {
                    T sum = 0;
                    for (int64_t i = 0; i < p->parts; i++)
                        sum += sums[(i * depth + k) * width + m];
                    out[k] = sum;
                }
        }
    }
};

} // namespace

#endif
