/* Modules: libraries with kernels of the program (module.h). */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include "device/module.h"
#include "check.h"
#include "internal.h"
#include "runner.h"
#include "services.h"

namespace sim {

void serve(Services *services)
{
    const Indices &indices = first_runner.indices;
    *services = {&indices.thread,
                 &indices.block,
                 &indices.block_dim,
                 &indices.grid_dim,
                 exchange,
                 lane,
                 barrier,
                 dynamic_shared_memory,
                 abandon_block,
                 check_services()};
}

const char *module_load(const char *path, void **out)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    auto *services =
        library ? (Services *)dlsym(library, "dt_module_services") : nullptr;
    if (!services)
        return dlerror();
    serve(services);
    *out = library;
    return nullptr;
}

const dt_module_kernel *module_kernel(void *module, const char *name)
{
    auto *kernel = (const dt_module_kernel *)dlsym(module, "dt_module_kernels");
    while (kernel && kernel->name && strcmp(kernel->name, name))
        kernel++;
    return kernel && kernel->name ? kernel : nullptr;
}

void *module_variable(void *module, const char *name, size_t *bytes)
{
    auto *variable = (const Variable *)dlsym(module, "dt_module_variables");
    while (variable && variable->name && strcmp(variable->name, name))
        variable++;
    if (!variable || !variable->name)
        return nullptr;
    *bytes = variable->bytes;
    return variable->memory;
}

namespace {

/* f(the byte) for each word of a struct that is an address of device memory. Numbers are
 * not: they would have to be within some gigabytes of 64 bits. */
template <class F>
void each_field(const dt_module_call &call, int i, const void *value, F f)
{
    const dt_module_parameter &parameter = call.kernel->parameters[i];
    const size_t word = sizeof(void *);
    if (parameter.kind != 's' || parameter.pointer || parameter.alignment < word)
        return;
    for (size_t at = 0; at + word <= dt_module_bytes(&parameter); at += word) {
        void *pointer;
        memcpy(&pointer, (const char *)value + at, word);
        if (device_of(pointer))
            f(at, pointer);
    }
}

/* A kernel with values of its own, since the caller's are gone when it runs. */
struct ModuleBody final : Body {
    void (*thread)(void *const *values);
    bool barriers;
    std::vector<max_align_t> memory; /* which suits every parameter */
    std::vector<void *> values;

    explicit ModuleBody(const dt_module_call &call)
        : thread((void (*)(void *const *))call.kernel->handle),
          barriers(call.kernel->barriers)
    {
        std::vector<size_t> at;
        size_t units = 0;
        for (int i = 0; i < call.kernel->count; i++) {
            at.push_back(units);
            units += (size_of(call, i) + sizeof(max_align_t) - 1) / sizeof(max_align_t);
        }
        memory.resize(units);
        for (int i = 0; i < call.kernel->count; i++) {
            values.push_back(&memory[at[(size_t)i]]);
            memcpy(values.back(), call.values[i], size_of(call, i));
        }
        CheckedModule *module = check_module_of(call.kernel->handle);
        if (module && check_mode())
            describe(call, module);
    }
    /* For the checks: the tensors' elements, and the blocks that structs lead to. */
    void describe(const dt_module_call &call, CheckedModule *module)
    {
        checks.reset(
            new CheckedLaunch{call.kernel->name, module, check_mode(), {}, {}});
        for (int i = 0; i < call.kernel->count; i++)
            each_field(call, i, call.values[i], [&](size_t at, void *) {
                check_add_block(*checks, i, (char *)values[(size_t)i] + at, (int)at);
            });
        for (int i = 0, n = 0; i < call.kernel->count && n < call.noperands; i++) {
            char *data = nullptr;
            if (call.kernel->parameters[i].pointer)
                memcpy(&data, values[(size_t)i], sizeof data);
            if (!data || (const char *)data != call.operands[n].data)
                continue;
            const dt_extent &extent = call.operands[n++];
            int64_t low = 0, high = extent.item;
            bool empty = false;
            for (int d = 0; d < extent.ndim; d++) {
                const int64_t reach = (extent.shape[d] - 1) * extent.strides[d];
                empty |= extent.shape[d] == 0;
                (reach < 0 ? low : high) += reach;
            }
            char *seen = seen_from(data);
            checks->operands.push_back({i, values[(size_t)i], data, seen + low,
                                        seen + (empty ? 0 : high), 0,
                                        (size_t)extent.item, 0});
        }
    }
    static size_t size_of(const dt_module_call &call, int i)
    {
        return dt_module_bytes(&call.kernel->parameters[i]);
    }
    void run() override
    {
        if (barriers)
            thread(values.data());
        else
            each_index(first_runner.indices.block_dim, [this](uint3 at) {
                first_runner.indices.thread = at;
                thread(values.data());
                check_thread++;
            });
    }
    const void *code() const override { return (const void *)thread; }
    void finish() override { fflush(stdout); /* what the kernel has printed */ }
};

} /* namespace */

cudaError_t queue_module(const dt_module_call &call, cudaStream_t stream, bool opted_in)
{
    const unsigned *g = call.grid, *b = call.block;
    std::unique_ptr<ModuleBody> body(new ModuleBody(call));
    std::vector<Slot> slots;
    for (int i = 0; i < call.kernel->count; i++) {
        char *value = (char *)body->values[(size_t)i];
        if (call.kernel->parameters[i].pointer)
            slots.push_back({value, call.kernel->parameters[i].constant});
        if (!program_runs) /* whose kernels find all memory where it is */
            each_field(call, i, call.values[i], [&](size_t at, void *) {
                slots.push_back({value + at, false});
            });
    }
    return submit({call.kernel->name, call.kernel->barriers, dim3(g[0], g[1], g[2]),
                   dim3(b[0], b[1], b[2]), call.shared, stream, opted_in,
                   library_of(call.kernel->handle), call.kernel->apart},
                  std::move(body), slots, 0);
}

std::string module_fault(const dt_module_call &call, int device)
{
    Entry in(Entry::kNothing);
    Work work;
    work.name = call.kernel->name;
    for (int i = 0; i < call.kernel->count; i++)
        each_field(call, i, call.values[i], [&](size_t, void *pointer) {
            void *seen;
            reach(work, {device, true, false, true, "the struct of argument", i + 1},
                  pointer, 0, &seen);
        });
    return work.fault_text;
}

cudaError_t launch_module(const dt_module_call &call, cudaStream_t stream)
{
    queue_module(call, stream, true);
    return cudaGetLastError();
}

} /* namespace sim */
