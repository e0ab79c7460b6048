/* Convolutions as matrix products with patches, which a kernel gathers a chunk at a time.
 * Floats of 16 bits are multiplied as they are, and all their sums are in float32. */
#include <algorithm>

#include "cuda/kernels/compute.h"
#include "cuda/kernels/depthwise.h"
#include "cuda/kernels/window.h"
#include "cuda/runtime/cublas.h"
#include "cuda/runtime/cudnn.h"

/* Elements of a chunk of patches, unless one channel of an image, or one window, has
 * more. */
#define CHUNK ((int64_t)1 << 24)

/* Windows of an image below which all images of a chunk are one product: the rows of a
 * product of their own would be short, and not aligned. */
#define FEW_WINDOWS 256

/* Some images and groups, or some channels or windows of one image and group. Patches
 * are [group][channel][tap][image][window] where images are joined, and
 * [image][channel][tap][window] where each is a product of its own. */
struct Chunk {
    int64_t image, images, group, groups, channel, channels, window, windows;
    int64_t image_step, row_step; /* from an image, or a tap, to the next */

    int64_t positions() const { return images * windows; }
};

/* The same for a kernel, of which each thread has an item: a window, or an element. */
struct Patches {
    Window w;
    Divider channels, items; /* items of a channel */
    int64_t taps, volume, image_step, row_step, x_step;
    int32_t first; /* item */
    int64_t numel; /* items, of all channels and images */
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
        find_place(number + p.first, by, at);
    }
};

/* The patches of x, which starts with the chunk's first image and channel: a thread goes
 * through the taps of a window. */
template <typename Word>
__global__ void gather_patches(Word *patches, const Word *x, GRID_CONSTANT(Patches) p)
{
    const Window &w = p.w;
    if (thread_number() >= p.numel)
        return;
    const Item item(p, w.by[DT_BY_OUTPUT]);
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
            const Word *row =
                x + (inside ? (depth * w.input[1] + height) * w.input[2] : 0);
            ROLLED
            for (int32_t k = 0; k < w.kernel[2]; k++) {
                *patches = inside && is_below(width, w.input[2]) ? row[width] : Word(0);
                patches += p.row_step;
                width += w.dilation[2];
            }
        }
    }
}

/* The reverse: a thread sums what windows have of an element of x. */
template <typename T>
__global__ void ENOUGH_BLOCKS sum_patches(char *x, const T *patches, const char *bias,
                                          Half half, GRID_CONSTANT(Patches) p)
{
    constexpr int AHEAD = 4;
    const Window &w = p.w;
    if (thread_number() >= p.numel)
        return;
    const Item item(p, w.by[DT_BY_INPUT]);
    patches += item.in_patches;
    const int64_t size = stored_size<T>(half);
    T sum = bias ? element_at<T>(bias + item.channel * size, half) : T(0);
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
    put_element(x + (item.in_x + item.number) * size, sum, half);
}

/* Copies a block from elements that are from_step apart to such that are to_step apart. */
static int copy_block(dt_stream stream, const int64_t (&shape)[3], dt_dtype to_type,
                      void *to, const int64_t (&to_step)[3], dt_dtype from_type,
                      const void *from, const int64_t (&from_step)[3])
{
    dt_plan plan = {};
    plan.ndim = 3;
    plan.noperands = 2;
    plan.numel = shape[0] * shape[1] * shape[2];
    plan.operands[0].data = to;
    plan.operands[0].dtype = to_type;
    plan.operands[1].data = (void *)from;
    plan.operands[1].dtype = from_type;
    for (int d = 0; d < 3; d++) {
        plan.shape[d] = shape[d];
        plan.operands[0].strides[d] = to_step[d] * (int64_t)dt_dtype_size(to_type);
        plan.operands[1].strides[d] = from_step[d] * (int64_t)dt_dtype_size(from_type);
    }
    return dt_cuda_copy(stream, &plan);
}

namespace {

const char doing[] = "convolving";

class Convolution {
  public:
    Convolution(dt_stream on, const dt_convolution *given)
        : stream(on), call(given), part(given->part), dtype(given->dtype),
          volume(dt_window_volume(given->window.input)),
          taps(dt_window_volume(given->window.kernel)),
          windows(dt_window_volume(given->window.output)), depth(given->in * taps),
          x_step(given->groups * given->in * volume),
          y_step(given->groups * given->out * windows)
    {
        const dt_window &w = call->window;
        bool is_plain = taps == 1;
        for (int d = 0; d < DT_WINDOW_DIMS; d++)
            is_plain = is_plain && w.output[d] == w.input[d] && w.padding[d] == 0;
        joined = part == DT_CONVOLUTION_WEIGHT || call->groups > 1 ||
                 (!is_plain && windows < FEW_WINDOWS);
        direct = is_plain && (!joined || call->batch == 1);
        const int64_t all = call->batch * call->groups * depth * windows;
        large = (!is_plain || call->groups > 1) &&
                (int64_t)bytes(dtype, all) >= cudnn_from_bytes();
        sums = dt_dtype_is_half(dtype) ? DT_FLOAT32 : dtype;
    }

    int run()
    {
        const int done = large ? cudnn_convolve(stream, call) : 0;
        return done ? (done < 0 ? -1 : 0) : multiply_patches();
    }

  private:
    int multiply_patches()
    {
        Chunk all = {};
        all.images = call->batch;
        all.groups = call->groups;
        all.channels = call->in;
        all.windows = windows;
        const bool of_input = part == DT_CONVOLUTION_INPUT;
        const bool has_patches = !direct || (of_input && call->bias);
        if (has_patches && divide(&all))
            return -1;
        const int64_t positions = all.positions();
        /* The weight's gradient is added up in float32. */
        const bool widens =
            part == DT_CONVOLUTION_WEIGHT && sums != dtype && all.images < call->batch;
        const int64_t weights = call->groups * call->out * depth;
        Scratch patches_room(
            stream, has_patches ? bytes(of_input ? sums : dtype,
                                        all.groups * all.channels * taps * positions)
                                : 1);
        Scratch side_room(stream, joined && all.images > 1
                                      ? bytes(dtype, all.groups * call->out * positions)
                                      : 1);
        Scratch weight_room(stream, widens ? bytes(sums, weights) : 1);
        patches = patches_room.data;
        side = side_room.data;
        weight = widens ? weight_room.data : call->w;
        weight_type = widens ? sums : dtype;
        if (!patches || !side || !weight_room.data)
            return -1;
        chunk = all;
        for (chunk.image = 0; chunk.image < call->batch; chunk.image += all.images)
            for (chunk.group = 0; chunk.group < call->groups; chunk.group += all.groups)
                for (chunk.channel = 0; chunk.channel < call->in;
                     chunk.channel += all.channels)
                    for (chunk.window = 0; chunk.window < windows;
                         chunk.window += all.windows)
                        if (run_chunk(all))
                            return -1;
        const int64_t shape[] = {1, 1, weights}, step[] = {0, 0, 1};
        return widens
                   ? copy_block(stream, shape, dtype, call->w, step, sums, weight, step)
                   : 0;
    }

    dt_stream stream;
    const dt_convolution *call;
    dt_convolution_part part;
    dt_dtype dtype, sums, weight_type; /* of elements; of sums of products */
    int64_t volume, taps, windows;     /* of an image's channel, a window; windows */
    int64_t depth;                     /* elements of a row of the weight */
    int64_t x_step, y_step;            /* elements of an image, all its channels */
    bool joined;                       /* the images of a chunk are one product */
    bool direct;                       /* x has the patches as they are multiplied */
    bool large;                        /* enough for cuDNN */
    Window window;
    Chunk chunk;
    void *patches, *side, *weight; /* side: y of a chunk, [group][out][image][window] */

    static size_t bytes(dt_dtype type, int64_t numel)
    {
        return (size_t)numel * dt_dtype_size(type);
    }
    static char *at(const void *data, int64_t element, dt_dtype type)
    {
        return (char *)data + element * (int64_t)dt_dtype_size(type);
    }

    /* The sizes of chunks. */
    int divide(Chunk *all)
    {
        const int64_t each = taps * windows, channels = call->groups * call->in;
        int64_t planes;
        if (window_of(call->window, &window, &planes))
            return -1;
        planes = std::clamp(CHUNK / each, (int64_t)1, planes);
        if (planes >= channels) {
            const int64_t of_y = joined ? call->groups * call->out * windows : 1;
            all->images = std::clamp(std::min(planes / channels, CHUNK / of_y),
                                     (int64_t)1, call->batch);
            return 0;
        }
        all->images = 1;
        all->groups = std::clamp(planes / call->in, (int64_t)1, call->groups);
        if (planes >= call->in)
            return 0;
        if (part == DT_CONVOLUTION_OUTPUT)
            all->windows = std::clamp(CHUNK / depth, (int64_t)1, windows);
        else
            all->channels = planes;
        return 0;
    }

    int run_chunk(const Chunk &all)
    {
        chunk.images = std::min(all.images, call->batch - chunk.image);
        chunk.groups = std::min(all.groups, call->groups - chunk.group);
        chunk.channels = std::min(all.channels, call->in - chunk.channel);
        chunk.windows = std::min(all.windows, windows - chunk.window);
        chunk.row_step = joined ? chunk.positions() : chunk.windows;
        chunk.image_step =
            joined ? chunk.windows : chunk.channels * taps * chunk.windows;
        return part == DT_CONVOLUTION_OUTPUT  ? output()
               : part == DT_CONVOLUTION_INPUT ? input()
                                              : weight_gradient();
    }

    /* The chunk in each tensor. */
    char *of_x() const
    {
        return at(call->x,
                  chunk.image * x_step +
                      (chunk.group * call->in + chunk.channel) * volume,
                  dtype);
    }
    char *of_y() const
    {
        return at(call->y,
                  chunk.image * y_step + chunk.group * call->out * windows +
                      chunk.window,
                  dtype);
    }
    int64_t of_weight() const
    {
        return chunk.group * call->out * depth + chunk.channel * taps;
    }

    Patches patches_of(int64_t items) const
    {
        return {window,
                divider_for((unsigned)(chunk.groups * chunk.channels)),
                divider_for((unsigned)items),
                taps,
                volume,
                chunk.image_step,
                chunk.row_step,
                x_step,
                (int32_t)chunk.window,
                chunk.images * chunk.groups * chunk.channels * items};
    }
    template <typename Word>
    int gather_words()
    {
        const Patches p = patches_of(chunk.windows);
        return START(doing, stream, gather_patches<Word>, p.numel, (Word *)patches,
                     (const Word *)of_x(), p);
    }
    int gather()
    {
        const size_t size = dt_dtype_size(dtype);
        return direct      ? 0
               : size == 2 ? gather_words<uint16_t>()
               : size == 4 ? gather_words<uint32_t>()
                           : gather_words<uint64_t>();
    }
    template <typename T>
    int sum()
    {
        const Patches p = patches_of(volume);
        const char *bias =
            call->bias ? at(call->bias, chunk.group * call->in + chunk.channel, dtype)
                       : nullptr;
        return START(doing, stream, sum_patches<T>, p.numel, of_x(), (const T *)patches,
                     bias, half_of(dtype), p);
    }

    /* Whether the product has y in `side`; and y there and in its tensor. */
    bool is_aside() const { return joined && chunk.images > 1; }
    int copy_y(bool to_side, const void *bias) const
    {
        const int64_t shape[] = {chunk.images, chunk.groups * call->out, chunk.windows};
        const int64_t aside[] = {chunk.windows, chunk.positions(), 1};
        const int64_t own[] = {y_step, windows, 1}, constant[] = {0, 1, 0};
        void *to = to_side ? side : of_y();
        if (bias)
            return copy_block(stream, shape, dtype, to, to_side ? aside : own, dtype,
                              at(bias, chunk.group * call->out, dtype), constant);
        return to_side ? copy_block(stream, shape, dtype, to, aside, dtype, of_y(), own)
                       : copy_block(stream, shape, dtype, to, own, dtype, side, aside);
    }
    /* y as an operand: its address, and from a row and a product's matrix to the next. */
    char *y_operand(int64_t *batch, int64_t *row) const
    {
        *row = is_aside() ? chunk.positions() : windows;
        *batch = joined ? call->out * *row : y_step;
        return is_aside() ? (char *)side : of_y();
    }
    dt_gemm product() const
    {
        dt_gemm gemm = {};
        gemm.dtype = dtype;
        gemm.tf32 = call->tf32;
        gemm.alpha = 1;
        gemm.batch = joined ? chunk.groups : chunk.images;
        return gemm;
    }

    int output()
    {
        dt_gemm gemm = product();
        if (gather() || (call->bias && copy_y(is_aside(), call->bias)))
            return -1;
        gemm.m = call->out;
        gemm.n = joined ? chunk.positions() : chunk.windows;
        gemm.k = depth;
        gemm.a = at(call->w, of_weight(), dtype);
        gemm.a_batch = joined ? call->out * depth : 0;
        gemm.a_row = depth;
        gemm.a_col = 1;
        gemm.b = direct ? of_x() : patches;
        gemm.b_batch = direct && !joined ? x_step : depth * gemm.n;
        gemm.b_row = gemm.n;
        gemm.b_col = 1;
        gemm.c = y_operand(&gemm.c_batch, &gemm.c_row);
        gemm.beta = call->bias ? 1 : 0;
        return dt_cuda_gemm(stream, &gemm) || (is_aside() && copy_y(false, nullptr))
                   ? -1
                   : 0;
    }

    int input()
    {
        const bool finished = direct && !call->bias;
        dt_gemm gemm = product();
        if (is_aside() && copy_y(true, nullptr))
            return -1;
        gemm.m = chunk.channels * taps;
        gemm.n = chunk.row_step;
        gemm.k = call->out;
        gemm.a = at(call->w, of_weight(), dtype);
        gemm.a_batch = joined ? call->out * depth : 0;
        gemm.a_row = 1;
        gemm.a_col = depth;
        gemm.b = y_operand(&gemm.b_batch, &gemm.b_row);
        gemm.b_col = 1;
        gemm.c = finished ? of_x() : patches;
        gemm.c_batch = finished && !joined ? x_step : gemm.m * gemm.n;
        gemm.c_row = gemm.n;
        if (finished)
            return dt_cuda_gemm(stream, &gemm);
        return cuda_gemm_into(stream, &gemm, sums) ||
                       (sums == DT_FLOAT32 ? sum<float>() : sum<double>())
                   ? -1
                   : 0;
    }

    int weight_gradient()
    {
        dt_gemm gemm = product();
        if (gather() || (is_aside() && copy_y(true, nullptr)))
            return -1;
        gemm.m = call->out;
        gemm.n = chunk.channels * taps;
        gemm.k = chunk.positions();
        gemm.a = y_operand(&gemm.a_batch, &gemm.a_row);
        gemm.a_col = 1;
        gemm.b = direct ? of_x() : patches;
        gemm.b_batch = gemm.n * gemm.k;
        gemm.b_row = 1;
        gemm.b_col = gemm.k;
        gemm.c = at(weight, of_weight(), weight_type);
        gemm.c_batch = call->out * depth;
        gemm.c_row = depth;
        gemm.beta = chunk.image ? 1 : 0;
        return cuda_gemm_into(stream, &gemm, weight_type);
    }
};

} // namespace

int dt_cuda_convolution(dt_stream stream, const dt_convolution *call)
{
    return call->in == 1 && call->groups > 1 ? depthwise_convolution(stream, call)
                                             : Convolution(stream, call).run();
}
