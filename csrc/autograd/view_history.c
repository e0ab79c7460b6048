/* The autograd metadata of views: a view knows its base, and finds out when that was
 * written. */
#include <assert.h>
#include <stdlib.h>

#include "autograd/record.h"
#include "autograd/variable.h"

int dt_variable_refresh_slowly(const dt_tensor *t)
{
    dt_variable *v = dt_variable_of(t);
    /* The base was written in place: the view's values now come from there. */
    unsigned before = v->version;
    v->version = t->storage->version;
    if ((!v->made.node && !dt_variable_requires_grad(v->base)) ||
        dt_record_as_strided(t, v) == 0)
        return 0;
    v->version = before;
    return -1;
}

int dt_variable_set_view(dt_tensor *view, const dt_tensor *t)
{
    /* Autograd metadata is not part of the tensor's value. */
    dt_variable *of = dt_variable_ensure((dt_tensor *)t);
    dt_variable *v = of ? dt_variable_ensure(view) : NULL;
    if (!v)
        return -1;
    if (of->base) {
        of = of->base;
    } else if (!of->geometry) {
        of->geometry = malloc(sizeof *of->geometry);
        if (!of->geometry)
            return dt_variable_no_memory();
        dt_variable_set_geometry(of->geometry, t);
    }
    dt_history_retain(&of->head);
    if (v->base)
        dt_history_release(&v->base->head);
    v->base = of;
    v->version = t->storage->version;
    return 0;
}

int dt_variable_set_part(dt_tensor *part, const dt_tensor *whole)
{
    if (dt_variable_set_view(part, whole) < 0)
        return -1;
    dt_variable *v = dt_variable_of(part);
    assert(v && v->base);
    return v->base->made.node ? dt_record_as_strided(part, v) : 0;
}

int dt_variable_follow_slowly(dt_tensor *view, const dt_tensor *t)
{
    if (dt_variable_set_view(view, t) == 0)
        return 0;
    dt_tensor_clear(view);
    return -1;
}
