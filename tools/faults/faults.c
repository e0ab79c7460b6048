/* Makes allocations fail on demand: of pydevtensor's libraries, if this library is
 * preloaded; of Python on their behalf; and of the interpreter. run.py compiles and uses
 * it. */
#define _GNU_SOURCE
#include <Python.h>

#include <dlfcn.h>
#include <errno.h>
#include <execinfo.h>
#include <link.h>
#include <malloc.h>

enum { HOST = 1, PYTHON = 2, INTERPRETER = 4 };

/* The calls of the armed kinds are counted; those from first to last fail. */
static int armed;
static long first, last;
long faults_seen, faults_failed;

static int fails(int kind)
{
    if (!(__atomic_load_n(&armed, __ATOMIC_RELAXED) & kind))
        return 0;
    long n = __atomic_add_fetch(&faults_seen, 1, __ATOMIC_RELAXED);
    if (n < first || n > last)
        return 0;
    __atomic_add_fetch(&faults_failed, 1, __ATOMIC_RELAXED);
    return 1;
}

/* --- the host --- */

typedef struct {
    uintptr_t begin, end;
} code;

static code libraries[8], core, interpreter;
static int nlibraries;

static int is_in(const code *c, const void *address)
{
    return (uintptr_t)address >= c->begin && (uintptr_t)address < c->end;
}

static int is_ours(const void *address)
{
    for (int i = 0; i < nlibraries; i++)
        if (is_in(&libraries[i], address))
            return 1;
    return 0;
}

static int look(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    if (!strstr(info->dlpi_name, "/pydevtensor/_") || nlibraries == 8)
        return 0;
    for (int i = 0; i < info->dlpi_phnum; i++)
        if (info->dlpi_phdr[i].p_flags & PF_X) {
            uintptr_t begin = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
            code found = {begin, begin + info->dlpi_phdr[i].p_memsz};
            libraries[nlibraries++] = found;
            if (strstr(info->dlpi_name, "/_C."))
                core = found;
        }
    return 0;
}

/* Blocks that the core has allocated and not freed. (The simulator keeps account of what
 * was freed, too.) Their last bytes say that they are the core's: who calls free() cannot
 * be seen where the compiler made it a jump. */
long faults_blocks;
enum { MARK = sizeof(uintptr_t) };

static uintptr_t *mark_of(void *memory)
{
    return (uintptr_t *)((char *)memory + (malloc_usable_size(memory) & ~7UL) - MARK);
}

static uintptr_t mark_for(const void *memory)
{
    return (uintptr_t)memory ^ 0x9e3779b97f4a7c15;
}

static void *counted(void *memory, const void *caller)
{
    if (memory && is_in(&core, caller)) {
        __atomic_add_fetch(&faults_blocks, 1, __ATOMIC_RELAXED);
        *mark_of(memory) = mark_for(memory);
    }
    return memory;
}

/* Whether the block is the core's, which it is no longer. */
static int uncounted(void *memory)
{
    if (!memory || *mark_of(memory) != mark_for(memory))
        return 0;
    *mark_of(memory) = 0;
    __atomic_sub_fetch(&faults_blocks, 1, __ATOMIC_RELAXED);
    return 1;
}

static int host_fails(void *caller)
{
    return __atomic_load_n(&armed, __ATOMIC_RELAXED) & HOST && is_ours(caller) &&
           fails(HOST);
}
#define CALLER          __builtin_return_address(0)
#define ALLOCATED(call) (host_fails(CALLER) ? NULL : counted(call, CALLER))

void *__libc_malloc(size_t);
void *__libc_calloc(size_t, size_t);
void *__libc_realloc(void *, size_t);
void *__libc_memalign(size_t, size_t);
void __libc_free(void *);

void *malloc(size_t size)
{
    return ALLOCATED(__libc_malloc(size + 2 * MARK));
}

void *calloc(size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes))
        return NULL;
    return ALLOCATED(__libc_calloc(1, bytes + 2 * MARK));
}

void *realloc(void *old, size_t size)
{
    if (host_fails(CALLER))
        return NULL;
    int ours = uncounted(old);
    void *memory = __libc_realloc(old, size + 2 * MARK);
    if (!old)
        return counted(memory, CALLER);
    if (ours)
        counted(memory ? memory : old, (const void *)core.begin);
    return memory;
}

void *aligned_alloc(size_t alignment, size_t size)
{
    return ALLOCATED(__libc_memalign(alignment, size + 2 * MARK));
}

int posix_memalign(void **out, size_t alignment, size_t size)
{
    void *memory = ALLOCATED(__libc_memalign(alignment, size + 2 * MARK));
    if (!memory)
        return ENOMEM;
    *out = memory;
    return 0;
}

char *strdup(const char *text)
{
    size_t size = strlen(text) + 1;
    char *copy = ALLOCATED(__libc_malloc(size + 2 * MARK));
    return copy ? memcpy(copy, text, size) : NULL;
}

void free(void *memory)
{
    uncounted(memory);
    __libc_free(memory);
}

/* --- Python --- */

static PyMemAllocatorEx real[3];

/* Whom an allocation is for: a library, if Python runs none of its own code in between.
 * The interpreter loses objects when its own allocations fail. */
static int python_fails(void)
{
    int kinds = __atomic_load_n(&armed, __ATOMIC_RELAXED);
    if (!(kinds & (PYTHON | INTERPRETER)))
        return 0;
    void *stack[40];
    int count = backtrace(stack, 40);
    for (int i = 0; i < count && !is_in(&interpreter, stack[i]); i++)
        if (is_ours(stack[i]))
            return fails(PYTHON);
    return fails(INTERPRETER);
}

static void *python_malloc(void *of, size_t size)
{
    PyMemAllocatorEx *a = of;
    return python_fails() ? NULL : a->malloc(a->ctx, size);
}

static void *python_calloc(void *of, size_t count, size_t size)
{
    PyMemAllocatorEx *a = of;
    return python_fails() ? NULL : a->calloc(a->ctx, count, size);
}

static void *python_realloc(void *of, void *old, size_t size)
{
    PyMemAllocatorEx *a = of;
    return python_fails() ? NULL : a->realloc(a->ctx, old, size);
}

static void python_free(void *of, void *memory)
{
    PyMemAllocatorEx *a = of;
    a->free(a->ctx, memory);
}

void faults_install(void)
{
    void *stack[1];
    Dl_info info;
    ElfW(Sym) *symbol = NULL;
    void *eval = dlsym(RTLD_DEFAULT, "_PyEval_EvalFrameDefault");
    if (eval && dladdr1(eval, &info, (void **)&symbol, RTLD_DL_SYMENT) && symbol) {
        interpreter.begin = (uintptr_t)eval;
        interpreter.end = interpreter.begin + symbol->st_size;
    }
    backtrace(stack, 1); /* its first call allocates */
    static const PyMemAllocatorDomain domains[] = {PYMEM_DOMAIN_RAW, PYMEM_DOMAIN_MEM,
                                                   PYMEM_DOMAIN_OBJ};
    for (int i = 0; i < 3; i++) {
        PyMem_GetAllocator(domains[i], &real[i]);
        PyMemAllocatorEx ours = {&real[i], python_malloc, python_calloc, python_realloc,
                                 python_free};
        PyMem_SetAllocator(domains[i], &ours);
    }
}

/* --- both --- */

/* Finds the libraries that are loaded now. */
void faults_look(void)
{
    nlibraries = 0;
    dl_iterate_phdr(look, NULL);
}

/* Calls f(). Meanwhile the calls number from to `to` of the kinds fail. */
PyObject *faults_call(PyObject *f, int kinds, long from, long to)
{
    faults_look();
    faults_seen = faults_failed = 0;
    first = from;
    last = to;
    __atomic_store_n(&armed, kinds, __ATOMIC_RELAXED);
    PyObject *result = PyObject_CallNoArgs(f);
    __atomic_store_n(&armed, 0, __ATOMIC_RELAXED);
    return result;
}
