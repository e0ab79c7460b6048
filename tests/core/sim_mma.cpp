/* Products by tensor cores and what feeds them, on simulated GPUs: the fragments of every
 * lane against a plain product. */
#include "sim_check.h"
#include <math.h>
#include "cuda/kernels/async_copy.h"
#include "cuda/kernels/mma.h"

/* Matrices of 16 by 16 and 16 by 8 with the sums that are added to. */
template <class Half>
struct Product {
    Half a[16][16], b[16][8];
    float c[16][8];
};

/* Lane for lane as PTX has it, one element at a time. */
template <class Half>
__global__ void multiply(Product<Half> *p)
{
    unsigned a[4] = {}, b[2] = {};
    float c[4];
    int lane = (int)threadIdx.x, group = lane / 4, in_group = lane % 4;
    for (int i = 0; i < 8; i++) {
        int row = (i & 3) < 2 ? group : group + 8;
        int column = in_group * 2 + (i & 1) + (i < 4 ? 0 : 8);
        a[i / 2] |= (unsigned)p->a[row][column].bits << i % 2 * 16;
    }
    for (int i = 0; i < 4; i++) {
        int row = in_group * 2 + (i & 1) + (i < 2 ? 0 : 8);
        b[i / 2] |= (unsigned)p->b[row][group].bits << i % 2 * 16;
    }
    for (int i = 0; i < 4; i++)
        c[i] = p->c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)];
    /* More products than there is room for: the first ones are computed before. */
    WarpProducts<Half, 2> products;
    float others[2][4] = {};
    products.add(c, a, b);
    products.add(others[0], a, b);
    products.add(others[1], a, b);
    products.run();
    for (int i = 0; i < 4; i++)
        if (others[0][i] != others[1][i])
            __trap();
    for (int i = 0; i < 4; i++)
        p->c[i < 2 ? group : group + 8][in_group * 2 + (i & 1)] = c[i];
}

/* The same from shared memory, whose rows lie 48 bytes apart. */
template <class Half>
__global__ void multiply_loaded(Product<Half> *p)
{
    __shared__ struct {
        alignas(16) uint16_t a[16][24], b[16][24], across[8][24];
    } s;
    int lane = (int)threadIdx.x;
    for (int i = lane; i < 256; i += 32)
        s.a[i / 16][i % 16] = p->a[i / 16][i % 16].bits;
    for (int i = lane; i < 128; i += 32)
        s.b[i / 8][i % 8] = s.across[i % 8][i / 8] = p->b[i / 8][i % 8].bits;
    __syncwarp();
    unsigned a[4], b[4], across[4];
    load_matrices<false>(a, [&](int l) { return &s.a[l % 16][l / 16 * 8]; });
    load_matrices<true>(b, [&](int l) { return s.b[l % 16]; });
    load_matrices<false>(across,
                         [&](int l) { return &s.across[l % 8][l / 8 % 2 * 8]; });
    if (b[0] != across[0] || b[1] != across[1])
        __trap();
    float c[4];
    for (int i = 0; i < 4; i++)
        c[i] = p->c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2];
    WarpProducts<Half, 1> products;
    products.add(c, a, {b[0], b[1]});
    products.run();
    for (int i = 0; i < 4; i++)
        p->c[lane / 4 + i / 2 * 8][lane % 4 * 2 + i % 2] = c[i];
}

template <class Half>
static void test_product(void (*kernel)(Product<Half> *), const char *name)
{
    /* A stream of numbers of few digits: all products and sums are exact. */
    unsigned seed = 1;
    auto draw = [&] {
        seed = seed * 1664525 + 1013904223;
        return (float)(int)(seed >> 28) - 7.5f;
    };
    Product<Half> given, *p = on_device<Product<Half>>(1);
    for (int i = 0; i < 256; i++)
        given.a[i / 16][i % 16] = Half(draw());
    for (int i = 0; i < 128; i++) {
        given.b[i / 8][i % 8] = Half(draw());
        given.c[i / 8][i % 8] = draw();
    }
    GOOD(copy_now(p, &given, sizeof given, cudaMemcpyHostToDevice));
    GOOD(LAUNCH_BARRIERS(kernel, 1, 32, 0, nullptr, p));
    Product<Half> found = fetch(p, 1)[0];
    for (int i = 0; i < 16; i++)
        for (int j = 0; j < 8; j++) {
            float sum = given.c[i][j];
            for (int k = 0; k < 16; k++)
                sum += (float)given.a[i][k] * (float)given.b[k][j];
            check_equal(found.c[i][j], sum, name, __FILE__, __LINE__);
        }
    GOOD(cudaFree(p));
}

template <class Half>
__global__ void round_pair(float low, float high, unsigned *pair)
{
    *pair = half_pair<Half>(low, high);
}

/* Copies threads 0 and 1; reads before and after the wait. */
__global__ void copy_later(const float *from, float *to)
{
    __shared__ struct {
        alignas(16) float of[2][4];
    } s;
    AsyncCopies copies;
    float *mine = s.of[threadIdx.x];
    copies.start(mine, from, threadIdx.x == 0);
    to[2 * threadIdx.x] = mine[3];
    copies.await();
    to[2 * threadIdx.x + 1] = mine[3];
}
__global__ void load_from_odd(unsigned *out)
{
    __shared__ struct {
        alignas(16) uint16_t rows[32][12];
    } s;
    unsigned v[4];
    s.rows[threadIdx.x][0] = 0;
    load_matrices<false>(v, [&](int lane) { return s.rows[lane]; });
    out[threadIdx.x] = v[0];
}

int main()
{
    test_product(multiply<dt_float16>, "float16");
    test_product(multiply<dt_bfloat16>, "bfloat16");
    test_product(multiply_loaded<dt_float16>, "loaded float16");
    test_product(multiply_loaded<dt_bfloat16>, "loaded bfloat16");

    unsigned *pair = on_device<unsigned>(32);
    GOOD(LAUNCH(round_pair<dt_float16>, 1, 1, 0, nullptr, 1.0f, -2.0f, pair));
    EQUAL(fetch(pair, 1)[0], 0xc0003c00u);
    GOOD(LAUNCH(round_pair<dt_bfloat16>, 1, 1, 0, nullptr, 1.0f, -2.0f, pair));
    EQUAL(fetch(pair, 1)[0], 0xc0003f80u);

    const float given[] = {1, 2, 3, 4};
    float *from = on_device<float>(4), *to = on_device<float>(4);
    GOOD(copy_now(from, given, sizeof given, cudaMemcpyHostToDevice));
    GOOD(LAUNCH(copy_later, 1, 2, 0, nullptr, from, to));
    std::vector<float> found = fetch(to, 4);
    CHECK(isnan(found[0]) && isnan(found[2])); /* not there yet */
    EQUAL(found[1], 4);
    EQUAL(found[3], 0);

    GOOD(LAUNCH_BARRIERS(load_from_odd, 1, 32, 0, nullptr, pair));
    EQUAL((int)cudaStreamSynchronize(nullptr), (int)cudaErrorLaunchFailure);
    CHECK(said("__trap"));
    return finish();
}
