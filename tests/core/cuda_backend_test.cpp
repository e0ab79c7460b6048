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
#include "backend_checks.h"
#include "sim_check.h"

#include <dlfcn.h>

#include "cuda/kernels/layout.h"
#include "cuda/kernels/window.h"
#include "cuda/runtime/nvml.h"
#include "ops/philox.h"

extern "C" const dt_backend *dt_backend_open(const dt_host *host);

static bool linked; /* to the backend under test, whose simulator can be controlled */

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
    backend = dt_backend_open(&host);
    CHECK(backend != nullptr);
    EQUAL(backend->device_count(), 2);
    EQUAL(strlen(backend->why_unavailable()), 0);
    check_count();
    /* Counting leaves a child able to use GPUs; a GPU in use leaves others alone. */
    EQUAL(in_child([] {
              void *data;
              unsigned flags;
              int active = 1;
              bool good = !backend->allocate({1, nullptr}, 512, &data) &&
                          !cuDevicePrimaryCtxGetState(0, &flags, &active);
              _exit(!good || active);
          }),
          0);
    FAILS(backend->device_synchronize(2), DT_ERROR_ACCELERATOR);
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
    const dt_backend *found = open ? open(&host) : nullptr;
    if (!found || found->device_count() != 2) {
        printf("%s: no GPU: %s%s\n", path, dt_error_slot()->text,
               found ? found->why_unavailable() : "");
        return nullptr;
    }
    return found;
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
    backend = opened(arguments[0], packages);
    if (!backend)
        return 1;
    for (int d = 0; d < 2; d++) {
        FINE(backend->device_properties(d, &facts));
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
        FINE(backend->device_synchronize(0));
        FINE(backend->device_synchronize(1));
        printf("%s: %s\n", part.name, failed == before ? "passed" : "FAILED");
        fflush(stdout);
    }
    return finish();
}

int main(int count, char **arguments)
{
    return count > 1 ? check_library(count - 1, arguments + 1) : check_linked();
}
