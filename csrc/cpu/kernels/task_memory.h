/* Memory of a task of the CPU's kernels. */
#ifndef DT_CPU_KERNELS_TASK_MEMORY_H
#define DT_CPU_KERNELS_TASK_MEMORY_H

#include <stdint.h>
#include <stdlib.h>

namespace {

/* Room for `bytes` in `parts` parts, each of which begins on a cache line. Where there is
 * no memory, data is NULL and *failed is set. */
class Room {
    static constexpr int64_t LINE = 64;
    int64_t taken = 0;

  public:
    char *data = nullptr;
    Room(int *failed, int64_t bytes, int64_t parts)
    {
        void *made;
        if (bytes < 0 || posix_memalign(&made, LINE, (size_t)(bytes + LINE * parts)))
            __atomic_store_n(failed, 1, __ATOMIC_RELAXED);
        else
            data = (char *)made;
    }
    Room(const Room &) = delete;
    ~Room() { free(data); }
    template <typename T>
    T *take(int64_t numel)
    {
        T *part = (T *)(data + taken);
        taken += (numel * (int64_t)sizeof(T) + LINE - 1) / LINE * LINE;
        return part;
    }
};

} // namespace

#endif
