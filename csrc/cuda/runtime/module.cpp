/* Kernels that the program compiled: loading and launching them. */
#include "cuda/runtime/backend.h"
#include "cuda/runtime/graph.h"
#include "cuda/runtime/launch.h"
#include "cuda/runtime/nvrtc.h"
#include "device/module.h"

#include <string.h>

#ifdef DT_SIMULATED

int dt_cuda_module_load(int device, const char *path, void **out)
{
    if (device_check(device))
        return -1;
    const char *error = sim::module_load(path, out);
    return error ? dt_fail(DT_ERROR_RUNTIME, "%s", error) : 0;
}

int dt_cuda_module_kernel(void *module, const char *name, const dt_module_kernel *,
                          const dt_module_kernel **out)
{
    *out = sim::module_kernel(module, name);
    return *out ? 0 : dt_fail(DT_ERROR_RUNTIME, "the module has no kernel %s", name);
}

int dt_cuda_module_variable(int device, void *module, const char *name, int access,
                            void *host, size_t *bytes)
{
    if (device_use(device))
        return -1;
    void *memory = sim::module_variable(module, name, bytes);
    if (!memory)
        return dt_fail(DT_ERROR_RUNTIME, "the module has no variable %s", name);
    if (access != DT_MODULE_SIZE)
        CUDA_TRY("waiting for a device", cudaDeviceSynchronize());
    if (access == DT_MODULE_READ)
        memcpy(host, memory, *bytes);
    if (access == DT_MODULE_WRITE)
        memcpy(memory, host, *bytes);
    return 0;
}

int dt_cuda_module_attribute(int, const dt_module_kernel *, int, bool, int *value)
{
    *value = -1;
    return 0;
}

int dt_cuda_launch(dt_stream stream, const dt_module_call *c)
{
    Relaxed mode; /* the first launch of a kernel loads it */
    const std::string fault = sim::module_fault(*c, stream.device);
    if (!fault.empty())
        return dt_fail(DT_ERROR_VALUE,
                       "%s; give the data_ptr() of a tensor on cuda:%d that the "
                       "program keeps until the launch",
                       fault.c_str(), stream.device);
    CUDA_TRY("launching a kernel of the program",
             sim::launch_module(*c, (cudaStream_t)stream.handle));
    return 0;
}

#else

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

/* The driver, which is there if a GPU is. NULL after dt_fail. */
static const dt_driver *driver_get()
{
    static dt_driver driver;
    static bool loaded;
    if (__atomic_load_n(&loaded, __ATOMIC_ACQUIRE))
        return &driver;
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        dt_fail(DT_ERROR_RUNTIME, "NVIDIA's driver does not load (%s)", dlerror());
        return nullptr;
    }
    dt_driver functions;
    const dt_symbol symbols[] = {DT_DRIVER_FUNCTIONS(LIBRARY_FUNCTION)};
    if (const char *lacks = library_lacks(library, symbols)) {
        dt_fail(DT_ERROR_RUNTIME, "NVIDIA's driver has no %s; install a newer one",
                lacks);
        return nullptr;
    }
    dt_lock(DT_LOCK_LIBRARIES);
    if (!loaded)
        driver = functions;
    __atomic_store_n(&loaded, true, __ATOMIC_RELEASE);
    dt_unlock(DT_LOCK_LIBRARIES);
    return &driver;
}

static void *read_file(const char *path)
{
    FILE *file = fopen(path, "rb");
    long bytes = file && !fseek(file, 0, SEEK_END) ? ftell(file) : -1;
    char *data = bytes >= 0 ? (char *)calloc((size_t)bytes + 1, 1) : nullptr;
    bool whole = data && !fseek(file, 0, SEEK_SET) &&
                 fread(data, 1, (size_t)bytes, file) == (size_t)bytes;
    if (!whole)
        dt_fail(DT_ERROR_RUNTIME, "%s cannot be read: %s", path, strerror(errno));
    if (file)
        fclose(file);
    if (!whole) {
        free(data);
        return nullptr;
    }
    return data;
}

int dt_cuda_module_load(int device, const char *path, void **out)
{
    const dt_driver *driver = driver_get();
    if (!driver || device_use(device))
        return -1;
    void *image = read_file(path);
    if (!image)
        return -1;
    Relaxed mode; /* it allocates */
    dt_driver_module module = nullptr;
    int status = driver->load(&module, image);
    free(image);
    CUDA_TRY("loading kernels of the program", (cudaError_t)status);
    *out = module;
    return 0;
}

/* A kernel and its description. */
struct OwnKernel {
    dt_module_kernel kernel;
    dt_module_parameter parameters[DT_MODULE_PARAMETERS];
};

int dt_cuda_module_kernel(void *module, const char *name,
                          const dt_module_kernel *described,
                          const dt_module_kernel **out)
{
    const dt_driver *driver = driver_get();
    dt_driver_function function = nullptr;
    if (!driver)
        return -1;
    if (!described || described->count > DT_MODULE_PARAMETERS)
        return dt_fail(DT_ERROR_VALUE,
                       "%s has too many parameters; a kernel has at "
                       "most %d",
                       name, DT_MODULE_PARAMETERS);
    CUDA_TRY("finding a kernel of the program",
             (cudaError_t)driver->function(&function, (dt_driver_module)module, name));
    OwnKernel *own = (OwnKernel *)calloc(1, sizeof *own); /* modules stay loaded */
    char *called = own ? strdup(described->name) : nullptr;
    if (!called) {
        free(own);
        return dt_fail(DT_ERROR_HOST_MEMORY, "no memory for a kernel");
    }
    memcpy(own->parameters, described->parameters,
           (size_t)described->count * sizeof *own->parameters);
    own->kernel = {called, function, true, false, described->count, own->parameters};
    *out = &own->kernel;
    return 0;
}

int dt_cuda_module_variable(int device, void *module, const char *name, int access,
                            void *host, size_t *bytes)
{
    const dt_driver *driver = driver_get();
    unsigned long long address = 0;
    if (!driver || device_use(device))
        return -1;
    CUDA_TRY(
        "finding a variable of the program",
        (cudaError_t)driver->variable(&address, bytes, (dt_driver_module)module, name));
    void *memory = (void *)(uintptr_t)address;
    if (access == DT_MODULE_SIZE)
        return 0;
    CUDA_TRY("waiting for a device", cudaDeviceSynchronize());
    CUDA_TRY("copying a variable of the program",
             access == DT_MODULE_READ
                 ? cudaMemcpyAsync(host, memory, *bytes, cudaMemcpyDeviceToHost)
                 : cudaMemcpyAsync(memory, host, *bytes, cudaMemcpyHostToDevice));
    CUDA_TRY("waiting for a device", cudaDeviceSynchronize());
    return 0;
}

int dt_cuda_module_attribute(int device, const dt_module_kernel *kernel, int attribute,
                             bool set, int *value)
{
    const dt_driver *driver = driver_get();
    const dt_driver_function function = (dt_driver_function)kernel->handle;
    if (!driver || device_use(device))
        return -1;
    CUDA_TRY("asking about a kernel of the program",
             (cudaError_t)(set ? driver->set_attribute(function, attribute, *value)
                               : driver->attribute(value, attribute, function)));
    return 0;
}

int dt_cuda_launch(dt_stream stream, const dt_module_call *c)
{
    const dt_driver *driver = driver_get();
    if (!driver || device_use(stream.device))
        return -1;
    Relaxed mode; /* the first launch of a kernel loads it */
    const unsigned *g = c->grid, *b = c->block;
    CUDA_TRY("launching a kernel of the program",
             (cudaError_t)driver->launch(
                 (dt_driver_function)c->kernel->handle, g[0], g[1], g[2], b[0], b[1],
                 b[2], (unsigned)c->shared, (dt_driver_stream)stream.handle,
                 (void **)c->values, nullptr));
    return 0;
}

#endif
