/* Depthwise convolutions: a channel's taps are too few for a product of matrices. A thread
 * computes some elements of y or of x, one below the other, which share taps; a block
 * adds up a piece of a channel's taps over some of the windows. */
#include "cuda/kernels/depthwise.h"

#include <algorithm>

#include "cuda/kernels/compute.h"
#include "cuda/kernels/warp.h"
#include "cuda/kernels/window.h"

namespace {

enum {
    ROWS = 4,  /* elements of a thread, which are loaded before the first is needed */
    PIECE = 3, /* rows and columns of a kernel that a block adds up */
    BLOCKS = 2048 /* that fill a large GPU */
};

struct Depthwise {
    Window window;
    char *x, *w, *y, *bias;
    Half half;
    Divider planes;          /* channels of a launch */
    Divider out;             /* channels of y for one of x */
    Divider volume, windows; /* of a channel */
    Divider strips,
        bands;           /* ROWS rows of a column, of a channel; of rows, of a depth */
    int32_t taps, first; /* first: channel of a launch */
    int64_t x_step, y_step; /* elements of an image */
    int64_t numel;
};
POINTERS_OF(Depthwise, f(s.x); f(s.w); f(s.y); f(s.bias);)

/* Elements in memory: T, or floats of 16 bits. */
template <typename T, bool NARROW>
struct Stored {
    typedef std::conditional_t<NARROW, uint16_t, T> Word;
    static __device__ __forceinline__ T read(Word word, Half half)
    {
        if constexpr (NARROW)
            return widened(Vector<uint16_t, 1>{{word}}, half == BRAIN16).v[0];
        else
            return word;
    }
    static __device__ __forceinline__ Word word(T value, Half half)
    {
        if constexpr (NARROW)
            return narrowed(Vector<float, 1>{{value}}, half == BRAIN16).v[0];
        else
            return value;
    }
};

/* The image of strip *number, which becomes its channel, and the position of the strip:
 * place[1] is its first row. */
static __device__ __forceinline__ int32_t find_strip(const Depthwise &p,
                                                     const Divider *by, int32_t *number,
                                                     int32_t *place)
{
    int32_t strip = *number;
    *number = divide_from(&strip, p.strips);
    place[2] = strip;
    place[1] = divide_from(&place[2], by[2]);
    place[0] = divide_from(&place[1], p.bands);
    place[1] *= ROWS;
    return divide_from(number, p.planes);
}

/* Adds a tap's products with the elements of a strip that are inside. */
template <typename T, bool NARROW>
static __device__ __forceinline__ void
add_strip(const typename Stored<T, NARROW>::Word *from, int32_t column,
          const int32_t (&rows)[ROWS], const bool (&inside)[ROWS],
          typename Stored<T, NARROW>::Word tap, Half half, T (&sums)[ROWS])
{
    typedef Stored<T, NARROW> S;
    typename S::Word terms[ROWS] = {};
    UNROLL
    for (int r = 0; r < ROWS; r++)
        if (inside[r])
            terms[r] = from[rows[r] + column];
    UNROLL
    for (int r = 0; r < ROWS; r++)
        if (inside[r])
            sums[r] = fma(S::read(terms[r], half), S::read(tap, half), sums[r]);
}

template <typename T, bool NARROW>
__global__ void depthwise_output(GRID_CONSTANT(Depthwise) p)
{
    typedef Stored<T, NARROW> S;
    typedef typename S::Word Word;
    const Window &w = p.window;
    if (thread_number() >= p.numel)
        return;
    int32_t channel = (int32_t)thread_number(), at[DT_WINDOW_DIMS];
    const int32_t image = find_strip(p, w.by[DT_BY_OUTPUT], &channel, at);
    channel += p.first;
    const int64_t group = divide((unsigned)channel, p.out);
    const Word *x = (const Word *)p.x + image * p.x_step + group * p.volume.divisor;
    const Word *weight = (const Word *)p.w + (int64_t)channel * p.taps;
    T sums[ROWS];
    UNROLL
    for (int r = 0; r < ROWS; r++)
        sums[r] = p.bias ? S::read(((const Word *)p.bias)[channel], p.half) : T(0);
    ROLLED
    for (int32_t i = 0; i < w.kernel[0]; i++) {
        const int32_t depth = at[0] * w.stride[0] - w.padding[0] + i * w.dilation[0];
        ROLLED
        for (int32_t j = 0; j < w.kernel[1]; j++, weight += w.kernel[2]) {
            int32_t rows[ROWS], column = at[2] * w.stride[2] - w.padding[2];
            bool inside[ROWS];
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                const int32_t height =
                    (at[1] + r) * w.stride[1] - w.padding[1] + j * w.dilation[1];
                inside[r] = is_below(depth, w.input[0]) && is_below(height, w.input[1]);
                rows[r] = (depth * w.input[1] + height) * w.input[2];
            }
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k++, column += w.dilation[2]) {
                if (!is_below(column, w.input[2]))
                    continue;
                add_strip<T, NARROW>(x, column, rows, inside, weight[k], p.half, sums);
            }
        }
    }
    Word *y = (Word *)p.y + image * p.y_step + (int64_t)channel * p.windows.divisor +
              (at[0] * w.output[1] + at[1]) * w.output[2] + at[2];
    UNROLL
    for (int r = 0; r < ROWS; r++)
        if (at[1] + r < w.output[1])
            y[r * w.output[2]] = S::word(sums[r], p.half);
}

template <typename T, bool NARROW>
__global__ void depthwise_input(GRID_CONSTANT(Depthwise) p)
{
    typedef Stored<T, NARROW> S;
    typedef typename S::Word Word;
    const Window &w = p.window;
    if (thread_number() >= p.numel)
        return;
    int32_t group = (int32_t)thread_number(), at[DT_WINDOW_DIMS];
    const int32_t image = find_strip(p, w.by[DT_BY_INPUT], &group, at);
    group += p.first;
    const int64_t channel = (int64_t)group * p.out.divisor;
    const Word *y = (const Word *)p.y + image * p.y_step + channel * p.windows.divisor;
    const Word *weight = (const Word *)p.w + channel * p.taps;
    T sums[ROWS];
    UNROLL
    for (int r = 0; r < ROWS; r++)
        sums[r] = p.bias ? S::read(((const Word *)p.bias)[group], p.half) : T(0);
    ROLLED
    for (int32_t i = 0; i < w.kernel[0]; i++) {
        int32_t depth = 0;
        const bool meets_depth = meets(w, 0, at[0], i, &depth);
        ROLLED
        for (int32_t j = 0; j < w.kernel[1]; j++, weight += w.kernel[2]) {
            int32_t rows[ROWS];
            bool inside[ROWS];
            UNROLL
            for (int r = 0; r < ROWS; r++) {
                int32_t height = 0;
                inside[r] = meets_depth && meets(w, 1, at[1] + r, j, &height);
                rows[r] = (depth * w.output[1] + height) * w.output[2];
            }
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k++) {
                int32_t column;
                if (!meets(w, 2, at[2], k, &column))
                    continue;
                const Word *from = y, *with = weight + k;
                ROLLED
                for (unsigned o = 0; o < p.out.divisor; o++) {
                    add_strip<T, NARROW>(from, column, rows, inside, *with, p.half,
                                         sums);
                    from += p.windows.divisor;
                    with += p.taps;
                }
            }
        }
    }
    Word *x = (Word *)p.x + image * p.x_step + (int64_t)group * p.volume.divisor +
              (at[0] * w.input[1] + at[1]) * w.input[2] + at[2];
    UNROLL
    for (int r = 0; r < ROWS; r++)
        if (at[1] + r < w.input[1])
            x[r * w.input[2]] = S::word(sums[r], p.half);
}

/* adds: in the second launch and later ones. */
template <typename T, bool NARROW>
static __device__ __forceinline__ void put_weight(const Depthwise &p, int64_t at, T sum,
                                                  bool adds)
{
    typedef Stored<T, NARROW> S;
    typename S::Word *weight = (typename S::Word *)p.w + at;
    *weight = S::word(adds ? S::read(*weight, p.half) + sum : sum, p.half);
}

/* A block adds up a piece of the kernel of a channel over its part of the p.numel
 * positions, windows of the launch's images; sums has a row of all taps for each part, or
 * is NULL if there is one. */
template <typename T, bool NARROW>
__global__ void depthwise_weight(T *sums, int64_t all_taps, unsigned parts, bool adds,
                                 GRID_CONSTANT(Depthwise) p)
{
    typedef Stored<T, NARROW> S;
    typedef typename S::Word Word;
    const Window &w = p.window;
    const int32_t across = (w.kernel[2] + PIECE - 1) / PIECE,
                  down = (w.kernel[1] + PIECE - 1) / PIECE;
    int32_t number = (int32_t)(blockIdx.x / parts);
    const int32_t part = (int32_t)(blockIdx.x - (unsigned)number * parts);
    const int32_t second = number % across * PIECE;
    number /= across;
    const int32_t first = number % down * PIECE;
    number /= down; /* a plane of a channel's kernel */
    const int32_t plane = number % w.kernel[0], channel = number / w.kernel[0];
    const int64_t group = divide((unsigned)channel, p.out);
    const Word *x = (const Word *)p.x + group * p.volume.divisor;
    const Word *y = (const Word *)p.y + (int64_t)channel * p.windows.divisor;
    T sum[PIECE][PIECE] = {};
    ROLLED
    for (unsigned n = (unsigned)part * BLOCK + threadIdx.x; n < p.numel;
         n += parts * BLOCK) {
        int32_t left = (int32_t)n, at[DT_WINDOW_DIMS];
        const int32_t image = divide_from(&left, p.windows);
        const T factor = S::read(y[image * p.y_step + left], p.half);
        find_place(left, w.by[DT_BY_OUTPUT], at);
        const int32_t depth =
            at[0] * w.stride[0] - w.padding[0] + plane * w.dilation[0];
        const int32_t height =
            at[1] * w.stride[1] - w.padding[1] + first * w.dilation[1];
        const int32_t column =
            at[2] * w.stride[2] - w.padding[2] + second * w.dilation[2];
        if (!is_below(depth, w.input[0]))
            continue;
        const int64_t from =
            image * p.x_step + (depth * w.input[1] + height) * w.input[2] + column;
        Word there[PIECE][PIECE];
        UNROLL
        for (int j = 0; j < PIECE; j++) {
            UNROLL
            for (int k = 0; k < PIECE; k++) {
                there[j][k] = 0;
                if (is_below(height + j * w.dilation[1], w.input[1]) &&
                    is_below(column + k * w.dilation[2], w.input[2]))
                    there[j][k] =
                        x[from + j * w.dilation[1] * w.input[2] + k * w.dilation[2]];
            }
        }
        UNROLL
        for (int j = 0; j < PIECE; j++) {
            UNROLL
            for (int k = 0; k < PIECE; k++)
                sum[j][k] = fma(S::read(there[j][k], p.half), factor, sum[j][k]);
        }
    }
    STATIC_SHARED(T[BLOCK / 32][PIECE][PIECE], warps);
    UNROLL
    for (int j = 0; j < PIECE; j++) {
        UNROLL
        for (int k = 0; k < PIECE; k++) {
            const T all =
                reduce_group<false>(sum[j][k], 32, [](T a, T b) { return a + b; });
            if (threadIdx.x % 32 == 0)
                warps[threadIdx.x / 32][j][k] = all;
        }
    }
    __syncthreads();
    const int32_t row = first + (int32_t)threadIdx.x / PIECE,
                  tap = second + (int32_t)threadIdx.x % PIECE;
    if (threadIdx.x >= PIECE * PIECE || row >= w.kernel[1] || tap >= w.kernel[2])
        return;
    T all = 0;
    ROLLED
    for (unsigned i = 0; i < BLOCK / 32; i++)
        all += warps[i][threadIdx.x / PIECE][threadIdx.x % PIECE];
    const int64_t place = ((int64_t)number * w.kernel[1] + row) * w.kernel[2] + tap;
    if (sums)
        sums[part * all_taps + place] = all;
    else
        put_weight<T, NARROW>(p, place, all, adds);
}

template <typename T, bool NARROW>
__global__ void depthwise_join(GRID_CONSTANT(Depthwise) p, const T *sums,
                               unsigned parts, bool adds)
{
    const int64_t at = thread_number();
    T sum = 0;
    if (at >= p.numel)
        return;
    UNROLL_BY_4
    for (unsigned i = 0; i < parts; i++)
        sum += sums[i * p.numel + at];
    put_weight<T, NARROW>(p, at, sum, adds);
}

template <typename T, bool NARROW>
int run_depthwise(dt_stream stream, const dt_convolution *call)
{
    static const char doing[] = "convolving channel by channel";
    const dt_window &w = call->window;
    const int64_t volume = dt_window_volume(w.input),
                  windows = dt_window_volume(w.output),
                  taps = dt_window_volume(w.kernel), all = call->groups * call->out;
    Depthwise p = {};
    int64_t planes;
    if (window_of(w, &p.window, &planes))
        return -1;
    p.half = half_of(call->dtype);
    p.w = (char *)call->w;
    p.bias = (char *)call->bias;
    p.out = divider_for((unsigned)call->out);
    p.volume = divider_for((unsigned)volume);
    p.windows = divider_for((unsigned)windows);
    p.taps = (int32_t)taps;
    p.x_step = call->groups * volume;
    p.y_step = all * windows;
    const bool of_weight = call->part == DT_CONVOLUTION_WEIGHT,
               of_output = call->part == DT_CONVOLUTION_OUTPUT;
    const int64_t channels = of_output ? all : call->groups,
                  bands = ((of_output ? w.output[1] : w.input[1]) + ROWS - 1) / ROWS,
                  items = bands * (of_output ? w.output[0] * w.output[2]
                                             : w.input[0] * w.input[2]),
                  pieces = all * w.kernel[0] * ((w.kernel[1] + PIECE - 1) / PIECE) *
                           ((w.kernel[2] + PIECE - 1) / PIECE),
                  size = (int64_t)sizeof(typename Stored<T, NARROW>::Word);
    p.strips = divider_for((unsigned)items);
    p.bands = divider_for((unsigned)bands);
    const int64_t images = std::clamp(
        of_weight ? INT32_MAX / windows : planes / channels, (int64_t)1, call->batch);
    for (int64_t image = 0; image < call->batch; image += images) {
        const int64_t count = std::min(images, call->batch - image);
        p.x = (char *)call->x + image * p.x_step * size;
        p.y = (char *)call->y + image * p.y_step * size;
        if (of_weight) {
            p.numel = count * windows;
            const int64_t parts = std::clamp(BLOCKS / pieces, (int64_t)1,
                                             (p.numel + 4 * BLOCK - 1) / (4 * BLOCK));
            Scratch sums(stream,
                         (size_t)(parts > 1 ? parts * all * taps : 1) * sizeof(T));
            if (!sums.data ||
                START_BARRIERS(doing, stream, (depthwise_weight<T, NARROW>),
                               pieces * parts, parts > 1 ? (T *)sums.data : nullptr,
                               all * taps, (unsigned)parts, image > 0, p))
                return -1;
            p.numel = all * taps;
            if (parts > 1 && START(doing, stream, (depthwise_join<T, NARROW>), p.numel,
                                   p, (const T *)sums.data, (unsigned)parts, image > 0))
                return -1;
            continue;
        }
        for (int64_t first = 0; first < channels; first += planes) {
            const int64_t some = std::min(planes, channels - first);
            p.first = (int32_t)first;
            p.planes = divider_for((unsigned)some);
            p.numel = count * some * items;
            if (of_output
                    ? START(doing, stream, (depthwise_output<T, NARROW>), p.numel, p)
                    : START(doing, stream, (depthwise_input<T, NARROW>), p.numel, p))
                return -1;
        }
    }
    return 0;
}

} // namespace

int depthwise_convolution(dt_stream stream, const dt_convolution *call)
{
    return call->dtype == DT_FLOAT64   ? run_depthwise<double, false>(stream, call)
           : call->dtype == DT_FLOAT32 ? run_depthwise<float, false>(stream, call)
                                       : run_depthwise<float, true>(stream, call);
}
