/* The parts of NVRTC, which compiles CUDA C at run time, and of the driver, which loads and
 * launches the result, that are used. Declared here because machines with a GPU often lack
 * the headers; nvrtc_check.cpp compares them with NVIDIA's where they exist. */
#ifndef DT_CUDA_RUNTIME_NVRTC_H
#define DT_CUDA_RUNTIME_NVRTC_H

#include <cuda_runtime.h>

#include "cuda/runtime/library.h"

typedef struct _nvrtcProgram *dt_nvrtc_program;
enum { DT_NVRTC_SUCCESS = 0, DT_NVRTC_COMPILATION = 6 };

#define DT_NVRTC_FUNCTIONS(FUNCTION)                                                   \
    FUNCTION(create, nvrtcCreateProgram,                                               \
             (dt_nvrtc_program * program, const char *source, const char *name,        \
              int headers, const char *const *texts, const char *const *names))        \
    FUNCTION(destroy, nvrtcDestroyProgram, (dt_nvrtc_program * program))               \
    FUNCTION(add_name, nvrtcAddNameExpression,                                         \
             (dt_nvrtc_program program, const char *name))                             \
    FUNCTION(compile, nvrtcCompileProgram,                                             \
             (dt_nvrtc_program program, int options, const char *const *texts))        \
    FUNCTION(log_size, nvrtcGetProgramLogSize,                                         \
             (dt_nvrtc_program program, size_t *bytes))                                \
    FUNCTION(log, nvrtcGetProgramLog, (dt_nvrtc_program program, char *log))           \
    FUNCTION(code_size, nvrtcGetCUBINSize, (dt_nvrtc_program program, size_t *bytes))  \
    FUNCTION(code, nvrtcGetCUBIN, (dt_nvrtc_program program, char *code))              \
    FUNCTION(lowered, nvrtcGetLoweredName,                                             \
             (dt_nvrtc_program program, const char *name, const char **lowered))       \
    FUNCTION(version, nvrtcVersion, (int *major, int *minor))

typedef struct dt_nvrtc {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_NVRTC_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_nvrtc;

typedef struct CUmod_st *dt_driver_module;
typedef struct CUfunc_st *dt_driver_function;
typedef struct CUstream_st *dt_driver_stream;
enum {
    DT_DRIVER_MAX_THREADS = 0,
    DT_DRIVER_SHARED_BYTES = 1,
    DT_DRIVER_CONST_BYTES = 2,
    DT_DRIVER_LOCAL_BYTES = 3,
    DT_DRIVER_REGISTERS = 4,
    DT_DRIVER_DYNAMIC_BYTES = 8
};

/* They return what cudaError_t has the same numbers for. */
#define DT_DRIVER_FUNCTIONS(FUNCTION)                                                  \
    FUNCTION(load, cuModuleLoadData, (dt_driver_module * module, const void *image))   \
    FUNCTION(                                                                          \
        function, cuModuleGetFunction,                                                 \
        (dt_driver_function * function, dt_driver_module module, const char *name))    \
    FUNCTION(variable, cuModuleGetGlobal_v2,                                           \
             (unsigned long long *address, size_t *bytes, dt_driver_module module,     \
              const char *name))                                                       \
    FUNCTION(launch, cuLaunchKernel,                                                   \
             (dt_driver_function function, unsigned gx, unsigned gy, unsigned gz,      \
              unsigned bx, unsigned by, unsigned bz, unsigned shared,                  \
              dt_driver_stream stream, void **values, void **extra))                   \
    FUNCTION(attribute, cuFuncGetAttribute,                                            \
             (int *value, int attribute, dt_driver_function function))                 \
    FUNCTION(set_attribute, cuFuncSetAttribute,                                        \
             (dt_driver_function function, int attribute, int value))

typedef struct dt_driver {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_DRIVER_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_driver;

#endif
