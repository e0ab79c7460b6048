/* Devices of type "meta": tensors with shapes and types, and without data. */
#ifndef DT_DEVICE_META_H
#define DT_DEVICE_META_H

#include "device/registry.h"

extern const dt_device_row dt_meta_row;
extern const dt_backend dt_meta_backend;

#endif
