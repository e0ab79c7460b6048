/* Transforms and products of Winograd's convolution: winograd.h. */
#include "cpu/kernels/winograd.h"

#include "cpu/kernels/gemm_tile.h"
#include "cpu/kernels/task_memory.h"

#define PLANES DT_WINOGRAD_PLANES
/* Elements between the transformed channels of a chunk of the gradient: more than its
 * cells, and no multiple of a large power of two. */
#define PITCH (DT_WINOGRAD_CELLS + 16)

namespace {

typedef Tile<float> Product;
constexpr int64_t columns = Product::columns, lanes = columns / TILE_VECTORS;
typedef float Lanes
    __attribute__((vector_size(VECTOR), aligned(sizeof(float)), may_alias));

DT_INLINE int64_t fill(int64_t n, int64_t tile)
{
    return (n + tile - 1) / tile * tile;
}
DT_INLINE Lanes load(const float *at)
{
    return *(const Lanes *)at;
}
DT_INLINE void store(float *at, Lanes x)
{
    *(Lanes *)at = x;
}

/* --- weights --- */

/* Channels of a tile that one call transforms, and their weights. */
#define CHANNELS 32
#define WEIGHTS  (CHANNELS * TILE_ROWS)

/* G g G^T of n kernels: g[tap][kernel] to out[plane][kernel]. */
void transform_weights(int64_t n, const float (*g)[WEIGHTS], bool turned, float *out,
                       int64_t plane)
{
    float half[4][3][WEIGHTS];
    for (int x = 0; x < 3; x++) {
        const float *top = g[turned ? 8 - x : x], *middle = g[turned ? 5 - x : 3 + x],
                    *bottom = g[turned ? 2 - x : 6 + x];
        for (int64_t i = 0; i < n; i++) {
            const float a = top[i], b = middle[i], d = bottom[i];
            half[0][x][i] = a;
            half[1][x][i] = 0.5F * (a + b + d);
            half[2][x][i] = 0.5F * (a - b + d);
            half[3][x][i] = d;
        }
    }
    for (int y = 0; y < 4; y++, out += 4 * plane) {
        float *to[4] = {out, out + plane, out + 2 * plane, out + 3 * plane};
        DT_VECTOR_LOOP
        for (int64_t i = 0; i < n; i++) {
            const float a = half[y][0][i], b = half[y][1][i], d = half[y][2][i];
            to[0][i] = a;
            to[1][i] = 0.5F * (a + b + d);
            to[2][i] = 0.5F * (a - b + d);
            to[3][i] = d;
        }
    }
}

void weights(void *context, int64_t begin, int64_t end)
{
    const dt_winograd *w = (const dt_winograd *)context;
    const dt_patches *p = w->p;
    const int64_t channels = p->channels, rows = w->tile_rows;
    const int64_t plane = channels * rows;
    float kernels[WEIGHTS][9], g[9][WEIGHTS];
    for (int64_t tile = begin; tile < end; tile++)
        for (int64_t first = 0; first < channels; first += CHANNELS) {
            const int64_t n = dt_least(CHANNELS, channels - first);
            for (int64_t i = 0; i < n * rows; i++) {
                /* Rows that fill up the last tile are computed, and never looked at. */
                const int64_t row = dt_least(tile * rows + i % rows, p->rows - 1);
                memcpy(kernels[i],
                       (const float *)p->weight + row * p->weight_row +
                           (first + i / rows) * p->weight_channel,
                       sizeof kernels[i]);
            }
            dt_cpu_kernels.copy->transpose[2](n * rows, 9, (char *)g, sizeof g[0],
                                              (const char *)kernels, sizeof kernels[0]);
            transform_weights(n * rows, g, w->turned,
                              w->weights + tile * PLANES * plane + first * rows, plane);
        }
}

/* --- the source --- */

/* Where transformed elements are: (plane, cell) at plane * `plane` + cell / width * panel +
 * cell % width. */
struct Layout {
    int64_t plane, width, panel;
};

/* A band of lines of one channel and image: elements of even and odd rows and columns
 * apart, each across + 1 wide, and their transforms of the same pitch. */
struct Band {
    int64_t width, pitch;
    float *elements, *transformed;
    static int64_t elements_pitch(const dt_winograd *w)
    {
        return fill((w->line_part + 1) * (w->across + 1), 16) + 2 * lanes;
    }
    static int64_t numel(const dt_winograd *w)
    {
        return (4 + PLANES) * elements_pitch(w);
    }
    Band(const dt_winograd *w, Room &room)
    {
        width = w->across + 1;
        pitch = elements_pitch(w);
        elements = room.take<float>(4 * pitch);
        transformed = room.take<float>(PLANES * pitch);
    }
};

/* A row of the source with its padding; from is NULL for one of zeros. */
void split_row(const dt_winograd *w, const float *from, float *even, float *odd)
{
    const int64_t width = w->across + 1, first = w->offset[1],
                  size = w->p->axis[2].size;
    /* Pairs begin to end-1 are in the source whole. */
    int64_t begin = first < 0 ? (1 - first) / 2 : 0;
    int64_t end = first < size ? dt_least((size - first) / 2, width) : 0;
    if (!from)
        begin = end = width;
    begin = dt_least(begin, width);
    if (end < begin)
        end = begin;
    for (int64_t i = 0; i < begin; i++)
        even[i] = odd[i] = 0;
    for (int64_t i = begin; i < end; i++) {
        even[i] = from[first + 2 * i];
        odd[i] = from[first + 2 * i + 1];
    }
    for (int64_t i = end; i < width; i++)
        even[i] = odd[i] = 0;
    if (!from)
        return;
    /* The pairs at both ends, of which one element is inside. */
    if (begin > 0 && first + 2 * begin - 1 >= 0 && first + 2 * begin - 1 < size)
        odd[begin - 1] = from[first + 2 * begin - 1];
    if (end < width && first + 2 * end >= 0 && first + 2 * end < size)
        even[end] = from[first + 2 * end];
}

/* B^T d B of all cells of a band. */
void transform_band(const Band &band, int64_t lines)
{
    const int64_t width = band.width;
    for (int64_t f = 0; f < lines * width; f += lanes) {
        Lanes y[4][4];
        for (int c = 0; c < 4; c++) {
            const float *even = band.elements + c % 2 * band.pitch + f + c / 2,
                        *odd = even + 2 * band.pitch;
            const Lanes a = load(even), b = load(odd), d = load(even + width),
                        e = load(odd + width);
            y[0][c] = a - d;
            y[1][c] = b + d;
            y[2][c] = d - b;
            y[3][c] = b - e;
        }
        for (int r = 0; r < 4; r++) {
            float *to = band.transformed + 4 * r * band.pitch + f;
            store(to, y[r][0] - y[r][2]);
            store(to + band.pitch, y[r][1] + y[r][2]);
            store(to + 2 * band.pitch, y[r][2] - y[r][1]);
            store(to + 3 * band.pitch, y[r][1] - y[r][3]);
        }
    }
}

/* Transforms one channel of lines `line` to line + n - 1. What is written past a run of
 * cells, up to `lanes` elements, the next one or the next channel overwrites. */
void transform_source(const dt_winograd *w, const Band &band, int64_t channel,
                      int64_t line, int64_t n, const Layout &to, float *out)
{
    const dt_patches *p = w->p;
    const dt_patch_axis &y = p->axis[1], &x = p->axis[2];
    for (int64_t done = 0, some; done < n; done += some) {
        const int64_t image = (line + done) / w->down, top = (line + done) % w->down;
        some = dt_least(n - done, w->down - top);
        const float *plane = (const float *)p->source +
                             (image * p->channels + channel) * y.size * x.size;
        for (int64_t r = 0; r < 2 * some + 2; r++) {
            const int64_t row = w->offset[0] + 2 * top + r;
            float *even = band.elements + r % 2 * 2 * band.pitch + r / 2 * band.width;
            split_row(w, row >= 0 && row < y.size ? plane + row * x.size : nullptr,
                      even, even + band.pitch);
        }
        transform_band(band, some);
        for (int64_t l = 0; l < some; l++) {
            const float *from = band.transformed + l * band.width;
            for (int64_t i = 0; i < w->across;) {
                const int64_t cell = (done + l) * w->across + i;
                const int64_t left =
                    dt_least(w->across - i, to.width - cell % to.width);
                float *put = out + cell / to.width * to.panel + cell % to.width;
                for (int64_t s = 0; s < left; s += lanes)
                    for (int q = 0; q < PLANES; q++)
                        store(put + q * to.plane + s,
                              load(from + q * band.pitch + i + s));
                i += left;
            }
        }
    }
}

/* --- the target --- */

/* A^T m A of `columns` cells, of elements (0, 0), (0, 1), (1, 0) and (1, 1). */
void transform_target(const float *m, int64_t plane, float bias, float *out)
{
    for (int64_t f = 0; f < columns; f += lanes) {
        Lanes s[2][4];
        for (int c = 0; c < 4; c++) {
            const float *at = m + c * plane + f;
            const Lanes a = load(at), b = load(at + 4 * plane),
                        d = load(at + 8 * plane), e = load(at + 12 * plane);
            s[0][c] = a + b + d;
            s[1][c] = b - d - e;
        }
        for (int r = 0; r < 2; r++) {
            store(out + 2 * r * columns + f, s[r][0] + s[r][1] + s[r][2] + bias);
            store(out + (2 * r + 1) * columns + f, s[r][1] - s[r][2] - s[r][3] + bias);
        }
    }
}

/* Elements of even columns and of odd ones, side by side again. */
void join_row(const float *even, const float *odd, int64_t n, float *out)
{
    for (int64_t i = 0; i < n / 2; i++) {
        out[2 * i] = even[i];
        out[2 * i + 1] = odd[i];
    }
    if (n % 2)
        out[n - 1] = even[n / 2];
}

/* Puts n cells of the lines from `line` on, from their cell `first` on, to their places in
 * a row. */
void place_cells(const dt_winograd *w, int64_t row, int64_t line, int64_t first,
                 int64_t n, const float *y)
{
    const dt_patches *p = w->p;
    const int64_t height = p->axis[1].count, width = p->axis[2].count;
    for (int64_t i = 0, some; i < n; i += some) {
        const int64_t at = line + (first + i) / w->across,
                      left = (first + i) % w->across;
        const int64_t top = at % w->down * 2;
        some = dt_least(n - i, w->across - left);
        float *out = (float *)p->target +
                     ((at / w->down * p->rows + row) * height + top) * width + 2 * left;
        const int64_t elements = dt_least(2 * some, width - 2 * left);
        join_row(y + i, y + columns + i, elements, out);
        if (top + 1 < height)
            join_row(y + 2 * columns + i, y + 3 * columns + i, elements, out + width);
    }
}

void product(void *context, int64_t begin, int64_t end)
{
    dt_winograd *w = (dt_winograd *)context;
    const dt_patches *p = w->p;
    const int64_t channels = p->channels, rows = w->tile_rows;
    const int64_t panels = (w->cells + columns - 1) / columns;
    const int64_t panel = channels * columns + lanes;
    const Layout layout = {panels * panel, columns, panel};
    const int64_t source_numel = PLANES * layout.plane + lanes;
    Room room(&w->failed,
              (Band::numel(w) + source_numel + PLANES * rows * columns + 4 * columns) *
                  (int64_t)sizeof(float),
              5);
    if (!room.data)
        return;
    const Band band(w, room);
    float *const source = room.take<float>(source_numel),
                 *const sums = room.take<float>(PLANES * rows * columns),
                 *const y = room.take<float>(4 * columns);
    auto *const multiply = Product::multiply_of<TILE_VECTORS, 1, 0>(rows);
    for (int64_t item = begin; item < end; item++) {
        const int64_t line = item / w->tile_parts * w->line_part,
                      n = dt_least(w->line_part, w->lines - line),
                      cells = n * w->across;
        for (int64_t c = 0; c < channels; c++)
            transform_source(w, band, c, line, n, layout, source + c * columns);
        const int64_t first = item % w->tile_parts * w->tile_part,
                      last = dt_least(first + w->tile_part, w->tiles);
        for (int64_t tile = first; tile < last; tile++)
            for (int64_t cell = 0; cell < cells; cell += columns) {
                for (int64_t q = 0; q < PLANES; q++)
                    multiply(channels,
                             w->weights + (tile * PLANES + q) * channels * rows,
                             source + q * layout.plane + cell / columns * layout.panel,
                             sums + q * rows * columns);
                for (int64_t r = 0; r < rows && tile * rows + r < p->rows; r++) {
                    const int64_t row = tile * rows + r;
                    transform_target(sums + r * columns, rows * columns,
                                     p->bias ? ((const float *)p->bias)[row] : 0, y);
                    place_cells(w, row, line, cell, dt_least(columns, cells - cell), y);
                }
            }
    }
}

/* --- the gradient of the weights --- */

/* A y A^T of the cells of lines `line` to line + n - 1, of up to `columns` rows side by
 * side: out[plane][cell][row]. `turned` is room for two rows of an image. */
void transform_gradient(const dt_winograd *w, int64_t first, int64_t line, int64_t n,
                        float *turned, float *out)
{
    const dt_patches *p = w->p;
    const int64_t height = p->axis[1].count, width = p->axis[2].count;
    const int64_t rows = dt_least(columns, p->rows - first), plane = w->cells * columns;
    for (int64_t l = line; l < line + n; l++) {
        const int64_t top = l % w->down * 2, both = top + 1 < height ? 2 : 1;
        const float *from = (const float *)p->target +
                            ((l / w->down * p->rows + first) * height + top) * width;
        for (int64_t i = 0; rows < columns && i < both * width * columns; i++)
            turned[i] = 0;
        dt_cpu_kernels.copy->transpose[2](
            rows, both * width, (char *)turned, columns * (int64_t)sizeof(float),
            (const char *)from, height * width * (int64_t)sizeof(float));
        for (int64_t i = 0; i < w->across; i++, out += columns)
            for (int64_t f = 0; f < columns; f += lanes) {
                const float *at = turned + 2 * i * columns + f,
                            *below = at + width * columns;
                const bool right = 2 * i + 1 < width;
                const Lanes zero = Lanes{}, a = load(at),
                            b = right ? load(at + columns) : zero,
                            c = both == 2 ? load(below) : zero,
                            d = both == 2 && right ? load(below + columns) : zero;
                const Lanes half[4][2] = {
                    {a, b}, {a + c, b + d}, {a - c, b - d}, {-c, -d}};
                float *to = out + f;
                for (int r = 0; r < 4; r++, to += 4 * plane) {
                    store(to, half[r][0]);
                    store(to + plane, half[r][0] + half[r][1]);
                    store(to + 2 * plane, half[r][0] - half[r][1]);
                    store(to + 3 * plane, -half[r][1]);
                }
            }
    }
}

/* Adds the products of a chunk of n cells: sums[plane][channel][row] for `columns` rows. */
void add_products(const dt_winograd *w, int64_t n, const float *source,
                  const float *gradient, float *sums)
{
    const int64_t rows = w->tile_rows;
    auto *const multiply = Product::multiply_of<TILE_VECTORS, PITCH, 1>(rows);
    alignas(VECTOR) float tile[TILE_ROWS * columns];
    for (int64_t q = 0; q < PLANES; q++)
        for (int64_t c = 0; c < w->filled; c += rows) {
            multiply(n, source + (q * w->filled + c) * PITCH,
                     gradient + q * w->cells * columns, tile);
            float *out = sums + (q * w->filled + c) * w->width;
            for (int64_t r = 0; r < rows; r++, out += w->width)
                for (int64_t f = 0; f < columns; f += lanes)
                    store(out + f, load(out + f) + load(tile + r * columns + f));
        }
}

void gradient(void *context, int64_t begin, int64_t end)
{
    dt_winograd *w = (dt_winograd *)context;
    const dt_patches *p = w->p;
    const Layout layout = {w->filled * PITCH, PITCH, 0};
    const int64_t source_numel = PLANES * layout.plane + lanes,
                  gradient_numel = PLANES * w->cells * columns,
                  turned_numel = 2 * p->axis[2].count * columns;
    const int64_t sums_numel = PLANES * w->filled * w->width;
    Room room(&w->failed,
              (Band::numel(w) + source_numel + gradient_numel + turned_numel) *
                  (int64_t)sizeof(float),
              5);
    if (!room.data)
        return;
    const Band band(w, room);
    float *const source = room.take<float>(source_numel),
                 *const transformed = room.take<float>(gradient_numel),
                 *const turned = room.take<float>(turned_numel);
    memset(source, 0, (size_t)source_numel * sizeof(float));
    for (int64_t item = begin; item < end; item++) {
        float *sums = w->sums + item * sums_numel;
        memset(sums, 0, (size_t)sums_numel * sizeof(float));
        const int64_t first = item / w->parts * w->block,
                      block = dt_least(w->block, p->channels - first);
        const int64_t from = item % w->parts * w->line_range,
                      to = dt_least(from + w->line_range, w->lines);
        for (int64_t line = from; line < to; line += w->line_part) {
            const int64_t n = dt_least(w->line_part, to - line);
            for (int64_t c = 0; c < block; c++)
                transform_source(w, band, first + c, line, n, layout,
                                 source + c * PITCH);
            for (int64_t m = 0; m < p->rows; m += columns) {
                transform_gradient(w, m, line, n, turned, transformed);
                add_products(w, n * w->across, source, transformed, sums + m);
            }
        }
    }
}

/* G^T s G of the sums of all parts. */
void gradient_sum(void *context, int64_t begin, int64_t end)
{
    const dt_winograd *w = (const dt_winograd *)context;
    const dt_patches *p = w->p;
    const int64_t plane = w->filled * w->width;
    for (int64_t channel = begin; channel < end; channel++)
        for (int64_t m = 0; m < p->rows; m += lanes) {
            const float *at = w->sums +
                              (channel / w->block * w->parts * PLANES * w->filled +
                               channel % w->block) *
                                  w->width +
                              m;
            Lanes s[4][4], half[3][4];
            for (int q = 0; q < PLANES; q++) {
                Lanes sum = load(at + q * plane);
                for (int64_t part = 1; part < w->parts; part++)
                    sum += load(at + (part * PLANES + q) * plane);
                s[q / 4][q % 4] = sum;
            }
            for (int c = 0; c < 4; c++) {
                const Lanes sum = 0.5F * (s[1][c] + s[2][c]);
                half[0][c] = s[0][c] + sum;
                half[1][c] = 0.5F * (s[1][c] - s[2][c]);
                half[2][c] = sum + s[3][c];
            }
            float *out = (float *)(uintptr_t)p->weight + channel * p->weight_channel +
                         m * p->weight_row;
            for (int r = 0; r < 3; r++) {
                const Lanes sum = 0.5F * (half[r][1] + half[r][2]);
                const Lanes taps[3] = {half[r][0] + sum,
                                       0.5F * (half[r][1] - half[r][2]),
                                       sum + half[r][3]};
                for (int c = 0; c < 3; c++)
                    for (int64_t i = 0; i < dt_least(lanes, p->rows - m); i++)
                        out[i * p->weight_row + r * p->weight_tap[1] +
                            c * p->weight_tap[2]] = taps[c][i];
            }
        }
}

} // namespace

const dt_winograd_kernels DT_ISA_NAME(dt_winograd) = {
    TILE_ROWS, columns, weights, product, gradient, gradient_sum};
