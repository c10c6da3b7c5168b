# Every target prepares what it needs; `make` alone lists them.

VENV := .venv
PEERS := .venv-peers
comma := ,
UV := $(shell command -v uv 2>/dev/null)

# The newest usable interpreter of those named. A pyenv shim may exist and still not run: so try it.
newest = $(firstword $(foreach p,$(1),$(shell $(p) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
    >/dev/null 2>&1 && echo $(p))))
PYTHON ?= $(call newest,python3.14 python3.13 python3.12 python3.11 python3)
# TensorFlow 2.21 has no wheels beyond 3.13.
PEERS_PYTHON ?= $(call newest,python3.13 python3.12 python3.11 python3)

# Once here, not in each of the many processes of a test or a launched program.
compile = $(1)/bin/python -m compileall -q tensorfleet tensorfleet_legacy
# $(call install,venv,python,extras) makes the environment if there is none, then brings it up to date.
ifdef UV
install = { test -x $(1)/bin/python || uv venv --python $(2) $(1); } && \
    uv pip install --quiet --compile-bytecode --python $(1)/bin/python --editable '.[$(3)]' && $(compile)
else
install = { test -x $(1)/bin/python || $(2) -m venv $(1); } && \
    $(1)/bin/python -m pip install --quiet --editable '.[$(3)]' && $(compile)
endif

.DEFAULT_GOAL := help
.PHONY: help run test quick wheel peers browser engines kubernetes bench chaos docs lint lock clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

run: $(VENV)/.stamp ## train on 1 parameter server and 2 workers, on this machine
	$(VENV)/bin/tensorfleet run --ps 1 --workers 2 examples/mnist_replica.py

# Tests of clusters mostly wait: three workers keep two cores busy.
test: lint ## lint, then all tests that need nothing but this repository; COVERAGE=1 measures what they cover
ifdef COVERAGE
	COVERAGE_CORE=sysmon $(VENV)/bin/python -m pytest -n 3 -rR --cov --cov-report= $(ONLY)
	$(VENV)/bin/python tools/coverage_by_room.py
else
	$(VENV)/bin/python -m pytest -n 3 -rR $(ONLY)
endif

quick: lint ## lint, then the tests that take little time
	$(VENV)/bin/python -m pytest -n 2 -m "not peers and not slow" tests/graph tests/kernels tests/ops tests/passes \
	    tests/session tests/state tests/cluster/master tests/test_layout.py

peers: $(PEERS)/.stamp ## compare with the real TensorFlow
	$(PEERS)/bin/python -m pytest -m peers -n 2 -rR $(ONLY)

browser: $(VENV)/.browser-stamp ## look at the page of a run in a real Chromium, by mouse and by keyboard
	CHROMIUM="$$(tools/chromium.sh)" && export CHROMIUM && $(VENV)/bin/python -m pytest -m browser tests/browser -rR $(ONLY)

# Slurm and mpirun are Debian's; where the packages cannot be installed, their tests are skipped and say so.
engines: $(VENV)/.engines-stamp ## train on a real Ray and a real Slurm, and check the Kubernetes manifests
	tools/engines.sh
	$(VENV)/bin/python -m pytest -m engines -n 2 --dist loadfile -rR -rs $(ONLY) tests/engines

kubernetes: $(VENV)/.engines-stamp ## build a Kubernetes API server from Debian's source, in minutes, and run on it
	tools/kubernetes.sh
	$(VENV)/bin/python -m pytest -m kubernetes -rR tests/engines

# A script that cannot measure something leaves it out; the list at the end comes in any case.
bench: $(PEERS)/.bench-stamp $(VENV)/.engines-stamp ## measure side by side with TensorFlow, PyTorch and JAX, for hours; then list what is slower
	rm -f build/bench/*.json
	-$(PEERS)/bin/python benchmarks/run.py --against torch,jax --size half,double
	-$(PEERS)/bin/python benchmarks/cluster.py
	-$(PEERS)/bin/python benchmarks/durable.py
	-$(VENV)/bin/python benchmarks/failover.py
	-$(PEERS)/bin/python benchmarks/counting.py
	-$(PEERS)/bin/python benchmarks/growth.py
	-$(PEERS)/bin/python benchmarks/input.py
	-$(PEERS)/bin/python benchmarks/training.py
	-$(PEERS)/bin/python benchmarks/ops.py
	-$(VENV)/bin/python benchmarks/engines.py
	$(PEERS)/bin/python benchmarks/summary.py

wheel: ## build the wheel and try it in an empty environment
	@$(if $(PYTHON),,$(error Python 3.11 or later is needed: none found. Set PYTHON=/path/to/python3))
	$(PYTHON) tools/check_wheel.py

chaos: $(VENV)/.stamp ## kill, stop, cut off and send nonsense for long: make chaos ROUNDS=300 KILLS=3000 FUZZ=1000000 GRAPHS=5000 SEED=7
	TENSORFLEET_CHAOS_ROUNDS=$(or $(ROUNDS),300) TENSORFLEET_CHAOS_KILLS=$(or $(KILLS),3000) TENSORFLEET_CHAOS_FUZZ=$(or $(FUZZ),1000000) \
	    TENSORFLEET_CHAOS_GRAPHS=$(or $(GRAPHS),5000) \
	    TENSORFLEET_CHAOS_SEED=$(or $(SEED),1) $(VENV)/bin/python -m pytest tests/chaos -rA

docs: $(VENV)/.docs-stamp ## the pages as a site, in build/site; a warning is an error
	$(VENV)/bin/mkdocs build --strict --quiet
	@echo "Open build/site/index.html."

lint: $(VENV)/.stamp ## ruff, mypy and import-linter
	$(VENV)/bin/ruff check
	$(VENV)/bin/ruff format --check
	$(VENV)/bin/mypy
	$(VENV)/bin/lint-imports --no-cache

lock: ## pin what CI installs, in .ci/requirements.lock
	@$(if $(UV),,$(error uv is needed: pip install uv))
	uv pip compile --quiet --universal --python-version 3.11 --extra dev --extra peers --extra docs --extra browser --extra engines --no-annotate --no-header \
	    --output-file .ci/requirements.lock pyproject.toml

clean: ## remove environments, caches and build output
	rm -rf .venv .venv-* build dist .pytest_cache .mypy_cache .ruff_cache
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/.stamp: pyproject.toml
	@$(if $(PYTHON),,$(error Python 3.11 or later is needed: none found. Set PYTHON=/path/to/python3))
	$(call install,$(VENV),$(PYTHON),dev)
	@touch $@

$(PEERS)/.stamp: pyproject.toml
	@$(if $(PEERS_PYTHON),,$(error Python 3.11 to 3.13 is needed: none found. Set PEERS_PYTHON=/path/to/python3))
	$(call install,$(PEERS),$(PEERS_PYTHON),dev$(comma)peers)
	@touch $@

$(PEERS)/.bench-stamp: $(PEERS)/.stamp
	$(call install,$(PEERS),$(PEERS_PYTHON),bench)
	@touch $@

$(VENV)/.browser-stamp: $(VENV)/.stamp
	$(call install,$(VENV),$(PYTHON),browser)
	@touch $@

$(VENV)/.engines-stamp: $(VENV)/.stamp
	$(call install,$(VENV),$(PYTHON),engines)
	@touch $@

$(VENV)/.docs-stamp: $(VENV)/.stamp
	$(call install,$(VENV),$(PYTHON),docs)
	@touch $@
