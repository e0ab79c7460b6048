#include "base/count.h"

int dt_concurrent = 1;
