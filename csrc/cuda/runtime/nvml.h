/* The part of NVML, NVIDIA's management library, that is used. It comes with the driver
 * and is opened to count GPUs: unlike the CUDA runtime, it leaves the process able to
 * fork children that use CUDA. */
#ifndef DT_CUDA_RUNTIME_NVML_H
#define DT_CUDA_RUNTIME_NVML_H

typedef struct nvmlDevice_st *dt_nvml_device;

/* FUNCTION(name, symbol, parameters): all return 0 for success. */
#define DT_NVML_FUNCTIONS(FUNCTION)                                                    \
    FUNCTION(init, nvmlInit_v2, (void))                                                \
    FUNCTION(shutdown, nvmlShutdown, (void))                                           \
    FUNCTION(driver_version, nvmlSystemGetCudaDriverVersion_v2, (int *version))        \
    FUNCTION(count, nvmlDeviceGetCount_v2, (unsigned *count))                          \
    FUNCTION(device, nvmlDeviceGetHandleByIndex_v2,                                    \
             (unsigned index, dt_nvml_device *device))                                 \
    FUNCTION(capability, nvmlDeviceGetCudaComputeCapability,                           \
             (dt_nvml_device device, int *major, int *minor))                          \
    FUNCTION(mig_mode, nvmlDeviceGetMigMode,                                           \
             (dt_nvml_device device, unsigned *current, unsigned *pending))

typedef struct dt_nvml {
#define FUNCTION(name, symbol, parameters) int(*name) parameters;
    DT_NVML_FUNCTIONS(FUNCTION)
#undef FUNCTION
} dt_nvml;

/* The number of GPUs that CUDA will find, of which runs_on(10 * major + minor) holds for
 * all. 0 where only CUDA can tell: without NVML, with an old driver, with GPUs of which
 * some are unusable or divided (MIG), or if `visible`, the text of CUDA_VISIBLE_DEVICES
 * or NULL, is not a list of different numbers. */
int nvml_count(bool (*runs_on)(int capability), const char *visible);

#endif
