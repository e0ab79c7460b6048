/* The module's side of the checks: what the compiler's instrumentation calls. Included by
 * services.h in modules that are compiled with -fsanitize=thread,bounds,alignment,
 * none of whose runtimes is linked. */
#ifndef DT_SIM_CHECK_MODULE_H
#define DT_SIM_CHECK_MODULE_H

namespace sim {
SIM_QUIET void at(int line)
{
    dt_module_services.checks.at(line);
}
SIM_QUIET void touch_atomic(const void *address, unsigned how, int line)
{
    dt_module_services.checks.atomic(address, how, line);
}
SIM_QUIET void changed()
{
    dt_module_services.checks.changed();
}
SIM_QUIET void fence(bool of_block)
{
    dt_module_services.checks.fence(of_block);
}

struct UbsanPlace {
    const char *file;
    uint32_t line, column;
};
struct UbsanType {
    uint16_t kind, info;
    char name[1];
};
struct UbsanIndex {
    UbsanPlace place;
    UbsanType *array, *index;
};
struct UbsanPointer {
    UbsanPlace place;
    UbsanType *type;
    unsigned char log_alignment, kind;
};
} /* namespace sim */

#define SIM_HOOK                                                                       \
    extern "C" __attribute__((used, visibility("hidden"),                              \
                              no_sanitize("thread", "bounds", "alignment"))) void
#define SIM_HOOKS(bytes)                                                               \
    SIM_HOOK __tsan_read##bytes(void *p)                                               \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes, __builtin_return_address(0));       \
    }                                                                                  \
    SIM_HOOK __tsan_write##bytes(void *p)                                              \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes | sim::kWrites,                      \
                                         __builtin_return_address(0));                 \
    }                                                                                  \
    SIM_HOOK __tsan_unaligned_read##bytes(void *p)                                     \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes, __builtin_return_address(0));       \
    }                                                                                  \
    SIM_HOOK __tsan_unaligned_write##bytes(void *p)                                    \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes | sim::kWrites,                      \
                                         __builtin_return_address(0));                 \
    }                                                                                  \
    SIM_HOOK __tsan_volatile_read##bytes(void *p)                                      \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes | sim::kVolatile,                    \
                                         __builtin_return_address(0));                 \
    }                                                                                  \
    SIM_HOOK __tsan_volatile_write##bytes(void *p)                                     \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes | sim::kVolatile | sim::kWrites,     \
                                         __builtin_return_address(0));                 \
    }                                                                                  \
    SIM_HOOK __tsan_unaligned_volatile_read##bytes(void *p)                            \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes | sim::kVolatile,                    \
                                         __builtin_return_address(0));                 \
    }                                                                                  \
    SIM_HOOK __tsan_unaligned_volatile_write##bytes(void *p)                           \
    {                                                                                  \
        dt_module_services.checks.access(p, bytes | sim::kVolatile | sim::kWrites,     \
                                         __builtin_return_address(0));                 \
    }
SIM_HOOKS(1)
SIM_HOOKS(2)
SIM_HOOKS(4)
SIM_HOOKS(8)
SIM_HOOKS(16)
SIM_HOOK __tsan_read_range(void *p, unsigned long bytes)
{
    dt_module_services.checks.range(p, bytes, 0, __builtin_return_address(0));
}
SIM_HOOK __tsan_write_range(void *p, unsigned long bytes)
{
    dt_module_services.checks.range(p, bytes, sim::kWrites,
                                    __builtin_return_address(0));
}
/* Clang calls these for copies. */
extern "C" __attribute__((used, visibility("hidden"),
                          no_sanitize("thread", "bounds", "alignment"))) inline void *
__tsan_memcpy(void *to, const void *from, unsigned long bytes)
{
    dt_module_services.checks.range(from, bytes, 0, __builtin_return_address(0));
    dt_module_services.checks.range(to, bytes, sim::kWrites,
                                    __builtin_return_address(0));
    return memcpy(to, from, bytes);
}
extern "C" __attribute__((used, visibility("hidden"),
                          no_sanitize("thread", "bounds", "alignment"))) inline void *
__tsan_memmove(void *to, const void *from, unsigned long bytes)
{
    dt_module_services.checks.range(from, bytes, 0, __builtin_return_address(0));
    dt_module_services.checks.range(to, bytes, sim::kWrites,
                                    __builtin_return_address(0));
    return memmove(to, from, bytes);
}
extern "C" __attribute__((used, visibility("hidden"),
                          no_sanitize("thread", "bounds", "alignment"))) inline void *
__tsan_memset(void *to, int value, unsigned long bytes)
{
    dt_module_services.checks.range(to, bytes, sim::kWrites,
                                    __builtin_return_address(0));
    return memset(to, value, bytes);
}
SIM_HOOK __tsan_init() {}
SIM_HOOK __tsan_func_entry(void *) {}
SIM_HOOK __tsan_func_exit() {}
SIM_HOOK __tsan_vptr_read(void **) {}
SIM_HOOK __tsan_vptr_update(void **, void *) {}

SIM_HOOK __ubsan_handle_out_of_bounds(sim::UbsanIndex *found, unsigned long index)
{
    /* The index has as many bits as its type. */
    const int unused = 64 - (1 << (found->index->info >> 1));
    long long value = (long long)index;
    if (unused > 0 && found->index->info & 1)
        value = (long long)((unsigned long long)index << unused) >> unused;
    dt_module_services.checks.index(found->place.line, value, found->array->name);
}
SIM_HOOK __ubsan_handle_type_mismatch_v1(sim::UbsanPointer *found, unsigned long p)
{
    dt_module_services.checks.misaligned(found->place.line, (const void *)p,
                                         1u << found->log_alignment, found->type->name);
}

#undef SIM_HOOKS
#undef SIM_HOOK
#endif
