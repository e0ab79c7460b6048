#include "cuda/kernels/nn_kernels.h"
#include "ops/nn_norm.h"

namespace {

/* --- elements that do not depend on their row: a thread has N of them --- */

/* A vector that a thread has asked for. What it has to wait for, it does in elements_of,
 * so that several are on their way. */
template <typename T, int N>
struct Asked {
    StoredPack<T, N> pack;
    Half half;
};
template <typename T, int N>
static __device__ __forceinline__ Vector<T, N> elements_of(const Asked<T, N> &asked)
{
    return asked.pack.elements(asked.half);
}
template <typename T, int N>
static __device__ __forceinline__ const Vector<T, N> &
elements_of(const Vector<T, N> &vector)
{
    return vector;
}

template <typename T, int N>
struct ElementsRow {
    const dt_nn_params &params;
    Half half;
    int64_t i, channel; /* the first ones */
    bool columns; /* whether each element of a vector is of a channel of its own */

    template <typename E>
    __device__ __forceinline__ Asked<std::remove_const_t<E>, N> read(nn::Row<E> x) const
    {
        typedef std::remove_const_t<E> Element;
        Asked<Element, N> asked;
        asked.half = half;
        asked.pack.read(stored_at<Element>((const char *)x.data, i, half), half);
        return asked;
    }
    __device__ __forceinline__ Vector<T, N> shared(nn::Shared<T> w, T missing) const
    {
        if (!w.data)
            return filled<T, N>(missing);
        if (columns)
            return elements_at<T, N>(stored_at<T>((const char *)w.data, channel, half),
                                     half);
        return filled<T, N>(stored(w.data, channel, half));
    }
    __device__ __forceinline__ Vector<T, N> shared(nn::Statistic<T> w) const
    {
        if (columns && w.data)
            return *(const Vector<T, N> *)(w.data + channel);
        return filled<T, N>(w.data ? w.data[channel] : T(0));
    }
    template <class F, class... S>
    __device__ __forceinline__ void cases(F f, const S &...shared) const
    {
        f(shared...);
    }
    template <class F, class... S>
    __device__ __forceinline__ void write(nn::Out<T> y, F f, const S &...e) const
    {
        put_elements(stored_at<T>((char *)y.data, i, half),
                     each_element<T, N>(f, elements_of(e)...), half);
    }
    template <class F, class... S>
    __device__ __forceinline__ void write(nn::Row<T> y, F f, const S &...e) const
    {
        write(nn::Out<T>{y.data}, f, e...);
    }
};

template <class Op, typename T, int N, bool channels>
__global__ void elements_kernel(GRID_CONSTANT(NnCall) call, int64_t numel)
{
    int64_t i = thread_number() * N, channel = 0;
    if (i >= numel)
        return;
    if (channels) {
        int64_t slab = divide(i, call.by_inner);
        channel = slab - divide(slab, call.by_n) * call.n;
    }
    Op::run(ElementsRow<T, N>{call.params, call.half, i, channel, call.inner == 1},
            nn::named<Op, T>(call.operands));
}

template <class Op, typename T, int N, bool channels>
static int elements_launch(dt_stream stream, const NnCall &call)
{
    int64_t numel = call.rows * call.n;
    return START("starting a normalization", stream,
                 (elements_kernel<Op, T, N, channels>), numel / N, call, numel);
}

/* In vectors, where runs of `run` elements consist of them. Doubles, which are rare, have
 * one form. */
template <class Op, typename T, bool channels>
static int vectors_start(dt_stream stream, const dt_nn_call *given, int64_t run)
{
    constexpr int N = sizeof(T) > 4 ? 1 : vector_size<T>;
    NnCall call;
    bool vectors = run % N == 0;
    if (nn_prepare(stream, given, &call))
        return -1;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        vectors =
            vectors && is_aligned(given->operands[k], call.half && !channels ? 8 : 16);
    return vectors ? elements_launch<Op, T, N, channels>(stream, call)
                   : elements_launch<Op, T, 1, channels>(stream, call);
}

template <class Op, typename T>
static int channels_start(dt_stream stream, const dt_nn_call *given)
{
    return vectors_start<Op, T, true>(stream, given,
                                      given->inner == 1 ? given->n : given->inner);
}
template <class Op, typename T>
static int elements_start(dt_stream stream, const dt_nn_call *given)
{
    return vectors_start<Op, T, false>(stream, given, given->n);
}
/* Elements of which there are few. */
template <class Op, typename T>
static int singles_start(dt_stream stream, const dt_nn_call *given)
{
    NnCall call;
    if (nn_prepare(stream, given, &call))
        return -1;
    return elements_launch<Op, T, 1, false>(stream, call);
}

} // namespace

NN_ENTRY(layer_norm, nn_start)
NN_ENTRY(layer_norm_backward, nn_start)
NN_ENTRY(batch_norm_track, singles_start)
NN_ENTRY(batch_norm, channels_start)
NN_ENTRY(batch_norm_backward, channels_start)
NN_ENTRY(dropout, elements_start)
