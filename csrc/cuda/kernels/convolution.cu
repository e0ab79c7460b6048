/* Convolutions as matrix products with patches, which a kernel gathers a chunk at a time: of
 * some images, or of some channels of one. */
#include <algorithm>

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
struct Patches {
    Window w;
    Divider channels, items; /* items of a channel */
    int64_t taps, volume, image_step, row_step, x_step;
    int64_t numel; /* items, of all channels and images */

    Patches(const Chunk &c, const Window &window, int64_t each)
        : w(window), channels(divider_for((unsigned)c.channels)),
          items(divider_for((unsigned)each)), taps(c.taps), volume(c.volume),
          image_step(c.image_step), row_step(c.row_step), x_step(c.x_step),
          numel(c.images * c.channels * each)
    {
    }
};
NO_POINTERS(Patches)

/* A thread's item, which is at[0], at[1], at[2] of the sizes `by`, and where its image and
 * channel begin in x and among the patches. */
struct Item {
    int32_t number, channel, at[DT_WINDOW_DIMS];
    int64_t in_x, in_patches;

    __device__ __forceinline__ Item(const Patches &p, const Divider *by)
        : number((int32_t)thread_number())
    {
        channel = divide_from(&number, p.items);
        const int32_t image = divide_from(&channel, p.channels);
        in_x = image * p.x_step + channel * p.volume;
        in_patches = image * p.image_step + channel * p.taps * p.row_step;
        find_place(number, by, at);
    }
};
static __device__ __forceinline__ bool is_below(int32_t n, int32_t end)
{
    return (unsigned)n < (unsigned)end;
}

/* The patches of x, which starts with the chunk's first image and channel: a thread goes
 * through the taps of a window. */
template <typename T>
__global__ void gather_patches(T *patches, const T *x, GRID_CONSTANT(Patches) p)
{
    const Window &w = p.w;
    if (thread_number() >= p.numel)
        return;
    Item item(p, w.by[DT_BY_OUTPUT]);
    x += item.in_x;
    patches += item.in_patches + item.number;
    int32_t at[DT_WINDOW_DIMS];
    UNROLL
    for (int d = 0; d < DT_WINDOW_DIMS; d++)
        at[d] = item.at[d] * w.stride[d] - w.padding[d];
    ROLLED
    for (int32_t i = 0; i < w.kernel[0]; i++) {
        int32_t depth = at[0] + i * w.dilation[0];
        ROLLED
        for (int32_t j = 0; j < w.kernel[1]; j++) {
            int32_t height = at[1] + j * w.dilation[1], width = at[2];
            bool inside = is_below(depth, w.input[0]) && is_below(height, w.input[1]);
            const T *row =
                x + (inside ? (depth * w.input[1] + height) * w.input[2] : 0);
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k++) {
                *patches = inside && is_below(width, w.input[2]) ? row[width] : T(0);
                patches += p.row_step;
                width += w.dilation[2];
            }
        }
    }
}

/* The window of dimension d that has element `at` as its tap k, if there is one. */
static __device__ __forceinline__ bool meets(const Window &w, int d, int32_t at,
                                             int32_t k, int32_t *window)
{
    if (k >= w.kernel[d])
        return false;
    int32_t start = at + w.padding[d] - k * w.dilation[d];
    if (start < 0)
        return false;
    *window = divide_from(&start, w.by[DT_BY_STRIDE][d]);
    return start == 0 && *window < w.output[d];
}

/* The reverse: a thread sums what windows have of an element of x. */
template <typename T>
__global__ void sum_patches(T *x, const T *patches, const T *bias,
                            GRID_CONSTANT(Patches) p)
{
    constexpr int AHEAD = 4;
    const Window &w = p.w;
    if (thread_number() >= p.numel)
        return;
    Item item(p, w.by[DT_BY_INPUT]);
    patches += item.in_patches;
    T sum = bias ? bias[item.channel] : T(0);
    int32_t window[DT_WINDOW_DIMS];
    ROLLED
    for (int32_t i = 0; i < w.kernel[0]; i++) {
        if (!meets(w, 0, item.at[0], i, &window[0]))
            continue;
        ROLLED
        for (int32_t j = 0; j < w.kernel[1]; j++) {
            if (!meets(w, 1, item.at[1], j, &window[1]))
                continue;
            const T *row = patches + (i * w.kernel[1] + j) * w.kernel[2] * p.row_step +
                           (window[0] * w.output[1] + window[1]) * w.output[2];
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k += AHEAD) {
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

/* Copies elements that are `strides` apart to a row-major block of this shape. */
static int copy_block(dt_stream stream, dt_dtype dtype, void *to, const void *from,
                      const int64_t (&shape)[3], const int64_t (&strides)[3])
{
    const int64_t size = (int64_t)dt_dtype_size(dtype);
    dt_plan plan = {};
    plan.ndim = 3;
    plan.noperands = 2;
    plan.numel = shape[0] * shape[1] * shape[2];
    plan.operands[0].data = to;
    plan.operands[1].data = (void *)from;
    for (int d = 2; d >= 0; d--) {
        plan.shape[d] = shape[d];
        plan.operands[0].strides[d] =
            d == 2 ? size : plan.operands[0].strides[d + 1] * shape[d + 1];
        plan.operands[1].strides[d] = strides[d] * size;
    }
    plan.operands[0].dtype = plan.operands[1].dtype = dtype;
    return dt_cuda_copy(stream, &plan);
}

static const char doing[] = "convolving";

template <typename T>
struct Convolution {
    dt_stream stream;
    const dt_convolution *call;
    Window window;
    Chunk chunk;
    dt_gemm gemm;
    T *x, *w, *y; /* of the group */
    const T *bias;
    int64_t depth; /* elements of a row of the weight */
    bool is_plain; /* each element is the patch of a window of its own */

    T *part_of_x()
    {
        return x + chunk.image * chunk.x_step + chunk.channel * chunk.volume;
    }
    int gather(T *patches)
    {
        const Patches p(chunk, window, chunk.windows);
        return START(doing, stream, gather_patches<T>, p.numel, patches,
                     (const T *)part_of_x(), p);
    }
    int sum(const T *patches)
    {
        const Patches p(chunk, window, chunk.volume);
        return START(doing, stream, sum_patches<T>, p.numel, part_of_x(), patches,
                     bias ? bias + chunk.channel : nullptr, p);
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
            copy_block(stream, call->dtype, channels, y + chunk.image * y_step,
                       {call->out, chunk.images, chunk.windows},
                       {chunk.windows, y_step, 1}))
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
    c.gemm.tf32 = call->tf32;
    c.gemm.alpha = 1;
    const bool gathers =
        !c.is_plain || of_weight || (call->part == DT_CONVOLUTION_INPUT && call->bias);
    const int64_t each = chunk.taps * chunk.windows; /* of a channel */
    int64_t planes, channels = call->in, images = call->batch;
    if (gathers) {
        if (window_of(w, &c.window, &planes))
            return -1;
        planes = std::clamp(CHUNK / each, (int64_t)1, planes);
        channels = std::min(planes, call->in);
        images = std::clamp(planes / call->in, (int64_t)1, call->batch);
    }
    Scratch patches(stream,
                    gathers ? (size_t)(images * channels * each) * sizeof(T) : 1);
    Scratch targets(stream,
                    of_weight ? (size_t)(call->out * images * chunk.windows) * sizeof(T)
                              : 1);
    if (!patches.data || !targets.data)
        return -1;
    if (call->bias && call->part == DT_CONVOLUTION_OUTPUT &&
        copy_block(stream, call->dtype, call->y, call->bias,
                   {call->batch, call->groups * call->out, chunk.windows}, {0, 1, 0}))
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
