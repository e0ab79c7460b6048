/* Products with patches: convolution.h. */
#include <stdlib.h>
#include <utility>

#include "cpu/kernels/gemm_tile.h"

/* Positions whose patches are packed in one go for the gradient of a weight. */
#define CHUNK       256
#define CHUNK_PITCH (CHUNK + 64)

namespace {

/* Memory of one call of a task. */
struct Room {
    void *data;
    explicit Room(int64_t bytes)
    {
        if (bytes < 0 || posix_memalign(&data, 64, (size_t)bytes + 64))
            data = nullptr;
    }
    Room(const Room &) = delete;
    ~Room() { free(data); }
};

template <typename T>
struct Patches {
    static constexpr int64_t columns = Tile<T>::columns;
    static constexpr int64_t lanes = VECTOR / (int64_t)sizeof(T);

    /* A tile from patches that lie in the stage as they are: out = a @ b for `rows` rows
     * of a, where row p of b is the stage from offsets[p] on. */
    template <int rows>
    static void slide(int64_t k, const T *a, const T *stage, const int64_t *offsets,
                      T *out)
    {
        typedef T V __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));
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

    typedef typename Tile<T>::Multiply Multiply;

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
                for (int64_t i = 0; i < end - begin; i++)
                    out[begin + i] = from[i];
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
        for (int64_t c = 0; c < part.channels; c++)
            for (int64_t q = part.plane; q < part.plane + part.planes; q++)
                for (int64_t j = 0; j < z.taps; j++) {
                    int64_t depth = q % z.count * z.move + z.offset + j * z.offset_step;
                    int64_t image = q / z.count * p->groups * p->channels +
                                    part.group * p->channels + part.channel + c;
                    const T *from =
                        (const T *)p->source + (image * z.size + depth) * plane;
                    bool inside = depth >= 0 && depth < z.size;
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
    /* Copies of W elements, which may write beyond the run: what comes next overwrites
     * it. */
    template <int64_t W>
    static DT_INLINE void copy(T *out, const T *from)
    {
        memcpy(out, from, W * sizeof(T));
    }
    template <int64_t W>
    static DT_INLINE void pack_pieces(int64_t k, const int64_t *offsets, const T *stage,
                                      const Run *pieces, int64_t count, T *out)
    {
        for (int64_t i = 0; i < k; i++, out += columns)
            for (int64_t r = 0; r < count; r++)
                copy<W>(out + pieces[r].column, stage + pieces[r].from + offsets[i]);
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
    static int64_t stage_bytes(const dt_patches *p)
    {
        return (p->block * p->planes * p->plane_length + 2 * columns) *
               (int64_t)sizeof(T);
    }

    /* --- items --- */

    /* The part of a place, all channels of its group. */
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

    /* --- the product --- */

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

    /* Columns of a tile that lie `step` apart in the target: n from `column` on. */
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
        Multiply *const multiply =
            Tile<T>::template multiply_of<TILE_VECTORS, 0>(tile_rows);
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

    static int64_t panel_bytes(const dt_patches *p)
    {
        return (p->block * p->taps + 1) * columns * (int64_t)sizeof(T);
    }

    static void product(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t bytes = stage_bytes(p),
                      panel = p->slides ? 0 : (panel_bytes(p) + 63) / 64 * 64;
        Room room(panel + bytes + p->block * p->taps * (int64_t)sizeof(int64_t));
        if (!room.data) {
            __atomic_store_n(&p->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        char *at = (char *)room.data;
        const int64_t stage_at = panel + p->block * p->taps * (int64_t)sizeof(int64_t);
        for (int64_t item = begin; item < end; item++) {
            int64_t rest = item / p->row_parts,
                    first = item % p->row_parts * p->row_part;
            dt_patch_part part = part_of(p, rest / p->places, rest % p->places);
            T *stage_room = (T *)(at + stage_at);
            int64_t *offsets = (int64_t *)(at + panel);
            if (p->slides)
                run_few_rows(p, part, stage_room, offsets);
            else
                run_item(p, part, first, dt_least(first + p->row_part, p->rows),
                         stage_room, (T *)at, offsets);
        }
    }

    /* --- one channel for each group --- */

    static void depthwise_part(const dt_patches *p, const dt_patch_part &part,
                               const T *stage, const int64_t *offsets, const T *weight)
    {
        typedef T Lanes
            __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));
        const int64_t width = p->axis[2].count;
        const T start = p->bias ? ((const T *)p->bias)[part.group] : (T)0;
        /* A plane in one go, or line by line. */
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
    static void depthwise(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t bytes = stage_bytes(p) + 4 * VECTOR;
        const int64_t taps = p->taps * (int64_t)sizeof(int64_t);
        Room room(bytes + 2 * taps);
        if (!room.data) {
            __atomic_store_n(&p->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        int64_t *offsets = (int64_t *)room.data;
        T *weight = (T *)(offsets + p->taps),
          *stage_room = (T *)((char *)room.data + 2 * taps);
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
            depthwise_part(p, part, stage_room, offsets, weight);
        }
    }

    /* --- the gradient of a weight --- */

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
                    copy<lanes>(out + s, from + (s - begin));
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

    static void weight_place(const dt_patches *p, dt_patch_part &part, T *stage_room,
                             const int64_t *offsets, T *rows, T *panel, T *sums)
    {
        const int64_t positions = part.planes * part.rows * p->axis[2].count;
        const int64_t depth = part.channels * p->taps, width = filled_rows(p);
        const int64_t tile_rows = p->tile_rows, tile_columns = p->tile_columns;
        Multiply *const multiply =
            tile_columns == lanes
                ? Tile<T>::template multiply_of<1, CHUNK_PITCH>(tile_rows)
                : Tile<T>::template multiply_of<TILE_VECTORS, CHUNK_PITCH>(tile_rows);
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

    /* Adds to sums the products of `rows` rows of the target, which are `pitch` apart, and
     * of the stage from each of `taps` offsets on: n of each, lane by lane. */
    template <int rows, int taps>
    static void dot(int64_t n, const T *target, int64_t pitch, const T *stage,
                    const int64_t *offsets, T *sums)
    {
        typedef T V __attribute__((vector_size(VECTOR), aligned(sizeof(T)), may_alias));
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
    /* Copies lines of the target in the stage's pitch, with zeros between them. They meet
     * elements of the stage that do not count: an inf or nan there reaches all taps. */
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
    /* What is added up: [tile of rows][tile of patches][row][patch][lane]. */
    static void weight_of_few_rows(const dt_patches *p, const dt_patch_part &part,
                                   const T *stage_room, int64_t *offsets, T *target,
                                   T *sums)
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

    /* An item is a group, a block of channels and a range of places. */
    static void weight(void *patches, int64_t begin, int64_t end)
    {
        dt_patches *p = (dt_patches *)patches;
        const int64_t depth = filled_depth(p), width = filled_rows(p);
        const int64_t size = (int64_t)sizeof(T);
        /* Of packed patches and a panel of the target, or of the sums of lanes and some
         * rows of the target. */
        const int64_t panel =
            (p->slides ? p->tile_columns * target_pitch(p) : CHUNK * columns) * size;
        const int64_t rows =
            (p->slides ? depth * width * lanes : depth * CHUNK_PITCH + 2 * columns) *
            size;
        Room room(panel + rows + depth * (int64_t)sizeof(int64_t) + stage_bytes(p));
        if (!room.data) {
            __atomic_store_n(&p->failed, 1, __ATOMIC_RELAXED);
            return;
        }
        char *at = (char *)room.data;
        int64_t *offsets = (int64_t *)(at + panel + rows);
        T *row_room = (T *)(at + panel), *stage_room = (T *)(offsets + depth);
        if (!p->slides) /* Rows that fill up the last tile stay zeros. */
            memset(row_room, 0, (size_t)rows);
        for (int64_t item = begin; item < end; item++) {
            int64_t which = item / p->parts, range = item % p->parts;
            T *sums = (T *)p->sums + item * depth * width;
            if (p->slides)
                memset(row_room, 0, (size_t)rows);
            else
                zero(sums, depth * width);
            for (int64_t place = p->places * range / p->parts;
                 place < p->places * (range + 1) / p->parts; place++) {
                dt_patch_part part = part_of(p, which / p->blocks, place);
                take_block(p, part, which % p->blocks);
                stage(p, part, stage_room);
                place_taps(p, part, offsets);
                if (p->slides)
                    weight_of_few_rows(p, part, stage_room, offsets, (T *)at, row_room);
                else
                    weight_place(p, part, stage_room, offsets, row_room, (T *)at, sums);
            }
            if (p->slides)
                add_lanes(p, row_room, sums);
        }
    }
    /* Adds the sums of all ranges: an item is a group and a block. */
    static void weight_sum(void *patches, int64_t begin, int64_t end)
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

template <typename T>
constexpr dt_patch_kernels kernels_of = {TILE_ROWS,
                                         Patches<T>::lanes,
                                         Patches<T>::pack,
                                         Patches<T>::product,
                                         Patches<T>::depthwise,
                                         Patches<T>::weight,
                                         Patches<T>::weight_sum};

} // namespace

const dt_convolution_kernels DT_ISA_NAME(dt_convolution) = {kernels_of<float>,
                                                            kernels_of<double>};
