PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready

.PHONY: help demo studies test test-random test-lowest test-browser test-cluster test-torch test-neighbours test-openvino fuzz audit screenshots lint walks house fair bench methods clean

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
	.venv-lowest/bin/pip install --quiet --disable-pip-version-check uv
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest --resolution lowest-direct --editable '.[test]'
	OPENBLAS_NUM_THREADS=1 PYTEST_ADDOPTS="-W default" .venv-lowest/bin/pytest -q $(or $(TESTS),tests) \
		--deselect 'tests/serve/test_security.py::test_the_link_that_is_printed_opens_the_page[::1]' \
		--deselect tests/test_scikit_learn.py::test_scikit_learn_checks_of_the_array_interface

test-torch:  ## agreement of the torch back ends, in an environment of its own (torch 2.13.0, pinned; CPU is enough)
	$(PYTHON) -m venv .venv-torch
	.venv-torch/bin/pip install --quiet --disable-pip-version-check --editable '.[test,torch]'
	.venv-torch/bin/pytest -q tests/encoders/test_torch.py

test-neighbours:  ## arrays and files of torch, JAX and Hugging Face `datasets`, in an environment of its own
	$(PYTHON) -m venv .venv-neighbours
	.venv-neighbours/bin/pip install --quiet --disable-pip-version-check --editable '.[test]' torch jax datasets
	OPENBLAS_NUM_THREADS=1 .venv-neighbours/bin/pytest -q tests/test_neighbours.py

test-openvino:  ## the OpenVINO back end, in an environment of its own
	$(PYTHON) -m venv .venv-openvino
	.venv-openvino/bin/pip install --quiet --disable-pip-version-check --editable '.[test,openvino]'
	OPENBLAS_NUM_THREADS=1 .venv-openvino/bin/pytest -q tests/encoders/test_openvino.py

test-cluster:  ## the same bytes on a real Ray and a real Dask cluster, workers killed, in an environment of its own
	$(PYTHON) -m venv .venv-cluster
	.venv-cluster/bin/pip install --quiet --disable-pip-version-check --editable '.[test,ray,dask]'
	OPENBLAS_NUM_THREADS=1 .venv-cluster/bin/pytest -q tests/parallel/test_cluster_ray.py tests/parallel/test_cluster_dask.py
	OPENBLAS_NUM_THREADS=1 .venv-cluster/bin/pytest -q tests/parallel/test_cluster_ray_client.py

fuzz:  ## coverage-guided fuzzing of all that reads untrusted input, FUZZ_SECONDS (60) for each target
	$(PYTHON) -m venv .venv-fuzz
	.venv-fuzz/bin/pip install --quiet --disable-pip-version-check --editable '.[fuzz]' || { echo "There is no atheris for this Python; try make fuzz PYTHON=python3.12. The same targets run with random damage in make test."; exit 1; }
	OPENBLAS_NUM_THREADS=1 .venv-fuzz/bin/python -m fuzz --seconds $(or $(FUZZ_SECONDS),60)

audit: $(READY)  ## every dependency with version and licence; known vulnerabilities, where the service can be asked
	$(PYTHON) -m venv .venv-audit
	-.venv-audit/bin/pip install --quiet --disable-pip-version-check pip-audit
	$(BIN)/python tools/audit.py --pip-audit .venv-audit/bin/pip-audit

walks: $(READY)  ## the files that learn, predict, a benchmark cell and an HTTP question walk through, before and after the rooms
	$(BIN)/python -m tools.walks --before 8f7b8ce

house: $(READY)  ## the picture of rooms and imports in docs/architecture.md
	$(BIN)/python -m tools.house --write

fair: $(READY)  ## every method at its best beside HierarchicalHyCal, with paired intervals; goes on where it stopped
	OPENBLAS_NUM_THREADS=1 $(BIN)/python -m benchmarks.fair

bench: $(READY)  ## speed and memory against the dense reference
	$(BIN)/python -m benchmarks.dense_comparison

methods: $(READY)  ## time, memory and accuracy of every method on real embeddings
	$(BIN)/python -m benchmarks.methods
	$(BIN)/python -m benchmarks.stream

clean:  ## remove everything that make made
	rm -rf .venv demo .venv-torch .venv-neighbours .venv-openvino .venv-cluster .venv-lowest .venv-fuzz .venv-audit fuzz-found build dist \
		.pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
