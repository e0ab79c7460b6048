/* Chains (device/chain.h) in one kernel: a machine whose program is the kernel's parameter.
 *
 * A thread has some groups of elements that follow one another. An instruction loads the
 * inputs that are new into slots of shared memory, where each thread has its own; then, for
 * one group after the other, it computes its row of ops/elementwise.def in float, and rounds
 * the result to the type that it has in the chain, so that the bits are those of the rows'
 * own kernels. All threads take the same branches. */
#define DT_CALLED_FUNCTIONS
#include "cuda/kernels/chain_compiled.h"

namespace {

/* --- rows --- */

/* An instruction's inputs, and the place of its result. From one group to the next an
 * address moves by `apart`; by 0 for a number. T is float. */
template <typename T>
struct Operands {
    const Vector<T, EACH> *from[3];
    unsigned from_apart[3];
    Vector<T, EACH> *to;
    unsigned to_apart;
    T last;
    int groups;
    __device__ __forceinline__ void advance()
    {
        UNROLL
        for (int i = 0; i < 3; i++)
            from[i] += from_apart[i];
        to += to_apart;
    }
};

/* result(a, b, c) of EACH elements at once, for all of them. */
template <typename T, typename F>
__device__ __forceinline__ void each(Operands<T> o, F result)
{
    ROLLED
    for (int g = 0; g < o.groups; g++) {
        const Vector<T, EACH> a = *o.from[0], b = *o.from[1], c = *o.from[2];
        Vector<T, EACH> y;
        UNROLL
        for (int k = 0; k < EACH; k++)
            y.v[k] = result(a.v[k], b.v[k], c.v[k]);
        *o.to = y;
        o.advance();
    }
}

/* A row that is not long has a loop of its own. */
template <typename T>
__device__ __forceinline__ void apply_row(int op, const Operands<T> &o)
{
    const T d = o.last;
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (has_row(DT_CLASS_VALUE(flags, DT_CLASS_##class), flags) &&       \
                      !is_long(DT_OP_##name,                                           \
                               DT_CLASS_VALUE(flags, DT_CLASS_##class))) {             \
            each(o, [d](T a, T b, T c) { return row_##name(a, b, c, d); });            \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default: /* DT_CHAIN_CONVERT */
        each(o, [d](T a, T b, T c) { return row_copy(a, b, c, d); });
        break;
    }
}

/* Long rows are in the kernel once: elements come by, one after the other. */
template <typename T>
__device__ __forceinline__ T long_row(int op, T a, T b, T c, T d)
{
    switch (op) {
#define KERNEL(name, arity, class, flags, low, high, operands, value)                  \
    case DT_OP_##name:                                                                 \
        if constexpr (has_row(DT_CLASS_VALUE(flags, DT_CLASS_##class), flags) &&       \
                      is_long(DT_OP_##name,                                            \
                              DT_CLASS_VALUE(flags, DT_CLASS_##class))) {              \
            return row_##name(a, b, c, d);                                             \
        }                                                                              \
        break;
#include "ops/elementwise_kernels.def"
    default:
        break;
    }
    return a;
}

__device__ __forceinline__ void apply_long_row(int op, Operands<float> o)
{
    ROLLED
    for (int g = 0; g < o.groups; g++) {
        ROLLED
        for (int k = 0; k < EACH; k++)
            o.to->v[k] =
                long_row(op, o.from[0]->v[k], o.from[1]->v[k], o.from[2]->v[k], o.last);
        o.advance();
    }
}

/* --- the kernel --- */

/* A thread has three places for numbers, slots of slot[group * blockDim.x], and in memory
 * the EACH elements from group(g) on. */
struct Place {
    Values *numbers, *slots;
    unsigned first;
    int apart, groups; /* of slots; of its elements that there are */
    __device__ unsigned group(int g) const
    {
        return first + (unsigned)g * blockDim.x * EACH;
    }
    __device__ Values *slot(int slot) const { return slots + slot * apart; }
};

/* All groups of a memory whose elements lie together. Their loads are in flight at once. */
template <typename Word>
__device__ __forceinline__ void load_packs(const Program &p, const Memory &m,
                                           const Place &place)
{
    Pack<Word, EACH> packs[GROUPS];
    UNROLL
    for (int g = 0; g < GROUPS; g++)
        if (g < p.groups)
            packs[g].words = *(const decltype(packs[g].words) *)((const Word *)m.data +
                                                                 place.group(g));
    UNROLL
    for (int g = 0; g < GROUPS; g++) {
        Values values;
        UNROLL
        for (int k = 0; k < EACH; k++)
            values.v[k] = number_of(packs[g].get(k), m.type);
        if (g < p.groups)
            place.slot(m.slot)[(unsigned)g * blockDim.x] = values;
    }
}

__device__ __forceinline__ void load(const Program &p, const Memory &m,
                                     const Place &place)
{
    const bool whole =
        place.groups == p.groups && place.group(p.groups - 1) + EACH <= p.numel;
    if (whole && m.way == TOGETHER && m.layout == NONE) {
        if (m.type == FLOATS)
            load_packs<uint32_t>(p, m, place);
        else if (m.type >= BOOLS)
            load_packs<uint8_t>(p, m, place);
        else
            load_packs<uint16_t>(p, m, place);
        return;
    }
    ROLLED
    for (int g = 0; g < place.groups; g++)
        place.slot(m.slot)[(unsigned)g * blockDim.x] = values_at(
            p.layouts, m, place.group(g), count_from(p.numel, place.group(g)));
}

/* Rounds the results of an instruction to their type, and stores those that are wanted. */
__device__ __forceinline__ void finish(const Program &p, const Instruction &now,
                                       const Place &place)
{
    Values *slot = place.slot(now.slot);
    ROLLED
    for (int g = 0; g < place.groups; g++) {
        Values x = slot[(unsigned)g * blockDim.x];
        const Words words = rounded(&x, now.type);
        if (now.type != FLOATS)
            slot[(unsigned)g * blockDim.x] = x;
        if (now.out != NONE)
            put(p.outputs[now.out], now.type, place.group(g),
                count_from(p.numel, place.group(g)), words);
    }
}

__global__ void __launch_bounds__(THREADS, 8) chain_kernel(GRID_CONSTANT(Program) p)
{
    DYNAMIC_SHARED(Values, shared);
    const unsigned of_group = blockDim.x * EACH;
    Place place = {shared + threadIdx.x, shared + 3 * blockDim.x + threadIdx.x,
                   blockIdx.x * (unsigned)p.groups * of_group + threadIdx.x * EACH,
                   p.groups * (int)blockDim.x, 0};
    while (place.groups < p.groups && place.group(place.groups) < p.numel)
        place.groups++;
    const Memory *next = p.memories;
    ROLLED
    for (int s = 0; s < p.ninstructions; s++) {
        const Instruction &now = p.instructions[s];
        ROLLED
        for (int k = 0; k < now.loads; k++)
            load(p, *next++, place);
        Operands<float> o;
        UNROLL
        for (int i = 0; i < 3; i++) {
            const bool is_number = now.inputs[i] == NONE;
            const float number = now.numbers[i];
            Values *from = is_number ? place.numbers + (unsigned)i * blockDim.x
                                     : place.slot(now.inputs[i]);
            if (is_number)
                *from = {{number, number, number, number}};
            o.from[i] = from;
            o.from_apart[i] = is_number ? 0 : blockDim.x;
        }
        o.to = place.slot(now.slot);
        o.to_apart = blockDim.x;
        o.last = now.numbers[3];
        o.groups = place.groups;
        if (now.is_long)
            apply_long_row(now.op, o);
        else
            apply_row(now.op, o);
        if (now.type != FLOATS || now.out != NONE)
            finish(p, now, place);
    }
}

} // namespace

bool dt_cuda_chain_step(int op, const dt_plan *plan)
{
    const dt_operand &out = plan->operands[0];
    if (plan->numel >= MAX_LAYOUT_NUMEL || type_of(out.dtype) >= BYTES)
        return false;
    for (int k = 1; k < plan->noperands; k++)
        if (!is_known(plan, plan->operands[k]))
            return false;
    return op == (int)DT_CHAIN_CONVERT || computes(op, plan);
}

static int run_program(dt_stream stream, Program *p, unsigned slots)
{
    unsigned threads = THREADS, groups = GROUPS;
    while (groups > 1 && p->numel / (threads * groups * EACH) < BLOCKS_WANTED)
        groups /= 2;
    while ((3 + slots * groups) * threads * sizeof(Values) > SHARED) {
        if (threads > 32)
            threads /= 2;
        else
            groups /= 2;
    }
    p->groups = (int)groups;
    const unsigned elements = threads * groups * EACH;
    return start_result(
        "starting a fused kernel",
        (Relaxed(), LAUNCH(chain_kernel, (p->numel + elements - 1) / elements, threads,
                           (3 + slots * groups) * threads * sizeof(Values),
                           (cudaStream_t)stream.handle, *p)));
}

int dt_cuda_chain(dt_stream stream, const dt_chain *chain)
{
    Program p = {};
    const int slots = translate(chain, &p);
    if (!p.ninstructions)
        return 0;
    const std::string key = key_of(stream.device, p);
    Compiled *known = compiled.find(key);
    if (!known)
        known = compiled.keep(key, {});
    if (known->kernel)
        return launch_compiled(known->kernel, stream, p);
    return run_program(stream, &p, (unsigned)slots) ? -1 : ++known->runs;
}

int dt_cuda_chain_source(int device, const dt_chain *chain, char **source, bool *exact)
{
    Program p = {};
    translate(chain, &p);
    if (p.nmemories + p.noutputs >= DT_MODULE_PARAMETERS)
        return dt_fail(DT_ERROR_RUNTIME,
                       "the chain has too many operands for a kernel");
    *source = strdup(source_of(p).c_str());
    if (!*source)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for the source of a kernel");
    *exact = is_exact(p);
    asked.push_back(key_of(device, p));
    return (int)asked.size() - 1;
}

void dt_cuda_chain_forget()
{
    compiled.forget_all();
}

void dt_cuda_chain_compiled(int number, const dt_module_kernel *kernel)
{
    if (Compiled *known = compiled.find(asked[(size_t)number]))
        known->kernel = kernel;
}
