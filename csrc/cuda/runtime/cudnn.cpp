#include "cuda/runtime/cudnn.h"

#include <limits.h>
#include <stdio.h>

#include <vector>

#include "cuda/runtime/backend.h"
#include "cuda/runtime/choices.h"
#include "cuda/runtime/cublas.h"

dt_library cudnn_library = {"cuDNN", "convolutions",       "libcudnn", 9, "cudnn",
                            "",      DT_CUDNN_ALLOC_FAILED};

#ifdef DT_SIMULATED

/* sim/dnn.cpp */
const dt_cudnn *sim_cudnn(void); /* NULL: there is none */
bool sim_cudnn_takes_all(void);

const dt_cudnn *cudnn_get(void)
{
    const dt_cudnn *functions = sim_cudnn();
    snprintf(cudnn_library.path, sizeof cudnn_library.path, "%s",
             functions ? "simulated" : "");
    cudnn_library.version = functions ? (int)functions->version() : 0;
    return functions;
}

#else

const dt_cudnn *cudnn_get(void)
{
    static dt_cudnn functions;
    static const dt_symbol symbols[] = {DT_CUDNN_FUNCTIONS(LIBRARY_FUNCTION){
        "cudnnGetVersion", (void *)&functions.version, false}};
    /* It looks for cuBLAS among what is loaded. */
    if (!cudnn_library.missing && !cublas_get()) {
        dt_error_clear();
        cudnn_library.missing = true;
    }
    if (!library_found(&cudnn_library, symbols))
        return nullptr;
    cudnn_library.version = (int)functions.version();
    return &functions;
}

#endif

namespace {

int type_of(dt_dtype dtype)
{
    return dtype == DT_FLOAT64    ? DT_CUDNN_DOUBLE
           : dtype == DT_FLOAT16  ? DT_CUDNN_HALF
           : dtype == DT_BFLOAT16 ? DT_CUDNN_BFLOAT16
                                  : DT_CUDNN_FLOAT;
}

/* Sizes as cuDNN takes them: of batch, channels, and the two or three dimensions that
 * windows slide over. */
struct Sizes {
    int ndim, x[5], w[5], y[5], padding[3], stride[3], dilation[3];

    /* False where they exceed its numbers, or windows are not where it has them. */
    bool take(const dt_convolution *call)
    {
        const dt_window &window = call->window;
        const int first = window.ndim < 3;
        const int64_t x_channels = call->groups * call->in,
                      y_channels = call->groups * call->out;
        bool fit = put(x, 0, call->batch) && put(x, 1, x_channels) &&
                   put(w, 0, y_channels) && put(w, 1, call->in) &&
                   put(y, 0, call->batch) && put(y, 1, y_channels);
        ndim = 5 - first;
        for (int d = first; d < DT_WINDOW_DIMS; d++) {
            const int to = d - first;
            const int64_t reach =
                window.dilation[d] * (window.kernel[d] - 1) + 1 - 2 * window.padding[d];
            const int64_t room = window.input[d] - reach;
            fit = fit && room >= 0 && room / window.stride[d] + 1 == window.output[d] &&
                  put(x, to + 2, window.input[d]) && put(w, to + 2, window.kernel[d]) &&
                  put(y, to + 2, window.output[d]) &&
                  put(padding, to, window.padding[d]) &&
                  put(stride, to, window.stride[d]) &&
                  put(dilation, to, window.dilation[d]);
        }
        return fit && numbers(x) && numbers(w) && numbers(y);
    }

  private:
    static bool put(int *to, int d, int64_t size)
    {
        to[d] = (int)size;
        return size <= INT_MAX;
    }
    /* Whether its elements are numbered by an int. */
    bool numbers(const int *shape) const
    {
        int64_t numel = 1;
        for (int d = 0; d < ndim && numel <= INT_MAX; d++)
            numel *= shape[d];
        return numel <= INT_MAX;
    }
};

/* A convolution described for cuDNN. */
class Described {
  public:
    Described(const dt_cudnn *functions, const dt_convolution *given, const Sizes &of)
        : dnn(functions), call(given), type(type_of(given->dtype)),
          wide(type == DT_CUDNN_DOUBLE)
    {
        const bool single = type == DT_CUDNN_FLOAT;
        done(dnn->tensor_create(&x));
        done(dnn->tensor_create(&y));
        done(dnn->weight_create(&w));
        done(dnn->convolution_create(&convolution));
        tensor(x, of.ndim, of.x);
        tensor(y, of.ndim, of.y);
        if (!status)
            done(dnn->weight_set(w, type, DT_CUDNN_NCHW, of.ndim, of.w));
        if (!status)
            done(dnn->convolution_set(convolution, of.ndim - 2, of.padding, of.stride,
                                      of.dilation, DT_CUDNN_CROSS_CORRELATION,
                                      wide ? DT_CUDNN_DOUBLE : DT_CUDNN_FLOAT));
        if (!status)
            done(dnn->convolution_set_groups(convolution, (int)call->groups));
        math(single && !call->tf32 ? DT_CUDNN_FMA_MATH
             : single || wide      ? DT_CUDNN_DEFAULT_MATH
                                   : DT_CUDNN_TENSOR_OP_MATH);
    }
    ~Described()
    {
        for (void *each : {x, y, bias})
            if (each)
                dnn->tensor_destroy(each);
        if (w)
            dnn->weight_destroy(w);
        if (convolution)
            dnn->convolution_destroy(convolution);
    }
    Described(const Described &) = delete;

    /* The way that cuDNN finds best, of those that the call allows. */
    dt_cudnn_choice choose(dt_cudnn_handle handle)
    {
        dt_cudnn_choice ways[8] = {};
        int found = 0;
        if (!status)
            status =
                call->part == DT_CONVOLUTION_OUTPUT
                    ? dnn->choose_output(handle, x, w, convolution, y, 8, &found, ways)
                : call->part == DT_CONVOLUTION_INPUT
                    ? dnn->choose_input(handle, w, y, convolution, x, 8, &found, ways)
                    : dnn->choose_weight(handle, x, y, convolution, w, 8, &found, ways);
        const bool exact = type == DT_CUDNN_FLOAT && !call->tf32;
        for (int i = 0; !status && i < found; i++)
            if (!ways[i].status && (!exact || ways[i].math == DT_CUDNN_FMA_MATH) &&
                (!call->deterministic || ways[i].determinism == DT_CUDNN_DETERMINISTIC))
                return ways[i];
        ways[0].status = status ? status : DT_CUDNN_BAD_PARAM;
        return ways[0];
    }

    void convolve(dt_cudnn_handle handle, const dt_cudnn_choice &way, void *workspace)
    {
        const LibraryScalar one(wide, 1), zero(wide, 0);
        const dt_convolution *c = call;
        math(way.math);
        if (status)
            return;
        status =
            c->part == DT_CONVOLUTION_OUTPUT
                ? dnn->output(handle, one.at, x, c->x, w, c->w, convolution,
                              way.algorithm, workspace, way.workspace, zero.at, y, c->y)
            : c->part == DT_CONVOLUTION_INPUT
                ? dnn->input(handle, one.at, w, c->w, y, c->y, convolution,
                             way.algorithm, workspace, way.workspace, zero.at, x, c->x)
                : dnn->weight(handle, one.at, x, c->x, y, c->y, convolution,
                              way.algorithm, workspace, way.workspace, zero.at, w,
                              c->w);
    }

    /* Adds the bias to the channels of the result. */
    void add_bias(dt_cudnn_handle handle, const Sizes &of)
    {
        const bool of_input = call->part == DT_CONVOLUTION_INPUT;
        const int shape[] = {1, of_input ? of.x[1] : of.y[1], 1, 1, 1};
        const LibraryScalar one(wide, 1);
        done(dnn->tensor_create(&bias));
        tensor(bias, of.ndim, shape);
        if (!status)
            status = dnn->add(handle, one.at, bias, call->bias, one.at,
                              of_input ? x : y, of_input ? call->x : call->y);
    }

    int status = 0; /* of the first call that failed */

  private:
    void done(int result) { status = status ? status : result; }
    void math(int how)
    {
        if (!status)
            status = dnn->convolution_set_math(convolution, how);
    }
    void tensor(void *description, int ndim, const int *shape)
    {
        int strides[5], step = 1;
        for (int d = ndim - 1; d >= 0; step *= shape[d--])
            strides[d] = step;
        if (!status)
            status = dnn->tensor_set(description, type, ndim, shape, strides);
    }

    const dt_cudnn *dnn;
    const dt_convolution *call;
    int type;
    bool wide; /* elements and sums are doubles */
    void *x = nullptr, *w = nullptr, *y = nullptr, *bias = nullptr;
    void *convolution = nullptr;
};

/* The key of a choice that is kept. */
typedef std::vector<int> Key;

Key key_of(int device, const dt_convolution *call, const Sizes &of)
{
    Key key = {device,  call->part,         call->dtype, call->tf32, (int)call->groups,
               of.ndim, call->deterministic};
    for (const int *each : {of.x, of.w, of.y})
        key.insert(key.end(), each, each + of.ndim);
    for (const int *each : {of.padding, of.stride, of.dilation})
        key.insert(key.end(), each, each + of.ndim - 2);
    return key;
}

/* Whether cuDNN says that it has no way to compute this. */
bool is_unable(int status)
{
    return status >= DT_CUDNN_BAD_PARAM && status < DT_CUDNN_INTERNAL_ERROR;
}

} /* namespace */

int dt_cuda_cudnn_version(void)
{
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    return cudnn_get() ? cudnn_library.version : 0;
}

/* On an H100 a call of it takes the host 90 us, and 90 MB of patches take 50 us (bfloat16)
 * to 120 us (float32). */
int64_t cudnn_from_bytes(void)
{
#ifdef DT_SIMULATED
    if (sim_cudnn_takes_all())
        return 0;
#endif
    return (int64_t)1 << 28;
}

int cudnn_convolve(dt_stream stream, const dt_convolution *call)
{
    static Choices<Key, dt_cudnn_choice> choices;
    static bool unusable[DT_MAX_DEVICES];
    Sizes of;
    if (!call->library || !of.take(call))
        return 0;
    dt_locked guard(DT_LOCK_LIBRARY_CALLS);
    const dt_cudnn *dnn = cudnn_get();
    if (!dnn || unusable[stream.device])
        return 0;
    auto handle = library_handle<dt_cudnn_handle>(&cudnn_library, dnn, stream);
    if (!handle) {
        /* It cannot start within a capture. */
        unusable[stream.device] = !graphs_under_way();
        dt_error_clear();
        return 0;
    }
    const Key key = key_of(stream.device, call, of);
    dt_cudnn_choice *known = choices.find(key);
    if (known && known->status)
        return 0;
    Described described(dnn, call, of);
    if (!known)
        known = choices.keep(key, described.choose(handle));
    dt_cudnn_choice &choice = *known;
    if (choice.status)
        return 0;
    Scratch workspace(stream, choice.workspace ? choice.workspace : 1);
    if (!workspace.data) {
        dt_error_clear();
        return 0;
    }
    described.convolve(handle, choice, workspace.data);
    if (!described.status && call->bias)
        described.add_bias(handle, of);
    if (!described.status)
        return 1;
    choice.status = described.status; /* do not try again */
    if (is_unable(described.status))
        return 0;
    return library_fail(&cudnn_library, described.status, "convolving");
}
