# The ways to work on Hansa. `make demo` and `make test` set up everything that they need.
PYTHON ?= python3
BIN := .venv/bin
ALL := tests/unit tests/property tests/integration tests/e2e tests/hostile
T ?= $(ALL)
# Clusters of tests live for seconds: what they don't collect they don't work for. Benchmarks run them as users do.
TEST := GOGC=400 $(BIN)/pytest
MINUTES ?= 10

.PHONY: setup demo test unit coverage check format lock wheel image manifests lint-manifests bench soak clean

setup: .venv/ready
	@tools/system-packages
	@$(BIN)/hansa local binaries

.venv/ready: pyproject.toml requirements/dev.txt
	@echo "setting up .venv"
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@# The file names every package, so nothing is resolved: pip would look for newer releases of those with extras.
	@$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes --no-deps -r requirements/dev.txt
	@$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

demo: .venv/ready  ## real clusters: pods of one that run in others, tenants that share one, a pool of clusters, a burst
	@PATH="$(CURDIR)/$(BIN):$$PATH" hansa demo

test: setup  ## everything, and failed tests again alone (see CONTRIBUTING.md); T=path[::name] runs a part
	@$(BIN)/hansa local binaries helm kube-score >/dev/null
	@$(TEST) --classify $(if $(filter-out $(ALL),$(T)),,-n 4) $(T)

unit: .venv/ready  ## what needs no cluster
	@$(BIN)/pytest -q tests/unit

coverage: .venv/ready  ## lines and branches of src/hansa that unit tests run; a report without a threshold
	@$(BIN)/pytest -q --cov --cov-report=term tests/unit

check: .venv/ready  ## format, lint, types, layers
	@$(BIN)/ruff format --check src tests tools
	@$(BIN)/ruff check src tests tools
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache

format: .venv/ready
	@$(BIN)/ruff format src tests tools
	@$(BIN)/ruff check --fix src tests tools

lock: .venv/ready  ## pin the newest versions of all dependencies
	@$(BIN)/pip install --quiet uv
	@$(BIN)/uv pip compile pyproject.toml --group dev --group bench --universal --generate-hashes --upgrade \
		--no-header --no-annotate --python-version 3.11 --quiet --output-file requirements/dev.txt
	@$(BIN)/uv pip compile pyproject.toml --constraints requirements/dev.txt --universal --generate-hashes \
		--no-header --no-annotate --python-version 3.11 --quiet --output-file requirements/runtime.txt

wheel: .venv/ready  ## dist/hansa-VERSION-py3-none-any.whl
	@$(BIN)/python -m hatchling build -t wheel

image: .venv/ready  ## dist/hansa-image.tar, for `hansa local up --real-nodes 1 --image`; deploy/Dockerfile is for users
	@$(BIN)/python tools/build_image.py

lint-manifests: .venv/ready  ## findings of kube-score in the manifests of every mode
	@tools/lint-manifests

manifests: .venv/ready  ## render deploy/all_in_one.yaml and deploy/manifests from the Helm chart
	@tools/render-manifests

bench: setup  ## figures, side by side with others
	@$(BIN)/pytest -s --timeout 0 $(or $(B),tests/bench)

soak: setup  ## random kills for MINUTES each, and a longer search for counterexamples; SOAK_SEED=n repeats a round
	@SOAK_MINUTES=$(MINUTES) $(BIN)/pytest -s --timeout 0 tests/property
	@SOAK_MINUTES=$(MINUTES) $(BIN)/pytest -s --timeout 0 -m soak tests/soak tests/integration tests/e2e tests/hostile

clean:  ## what was built here; clusters and caches stay
	@rm -rf .venv dist .mypy_cache .ruff_cache .pytest_cache .hypothesis
	@find src tests tools -name __pycache__ -prune -exec rm -rf {} +
