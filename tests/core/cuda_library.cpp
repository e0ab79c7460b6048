/* Finding NVIDIA's libraries in the layout of the Python packages for CUDA 12: a folder
 * for each package, and libraries that need one another without saying where. */
#include "base/lock.h"
#include "sim_check.h"

#include "cuda/runtime/library.h"

static dt_error *slot()
{
    static thread_local dt_error error;
    return &error;
}

extern "C" const dt_backend *dt_backend_open(const dt_host *host);

/* Makes packages/nvidia/PACKAGE/lib/NAME.so.MAJOR, which needs the ones linked. */
static void make(const char *package, const char *name, const char *code,
                 const char *linked)
{
    char command[1024];
    const char *compiler = getenv("CC") ? getenv("CC") : "cc";
    snprintf(
        command, sizeof command,
        "d=packages/nvidia/%s/lib && mkdir -p $d && echo '%s' >one.c && %s -shared "
        "-fPIC -Wl,--no-as-needed -Wl,--allow-shlib-undefined -Wl,-soname,%s.so.%d "
        "-o $d/%s.so.%d one.c %s",
        package, code, compiler, name, DT_CUDA_MAJOR, name, DT_CUDA_MAJOR, linked);
    EQUAL(system(command), 0);
}

int main()
{
    char jit[256], sparse[256];
    snprintf(jit, sizeof jit, "packages/nvidia/jit/lib/libdt_jit.so.%d", DT_CUDA_MAJOR);
    snprintf(sparse, sizeof sparse, "packages/nvidia/sparse/lib/libdt_sparse.so.%d",
             DT_CUDA_MAJOR);
    make("jit", "libdt_jit", "int jit(void) { return 7; }", "");
    make("sparse", "libdt_sparse", "int jit(void); int sparse(void) { return jit(); }",
         jit);
    make("top", "libdt_top", "int sparse(void); int top(void) { return sparse(); }",
         sparse);
    dt_host host = {};
    host.version = DT_BACKEND_VERSION;
    host.error_slot = slot;
    host.locks = dt_locks;
    host.library_directories = "nowhere:packages";
    CHECK(dt_backend_open(&host));
    int (*top)() = nullptr;
    const dt_symbol symbols[] = {{"top", (void *)&top, false}};
    const char *const siblings[] = {"", "jit/libdt_jit sparse/libdt_sparse"};
    for (const char *each : siblings) {
        dt_library library = {"Top", "tests", "libdt_top", DT_CUDA_MAJOR, "top",
                              each,  0};
        EQUAL(library_open(&library, symbols, 1), *each ? 0 : -1);
    }
    CHECK(top && top() == 7);
    return finish();
}
