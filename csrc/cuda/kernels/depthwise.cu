/* Depthwise convolutions: a channel's taps are too few for a product of matrices. A thread
 * computes an element of y or of x, a block an element of the weight. */
#include "cuda/kernels/depthwise.h"

#include <algorithm>

#include "cuda/kernels/compute.h"
#include "cuda/kernels/warp.h"
#include "cuda/kernels/window.h"

namespace {

/* Taps that a thread loads before it needs the first. A row of most kernels has three, but
 * ptxas would load those one after the other. */
enum { AHEAD = 4 };

struct Depthwise {
    Window window;
    char *x, *w, *y, *bias;
    Half half;
    Divider planes;          /* channels of a launch */
    Divider out;             /* channels of y for one of x */
    Divider volume, windows; /* of a channel */
    int32_t taps, first;     /* first: channel of a launch */
    int64_t x_step, y_step;  /* elements of an image */
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

/* sum and the products of the words that are there, in their order. */
template <typename T, bool NARROW, typename Word>
static __device__ __forceinline__ T add_products(T sum, const Word (&a)[AHEAD],
                                                 const Word (&b)[AHEAD],
                                                 const bool (&there)[AHEAD], Half half)
{
    typedef Stored<T, NARROW> S;
    UNROLL
    for (int f = 0; f < AHEAD; f++)
        if (there[f])
            sum = fma(S::read(a[f], half), S::read(b[f], half), sum);
    return sum;
}

template <typename T, bool NARROW>
__global__ void depthwise_output(GRID_CONSTANT(Depthwise) p)
{
    typedef Stored<T, NARROW> S;
    typedef typename S::Word Word;
    const Window &w = p.window;
    if (thread_number() >= p.numel)
        return;
    int32_t number = (int32_t)thread_number(), at[DT_WINDOW_DIMS];
    int32_t channel = divide_from(&number, p.windows);
    const int32_t image = divide_from(&channel, p.planes);
    channel += p.first;
    const int64_t group = divide((unsigned)channel, p.out);
    const Word *x = (const Word *)p.x + image * p.x_step + group * p.volume.divisor;
    const Word *weight = (const Word *)p.w + (int64_t)channel * p.taps;
    T sum = p.bias ? S::read(((const Word *)p.bias)[channel], p.half) : T(0);
    find_place(number, w.by[DT_BY_OUTPUT], at);
    UNROLL
    for (int d = 0; d < DT_WINDOW_DIMS; d++)
        at[d] = at[d] * w.stride[d] - w.padding[d];
    ROLLED
    for (int32_t i = 0; i < w.kernel[0]; i++) {
        const int32_t depth = at[0] + i * w.dilation[0];
        ROLLED
        for (int32_t j = 0; j < w.kernel[1]; j++, weight += w.kernel[2]) {
            const int32_t height = at[1] + j * w.dilation[1];
            if (!is_below(depth, w.input[0]) || !is_below(height, w.input[1]))
                continue;
            const Word *row = x + (depth * w.input[1] + height) * w.input[2];
            int32_t width = at[2];
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k += AHEAD) {
                Word from[AHEAD] = {}, with[AHEAD] = {};
                bool there[AHEAD];
                UNROLL
                for (int f = 0; f < AHEAD; f++) {
                    there[f] = k + f < w.kernel[2] && is_below(width, w.input[2]);
                    if (there[f]) {
                        from[f] = row[width];
                        with[f] = weight[k + f];
                    }
                    width += w.dilation[2];
                }
                sum = add_products<T, NARROW>(sum, from, with, there, p.half);
            }
        }
    }
    ((Word *)p.y)[image * p.y_step + (int64_t)channel * p.windows.divisor + number] =
        S::word(sum, p.half);
}

template <typename T, bool NARROW>
__global__ void depthwise_input(GRID_CONSTANT(Depthwise) p)
{
    typedef Stored<T, NARROW> S;
    typedef typename S::Word Word;
    const Window &w = p.window;
    if (thread_number() >= p.numel)
        return;
    int32_t number = (int32_t)thread_number(), at[DT_WINDOW_DIMS],
            window[DT_WINDOW_DIMS];
    int32_t group = divide_from(&number, p.volume);
    const int32_t image = divide_from(&group, p.planes);
    group += p.first;
    const int64_t channel = (int64_t)group * p.out.divisor;
    const Word *y = (const Word *)p.y + image * p.y_step + channel * p.windows.divisor;
    const Word *weight = (const Word *)p.w + channel * p.taps;
    T sum = p.bias ? S::read(((const Word *)p.bias)[group], p.half) : T(0);
    find_place(number, w.by[DT_BY_INPUT], at);
    ROLLED
    for (int32_t i = 0; i < w.kernel[0]; i++) {
        const bool meets_depth = meets(w, 0, at[0], i, &window[0]);
        ROLLED
        for (int32_t j = 0; j < w.kernel[1]; j++, weight += w.kernel[2]) {
            if (!meets_depth || !meets(w, 1, at[1], j, &window[1]))
                continue;
            const Word *row = y + (window[0] * w.output[1] + window[1]) * w.output[2];
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k += AHEAD) {
                int32_t column[AHEAD];
                bool there[AHEAD];
                UNROLL
                for (int f = 0; f < AHEAD; f++)
                    there[f] = meets(w, 2, at[2], k + f, &column[f]);
                const Word *from = row, *with = weight + k;
                ROLLED
                for (unsigned o = 0; o < p.out.divisor; o++) {
                    Word term[AHEAD] = {}, factor[AHEAD] = {};
                    UNROLL
                    for (int f = 0; f < AHEAD; f++)
                        if (there[f]) {
                            term[f] = from[column[f]];
                            factor[f] = with[f];
                        }
                    sum = add_products<T, NARROW>(sum, term, factor, there, p.half);
                    from += p.windows.divisor;
                    with += p.taps;
                }
            }
        }
    }
    ((Word *)p.x)[image * p.x_step + (int64_t)group * p.volume.divisor + number] =
        S::word(sum, p.half);
}

/* p.numel positions are windows of the launch's images; from the second launch on,
 * `adds`. */
template <typename T, bool NARROW>
__global__ void depthwise_weight(GRID_CONSTANT(Depthwise) p, bool adds)
{
    typedef Stored<T, NARROW> S;
    typedef typename S::Word Word;
    const Window &w = p.window;
    const unsigned element = blockIdx.x, taps = (unsigned)p.taps;
    const unsigned channel = element / taps, tap = element - channel * taps;
    const unsigned plane = (unsigned)(w.kernel[1] * w.kernel[2]);
    const int32_t row = (int32_t)(tap % plane);
    const int32_t taken[] = {(int32_t)(tap / plane), row / w.kernel[2],
                             row % w.kernel[2]};
    const int64_t group = divide(channel, p.out);
    const Word *x = (const Word *)p.x + group * p.volume.divisor;
    const Word *y = (const Word *)p.y + (int64_t)channel * p.windows.divisor;
    T sum = 0;
    ROLLED
    for (unsigned n = threadIdx.x; n < p.numel; n += BLOCK) {
        int32_t number = (int32_t)n, at[DT_WINDOW_DIMS], from = 0;
        const int32_t image = divide_from(&number, p.windows);
        bool inside = true;
        find_place(number, w.by[DT_BY_OUTPUT], at);
        UNROLL
        for (int d = 0; d < DT_WINDOW_DIMS; d++) {
            const int32_t here =
                at[d] * w.stride[d] - w.padding[d] + taken[d] * w.dilation[d];
            inside = inside && is_below(here, w.input[d]);
            from = from * w.input[d] + here;
        }
        if (inside)
            sum = fma(S::read(x[image * p.x_step + from], p.half),
                      S::read(y[image * p.y_step + number], p.half), sum);
    }
    sum = reduce_group<false>(sum, BLOCK, [](T a, T b) { return a + b; });
    if (threadIdx.x)
        return;
    Word *weight = (Word *)p.w + element;
    *weight = S::word(adds ? S::read(*weight, p.half) + sum : sum, p.half);
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
                  items = of_output ? windows : volume,
                  size = (int64_t)sizeof(typename Stored<T, NARROW>::Word);
    const int64_t images = std::clamp(
        of_weight ? INT32_MAX / windows : planes / channels, (int64_t)1, call->batch);
    for (int64_t image = 0; image < call->batch; image += images) {
        const int64_t count = std::min(images, call->batch - image);
        p.x = (char *)call->x + image * p.x_step * size;
        p.y = (char *)call->y + image * p.y_step * size;
        if (of_weight) {
            p.numel = count * windows;
            if (START_BARRIERS(doing, stream, (depthwise_weight<T, NARROW>), all * taps,
                               p, image > 0))
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
