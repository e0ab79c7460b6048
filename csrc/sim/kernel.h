/* Turns a launch into queued work: converts the arguments to the kernel's
 * parameters, lists the pointers in them, and builds a body that runs one thread or
 * one block. */
#ifndef DT_SIM_KERNEL_H
#define DT_SIM_KERNEL_H

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <memory>
#include <numeric>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>
#include "clock.h"
#include "cuda_runtime.h"

struct dt_module_kernel;
struct dt_module_call;

namespace sim {

struct CheckedLaunch;

/* Machine code of one library. */
struct Code {
    const char *begin = nullptr;
    size_t bytes = 0;
};

struct Launch {
    const char *name;
    bool barriers;
    dim3 grid, block;
    size_t shared;
    cudaStream_t stream;
    bool opted_in = false; /* to all the shared memory that a block may have */
    /* The program's module: threads of its kernels take turns (turns.cpp). */
    Code code = {};
    bool apart = false;    /* blocks share no memory that is local to one */
    const char *file = ""; /* that was compiled, for kernels of the library */
};

/* f(index) for each index of an extent, x first. */
template <class F>
void each_index(const dim3 extent, F f)
{
    for (unsigned z = 0; z < extent.z; z++)
        for (unsigned y = 0; y < extent.y; y++)
            for (unsigned x = 0; x < extent.x; x++)
                f(uint3{x, y, z});
}

/* A kernel with its arguments. */
struct Body {
    virtual ~Body() {}
    /* With barriers, runs the thread threadIdx. Without, runs all threads of block
     * blockIdx in turn. */
    virtual void run() = 0;
    virtual const void *code() const = 0;  /* differs from other kernels' */
    std::shared_ptr<CheckedLaunch> checks; /* NULL: none */
    /* The grid has run. */
    virtual void finish() {}
};

/* A pointer inside of a body. */
struct Slot {
    void *at;   /* its address */
    bool reads; /* it points to const: the kernel only reads */
};

/* Queues the body, of so many bytes. Its pointers are checked now, and replaced by the
 * addresses that kernels see. */
cudaError_t submit(const Launch &launch, std::unique_ptr<Body> body,
                   const std::vector<Slot> &slots, size_t bytes);

/* Loads a module for the program's kernels: NULL, or what is wrong. */
const char *module_load(const char *path, void **out);
/* NULL: it has none of that name. */
const dt_module_kernel *module_kernel(void *module, const char *name);
/* A variable, as kernels see it; NULL: it has none of that name. */
void *module_variable(void *module, const char *name, size_t *bytes);
/* The fault of an address of device memory in a struct; "": there is none. */
std::string module_fault(const dt_module_call &call, int device);
cudaError_t launch_module(const dt_module_call &call, cudaStream_t stream);
/* The same, whose error also waits for cudaGetLastError. */
cudaError_t queue_module(const dt_module_call &call, cudaStream_t stream,
                         bool opted_in = false);
/* Tells a module where the simulator's functions are. */
struct Services;
void serve(Services *services);

void *dynamic_shared_memory();
void block_taken(void *pointer, size_t bytes, size_t rounded, cudaStream_t stream);
void block_given_back(void *pointer, size_t rounded);
/* Its memory is handed out again only when the work is over that the stream has now. */
void race_block_awaits(void *pointer, size_t rounded, int device, cudaStream_t stream);

/* While one lives, this thread's waits are the library's own: a program must not rely on
 * them, and the host memory that it copies is the library's. */
struct OwnWait {
    OwnWait();
    ~OwnWait();
    OwnWait(const OwnWait &) = delete;
};

/* The host has copied this much into pinned memory, which takes time on a clock. */
void host_staged(size_t bytes);

/* Where the pointers of a table in device memory lead, which queued work fills: the next call
 * of a stand-in library that takes the table uses that memory. */
void table_leads_to(const void *table, const void *first, size_t bytes);

/* --- for stand-ins of CUDA's libraries (blas.cpp): work on a simulated stream --- */

/* Device memory that the work reads or writes. */
struct Region {
    const void *pointer; /* the program's address */
    size_t bytes;        /* from there on; 0: any part of the block */
    bool writes = true;
};

/* Queues work(seen) in stream order; seen[i] is where the work can access
 * regions[i], NULL for NULL. Regions are checked like those of a copy: memory of the
 * stream's device, or of a peer with access, inside a live block; if not, the work
 * does not run and the next synchronization reports cudaErrorIllegalAddress. `name`,
 * a literal, appears in that report. The work runs on
 * the synchronizing thread with the simulator locked: it must not call the CUDA
 * runtime, nor wait for a thread that might. Returns cudaErrorInvalidResourceHandle
 * for a bad stream (NULL: the current device's default stream). Does not
 * synchronize. `cost` tells the clocks what the work costs; the default is a kernel's. */
cudaError_t enqueue(cudaStream_t stream, const char *name,
                    std::initializer_list<Region> regions,
                    std::function<void(void *const *seen)> work, const Cost &cost = {});

/* --- launches --- */

struct PointerProbe {
    template <class T>
    void operator()(T *&) const
    {
    }
};
template <class S, class = void>
struct says_pointers : std::false_type {};
template <class S>
struct says_pointers<S, std::void_t<decltype(each_pointer(
                            std::declval<S &>(), std::declval<PointerProbe>()))>>
    : std::true_type {};

/* How a parameter is stored: by value, also for a GRID_CONSTANT reference. */
template <class P>
using Kept = std::remove_cv_t<std::remove_reference_t<P>>;

template <class T>
Slot slot_of(T *&pointer)
{
    return {(void *)&pointer, std::is_const_v<T>};
}

template <class P>
void note_pointers(Kept<P> &parameter, std::vector<Slot> &slots)
{
    using Parameter = Kept<P>;
    static_assert(
        !std::is_reference_v<P> ||
            (std::is_class_v<Parameter> && std::is_const_v<std::remove_reference_t<P>>),
        "the only references a kernel takes are GRID_CONSTANT");
    if constexpr (std::is_pointer_v<Parameter>) {
        slots.push_back(slot_of(parameter));
    } else if constexpr (std::is_class_v<Parameter> || std::is_union_v<Parameter>) {
        static_assert(std::is_trivially_copyable_v<Parameter>,
                      "a kernel's parameter is copied byte by byte");
        if constexpr (!std::is_empty_v<Parameter>) {
            static_assert(
                says_pointers<Parameter>::value,
                "say where the struct's pointers are: POINTERS_OF or NO_POINTERS, "
                "see cuda/runtime/launch.h");
            if constexpr (says_pointers<Parameter>::value)
                each_pointer(parameter,
                             [&slots](auto *&p) { slots.push_back(slot_of(p)); });
        }
    }
}

/* Instantiated per parameter list rather than per kernel: there are hundreds of
 * kernels but dozens of lists. */
template <bool Barriers, class... P>
struct KernelBody final : Body {
    void (*kernel)(P...);
    std::tuple<Kept<P>...> values;

    template <class... A>
    explicit KernelBody(void (*k)(P...), A &&...arguments)
        : kernel(k), values(std::forward<A>(arguments)...)
    {
    }
    void run() override
    {
        if constexpr (Barriers) {
            std::apply(kernel, values);
        } else {
            each_index(blockDim, [this](uint3 at) {
                set_thread(at);
                std::apply(kernel, values);
            });
        }
    }
    const void *code() const override { return (const void *)kernel; }
};

template <bool Barriers, class... P, class... A>
cudaError_t launch_of(const Launch &what, void (*kernel)(P...), A &&...arguments)
{
    static_assert(sizeof...(P) == sizeof...(A),
                  "wrong number of arguments for the kernel");
    using Made = KernelBody<Barriers, P...>;
    std::unique_ptr<Made> body(new Made(kernel, std::forward<A>(arguments)...));
    std::vector<Slot> slots;
    std::apply([&slots](auto &...values) { (note_pointers<P>(values, slots), ...); },
               body->values);
    return submit(what, std::move(body), slots, sizeof(Made));
}

/* Static: each file has its own, which says its name. */
template <bool Barriers, class... P, class... A>
static inline cudaError_t launch(Launch what, void (*kernel)(P...), A &&...arguments)
{
    what.file = __BASE_FILE__;
    return launch_of<Barriers>(what, kernel, std::forward<A>(arguments)...);
}

} /* namespace sim */

template <class F>
void each_pointer(dim3 &, F)
{
}

#endif
