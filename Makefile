# A thin wrapper: CMake does the work (CMakePresets.json); these targets install missing packages first.
JOBS ?= $(shell nproc)
WEIR := build/release/weir
SAMPLE := build/sample
PREFIX ?= /usr/local

.PHONY: all run test bench bench-peers nvjpeg python release install uninstall format clean build
all: build

build:
	@.ci/packages.sh build
	@cmake --preset release
	@cmake --build --preset release -j $(JOBS) --target weir

# Creates a sample dataset once and runs three epochs with a simulated step of 5 ms; prints the table at the end.
run: build
	@test -d $(SAMPLE) || { rm -rf $(SAMPLE).part && \
	  $(WEIR) synth $(SAMPLE).part --format act-jpeg --episodes 8 --steps 40 --cameras top,wrist --size 640x480 \
	    --quality 95 && mv $(SAMPLE).part $(SAMPLE); }
	$(WEIR) run $(SAMPLE) --num-epochs 3 --step-ms 5

test:
	@.ci/packages.sh test
	@cmake --preset release -DWEIR_WITH_CRITERION=ON
	@cmake --build --preset release -j $(JOBS)
	@ctest --preset release -j $$(($(JOBS) + 2)) # many tests wait

bench:
	@.ci/packages.sh bench
	@cmake --preset release -DWEIR_WITH_TURBOJPEG=ON
	@cmake --build --preset release -j $(JOBS)
	@cmake --build --preset release --target bench

# Compares with PyTorch's DataLoader, a Python thread pool, SPDL and WebDataset, installed into build/peers-venv (needs
# the network and 6 GB, mostly torch). Takes about 15 minutes; PEERS="--qualities 95 --rounds 3" for less. bench/limits
# needs only simplejpeg and numpy: "bench/peers/setup.sh numpy simplejpeg".
bench-peers:
	@.ci/packages.sh peers
	@cmake --preset release -DWEIR_WITH_TURBOJPEG=ON
	@cmake --build --preset release -j $(JOBS) --target weir limits
	@python3 bench/peers/run.py --json build/peers.json $(PEERS)

# Builds the Python wheel in build/wheel and installs it into build/python-venv, which also sees Debian's packages
# (torch, numpy). scikit-build-core and wheel come from PyPI, the source of a lean HDF5 from Debian.
python:
	@.ci/packages.sh python
	@.ci/wheel.sh
	@build/python-venv/bin/pip install --quiet --force-reinstall --no-deps build/wheel/*.whl
	@build/python-venv/bin/python -c "import weir; print(weir.__file__)"

# Writes an archive for x86-64 Linux, the wheel, the source archive and checksums to build/release-files.
release:
	@.ci/packages.sh python
	@.ci/release.sh

# Honours PREFIX and DESTDIR; uninstall removes the files that were last installed from here.
install:
	@.ci/packages.sh build
	@cmake --preset release -DCMAKE_INSTALL_PREFIX="$(PREFIX)"
	@cmake --build --preset release -j $(JOBS) --target weir weir_pages libweir libweir_shared libweir_prof libweir_prof_shared
	@DESTDIR="$(DESTDIR)" cmake --install build/release

uninstall:
	@DESTDIR="$(DESTDIR)" cmake -DMANIFEST=build/release/install_manifest.txt -P cmake/uninstall.cmake

# Fetches nvJPEG's header if the CUDA Toolkit lacks it; cmake/Cuda.cmake looks in this folder.
nvjpeg:
	@test -d build/nvjpeg-venv || { python3 -m venv build/nvjpeg-venv && \
	  build/nvjpeg-venv/bin/pip install --quiet --no-deps 'nvidia-nvjpeg==13.0.*'; }

format:
	@.ci/format.sh

clean:
	rm -rf build
