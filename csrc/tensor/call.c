#include "tensor/call.h"

#include <stdlib.h>

int dt_call_make_list(dt_call *call, int64_t count)
{
    /* calloc checks the product, and touches no memory before it is used. */
    call->list = calloc((size_t)(count ? count : 1), sizeof *call->list);
    if (!call->list)
        return dt_fail(DT_ERROR_RUNTIME,
                       "%s(): there is no memory for %lld parts; ask for fewer",
                       call->name, (long long)count);
    call->list_count = count;
    return 0;
}

void dt_call_free_list(dt_call *call)
{
    for (int64_t i = 0; call->list && i < call->list_count; i++)
        dt_tensor_clear(&call->list[i]);
    free(call->list);
    call->list = NULL;
}
