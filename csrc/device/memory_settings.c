#include "device/memory_history.h"

#include <ctype.h>
#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

#define MIB ((size_t)1 << 20)

/* KEY(name, kind): how the value is read. Those without a use here are checked and have no
 * effect. */
#define KEYS(KEY)                                                                      \
    KEY(expandable_segments, SWITCH)                                                   \
    KEY(max_split_size_mb, LEAST_20)                                                   \
    KEY(max_non_split_rounding_mb, LEAST_20)                                           \
    KEY(large_segment_size_mb, ABOVE_10)                                               \
    KEY(garbage_collection_threshold, SHARE)                                           \
    KEY(per_process_memory_fraction, FRACTION)                                         \
    KEY(roundup_power2_divisions, DIVISIONS)                                           \
    KEY(backend, BACKEND)                                                              \
    KEY(throw_on_cudamalloc_oom, SWITCH)                                               \
    KEY(release_lock_on_cudamalloc, SWITCH)                                            \
    KEY(release_lock_on_hipmalloc, SWITCH)                                             \
    KEY(graph_capture_record_stream_reuse, SWITCH)                                     \
    KEY(pinned_use_cuda_host_register, SWITCH)                                         \
    KEY(pinned_use_hip_host_register, SWITCH)                                          \
    KEY(pinned_use_background_threads, SWITCH)                                         \
    KEY(pinned_free_catch_all, SWITCH)                                                 \
    KEY(pinned_num_register_threads, THREADS)                                          \
    KEY(pinned_reserve_segment_size_mb, SIZE)                                          \
    KEY(pinned_max_round_threshold_mb, SIZE)                                           \
    KEY(pinned_max_cached_size_mb, SIZE)

typedef enum kind {
    SWITCH,
    LEAST_20,
    ABOVE_10,
    SIZE,
    SHARE,
    FRACTION,
    DIVISIONS,
    BACKEND,
    THREADS
} kind;

#define KEY(name, kind) KEY_##name,
typedef enum key { KEYS(KEY) NKEYS } key;
#undef KEY

static const struct {
    const char *name;
    kind kind;
} keys[] = {
#define KEY(name, kind) {#name, kind},
    KEYS(KEY)
#undef KEY
};

/* --- tokens: words, and the characters , : [ ] --- */

typedef struct reader {
    char *at;    /* what is left of a copy of the text, without spaces */
    char *token; /* the last one, by next(); "" at the end */
    char mark[2];
    char *word; /* as large as the text */
} reader;

static bool is_mark(char c)
{
    return c && strchr(",:[]", c);
}

static const char *next(reader *r)
{
    if (is_mark(*r->at)) {
        r->mark[0] = *r->at++;
        return r->token = r->mark;
    }
    size_t n = 0;
    while (*r->at && !is_mark(*r->at))
        r->word[n++] = *r->at++;
    r->word[n] = '\0';
    return r->token = r->word;
}

/* Whether the next token is the mark, which is then read. */
static bool skip(reader *r, char mark)
{
    const bool found = *r->at == mark;
    r->at += found;
    return found;
}

static int want(reader *r, char mark, const char *after)
{
    if (skip(r, mark))
        return 0;
    return dt_fail(DT_ERROR_RUNTIME,
                   "the allocator's settings have no '%c' after '%s'; write "
                   "key:value,key:value",
                   mark, after);
}

/* --- values --- */

static int fail_value(const char *name, const char *given, const char *wanted)
{
    return dt_fail(DT_ERROR_VALUE, "the allocator's setting %s is '%s'; give %s", name,
                   given, wanted);
}

/* As C's functions, a number ends where another character comes. */
static int read_size(const char *name, const char *text, size_t *out)
{
    char *end = NULL;
    errno = 0;
    *out = (size_t)strtoull(text, &end, 10);
    if (end == text)
        return fail_value(name, text, "a whole number");
    if (errno == ERANGE)
        return dt_fail(DT_ERROR_INDEX,
                       "the allocator's setting %s is %s, which is too large", name,
                       text);
    return 0;
}

static int read_double(const char *name, const char *text, double *out)
{
    char *end = NULL;
    *out = strtod(text, &end);
    return end == text ? fail_value(name, text, "a number") : 0;
}

static size_t of_mib(size_t count)
{
    return count < SIZE_MAX / MIB ? count * MIB : SIZE_MAX;
}

static bool is_power_of_two(size_t n)
{
    return n && !(n & (n - 1));
}

/* [256:1,512:2,>:4]: by the size in MiB that a range begins at; ">" is for all after the
 * last one. The first number is also for the ranges before it. */
static int read_ranges(reader *r, const char *name, size_t *divisions)
{
    size_t last = 0, value = 0, begin = 0;
    bool first = true;
    while (!skip(r, ']')) {
        if (skip(r, ','))
            continue;
        next(r);
        const bool rest = !strcmp(r->token, ">");
        if (!*r->token)
            return dt_fail(DT_ERROR_RUNTIME, "the allocator's setting %s has no ']'",
                           name);
        if (!rest) {
            if (read_size(name, r->token, &begin))
                return -1;
            if (!is_power_of_two(begin))
                return fail_value(name, r->token, "ranges that are powers of two");
        }
        if (want(r, ':', r->token) || read_size(name, next(r), &value))
            return -1;
        if (value && !is_power_of_two(value))
            return fail_value(name, r->token, "divisions that are powers of two, or 0");
        size_t range = 0;
        while (!rest && begin >> (range + 1))
            range++;
        const size_t from = rest ? (first ? 0 : last + 1) : first ? 0 : range;
        for (size_t i = from; i < DT_MEMORY_RANGES && (rest || i <= range); i++)
            divisions[i] = value;
        last = rest ? DT_MEMORY_RANGES : range;
        first = false;
    }
    return 0;
}

static int read_divisions(reader *r, const char *name, size_t *divisions)
{
    size_t value = 0;
    memset(divisions, 0, DT_MEMORY_RANGES * sizeof *divisions);
    if (skip(r, '['))
        return read_ranges(r, name, divisions);
    if (read_size(name, next(r), &value))
        return -1;
    if (!is_power_of_two(value))
        return fail_value(name, r->token, "a power of two");
    for (int i = 0; i < DT_MEMORY_RANGES; i++)
        divisions[i] = value;
    return 0;
}

/* --- a text --- */

static int read_value(reader *r, key which, dt_memory_settings *to)
{
    const char *name = keys[which].name, *text;
    const kind how = keys[which].kind;
    size_t size = 0;
    double number = 0;
    if (how == DIVISIONS)
        return read_divisions(r, name, to->divisions);
    text = next(r);
    if (!*text)
        return dt_fail(DT_ERROR_RUNTIME, "the allocator's setting %s has no value",
                       name);
    if (how == SWITCH && strcmp(text, "True") && strcmp(text, "False"))
        return fail_value(name, text, "True or False");
    if (how == BACKEND && strcmp(text, "native") && strcmp(text, "cudaMallocAsync"))
        return fail_value(name, text, "native or cudaMallocAsync");
    if (how == SHARE || how == FRACTION) {
        if (read_double(name, text, &number))
            return -1;
        if (how == SHARE && !(number > 0 && number < 1))
            return fail_value(name, text, "a number between 0 and 1");
        if (how == FRACTION && !(number >= 0 && number <= 1))
            return fail_value(name, text, "a number from 0 to 1");
    } else if (how != SWITCH && how != BACKEND) {
        if (read_size(name, text, &size))
            return -1;
        if (how == LEAST_20 && size < 20)
            return fail_value(name, text, "20 or more");
        if (how == ABOVE_10 && size <= 10)
            return fail_value(name, text, "more than 10");
        if (how == THREADS && !(is_power_of_two(size) && size <= 128))
            return fail_value(name, text, "a power of two up to 128");
    }
    switch (which) {
    case KEY_expandable_segments:
        to->expandable_segments = !strcmp(text, "True");
        break;
    case KEY_max_split_size_mb:
        to->max_split = of_mib(size);
        break;
    case KEY_max_non_split_rounding_mb:
        to->max_rounding = of_mib(size);
        break;
    case KEY_large_segment_size_mb:
        to->large_segment = of_mib(size);
        break;
    case KEY_garbage_collection_threshold:
        to->garbage_collection_threshold = number;
        break;
    case KEY_per_process_memory_fraction:
        to->fraction = number;
        break;
    default:
        break;
    }
    return 0;
}

static int read_text(reader *r, dt_memory_settings *to)
{
    while (*r->at) {
        if (skip(r, ','))
            continue;
        next(r);
        int which = 0;
        while (which < NKEYS && strcmp(r->token, keys[which].name))
            which++;
        if (want(r, ':', r->token))
            return -1;
        if (which == NKEYS)
            return dt_fail(DT_ERROR_VALUE,
                           "the allocator has no setting '%s'; docs/devices.md lists "
                           "those it has",
                           r->token);
        if (read_value(r, (key)which, to))
            return -1;
        if (*r->at && want(r, ',', keys[which].name))
            return -1;
    }
    return 0;
}

/* --- the settings now --- */

static const dt_memory_settings *current; /* NULL: the environment's was not read yet */

/* New settings by a text, on top of others, whose splitting and rounding it ends. The caller
 * owns them. NULL after dt_fail. */
static dt_memory_settings *make(const dt_memory_settings *base, const char *text)
{
    const dt_memory_settings defaults = DT_MEMORY_DEFAULTS;
    const size_t length = strlen(text) + 1;
    dt_memory_settings *made = malloc(sizeof *made + 3 * length);
    if (!made) {
        dt_fail(DT_ERROR_HOST_MEMORY, "no memory for the allocator's settings");
        return NULL;
    }
    char *kept = (char *)(made + 1), *stripped = kept + length;
    memcpy(kept, text, length);
    *made = base ? *base : defaults;
    made->text = kept;
    made->old = base;
    made->max_split = defaults.max_split;
    made->garbage_collection_threshold = defaults.garbage_collection_threshold;
    memcpy(made->divisions, defaults.divisions, sizeof made->divisions);
    size_t n = 0;
    for (const char *c = text; *c; c++)
        if (!isspace((unsigned char)*c))
            stripped[n++] = *c;
    stripped[n] = '\0';
    reader r = {.at = stripped, .word = stripped + length};
    if (!read_text(&r, made))
        return made;
    free(made);
    return NULL;
}

const dt_memory_settings *dt_memory_settings_get(void)
{
    const dt_memory_settings *found = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    if (found)
        return found;
    const char *text = getenv("PYTORCH_CUDA_ALLOC_CONF");
    if (!text)
        text = getenv("PYTORCH_ALLOC_CONF");
    dt_memory_settings *made = make(NULL, text ? text : "");
    if (!made) {
        dt_fail_append(" (from the environment's PYTORCH_ALLOC_CONF)");
        return NULL;
    }
    if (__atomic_compare_exchange_n(&current, &found, made, false, __ATOMIC_ACQ_REL,
                                    __ATOMIC_ACQUIRE))
        return made;
    free(made); /* another thread was first */
    return found;
}

int dt_memory_settings_set(const char *text)
{
    const dt_memory_settings *base = __atomic_load_n(&current, __ATOMIC_ACQUIRE);
    dt_memory_settings *made = make(base, text);
    if (!made)
        return -1;
    __atomic_store_n(&current, made, __ATOMIC_RELEASE);
    return 0;
}

/* --- the backend --- */

static dt_memory_grows_fn grows;

void dt_memory_open_library(void *library)
{
    void *symbol = dlsym(library, DT_MEMORY_OPEN_SYMBOL);
    dt_memory_open_fn open = NULL;
    memcpy(&open, &symbol, sizeof open); /* as ISO C has no cast for it */
    if (open)
        grows = open(dt_memory_settings_get, dt_memory_history_segment);
}

bool dt_memory_grows(int device, const void *address)
{
    return grows && grows(device, address);
}
