/* Convolutions as matrix products with patches, which a kernel gathers a chunk at a time: of
 * some images, or of some channels of one. */
#include "cuda/kernels/compute.h"
#include "device/convolution.h"

/* Elements of a chunk of patches, unless one channel of an image has more. */
#define CHUNK ((int64_t)1 << 24)

/* A chunk of patches of one group, [image][channel][tap][window] with the images or the
 * channels outermost. */
struct Chunk {
    dt_window w;
    int64_t image, images;     /* of the batch */
    int64_t channel, channels; /* of the group */
    int64_t volume, taps,
        windows; /* elements: of an image's channel, a window; windows */
    int64_t image_step, row_step; /* from an image, or a tap, to the next */
    int64_t x_step;               /* elements of an image, all its channels */
};
NO_POINTERS(Chunk)

/* The place of element `tap` of a window in an image's channel, or -1. */
static __device__ __forceinline__ int64_t element_of(const dt_window &w, int64_t window,
                                                     int64_t tap)
{
    int64_t at[DT_WINDOW_DIMS];
    ROLLED
    for (int d = DT_WINDOW_DIMS - 1; d >= 0; d--) {
        at[d] = window % w.output[d] * w.stride[d] - w.padding[d] +
                tap % w.kernel[d] * w.dilation[d];
        if (at[d] < 0 || at[d] >= w.input[d])
            return -1;
        window /= w.output[d];
        tap /= w.kernel[d];
    }
    return (at[0] * w.input[1] + at[1]) * w.input[2] + at[2];
}

/* x: the group's first channel in the batch's first image. */
template <typename T>
__global__ void gather_patches(T *patches, const T *x, GRID_CONSTANT(Chunk) c)
{
    int64_t i = thread_number();
    if (i >= c.images * c.channels * c.taps * c.windows)
        return;
    int64_t window = i % c.windows, row = i / c.windows;
    int64_t image = row / (c.channels * c.taps);
    row -= image * c.channels * c.taps;
    int64_t at = element_of(c.w, window, row % c.taps);
    const T *channel =
        x + (c.image + image) * c.x_step + (c.channel + row / c.taps) * c.volume;
    patches[image * c.image_step + row * c.row_step + window] =
        at < 0 ? T(0) : channel[at];
}

/* The reverse: the sum of what the windows have of each element. */
template <typename T>
__global__ void sum_patches(T *x, const T *patches, const T *bias,
                            GRID_CONSTANT(Chunk) c)
{
    int64_t i = thread_number();
    if (i >= c.images * c.channels * c.volume)
        return;
    int64_t place = i % c.volume, channel = i / c.volume % c.channels;
    int64_t image = i / c.volume / c.channels;
    int64_t at[DT_WINDOW_DIMS], rest = place;
    ROLLED
    for (int d = DT_WINDOW_DIMS - 1; d >= 0; d--) {
        at[d] = rest % c.w.input[d] + c.w.padding[d];
        rest /= c.w.input[d];
    }
    const T *from = patches + image * c.image_step + channel * c.taps * c.row_step;
    T sum = bias ? bias[c.channel + channel] : T(0);
    for (int64_t tap = 0; tap < c.taps; tap++) {
        int64_t left = tap, window = 0, size = 1;
        bool meets = true;
        ROLLED
        for (int d = DT_WINDOW_DIMS - 1; d >= 0; d--) {
            int64_t start = at[d] - left % c.w.kernel[d] * c.w.dilation[d];
            int64_t number = start / c.w.stride[d];
            meets &=
                start >= 0 && start == number * c.w.stride[d] && number < c.w.output[d];
            window += number * size;
            size *= c.w.output[d];
            left /= c.w.kernel[d];
        }
        if (meets)
            sum += from[tap * c.row_step + window];
    }
    x[(c.image + image) * c.x_step + (c.channel + channel) * c.volume + place] = sum;
}

/* Channels of some images, [channel][image][window]. */
template <typename T>
__global__ void gather_channels(T *out, const T *y, int64_t channels, int64_t images,
                                int64_t windows, int64_t y_step)
{
    int64_t i = thread_number();
    if (i >= channels * images * windows)
        return;
    int64_t window = i % windows, image = i / windows % images;
    out[i] = y[image * y_step + i / windows / images * windows + window];
}

/* Each channel of an image filled with its bias. */
template <typename T>
__global__ void fill_bias(T *y, const T *bias, int64_t channels, int64_t windows,
                          int64_t numel)
{
    int64_t i = thread_number();
    if (i < numel)
        y[i] = bias[i / windows % channels];
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

    int gather(T *patches)
    {
        return START(doing, stream, gather_patches<T>,
                     chunk.images * chunk.channels * chunk.taps * chunk.windows,
                     patches, (const T *)x, chunk);
    }
    int output(T *patches)
    {
        int64_t rows = chunk.channels * chunk.taps;
        if (gather(patches))
            return -1;
        gemm.batch = chunk.images;
        gemm.m = call->out;
        gemm.n = chunk.windows;
        gemm.k = rows;
        gemm.a = w + chunk.channel * chunk.taps;
        gemm.a_row = depth;
        gemm.a_col = 1;
        gemm.b = patches;
        gemm.b_batch = chunk.image_step;
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
        gemm.c = patches;
        gemm.c_batch = chunk.image_step;
        gemm.c_row = chunk.windows;
        gemm.beta = 0;
        return dt_cuda_gemm(stream, &gemm) ||
                       START(doing, stream, sum_patches<T>,
                             chunk.images * chunk.channels * chunk.volume, x,
                             (const T *)patches, bias, chunk)
                   ? -1
                   : 0;
    }
    int weight(T *patches, T *channels)
    {
        int64_t positions = chunk.images * chunk.windows;
        int64_t y_step = call->groups * call->out * chunk.windows;
        if (gather(patches) ||
            START(doing, stream, gather_channels<T>, call->out * positions, channels,
                  (const T *)y + chunk.image * y_step, call->out, chunk.images,
                  chunk.windows, y_step))
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
    chunk.w = w;
    chunk.volume = dt_window_volume(w.input);
    chunk.taps = dt_window_volume(w.kernel);
    chunk.windows = dt_window_volume(w.output);
    chunk.x_step = call->groups * call->in * chunk.volume;
    c.depth = call->in * chunk.taps;
    c.gemm.dtype = call->dtype;
    c.gemm.alpha = 1;
    const int64_t each = chunk.taps * chunk.windows; /* of a channel */
    int64_t channels = CHUNK / each, images;
    channels = channels < 1 ? 1 : channels > call->in ? call->in : channels;
    images = channels < call->in ? 1 : CHUNK / (each * call->in);
    images = images > call->batch ? call->batch : images < 1 ? 1 : images;
    Scratch patches(stream, (size_t)(images * channels * each) * sizeof(T));
    Scratch targets(stream,
                    of_weight ? (size_t)(call->out * images * chunk.windows) * sizeof(T)
                              : 1);
    if (!patches.data || !targets.data)
        return -1;
    int64_t numel = call->batch * call->groups * call->out * chunk.windows;
    if (call->bias && call->part == DT_CONVOLUTION_OUTPUT &&
        START(doing, stream, fill_bias<T>, numel, (T *)call->y, (const T *)call->bias,
              call->groups * call->out, chunk.windows, numel))
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
