# shellcheck shell=bash
# The two supported releases of Go, which the go command fetches as it fetches modules. The gate uses the
# newest; its tests with the race detector, and releases, use the older one, which go.mod has.
# .ci/run and .ci/release read this file.
older=go1.26.8 newest=go1.27.4
