#include "cuda/runtime/cublaslt.h"

#include <stdio.h>
#include <string.h>

#include <array>

#include "cuda/runtime/choices.h"

static dt_library library = {
    "cuBLASLt", "products with biases", "libcublasLt", DT_CUDA_MAJOR, "cublas",
    "",         DT_CUBLAS_ALLOC_FAILED};

#ifdef DT_SIMULATED

extern const dt_cublaslt sim_cublaslt; /* sim/blas.cpp */

static const dt_cublaslt *functions_of(void)
{
    snprintf(library.path, sizeof library.path, "simulated");
    return &sim_cublaslt;
}

#else

/* NULL if there is no such library, which is looked for once. */
static const dt_cublaslt *functions_of(void)
{
    static dt_cublaslt functions;
    static const dt_symbol symbols[] = {DT_CUBLASLT_FUNCTIONS(LIBRARY_FUNCTION)};
    return library_found(&library, symbols) ? &functions : nullptr;
}

#endif

namespace {

/* The largest power of two up to 256 that an address is a multiple of. */
unsigned alignment_of(const void *p)
{
    unsigned low = (unsigned)(uintptr_t)p | 256;
    return low & (0 - low);
}

/* A product described for cuBLASLt. */
class Described {
  public:
    Described(const dt_cublaslt *functions, const CublasProduct &given,
              const void *bias)
        : lt(functions), p(given)
    {
        const bool wide = p.compute == DT_CUBLAS_COMPUTE_64F;
        const int epilogue = DT_CUBLASLT_EPILOGUE_BIAS;
        const bool ta = p.op_a == DT_CUBLAS_OP_T, tb = p.op_b == DT_CUBLAS_OP_T;
        done(lt->product_create(&product, p.compute,
                                wide ? DT_CUBLAS_64F : DT_CUBLAS_32F));
        set(DT_CUBLASLT_OP_A, p.op_a);
        set(DT_CUBLASLT_OP_B, p.op_b);
        set(DT_CUBLASLT_EPILOGUE, epilogue);
        set(DT_CUBLASLT_BIAS, bias);
        layout(&a, ta ? p.k : p.m, ta ? p.m : p.k, p.lda);
        layout(&b, tb ? p.n : p.k, tb ? p.k : p.n, p.ldb);
        layout(&c, p.m, p.n, p.ldc);
    }
    ~Described()
    {
        if (product)
            lt->product_destroy(product);
        for (void *each : {a, b, c})
            if (each)
                lt->layout_destroy(each);
        if (preference)
            lt->preference_destroy(preference);
    }
    Described(const Described &) = delete;

    /* The algorithm that the library finds best; status says if there is none. */
    void choose(dt_cublas_handle handle, uint64_t workspace, dt_cublaslt_choice *out)
    {
        int found = 0;
        done(lt->preference_create(&preference));
        prefer(DT_CUBLASLT_WORKSPACE, workspace);
        prefer(DT_CUBLASLT_ALIGNMENT_A, alignment_of(p.a));
        prefer(DT_CUBLASLT_ALIGNMENT_B, alignment_of(p.b));
        prefer(DT_CUBLASLT_ALIGNMENT_C, alignment_of(p.c));
        prefer(DT_CUBLASLT_ALIGNMENT_D, alignment_of(p.c));
        if (!status)
            status =
                lt->choose(handle, product, a, b, c, c, preference, 1, out, &found);
        if (!status && (!found || out->status))
            status = DT_CUBLASLT_NOT_SUPPORTED;
    }

    void multiply(const CublasHandle &blas, dt_stream stream, double alpha,
                  const dt_cublaslt_choice &choice)
    {
        const CublasScalar factor(p, alpha), zero(p, 0);
        if (!status)
            status =
                lt->matmul(blas.handle, product, factor.at, p.a, a, p.b, b, zero.at,
                           p.c, c, p.c, c, &choice.algorithm, blas.workspace.data,
                           blas.bytes, (cudaStream_t)stream.handle);
    }

    int status = 0; /* of the first call that failed */

  private:
    void done(int result) { status = status ? status : result; }
    template <class Value>
    void set(int attribute, const Value &value)
    {
        if (!status)
            status = lt->product_set(product, attribute, &value, sizeof value);
    }
    template <class Value>
    void prefer(int attribute, const Value &value)
    {
        if (!status)
            status = lt->preference_set(preference, attribute, &value, sizeof value);
    }
    void layout(void **out, int rows, int columns, int ld)
    {
        if (!status)
            status =
                lt->layout_create(out, p.type, (uint64_t)rows, (uint64_t)columns, ld);
    }

    const dt_cublaslt *lt;
    const CublasProduct &p;
    void *product = nullptr, *a = nullptr, *b = nullptr, *c = nullptr;
    void *preference = nullptr;
};

/* The key of a cached choice. */
typedef std::array<uint64_t, 15> Key;

Key key_of(int device, const CublasProduct &p, const void *bias, size_t workspace)
{
    return {(uint64_t)device,  (uint64_t)p.op_a,
            (uint64_t)p.op_b,  (uint64_t)p.m,
            (uint64_t)p.n,     (uint64_t)p.k,
            (uint64_t)p.lda,   (uint64_t)p.ldb,
            (uint64_t)p.ldc,   (uint64_t)(p.type << 8 | p.compute),
            alignment_of(p.a), alignment_of(p.b),
            alignment_of(p.c), alignment_of(bias),
            workspace};
}

} /* namespace */

int cublaslt_add_row(const CublasHandle &blas, dt_stream stream,
                     const CublasProduct &product, double alpha, const void *bias)
{
    static Choices<Key, dt_cublaslt_choice> choices;
    const dt_cublaslt *lt = functions_of();
    /* A vector's product is cuBLAS's: there is little to save. */
    if (!lt || product.m < 2 || product.n < 2 || product.k < 1)
        return 0;
    const Key key = key_of(stream.device, product, bias, blas.bytes);
    dt_cublaslt_choice *known = choices.find(key);
    if (known && known->status)
        return 0;
    Described described(lt, product, bias);
    if (!known) {
        dt_cublaslt_choice choice = {};
        described.choose(blas.handle, blas.bytes, &choice);
        choice.status = described.status;
        known = choices.keep(key, choice);
    }
    described.multiply(blas, stream, alpha, *known);
    if (described.status == DT_CUBLASLT_NOT_SUPPORTED) {
        known->status = described.status; /* do not try again */
        return 0;
    }
    if (!described.status)
        return 1;
    choices.forget(key);
    return library_fail(&library, described.status, "multiplying matrices");
}
