/* Chains (device/chain.h) in one kernel: the machine of chain_machine.h for elements one
 * after the other; the one of wide chains is in chain_wide.cu, and what takes results at
 * the end of a chain in chain_end.cu. */
#define DT_CALLED_FUNCTIONS
#include "cuda/kernels/chain_end.h"
#include "cuda/kernels/chain_wide.h"
#include "cuda/kernels/chain_compiled.h"
#include "cuda/kernels/chain_machine.h"
#include "cuda/kernels/chain_translate.h"

namespace {

__global__ void __launch_bounds__(THREADS, 8) chain_kernel(GRID_CONSTANT(Program) p)
{
    DYNAMIC_SHARED(Values, shared);
    run_in_grid(p, shared);
}

bool is_known(const dt_plan *plan, const dt_operand &o)
{
    if (o.scalar)
        return type_of(o.dtype) != NO_TYPE;
    return type_of(o.dtype) != NO_TYPE &&
           (plan->ndim <= DIMS || dt_plan_is_dense(plan, &o));
}

/* Whether the machine's result has the bits of the row's own kernel. */
bool computes(int op, const dt_plan *plan)
{
    const dt_elementwise_row &row = dt_elementwise_rows[op];
    const dt_class &c = row.class_;
    const dt_dtype type = dt_plan_type(plan, c.choice);
    if (plan->noperands > 4 && !plan->operands[4].scalar)
        return false;
    if (c.choice) /* a copy; numbers are rounded */
        return plan->operands[2].dtype == plan->operands[0].dtype &&
               plan->operands[3].dtype == plan->operands[0].dtype;
    if (type == DT_BOOL)
        return c.takes[DT_KIND_BOOL] && (c.truth || row_of_bools(op) != op);
    if (dt_dtype_kind(type) == DT_KIND_FLOAT)
        return has_row(c, row.flags);
    /* In int64_t, lcm does not overflow as in int32. */
    return has_row(c, row.flags, DT_KIND_INTEGER) && op != DT_OP_lcm;
}

} // namespace

bool dt_cuda_chain_step(int op, const dt_plan *plan)
{
    const dt_operand &out = plan->operands[0];
    if (plan->numel >= MAX_LAYOUT_NUMEL || type_of(out.dtype) == NO_TYPE)
        return false;
    for (int k = 1; k < plan->noperands; k++)
        if (!is_known(plan, plan->operands[k]))
            return false;
    return op == (int)DT_CHAIN_CONVERT || computes(op, plan);
}

static int start_program(dt_stream stream, Program *p, unsigned slots)
{
    unsigned threads = THREADS, groups = GROUPS;
    while (groups > 1 && p->numel / (threads * groups * EACH) < BLOCKS_WANTED)
        groups /= 2;
    while (shared_of_program(*p, threads, slots, groups) > SHARED) {
        if (threads > 32)
            threads /= 2;
        else
            groups /= 2;
    }
    p->groups = (int)groups;
    const unsigned elements = threads * groups * EACH,
                   blocks = (p->numel + elements - 1) / elements;
    const size_t shared = shared_of_program(*p, threads, slots, groups);
    if (p->wide)
        return chain_start_wide(stream, p, blocks, threads, shared);
    return start_result("starting a fused kernel",
                        (Relaxed(), LAUNCH(chain_kernel, blocks, threads, shared,
                                           (cudaStream_t)stream.handle, *p)));
}

/* Whether two kernels are faster: one for the steps, which stores the end's input, and one
 * for the end. On an H100 a step takes the time of 1.1 bytes of each element, and three times
 * that in 16 bits. The kernel of wide chains has no end. */
static bool is_better_apart(const Program &p, const dt_chain_end *end)
{
    int steps = p.wide ? 1 << 16 : 0;
    for (int s = 0; s < p.ninstructions; s++)
        steps += p.instructions[s].type == FLOATS ? 1 : 3;
    const dt_dtype given =
        end->work == DT_WORK_nn ? end->rows.stored : end->reduction.input_dtype;
    return steps * 11 > 2 * (int)dt_dtype_size(given) * 10;
}

static Compiled *known_of(int device, const Program &p)
{
    const std::string key = key_of(device, p);
    Compiled *known = compiled.find(key);
    return known ? known : compiled.keep(key, {});
}

static int run_with_end(dt_stream stream, const dt_chain *chain,
                        const dt_chain_end *end)
{
    Program p = {};
    const dt_chain steps = chain_steps(chain, end);
    translate(&steps, &p);
    if (!is_better_apart(p, end))
        return chain_run_end(stream, chain, end) ? -1 : 0;
    if (p.wide)
        return chain_run_apart(stream, chain, end);
    Compiled *known = known_of(stream.device, p);
    if (known->kernel)
        return chain_run_apart(stream, chain, end);
    return chain_run_end(stream, chain, end) ? -1 : ++known->runs;
}

int dt_cuda_chain(dt_stream stream, const dt_chain *chain)
{
    if (const dt_chain_end *end = dt_chain_wanted_end(chain))
        return run_with_end(stream, chain, end);
    Program p = {};
    const int slots = translate(chain, &p);
    if (!p.ninstructions)
        return 0;
    Compiled *known = known_of(stream.device, p);
    if (known->kernel)
        return launch_compiled(known->kernel, stream, p);
    return start_program(stream, &p, (unsigned)slots) ? -1 : ++known->runs;
}

int dt_cuda_chain_source(int device, const dt_chain *chain, char **source, bool *exact)
{
    Program p = {};
    const dt_chain_end *end = dt_chain_wanted_end(chain);
    const dt_chain steps = end ? chain_steps(chain, end) : *chain;
    translate(&steps, &p);
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
