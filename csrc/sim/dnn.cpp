/* Simulated cuDNN, where PYDEVTENSOR_SIM_CUDNN is 1: each convolution is queued on the
 * stream as plain loops. Its only way to compute one takes a workspace of a known size,
 * which it spoils. */
#include "cuda/runtime/cudnn.h"

#include <stdlib.h>
#include <string.h>

#include <vector>

#include "base/half.h"
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

/* A call's operands and its result, as numbers. */
struct Convolution {
    Tensor x, w, y;
    Windows windows;

    /* visit(element of x, of w, of y) of each product. */
    template <class Visit>
    void each(Visit visit) const
    {
        const int n = windows.ndim, groups = windows.groups;
        const int in = w.shape[1], out = w.shape[0] / groups;
        const int64_t taps = w.numel() / w.shape[0] / in;
        const int64_t places = y.numel() / y.shape[0] / y.shape[1];
        const int64_t volume = x.numel() / x.shape[0] / x.shape[1];
        for (int64_t image = 0; image < x.shape[0]; image++)
            for (int64_t o = 0; o < y.shape[1]; o++)
                for (int64_t i = 0; i < in; i++)
                    for (int64_t place = 0; place < places; place++)
                        for (int64_t tap = 0; tap < taps; tap++) {
                            int64_t at = 0, step = 1, p = place, k = tap;
                            bool inside = true;
                            for (int d = n - 1; d >= 0; d--) {
                                const int64_t s =
                                    p % y.shape[d + 2] * windows.stride[d] -
                                    windows.padding[d] +
                                    k % w.shape[d + 2] * windows.dilation[d];
                                inside = inside && s >= 0 && s < x.shape[d + 2];
                                at += s * step;
                                step *= x.shape[d + 2];
                                p /= y.shape[d + 2];
                                k /= w.shape[d + 2];
                            }
                            if (inside)
                                visit((image * x.shape[1] + o / out * in + i) * volume +
                                          at,
                                      (o * in + i) * taps + tap,
                                      (image * y.shape[1] + o) * places + place);
                        }
    }
};

std::vector<double> numbers(const Tensor &tensor, const void *data)
{
    std::vector<double> made((size_t)tensor.numel());
    for (size_t i = 0; i < made.size(); i++)
        made[i] = tensor.type == DT_CUDNN_DOUBLE  ? ((const double *)data)[i]
                  : tensor.type == DT_CUDNN_FLOAT ? (double)((const float *)data)[i]
                  : tensor.type == DT_CUDNN_HALF
                      ? (double)dt_float16_widen(((const uint16_t *)data)[i])
                      : (double)dt_bfloat16_widen(((const uint16_t *)data)[i]);
    return made;
}

void store(const Tensor &tensor, void *data, const std::vector<double> &values)
{
    for (size_t i = 0; i < values.size(); i++)
        if (tensor.type == DT_CUDNN_DOUBLE)
            ((double *)data)[i] = values[i];
        else if (tensor.type == DT_CUDNN_FLOAT)
            ((float *)data)[i] = (float)values[i];
        else
            ((uint16_t *)data)[i] = tensor.type == DT_CUDNN_HALF
                                        ? dt_float16_narrow((float)values[i])
                                        : dt_bfloat16_narrow((float)values[i]);
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

enum Part { OUTPUT, INPUT, WEIGHT };
/* a, b and the result of a part, in the order of its functions. */
template <Part P>
Convolution convolution_of(void *a, void *b, void *windows, void *out)
{
    const Tensor &first = *(Tensor *)a, &second = *(Tensor *)b, &third = *(Tensor *)out;
    const Windows &w = *(Windows *)windows;
    return P == OUTPUT  ? Convolution{first, second, third, w}
           : P == INPUT ? Convolution{third, first, second, w}
                        : Convolution{first, third, second, w};
}

template <Part P>
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

template <Part P>
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
    const cudaError_t error =
        sim::enqueue(*(cudaStream_t *)handle, "cudnnConvolution",
                     {{a, a_bytes, false},
                      {b, b_bytes, false},
                      {out, result.bytes(), true},
                      {workspace, WORKSPACE, true}},
                     [c](void *const *seen) {
                         memset(seen[3], 0xff, WORKSPACE);
                         const Tensor &first = P == INPUT ? c.w : c.x,
                                      &second = P == OUTPUT ? c.w : c.y,
                                      &third = P == OUTPUT  ? c.y
                                               : P == INPUT ? c.x
                                                            : c.w;
                         const std::vector<double> one = numbers(first, seen[0]),
                                                   two = numbers(second, seen[1]);
                         std::vector<double> sums((size_t)third.numel());
                         c.each([&](int64_t x, int64_t w, int64_t y) {
                             if (P == OUTPUT)
                                 sums[(size_t)y] += one[(size_t)x] * two[(size_t)w];
                             else if (P == INPUT)
                                 sums[(size_t)x] += one[(size_t)w] * two[(size_t)y];
                             else
                                 sums[(size_t)w] += one[(size_t)x] * two[(size_t)y];
                         });
                         store(third, seen[2], sums);
                     });
    return error == cudaSuccess ? 0 : EXECUTION_FAILED;
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
            const std::vector<double> more = numbers(bias, seen[0]);
            std::vector<double> sums = numbers(to, seen[1]);
            const size_t each = sums.size() / (size_t)(to.shape[0] * to.shape[1]);
            for (size_t i = 0; i < sums.size(); i++)
                sums[i] += more[i / each % more.size()];
            store(to, seen[1], sums);
        });
    return error == cudaSuccess ? 0 : EXECUTION_FAILED;
}

size_t version()
{
    return 90000;
}

} /* namespace */

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
    return sim::state().options.cudnn ? &functions : nullptr;
}
