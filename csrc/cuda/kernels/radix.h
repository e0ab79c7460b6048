/* Long rows in order, by the digits of their elements' keys: a pass for each digit,
 * from the lowest on, brings the elements in the order of that digit and leaves those
 * of one digit as they were (LSD radix sort).
 *
 * A row is cut into parts, each of which is a block's. In a pass a first kernel counts
 * the digits of each part, a second one adds up what the parts before each have, and a
 * third one moves the elements. Within a part a block goes from tile to tile: it sorts
 * a tile in shared memory first, so that what neighbouring threads write mostly lies
 * side by side. Elements move with their places, so keys are computed again in each
 * pass, and the last pass writes the results. */
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
/* Counts that a thread adds up without waiting between. */
#define AT_ONCE 8
static_assert(DIGITS == BLOCK, "a thread is one of a tile and one of a digit");

/* Elements of a thread in a tile, and how many of them it has asked for at a time: more
 * would take more registers, and more code, than they save. */
template <typename B>
constexpr unsigned items_of = sizeof(B) == 8 ? 8 : 12;
template <typename B>
constexpr unsigned tile_of = items_of<B> * BLOCK;
#define GROUP 4

struct Pass {
    unsigned n;     /* elements of a row */
    unsigned width; /* elements that the result has of a row, the first in order */
    unsigned parts; /* of a row */
    unsigned part;  /* elements of a part, whole tiles */
    int size;       /* bytes of an element */
    int shift;      /* of a key, to the digit */
    dt_key_order order;
};
NO_POINTERS(Pass)

/* The work of a block: the elements of a part. */
struct Part {
    unsigned row, place, left; /* place: of its first element in the row */
    int64_t at;                /* where that element is */
};
DT_FN Part part_of_block(const Pass &p)
{
    unsigned row = blockIdx.x / p.parts, place = (blockIdx.x - row * p.parts) * p.part;
    unsigned left = p.n - place < p.part ? p.n - place : p.part;
    return {row, place, left, (int64_t)row * p.n + place};
}

template <typename B>
DT_FN unsigned digit_of(B element, const Pass &p)
{
    return (unsigned)(dt_key_of(element, p.order) >> p.shift) & (DIGITS - 1);
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

/* One block a part: how many elements each digit has there. */
template <typename B>
__global__ void count_kernel(const void *x, unsigned *counts, GRID_CONSTANT(Pass) p)
{
    __shared__ unsigned count[DIGITS];
    Part part = part_of_block(p);
    count[threadIdx.x] = 0;
    __syncthreads();
    ROLLED
    for (unsigned done = 0; done < part.left; done += GROUP * BLOCK) {
        unsigned at = threadIdx.x / 32 * 32 * GROUP + threadIdx.x % 32;
        unsigned left = part.left - done;
        Vector<B, GROUP> group = load_group<B>(x, part.at + done, at, left, p.size);
        UNROLL
        for (unsigned k = 0; k < GROUP; k++)
            if (at + 32 * k < left)
                atomicAdd(&count[digit_of(group.v[k], p)], 1u);
    }
    __syncthreads();
    counts[(int64_t)blockIdx.x * DIGITS + threadIdx.x] = count[threadIdx.x];
}

/* Exclusive prefix sums of the digit counts over a row's parts, and the row's totals.
 * `groups` blocks are a row's; each has DIGITS / groups digits, and as many threads
 * as there are groups share the parts of a digit. */
__global__ void before_kernel(unsigned *counts, unsigned *totals, unsigned parts,
                              unsigned groups)
{
    __shared__ unsigned sums[BLOCK];
    unsigned row = blockIdx.x / groups, digits = DIGITS / groups;
    unsigned own = threadIdx.x & (digits - 1), group = threadIdx.x / digits;
    unsigned digit = (blockIdx.x - row * groups) * digits + own;
    unsigned each = (parts + groups - 1) / groups, first = group * each;
    unsigned last = first + each < parts ? first + each : parts;
    unsigned *at = counts + (int64_t)row * parts * DIGITS + digit;
    /* f(count of part i), several at a time on their way. */
    auto each_count = [&](auto f) {
        ROLLED
        for (unsigned i = first; i < last; i += AT_ONCE) {
            unsigned count[AT_ONCE];
            UNROLL
            for (unsigned k = 0; k < AT_ONCE; k++)
                count[k] = i + k < last ? at[(int64_t)(i + k) * DIGITS] : 0;
            UNROLL
            for (unsigned k = 0; k < AT_ONCE; k++)
                f(i + k, count[k]);
        }
    };
    unsigned sum = 0, before = 0;
    each_count([&](unsigned, unsigned count) { sum += count; });
    sums[threadIdx.x] = sum;
    __syncthreads();
    ROLLED
    for (unsigned t = own; t < threadIdx.x; t += digits)
        before += sums[t];
    if (group == groups - 1)
        totals[(int64_t)row * DIGITS + digit] = before + sum;
    each_count([&](unsigned i, unsigned count) {
        if (i < last)
            at[(int64_t)i * DIGITS] = before;
        before += count;
    });
}

/* One block a part: its elements, with their places in the row (NULL: as they
 * stand), go to where the row has them in the order of the digit: to `out` (or NULL)
 * and either to places_out or, in the last pass, to `index`. totals are of a row's
 * digits, `before` is what the parts before this one have of them, NULL if there is
 * one part. */
template <typename B>
__global__ void __launch_bounds__(BLOCK, sizeof(B) == 8 ? 4 : MANY_BLOCKS)
    move_kernel(const void *x, const unsigned *places, void *out, unsigned *places_out,
                int64_t *index, const unsigned *totals, const unsigned *before,
                GRID_CONSTANT(Pass) p)
{
    constexpr unsigned TILE = tile_of<B>;
    __shared__ union {
        B elements[TILE];
        unsigned places[TILE];
    } sorted;
    __shared__ uint8_t digits[TILE]; /* of the sorted elements */
    /* For each element of the tile: at first its digit and number among those of its
     * digit in the warp's part, then its place among the sorted. */
    __shared__ unsigned spots[TILE];
    __shared__ unsigned short counts[WARPS][DIGITS];
    __shared__ unsigned
        starts[DIGITS]; /* of a digit: its place less that in the tile */
    auto plus = [](unsigned a, unsigned b) { return a + b; };
    unsigned lane = threadIdx.x % 32, warp = threadIdx.x / 32, all;
    Part part = part_of_block(p);
    int64_t to_row = (int64_t)part.row * p.width;

    /* Where the next element with the digit of this thread's number goes. */
    unsigned total_of_row = totals[(int64_t)part.row * DIGITS + threadIdx.x];
    unsigned next = before_in_block(total_of_row, 0u, &all, sorted.places, plus);
    if (before)
        next += before[(int64_t)blockIdx.x * DIGITS + threadIdx.x];

    for (unsigned done = 0; done < part.left; done += TILE) {
        unsigned left = part.left - done;
        int64_t tile = part.at + done;
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

        /* The digit of this thread's number: its places in the tile, warp by warp. */
        unsigned total = 0;
        ROLLED
        for (unsigned w = 0; w < WARPS; w++)
            total += counts[w][threadIdx.x];
        unsigned start = before_in_block(total, 0u, &all, sorted.places, plus);
        starts[threadIdx.x] = next - start;
        next += total;
        ROLLED
        for (unsigned w = 0; w < WARPS; w++) {
            unsigned count = counts[w][threadIdx.x];
            counts[w][threadIdx.x] = (unsigned short)start;
            start += count;
        }
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
                    places ? group.v[k] : part.place + done + at + 32 * k;
        });
        __syncthreads();
        each_sorted<B>(left, [&](unsigned at) {
            unsigned to = starts[digits[at]] + at, place = sorted.places[at];
            if (to >= p.width)
                return;
            if (index)
                index[to_row + to] = place;
            else
                places_out[to_row + to] = place;
        });
    }
}

/* Blocks that fill a large GPU. */
static const int64_t kBlocks = 1024;

static size_t rounded(int64_t bytes)
{
    return ((size_t)bytes + 255) / 256 * 256;
}

/* By the lowest `passes` bytes of the keys. */
template <typename B>
int sort(dt_stream stream, const dt_sorting *s, int passes)
{
    const int64_t tiles = (s->n + tile_of<B> - 1) / tile_of<B>;
    const int64_t wanted = kBlocks / s->rows > 1 ? kBlocks / s->rows : 1;
    const int64_t of_part = (tiles + wanted - 1) / wanted;
    const int size = (int)dt_dtype_size(s->dtype);
    Pass p = {};
    p.n = (unsigned)s->n;
    p.part = (unsigned)(of_part * tile_of<B>);
    p.parts = (unsigned)((tiles + of_part - 1) / of_part);
    p.size = size;
    p.order = dt_key_order_of(s->dtype, s->descending);
    unsigned groups = 1;
    while (groups < 32 && groups * AT_ONCE < p.parts)
        groups *= 2;

    /* Counts, totals, and up to two sets of places and elements to go to and fro
     * between; the last pass needs none. */
    const int64_t blocks = s->rows * p.parts, items = s->rows * s->n;
    const int64_t all_counts = blocks * DIGITS, all_totals = s->rows * DIGITS;
    const size_t tables =
        rounded((all_counts + all_totals) * (int64_t)sizeof(unsigned));
    const size_t places_bytes = rounded(items * (int64_t)sizeof(unsigned));
    const size_t set_bytes = places_bytes + rounded(items * size);
    const size_t sets = passes > 2 ? 2 : (size_t)passes - 1;
    Scratch memory(stream, tables + sets * set_bytes);
    if (!memory.data)
        return -1;
    unsigned *counts = (unsigned *)memory.data, *totals = counts + all_counts;

    const void *x = s->x;
    const unsigned *places = nullptr;
    for (int pass = 0; pass < passes; pass++) {
        bool ends = pass == passes - 1, cut = p.parts > 1;
        char *set = (char *)memory.data + tables + (size_t)(pass % 2) * set_bytes;
        void *out = ends ? s->values : set + places_bytes;
        unsigned *places_out = ends ? nullptr : (unsigned *)set;
        p.shift = 8 * pass;
        p.width = (unsigned)(ends ? s->k : s->n);
        if (START_BARRIERS("counting digits", stream, (count_kernel<B>), blocks, x,
                           counts, p) ||
            (cut &&
             START_BARRIERS("adding up digits", stream, before_kernel, s->rows * groups,
                            counts, totals, p.parts, groups)) ||
            START_BARRIERS("sorting by a digit", stream, (move_kernel<B>), blocks, x,
                           places, out, places_out, ends ? s->index : nullptr,
                           cut ? totals : counts, cut ? counts : nullptr, p))
            return -1;
        x = out;
        places = places_out;
    }
    return 0;
}

#undef GROUP
#undef AT_ONCE
#undef WARPS
#undef DIGITS

} // namespace radix
} // namespace

#endif
