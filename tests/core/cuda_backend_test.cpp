/* The CUDA backend, driven through its struct: every op and layout against plain loops,
 * memory, copies, and failures.
 *
 *     cuda_backend_test
 *         tests the backend that it is linked to, on two simulated GPUs under each
 *         schedule
 *     cuda_backend_test LIBRARY [--simulated] [--packages=DIRECTORIES] [PART...]
 *         tests a backend, such as _cuda.so, on two virtual GPUs. It fails if they are
 *         simulated, unless that is asked for. cuBLAS is searched for in the
 *         directories, separated by colons. */
#include "sim_check.h"

#include <dlfcn.h>
#include <math.h>
#include <type_traits>

#include "cuda/kernels/layout.h"
#include "cuda/kernels/device_functions.h"
#include "cuda/kernels/window.h"
#include "cuda/runtime/nvml.h"
#include "device/backend.h"
#include "device/random.h"
#include "ops/elementwise.h"
#include "ops/elementwise_ops.h"
#include "ops/philox.h"
#include "ops/reduce_ops.h"

extern "C" const dt_backend *dt_backend_open(const dt_host *host);

static const dt_backend *gpu;
static bool linked; /* to the backend under test, whose simulator can be controlled */
static const dt_stream kDefault = {0, nullptr};

/* The call returns 0; else prints the error. */
#define FINE(call)                                                                     \
    do {                                                                               \
        if ((call) != 0) {                                                             \
            failed++;                                                                  \
            printf("%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                       \
                   dt_error_slot()->text);                                             \
            dt_error_clear();                                                          \
        }                                                                              \
    } while (0)
/* The call fails with this code and a message. */
#define FAILS(call, wanted)                                                            \
    do {                                                                               \
        EQUAL((call), -1);                                                             \
        EQUAL((int)dt_error_slot()->code, (int)(wanted));                              \
        CHECK(strlen(dt_error_slot()->text) > 20);                                     \
        dt_error_clear();                                                              \
    } while (0)

static dt_error *slot()
{
    static thread_local dt_error error;
    return &error;
}

static double element_at(const dt_gemm *g, const void *m, int64_t i)
{
    return g->dtype == DT_FLOAT32 ? ((const float *)m)[i] : ((const double *)m)[i];
}

static int plain_gemm(dt_stream, const dt_gemm *g)
{
    for (int64_t s = 0; s < g->batch; s++)
        for (int64_t i = 0; i < g->m; i++)
            for (int64_t j = 0; j < g->n; j++) {
                double sum = 0;
                for (int64_t k = 0; k < g->k; k++)
                    sum += element_at(g, g->a,
                                      s * g->a_batch + i * g->a_row + k * g->a_col) *
                           element_at(g, g->b,
                                      s * g->b_batch + k * g->b_row + j * g->b_col);
                int64_t at = s * g->c_batch + i * g->c_row + j;
                double old = g->beta == 0 ? 0 : g->beta * element_at(g, g->c, at);
                if (g->dtype == DT_FLOAT32)
                    ((float *)g->c)[at] = (float)(g->alpha * sum + old);
                else
                    ((double *)g->c)[at] = g->alpha * sum + old;
            }
    return 0;
}

/* --- device memory between margins that must not change --- */

static const size_t kMargin = 64;
static const unsigned char kUntouched = 0x5b;

struct Buffer {
    char *whole = nullptr, *data = nullptr;
    size_t bytes, shift;
    dt_stream stream;

    explicit Buffer(size_t n, size_t misaligned = 0, dt_stream q = kDefault)
        : bytes(n), shift(misaligned), stream(q)
    {
        void *got = nullptr;
        FINE(gpu->allocate(stream, total(), &got));
        whole = (char *)got;
        data = whole + kMargin + shift;
        std::vector<unsigned char> all(total(), kUntouched);
        FINE(gpu->copy_to_device(stream, whole, all.data(), all.size()));
    }
    Buffer(const Buffer &) = delete;
    ~Buffer() { gpu->release(stream.device, whole, total()); }
    size_t total() const { return bytes + 2 * kMargin + shift; }
    void set(const void *source)
    {
        FINE(gpu->copy_to_device(stream, data, source, bytes));
    }
    template <class T>
    std::vector<T> get()
    {
        std::vector<unsigned char> all(total());
        FINE(gpu->copy_to_host(stream, all.data(), whole, all.size()));
        for (size_t i = 0; i < all.size(); i++)
            if ((i < kMargin + shift || i >= kMargin + shift + bytes) &&
                all[i] != kUntouched) {
                failed++;
                printf("a kernel wrote %zd bytes outside of its result\n",
                       (ssize_t)i - (ssize_t)(kMargin + shift));
                break;
            }
        std::vector<T> out(bytes / sizeof(T));
        memcpy((void *)out.data(), all.data() + kMargin + shift, bytes);
        return out;
    }
};

template <class T>
struct Values { /* std::vector<bool> is not an array */
    std::vector<unsigned char> raw;
    explicit Values(size_t n) : raw(n * sizeof(T)) {}
    T *data() { return (T *)raw.data(); }
    T &operator[](size_t i) { return data()[i]; }
};
template <class T>
static Values<T> values_of(Buffer &buffer)
{
    std::vector<unsigned char> bytes = buffer.get<unsigned char>();
    Values<T> out(bytes.size() / sizeof(T));
    out.raw = bytes;
    return out;
}

static unsigned noise_state = 1;
static double noise(double low, double high)
{
    noise_state = noise_state * 1664525u + 1013904223u;
    return low + (high - low) * ((noise_state >> 8) / 16777216.0);
}
/* From here on the noise is that of a row, whichever rows come before it. */
static void noise_of(const char *name)
{
    noise_state = 2166136261u;
    for (; *name; name++)
        noise_state = (noise_state ^ (unsigned char)*name) * 16777619u;
}
template <class T>
static Values<T> draw(size_t n, double low, double high)
{
    Values<T> out(n);
    for (size_t i = 0; i < n; i++) {
        double x = noise(low, high);
        out[i] = sizeof(T) == 1 && (T)2 == (T)1 ? (T)(x > 0.5 * (low + high))
                                                : (T)(int64_t)x;
        if ((T)0.5 != (T)0 && (T)2 != (T)1)
            out[i] = (T)x;
    }
    return out;
}
static double slack = 1; /* number of roundings in a value */
template <class T>
static bool close_to(T got, T wanted)
{
    double a = (double)got, b = (double)wanted;
    if (a == b || (a != a && b != b))
        return true;
    return fabs(a - b) <= slack * (sizeof(T) == 4 ? 3e-6 : 1e-13) * (1 + fabs(b));
}

template <class T>
static bool same_values(const char *what, Values<T> got, Values<T> wanted)
{
    size_t n = wanted.raw.size() / sizeof(T);
    for (size_t i = 0; i < n; i++)
        if (!close_to(got[i], wanted[i])) {
            failed++;
            printf("%s: element %zu of %zu is %.9g, not %.9g\n", what, i, n,
                   (double)got[i], (double)wanted[i]);
            return false;
        }
    return true;
}

/* --- elementwise ops --- */

enum { KIND_BOOL, KIND_INTEGER, KIND_FLOAT };
static dt_plan flat_plan(int noperands, int64_t n)
{
    dt_plan plan = {};
    plan.ndim = 1;
    plan.noperands = noperands;
    plan.numel = plan.shape[0] = n;
    plan.contiguous = true;
    return plan;
}
static void flat_operand(dt_operand *operand, void *data, dt_dtype dtype)
{
    operand->data = data;
    operand->dtype = dtype;
    operand->strides[0] = (int64_t)dt_dtype_size(dtype);
}

/* A rows x columns result from one transposed and one broadcast operand. */
static const int64_t kRows = 37, kColumns = 29;
static void strided_plan(dt_plan *plan)
{
    plan->ndim = 2;
    plan->contiguous = false;
    plan->shape[0] = kRows;
    plan->shape[1] = kColumns;
    plan->numel = kRows * kColumns;
}
static void strides(dt_operand *operand, int64_t row, int64_t column)
{
    int64_t size = (int64_t)dt_dtype_size(operand->dtype);
    operand->strides[0] = row * size;
    operand->strides[1] = column * size;
}

static const int64_t kSizes[] = {1, 15, 257, 4099};

template <class First, class T, class R>
struct Case {
    dt_elementwise_op op;
    int arity;
    const char *name;
    dt_dtype dtypes[3]; /* of the result, the first input, the others */
    double low, high;
    R (*f)(First, T, T);

    dt_dtype dtype(int operand) const { return dtypes[operand < 2 ? operand : 2]; }

    /* Row-major operands: all tensors; one of them a scalar; the last one misaligned. */
    void check_flat(int64_t count, int form) const
    {
        size_t n = (size_t)count, shift = form == arity + 1 ? 1 : 0;
        Values<First> a = draw<First>(n, low, high);
        Values<T> b = draw<T>(n, low, high), c = draw<T>(n, low, high);
        Values<R> wanted(n);
        for (size_t i = 0; i < n; i++)
            wanted[i] =
                f(a[form == 1 ? 0 : i], b[form == 2 ? 0 : i], c[form == 3 ? 0 : i]);
        Buffer out(n * sizeof(R)),
            first(n * sizeof(First), arity == 1 ? shift * sizeof(First) : 0),
            second(n * sizeof(T), shift * sizeof(T)),
            third(n * sizeof(T), shift * sizeof(T));
        first.set(a.data());
        second.set(b.data());
        third.set(c.data());
        void *data[] = {out.data, first.data, second.data, third.data};
        const void *values[] = {nullptr, a.data(), b.data(), c.data()};
        dt_plan plan = flat_plan(arity + 1, count);
        for (int i = 0; i <= arity; i++)
            flat_operand(&plan.operands[i], data[i], dtype(i));
        if (form && form <= arity) {
            plan.operands[form].scalar = true;
            plan.operands[form].data = nullptr;
            memcpy(plan.operands[form].value.bytes, values[form],
                   dt_dtype_size(dtype(form)));
        }
        FINE(gpu->elementwise(kDefault, op, &plan));
        same_values(name, values_of<R>(out), wanted);
    }

    /* The first input transposed, the second broadcast. */
    void check_strided() const
    {
        size_t n = (size_t)(kRows * kColumns);
        Values<First> a = draw<First>(n, low, high);
        Values<T> b = draw<T>((size_t)kColumns, low, high), c = draw<T>(n, low, high);
        Values<R> wanted(n);
        for (int64_t i = 0; i < kRows; i++)
            for (int64_t j = 0; j < kColumns; j++)
                wanted[(size_t)(i * kColumns + j)] =
                    f(a[(size_t)(j * kRows + i)], b[(size_t)j],
                      c[(size_t)(i * kColumns + j)]);
        Buffer out(n * sizeof(R)), first(n * sizeof(First)),
            second((size_t)kColumns * sizeof(T)), third(n * sizeof(T));
        first.set(a.data());
        second.set(b.data());
        third.set(c.data());
        void *data[] = {out.data, first.data, second.data, third.data};
        const int64_t steps[][2] = {{kColumns, 1}, {1, kRows}, {0, 1}, {kColumns, 1}};
        dt_plan plan = flat_plan(arity + 1, 1);
        strided_plan(&plan);
        for (int i = 0; i <= arity; i++) {
            flat_operand(&plan.operands[i], data[i], dtype(i));
            strides(&plan.operands[i], steps[i][0], steps[i][1]);
        }
        FINE(gpu->elementwise(kDefault, op, &plan));
        same_values(name, values_of<R>(out), wanted);
    }

    void check() const
    {
        noise_of(name);
        for (int64_t n : kSizes)
            for (int form = 0; form <= arity + 1; form++)
                if (arity > 1 || form != 1) /* some input is a tensor */
                    check_flat(n, form);
        check_strided();
    }
};

template <class T>
static void refuses(dt_elementwise_op op, dt_dtype dtype)
{
    Buffer in(16 * sizeof(T)), out(16 * sizeof(T));
    dt_plan plan = flat_plan(dt_elementwise_rows[op].arity + 1, 16);
    for (int k = 0; k < plan.noperands; k++)
        flat_operand(&plan.operands[k], k ? in.data : out.data, dtype);
    FAILS(gpu->elementwise(kDefault, op, &plan), DT_ERROR_RUNTIME);
}

#define KERNEL(name, arity, class_, low, high, operands, value)                        \
    static constexpr dt_class class_of_##name = DT_CLASS_VALUE(DT_CLASS_##class_);
#include "ops/elementwise_kernels.def"

template <class T, int kind>
static void check_elementwise(dt_dtype dtype)
{
    bool is_unsigned = (T)-1 > (T)0;
#define KERNEL(name, arity, class_, low, high, operands, value)                        \
    if constexpr (arity > 3) { /* gradients in Python check a fourth input */          \
    } else if constexpr (class_of_##name.takes[kind]) {                                \
        typedef std::conditional_t<class_of_##name.choice, bool, T> First;             \
        typedef std::conditional_t<class_of_##name.truth, bool, T> R;                  \
        Case<First, T, R>{                                                             \
            DT_OP_##name,                                                              \
            arity,                                                                     \
            #name " " #class_,                                                         \
            {class_of_##name.truth ? DT_BOOL : dtype,                                  \
             class_of_##name.choice ? DT_BOOL : dtype, dtype},                         \
            (double)(is_unsigned && low < 0 ? 0 : low),                                \
            high,                                                                      \
            [](First a, [[maybe_unused]] T b, [[maybe_unused]] T d) -> R {             \
                operands(First, a, b, d, d) return (R)(value);                         \
            }}                                                                         \
            .check();                                                                  \
    } else if constexpr (!class_of_##name.choice) /* which moves any type */           \
        refuses<T>(DT_OP_##name, dtype);
#include "ops/elementwise_kernels.def"
}

static void check_all_elementwise()
{
#define DT_DTYPE_BOOL(ID, name, alias, type)                                           \
    check_elementwise<bool, KIND_BOOL>(DT_##ID);
#define DT_DTYPE_INTEGER(ID, name, alias, type)                                        \
    check_elementwise<type, KIND_INTEGER>(DT_##ID);
#define DT_DTYPE_FLOAT(ID, name, alias, type)                                          \
    check_elementwise<type, KIND_FLOAT>(DT_##ID);
#define DT_DTYPE_HALF(...)
#include "ops/dtype.def"
}

#include "cuda_backend_parts.inc"

/* Around the points where division changes its algorithm, and where a double
 * quotient is off. */
static void check_divisions()
{
    const int64_t two31 = (int64_t)1 << 31, two52 = (int64_t)1 << 52;
    const int64_t divisors[] = {
        1, 2, 3, 7, 49, 1000003, two31 - 1, two31, two31 + 1, two31 * 3 + 1, two52 / 3};
    const int64_t near[] = {0, 1, 12345, two31, two31 * 1000, two52 / 7, two52 - 8};
    for (int64_t divisor : divisors) {
        LongDivider by = long_divider_for(divisor);
        for (int64_t number : near)
            for (int64_t n = number - number % divisor - 2;
                 n <= number - number % divisor + divisor + 2;
                 n += divisor > 8 ? divisor / 4 + 1 : 1)
                if (n >= 0 && n < two52)
                    EQUAL(divide(n, by), n / divisor);
        EQUAL(divide(two52 - 1, by), (two52 - 1) / divisor);
        if (divisor >= two31)
            continue;
        const ProductDivider product = product_divider_for(divisor);
        for (int64_t n : {(int64_t)0, divisor - 1, divisor, two31 * divisor - 1,
                          two31 * divisor, two31 * (two31 - 1)})
            EQUAL(divide((uint64_t)n, product), n / divisor);
    }
}

/* Planes of windows that a kernel can number with 31 bits. */
static void check_windows()
{
    const dt_window one = {1,         {1, 1, 1}, {1, 1, 1}, {1, 1, 1},
                           {1, 1, 1}, {},        {1, 1, 1}};
    const int64_t sizes[] = {1, 1000, 1 << 30, INT32_MAX - 3};
    Window window;
    int64_t planes;
    for (int64_t size : sizes) {
        dt_window w = one;
        w.input[2] = size;
        w.stride[2] = w.dilation[2] = (int64_t)1 << 40; /* of one window, one tap */
        FINE(window_of(w, &window, &planes));
        EQUAL(planes, INT32_MAX / size);
    }
    for (int k = 0; k < 3; k++) {
        dt_window w = one;
        w.input[2] = 1 << 20;
        (k == 0   ? w.input
         : k == 1 ? w.kernel
                  : w.padding)[1] = k == 2 ? INT32_MAX : 1 << 11;
        if (k == 1)
            w.dilation[1] = 1 << 20;
        FAILS(window_of(w, &window, &planes), DT_ERROR_RUNTIME);
    }
}

/* --- the linked backend --- */

static dt_host host_of(int simulated, int virtual_devices, const char *packages)
{
    dt_host host = {};
    host.version = DT_BACKEND_VERSION;
    host.error_slot = slot;
    host.locks = dt_locks;
    host.cpu_gemm = plain_gemm;
    host.simulated_devices = simulated;
    host.virtual_devices = virtual_devices;
    host.library_directories = packages;
    return host;
}

/* Of two GPUs, as CUDA_VISIBLE_DEVICES lists them; 0: ask the runtime. */
static void check_count()
{
    static const struct {
        const char *visible;
        int count;
    } cases[] = {
        {nullptr, 2}, {"0", 1},   {"1,0", 2},        {"0, 1", 2}, {"1,2,0", 1},
        {"-1", 0},    {"", 0},    {"0,0", 0},        {"0,", 0},   {"GPU-8932f937", 0},
        {"0;1", 0},   {"2,0", 0}, {"99999999999", 0}};
    for (auto &each : cases) {
        int count = nvml_count([](int) { return true; }, each.visible);
        if (count != each.count)
            printf("CUDA_VISIBLE_DEVICES=%s\n", each.visible ? each.visible : "(none)");
        EQUAL(count, each.count);
    }
    EQUAL(nvml_count([](int capability) { return capability > 80; }, nullptr), 0);
}

static int check_linked()
{
    dt_host host = host_of(2, 0, "");
    linked = true;
    dt_sim_set("memory", "64M");
    gpu = dt_backend_open(&host);
    CHECK(gpu != nullptr);
    EQUAL(gpu->device_count(), 2);
    EQUAL(strlen(gpu->why_unavailable()), 0);
    check_count();
    /* Counting leaves a child able to use GPUs; a GPU in use leaves others alone. */
    EQUAL(in_child([] {
              void *data;
              unsigned flags;
              int active = 1;
              bool good = !gpu->allocate({1, nullptr}, 512, &data) &&
                          !cuDevicePrimaryCtxGetState(0, &flags, &active);
              _exit(!good || active);
          }),
          0);
    FAILS(gpu->device_synchronize(2), DT_ERROR_ACCELERATOR);
    check_philox();
    check_divisions();
    check_windows();
    static const char *const schedules[] = {"eager", "lazy", "random:1", "random:7"};
    for (const char *text : schedules) {
        schedule(text);
        if (strcmp(text, "random:7"))
            check_all_elementwise();
        check_reductions();
        check_extremes();
        check_conversions();
        check_constants();
        check_integer_products();
        check_float_products();
        check_random();
        check_transfers();
        check_peers();
        check_a_foreign_choice();
        check_allocator();
        check_failures();
    }
    char text[1024];
    if (dt_sim_violation(text, sizeof text)) {
        failed++;
        printf("violation: %s\n", text);
    }
    for (const char *when : schedules) {
        schedule(when);
        check_a_lost_device();
    }
    return finish();
}

/* --- a library --- */

static const struct {
    const char *name;
    void (*check)();
} kParts[] = {
    {"transfers", check_transfers},
    {"constants", check_constants},
    {"conversions", check_conversions},
    {"elementwise", check_all_elementwise},
    {"reductions", check_reductions},
    {"extremes", check_extremes},
    {"random", check_random},
    {"peers", check_peers},
    {"integer-products", check_integer_products},
    {"float-products", check_float_products},
};

/* The backend's table; NULL after a sentence about the cause. */
static const dt_backend *opened(const char *path, const char *packages)
{
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        printf("%s\n", dlerror());
        return nullptr;
    }
    auto open = (dt_backend_open_fn)dlsym(library, DT_BACKEND_OPEN_SYMBOL);
    dt_error_share(slot);
    dt_host host = host_of(2, 2, packages);
    const dt_backend *backend = open ? open(&host) : nullptr;
    if (!backend || backend->device_count() != 2) {
        printf("%s: no GPU: %s%s\n", path, dt_error_slot()->text,
               backend ? backend->why_unavailable() : "");
        return nullptr;
    }
    return backend;
}

static int check_library(int count, char **arguments)
{
    const char *packages = "";
    bool simulated = false;
    std::vector<std::string> wanted;
    for (int i = 1; i < count; i++) {
        std::string text = arguments[i];
        if (text == "--simulated")
            simulated = true;
        else if (text.rfind("--packages=", 0) == 0)
            packages = arguments[i] + strlen("--packages=");
        else
            wanted.push_back(text);
    }
    for (const std::string &name : wanted) {
        bool known = false;
        for (const auto &part : kParts)
            known = known || name == part.name;
        if (!known) {
            printf("no part is called %s\n", name.c_str());
            return 2;
        }
    }
    dt_device_properties facts;
    gpu = opened(arguments[0], packages);
    if (!gpu)
        return 1;
    for (int d = 0; d < 2; d++) {
        FINE(gpu->device_properties(d, &facts));
        printf("ran on cuda:%d %s (%s)\n", d, facts.name,
               facts.simulated ? "simulated" : "real");
    }
    if (facts.simulated && !simulated) {
        printf("this test needs a real GPU\n");
        return 1;
    }
    for (const auto &part : kParts) {
        bool chosen = wanted.empty();
        for (const std::string &name : wanted)
            chosen = chosen || name == part.name;
        if (!chosen)
            continue;
        int before = failed;
        part.check();
        FINE(gpu->device_synchronize(0));
        FINE(gpu->device_synchronize(1));
        printf("%s: %s\n", part.name, failed == before ? "passed" : "FAILED");
        fflush(stdout);
    }
    return finish();
}

int main(int count, char **arguments)
{
    return count > 1 ? check_library(count - 1, arguments + 1) : check_linked();
}
