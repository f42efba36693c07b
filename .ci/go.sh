# shellcheck shell=bash
# The two supported releases of Go, which the go command fetches as it fetches modules. The gate and releases use the older
# one, which go.mod has; the gate's step newest builds, vets and tests the root module with the newest.
# .ci/run and .ci/release read this file.
older=go1.26.8 newest=go1.27.4
