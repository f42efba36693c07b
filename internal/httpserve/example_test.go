package httpserve_test

import (
	"fmt"

	"github.com/codexmcp/codexmcp/internal/httpserve"
)

// Other machines reach a server that does not listen on loopback, which then needs TLS.
func ExampleLoopback() {
	for _, host := range []string{"127.0.0.1", "::1", "localhost", "0.0.0.0", ""} {
		fmt.Printf("%q %v\n", host, httpserve.Loopback(host))
	}
	// Output:
	// "127.0.0.1" true
	// "::1" true
	// "localhost" true
	// "0.0.0.0" false
	// "" false
}
