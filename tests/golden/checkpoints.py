"""What a loaded checkpoint holds, as JSON, with PyTorch or with pydevtensor."""


def contents(value, torch):
    if isinstance(value, torch.Tensor):
        pairs = (
            torch.view_as_real(value.resolve_conj()) if value.is_complex() else value
        )
        return {
            "elements": pairs.tolist(),
            "dtype": str(value.dtype),
            "stride": list(value.stride()),
            "offset": value.storage_offset(),
            "grad": value.requires_grad,
        }
    if isinstance(value, dict):
        return {"dict": [[k, contents(v, torch)] for k, v in value.items()]}
    if isinstance(value, list):
        return [contents(item, torch) for item in value]
    # A function of PyTorch is here written in C, and there in Python.
    named = callable(value) and hasattr(value, "__name__")
    return value.__name__ if named else repr(value)
