#include "autograd/hook.h"

#include <stdlib.h>

#include "base/count.h"
#include "base/error.h"

/* Inserts a hook after those of the same result, since they are called with one object. */
static void insert(dt_hook *hook, dt_hook **list)
{
    dt_hook **at = list, **behind = NULL;
    for (; *at && (hook->last || !(*at)->last); at = &(*at)->next)
        if (!hook->last && (*at)->index == hook->index)
            behind = &(*at)->next;
    if (behind)
        at = behind;
    hook->list = list;
    hook->next = *at;
    *at = hook;
}

dt_hook *dt_hooks_add(dt_hook **list, int index, bool last, dt_hook_fn call,
                      void (*release)(void *), void *context)
{
    static int64_t last_id;
    dt_hook *hook = malloc(sizeof *hook);
    if (!hook) {
        release(context);
        dt_fail(DT_ERROR_HOST_MEMORY, "register_hook: no memory left");
        return NULL;
    }
    *hook = (dt_hook){.id = __atomic_add_fetch(&last_id, 1, __ATOMIC_RELAXED),
                      .references = 1,
                      .uses = 1,
                      .last = last,
                      .index = index,
                      .call = call,
                      .free = release,
                      .context = context};
    insert(hook, list);
    return hook;
}

void dt_hook_release(dt_hook *hook)
{
    if (dt_count_down(&hook->references))
        free(hook);
}

static void end_use(dt_hook *hook)
{
    if (dt_count_down(&hook->uses))
        hook->free(hook->context);
    dt_hook_release(hook);
}

static void take_out(dt_hook *hook)
{
    dt_hook **at = hook->list;
    while (*at != hook)
        at = &(*at)->next;
    *at = hook->next;
    hook->list = NULL;
}

void dt_hook_move(dt_hook *hook, dt_hook **list, int index)
{
    take_out(hook);
    hook->index = index;
    insert(hook, list);
}

void dt_hook_remove(dt_hook *hook)
{
    if (!hook->list)
        return;
    take_out(hook);
    end_use(hook);
}

typedef struct arguments {
    dt_tensor *gradients;
    int nresults;
    const struct dt_node *node; /* of the hooks of a whole node; or NULL */
    struct dt_scope *scope;
    dt_tensor **inputs;
} arguments;

static int call(dt_hook *hook, const arguments *given, dt_shown *shown)
{
    if (given->node)
        return hook->call_node
                   ? hook->call_node(hook->context, given->node, given->scope,
                                     given->gradients, given->inputs)
                   : 0;
    return hook->index < given->nresults && given->gradients[hook->index].storage
               ? hook->call(hook->context, &given->gradients[hook->index], shown)
               : 0;
}

static void forget(dt_shown *shown)
{
    void *object = shown->object;
    shown->object = NULL;
    if (object)
        shown->free(object);
}

static int run_hooks(dt_hook *hooks, const arguments *given)
{
    dt_hook *few[8], **all = few;
    dt_shown shown = {NULL, NULL};
    size_t count = 0;
    int status = 0;
    for (dt_hook *hook = hooks; hook; hook = hook->next)
        count++;
    if (count > sizeof few / sizeof *few)
        all = malloc(count * sizeof(dt_hook *));
    if (!all)
        return dt_fail(DT_ERROR_HOST_MEMORY,
                       "backward: no memory left for the pass; free some");
    count = 0;
    for (dt_hook *hook = hooks; hook; hook = hook->next) {
        dt_count_up(&hook->references);
        dt_count_up(&hook->uses);
        all[count++] = hook;
    }
    int index = -1; /* of the hook before, which may be gone */
    for (size_t i = 0; i < count; i++) {
        dt_hook *hook = all[i];
        /* The last ones keep a gradient that nobody else refers to. */
        if (hook->last || hook->index != index)
            forget(&shown);
        index = hook->index;
        if (!status && hook->list)
            status = call(hook, given, &shown);
        end_use(hook);
    }
    forget(&shown);
    if (all != few)
        free(all);
    return status;
}

int dt_hooks_run(dt_hook *hooks, dt_tensor *gradients, int nresults)
{
    return run_hooks(hooks, &(arguments){.gradients = gradients, .nresults = nresults});
}

int dt_node_hooks_run(dt_hook *hooks, const struct dt_node *node,
                      struct dt_scope *scope, dt_tensor *results, dt_tensor **inputs)
{
    return run_hooks(hooks, &(arguments){results, 0, node, scope, inputs});
}

void dt_hooks_free_all(dt_hook **hooks)
{
    for (dt_hook *hook; (hook = *hooks);) {
        *hooks = hook->next;
        hook->list = NULL;
        end_use(hook);
    }
}
