// What the two files of the program "pieces" share.
#pragma once

struct Buffers {
    float *x;
    double *y;
};

__global__ void fill(Buffers buffers, int n, float from);
void double_it(float *x, int n, cudaStream_t stream);
