/* Copies: all pairs of types with values at and beyond their limits, layouts, fills. */
#include "cpu_support.h"

static const dt_backend *cpu;

/* Float to integer as on x86 and in PyTorch: see cpu/kernels/copy.isa.c. */
static int64_t truncated(dt_dtype to, double x)
{
    bool wide = to == DT_INT64 || to == DT_UINT8;
    double limit = wide ? 0x1p63 : 0x1p31;
    int64_t least = wide ? INT64_MIN : INT32_MIN, value = least;
    if (trunc(x) >= -limit && trunc(x) < limit)
        value = (int64_t)x;
    dt_element e = dt_element_from_scalar(to, dt_scalar_int(value));
    return dt_element_to_scalar(to, e.bytes).i;
}

static void test_pair(dt_dtype to, dt_dtype from)
{
    static const double values[] = {0,
                                    -0.0,
                                    1,
                                    -1,
                                    1.5,
                                    -1.5,
                                    127,
                                    128,
                                    255.9,
                                    256.1,
                                    -129,
                                    300.7,
                                    -300.2,
                                    32768,
                                    70000,
                                    -40000,
                                    2147483647.5,
                                    2147483648.0,
                                    -2147483648.0,
                                    -2147483649.0,
                                    3e9,
                                    -3e9,
                                    4294967297.0,
                                    1e18,
                                    1e19,
                                    -1e19,
                                    1e30,
                                    -1e30,
                                    INFINITY,
                                    -INFINITY,
                                    NAN,
                                    0x1p-149,
                                    -0.5};
    enum { COUNT = sizeof values / sizeof *values, N = COUNT * 5 };
    size_t fs = dt_dtype_size(from), ts = dt_dtype_size(to);
    char *x = guarded_new(N * fs), *out = guarded_new(2 * N * ts);
    for (int i = 0; i < N; i++) {
        double v = values[i % COUNT];
        if (dt_dtype_is_float(from)) {
            put(from, x + (size_t)i * fs, v);
        } else {
            dt_element e =
                dt_element_from_scalar(from, dt_scalar_int((int64_t)noise()));
            memcpy(x + (size_t)i * fs, e.bytes, fs);
        }
    }
    for (int step = 1; step <= 2; step++) {
        dt_plan p = {.ndim = 1,
                     .noperands = 2,
                     .numel = N,
                     .shape = {N},
                     .contiguous = step == 1};
        p.operands[0] =
            (dt_operand){.data = out, .dtype = to, .strides = {step * (int64_t)ts}};
        p.operands[1] =
            (dt_operand){.data = x, .dtype = from, .strides = {(int64_t)fs}};
        CHECK(cpu->copy(stream, &p) == 0, "%s", dt_error_slot()->text);
        for (int i = 0; i < N; i++) {
            const char *at = x + (size_t)i * fs;
            dt_scalar s = dt_element_to_scalar(from, at), got;
            got = dt_element_to_scalar(to, out + (size_t)(i * step) * ts);
            dt_element e = dt_element_from_scalar(to, s);
            dt_scalar wanted = dt_element_to_scalar(to, e.bytes);
            if (s.kind == DT_KIND_FLOAT && dt_dtype_kind(to) == DT_KIND_INTEGER)
                wanted.i = truncated(to, s.f);
            bool same = dt_dtype_is_float(to)
                            ? got.f == wanted.f || (isnan(got.f) && isnan(wanted.f))
                            : got.i == wanted.i;
            CHECK(same, "%s to %s: %.17g", dt_dtype_name(from), dt_dtype_name(to),
                  dt_scalar_as_double(s));
        }
    }
    guarded_free(x, N * fs);
    guarded_free(out, 2 * N * ts);
}

/* All 16-bit patterns: vector code against portable code, in every lane of a vector. */
static void test_halves(dt_dtype dtype)
{
    enum { ALL = 65536, SHIFTS = 9 };
    uint16_t *x = (uint16_t *)guarded_new((ALL + SHIFTS) * 2),
             *back = (uint16_t *)guarded_new((ALL + SHIFTS) * 2);
    float *wide = (float *)guarded_new((ALL + SHIFTS) * 4);
    for (int shift = 0; shift < SHIFTS; shift += 3) {
        for (int i = 0; i < ALL; i++)
            x[i + shift] = (uint16_t)i;
        dt_plan p = {.ndim = 1,
                     .noperands = 2,
                     .numel = ALL,
                     .shape = {ALL},
                     .contiguous = true};
        p.operands[0] =
            (dt_operand){.data = wide + shift, .dtype = DT_FLOAT32, .strides = {4}};
        p.operands[1] = (dt_operand){.data = x + shift, .dtype = dtype, .strides = {2}};
        CHECK(cpu->copy(stream, &p) == 0, "%s", dt_error_slot()->text);
        p.operands[1] = p.operands[0];
        p.operands[0] =
            (dt_operand){.data = back + shift, .dtype = dtype, .strides = {2}};
        CHECK(cpu->copy(stream, &p) == 0, "%s", dt_error_slot()->text);
        for (int i = 0; i < ALL; i++) {
            bool half = dtype == DT_FLOAT16;
            float wanted =
                half ? dt_float16_widen((uint16_t)i) : dt_bfloat16_widen((uint16_t)i);
            uint16_t bits =
                half ? dt_float16_narrow(wanted) : dt_bfloat16_narrow(wanted);
            if (memcmp(&wide[i + shift], &wanted, 4) || back[i + shift] != bits ||
                (wanted == wanted && bits != i)) {
                CHECK(false, "%s of bits %04x: %a, back %04x", dt_dtype_name(dtype), i,
                      (double)wide[i + shift], (unsigned)back[i + shift]);
                break;
            }
        }
        /* Between neighbours, where rounding must choose. */
        for (int i = 0; i < ALL; i++) {
            uint32_t bits = dt_float32_bits(wide[i + shift]);
            bits += (uint32_t)(noise() & 0xffff) + (noise() & 1 ? 0x8000u : 0x1000u);
            wide[i + shift] = dt_float32_of_bits(bits);
        }
        CHECK(cpu->copy(stream, &p) == 0, "%s", dt_error_slot()->text);
        for (int i = 0; i < ALL; i++) {
            float value = wide[i + shift];
            uint16_t bits = dtype == DT_FLOAT16 ? dt_float16_narrow(value)
                                                : dt_bfloat16_narrow(value);
            if (back[i + shift] != bits) {
                CHECK(false, "%a to %s: %04x, not %04x", (double)value,
                      dt_dtype_name(dtype), (unsigned)back[i + shift], (unsigned)bits);
                break;
            }
        }
    }
    guarded_free((char *)x, (ALL + SHIFTS) * 2);
    guarded_free((char *)back, (ALL + SHIFTS) * 2);
    guarded_free((char *)wide, (ALL + SHIFTS) * 4);
}

/* A permuted copy of three dimensions. */
static void test_permuted(dt_dtype dtype, const int64_t *shape, const int *axes,
                          int64_t gap)
{
    size_t size = dt_dtype_size(dtype);
    int64_t numel = shape[0] * shape[1] * shape[2];
    size_t bytes = (size_t)numel * size, source_bytes = bytes * (size_t)(1 + gap);
    char *x = guarded_new(source_bytes), *out = guarded_new(bytes);
    for (size_t i = 0; i < source_bytes; i++)
        x[i] = dtype == DT_BOOL ? (char)(noise() & 1) : (char)(noise() & 0x3f);
    dt_plan p = {.ndim = 3, .noperands = 2, .numel = numel};
    int64_t strides[3] = {shape[1] * shape[2], shape[2], 1};
    int64_t out_step = (int64_t)size;
    for (int d = 2; d >= 0; d--) {
        p.shape[d] = shape[axes[d]];
        p.operands[1].strides[d] = strides[axes[d]] * (1 + gap) * (int64_t)size;
        p.operands[0].strides[d] = out_step;
        out_step *= p.shape[d];
    }
    p.operands[0].data = out;
    p.operands[1].data = x;
    p.operands[0].dtype = p.operands[1].dtype = dtype;
    CHECK(cpu->copy(stream, &p) == 0, "%s", dt_error_slot()->text);
    for (int64_t i = 0, item = 0; i < p.shape[0]; i++)
        for (int64_t j = 0; j < p.shape[1]; j++)
            for (int64_t k = 0; k < p.shape[2]; k++, item++)
                if (memcmp(out + (size_t)item * size,
                           x + i * p.operands[1].strides[0] +
                               j * p.operands[1].strides[1] +
                               k * p.operands[1].strides[2],
                           size)) {
                    CHECK(
                        false, "%s, axes %d %d %d, shape %d %d %d, gap %d: element %d",
                        dt_dtype_name(dtype), axes[0], axes[1], axes[2], (int)shape[0],
                        (int)shape[1], (int)shape[2], (int)gap, (int)item);
                    goto done;
                }
done:
    guarded_free(x, source_bytes);
    guarded_free(out, bytes);
}

static void test_large(void)
{
    /* Larger than the caches, at every alignment to a cache line. */
    int64_t n = 6000000;
    float *x = malloc((size_t)(n + 32) * 4), *out = malloc((size_t)(n + 32) * 4);
    for (int64_t i = 0; i < n + 32; i++)
        x[i] = (float)i;
    for (int at = 0; at < 17; at += 3) {
        memset(out, 0xff, (size_t)(n + 32) * 4);
        dt_plan p = {.ndim = 1,
                     .noperands = 2,
                     .numel = n - at,
                     .shape = {n - at},
                     .contiguous = true};
        p.operands[0] =
            (dt_operand){.data = out + at, .dtype = DT_FLOAT32, .strides = {4}};
        p.operands[1] = (dt_operand){.data = x, .dtype = DT_FLOAT32, .strides = {4}};
        cpu->copy(stream, &p);
        CHECK(!memcmp(out + at, x, (size_t)(n - at) * 4), "a large copy at %d", at);
        CHECK(isnan(out[n]) && (at == 0 || isnan(out[at - 1])), "no more than that");
        p.operands[1] = (dt_operand){
            .dtype = DT_FLOAT32, .scalar = true, .value = {.as_float32 = 7}};
        cpu->fill(stream, &p);
        int64_t wrong = 0;
        for (int64_t i = at; i < n; i++)
            wrong += out[i] != 7;
        CHECK(!wrong && isnan(out[n]), "a large fill at %d", at);
    }
    free(x);
    free(out);
}

int main(void)
{
    cpu = dt_cpu_backend();
    test_halves(DT_FLOAT16);
    test_halves(DT_BFLOAT16);
    for (int to = 0; to < NREAL; to++)
        for (int from = 0; from < NREAL; from++)
            test_pair((dt_dtype)to, (dt_dtype)from);
    static const int axes[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                  {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    static const int64_t shapes[][3] = {
        {1, 5, 7},     {3, 4, 5},     {1, 200, 333},  {7, 64, 65},
        {300, 2, 129}, {2, 1000, 31}, {1, 513, 1027},
    };
    for (int dtype = 0; dtype < NREAL; dtype++)
        for (int a = 0; a < 6; a++)
            for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++)
                for (int64_t gap = 0; gap < 2; gap++)
                    test_permuted((dt_dtype)dtype, shapes[s], axes[a], gap);
    test_large();
    return failures != 0;
}
