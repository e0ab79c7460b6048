/* Transforms of Winograd's convolution: winograd.h. */
#include "cpu/kernels/winograd.h"

#include <stdlib.h>
#include <string.h>

#include "cpu/kernels/kernels.h"

namespace {

/* Channels of weights that are transformed in one go. */
#define LANES 64

/* G g G^T of each row and channel. */
void weights(void *context, int64_t begin, int64_t end)
{
    dt_winograd *w = (dt_winograd *)context;
    const dt_patches *p = w->p;
    const int64_t plane = p->rows * w->depth;
    float g[9][LANES], half[4][3][LANES];
    for (int64_t row = begin; row < end; row++)
        for (int64_t first = 0; first < p->channels; first += LANES) {
            const int64_t left = p->channels - first, n = left < LANES ? left : LANES;
            const float *from = (const float *)p->weight + row * p->weight_row +
                                first * p->weight_channel;
            for (int tap = 0; tap < 9; tap++) {
                const int at = w->turned ? 8 - tap : tap;
                const float *element =
                    from + at / 3 * p->weight_tap[1] + at % 3 * p->weight_tap[2];
                for (int64_t c = 0; c < n; c++)
                    g[tap][c] = element[c * p->weight_channel];
            }
            for (int x = 0; x < 3; x++)
                for (int64_t c = 0; c < n; c++) {
                    const float a = g[x][c], b = g[3 + x][c], d = g[6 + x][c];
                    half[0][x][c] = a;
                    half[1][x][c] = 0.5F * (a + b + d);
                    half[2][x][c] = 0.5F * (a - b + d);
                    half[3][x][c] = d;
                }
            float *to = w->weights + row * w->depth + first;
            for (int y = 0; y < 4; y++, to += 4 * plane)
                for (int64_t c = 0; c < n; c++) {
                    const float a = half[y][0][c], b = half[y][1][c], d = half[y][2][c];
                    to[c] = a;
                    to[plane + c] = 0.5F * (a + b + d);
                    to[2 * plane + c] = 0.5F * (a - b + d);
                    to[3 * plane + c] = d;
                }
        }
}

/* Room for 16 planes of one channel's tiles, or NULL. */
float *planes_of(dt_winograd *w, int64_t more)
{
    void *room;
    const int64_t numel = DT_WINOGRAD_PLANES * w->columns + more;
    if (!posix_memalign(&room, 64, (size_t)numel * sizeof(float)))
        return (float *)room;
    __atomic_store_n(&w->failed, 1, __ATOMIC_RELAXED);
    return nullptr;
}

/* Copies a plane of the source with its padding: each row's even and then its odd columns,
 * across + 1 of each. */
void unfold(const dt_winograd *w, const float *plane, float *out)
{
    const dt_patch_axis *y = &w->p->axis[1], *x = &w->p->axis[2];
    const int64_t width = w->across + 1;
    memset(out, 0, (size_t)((2 * w->down + 2) * 2 * width) * sizeof *out);
    for (int64_t row = 0; row < 2 * w->down + 2; row++, out += 2 * width) {
        const int64_t at = w->offset[0] + row;
        for (int odd = 0; odd < 2 && at >= 0 && at < y->size; odd++) {
            const int64_t first = w->offset[1] + odd;
            const float *from = plane + at * x->size + first;
            const int64_t begin = first < 0 ? (1 - first) / 2 : 0;
            const int64_t left = (x->size - first + 1) / 2,
                          end = left < width ? left : width;
            for (int64_t i = begin; i < end; i++)
                out[odd * width + i] = from[2 * i];
        }
    }
}

/* The 4 x 4 elements of each tile of an image, each in a plane. */
void lay_tiles(const dt_winograd *w, const float *unfolded, float *out)
{
    const int64_t n = w->across, width = n + 1;
    for (int64_t t = 0; t < w->down; t++)
        for (int r = 0; r < 4; r++) {
            const float *even = unfolded + (2 * t + r) * 2 * width, *odd = even + width;
            float *to = out + 4 * r * w->columns + t * n;
            for (int64_t i = 0; i < n; i++) {
                to[i] = even[i];
                to[w->columns + i] = odd[i];
                to[2 * w->columns + i] = even[i + 1];
                to[3 * w->columns + i] = odd[i + 1];
            }
        }
}

/* B^T d of n columns of 4 elements, which lie `from` and `to` apart. */
void transform(int64_t n, const float *d, int64_t from, float *out, int64_t to)
{
    const float *a = d, *b = d + from, *c = d + 2 * from, *e = d + 3 * from;
    for (int64_t i = 0; i < n; i++) {
        const float first = a[i] - c[i], second = b[i] + c[i], third = c[i] - b[i],
                    fourth = b[i] - e[i];
        out[i] = first;
        out[to + i] = second;
        out[2 * to + i] = third;
        out[3 * to + i] = fourth;
    }
}

void source(void *context, int64_t begin, int64_t end)
{
    dt_winograd *w = (dt_winograd *)context;
    const dt_patches *p = w->p;
    const int64_t n = w->columns, size = p->axis[1].size * p->axis[2].size;
    float *d = planes_of(w, (2 * w->down + 2) * 2 * (w->across + 1));
    for (int64_t channel = begin; channel < end && d; channel++) {
        const float *from = (const float *)p->source + channel * size;
        for (int64_t i = 0; i < w->images; i++) {
            unfold(w, from + (w->first + i) * p->channels * size,
                   d + DT_WINOGRAD_PLANES * n);
            lay_tiles(w, d + DT_WINOGRAD_PLANES * n, d + i * w->tiles);
        }
        for (int x = 0; x < 4; x++)
            transform(n, d + x * n, 4 * n, d + x * n, 4 * n);
        for (int y = 0; y < 4; y++)
            transform(n, d + 4 * y * n, n,
                      w->source + (4 * y * p->channels + channel) * w->pitch,
                      p->channels * w->pitch);
    }
    free(d);
}

/* A^T m of n columns. */
void transform_back(int64_t n, const float *m, int64_t from, float bias, float *out,
                    int64_t to)
{
    const float *a = m, *b = m + from, *c = m + 2 * from, *e = m + 3 * from;
    for (int64_t i = 0; i < n; i++) {
        const float first = a[i] + b[i] + c[i] + bias,
                    second = b[i] - c[i] - e[i] + bias;
        out[i] = first;
        out[to + i] = second;
    }
}

/* Puts the 2 x 2 elements of each tile of an image to their places. */
void place_tiles(const dt_winograd *w, const float *y, float *out)
{
    const int64_t height = w->p->axis[1].count, width = w->p->axis[2].count;
    for (int64_t row = 0; row < height; row++) {
        const float *even = y + row % 2 * 2 * w->columns + row / 2 * w->across,
                    *odd = even + w->columns;
        for (int64_t i = 0; i < width; i++)
            out[row * width + i] = (i % 2 ? odd : even)[i / 2];
    }
}

void target(void *context, int64_t begin, int64_t end)
{
    dt_winograd *w = (dt_winograd *)context;
    const dt_patches *p = w->p;
    const int64_t n = w->columns, size = p->axis[1].count * p->axis[2].count;
    float *s = planes_of(w, 0);
    for (int64_t row = begin; row < end && s; row++) {
        const float bias = p->bias ? ((const float *)p->bias)[row] : 0;
        const float *m = w->target + row * w->pitch;
        const int64_t plane = p->rows * w->pitch;
        float *y = s + 8 * n, *to = (float *)p->target + row * size;
        for (int x = 0; x < 4; x++)
            transform_back(n, m + x * plane, 4 * plane, 0, s + x * n, 4 * n);
        for (int r = 0; r < 2; r++)
            transform_back(n, s + 4 * r * n, n, bias, y + 2 * r * n, n);
        for (int64_t i = 0; i < w->images; i++)
            place_tiles(w, y + i * w->tiles, to + (w->first + i) * p->rows * size);
    }
    free(s);
}

} // namespace

const dt_winograd_kernels DT_ISA_NAME(dt_winograd) = {weights, source, target};
