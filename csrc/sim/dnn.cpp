/* Simulated cuDNN, unless PYDEVTENSOR_SIM_CUDNN is 0: each function queues the CPU's
 * convolution on the stream. Its only way to compute one takes a workspace of a known
 * size, which it spoils. */
#include "cuda/runtime/cudnn.h"

#include <stdlib.h>
#include <string.h>

#include <vector>

#include "base/half.h"
#include "sim/core.h"
#include "sim/internal.h"

namespace {

enum { NOT_SUPPORTED = 3000, EXECUTION_FAILED = 5000 };
enum { WORKSPACE = 1024 };

struct Tensor {
    int type, ndim, shape[5], strides[5];
    int64_t numel() const
    {
        int64_t n = 1;
        for (int d = 0; d < ndim; d++)
            n *= shape[d];
        return n;
    }
    size_t bytes() const
    {
        return (size_t)numel() * (type == DT_CUDNN_DOUBLE  ? 8
                                  : type == DT_CUDNN_FLOAT ? 4
                                                           : 2);
    }
};
struct Windows {
    int ndim, padding[3], stride[3], dilation[3], compute, math, groups;
};

/* A call's operands and its result. */
struct Convolution {
    Tensor x, w, y;
    Windows windows;
};

bool is_half(const Tensor &tensor)
{
    return tensor.type == DT_CUDNN_HALF || tensor.type == DT_CUDNN_BFLOAT16;
}

/* Halves as float32. */
std::vector<float> widened(const Tensor &tensor, const void *data)
{
    const auto *from = (const uint16_t *)data;
    std::vector<float> made((size_t)tensor.numel());
    for (size_t i = 0; i < made.size(); i++)
        made[i] = tensor.type == DT_CUDNN_HALF ? dt_float16_widen(from[i])
                                               : dt_bfloat16_widen(from[i]);
    return made;
}

void store(const Tensor &tensor, void *data, const std::vector<float> &values)
{
    auto *to = (uint16_t *)data;
    for (size_t i = 0; i < values.size(); i++)
        to[i] = tensor.type == DT_CUDNN_HALF ? dt_float16_narrow(values[i])
                                             : dt_bfloat16_narrow(values[i]);
}

int create(dt_cudnn_handle *handle)
{
    sim::Entry in(sim::Entry::kNothing);
    if (sim::failure("cudnn", cudaErrorMemoryAllocation) || sim::refuse_library())
        return DT_CUDNN_ALLOC_FAILED;
    *handle = (dt_cudnn_handle) new cudaStream_t(nullptr);
    return 0;
}
int destroy(dt_cudnn_handle handle)
{
    delete (cudaStream_t *)handle;
    return 0;
}
int set_stream(dt_cudnn_handle handle, cudaStream_t stream)
{
    *(cudaStream_t *)handle = stream;
    return 0;
}

template <class Made>
int create_of(void **made)
{
    *made = new Made{};
    return 0;
}
template <class Made>
int destroy_of(void *made)
{
    delete (Made *)made;
    return 0;
}

int tensor_set(void *tensor, int type, int ndim, const int *shape, const int *strides)
{
    Tensor t = {type, ndim, {}, {}};
    int64_t step = 1;
    if (ndim < 4 || ndim > 5)
        return NOT_SUPPORTED;
    memcpy(t.shape, shape, (size_t)ndim * sizeof *shape);
    for (int d = ndim - 1; d >= 0; step *= shape[d--])
        if (shape[d] < 1 || strides[d] != step)
            return DT_CUDNN_BAD_PARAM;
    *(Tensor *)tensor = t;
    return 0;
}
int weight_set(void *weight, int type, int format, int ndim, const int *shape)
{
    Tensor w = {type, ndim, {}, {}};
    if (ndim < 4 || ndim > 5 || format != DT_CUDNN_NCHW)
        return NOT_SUPPORTED;
    memcpy(w.shape, shape, (size_t)ndim * sizeof *shape);
    *(Tensor *)weight = w;
    return 0;
}

int convolution_set(void *convolution, int ndim, const int *padding, const int *stride,
                    const int *dilation, int mode, int compute)
{
    Windows c = {ndim, {}, {}, {}, compute, DT_CUDNN_DEFAULT_MATH, 1};
    if (ndim < 2 || ndim > 3 || mode != DT_CUDNN_CROSS_CORRELATION)
        return NOT_SUPPORTED;
    for (int d = 0; d < ndim; d++) {
        if (padding[d] < 0 || stride[d] < 1 || dilation[d] < 1)
            return DT_CUDNN_BAD_PARAM;
        c.padding[d] = padding[d];
        c.stride[d] = stride[d];
        c.dilation[d] = dilation[d];
    }
    *(Windows *)convolution = c;
    return 0;
}
int set_math(void *convolution, int math)
{
    ((Windows *)convolution)->math = math;
    return 0;
}
int set_groups(void *convolution, int groups)
{
    ((Windows *)convolution)->groups = groups;
    return 0;
}

/* Whether the sizes fit together. */
bool fits(const Convolution &c)
{
    const Windows &v = c.windows;
    bool good =
        c.x.type == c.w.type && c.x.type == c.y.type && v.groups > 0 &&
        c.x.ndim == v.ndim + 2 && c.w.ndim == c.x.ndim && c.y.ndim == c.x.ndim &&
        c.x.shape[0] == c.y.shape[0] && c.x.shape[1] == c.w.shape[1] * v.groups &&
        c.y.shape[1] == c.w.shape[0] && c.w.shape[0] % v.groups == 0 &&
        v.compute == (c.x.type == DT_CUDNN_DOUBLE ? DT_CUDNN_DOUBLE : DT_CUDNN_FLOAT);
    for (int d = 0; good && d < v.ndim; d++)
        good = (c.x.shape[d + 2] + 2 * v.padding[d] -
                v.dilation[d] * (c.w.shape[d + 2] - 1) - 1) /
                       v.stride[d] +
                   1 ==
               c.y.shape[d + 2];
    return good;
}

/* a, b and the result of a part, in the order of its functions. */
constexpr dt_convolution_part OUTPUT = DT_CONVOLUTION_OUTPUT,
                              INPUT = DT_CONVOLUTION_INPUT,
                              WEIGHT = DT_CONVOLUTION_WEIGHT;
template <dt_convolution_part P>
Convolution convolution_of(void *a, void *b, void *windows, void *out)
{
    const Tensor &first = *(Tensor *)a, &second = *(Tensor *)b, &third = *(Tensor *)out;
    const Windows &w = *(Windows *)windows;
    return P == OUTPUT  ? Convolution{first, second, third, w}
           : P == INPUT ? Convolution{third, first, second, w}
                        : Convolution{first, third, second, w};
}

/* The same for the CPU. */
dt_convolution call_of(dt_convolution_part part, const Convolution &c, void *x, void *w,
                       void *y)
{
    dt_convolution call = {};
    dt_window &window = call.window;
    const int ndim = c.windows.ndim, first = DT_WINDOW_DIMS - ndim;
    call.part = part;
    call.dtype = c.x.type == DT_CUDNN_DOUBLE ? DT_FLOAT64 : DT_FLOAT32;
    call.batch = c.x.shape[0];
    call.groups = c.windows.groups;
    call.in = c.w.shape[1];
    call.out = c.w.shape[0] / c.windows.groups;
    call.x = x;
    call.w = w;
    call.y = y;
    window.ndim = ndim;
    for (int d = 0; d < DT_WINDOW_DIMS; d++) {
        const int of = d - first;
        const bool slides = of >= 0;
        window.input[d] = slides ? c.x.shape[of + 2] : 1;
        window.output[d] = slides ? c.y.shape[of + 2] : 1;
        window.kernel[d] = slides ? c.w.shape[of + 2] : 1;
        window.stride[d] = slides ? c.windows.stride[of] : 1;
        window.padding[d] = slides ? c.windows.padding[of] : 0;
        window.dilation[d] = slides ? c.windows.dilation[of] : 1;
    }
    return call;
}

/* Operands of halves are widened, and the result is narrowed. */
int compute(dt_convolution_part part, const Convolution &c, void *x, void *w, void *y)
{
    dt_convolution call = call_of(part, c, x, w, y);
    if (!is_half(c.x))
        return sim::core.cpu_convolution({}, &call);
    std::vector<float> wide[] = {widened(c.x, x), widened(c.w, w), widened(c.y, y)};
    call.x = wide[0].data();
    call.w = wide[1].data();
    call.y = wide[2].data();
    if (sim::core.cpu_convolution({}, &call))
        return -1;
    if (part == OUTPUT)
        store(c.y, y, wide[2]);
    else if (part == INPUT)
        store(c.x, x, wide[0]);
    else
        store(c.w, w, wide[1]);
    return 0;
}

template <dt_convolution_part P>
int choose DT_CUDNN_CHOOSE
{
    (void)handle;
    if (wanted < 1 || !fits(convolution_of<P>(a, b, convolution, out)))
        return DT_CUDNN_BAD_PARAM;
    *choices = {};
    choices->algorithm = 1;
    choices->workspace = WORKSPACE;
    choices->determinism = DT_CUDNN_DETERMINISTIC;
    choices->math = ((Windows *)convolution)->math;
    *found = 1;
    return 0;
}

template <dt_convolution_part P>
int convolve DT_CUDNN_CONVOLVE
{
    const Convolution c = convolution_of<P>(a_is, b_is, convolution, out_is);
    const Tensor &result = *(Tensor *)out_is;
    const bool wide = result.type == DT_CUDNN_DOUBLE;
    const double scale = wide ? *(const double *)alpha : (double)*(const float *)alpha;
    const double keep = wide ? *(const double *)beta : (double)*(const float *)beta;
    if (!fits(c) || algorithm != 1 || scale != 1 || keep != 0 || !workspace ||
        workspace_bytes < WORKSPACE)
        return DT_CUDNN_BAD_PARAM;
    const size_t a_bytes = ((Tensor *)a_is)->bytes(),
                 b_bytes = ((Tensor *)b_is)->bytes();
    const int device = sim::thread().device;
    const cudaError_t error = sim::enqueue(
        *(cudaStream_t *)handle, "cudnnConvolution",
        {{a, a_bytes, false},
         {b, b_bytes, false},
         {out, result.bytes(), true},
         {workspace, WORKSPACE, true}},
        [c, device](void *const *seen) {
            memset(seen[3], 0xff, WORKSPACE);
            sim::stand_in(device, "the CPU's convolution in place of cuDNN", [&] {
                return P == OUTPUT  ? compute(P, c, seen[0], seen[1], seen[2])
                       : P == INPUT ? compute(P, c, seen[2], seen[0], seen[1])
                                    : compute(P, c, seen[0], seen[2], seen[1]);
            });
        });
    return error == cudaSuccess ? 0 : EXECUTION_FAILED;
}

/* c += bias. */
template <class T>
void add_to(const Tensor &to, T *c, const T *bias)
{
    const int64_t channels = to.shape[1], each = to.numel() / to.shape[0] / channels;
    for (int64_t plane = 0; plane < to.shape[0] * channels; plane++)
        for (int64_t i = 0; i < each; i++)
            c[plane * each + i] += bias[plane % channels];
}

int add(dt_cudnn_handle handle, const void *, void *a_is, const void *a, const void *,
        void *c_is, void *c)
{
    const Tensor bias = *(Tensor *)a_is, to = *(Tensor *)c_is;
    if (bias.ndim != to.ndim || bias.numel() != to.shape[1] ||
        bias.shape[1] != to.shape[1])
        return DT_CUDNN_BAD_PARAM;
    const cudaError_t error = sim::enqueue(
        *(cudaStream_t *)handle, "cudnnAddTensor",
        {{a, bias.bytes(), false}, {c, to.bytes(), true}}, [=](void *const *seen) {
            if (to.type == DT_CUDNN_DOUBLE) {
                add_to(to, (double *)seen[1], (const double *)seen[0]);
            } else if (to.type == DT_CUDNN_FLOAT) {
                add_to(to, (float *)seen[1], (const float *)seen[0]);
            } else {
                std::vector<float> sums = widened(to, seen[1]);
                add_to(to, sums.data(), widened(bias, seen[0]).data());
                store(to, seen[1], sums);
            }
        });
    return error == cudaSuccess ? 0 : EXECUTION_FAILED;
}

size_t version()
{
    return 90000;
}

} /* namespace */

/* It is quicker for all sizes; a clock is to count what a real GPU would do. */
bool sim_cudnn_takes_all(void)
{
    return !sim::clock_runs();
}

const dt_cudnn *sim_cudnn(void)
{
    static const dt_cudnn functions = {create,
                                       destroy,
                                       set_stream,
                                       create_of<Tensor>,
                                       destroy_of<Tensor>,
                                       tensor_set,
                                       create_of<Tensor>,
                                       destroy_of<Tensor>,
                                       weight_set,
                                       create_of<Windows>,
                                       destroy_of<Windows>,
                                       convolution_set,
                                       set_math,
                                       set_groups,
                                       choose<OUTPUT>,
                                       choose<INPUT>,
                                       choose<WEIGHT>,
                                       convolve<OUTPUT>,
                                       convolve<INPUT>,
                                       convolve<WEIGHT>,
                                       add,
                                       version};
    return sim::state().options.cudnn && sim::core.cpu_convolution ? &functions
                                                                   : nullptr;
}
