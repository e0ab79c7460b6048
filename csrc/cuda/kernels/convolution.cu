/* Convolutions as matrix products with patches, which a kernel gathers a chunk at a time: of
 * some images, or of some channels of one. */
#include "cuda/kernels/window.h"
#include "device/convolution.h"

/* Elements of a chunk of patches, unless one channel of an image has more. */
#define CHUNK ((int64_t)1 << 24)

/* A chunk of patches of one group, [image][channel][tap][window] with the images or the
 * channels outermost. */
struct Chunk {
    int64_t image, images;     /* of the batch */
    int64_t channel, channels; /* of the group */
    int64_t volume, taps,
        windows; /* elements: of an image's channel, a window; windows */
    int64_t image_step, row_step; /* from an image, or a tap, to the next */
    int64_t x_step;               /* elements of an image, all its channels */
};

/* The same for a kernel, of which each thread has an item: a window, or an element. */
template <typename I>
struct Patches {
    Window<I> w;
    DividerOf<I> channels, items; /* items of a channel */
    int64_t taps, volume, image_step, row_step, x_step;
    int64_t numel; /* items, of all channels and images */

    Patches(const Chunk &c, const dt_window &window, int64_t each)
        : w(window_of<I>(window)), channels(divider_of<I>(c.channels)),
          items(divider_of<I>(each)), taps(c.taps), volume(c.volume),
          image_step(c.image_step), row_step(c.row_step), x_step(c.x_step),
          numel(c.images * c.channels * each)
    {
    }
};
template <typename I, class F>
void each_pointer(Patches<I> &, F)
{
}

/* A thread's item, which is at[0], at[1], at[2] of the sizes `by`, and where its image and
 * channel begin in x and among the patches. */
template <typename I>
struct Item {
    I number, channel, at[DT_WINDOW_DIMS];
    int64_t in_x, in_patches;

    __device__ __forceinline__ Item(const Patches<I> &p, const DividerOf<I> *by)
        : number((I)thread_number())
    {
        channel = divide_from(&number, p.items);
        I image = divide_from(&channel, p.channels);
        in_x = image * p.x_step + channel * p.volume;
        in_patches = image * p.image_step + channel * p.taps * p.row_step;
        find_place(number, by, at);
    }
};
template <typename I>
static __device__ __forceinline__ bool is_below(I n, I end)
{
    return (std::make_unsigned_t<I>)n < (std::make_unsigned_t<I>)end;
}

/* The patches of x, which starts with the chunk's first image and channel: a thread goes
 * through the taps of a window. */
template <typename T, typename I>
__global__ void gather_patches(T *patches, const T *x, GRID_CONSTANT(Patches<I>) p)
{
    const Window<I> &w = p.w;
    if (thread_number() >= p.numel)
        return;
    Item<I> item(p, w.by[DT_BY_OUTPUT]);
    x += item.in_x;
    patches += item.in_patches + item.number;
    I at[DT_WINDOW_DIMS];
    UNROLL
    for (int d = 0; d < DT_WINDOW_DIMS; d++)
        at[d] = item.at[d] * w.stride[d] - w.padding[d];
    ROLLED
    for (I i = 0; i < w.kernel[0]; i++) {
        I depth = at[0] + i * w.dilation[0];
        ROLLED
        for (I j = 0; j < w.kernel[1]; j++) {
            I height = at[1] + j * w.dilation[1], width = at[2];
            bool inside = is_below(depth, w.input[0]) && is_below(height, w.input[1]);
            const T *row =
                x + (inside ? (depth * w.input[1] + height) * w.input[2] : 0);
            ROLLED
            for (I k = 0; k < w.kernel[2]; k++) {
                *patches = inside && is_below(width, w.input[2]) ? row[width] : T(0);
                patches += p.row_step;
                width += w.dilation[2];
            }
        }
    }
}

/* The window of dimension d that has element `at` as its tap k, if there is one. */
template <typename I>
static __device__ __forceinline__ bool meets(const Window<I> &w, int d, I at, I k,
                                             I *window)
{
    if (k >= w.kernel[d])
        return false;
    I start = at + w.padding[d] - k * w.dilation[d];
    if (start < 0)
        return false;
    *window = divide_from(&start, w.by[DT_BY_STRIDE][d]);
    return start == 0 && *window < w.output[d];
}

/* The reverse: a thread sums what windows have of an element of x. */
template <typename T, typename I>
__global__ void sum_patches(T *x, const T *patches, const T *bias,
                            GRID_CONSTANT(Patches<I>) p)
{
    constexpr int AHEAD = 4;
    const Window<I> &w = p.w;
    if (thread_number() >= p.numel)
        return;
    Item<I> item(p, w.by[DT_BY_INPUT]);
    patches += item.in_patches;
    T sum = bias ? bias[item.channel] : T(0);
    I window[DT_WINDOW_DIMS];
    ROLLED
    for (I i = 0; i < w.kernel[0]; i++) {
        if (!meets(w, 0, item.at[0], i, &window[0]))
            continue;
        ROLLED
        for (I j = 0; j < w.kernel[1]; j++) {
            if (!meets(w, 1, item.at[1], j, &window[1]))
                continue;
            const T *row = patches + (i * w.kernel[1] + j) * w.kernel[2] * p.row_step +
                           (window[0] * w.output[1] + window[1]) * w.output[2];
            ROLLED
            for (I k = 0; k < w.kernel[2]; k += AHEAD) {
                T terms[AHEAD];
                bool there[AHEAD];
                UNROLL
                for (int f = 0; f < AHEAD; f++) {
                    there[f] = meets(w, 2, item.at[2], k + f, &window[2]);
                    if (there[f])
                        terms[f] = row[(k + f) * p.row_step + window[2]];
                }
                UNROLL
                for (int f = 0; f < AHEAD; f++)
                    if (there[f])
                        sum += terms[f];
            }
        }
    }
    x[item.in_x + item.number] = sum;
}

/* Channels of some images, [channel][image][window]. */
template <typename T>
__global__ void gather_channels(T *out, const T *y, int64_t numel, LongDivider windows,
                                LongDivider images, int64_t y_step)
{
    int64_t i = thread_number(), window = i;
    if (i >= numel)
        return;
    int64_t image = divide_from(&window, windows);
    int64_t channel = divide_from(&image, images);
    out[i] = y[image * y_step + channel * windows.divisor + window];
}

/* Each channel of an image filled with its bias. */
template <typename T>
__global__ void fill_bias(T *y, const T *bias, int64_t numel, LongDivider windows,
                          LongDivider channels)
{
    int64_t i = thread_number();
    if (i >= numel)
        return;
    int64_t channel = divide(i, windows);
    divide_from(&channel, channels);
    y[i] = bias[channel];
}

static const char doing[] = "convolving";

template <typename T>
struct Convolution {
    dt_stream stream;
    const dt_convolution *call;
    Chunk chunk;
    dt_gemm gemm;
    T *x, *w, *y; /* of the group */
    const T *bias;
    int64_t depth; /* elements of a row of the weight */
    bool is_plain; /* each element is the patch of a window of its own */

    /* run(integer) with an integer of the size that kernels need. */
    template <class Run>
    int with_integer(Run run)
    {
        if constexpr (std::is_same_v<T, float>)
            if (fits_int32(call->window, (double)(chunk.images * chunk.channels)))
                return run(int32_t());
        return run(int64_t());
    }
    T *part_of_x()
    {
        return x + chunk.image * chunk.x_step + chunk.channel * chunk.volume;
    }
    int gather(T *patches)
    {
        return with_integer([&](auto integer) {
            typedef decltype(integer) I;
            Patches<I> p(chunk, call->window, chunk.windows);
            return START(doing, stream, (gather_patches<T, I>), p.numel, patches,
                         (const T *)part_of_x(), p);
        });
    }
    int sum(const T *patches)
    {
        return with_integer([&](auto integer) {
            typedef decltype(integer) I;
            Patches<I> p(chunk, call->window, chunk.volume);
            return START(doing, stream, (sum_patches<T, I>), p.numel, part_of_x(),
                         patches, bias ? bias + chunk.channel : nullptr, p);
        });
    }
    int output(T *patches)
    {
        int64_t rows = chunk.channels * chunk.taps;
        if (!is_plain && gather(patches))
            return -1;
        gemm.batch = chunk.images;
        gemm.m = call->out;
        gemm.n = chunk.windows;
        gemm.k = rows;
        gemm.a = w + chunk.channel * chunk.taps;
        gemm.a_row = depth;
        gemm.a_col = 1;
        gemm.b = is_plain ? part_of_x() : patches;
        gemm.b_batch = is_plain ? chunk.x_step : chunk.image_step;
        gemm.b_row = chunk.windows;
        gemm.b_col = 1;
        gemm.c_batch = call->groups * call->out * chunk.windows;
        gemm.c = y + chunk.image * gemm.c_batch;
        gemm.c_row = chunk.windows;
        gemm.beta = call->bias || chunk.channel ? 1 : 0;
        return dt_cuda_gemm(stream, &gemm);
    }
    int input(T *patches)
    {
        gemm.batch = chunk.images;
        gemm.m = chunk.channels * chunk.taps;
        gemm.n = chunk.windows;
        gemm.k = call->out;
        gemm.a = w + chunk.channel * chunk.taps;
        gemm.a_row = 1;
        gemm.a_col = depth;
        gemm.b_batch = call->groups * call->out * chunk.windows;
        gemm.b = y + chunk.image * gemm.b_batch;
        gemm.b_row = chunk.windows;
        gemm.b_col = 1;
        const bool finished = is_plain && !bias;
        gemm.c = finished ? part_of_x() : patches;
        gemm.c_batch = finished ? chunk.x_step : chunk.image_step;
        gemm.c_row = chunk.windows;
        gemm.beta = 0;
        return dt_cuda_gemm(stream, &gemm) || (!finished && sum(patches)) ? -1 : 0;
    }
    int weight(T *patches, T *channels)
    {
        int64_t positions = chunk.images * chunk.windows;
        int64_t y_step = call->groups * call->out * chunk.windows;
        if (gather(patches) ||
            START(doing, stream, gather_channels<T>, call->out * positions, channels,
                  (const T *)y + chunk.image * y_step, call->out * positions,
                  long_divider_for(chunk.windows), long_divider_for(chunk.images),
                  y_step))
            return -1;
        gemm.batch = 1;
        gemm.m = call->out;
        gemm.n = chunk.channels * chunk.taps;
        gemm.k = positions;
        gemm.a = channels;
        gemm.a_row = positions;
        gemm.a_col = 1;
        gemm.b = patches;
        gemm.b_row = 1;
        gemm.b_col = positions;
        gemm.c = w + chunk.channel * chunk.taps;
        gemm.c_row = depth;
        gemm.beta = chunk.image ? 1 : 0;
        return dt_cuda_gemm(stream, &gemm);
    }
};

template <typename T>
static int run(dt_stream stream, const dt_convolution *call)
{
    const dt_window &w = call->window;
    const bool of_weight = call->part == DT_CONVOLUTION_WEIGHT;
    Convolution<T> c = {};
    Chunk &chunk = c.chunk;
    c.stream = stream;
    c.call = call;
    chunk.volume = dt_window_volume(w.input);
    chunk.taps = dt_window_volume(w.kernel);
    chunk.windows = dt_window_volume(w.output);
    chunk.x_step = call->groups * call->in * chunk.volume;
    c.depth = call->in * chunk.taps;
    c.is_plain = chunk.taps == 1;
    for (int d = 0; d < DT_WINDOW_DIMS; d++)
        c.is_plain = c.is_plain && w.output[d] == w.input[d] && w.padding[d] == 0;
    c.gemm.dtype = call->dtype;
    c.gemm.alpha = 1;
    const bool gathers =
        !c.is_plain || of_weight || (call->part == DT_CONVOLUTION_INPUT && call->bias);
    const int64_t each = chunk.taps * chunk.windows; /* of a channel */
    int64_t channels = CHUNK / each, images;
    channels = channels < 1 ? 1 : channels > call->in ? call->in : channels;
    images = channels < call->in ? 1 : CHUNK / (each * call->in);
    images = images > call->batch ? call->batch : images < 1 ? 1 : images;
    if (!gathers) {
        channels = call->in;
        images = call->batch;
    }
    Scratch patches(stream,
                    gathers ? (size_t)(images * channels * each) * sizeof(T) : 1);
    Scratch targets(stream,
                    of_weight ? (size_t)(call->out * images * chunk.windows) * sizeof(T)
                              : 1);
    if (!patches.data || !targets.data)
        return -1;
    int64_t numel = call->batch * call->groups * call->out * chunk.windows;
    if (call->bias && call->part == DT_CONVOLUTION_OUTPUT &&
        START(doing, stream, fill_bias<T>, numel, (T *)call->y, (const T *)call->bias,
              numel, long_divider_for(chunk.windows),
              long_divider_for(call->groups * call->out)))
        return -1;
    for (int64_t g = 0; g < call->groups; g++) {
        c.x = (T *)call->x + g * call->in * chunk.volume;
        c.w = (T *)call->w + g * call->out * c.depth;
        c.y = (T *)call->y + g * call->out * chunk.windows;
        c.bias = call->bias ? (const T *)call->bias + g * call->in : nullptr;
        for (chunk.image = 0; chunk.image < call->batch; chunk.image += images)
            for (chunk.channel = 0; chunk.channel < call->in;
                 chunk.channel += channels) {
                chunk.images = call->batch - chunk.image;
                chunk.images = chunk.images > images ? images : chunk.images;
                chunk.channels = call->in - chunk.channel;
                chunk.channels = chunk.channels > channels ? channels : chunk.channels;
                chunk.row_step = (of_weight ? chunk.images : 1) * chunk.windows;
                chunk.image_step = of_weight
                                       ? chunk.windows
                                       : chunk.channels * chunk.taps * chunk.windows;
                T *room = (T *)patches.data;
                if (call->part == DT_CONVOLUTION_OUTPUT ? c.output(room)
                    : call->part == DT_CONVOLUTION_INPUT
                        ? c.input(room)
                        : c.weight(room, (T *)targets.data))
                    return -1;
            }
    }
    return 0;
}

int dt_cuda_convolution(dt_stream stream, const dt_convolution *call)
{
    return call->dtype == DT_FLOAT64 ? run<double>(stream, call)
                                     : run<float>(stream, call);
}
