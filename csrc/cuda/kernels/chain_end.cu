/* Chains with an end, in one kernel. Each thread computes the elements that it would read
 * in the end's own kernel, and uses them in the same order, so the bits are the same. A
 * reduction computes them in rounds. An operation on rows keeps the values of its rows in
 * shared memory. */
#define DT_CALLED_FUNCTIONS
#include "cuda/kernels/chain_end.h"
#include "cuda/kernels/chain_machine.h"
#include "cuda/kernels/chain_translate.h"
#include "cuda/kernels/moments.h"
#include "cuda/kernels/nn_kernels.h"
#include "cuda/kernels/reduce_kernels.h"
#include "cuda/runtime/backend.h"
#include "device/nn_ops.h"
#include "ops/nn_norm.h"
#include "ops/nn_softmax.h"

namespace {

/* --- reductions --- */

/* A round has at most as many packs as the machine has groups. */
static_assert((int)AHEAD == (int)GROUPS && pack_of<float> == (int)EACH, "rounds");

struct ChainSum {
    bool of_moments, vectors;
    Reduction sum; /* of_moments: only the plan is used */
    void *variances, *means;
    dt_moments *parts;
    double divisor;
};
POINTERS_OF(ChainSum, each_pointer(s.sum, f); f(s.variances); f(s.means); f(s.parts);)
static_assert(sizeof(ChainSum) + sizeof(Program) < 4096, "a kernel's parameters");

/* Calls use(round, values) for a thread's rounds, as each_round does. starts: calls
 * first(value) for the first element of the result before. */
template <class First, class Use>
__device__ __forceinline__ void
each_round_of_chain(const Program &p, Piece<Values> piece, const ChainSum &c,
                    const Place &place, bool starts, First first, Use use)
{
    const ReductionPlan &f = c.sum.f;
    const int threads = f.threads, lane = (int)(threadIdx.x % (unsigned)threads);
    const unsigned base = (unsigned)(place.result * f.elements);
    Vector<float, EACH> values[AHEAD] = {};
    Round r = {place.part * f.part + lane * (c.vectors ? EACH : 1), 0, AHEAD,
               threads * EACH, c.vectors ? 1 : threads};
    ROLLED
    for (int from = starts ? -1 : 0; from < 0 || r.first < place.end;) {
        if (from < 0) {
            piece.gap = 1;
            piece.begin(p, base, base + 1);
        } else {
            piece.gap = (unsigned)r.gap;
            piece.begin(p, base + (unsigned)(r.first + from * r.step),
                        base + (unsigned)place.end);
        }
        piece.stores = from >= 0;
        run_program(p, piece);
        const Values *made = piece.slot(p.end);
        if (from < 0) {
            first(made->v[0]);
            from = 0;
            continue;
        }
        UNROLL
        for (int n = 0; n < AHEAD; n++)
            if (n >= from && n < from + piece.groups)
                values[n] = made[(unsigned)(n - from) * blockDim.x];
        from += p.groups;
        if (from < AHEAD && piece.groups == p.groups)
            continue;
        r.left = (int)(place.end - r.first);
        use(r, values);
        r.first += AHEAD * r.step;
        from = 0;
    }
}

__global__ void __launch_bounds__(BLOCK, 2)
    chain_sum_kernel(GRID_CONSTANT(Program) p, GRID_CONSTANT(ChainSum) c)
{
    DYNAMIC_SHARED(Values, shared);
    const Reduction &sum = c.sum;
    const Place place = place_of(sum.f);
    Runs<float, float, EACH> runs = {};
    MomentsOfRounds<float, EACH> moments;
    if (place.live) {
        if (!c.of_moments)
            runs.begin(zero_of<float, float>(sum.op));
        each_round_of_chain(
            p, Piece<Values>(p, shared, (unsigned)sum.f.threads * EACH, 1), c, place,
            sum.starts, [&](float value) { runs.begin(value); },
            [&](const Round &r, const Vector<float, EACH>(&values)[AHEAD]) {
                if (c.of_moments)
                    moments.take(r, place.end, values);
                else
                    runs.take(sum, r, place.end, values);
            });
    }
    if (c.of_moments) {
        const dt_moments all = moments_of_part(moments.all, place, sum.f);
        moments_put<float>(c, sum.f, place, all);
    } else {
        finish_result<float>(sum, place,
                             meet<float>(sum.op, runs.chains, sum.f.threads));
    }
}

/* --- operations on rows --- */

/* The longest row that fits shared memory; threads in a block. */
enum { ROW_MOST = 8192, ROWS_BLOCK = 2 * BLOCK };

struct ChainRows {
    NnCall call; /* without the address of the operand that the chain computes */
    dt_nn_op op;
    int each;     /* rows in a block */
    int room;     /* Values for their elements */
    bool apart;   /* the machine takes elements one by one */
    bool vectors; /* the operation takes vectors */
};
POINTERS_OF(ChainRows, each_pointer(s.call, f);)
static_assert(sizeof(ChainRows) + sizeof(Program) < 4096, "a kernel's parameters");

/* A row with the elements of one operand in shared memory, at `near`. */
template <int N>
struct ChainRow : CudaRow<float, true, NOWHERE, N> {
    typedef CudaRow<float, true, NOWHERE, N> Base;
    const float *near;
    __device__ __forceinline__ ChainRow(const NnCall &given, int64_t row,
                                        const float *elements)
        : Base(given, row, nullptr), near(elements)
    {
    }
    __device__ __forceinline__ typename Base::E read(nn::Row<const float> x) const
    {
        return x.data ? Base::read(x) : Base::elements((const char *)near, WHOLE);
    }
};

/* The operations that a chain may end in. */
#define ROW_ENDS(OP)                                                                   \
    OP(softmax)                                                                        \
    OP(log_softmax)                                                                    \
    OP(logsumexp)                                                                      \
    OP(softmax_backward)                                                               \
    OP(log_softmax_backward)                                                           \
    OP(layer_norm)                                                                     \
    OP(layer_norm_backward)

template <int N>
__device__ __forceinline__ void run_row(dt_nn_op op, const ChainRow<N> &row)
{
    switch (op) {
#define RUN_ROW(name)                                                                  \
    case DT_NN_##name:                                                                 \
        nn::name::run(row, nn::named<nn::name, float>(row.call.operands));             \
        break;
        ROW_ENDS(RUN_ROW)
#undef RUN_ROW
    default:
        break;
    }
}

__global__ void __launch_bounds__(ROWS_BLOCK)
    chain_rows_kernel(GRID_CONSTANT(Program) p, GRID_CONSTANT(ChainRows) c)
{
    DYNAMIC_SHARED(Values, shared);
    const unsigned n = (unsigned)c.call.n, from = blockIdx.x * (unsigned)c.each * n,
                   end = p.numel - from < c.each * n ? p.numel : from + c.each * n;
    /* Vectors have the same alignment in shared memory as in memory. */
    float *const near = (float *)shared + from % EACH;
    const unsigned gap = c.apart ? blockDim.x : 1, hop = blockDim.x * EACH;
    Piece<Values> piece(p, shared + c.room, hop, gap);
    ROLLED
    for (unsigned at = from + threadIdx.x * (c.apart ? 1 : EACH); at < end;
         at += (unsigned)p.groups * hop) {
        piece.begin(p, at, end);
        run_program(p, piece);
        ROLLED
        for (int g = 0; g < piece.groups; g++) {
            const Values made = piece.slot(p.end)[(unsigned)g * blockDim.x];
            float *to = near + (piece.group(g) - from);
            const int count = piece.count(g);
            UNROLL
            for (int k = 0; k < EACH; k++)
                if (k < count)
                    to[(unsigned)k * gap] = made.v[k];
        }
    }
    __syncthreads();
    const unsigned in_block = threadIdx.x / (unsigned)c.call.threads;
    const int64_t row = (int64_t)blockIdx.x * c.each + in_block;
    if (row >= c.call.rows)
        return;
    const float *const its = near + in_block * n;
    if (c.vectors)
        run_row(c.op, ChainRow<EACH>(c.call, row, its));
    else
        run_row(c.op, ChainRow<1>(c.call, row, its));
}

/* --- operations that may end a chain --- */

/* The kinds of operands of ops/nn.def. */
enum Kind : uint8_t { OTHER, WRITTEN, WHOLE_ROW };
constexpr Kind kinds[DT_NNN][DT_NN_OPERANDS] = {
#define OUT(name)         WRITTEN,
#define INOUT(name)       WRITTEN,
#define OUT_PER_ROW(name) WRITTEN,
#define OUT_SHARED(name)  WRITTEN,
#define ROW(name)         WHOLE_ROW,
#define PER_ROW(name)     OTHER,
#define INDEX(name)       OTHER,
#define SHARED(name)      OTHER,
#define STATISTIC(name)   OTHER,
#define SINGLE(name)      OTHER,
#define MASK(name)        OTHER,
#define NN_OP(op, ...)    {__VA_ARGS__},
#include "ops/nn.def"
};

/* Passes over the elements; 0: a chain cannot end in the operation. keeps: keeps_ragged. */
int passes_of(dt_nn_op op, bool *keeps = nullptr)
{
    switch (op) {
#define PASSES(name)                                                                   \
    case DT_NN_##name:                                                                 \
        if (keeps)                                                                     \
            *keeps = nn::keeps_ragged<nn::name>;                                       \
        return nn::name::passes;
        ROW_ENDS(PASSES)
#undef PASSES
    default:
        return 0;
    }
}

bool takes_rows(dt_chain_end *end)
{
    const dt_nn_call &rows = end->rows;
    end->writes = 0;
    for (int k = 0; k < DT_NN_OPERANDS; k++)
        if (kinds[rows.op][k] == WRITTEN)
            end->writes |= 1u << k;
    return passes_of(rows.op) && rows.dtype == DT_FLOAT32 && rows.inner == 1 &&
           rows.n > ROWS_SHORT && rows.n <= ROW_MOST &&
           kinds[rows.op][end->operand] == WHOLE_ROW;
}

bool takes_reduction(dt_chain_end *end)
{
    const dt_reduction &r = end->reduction;
    end->writes = 6; /* the result and a mean */
    if (type_of(r.input_dtype) >= BOOLS || r.reduced_numel < 8)
        return false;
    return end->work == DT_WORK_moments
               ? r.output_dtype == DT_FLOAT32
               : reduce_class_of(end->op).accumulates != AS_TRUTH &&
                     type_of(r.output_dtype) < BOOLS;
}

/* The address that the end's input would have. */
const void *operand_of(const dt_chain_end *end)
{
    return end->work == DT_WORK_nn ? end->rows.operands[end->operand]
                                   : end->reduction.input;
}

/* --- launches --- */

/* The arguments for starting a chain with an end. */
struct Ending {
    const dt_chain *chain;
    const dt_chain_end *end;
    Program *p;
    unsigned slots;
};

/* Sets as many groups as fit a block. false: not even one fits. */
bool set_groups(const Ending &e, unsigned threads, size_t room)
{
    unsigned groups = GROUPS;
    while (groups > 1 && shared_of_program(*e.p, threads, e.slots, groups) > room)
        groups /= 2;
    e.p->groups = (int)groups;
    return shared_of_program(*e.p, threads, e.slots, groups) <= room;
}

int start_sum(dt_stream stream, ChainSum *c, const Ending &e)
{
    const dt_reduction &r = e.end->reduction;
    const ReductionPlan &f = c->sum.f;
    c->vectors = has_vectors(f, r.input, (int64_t)dt_dtype_size(r.input_dtype), EACH);
    return start_result(
        "starting a fused reduction",
        (Relaxed(),
         LAUNCH_BARRIERS(chain_sum_kernel, f.blocks * f.parts, BLOCK,
                         shared_of_program(*e.p, BLOCK, e.slots, (unsigned)e.p->groups),
                         (cudaStream_t)stream.handle, *e.p, *c)));
}

int first_sum(dt_stream stream, const Reduction *call, const void *with)
{
    ChainSum c = {};
    c.sum = *call;
    c.sum.input = nullptr;
    return start_sum(stream, &c, *(const Ending *)with);
}

int first_moments(dt_stream stream, const Moments *call, const void *with)
{
    ChainSum c = {};
    c.of_moments = true;
    c.sum.f = call->f;
    c.variances = call->variances;
    c.means = call->means;
    c.parts = call->parts;
    c.divisor = call->divisor;
    return start_sum(stream, &c, *(const Ending *)with);
}

/* Whether a step's result overwrites memory that steps read, which they then must read
 * only once. */
bool overwrites(const Program &p)
{
    for (int o = 0; o < p.noutputs; o++)
        for (int m = 0; m < p.nmemories; m++)
            if (p.outputs[o].data == p.memories[m].data)
                return true;
    return false;
}

/* These return 0, -1 after dt_fail, or 1 if the chain does not fit in a kernel. */
int run_reduction(dt_stream stream, const Ending &e)
{
    const dt_chain_end &end = *e.end;
    const bool moments = end.work == DT_WORK_moments;
    if (!set_groups(e, BLOCK, SHARED_OF_BLOCK - sizeof(double) * 64) ||
        (!moments && reduce_class_of(end.op).starts && overwrites(*e.p)))
        return 1;
    return moments ? moments_by(stream, end.mean, &end.reduction, first_moments, &e)
                   : reduce_by(stream, end.op, &end.reduction, first_sum, &e);
}

/* Plans the rows as the operation's own kernel does. */
int prepare_rows(dt_stream stream, const dt_chain_end &end, int64_t most, ChainRows *c)
{
    const dt_nn_call &given = end.rows;
    NnCall &call = c->call;
    if (nn_prepare(stream, &given, &call))
        return -1;
    int rows = 0;
    for (Kind kind : kinds[given.op])
        rows += kind == WHOLE_ROW;
    bool keeps = false;
    const int passes = passes_of(given.op, &keeps);
    NnForm form = nn_form(call, nn_has_vectors(&given, call.half), passes, rows, keeps);
    if (form.way == NN_SHARED)
        form.threads = nn_shared_threads(
            form.threads, call.n * rows * stored_size<float>(call.half), most);
    if (form.way == NN_KEPT || form.way == NN_KEPT_LONG)
        call.run = INT32_MAX;
    call.operands[end.operand] = nullptr;
    c->op = given.op;
    c->vectors = form.way != NN_SINGLY;
    nn_set_threads(call, form.threads, c->vectors ? EACH : 1);
    c->each = nn_rows_of_block(form.threads);
    while (c->each > 1 && c->each * call.n > ROW_MOST)
        c->each /= 2;
    c->apart = c->each * call.n % EACH;
    c->room = (int)((c->each * call.n + 2 * (EACH - 1)) / EACH);
    return 0;
}

int run_rows(dt_stream stream, const Ending &e)
{
    ChainRows c = {};
    int64_t most;
    if (shared_of_multiprocessor(stream.device, &most) ||
        prepare_rows(stream, *e.end, most, &c))
        return -1;
    const unsigned block = (unsigned)(c.each * c.call.threads);
    const size_t near = (size_t)c.room * sizeof(Values);
    if (!set_groups(e, block, near < SHARED_OF_BLOCK ? SHARED_OF_BLOCK - near : 0) &&
        near + shared_of_program(*e.p, block, e.slots, 1) > (size_t)most)
        return 1;
    if (block > ROWS_BLOCK)
        return 1;
    const size_t bytes =
        near + shared_of_program(*e.p, block, e.slots, (unsigned)e.p->groups);
    const int64_t blocks = (c.call.rows + c.each - 1) / c.each;
    return start_result(
        "starting a fused operation on rows",
        (Relaxed(), LAUNCH_LARGE(chain_rows_kernel, blocks, block, bytes,
                                 (cudaStream_t)stream.handle, *e.p, c)));
}

/* Runs the end in its own kernel, on `values`. */
int run_alone(dt_stream stream, const dt_chain_end *end, void *values)
{
    if (end->work == DT_WORK_nn) {
        dt_nn_call rows = end->rows;
        rows.operands[end->operand] = values;
        return dt_cuda_nn(stream, &rows);
    }
    dt_reduction reduction = end->reduction;
    reduction.input = values;
    return end->work == DT_WORK_moments ? dt_cuda_moments(stream, end->mean, &reduction)
                                        : dt_cuda_reduce(stream, end->op, &reduction);
}

} // namespace

bool dt_cuda_chain_end(const dt_chain *chain, dt_chain_end *end)
{
    end->partials = nullptr;
    return !chain->nends &&
           (end->work == DT_WORK_nn ? takes_rows(end) : takes_reduction(end));
}

dt_chain chain_steps(const dt_chain *chain, const dt_chain_end *end)
{
    dt_chain steps = *chain;
    dt_chain_step &last = steps.steps[end->step];
    steps.nends = 0;
    last.out = last.out ? last.out : (void *)(uintptr_t)operand_of(end);
    return steps;
}

int chain_run_apart(dt_stream stream, const dt_chain *chain, const dt_chain_end *end)
{
    dt_chain steps = chain_steps(chain, end);
    dt_chain_step &last = steps.steps[end->step];
    const auto run = [&] {
        const int runs = dt_cuda_chain(stream, &steps);
        return runs < 0 || run_alone(stream, end, last.out) ? -1 : runs;
    };
    if (chain->steps[end->step].out)
        return run();
    /* The same misalignment: the order of sums depends on it. */
    const size_t off = (uintptr_t)last.out % 16;
    Scratch memory(stream, (size_t)chain->numel * dt_dtype_size(last.result) + off);
    if (!memory.data)
        return -1;
    last.out = (char *)memory.data + off;
    return run();
}

int chain_run_end(dt_stream stream, const dt_chain *chain, const dt_chain_end *end)
{
    Program p = {};
    const Ending e = {chain, end, &p, (unsigned)translate(chain, &p)};
    const int status =
        end->work == DT_WORK_nn ? run_rows(stream, e) : run_reduction(stream, e);
    return status > 0 ? -(chain_run_apart(stream, chain, end) < 0) : status;
}
