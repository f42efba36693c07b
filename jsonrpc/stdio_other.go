//go:build !unix

package jsonrpc

import "os"

// claimStdout turns os.Stdout aside; there is no more to be had here.
func claimStdout() *os.File {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	return stdout
}
