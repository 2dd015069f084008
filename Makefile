# Three commands matter: `make demo` shows what muster does, `make test` installs what the tests need and runs them all,
# `make quick` runs what needs nothing but Python.
#
#   PYTHON       the interpreter to build the environment with (3.11 or newer)
#   VENV         where the environment is kept
#   TORCH_INDEX  an extra package index for torch. On Linux, PyPI has only the CUDA build of several GB;
#                https://download.pytorch.org/whl/cpu has a small one for machines without a GPU.
#   WORKERS      how many tests run side by side; more than cores, since fleets of processes mostly wait

PYTHON ?= python3
VENV ?= .venv
TORCH_INDEX ?=
WORKERS ?= 5

# Without byte code each of the hundreds of processes that the tests start compiles all of muster.
unexport PYTHONDONTWRITEBYTECODE

BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check
# pip would compile all of torch and the others, which takes a third of the installation; Python compiles what it imports.
INSTALL := $(PIP) install --quiet --no-compile --constraint constraints.txt $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX))

# These judge what nodes that share this machine reach, or start what takes all of it for a while: they get the machine
# for themselves.
ALONE := tests/deploy/test_rabbitmq.py tests/docs/test_guides.py tests/faults/test_aborted_sweep.py \
	tests/local/test_demo.py tests/network/test_hard_networks.py tests/network/test_slow_networks.py
PYTEST := $(BIN)/python -m pytest
FOR_TESTS = $(VENV)/.installed-for-tests $(VENV)/.system-packages
SIDE_BY_SIDE := --numprocesses $(WORKERS) --no-loadscope-reorder

# What decides, and what is tested without starting anything. tests/pure.py leaves out the tests that are marked as live.
SIMULATIONS := tests/simulation
PURE := tests/test_architecture.py tests/test_cases.py tests/agent/decide tests/core tests/corpus tests/docs/test_words.py \
	tests/local/test_demo_plan.py \
	tests/plugins $(SIMULATIONS) \
	$(addprefix tests/coordinator/,evidence localize model normal quarantine references sweeps topology views)

.PHONY: demo test alone side-by-side quick pure hosts images pythons release costs newer-slurm lint docs \
	reference screenshots site constraints clean

demo: $(VENV)/.installed
	$(BIN)/muster demo

test: $(FOR_TESTS)
	failed=0; \
	$(MAKE) --jobs 2 lint side-by-side || failed=1; \
	$(MAKE) alone || failed=1; \
	exit $$failed

# A target of its own: `make --dry-run` executes a recipe that calls make, with everything else in it.
alone: $(FOR_TESTS)
	$(PYTEST) $(ALONE)

side-by-side: $(FOR_TESTS)
	$(PYTEST) $(SIDE_BY_SIDE) $(patsubst %,--ignore=%,$(ALONE))

quick: $(VENV)/.installed-for-tests
	$(MAKE) --jobs 2 --output-sync lint pure

# They never wait, so one worker for each core: each more would import and collect everything once more.
pure: $(VENV)/.installed-for-tests
	$(PYTEST) -p tests.pure --numprocesses logical --no-loadscope-reorder $(PURE)

# Builds all images for real and runs them, as root on Debian or Ubuntu. No part of `make test`: it takes minutes.
images: $(FOR_TESTS)
	.ci/system-packages images
	$(PYTEST) -s --timeout 1200 --durations 10 tests/images

# Boots hosts with systemd in namespaces and installs muster on them with Ansible. No part of `make test`: it takes minutes.
hosts: $(FOR_TESTS)
	.ci/system-packages hosts
	$(PYTEST) --timeout 1800 --durations 10 tests/hosts

# The tests of `make quick` on every Python that muster promises, each in an environment of its own.
pythons: $(FOR_TESTS)
	set -e; for version in 3.11 3.12 3.13 3.14; do \
	    .ci/test-second-python $(VENV) build/python$$version $$version; \
	done

# The files of a release in dist/, from the last commit: packages, image context, SBOM, changes and checksums.
release: $(VENV)/.installed-for-tests
	$(BIN)/python -m release.build dist

# What each directory, file and test costs in processor time: make costs COSTS=tests/agent
COSTS ?= tests
costs: $(FOR_TESTS)
	$(PYTEST) -p tests.costs --quiet $(SIDE_BY_SIDE) $(COSTS)

# The tests of the Slurm plugin with the Slurm of Debian 13, in a chroot; root only. CI has no time for it.
newer-slurm: $(FOR_TESTS)
	.ci/newer-slurm $(BIN)/python

lint: $(VENV)/.installed-for-tests
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: reference screenshots

reference: $(VENV)/.installed-for-tests
	$(BIN)/python docs/generate.py

# Pictures of all pages in a real browser: those of the README, the others in build/screenshots. Look at them.
screenshots: $(FOR_TESTS)
	$(BIN)/python docs/screenshots.py

# The documentation as a site that needs no network: build/site/index.html. A link that leads nowhere is an error.
site: $(VENV)/.installed-for-tests
	$(BIN)/python -m sphinx --fail-on-warning --nitpicky --keep-going --quiet -c docs -d build/doctrees . build/site

# Pins what is installed now, after the tests have passed with it.
constraints: $(VENV)/.installed-for-tests
	sed -n '/^#/p' constraints.txt > constraints.new
	$(PIP) freeze --exclude-editable | sed -E 's/^(torch==[0-9.]+)\+.*/\1/' >> constraints.new
	mv constraints.new constraints.txt

clean:
	rm -rf $(VENV) .cache .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "muster needs Python 3.11 or newer: make PYTHON=...")'
	PYTHON=$(PYTHON) .ci/system-packages venv
	$(PYTHON) -m venv $(VENV)

# The build back end comes first and pinned, so that installing muster itself fetches nothing that is not pinned.
$(VENV)/.installed: pyproject.toml constraints.txt | $(BIN)/python
	@echo "Installing muster into $(VENV); the first time this takes a few minutes."
	$(INSTALL) hatchling
	$(INSTALL) --no-build-isolation --editable '.[agent,coordinator,torch]'
	touch $@

$(VENV)/.installed-for-tests: $(VENV)/.installed
	$(INSTALL) --no-build-isolation --editable '.[dev]'
	touch $@

# Machines that are no Debian have no mirror for the newer broker. There the tests with it are skipped, but not in CI.
$(VENV)/.system-packages: .ci/system-packages .ci/newer-mosquitto | $(BIN)/python
	.ci/system-packages tests
	.ci/newer-mosquitto || test -z "$$CI"
	touch $@
