"""DLPack capsules with any fields, by ctypes, for coverage.py and the tests."""

import ctypes

ROOM = 1 << 16


class Device(ctypes.Structure):
    _fields_ = (("type", ctypes.c_int32), ("id", ctypes.c_int32))


class Type(ctypes.Structure):
    _fields_ = (
        ("code", ctypes.c_uint8),
        ("bits", ctypes.c_uint8),
        ("lanes", ctypes.c_uint16),
    )


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_void_p),
        ("device", Device),
        ("ndim", ctypes.c_int32),
        ("dtype", Type),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = (
        ("tensor", Tensor),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
    )


class Versioned(ctypes.Structure):
    _fields_ = (
        ("major", ctypes.c_uint32),
        ("minor", ctypes.c_uint32),
        ("context", ctypes.c_void_p),
        ("deleter", DELETER),
        ("flags", ctypes.c_uint64),
        ("tensor", Tensor),
    )


new_capsule = ctypes.pythonapi.PyCapsule_New
new_capsule.restype = ctypes.py_object
new_capsule.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)

SIZES = (0, 1, 2, 3, 5, 64, -1, 2**31, 2**62, 2**63 - 1, -(2**63))
COMMON = (1, 2, 3)


class Capsule:
    """A producer whose capsule is made of bytes. deleted counts the deleter's calls;
    honest is whether its elements are in the memory that it names."""

    def __init__(self, data):
        self.bytes = bytearray(data)
        self.memory = ctypes.create_string_buffer(ROOM)
        self.deleted = 0
        self.versioned = self.next() % 2
        self.capsules = []

    def next(self, usual=None):
        """A byte; where there is none, or most of the time, what is usual."""
        byte = self.bytes.pop(0) if self.bytes else 0
        return byte if usual is None or byte >= 192 else usual

    def number(self, common=COMMON):
        byte = self.next()
        return SIZES[byte % len(SIZES)] if byte >= 192 else common[byte % len(common)]

    def __dlpack_device__(self):
        return (self.next(1), self.next(0))

    def __dlpack__(self, **words):
        self.managed = (Versioned if self.versioned else Managed)()
        tensor = self.managed.tensor
        tensor.device = Device(self.next(1), self.next(0))
        ndim = self.next() % 4
        tensor.ndim = (-1, 64, 65, 2**31 - 1)[self.next() % 4] if ndim == 3 else ndim
        kinds = ((2, 32), (2, 64), (0, 64), (1, 8), (6, 8), (4, 16), (0, 32), (2, 16))
        code, bits = kinds[self.next() % 8]
        lanes = self.next(1)
        tensor.dtype = Type(self.next(code), self.next(bits), lanes)
        self.shape = [self.number() for _ in range(ndim)] + [1] * 70
        self.strides = [self.number((0, 1, 2)) for _ in range(ndim)] + [0] * 70
        tensor.shape = (ctypes.c_int64 * 73)(*self.shape)
        if self.next() % 3:
            tensor.strides = (ctypes.c_int64 * 73)(*self.strides)
        tensor.byte_offset = self.next() % 32 * (2**58 if self.next() >= 250 else 4)
        tensor.data = ctypes.addressof(self.memory) if self.next() < 240 else None

        def delete(_):
            self.deleted += 1

        self.deleter = DELETER(delete)
        self.managed.deleter = self.deleter if self.next() < 240 else DELETER()
        if self.versioned:
            self.managed.major, self.managed.minor = self.next(1), self.next(0)
            self.managed.flags = self.next() % 8
        elif self.next() >= 250:
            self.managed.deleter = DELETER()
        self.honest = (
            tensor.device.type == 1
            and tensor.data is not None
            and tensor.byte_offset < ROOM // 2
            and all(abs(n) < 100 for n in (*self.shape, *self.strides))
        )
        name = b"dltensor_versioned" if self.versioned else b"dltensor"
        name = (
            (b"used_dltensor", b"numpy", None)[self.next() % 3]
            if self.next() >= 250
            else name
        )
        address = ctypes.addressof(self.managed)
        self.name = name
        return new_capsule(address, name, None)
