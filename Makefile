# Two commands suffice: `make demo` and `make test`. `make help` lists the rest.
#
#   PYTHON=python3.12   the interpreter to build for
#   VENV=.venv          the virtual environment to install into
#   PYDEVTENSOR_CUDA=0  leaves the CUDA backend out even where nvcc is found
#   GPU_CHECK_ARGS=     for gpu-check: --results FOLDER, --piece 1, --steps tests,memcheck, --rehearse
#   WHEEL_PYTHONS=    for wheels: the interpreters, instead of all that are found
#   KIT_PYTHON=         for gpu-kit: an interpreter to build a wheel for
#   CC= CXX= CFLAGS= LDFLAGS=   are respected; see README.md for the other switches

PYTHON ?= python3
VENV ?= .venv
ASAN_VENV ?= .venv-asan
LIBRARIES_VENV ?= .venv-libraries
TSAN_VENV ?= .venv-tsan
FUZZ_VENV ?= .venv-fuzz
PYTEST_ARGS ?=
# Two processes, a file of tests each, in the order of tests/conftest.py; where there are
# GPUs, tests want them for themselves.
TWO = $(if $(wildcard /dev/nvidia[0-9]*),,-n 2 --dist loadfile --no-loadscope-reorder)

# While developing, one architecture: the GPU's own, or one with PTX where there is none.
# A plain `pip install .` builds them all.
PYDEVTENSOR_CUDA_ARCHS ?= native
export PYDEVTENSOR_CUDA_ARCHS

# Nothing that an enclosing environment says may lead Python back to the source tree.
unexport PYTHONPATH PYTHONHOME

PREPARE = $(PYTHON) tools/build/prepare.py
INSTALL = -m pip install -q --disable-pip-version-check --no-build-isolation --no-deps \
	--force-reinstall .

TSAN_CORE = cpu_pool_test.c cpu_memory_test.c tensor_test.c sim_streams.cpp sim_memory.cpp
TSAN_TESTS = $(TSAN_CORE:%="tests/test_core.py::test_core[tests/core/%]") \
	$(patsubst %,tests/test_%.py,independent_threads streams cycles memory pinned transfers data data_workers fork)

# Builds with sanitizers into an environment, and runs tests there.
, := ,
define sanitized
export PYDEVTENSOR_SANITIZE=$(1) && $(PREPARE) $(2) build full test && \
$(2)/bin/python tools/build/products.py && $(2)/bin/python $(INSTALL) && \
$(2)/bin/python tools/build/sanitized.py $(2)/bin/python $(2)/bin/pytest -q $(3) $(PYTEST_ARGS)
endef

.DEFAULT_GOAL := build
.PHONY: build demo check test asan tsan kernel-check faults fuzz soak bench lint format gpu-check gpu-kit docs site notebooks libraries wheels clean help python

python:
	@command -v $(firstword $(PYTHON)) >/dev/null || { echo "pydevtensor: there is no '$(PYTHON)'; install it with:" \
	"sudo apt-get install python3 python3-dev python3-venv, or name another: make PYTHON=..." >&2; exit 1; }

build: python ## build and install into .venv
	@$(PREPARE) $(VENV) build full
	@$(VENV)/bin/python tools/build/products.py
	@$(VENV)/bin/python $(INSTALL)

# The first result comes soon: before the first `make build`, it compiles for this machine
# alone, without a GPU's kernels where there is no GPU, and mostly with -O1.
demo: export PYDEVTENSOR_QUICK ?= $(if $(wildcard build/released),0,1)
demo: build ## run the GPU notebook and say what happened on which device
	@$(PREPARE) $(VENV) demo
	@$(VENV)/bin/python tools/demo.py

check: build ## the fast tests, two minutes on two idle cores
	@$(PREPARE) $(VENV) test notebooks
	$(VENV)/bin/pytest -q -m "not slow" $(TWO) $(PYTEST_ARGS)

test: build ## all tests
	@$(PREPARE) $(VENV) test types notebooks
	$(VENV)/bin/pytest -q $(TWO) $(PYTEST_ARGS)

# The sanitizers' runtimes have to be there before Python is; libstdc++ too, since they
# look for its exceptions when they start. CPython itself leaks at exit by design.
asan: python ## the tests with AddressSanitizer and UBSan
	@$(call sanitized,address$(,)undefined,$(ASAN_VENV),-m "not slow or core")

# CPython is not instrumented, but its locks are seen, so what the GIL orders is no race.
# The tests are programs without races of their own, which start threads or give the
# kernel pool, the simulator, the engine and the data loader work.
tsan: python ## tests of threads, streams and the backward pass with ThreadSanitizer
	@$(call sanitized,thread,$(TSAN_VENV),--capture=sys -m "not slow or core" $(TSAN_TESTS))

soak: build ## long runs at full length, with figures
	@$(PREPARE) $(VENV) test
	PYDEVTENSOR_SOAK=1 $(VENV)/bin/pytest -q -s tests/test_long_runs.py tests/test_large.py $(PYTEST_ARGS)

# Programs by default, in the usual build; bytes in one with clang's coverage counters.
ifdef TARGET
fuzz: export PYDEVTENSOR_SANITIZE = address
fuzz: export CC = clang
fuzz: export CXX = clang++
fuzz: export CFLAGS = -fsanitize-coverage=inline-8bit-counters,pc-table
fuzz: python
	@$(PREPARE) $(FUZZ_VENV) build full fuzz
	@$(FUZZ_VENV)/bin/python tools/build/products.py
	@$(FUZZ_VENV)/bin/python $(INSTALL)
	LD_PRELOAD=$$($(FUZZ_VENV)/bin/python -c "import atheris; print(atheris.path())")/asan_with_fuzzer.so \
		ASAN_OPTIONS=detect_leaks=0:allocator_may_return_null=1:max_allocation_size_mb=4096 \
		$(FUZZ_VENV)/bin/python -P tools/fuzz/coverage.py $(TARGET) $(FUZZ_ARGS)
else
fuzz: build ## random programs beside NumPy (FUZZ_ARGS=--hostile), or bytes for TARGET=pt
	@$(PREPARE) $(VENV) test
	$(VENV)/bin/python -P tools/fuzz $(FUZZ_ARGS)
endif

kernel-check: build ## our own kernels under the checks of kernels (KERNEL_CHECK_ARGS=--short, --mutate 80)
	@$(PREPARE) $(VENV) test
	@$(VENV)/bin/python -P tools/kernel_check $(KERNEL_CHECK_ARGS)

faults: build ## fail every allocation, copy, launch and event in turn
	@$(VENV)/bin/python -P tools/faults/run.py --examples --first

bench: build ## benchmarks, beside NumPy and PyTorch where they are installed
	@$(VENV)/bin/python benchmarks/run.py

lint: build ## layout, warnings and types
	@$(PREPARE) $(VENV) lint
	@$(VENV)/bin/python tools/build/lint.py

format: python ## lay the sources out as lint wants them
	@$(PREPARE) $(VENV) lint
	@$(VENV)/bin/python tools/build/lint.py --fix

gpu-check: ## on a machine with a GPU: build, test, compute-sanitizer, benchmarks
	@$(PYTHON) tools/gpu_check.py $(GPU_CHECK_ARGS)

gpu-kit: python ## a folder to carry to a machine with a GPU, for gpu-check
	@$(PYTHON) tools/gpu/kit.py $(if $(KIT_PYTHON),--python $(KIT_PYTHON))

wheels: build ## wheels for all Pythons that are found, and the source distribution (WHEEL_PYTHONS=)
	@$(PREPARE) $(VENV) wheels
	@$(VENV)/bin/python tools/build/wheels.py $(WHEEL_PYTHONS)

docs: build ## write the tables of operations, and of PyTorch's names
	@$(PREPARE) $(VENV) test
	@$(VENV)/bin/python tools/operations.py
	@$(VENV)/bin/python tools/compatibility.py

site: build ## the documentation site, in build/site
	@$(PREPARE) $(VENV) site
	@$(VENV)/bin/python -P tools/website/build.py

# With a network; PyTorch is not among what it installs.
libraries: python ## install libraries written for PyTorch, and run them (LIBRARIES="timm peft")
	@$(PREPARE) $(LIBRARIES_VENV) build full
	@$(LIBRARIES_VENV)/bin/python tools/build/products.py
	@$(LIBRARIES_VENV)/bin/python $(INSTALL)
	@$(LIBRARIES_VENV)/bin/python -P tools/libraries $(LIBRARIES)

notebooks: build ## run the notebooks and store their outputs
	@$(PREPARE) $(VENV) notebooks
	@$(VENV)/bin/python tools/notebooks.py

clean: ## remove what was built and the virtual environments
	rm -rf build dist .venv .venv-asan .venv-tsan .venv-fuzz .venv-libraries *.egg-info
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find pydevtensor tests tools benchmarks -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null || true
	rm -f pydevtensor/*.so pydevtensor/_build.json
	find pydevtensor -name "*.pyi" -delete

help:
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile | expand -t 12
