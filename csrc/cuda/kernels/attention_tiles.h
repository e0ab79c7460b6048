/* Shared by the kernels of attention on the tensor cores of a warp (mma.h), of 16 bits and
 * of float32: tiles of shared memory, and rows of products in registers. E is the type of
 * elements as they are stored, uint16_t or float.
 *
 * A float32 is split into big + small, of 11 bits each; what that loses is below 2^-21 of
 * it. A product is big * big + (big * small + small * big), where the sum in parentheses is
 * kept apart: as exact as a product rounded to float32. Tensor cores round sums toward zero,
 * so they add few products at a time, and additions of float32 add those sums. */
#ifndef DT_CUDA_KERNELS_ATTENTION_TILES_H
#define DT_CUDA_KERNELS_ATTENTION_TILES_H

#include "cuda/kernels/attention_dropout.h"
#include "cuda/kernels/attention_tensor_cores.h"

namespace {

#define WARP_ROWS 16
/* To keep wheels small, the kernels are empty for older architectures, where nothing starts
 * them (dt_attention_on_tensor_cores). */
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define IS_TOO_OLD true
#else
#define IS_TOO_OLD false
#endif

template <typename E>
constexpr int of_chunk = 16 / (int)sizeof(E); /* a chunk has 16 bytes */
template <typename E>
constexpr bool are_halves = sizeof(E) == 2;

static __device__ __forceinline__ int lane_number()
{
    return (int)threadIdx.x % 32;
}
/* The first row of the warp in its block. */
static __device__ __forceinline__ int warp_row()
{
    return (int)threadIdx.x / 32 * WARP_ROWS;
}

/* f(T()) for the type of the elements: the same for all of a launch. */
template <class F>
static __device__ __forceinline__ void with_halves(const dt_attention_call &c, F f)
{
    if (c.dtype == DT_FLOAT16) {
        if constexpr (has_mma<dt_float16>)
            f(dt_float16());
    } else {
        if constexpr (has_mma<dt_bfloat16>)
            f(dt_bfloat16());
    }
}

/* Rows of a matrix of one batch and head. */
template <typename E>
struct Matrix {
    E *data;
    int64_t row;
    int count, size;
    bool in_chunks; /* it is aligned, so that chunks are read and written whole */
    __device__ __forceinline__ Matrix(const dt_attention_matrices &m, int batch,
                                      int head, int64_t rows, int64_t columns)
        : data((E *)m.data + batch * m.batch + head * m.head), row(m.row),
          count((int)rows), size((int)columns),
          in_chunks(is_aligned(data, 16) && (row | size) % of_chunk<E> == 0)
    {
    }
    __device__ __forceinline__ Matrix from(int first) const
    {
        Matrix rest = *this;
        rest.data += first * row;
        rest.count -= first;
        return rest;
    }
};

template <typename To, typename From>
static __device__ __forceinline__ To same_bits(From from)
{
    To to;
    __builtin_memcpy(&to, &from, sizeof to);
    return to;
}

/* The position in shared memory, in elements, of a chunk of a row of `chunks`. The same chunk
 * of 8 successive rows is in different banks: by a permutation of a row's chunks or, for
 * float32, whose kernels have no registers for that, by an unused chunk after each row. */
template <typename E>
static __device__ __forceinline__ int chunk_place(int row, int chunk, int chunks)
{
    return (are_halves<E> ? row * chunks + (chunk ^ (row & 7))
                          : row * (chunks + 1) + chunk) *
           of_chunk<E>;
}

/* All threads of a block start to copy `rows` rows of 1 << shift chunks to shared memory;
 * elements past the matrix become zeros. store_rows copies them back. */
template <typename E>
LONG void fill_rows(AsyncCopies &copies, E *to, Matrix<E> from, int rows, int shift)
{
    ROLLED
    for (int u = (int)threadIdx.x; u < rows << shift; u += (int)blockDim.x) {
        int row = u >> shift, chunk = u & ((1 << shift) - 1);
        E *at = to + chunk_place<E>(row, chunk, 1 << shift);
        const E *source = from.data + row * from.row + chunk * of_chunk<E>;
        int n = row < from.count ? from.size - chunk * of_chunk<E> : 0;
        if (from.in_chunks) {
            copies.start(at, source, n > 0);
            continue;
        }
        ROLLED
        for (int e = 0; e < of_chunk<E>; e++)
            at[e] = e < n ? source[e] : (E)0;
    }
}
template <typename E>
LONG void store_rows(const E *from, Matrix<E> to, int rows, int shift)
{
    ROLLED
    for (int u = (int)threadIdx.x; u < rows << shift; u += (int)blockDim.x) {
        int row = u >> shift, chunk = u & ((1 << shift) - 1);
        const E *at = from + chunk_place<E>(row, chunk, 1 << shift);
        E *target = to.data + row * to.row + chunk * of_chunk<E>;
        int n = row < to.count ? to.size - chunk * of_chunk<E> : 0;
        if (to.in_chunks && n > 0)
            *(Vector<E, of_chunk<E>> *)target = *(const Vector<E, of_chunk<E>> *)at;
        ROLLED
        for (int e = 0; e < of_chunk<E> && e < n && !to.in_chunks; e++)
            target[e] = at[e];
    }
}

/* ROWS rows of D elements in shared memory. */
template <typename E, int ROWS, int D>
struct Tile {
    static constexpr int chunks = D / of_chunk<E>;
    alignas(16) E data[ROWS * (are_halves<E> ? D : D + of_chunk<E>)];
    static constexpr int shift = chunks == 8 ? 3 : chunks == 16 ? 4 : 5;

    __device__ __forceinline__ E *chunk(int row, int at)
    {
        return data + chunk_place<E>(row, at, chunks);
    }
    __device__ __forceinline__ void fill(AsyncCopies &copies, const Matrix<E> &from)
    {
        fill_rows(copies, data, from, ROWS, shift);
    }
    /* The same, inlined, for the loop of a kernel. */
    template <int THREADS>
    __device__ __forceinline__ void fill_inline(AsyncCopies &copies,
                                                const Matrix<E> &from)
    {
        if (!from.in_chunks)
            return fill(copies, from);
        int row = (int)threadIdx.x / chunks, at = (int)threadIdx.x % chunks;
        int count = at * of_chunk<E> < from.size ? from.count - row : 0;
        const E *source = from.data + row * from.row + at * of_chunk<E>;
        UNROLL
        for (int i = 0; i < ROWS; i += THREADS / chunks) {
            copies.start(chunk(row + i, at), source, i < count);
            source += THREADS / chunks * from.row;
        }
    }
    __device__ __forceinline__ void store(const Matrix<E> &to)
    {
        store_rows(data, to, ROWS, shift);
    }
    /* A fragment a of rows from `row` on and the columns of two chunks from 2 * k on. */
    __device__ __forceinline__ void rows(unsigned (&a)[4], int row, int k)
    {
        load_matrices<false>(
            a, [&](int lane) { return chunk(row + lane % 16, 2 * k + lane / 16); });
    }
    /* Two fragments b of the transposed tile, whose 16 columns are rows from `row` on. */
    __device__ __forceinline__ void across(unsigned (&b)[4], int row, int k)
    {
        load_matrices<false>(b, [&](int lane) {
            return chunk(row + lane / 16 * 8 + lane % 8, 2 * k + lane / 8 % 2);
        });
    }
    /* Two fragments b of 16 columns from 16 * n on: of 16 rows, or of 8 of float32, which
     * come in the order of Strip::factor(). */
    __device__ __forceinline__ void down(unsigned (&b)[4], int row, int n)
    {
        if constexpr (are_halves<E>) {
            load_matrices<true>(
                b, [&](int lane) { return chunk(row + lane % 16, 2 * n + lane / 16); });
        } else {
            const int lane = lane_number();
            const float *at = chunk(row + lane % 4 * 2, 4 * n) + lane / 4;
            UNROLL
            for (int r = 0; r < 4; r++)
                b[r] =
                    same_bits<unsigned>(at[chunk_place<E>(r % 2, r / 2 * 2, chunks)]);
        }
    }
};

/* A float32 in parts, big + small. */
struct Parts {
    unsigned big[4], small[4];
    __device__ __forceinline__ explicit Parts(const unsigned (&of)[4])
    {
        UNROLL
        for (int i = 0; i < 4; i++) {
            big[i] = of[i] & 0xFFFFE000u;
            small[i] =
                same_bits<unsigned>(same_bits<float>(of[i]) - same_bits<float>(big[i]));
        }
    }
};
#define SUMMED_STEPS 4 /* of 8 products, by tensor cores before float32 adds them */
/* Two fragments c side by side of products of float32. */
struct PartSums {
    float big[2][4] = {}, small[2][4] = {};
    template <class P>
    __device__ __forceinline__ void add(P &products, const Parts &a, const Parts &b)
    {
        UNROLL
        for (int h = 0; h < 2; h++) {
            products.add(small[h], a.small, {b.big[2 * h], b.big[2 * h + 1]});
            products.add(small[h], a.big, {b.small[2 * h], b.small[2 * h + 1]});
            products.add(big[h], a.big, {b.big[2 * h], b.big[2 * h + 1]});
        }
    }
    __device__ __forceinline__ void add_to(float (*c)[4]) const
    {
        UNROLL
        for (int h = 0; h < 2; h++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                c[h][e] += big[h][e] + small[h][e];
        }
    }
};

/* 16 rows and N columns of float32 in the registers of a warp: of eight columns each,
 * a fragment c. */
template <int N>
struct Strip {
    float v[N / 8][4];
    __device__ __forceinline__ void clear()
    {
        UNROLL
        for (int n = 0; n < N / 8; n++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                v[n][e] = 0;
        }
    }
    /* Calls f(h, column, element): h is 0 in row lane / 4 of the warp, 1 in the row 8 below. */
    template <class F>
    __device__ __forceinline__ void each(F f)
    {
        int column = lane_number() % 4 * 2;
        UNROLL
        for (int n = 0; n < N / 8; n++) {
            UNROLL
            for (int e = 0; e < 4; e++)
                f(e / 2, n * 8 + column + e % 2, v[n][e]);
        }
    }
    /* Elements times `factor`, but 0 where their bit, 4 * n + e of v[n][e], is not set. */
    __device__ __forceinline__ void keep(unsigned bits, float factor)
    {
        UNROLL
        for (int i = 0; i < N / 2; i++)
            v[i / 4][i % 4] = bits >> i & 1 ? v[i / 4][i % 4] * factor : 0;
    }
    /* Adds two fragments side by side. */
    template <class P>
    __device__ __forceinline__ void add(P &products, int n, const unsigned (&a)[4],
                                        const unsigned (&b)[4])
    {
        products.add(v[n], a, {b[0], b[1]});
        products.add(v[n + 1], a, {b[2], b[3]});
    }
    /* The fragment a of columns 16 * k to 16 * k + 15. */
    template <typename T>
    __device__ __forceinline__ void rounded(unsigned (&a)[4], int k) const
    {
        UNROLL
        for (int r = 0; r < 4; r++) {
            const float (&c)[4] = v[2 * k + r / 2];
            a[r] = half_pair<T>(c[r % 2 * 2], c[r % 2 * 2 + 1]);
        }
    }
    /* The fragment a of columns 8 * k to 8 * k + 7, those of even numbers first, as
     * Tile::down() has rows. */
    __device__ __forceinline__ Parts parts(int k) const
    {
        unsigned a[4];
        UNROLL
        for (int r = 0; r < 4; r++)
            a[r] = same_bits<unsigned>(v[k][r % 2 * 2 + r / 2]);
        return Parts(a);
    }
    /* Writes the rows, each times its factor, to those of a tile from `row` on. */
    template <typename E, int ROWS>
    __device__ __forceinline__ void show(const dt_attention_call &c,
                                         Tile<E, ROWS, N> &tile, int row,
                                         const float (&factor)[2]) const
    {
        int i = row + lane_number() / 4, column = lane_number() % 4 * 2;
        UNROLL
        for (int n = 0; n < N / 8; n++) {
            UNROLL
            for (int h = 0; h < 2; h++) {
                float low = v[n][2 * h] * factor[h], high = v[n][2 * h + 1] * factor[h];
                if constexpr (are_halves<E>)
                    *(unsigned *)(tile.chunk(i + 8 * h, n) + column) =
                        c.dtype == DT_FLOAT16 ? half_pair<dt_float16>(low, high)
                                              : half_pair<dt_bfloat16>(low, high);
                else
                    *(Vector<float, 2> *)(tile.chunk(i + 8 * h, 2 * n) +
                                          column) = {{low, high}};
            }
        }
    }
};

/* strip = the warp's rows times those of the tile, of `size` columns. a(k, fragment) gives
 * fragment k of the warp's rows. */
template <int D, int N, class A>
static __device__ __forceinline__ void
multiply(const dt_attention_call &c, Strip<N> &strip, Tile<uint16_t, N, D> &tile,
         int64_t, A a)
{
    strip.clear();
    with_halves(c, [&](auto type) {
        WarpProducts<decltype(type), D / 16 * N / 8> products;
        UNROLL
        for (int k = 0; k < D / 16; k++) {
            unsigned mine[4], others[4];
            a(k, mine);
            UNROLL
            for (int n = 0; n < N / 16; n++) {
                tile.across(others, n * 16, k);
                strip.add(products, 2 * n, mine, others);
            }
        }
        products.run();
    });
}
template <int D, int N, class A>
static __device__ __forceinline__ void
multiply(const dt_attention_call &, Strip<N> &strip, Tile<float, N, D> &tile,
         int64_t size, A a)
{
    strip.clear();
    ROLLED
    for (int first = 0; first * 8 < (int)size; first += SUMMED_STEPS) {
        WarpProducts<float, SUMMED_STEPS * N / 16 * 6> products;
        PartSums sums[N / 16];
        UNROLL
        for (int k = 0; k < SUMMED_STEPS; k++) {
            unsigned mine[4], others[4];
            a(first + k, mine);
            const Parts parts(mine);
            UNROLL
            for (int n = 0; n < N / 16; n++) {
                tile.across(others, n * 16, first + k);
                sums[n].add(products, parts, Parts(others));
            }
        }
        products.run();
        UNROLL
        for (int n = 0; n < N / 16; n++)
            sums[n].add_to(strip.v + 2 * n);
    }
}

/* sums += factors times the tile. For a tile of 16 bits, factors are rounded to its type. */
template <int D, int N>
static __device__ __forceinline__ void
add_product(const dt_attention_call &c, Strip<D> &sums, const Strip<N> &factors,
            Tile<uint16_t, N, D> &tile, int64_t)
{
    with_halves(c, [&](auto type) {
        WarpProducts<decltype(type), N / 16 * D / 8> products;
        UNROLL
        for (int k = 0; k < N / 16; k++) {
            unsigned mine[4], others[4];
            factors.template rounded<decltype(type)>(mine, k);
            UNROLL
            for (int n = 0; n < D / 16; n++) {
                tile.down(others, k * 16, n);
                sums.add(products, 2 * n, mine, others);
            }
        }
        products.run();
    });
}
template <int D, int N>
static __device__ __forceinline__ void
add_product(const dt_attention_call &, Strip<D> &sums, const Strip<N> &factors,
            Tile<float, N, D> &tile, int64_t size)
{
    UNROLL
    for (int n = 0; n < D / 16; n++) {
        if (n * 16 >= (int)size)
            break;
        WarpProducts<float, N / 8 * 6> products;
        PartSums added;
        UNROLL
        for (int k = 0; k < N / 8; k++) {
            unsigned others[4];
            tile.down(others, k * 8, n);
            added.add(products, factors.parts(k), Parts(others));
        }
        products.run();
        added.add_to(sums.v + 2 * n);
    }
}
} // namespace

#endif
