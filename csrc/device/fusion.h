/* Fusion: elementwise operations, conversions and broadcasts of tensors, and
 * reductions and operations on rows of their results, wait in a queue while a thread asks
 * for it, and run in one pass over the memory, as one kernel of a GPU (device/chain.h).
 *
 * The limit is the memory's speed: a chain reads each input once and writes each result that
 * somebody still holds once; results that nobody holds are not stored. Values are those of
 * the same operations one by one, bit for bit.
 *
 * The queue is one, of one stream of one device, guarded by the GIL. It holds a reference to
 * each storage that its steps read or write; a result whose storage has no other reference
 * is dead. It is run
 *   - by any other work of the backend, in any thread: the backend's table has functions
 *     that run it first (fusion.c);
 *   - by whoever takes the address of memory that it touches: dt_tensor_data;
 *   - by an operation that it cannot take: one of another device or stream, or one that
 *     touches memory of the queue;
 *   - on a GPU by what depends on the order of its streams, such as waits, events, copies
 *     and the ends of captures: dt_fusion_order;
 *   - at the end of the block that asked for it, and when it is full.
 * A run keeps the GIL: no other thread meets a tensor that is half done. On the CPU it cannot
 * fail. A launch can: then the call that ran the queue fails, or if it cannot, the next one
 * that can. Memory that the program sees from outside, NumPy's or what a NumPy array shows,
 * is not waited with. */
#ifndef DT_DEVICE_FUSION_H
#define DT_DEVICE_FUSION_H

#include "device/chain.h"
#include "device/storage.h"

/* 1, and while steps wait more than the number of elements of any tensor: dt_tensor_data
 * asks in one comparison whether a tensor is empty and whether anything waits. */
extern int64_t dt_fusion_bound __attribute__((visibility("hidden")));
/* Blocks that are open, of all threads. */
extern int dt_fusion_blocks __attribute__((visibility("hidden")));

/* From now on, or no longer, the calling thread's operations wait; calls nest. The outermost
 * end runs the queue, and gives -1 after dt_fail if that failed. */
void dt_fusion_begin(void);
int dt_fusion_end(void);
/* Whether they do. */
bool dt_fusion_asked(void);
static inline bool dt_fusion_on(void)
{
    return dt_fusion_blocks && dt_fusion_asked();
}

/* Runs the queue: 0, or -1 after dt_fail. why: what asks for it, for the listener; a
 * literal. */
int dt_fusion_run(const char *why);
/* The same if it is a GPU's. Call with the GIL before what depends on streams' order. */
int dt_fusion_order(const char *why);
/* Runs it if it touches the storage. */
void dt_fusion_settle(const dt_storage *storage);

/* A run, for torch.compile's explain(). lines: of each step (dt_activity_line). */
typedef struct dt_fusion_report {
    const dt_chain *chain;
    const int *lines;
    const char *why;
    bool compiled;        /* by a kernel of its own */
    int64_t bytes, apart; /* read and written, and by the steps one by one */
} dt_fusion_report;
/* NULL: nobody listens. Called with the GIL, after the run. */
void dt_fusion_listen(void (*listener)(const dt_fusion_report *report));

/* Calls compiler, with the GIL, with each chain that has run `runs` times on a GPU without a
 * kernel of its own; 0: with none. */
void dt_fusion_compile(int runs,
                       void (*compiler)(dt_device device, const dt_chain *chain));

#endif
