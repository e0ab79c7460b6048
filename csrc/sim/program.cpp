/* Whole programs: an executable of `pydevtensor nvcc` starts the simulator. Its host code
 * cannot access the memory of devices, nor __device__ variables. */
#include <dlfcn.h>
#include <execinfo.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "internal.h"
#include "kernel.h"
#include "program_calls.h"

namespace sim {

bool program_runs;

enum { kPage = SIM_PROGRAM_PAGE, kOpened = 256 };

static const char *begin_of_program; /* an address in the program's file */
/* The section of __device__ variables. */
static char *begin, *end;
static std::vector<char> initial;
/* The copy of the section that each device in use has. */
static char *symbols[DT_MAX_SIMULATED];
static int placed = -1; /* the device whose copy is mapped; -1: none */

/* Blocks that a kernel accessed by pointers other than its arguments. They stay accessible
 * at the program's addresses until the kernel ends. */
static struct {
    char *at;
    size_t bytes;
} opened[kOpened];
static int nopened;

static std::map<const void *, const dt_module_kernel *> &enlisted()
{
    static auto *all = new std::map<const void *, const dt_module_kernel *>;
    return *all;
}

static bool has_symbols()
{
    return begin != end;
}

/* --- errors --- */

bool program_refuses(const Work &work)
{
    if (!program_runs || !work.fault)
        return false;
    explain(cudaErrorInvalidValue, work.fault_text.c_str());
    return true;
}

/* Whether an instruction is of the program's file; sets *offset to its offset there. */
static bool is_own(const void *code, size_t *offset)
{
    Dl_info found, self;
    if (!dladdr(code, &found) || !dladdr(begin_of_program, &self) ||
        found.dli_fbase != self.dli_fbase)
        return false;
    *offset = (size_t)((const char *)code - (const char *)found.dli_fbase);
    return true;
}

const char *program_line(const void *code)
{
    static char line[512];
    char program[400], address[32];
    int ends[2];
    size_t offset;
    line[0] = 0;
    const ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (!program_runs || !code || length < 0 || !is_own(code, &offset) || pipe(ends))
        return line;
    program[length] = 0;
    snprintf(address, sizeof address, "%#zx", offset);
    const char *words[] = {"addr2line", "-s", "-e", program, address, nullptr};
    pid_t child;
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
    posix_spawn_file_actions_addclose(&actions, ends[0]);
    const bool runs =
        !posix_spawnp(&child, words[0], &actions, nullptr, (char **)words, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; runs && got > 0 && n < sizeof line - 1; n += (size_t)got)
        if ((got = read(ends[0], line + n, sizeof line - 1 - n)) < 0)
            got = 0;
    close(ends[0]);
    if (runs)
        waitpid(child, nullptr, 0);
    line[n] = 0;
    line[strcspn(line, "\n ")] = 0;
    if (line[0] == '?' || strstr(line, ":?"))
        line[0] = 0;
    return line;
}

/* The innermost instruction of the program's file on the stack: the fault may be in a
 * function of the C library that the program has called. */
static const void *own_code(const void *code)
{
    void *frames[32];
    size_t offset;
    if (is_own(code, &offset))
        return code;
    const int n = backtrace(frames, 32);
    for (int i = 0; i < n; i++)
        if (is_own(frames[i], &offset))
            return (const char *)frames[i] - 1; /* within the call */
    return nullptr;
}

static bool is_symbol(const void *address)
{
    return (const char *)address >= begin && (const char *)address < end;
}

void program_crashed(int signal, const void *address, const void *code)
{
    if (!program_runs)
        return;
    char what[256], text[1024];
    const Device *device = device_of(address);
    if (signal == SIGFPE)
        snprintf(what, sizeof what, "divides an integer by zero");
    else if (device)
        snprintf(
            what, sizeof what,
            "touches %p, memory of simulated cuda:%d, which the host cannot read or "
            "write; copy it with cudaMemcpy, or allocate it with cudaMallocManaged",
            address, device->index);
    else if (is_symbol(address))
        snprintf(what, sizeof what,
                 "touches a __device__ or __constant__ variable; copy it with "
                 "cudaMemcpyToSymbol or cudaMemcpyFromSymbol");
    else
        snprintf(what, sizeof what, "touches %p, which is not its memory", address);
    const char *line = program_line(own_code(code));
    int length = snprintf(text, sizeof text, "%s%shost code %s\n", line,
                          *line ? ": " : "", what);
    fflush(stdout);
    if (write(2, text, (size_t)length) < 0)
        return;
}

/* --- memory that kernels access --- */

bool program_opens(const void *address)
{
    if (!program_runs || nopened == kOpened)
        return false;
    Device *device = device_of(address);
    if (!device || (placed >= 0 && device->index != placed &&
                    !device_at(placed).reaches[device->index]))
        return false;
    auto found = entry_before(device->segments, address);
    if (found == device->segments.end())
        return false;
    Block &block = *found->second.whole;
    if ((const char *)address >= block.base + block.bytes)
        return false;
    if (!block.laid_out)
        lay_out(block);
    char *first = (char *)((uintptr_t)block.base & ~(uintptr_t)(kPage - 1));
    const size_t bytes =
        ((size_t)(block.base + block.bytes - first) + kPage - 1) & ~(size_t)(kPage - 1);
    if (mprotect(first, bytes, PROT_READ | PROT_WRITE))
        return false;
    opened[nopened].at = first;
    opened[nopened++].bytes = bytes;
    return true;
}

/* Gets a device's copy of the section, which is made at the first call. */
static cudaError_t symbols_of(int device, char **out)
{
    if (!symbols[device]) {
        char *memory;
        Device &where = device_at(device);
        if (cudaError_t error = take(where, initial.size() + kPage, &memory))
            return error;
        const size_t offset =
            ((size_t)(memory - where.held) + kPage - 1) & ~(size_t)(kPage - 1);
        lay_out(*where.segments[memory].whole);
        symbols[device] = where.held + offset;
        char *seen = seen_from(symbols[device]);
        open_pages(seen, initial.size());
        memcpy(seen, initial.data(), initial.size());
        close_pages(seen, initial.size());
    }
    *out = symbols[device];
    return cudaSuccess;
}

void program_enters(int device)
{
    char *memory;
    if (!program_runs)
        return;
    if (!has_symbols()) {
        placed = device;
        return;
    }
    if (symbols_of(device, &memory))
        return; /* no memory: touching a variable is a fault */
    const size_t bytes = initial.size();
    if (placed == device)
        mprotect(begin, bytes, PROT_READ | PROT_WRITE);
    else if (mmap(begin, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                  device_at(device).file,
                  (off_t)(memory - device_at(device).held)) == MAP_FAILED)
        return;
    placed = device;
}

void program_leaves()
{
    if (!program_runs)
        return;
    if (has_symbols())
        mprotect(begin, initial.size(), PROT_NONE);
    while (nopened) {
        nopened--;
        mprotect(opened[nopened].at, opened[nopened].bytes, PROT_NONE);
    }
}

/* --- the default stream --- */

static void order(Stream &stream, Stream &first)
{
    wait_for_moment(stream, record_moment(first));
}

void program_orders(Stream &stream)
{
    static bool ordering;
    if (ordering || stream.capture)
        return;
    Stream &own = *device_at(stream.device).own_stream;
    ordering = true;
    if (&stream == &own) {
        for (auto &each : state().streams)
            if (each->blocking && each->device == stream.device && !each->capture &&
                each->awaited != each->pushed) {
                each->awaited = each->pushed;
                order(own, *each);
            }
    } else if (stream.blocking && stream.waited != own.pushed && !own.capture) {
        stream.waited = own.pushed;
        order(stream, own);
    }
    ordering = false;
    stream.pushed++;
}

void program_orders_peers(Stream &stream, const void *to, const void *from, bool after)
{
    const Device *one = device_of(to), *other = device_of(from);
    if (!program_runs || stream.capture || !one || !other || one == other ||
        &stream != device_at(stream.device).own_stream.get())
        return;
    for (const Device *device : {one, other}) {
        Stream &own = *device->own_stream;
        if (&own == &stream)
            continue;
        if (!after) {
            program_orders(own); /* which waits for the device's streams */
            order(stream, own);
        } else {
            order(own, stream);
            own.pushed++; /* so that the device's streams wait for it */
        }
    }
}

} /* namespace sim */

using namespace sim;

int dt_program_start(Services *services, int abi, char *first, char *last,
                     const dt_program_array *arrays)
{
    if (abi != SIM_PROGRAM_ABI) {
        fprintf(stderr,
                "this program was compiled with another version of pydevtensor; "
                "compile it again\n");
        _exit(127);
    }
    /* As on a GPU, work runs after the call returns, and errors of kernels are sticky. */
    setenv("PYDEVTENSOR_SIM_GPUS", "1", 0);
    setenv("PYDEVTENSOR_SIM_CARD", "t4", 0);
    setenv("PYDEVTENSOR_SIM_SCHEDULE", "lazy", 0);
    setenv("PYDEVTENSOR_SIM_STICKY", "1", 0);
    serve(services);
    program_arrays = arrays;
    begin_of_program = first;
    program_runs = true;
    if (last - first > kPage) { /* the first page holds nothing */
        begin = first + kPage;
        end = last;
        initial.assign(begin, end);
        mprotect(begin, initial.size(), PROT_NONE);
    }
    arm_faults();
    return 0;
}

cudaError_t dt_program_answer(cudaError_t error)
{
    return answer(error);
}

/* An estimate, from its pointers, of the bytes that a launch reads and writes. */
static double bytes_of(const dt_module_call &call, bool strides)
{
    const double threads = (double)call.grid[0] * call.grid[1] * call.grid[2] *
                           call.block[0] * call.block[1] * call.block[2];
    double sum = 0;
    for (int i = 0; i < call.kernel->count; i++) {
        const dt_module_parameter &parameter = call.kernel->parameters[i];
        const char *pointer = nullptr;
        if (parameter.pointer)
            memcpy(&pointer, call.values[i], sizeof pointer);
        Device *device = device_of(pointer);
        if (!device)
            continue;
        auto found = entry_before(device->segments, pointer);
        if (found == device->segments.end())
            continue;
        const Block &block = *found->second.whole;
        const double rest = (double)(block.base + block.bytes - pointer);
        const double used = threads * parameter.size * parameter.components;
        sum += rest <= 0 ? 0 : strides || !used || used > rest ? rest : used;
    }
    return sum;
}

cudaError_t dt_program_launch(const dt_module_kernel *kernel, dim3 grid, dim3 block,
                              size_t shared, void *const *values, cudaStream_t stream,
                              int strides)
{
    dt_module_call call = {};
    call.kernel = kernel;
    const unsigned g[] = {grid.x, grid.y, grid.z}, b[] = {block.x, block.y, block.z};
    memcpy(call.grid, g, sizeof g);
    memcpy(call.block, b, sizeof b);
    call.shared = shared;
    call.values = values;
    if (cudaError_t error = program_refuses_block(kernel->name, b, shared))
        return error;
    if (in_kernel() && thread().inside)
        abandon_block("launches a kernel, which simulated GPUs cannot do in a kernel");
    {
        SIM_ENTER();
        if (clock_runs())
            clock_begin_operation(bytes_of(call, strides), 0, DT_FLOAT32);
    }
    const cudaError_t error = queue_module(call, stream, true);
    Entry in(Entry::kNothing);
    if (clock_runs())
        clock_end_operation();
    return error;
}

void dt_program_enlist(const void *address, const dt_module_kernel *kernel)
{
    enlisted()[address] = kernel;
}

const dt_module_kernel *dt_program_enlisted(const void *address)
{
    auto found = enlisted().find(address);
    return found == enlisted().end() ? nullptr : found->second;
}

cudaError_t dt_program_symbol(void **out, const void *symbol, size_t bytes)
{
    SIM_ENTER();
    const char *p = (const char *)symbol;
    char *memory;
    if (!is_symbol(p) || bytes > (size_t)(end - p))
        return answer(cudaErrorInvalidSymbol);
    if (cudaError_t error = symbols_of(thread().device, &memory))
        return answer(error);
    *out = memory + (p - begin);
    return cudaSuccess;
}

cudaError_t dt_program_managed(void **out, size_t bytes, unsigned flags)
{
    if (flags != cudaMemAttachGlobal && flags != cudaMemAttachHost)
        return answer(cudaErrorInvalidValue);
    cudaError_t error = cudaHostAlloc(out, bytes, cudaHostAllocMapped);
    if (error || !*out)
        return error;
    Entry in(Entry::kNothing);
    state().managed.insert(*out);
    return cudaSuccess;
}

cudaError_t dt_program_register(void *pointer, size_t bytes)
{
    SIM_ENTER();
    auto &pinned = state().pinned;
    if (!pointer || device_of(pointer) ||
        (pinned.count((char *)pointer) != 0) == (bytes != 0))
        return answer(cudaErrorInvalidValue);
    if (bytes) {
        pinned[(char *)pointer] = bytes;
        return cudaSuccess;
    }
    if (clock_runs())
        clock_wait_all();
    drain_all();
    race_forget((char *)pointer, pinned[(char *)pointer]);
    pinned.erase((char *)pointer);
    return cudaSuccess;
}

void dt_program_assert(const char *text, const char *file, unsigned line,
                       const char *function)
{
    char what[400];
    if (in_kernel() && thread().inside) {
        snprintf(what, sizeof what, "assert(%s) failed (%s:%u)", text, file, line);
        abandon_block(what);
    }
    fflush(stdout);
    fprintf(stderr, "%s:%u: %s: assert(%s) failed\n", file, line, function, text);
    abort();
}
