"""List the public modules of PyTorch and their names.

    python tools/torch_names.py            # writes pydevtensor/_torch_names.txt
    python tools/torch_names.py --check    # fails where the file would change

Run it in an environment with PyTorch 2.13 (its CPU build is enough). The package reads
the file to know which names PyTorch has (pydevtensor/_stand_ins.py). A line is a module
without `torch.`, a colon, and its names: those of its __all__, its classes and
functions; of an enumeration the members too. `^` after a name: the same object as in
the module above. Modules and names that begin
with an underscore are not public: left out but for those of PRIVATE.
"""

import enum
import importlib
import logging
import pkgutil
import sys
import warnings
from pathlib import Path
from types import ModuleType

FILE = Path(__file__).resolve().parents[1] / "pydevtensor" / "_torch_names.txt"
# Modules that need packages which PyTorch does not bring.
ELSEWHERE = {
    "utils.tensorboard": ["FileWriter", "RecordWriter", "SummaryWriter"],
}
# Private names that libraries import: nobody can tell them that they should not.
PRIVATE = {
    "__config__": ["parallel_info", "show"],
    "_C": [
        "DisableTorchFunction",
        "DisableTorchFunctionSubclass",
        "Graph",
        "Value",
        "_TensorMeta",
        "_disabled_torch_function_impl",
        "_log_api_usage_once",
    ],
    "_C._distributed_c10d": ["Reducer"],
    "_C._distributed_rpc": ["_is_current_rpc_agent_set"],
    "_C._functorch": ["is_legacy_batchedtensor"],
    "_C._nn": ["_parse_to"],
    "_dynamo": [
        "OptimizedModule",
        "mark_static_address",
        "allow_in_graph",
        "assume_constant_result",
        "disable",
        "is_compiling",
        "mark_dynamic",
    ],
    "_dynamo._trace_wrapped_higher_order_op": ["TransformGetItemToIndex"],
    "_dynamo.eval_frame": ["OptimizedModule", "is_dynamo_supported"],
    "_dynamo.exc": ["TensorifyScalarRestartAnalysis", "Unsupported"],
    "_inductor": ["cudagraph_mark_step_begin", "list_mode_options"],
    "_inductor.config": [],
    "_inductor.cpu_vec_isa": ["pick_vec_isa"],
    "_inductor.runtime": [],
    "_inductor.runtime.cache_dir_utils": ["cache_dir"],
    "_functorch": [],
    "_functorch.config": [],
    "_logging": ["set_logs"],
    "_subclasses": ["FakeTensor", "FakeTensorMode"],
    "_subclasses.fake_tensor": ["FakeTensor", "FakeTensorMode", "is_fake"],
    "_tensor": ["Tensor", "_rebuild_from_type_v2"],
    "_tensor_str": [
        "PRINT_OPTS",
        "_add_suffixes",
        "_str_intern",
        "_tensor_str",
        "printoptions",
    ],
    "_utils": [
        "_element_size",
        "_get_device_index",
        "_rebuild_parameter",
        "_rebuild_tensor_v2",
    ],
    "_vmap_internals": ["vmap"],
    "_dynamo.config": [],  # whose options programs set
    "distributed._composable": [],
    "distributed._composable.fsdp": ["fully_shard"],
    "distributed._functional_collectives": [
        "wait_tensor",
        "all_to_all_single_autograd",
    ],
    "distributed._tensor": ["DTensor", "DeviceMesh", "Replicate", "Shard"],
    "distributed.algorithms._checkpoint": [],
    "distributed.algorithms._checkpoint.checkpoint_wrapper": [
        "CheckpointImpl",
        "CheckpointWrapper",
        "apply_activation_checkpointing",
        "checkpoint_wrapper",
        "offload_wrapper",
    ],
    "distributed.checkpoint.format_utils": ["_EmptyStateDictLoadPlanner"],
    "distributed.checkpoint.state_dict_loader": ["_load_state_dict"],
    "distributed.fsdp.wrap": ["_or_policy"],
    "distributed.utils": ["_sync_module_states"],
    "fx._pytree": ["register_pytree_flatten_spec"],
    "jit._recursive": ["concrete_type_store"],
    "profiler.profiler": ["_default_schedule_fn"],
    "distributed.tensor._utils": ["compute_local_shape_and_global_offset"],
    "distributed.tensor.placement_types": ["_StridedShard"],
    "hub": ["HASH_REGEX", "urlparse"],
    "nn.attention.flex_attention": ["_DEFAULT_SPARSE_BLOCK_SIZE"],
    "fx.node": ["Argument", "Target"],
    "utils._device": ["DeviceContext"],
    "utils._python_dispatch": [
        "TorchDispatchMode",
        "is_traceable_wrapper_subclass",
        "return_and_correct_aliasing",
        "transform_subclass",
    ],
    "utils._pytree": [
        "SUPPORTED_NODES",
        "LeafSpec",
        "PyTree",
        "TreeSpec",
        "_get_node_type",
        "tree_flatten",
        "tree_map",
        "tree_map_only",
        "tree_unflatten",
        "register_pytree_node",
        "_dict_flatten_with_keys",
    ],
    "utils.data._utils": [],
    "utils.data._utils.collate": ["default_collate", "default_convert"],
    "utils.model_zoo": ["load_url"],
    "utils.data.dataloader": ["_BaseDataLoaderIter", "_MultiProcessingDataLoaderIter"],
}


def is_public(name):
    return not any(part.startswith("_") for part in name.split("."))


def modules(torch):
    """The public modules, by their names; those that do not load are left out."""
    for found in pkgutil.walk_packages(torch.__path__, "torch.", lambda _: None):
        if is_public(found.name):
            try:
                importlib.import_module(found.name)
            except BaseException as error:  # one calls sys.exit()
                print(f"{found.name}: {type(error).__name__}", file=sys.stderr)
    return {
        name: module
        for name, module in sorted(sys.modules.items())
        if name.partition(".")[0] == "torch" and is_public(name)
    }


def names(path, module):
    """The names that a module offers, without modules below it."""
    listed = getattr(module, "__all__", None)
    listed = set(listed) if isinstance(listed, list | tuple) else set()
    kind = type(module)
    found = listed | {*vars(module)}
    if kind is not ModuleType:
        found |= {*dir(kind)} - {*dir(ModuleType)}
    for name in sorted(found):
        value = getattr(module, name, None)
        if not is_public(name) or isinstance(value, ModuleType):
            continue
        if name in listed or is_own(path, module, name, value):
            above = sys.modules.get(path.rpartition(".")[0])
            same = value is not None and getattr(above, name, None) is value
            yield f"{name}^" if same else name
            yield from (f"{name}.{member}" for member in members(value))


def is_own(path, module, name, value):
    if type(module) is not ModuleType and name not in vars(module):
        return True  # a setting of torch.backends
    if value is sys.modules["torch"].Tensor:
        return False
    home = getattr(value, "__module__", None) or ""
    package = hasattr(module, "__path__") and home.startswith("torch")
    return callable(value) and (home == path or package or home.startswith("torch._C"))


def members(value):
    """The members of an enumeration, Python's own or pybind11's."""
    if isinstance(value, type) and issubclass(value, enum.Enum):
        return sorted(value.__members__)
    if not isinstance(value, type):
        return []
    found = getattr(getattr(value, "RedOpType", value), "__members__", None)
    return sorted(found) if isinstance(found, dict) else []


def lines(torch):
    found = {
        path.removeprefix("torch").removeprefix("."): list(names(path, module))
        for path, module in modules(torch).items()
    }
    found |= ELSEWHERE
    for path, listed in PRIVATE.items():
        found[path] = found.get(path, []) + listed
    for path, listed in found.items():
        above = {name.rstrip("^") for name in found.get(path.rpartition(".")[0], ())}
        found[path] = [n if n.rstrip("^") in above else n.rstrip("^") for n in listed]
    for path, listed in found.items():
        for name in listed:
            if "." not in name:
                check_exception(path, name.rstrip("^"))
    return [f"{path}:{''.join(f' {n}' for n in found[path])}" for path in sorted(found)]


def check_exception(path, name):
    """Stand-ins take from its name that a class is one of exceptions."""
    module = sys.modules.get(f"torch.{path}" if path else "torch")
    value = getattr(module, name, None)
    is_exception = isinstance(value, type) and issubclass(value, BaseException)
    if is_exception and not name.endswith(("Error", "Exception", "Warning")):
        print(f"an exception without the name of one: {path}.{name}", file=sys.stderr)


def main():
    warnings.simplefilter("ignore")
    warnings.warn = lambda *_, **__: None
    logging.disable(logging.CRITICAL)
    import torch

    if not torch.__version__.startswith("2.13."):
        sys.exit(f"torch_names.py: this is PyTorch {torch.__version__}, not 2.13")
    text = "\n".join(lines(torch)) + "\n"
    if "--check" not in sys.argv:
        FILE.write_text(text)
    elif FILE.read_text() != text:
        sys.exit(f"{FILE.name} differs; run python tools/torch_names.py")


if __name__ == "__main__":
    main()
