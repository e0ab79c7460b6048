/* Sorts long rows: a LSD radix sort of their elements' keys. There is a stable pass for each
 * digit, from the lowest on.
 *
 * A first kernel counts all digits of a row. Each pass is one kernel. A block sorts a tile
 * of the row in shared memory, so that neighbouring threads mostly write to neighbouring
 * addresses, and gets the number of elements of each digit in earlier tiles from the blocks
 * before (decoupled look-back: Merrill and Garland, 2016; Adinets and Merrill, 2022). Tiles
 * begin in order, so concurrent writes are close together and fill cache lines. Elements
 * move with their indices; keys are computed again in each pass, and the last pass writes
 * the results.
 */
#ifndef DT_CUDA_KERNELS_RADIX_H
#define DT_CUDA_KERNELS_RADIX_H

#include "cuda/kernels/compute.h"
#include "cuda/kernels/warp.h"

#define DT_FN static __device__ __forceinline__
#include "ops/sort.h"
NO_POINTERS(dt_key_order)

namespace {

/* --- bits of elements --- */

/* Elements of up to 4 bytes share kernels, which know when they run how many bytes
 * those are; elements of 8 bytes have their own. */
template <typename B>
DT_FN B bits_at(const void *x, int64_t i, int size)
{
    if (sizeof(B) == 8 || size == 4)
        return ((const B *)x)[i];
    return size == 2 ? ((const uint16_t *)x)[i] : ((const uint8_t *)x)[i];
}
template <typename B>
DT_FN void put_bits(void *out, int64_t i, int size, B bits)
{
    if (sizeof(B) == 8 || size == 4)
        ((B *)out)[i] = bits;
    else if (size == 2)
        ((uint16_t *)out)[i] = (uint16_t)bits;
    else
        ((uint8_t *)out)[i] = (uint8_t)bits;
}

namespace radix {

#define DIGITS 256 /* of 8 bits; a block has a thread for each */
#define WARPS  (BLOCK / 32)
static_assert(DIGITS == BLOCK, "a thread is one of a tile and one of a digit");

/* Elements of a thread in a tile, and how many of them it has asked for at a time: more
 * would take more registers, and more code, than they save. */
template <typename B>
constexpr unsigned items_of = sizeof(B) == 8 ? 8 : 16;
template <typename B>
constexpr unsigned tile_of = items_of<B> * BLOCK;
#define GROUP 4

struct Pass {
    unsigned n;     /* elements of a row */
    unsigned width; /* elements that the result has of a row, the first in order */
    unsigned tiles; /* of a row */
    int size;       /* bytes of an element */
    unsigned pass;  /* the digit's number, from the lowest on */
    unsigned passes;
    dt_key_order order;
};
NO_POINTERS(Pass)

template <typename B>
DT_FN unsigned digit_of(B element, const Pass &p)
{
    return (unsigned)(dt_key_of(element, p.order) >> 8 * p.pass) & (DIGITS - 1);
}

/* Four elements of a run, 32 apart: a warp has a part of the tile, and its lanes are
 * neighbours. Those from number `left` on are 0. */
template <typename T, typename Stored>
DT_FN Vector<T, GROUP> load_group(const Stored *run, unsigned at, unsigned left)
{
    Vector<T, GROUP> group;
    run += at;
    UNROLL
    for (unsigned k = 0; k < GROUP; k++)
        group.v[k] = at + 32 * k < left ? run[32 * k] : (T)0;
    return group;
}
template <typename B>
DT_FN Vector<B, GROUP> load_group(const void *x, int64_t first, unsigned at,
                                  unsigned left, int size)
{
    if (sizeof(B) == 8 || size == 4)
        return load_group<B>((const B *)x + first, at, left);
    return size == 2 ? load_group<B>((const uint16_t *)x + first, at, left)
                     : load_group<B>((const uint8_t *)x + first, at, left);
}
/* f(at) for the first element of each group that a thread has of a tile. */
template <typename B, class F>
DT_FN void each_group(F f)
{
    unsigned at = threadIdx.x / 32 * 32 * items_of<B> + threadIdx.x % 32;
    ROLLED
    for (unsigned k = 0; k < items_of<B>; k += GROUP, at += 32 * GROUP)
        f(at);
}
/* f(at) for the elements of a sorted tile that a thread writes. */
template <typename B, class F>
DT_FN void each_sorted(unsigned left, F f)
{
    unsigned at = threadIdx.x;
    ROLLED
    for (unsigned k = 0; k < items_of<B>; k += GROUP) {
        UNROLL
        for (unsigned i = 0; i < GROUP; i++, at += BLOCK)
            if (at < left)
                f(at);
    }
}

/* The lanes of the warp whose digit is this one's. */
DT_FN unsigned lanes_with(unsigned digit)
{
    unsigned lanes = 0xffffffffu;
    UNROLL
    for (unsigned bit = 1; bit < DIGITS; bit *= 2) {
        unsigned set = digit & bit;
        /* Else the compiler shifts the bit down to test it. */
        asm("" : "+r"(set));
        lanes &= __ballot_sync(0xffffffffu, (int)set) ^ (set ? 0 : 0xffffffffu);
    }
    return lanes;
}

/* Adds to totals, zeros at first, how many elements of a row have each digit of each
 * pass: some blocks for each row. */
template <typename B>
__global__ void count_kernel(const void *x, unsigned *totals, unsigned blocks,
                             GRID_CONSTANT(Pass) p)
{
    STATIC_SHARED(unsigned[sizeof(B)][DIGITS], count);
    const unsigned row = blockIdx.x / blocks, block = blockIdx.x - row * blocks;
    ROLLED
    for (unsigned k = 0; k < p.passes; k++)
        count[k][threadIdx.x] = 0;
    __syncthreads();
    ROLLED
    for (unsigned tile = block; tile < p.tiles; tile += blocks) {
        const unsigned place = tile * tile_of<B>, left = p.n - place;
        each_group<B>([&](unsigned at) {
            Vector<B, GROUP> group =
                load_group<B>(x, (int64_t)row * p.n + place, at, left, p.size);
            UNROLL
            for (unsigned k = 0; k < GROUP; k++) {
                B key = dt_key_of(group.v[k], p.order);
                ROLLED
                for (unsigned d = 0; d < p.passes && at + 32 * k < left; d++) {
                    atomicAdd(&count[d][key & (DIGITS - 1)], 1u);
                    key >>= 8;
                }
            }
        });
    }
    __syncthreads();
    ROLLED
    for (unsigned k = 0; k < p.passes; k++)
        if (count[k][threadIdx.x])
            atomicAdd(&totals[((int64_t)row * p.passes + k) * DIGITS + threadIdx.x],
                      count[k][threadIdx.x]);
}

/* Tables that the blocks of a row with several tiles share; zeros before the first pass. */
struct Known {
    unsigned *totals;  /* of the row's digits, by pass */
    unsigned *tickets; /* of passes */
    /* For each digit of a tile a number, below a mark: 2 * pass + 1, how many elements it
     * has in the tile, then 2 * pass + 2, in all of the row up to the tile's end. */
    uint64_t *counts;
};
POINTERS_OF(Known, f(s.totals); f(s.tickets); f(s.counts);)

/* A block for each tile: moves its elements, with their indices in the row (NULL: 0, 1,
 * ...), to their positions in the order of the digit: to `out` (or NULL), and the indices
 * to places_out or, in the last pass, to `index`. */
template <typename B>
__global__ void __launch_bounds__(BLOCK, 4)
    move_kernel(const void *x, const unsigned *places, void *out, unsigned *places_out,
                int64_t *index, Known known, GRID_CONSTANT(Pass) p)
{
    constexpr unsigned TILE = tile_of<B>;
    union Sorted {
        B elements[TILE];
        unsigned places[TILE];
    };
    STATIC_SHARED(Sorted, sorted);
    STATIC_SHARED(uint8_t[TILE], digits); /* of the sorted elements */
    /* For each element of the tile: first its digit, and its rank among the warp's elements
     * with that digit; then its index in the sorted tile. */
    STATIC_SHARED(unsigned[TILE], spots);
    STATIC_SHARED(unsigned short[WARPS][DIGITS], counts);
    STATIC_SHARED(unsigned[DIGITS],
                  starts); /* of a digit: its index in the row less that in the tile */
    STATIC_SHARED(unsigned, ticket);
    auto plus = [](unsigned a, unsigned b) { return a + b; };
    const unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const bool alone = p.tiles == 1;
    unsigned all, block = blockIdx.x;
    if (!alone) {
        if (threadIdx.x == 0)
            ticket = atomicAdd(&known.tickets[p.pass], 1u);
        __syncthreads();
        block = ticket;
    }
    const unsigned row = block / p.tiles, place = (block - row * p.tiles) * TILE;
    const unsigned left = p.n - place < TILE ? p.n - place : TILE;
    const int64_t tile = (int64_t)row * p.n + place, to_row = (int64_t)row * p.width;

    /* The begin of the elements with this thread's digit. */
    unsigned next = 0;
    if (!alone)
        next = before_in_block(
            known.totals[((int64_t)row * p.passes + p.pass) * DIGITS + threadIdx.x], 0u,
            &all, sorted.places, plus);
    UNROLL
    for (unsigned k = 0; k < DIGITS / 32; k++)
        counts[warp][32 * k + lane] = 0;
    __syncwarp();

    /* Pad the last tile with keys that sort last. */
    each_group<B>([&](unsigned at) {
        Vector<B, GROUP> group = load_group<B>(x, tile, at, left, p.size);
        UNROLL
        for (unsigned k = 0; k < GROUP; k++) {
            unsigned digit = digit_of(group.v[k], p);
            digit = at + 32 * k < left ? digit : DIGITS - 1;
            unsigned peers = lanes_with(digit);
            unsigned lower = peers & ((1u << lane) - 1);
            unsigned seen = counts[warp][digit];
            __syncwarp();
            if (!lower)
                counts[warp][digit] = (unsigned short)(seen + __popc(peers));
            __syncwarp();
            spots[at + 32 * k] = digit << 16 | (seen + __popc(lower));
        }
    });
    __syncthreads();

    /* The digit with this thread's number: its range in the tile, warp by warp. */
    unsigned total = 0;
    ROLLED
    for (unsigned w = 0; w < WARPS; w++)
        total += counts[w][threadIdx.x];
    unsigned start = before_in_block(total, 0u, &all, sorted.places, plus);
    const unsigned first = start;
    ROLLED
    for (unsigned w = 0; w < WARPS; w++) {
        unsigned count = counts[w][threadIdx.x];
        counts[w][threadIdx.x] = (unsigned short)start;
        start += count;
    }
    volatile uint64_t *mine =
        alone ? nullptr : known.counts + (int64_t)block * DIGITS + threadIdx.x;
    const uint64_t mark = (uint64_t)(2 * p.pass + 1) << 32, marks = (uint64_t)1 << 32;
    /* Padding counts to the last digit of the row's last tile alone, which nobody
     * asks. */
    if (!alone)
        *mine = mark + (place ? 0 : marks) + total;
    __syncthreads();

    each_group<B>([&](unsigned at) {
        Vector<B, GROUP> group = load_group<B>(x, tile, at, left, p.size);
        UNROLL
        for (unsigned k = 0; k < GROUP; k++) {
            unsigned digit = spots[at + 32 * k] >> 16;
            unsigned spot = counts[warp][digit] + (spots[at + 32 * k] & 0xffff);
            sorted.elements[spot] = group.v[k];
            digits[spot] = (uint8_t)digit;
            spots[at + 32 * k] = spot;
        }
    });
    if (alone) {
        next = first;
    } else if (place) {
        unsigned before = 0;
        uint64_t found;
        volatile uint64_t *other = mine;
        do {
            other -= DIGITS;
            do
                found = *other;
            while (found < mark);
            before += (unsigned)found;
        } while (found < mark + marks);
        *mine = mark + marks + (before + total);
        next += before;
    }
    starts[threadIdx.x] = next - first;
    __syncthreads();
    if (out)
        each_sorted<B>(left, [&](unsigned at) {
            unsigned to = starts[digits[at]] + at;
            if (to < p.width)
                put_bits(out, to_row + to, p.size, sorted.elements[at]);
        });
    __syncthreads();
    each_group<B>([&](unsigned at) {
        Vector<unsigned, GROUP> group = {};
        if (places)
            group = load_group<unsigned>(places + tile, at, left);
        UNROLL
        for (unsigned k = 0; k < GROUP; k++)
            sorted.places[spots[at + 32 * k]] =
                places ? group.v[k] : place + at + 32 * k;
    });
    __syncthreads();
    each_sorted<B>(left, [&](unsigned at) {
        unsigned to = starts[digits[at]] + at, from = sorted.places[at];
        if (to >= p.width)
            return;
        if (index)
            index[to_row + to] = from;
        else
            places_out[to_row + to] = from;
    });
}

/* Blocks that fill a large GPU. */
static const int64_t kBlocks = 1024;

static size_t rounded(int64_t bytes)
{
    return ((size_t)bytes + 255) / 256 * 256;
}

/* Sorts by the lowest `passes` bytes of the keys. */
template <typename B>
int sort(dt_stream stream, const dt_sorting *s, int passes)
{
    const int size = (int)dt_dtype_size(s->dtype);
    Pass p = {};
    p.n = (unsigned)s->n;
    p.tiles = (unsigned)((s->n + tile_of<B> - 1) / tile_of<B>);
    p.passes = (unsigned)passes;
    p.size = size;
    p.order = dt_key_order_of(s->dtype, s->descending);

    /* The tables, and up to two sets of indices and elements, which alternate as source
     * and target; the last pass needs none. */
    const int64_t tiles = s->rows * p.tiles, items = s->rows * s->n;
    const bool alone = p.tiles == 1;
    const size_t totals =
        rounded(s->rows * passes * DIGITS * (int64_t)sizeof(unsigned));
    const size_t tickets = rounded(passes * (int64_t)sizeof(unsigned));
    const size_t tables =
        alone ? 0
              : totals + tickets + rounded(tiles * DIGITS * (int64_t)sizeof(uint64_t));
    const size_t places_bytes = rounded(items * (int64_t)sizeof(unsigned));
    const size_t set_bytes = places_bytes + rounded(items * size);
    const size_t sets = passes > 2 ? 2 : (size_t)passes - 1;
    Scratch memory(stream, tables + sets * set_bytes);
    if (!memory.data)
        return -1;
    Known known = {};
    if (!alone) {
        known.totals = (unsigned *)memory.data;
        known.tickets = (unsigned *)((char *)memory.data + totals);
        known.counts = (uint64_t *)((char *)known.tickets + tickets);
        const int64_t wanted = kBlocks / s->rows, blocks = wanted < 1         ? 1
                                                           : wanted < p.tiles ? wanted
                                                                              : p.tiles;
        CUDA_TRY("counting digits",
                 cudaMemsetAsync(memory.data, 0, tables, (cudaStream_t)stream.handle));
        if (START_BARRIERS("counting digits", stream, (count_kernel<B>),
                           s->rows * blocks, s->x, known.totals, (unsigned)blocks, p))
            return -1;
    }
    const void *x = s->x;
    const unsigned *places = nullptr;
    for (; p.pass < p.passes; p.pass++) {
        bool ends = p.pass == p.passes - 1;
        char *set = (char *)memory.data + tables + (size_t)(p.pass % 2) * set_bytes;
        void *out = ends ? s->values : set + places_bytes;
        unsigned *places_out = ends ? nullptr : (unsigned *)set;
        p.width = (unsigned)(ends ? s->k : s->n);
        if (START_BARRIERS("sorting by a digit", stream, (move_kernel<B>), tiles, x,
                           places, out, places_out, ends ? s->index : nullptr, known,
                           p))
            return -1;
        x = out;
        places = places_out;
    }
    return 0;
}

#undef GROUP
#undef WARPS
#undef DIGITS

} // namespace radix
} // namespace

#endif
