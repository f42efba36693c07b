//go:build !unix

package jsonrpc

import "os"

// claimStdout redirects os.Stdout alone; other systems offer nothing more.
func claimStdout() *os.File {
	stdout := os.Stdout
	os.Stdout = os.Stderr
	return stdout
}
