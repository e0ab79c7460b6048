#include "cpu/runtime/blas.h"

#include <dlfcn.h>
#include <glob.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/lock.h"
#include "cpu/runtime/cpu.h"

/* CBLAS constants. */
enum { ROW_MAJOR = 101, NO_TRANSPOSE = 111, TRANSPOSE = 112 };

/* CBLAS functions with 64-bit (ILP64) and 32-bit integers. */
typedef void sgemm64(int, int, int, int64_t, int64_t, int64_t, float, const float *,
                     int64_t, const float *, int64_t, float, float *, int64_t);
typedef void dgemm64(int, int, int, int64_t, int64_t, int64_t, double, const double *,
                     int64_t, const double *, int64_t, double, double *, int64_t);
typedef void sgemm32(int, int, int, int, int, int, float, const float *, int,
                     const float *, int, float, float *, int);
typedef void dgemm32(int, int, int, int, int, int, double, const double *, int,
                     const double *, int, double, double *, int);

/* How builds decorate symbols: a prefix, and a suffix that tells the integer size. */
static const struct naming {
    const char *prefix, *suffix;
    bool wide;
} namings[] = {
    {"scipy_", "64_", true}, {"scipy_", "", false}, {"", "64_", true},
    {"", "_64", true},       {"", "", false},
};

static struct {
    bool opened;
    char *search;
    sgemm64 *s64;
    dgemm64 *d64;
    sgemm32 *s32;
    dgemm32 *d32;
    void *library;
    const struct naming *naming;
    char path[4096], config[256], core[64];
} blas;

void dt_cpu_blas_set_search(const char *directories)
{
    char *copy = strdup(directories);
    if (!copy)
        return;
    dt_lock(DT_LOCK_BLAS);
    free(blas.search);
    blas.search = copy;
    dt_unlock(DT_LOCK_BLAS);
}

static void *symbol(void *library, const struct naming *n, const char *name)
{
    char text[128];
    snprintf(text, sizeof text, "%s%s%s", n->prefix, name, n->suffix);
    return dlsym(library, text);
}

void *dt_blas_symbol(const char *name)
{
    void *found = symbol(blas.library, blas.naming, name);
    return found ? found : dlsym(blas.library, name);
}

static void keep_text(char *out, size_t size, const char *(*get)(void))
{
    const char *text = get ? get() : NULL;
    if (text)
        snprintf(out, size, "%s", text);
}

/* When it is loaded, OpenBLAS starts a thread for each core but one, which then waits for
 * 0.1 s without sleeping. A library for which one thread is enough sees one core. */
static void *load(const char *path, bool alone)
{
    cpu_set_t all, one;
    const int core = sched_getcpu();
    alone = alone && core >= 0 && core < CPU_SETSIZE &&
            !sched_getaffinity(0, sizeof all, &all);
    CPU_ZERO(&one);
    if (alone)
        CPU_SET(core, &one);
    alone = alone && !sched_setaffinity(0, sizeof one, &one);
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (alone)
        (void)sched_setaffinity(0, sizeof all, &all);
    return library;
}

static bool open_library(const char *path, bool alone)
{
    void *library = load(path, alone);
    if (!library)
        return false;
    for (size_t i = 0; i < sizeof namings / sizeof *namings; i++) {
        const struct naming *n = &namings[i];
        if (!symbol(library, n, "cblas_sgemm") || !symbol(library, n, "cblas_dgemm"))
            continue;
        const char *(*config)(void) = NULL, *(*core)(void) = NULL;
        blas.library = library;
        blas.naming = n;
        DT_BLAS_FUNCTION(config, "openblas_get_config");
        DT_BLAS_FUNCTION(core, "openblas_get_corename");
        keep_text(blas.config, sizeof blas.config, config);
        keep_text(blas.core, sizeof blas.core, core);
        dt_blas_find_threads(alone);
        if (n->wide) {
            DT_BLAS_FUNCTION(blas.s64, "cblas_sgemm");
            DT_BLAS_FUNCTION(blas.d64, "cblas_dgemm");
        } else {
            DT_BLAS_FUNCTION(blas.s32, "cblas_sgemm");
            DT_BLAS_FUNCTION(blas.d32, "cblas_dgemm");
        }
        snprintf(blas.path, sizeof blas.path, "%s", path);
        return true; /* never closed: its functions stay in use */
    }
    dlclose(library);
    return false;
}

/* Opens the first library that matches a pattern below one of the directories. */
static bool open_below(const char *directories, const char *pattern)
{
    for (const char *d = directories; d && *d;) {
        const char *end = strchr(d, ':');
        int length = end ? (int)(end - d) : (int)strlen(d);
        char path[4096];
        glob_t found;
        snprintf(path, sizeof path, "%.*s/%s", length, d, pattern);
        if (length && !glob(path, 0, NULL, &found)) {
            bool done = false;
            for (size_t i = 0; i < found.gl_pathc && !done; i++)
                done = open_library(found.gl_pathv[i], !strncmp(pattern, "scipy", 5));
            globfree(&found);
            if (done)
                return true;
        }
        d = end ? end + 1 : NULL;
    }
    return false;
}

static void search(void)
{
    const char *wanted = getenv("PYDEVTENSOR_BLAS");
    if (wanted && *wanted && strcmp(wanted, "auto")) {
        if (strcmp(wanted, "own"))
            open_library(wanted, false);
        return;
    }
    static const char *const below[] = {
        "scipy_openblas64/lib/*.so",
        "scipy_openblas32/lib/*.so",
        "numpy.libs/libscipy_openblas*.so",
        "numpy.libs/libopenblas*.so",
    };
    static const char *const system[] = {"libopenblas.so.0", "libcblas.so.3",
                                         "libblas.so.3"};
    for (size_t i = 0; i < sizeof below / sizeof *below; i++)
        if (open_below(blas.search, below[i]))
            return;
    for (size_t i = 0; i < sizeof system / sizeof *system; i++)
        if (open_library(system[i], false))
            return;
}

static void ensure_opened(void)
{
    if (__atomic_load_n(&blas.opened, __ATOMIC_ACQUIRE))
        return;
    dt_lock(DT_LOCK_BLAS);
    if (!blas.opened) {
        search();
        __atomic_store_n(&blas.opened, true, __ATOMIC_RELEASE);
    }
    dt_unlock(DT_LOCK_BLAS);
}

bool dt_blas_has(dt_dtype dtype)
{
    if (dtype != DT_FLOAT32 && dtype != DT_FLOAT64)
        return false;
    ensure_opened();
    return blas.s64 || blas.s32;
}

void *dt_lapack_find(const char *name, bool *out_wide)
{
    char text[128];
    ensure_opened();
    if (!blas.library)
        return NULL;
    *out_wide = blas.naming->wide;
    snprintf(text, sizeof text, "%s%s_%s", blas.naming->prefix, name,
             blas.naming->wide ? "64_" : "");
    void *found = dlsym(blas.library, text);
    if (!found && !blas.naming->wide) { /* Debian has LAPACK in a library of its own */
        void *lapack = dlopen("liblapack.so.3", RTLD_NOW | RTLD_LOCAL);
        found = lapack ? dlsym(lapack, text) : NULL; /* never closed */
    }
    return found;
}

const char *dt_blas_path(void)
{
    ensure_opened();
    return blas.path;
}

const char *dt_blas_config(void)
{
    ensure_opened();
    return blas.config;
}

const char *dt_blas_core(void)
{
    ensure_opened();
    return blas.core;
}

/* An operand's leading dimension. BLAS wants at least the row length, even for a
 * single row. */
static int64_t leading(int64_t stride, int64_t length)
{
    int64_t least = length > 1 ? length : 1;
    return stride > least ? stride : least;
}

void dt_blas_gemm(const dt_gemm *g)
{
    bool ta = g->a_col != 1, tb = g->b_col != 1;
    /* The strides of a single row or column are arbitrary. */
    if (ta && g->a_row != 1)
        ta = g->k != 1;
    if (tb && g->b_row != 1)
        tb = g->n != 1;
    int64_t lda = ta ? leading(g->a_col, g->m) : leading(g->a_row, g->k);
    int64_t ldb = tb ? leading(g->b_col, g->k) : leading(g->b_row, g->n);
    int64_t ldc = leading(g->c_row, g->n);
    int opa = ta ? TRANSPOSE : NO_TRANSPOSE, opb = tb ? TRANSPOSE : NO_TRANSPOSE;
    if (g->dtype == DT_FLOAT32) {
        float alpha = (float)g->alpha, beta = (float)g->beta;
        if (blas.s64)
            blas.s64(ROW_MAJOR, opa, opb, g->m, g->n, g->k, alpha, g->a, lda, g->b, ldb,
                     beta, g->c, ldc);
        else
            blas.s32(ROW_MAJOR, opa, opb, (int)g->m, (int)g->n, (int)g->k, alpha, g->a,
                     (int)lda, g->b, (int)ldb, beta, g->c, (int)ldc);
    } else {
        if (blas.d64)
            blas.d64(ROW_MAJOR, opa, opb, g->m, g->n, g->k, g->alpha, g->a, lda, g->b,
                     ldb, g->beta, g->c, ldc);
        else
            blas.d32(ROW_MAJOR, opa, opb, (int)g->m, (int)g->n, (int)g->k, g->alpha,
                     g->a, (int)lda, g->b, (int)ldb, g->beta, g->c, (int)ldc);
    }
}
