// Ends the program with file, line and reason where a call fails.
#pragma once
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime.h>

#define CHECK(call) check((call), #call, __FILE__, __LINE__)

inline void check(cudaError_t status, const char *call, const char *file, int line)
{
    if (status == cudaSuccess)
        return;
    fprintf(stderr, "%s:%d: %s: %s\n", file, line, call, cudaGetErrorString(status));
    exit(EXIT_FAILURE);
}
