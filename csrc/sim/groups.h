/* cooperative_groups.h and what is below it: blocks, tiles of a warp, coalesced threads,
 * their shuffles, reductions and scans. A grid has its ranks; its blocks cannot wait for
 * one another. */
#ifndef DT_SIM_GROUPS_H
#define DT_SIM_GROUPS_H

namespace cooperative_groups {

class thread_block;

/* Threads of a warp, or the whole block. */
class thread_group {
  public:
    void sync(SIM_LINE) const
    {
        if (whole)
            __syncthreads(SIM_OWN_LINE);
        else
            __syncwarp(mask SIM_SAME_LINE);
    }
    unsigned size() const
    {
        return whole ? blockDim.x * blockDim.y * blockDim.z : (unsigned)__popc(mask);
    }
    unsigned num_threads() const { return size(); }
    unsigned thread_rank() const
    {
        return whole
                   ? (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x
                   : rank_of(sim::lane());
    }
    bool is_valid() const { return true; }

  protected:
    thread_group(bool block, unsigned lanes) : whole(block), mask(lanes) {}
    unsigned rank_of(unsigned lane) const
    {
        return (unsigned)__popc(mask & ((1u << lane) - 1));
    }
    /* The lane of a rank. */
    unsigned lane_of(unsigned rank) const
    {
        unsigned rest = mask;
        while (rank-- && rest)
            rest &= rest - 1;
        return rest ? (unsigned)__builtin_ctz(rest) : sim::lane();
    }
    bool whole;
    unsigned mask;
    friend thread_group tiled_partition(const thread_group &, unsigned);
    friend struct Parts;
};

class thread_block : public thread_group {
  public:
    static dim3 group_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static dim3 thread_index() { return dim3(threadIdx.x, threadIdx.y, threadIdx.z); }
    static dim3 group_dim() { return blockDim; }
    static dim3 dim_threads() { return blockDim; }
    /* Arriving does not wait; the wait is for all threads. */
    struct arrival_token {};
    static arrival_token barrier_arrive() { return {}; }
    static void barrier_wait(arrival_token &&SIM_AND_LINE)
    {
        __syncthreads(SIM_OWN_LINE);
    }

  private:
    thread_block() : thread_group(true, 0) {}
    friend thread_block this_thread_block();
};
inline thread_block this_thread_block()
{
    return thread_block();
}

/* A group within a warp. */
class warp_group : public thread_group {
  public:
    template <class T>
    T shfl(T value, unsigned rank SIM_AND_LINE) const
    {
        return sim::shuffle(mask, value, lane_of(rank % size()) SIM_SAME_LINE);
    }
    template <class T>
    T shfl_up(T value, unsigned delta SIM_AND_LINE) const
    {
        const unsigned rank = thread_rank();
        return sim::shuffle(mask, value,
                            lane_of(delta <= rank ? rank - delta : rank) SIM_SAME_LINE);
    }
    template <class T>
    T shfl_down(T value, unsigned delta SIM_AND_LINE) const
    {
        const unsigned rank = thread_rank();
        return sim::shuffle(mask, value,
                            lane_of(delta < size() - rank ? rank + delta : rank)
                                SIM_SAME_LINE);
    }
    int any(int p SIM_AND_LINE) const { return __any_sync(mask, p SIM_SAME_LINE); }
    int all(int p SIM_AND_LINE) const { return __all_sync(mask, p SIM_SAME_LINE); }
    unsigned ballot(int p SIM_AND_LINE) const
    {
        return pack(__ballot_sync(mask, p SIM_SAME_LINE));
    }
    template <class T>
    unsigned match_any(T value SIM_AND_LINE) const
    {
        return pack(__match_any_sync(mask, value SIM_SAME_LINE));
    }
    template <class T>
    unsigned match_all(T value, int &all SIM_AND_LINE) const
    {
        return pack(__match_all_sync(mask, value, &all SIM_SAME_LINE));
    }

  protected:
    explicit warp_group(unsigned lanes) : thread_group(false, lanes & existing()) {}
    /* The lanes of this warp: the last one of a block may have fewer than 32. */
    static unsigned existing()
    {
        const thread_block block = this_thread_block();
        const unsigned left = block.size() - (block.thread_rank() & ~31u);
        return left >= 32 ? ~0u : (1u << left) - 1;
    }
    /* A set of lanes as one of ranks. */
    unsigned pack(unsigned lanes) const
    {
        unsigned ranks = 0;
        for (unsigned rest = mask, rank = 0; rest; rest &= rest - 1, rank++)
            ranks |= (lanes >> __builtin_ctz(rest) & 1u) << rank;
        return ranks;
    }
};

class coalesced_group : public warp_group {
  public:
    unsigned meta_group_size() const { return parts; }
    unsigned meta_group_rank() const { return part; }

  private:
    explicit coalesced_group(unsigned lanes, unsigned parts_ = 1, unsigned part_ = 0)
        : warp_group(lanes), parts(parts_), part(part_)
    {
    }
    unsigned parts, part;
    friend coalesced_group coalesced_threads();
    friend struct Parts;
};
inline __attribute__((always_inline)) coalesced_group coalesced_threads()
{
    return coalesced_group(__activemask());
}
/* The parts of coalesced threads, or of a tile. */
struct Parts {
    static coalesced_group by(const warp_group &group, bool p SIM_AND_LINE)
    {
        const unsigned yes = __ballot_sync(group.mask, p SIM_SAME_LINE);
        const unsigned none = group.mask & ~yes;
        return coalesced_group(p ? yes : none, 1 + (yes && none), p && none);
    }
    template <class T>
    static coalesced_group of(const warp_group &group, T label SIM_AND_LINE)
    {
        const unsigned same = __match_any_sync(group.mask, label SIM_SAME_LINE);
        /* The parts are numbered by their first lanes. */
        const bool first = sim::lane() == (unsigned)__builtin_ctz(same);
        const unsigned firsts = __ballot_sync(group.mask, first SIM_SAME_LINE);
        const unsigned before = firsts & ((1u << __builtin_ctz(same)) - 1);
        return coalesced_group(same, (unsigned)__popc(firsts),
                               (unsigned)__popc(before));
    }
};
inline coalesced_group binary_partition(const warp_group &group, bool p SIM_AND_LINE)
{
    return Parts::by(group, p SIM_SAME_LINE);
}
template <class T>
coalesced_group labeled_partition(const warp_group &group, T label SIM_AND_LINE)
{
    return Parts::of(group, label SIM_SAME_LINE);
}

template <unsigned Size, class Parent = void>
class thread_block_tile : public warp_group {
    static_assert(Size && Size <= 32 && !(Size & (Size - 1)),
                  "a tile has 1, 2, 4, 8, 16 or 32 threads on simulated GPUs");

  public:
    explicit thread_block_tile(const thread_group &parent)
        : warp_group((Size == 32 ? ~0u : (1u << Size % 32) - 1)
                     << (sim::lane() & ~(Size - 1)))
    {
        const unsigned rank = parent.thread_rank();
        part = rank / Size;
        parts = (parent.size() + Size - 1) / Size;
    }
    /* thread_block_tile<32> is one of any parent. */
    template <class Other, class = std::enable_if_t<std::is_void_v<Parent> &&
                                                    !std::is_void_v<Other>>>
    thread_block_tile(const thread_block_tile<Size, Other> &other)
        : warp_group(other), parts(other.meta_group_size()),
          part(other.meta_group_rank())
    {
    }
    template <class T>
    T shfl_xor(T value, unsigned lanes SIM_AND_LINE) const
    {
        return shfl(value, thread_rank() ^ lanes SIM_SAME_LINE);
    }
    static constexpr unsigned size() { return Size; }
    static constexpr unsigned num_threads() { return Size; }
    unsigned meta_group_size() const { return parts; }
    unsigned meta_group_rank() const { return part; }

  private:
    unsigned parts, part;
};
template <unsigned Size, class Parent>
thread_block_tile<Size, Parent> tiled_partition(const Parent &parent)
{
    return thread_block_tile<Size, Parent>(parent);
}
inline thread_group tiled_partition(const thread_group &parent, unsigned size)
{
    const unsigned lanes = size >= 32 ? ~0u : (1u << size) - 1;
    const unsigned mask = parent.whole ? ~0u : parent.mask;
    return thread_group(false, lanes << (sim::lane() & ~(size - 1)) & mask);
}

class grid_group {
  public:
    static dim3 group_dim() { return gridDim; }
    static dim3 dim_blocks() { return gridDim; }
    static dim3 block_index() { return dim3(blockIdx.x, blockIdx.y, blockIdx.z); }
    static unsigned long long num_blocks()
    {
        return (unsigned long long)gridDim.x * gridDim.y * gridDim.z;
    }
    static unsigned long long block_rank()
    {
        return ((unsigned long long)blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x +
               blockIdx.x;
    }
    static unsigned long long size()
    {
        return num_blocks() * this_thread_block().size();
    }
    static unsigned long long num_threads() { return size(); }
    static unsigned long long thread_rank()
    {
        return block_rank() * this_thread_block().size() +
               this_thread_block().thread_rank();
    }
    static bool is_valid() { return num_blocks() == 1; }
    static void sync(SIM_LINE)
    {
        if (num_blocks() > 1)
            sim::fail("grid.sync() needs a cooperative launch, which simulated GPUs do "
                      "not have: end the kernel there, and launch a second one");
        __syncthreads(SIM_OWN_LINE);
    }
};
inline grid_group this_grid()
{
    return grid_group();
}

template <class Group>
void sync(const Group &group SIM_AND_LINE)
{
    group.sync(SIM_OWN_LINE);
}
template <class Group, class F>
void invoke_one(const Group &group, F &&call)
{
    if (group.thread_rank() == 0)
        call();
}

/* --- reduce.h and scan.h --- */
#define SIM_JOIN(name, result)                                                         \
    template <class T>                                                                 \
    struct name {                                                                      \
        T operator()(T a, T b) const { return result; }                                \
    };
SIM_JOIN(plus, a + b)
SIM_JOIN(less, b < a ? b : a)
SIM_JOIN(greater, a < b ? b : a)
SIM_JOIN(bit_and, a &b)
SIM_JOIN(bit_or, a | b)
SIM_JOIN(bit_xor, a ^ b)
#undef SIM_JOIN

template <class Group, class T, class F>
T reduce(const Group &group, T value, F &&join SIM_AND_LINE)
{
    T result = group.shfl(value, 0 SIM_SAME_LINE);
    for (unsigned rank = 1; rank < group.size(); rank++)
        result = join(result, group.shfl(value, rank SIM_SAME_LINE));
    return result;
}
template <class Group, class T, class F>
T inclusive_scan(const Group &group, T value, F &&join SIM_AND_LINE)
{
    const unsigned own = group.thread_rank();
    T result = group.shfl(value, 0 SIM_SAME_LINE);
    for (unsigned rank = 1; rank < group.size(); rank++) {
        const T next = group.shfl(value, rank SIM_SAME_LINE);
        if (rank <= own)
            result = join(result, next);
    }
    return result;
}
template <class Group, class T>
T inclusive_scan(const Group &group, T value SIM_AND_LINE)
{
    return inclusive_scan(group, value, plus<T>() SIM_SAME_LINE);
}
template <class Group, class T, class F>
T exclusive_scan(const Group &group, T value, F &&join SIM_AND_LINE)
{
    const T before = group.shfl_up(inclusive_scan(group, value, join SIM_SAME_LINE),
                                   1 SIM_SAME_LINE);
    return group.thread_rank() ? before : T();
}
template <class Group, class T>
T exclusive_scan(const Group &group, T value SIM_AND_LINE)
{
    return exclusive_scan(group, value, plus<T>() SIM_SAME_LINE);
}

/* --- memcpy_async.h: the copy is made at once --- */
template <class Group>
void memcpy_async(const Group &group, void *to, const void *from, size_t bytes)
{
    for (size_t i = group.thread_rank(); i < bytes; i += group.size())
        ((char *)to)[i] = ((const char *)from)[i];
}
template <class Group>
void wait(const Group &group SIM_AND_LINE)
{
    group.sync(SIM_OWN_LINE);
}

} /* namespace cooperative_groups */
#endif
