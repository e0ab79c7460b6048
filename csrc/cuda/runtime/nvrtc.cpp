/* Compiles CUDA C for a GPU by NVRTC, which is opened on first use. */
#include "cuda/runtime/nvrtc.h"

#include <stdlib.h>
#include <string.h>
#include <memory>

#include "cuda/runtime/backend.h"
#include "device/module.h"

static dt_library nvrtc_library = {
    "NVRTC", "kernels of the program", "libnvrtc", DT_CUDA_MAJOR, "cuda-nvrtc", "", -1};

static const dt_nvrtc *nvrtc_get()
{
    static dt_nvrtc functions;
    static const dt_symbol symbols[] = {DT_NVRTC_FUNCTIONS(LIBRARY_FUNCTION)};
    return library_open(&nvrtc_library, symbols) ? nullptr : &functions;
}

const char *dt_cuda_module_compiler(int *version)
{
    int major = 0, minor = 0;
    const dt_nvrtc *nvrtc = nvrtc_get();
    if (!nvrtc)
        return nullptr;
    if (nvrtc->version(&major, &minor)) {
        dt_fail(DT_ERROR_RUNTIME, "NVRTC at %s does not say its version",
                nvrtc_library.path);
        return nullptr;
    }
    *version = 1000 * major + 10 * minor;
    return nvrtc_library.path;
}

/* Ends a program with its block. */
struct Program {
    const dt_nvrtc *nvrtc;
    dt_nvrtc_program handle = nullptr;
    ~Program()
    {
        if (handle)
            nvrtc->destroy(&handle);
    }
};

static int failed(const char *doing, int status)
{
    return library_fail(&nvrtc_library, status, doing);
}

static int read_log(const Program &program, dt_module_code *out)
{
    size_t bytes = 0;
    if (int status = program.nvrtc->log_size(program.handle, &bytes))
        return failed("reading its messages", status);
    out->log = (char *)calloc(bytes + 1, 1);
    if (!out->log)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for NVRTC's messages");
    if (int status = program.nvrtc->log(program.handle, out->log))
        return failed("reading its messages", status);
    return 0;
}

static int read_code(const Program &program, const dt_module_source *source,
                     dt_module_code *out)
{
    if (int status = program.nvrtc->code_size(program.handle, &out->bytes))
        return failed("making code", status);
    out->code = (char *)malloc(out->bytes + 1);
    if (!out->code)
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for code of %zu bytes",
                       out->bytes);
    if (int status = program.nvrtc->code(program.handle, out->code))
        return failed("making code", status);
    for (int i = 0; i < source->nnames; i++) {
        const char *lowered = nullptr;
        if (int status =
                program.nvrtc->lowered(program.handle, source->names[i], &lowered))
            return failed("naming kernels", status);
        out->lowered[i] = strdup(lowered);
        if (!out->lowered[i])
            return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for a kernel's name");
    }
    return 0;
}

int dt_cuda_module_compile(const dt_module_source *source, dt_module_code *out)
{
    Program program{nvrtc_get()};
    if (!program.nvrtc)
        return -1;
    if (int status = program.nvrtc->create(&program.handle, source->text, "pydevtensor",
                                           source->nheaders, source->headers,
                                           source->header_names))
        return failed("starting", status);
    for (int i = 0; i < source->nnames; i++)
        if (int status = program.nvrtc->add_name(program.handle, source->names[i]))
            return failed("naming kernels", status);
    const int status =
        program.nvrtc->compile(program.handle, source->noptions, source->options);
    if (read_log(program, out))
        return -1;
    /* A wrong option is explained in the log too. */
    if (status && !*out->log)
        return failed("compiling", status);
    return status ? 0 : read_code(program, source, out);
}
